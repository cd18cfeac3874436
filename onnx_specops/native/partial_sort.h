// The order of equal elements in GCC's std::partial_sort, a heap sort that OpenVINO's CPU plugin uses, for any compiler.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace specops {

// A heap of [0, size) whose top is the element that sorts last.
template <class T, class Before>
class Heap {
 public:
  Heap(T* elements, std::int64_t size, Before before) : elements_(elements), before_(before) {
    for (std::int64_t i = size / 2; i-- > 0;) put(i, size, elements_[i]);
  }

  // Swaps the top of the first `size` elements with `other`.
  void replace(T& other, std::int64_t size) {
    T element = std::move(other);
    other = std::move(elements_[0]);
    put(0, size, std::move(element));
  }

 private:
  // Inserts an element below the hole at `top`: sifts down to a leaf, then up to its position.
  void put(std::int64_t top, std::int64_t size, T element) {
    std::int64_t hole = top;
    const auto fill = [&](std::int64_t from) {
      elements_[hole] = std::move(elements_[from]);
      hole = from;
    };
    while (2 * hole + 2 < size) {
      const std::int64_t right = 2 * hole + 2;
      fill(before_(elements_[right], elements_[right - 1]) ? right - 1 : right);
    }
    if (2 * hole + 1 < size) fill(2 * hole + 1);
    while (hole > top && before_(elements_[(hole - 1) / 2], element)) fill((hole - 1) / 2);
    elements_[hole] = std::move(element);
  }

  T* elements_;
  Before before_;
};

// Keeps the first `limit` of the sorted elements.
template <class T, class Before>
void partial_sort(std::vector<T>& elements, std::int64_t limit, Before before) {
  const auto count = static_cast<std::int64_t>(elements.size());
  const std::int64_t most = std::min(std::max<std::int64_t>(limit, 0), count);
  if (most > 0) {
    Heap<T, Before> heap(elements.data(), most, before);
    for (std::int64_t i = most; i < count; ++i) {
      if (before(elements[static_cast<std::size_t>(i)], elements[0])) heap.replace(elements[static_cast<std::size_t>(i)], most);
    }
    for (std::int64_t i = most - 1; i > 0; --i) heap.replace(elements[static_cast<std::size_t>(i)], i);
  }
  elements.resize(static_cast<std::size_t>(most));
}

template <class A>
struct Ranked {
  A score;
  std::int64_t at;
};

// Keeps the `limit` best of all (all for a negative limit), best first.
template <class A>
void keep_partially_sorted(std::vector<Ranked<A>>& all, std::int64_t limit) {
  const auto higher = [](const Ranked<A>& a, const Ranked<A>& b) { return a.score > b.score; };
  partial_sort(all, limit < 0 ? static_cast<std::int64_t>(all.size()) : limit, higher);
}

}  // namespace specops
