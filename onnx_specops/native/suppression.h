// Greedy suppression of overlapping boxes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "numbers.h"
#include "partial_sort.h"
#include "simd.h"

namespace specops {

// The maximum number of boxes per image in an output, padded if there are fewer. No network has more.
constexpr std::int64_t most_boxes = std::int64_t{1} << 20;

template <class A>
struct Corners {
  A x1, y1, x2, y2;
};

// Whether boxes touch and overlap by more than the threshold.
struct Exceeds {
  template <class A>
  static SPECOPS_INLINE bool test(const Corners<A>& a, const Corners<A>& b, A area_a, A area_b, A shared, A threshold) {
    // Bitwise operators, because vector code has no branches.
    const bool touching = (a.x1 <= b.x2) & (a.y1 <= b.y2) & (b.x1 <= a.x2) & (b.y1 <= a.y2);
    const A ratio = shared / (area_a + area_b - shared);
    return (touching ? ratio : A(0)) > threshold;
  }
};

// The same for boxes whose corners are edges: boxes that only touch do not overlap, whatever their areas are.
struct SharesMore {
  template <class A>
  static SPECOPS_INLINE bool test(const Corners<A>&, const Corners<A>&, A area_a, A area_b, A shared, A threshold) {
    const A ratio = shared / (area_a + area_b - shared);
    return (shared > 0 ? ratio : A(0)) > threshold;
  }
};

// Whether the overlap reaches the threshold; boxes without an area have no overlap.
struct Reaches {
  template <class A>
  static SPECOPS_INLINE bool test(const Corners<A>&, const Corners<A>&, A area_a, A area_b, A shared, A threshold) {
    const bool areas = (area_a > 0) & (area_b > 0);
    const A ratio = shared / (area_a + area_b - shared);
    return (areas ? ratio : A(0)) >= threshold;
  }
};

// Whether boxes have a common area.
struct Overlaps {
  template <class A>
  static SPECOPS_INLINE bool test(const Corners<A>&, const Corners<A>&, A, A, A shared, A) {
    return shared > 0;
  }
};

// The boxes that a suppression keeps and that remove others.
template <class A>
class KeptBoxes {
 public:
  // `offset` is 1 if corners are pixels of the box.
  explicit KeptBoxes(A offset) : offset_(offset) {}

  A area(const Corners<A>& box) const { return (box.x2 - box.x1 + offset_) * (box.y2 - box.y1 + offset_); }

  void push_back(const Corners<A>& box, A area) {
    const std::size_t lane = size_++ % lanes;
    // Unused lanes repeat a box, so that blocks are compared as a whole.
    if (lane == 0) blocks_.emplace_back();
    Block& block = blocks_.back();
    for (std::size_t i = lane; i < (lane == 0 ? lanes : lane + 1); ++i) {
      block.x1[i] = box.x1, block.y1[i] = box.y1, block.x2[i] = box.x2, block.y2[i] = box.y2, block.area[i] = area;
    }
  }

  std::int64_t size() const { return static_cast<std::int64_t>(size_); }

  // Calls body(i) for each kept box from position `from` on that satisfies `Condition`, until it returns false.
  template <class Condition, class Body>
  void each(const Corners<A>& box, A area, A threshold, std::int64_t from, Body body) const {
    const std::size_t first = static_cast<std::size_t>(from) / lanes;
    for (std::size_t at = first;; ++at) {
      Match match = next<Condition>(blocks_.data(), at, blocks_.size(), box, area, offset_, threshold);
      at = match.block;
      if (match.lanes == 0) return;
      if (at == first) match.lanes &= ~std::uint32_t{0} << (static_cast<std::size_t>(from) % lanes);
      for (; match.lanes != 0; match.lanes &= match.lanes - 1) {
        const auto i = static_cast<std::int64_t>(at * lanes) + lowest_bit(match.lanes);
        if (i >= size() || !body(i)) return;
      }
    }
  }
  // Whether there is such a box from `from` on.
  template <class Condition>
  bool remove(const Corners<A>& box, A area, A threshold, std::int64_t from = 0) const {
    bool found = false;
    each<Condition>(box, area, threshold, from, [&](std::int64_t) {
      found = true;
      return false;
    });
    return found;
  }

 private:
  static constexpr std::size_t lanes = 64 / sizeof(A);
  struct Block {
    A x1[lanes], y1[lanes], x2[lanes], y2[lanes], area[lanes];
  };
  struct Match {
    std::size_t block;
    std::uint32_t lanes;  // one bit per box
  };

  template <class Condition>
  static SPECOPS_INLINE bool test(const Block& kept, std::size_t i, const Corners<A>& box, A area, A offset, A threshold) {
    const Corners<A> other = {kept.x1[i], kept.y1[i], kept.x2[i], kept.y2[i]};
    const A width = std::max(std::min(other.x2, box.x2) - std::max(other.x1, box.x1) + offset, A(0));
    const A height = std::max(std::min(other.y2, box.y2) - std::max(other.y1, box.y1) + offset, A(0));
    return Condition::test(other, box, kept.area[i], area, width * height, threshold);
  }

  // The first block of [from, count) with such boxes; without lanes if there is none. Defined in suppression.cc.
  template <class Condition>
  static Match next(const Block* blocks, std::size_t from, std::size_t count, const Corners<A>& box, A area, A offset,
                    A threshold);

  std::vector<Block> blocks_;
  std::size_t size_ = 0;
  A offset_;
};

// The positions of the `limit` highest of `count` values, with equal ones ordered like partial_sort.
template <class A>
std::vector<std::int64_t> highest(const A* values, std::int64_t count, std::int64_t limit) {
  std::vector<Ranked<A>> all;
  all.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) all.push_back({values[i], i});
  keep_partially_sorted(all, std::max<std::int64_t>(limit, 0));
  std::vector<std::int64_t> order;
  for (const Ranked<A>& one : all) order.push_back(one.at);
  return order;
}

// The boxes of `candidates`, best first, that are kept, at most `limit`. Boxes with `dead(i)` are not kept and do not remove
// others.
template <class A, class Dead>
std::vector<std::int64_t> suppressed(const std::vector<Corners<A>>& boxes, const std::vector<std::int64_t>& candidates,
                                     A threshold, A offset, std::int64_t limit, Dead dead) {
  std::vector<std::int64_t> kept;
  KeptBoxes<A> kept_boxes(offset);
  for (const std::int64_t i : candidates) {
    if (kept_boxes.size() >= limit) break;
    if (dead(i)) continue;
    const Corners<A>& box = boxes[static_cast<std::size_t>(i)];
    const A area = kept_boxes.area(box);
    if (kept_boxes.template remove<Exceeds>(box, area, threshold)) continue;
    kept.push_back(i);
    kept_boxes.push_back(box, area);
  }
  return kept;
}

}  // namespace specops
