// Boxes that an operator selects, of each class of each image of its own: their order, and how they are given.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <vector>

#include "numbers.h"

namespace specops {

// The positions of [0, count) where `takes_part`, by descending score; equal scores by position.
template <class A, class Condition>
std::vector<std::int64_t> by_score(const A* scores, std::int64_t count, Condition takes_part) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < count; ++i) {
    if (takes_part(scores[i])) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
  });
  return order;
}

template <class A>
struct Selected {
  std::int64_t batch, class_, box;
  A score;
};

// Whether a score comes before another where they descend: NaN before all, so that it is an order at all.
template <class A>
bool above(A a, A b) {
  return std::isnan(a) ? !std::isnan(b) : a > b;
}

// Gives what each class of each batch (`groups[batch * classes + class]`) selected: `batch, class, box` and
// `batch, class, score`.
template <class A>
void give_selected(Context& context, const std::vector<std::vector<Selected<A>>>& groups, bool descending, Type type) {
  std::vector<Selected<A>> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  if (descending) {
    std::sort(all.begin(), all.end(), [](const Selected<A>& a, const Selected<A>& b) {
      if (above(a.score, b.score)) return true;
      if (above(b.score, a.score)) return false;
      return std::tie(a.batch, a.class_, a.box) < std::tie(b.batch, b.class_, b.box);
    });
  }
  const auto rows = static_cast<std::int64_t>(all.size());
  Output indices = context.output(0, {rows, 3});
  Output scores = context.output(1, {rows, 3});
  auto* to = indices.data<std::int64_t>();
  for (const auto& one : all) {
    *to++ = one.batch;
    *to++ = one.class_;
    *to++ = one.box;
  }
  fill_narrow<A>(scores, type, rows * 3, [&](A* row) {
    for (const auto& one : all) {
      *row++ = static_cast<A>(one.batch);
      *row++ = static_cast<A>(one.class_);
      *row++ = one.score;
    }
  });
}

// Checks `boxes` [batches, boxes, numbers] and `scores` [batches, classes, boxes].
inline void check_boxes(const Input& boxes, const Input& scores, std::int64_t numbers) {
  const Shape &b = boxes.shape(), &s = scores.shape();
  if (b.size() != 3 || b[2] != numbers) {
    fail("boxes has the shape ", to_string(b), " instead of [batches, boxes, ", numbers, "]");
  }
  if (s.size() != 3 || s[0] != b[0] || s[2] != b[1]) fail("scores has the shape ", to_string(s), ", boxes ", to_string(b));
}

}  // namespace specops
