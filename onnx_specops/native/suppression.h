// Greedy suppression of boxes by their overlap.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "numbers.h"

namespace specops {

template <class A>
struct Corners {
  A x1, y1, x2, y2;
};

// Whether boxes touch and overlap by more than `threshold`. `offset` is 1 where corners are pixels of the box.
template <class A>
bool overlaps(const Corners<A>& a, const Corners<A>& b, A area_a, A area_b, A offset, A threshold) {
  A ratio = 0;
  if (a.x1 <= b.x2 && a.y1 <= b.y2 && b.x1 <= a.x2 && b.y1 <= a.y2) {
    const A width = std::max(std::min(a.x2, b.x2) - std::max(a.x1, b.x1) + offset, A(0));
    const A height = std::max(std::min(a.y2, b.y2) - std::max(a.y1, b.y1) + offset, A(0));
    const A shared = width * height;
    ratio = shared / (area_a + area_b - shared);
  }
  return ratio > threshold;
}

// The positions of the `limit` highest of `count` values; equal ones by position, NaN last.
template <class A>
std::vector<std::int64_t> highest(const A* values, std::int64_t count, std::int64_t limit) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto before = [&](std::int64_t a, std::int64_t b) {
    const A x = values[a], y = values[b];
    if (x > y || (std::isnan(y) && !std::isnan(x))) return true;
    if (y > x || (std::isnan(x) && !std::isnan(y))) return false;
    return a < b;
  };
  const std::int64_t most = std::min(std::max<std::int64_t>(limit, 0), count);
  if (most < count) {
    std::nth_element(order.begin(), order.begin() + most, order.end(), before);
    order.resize(static_cast<std::size_t>(most));
  }
  std::sort(order.begin(), order.end(), before);
  return order;
}

// Which of the boxes at `candidates`, best first, are kept, `limit` at most; `dead(i)` neither are nor remove others.
template <class A, class Dead>
std::vector<std::int64_t> suppressed(const std::vector<Corners<A>>& boxes, const std::vector<std::int64_t>& candidates,
                                     A threshold, A offset, std::int64_t limit, Dead dead) {
  std::vector<std::int64_t> kept;
  std::vector<Corners<A>> kept_boxes;
  std::vector<A> areas;
  for (const std::int64_t i : candidates) {
    if (static_cast<std::int64_t>(kept.size()) >= limit) break;
    if (dead(i)) continue;
    const Corners<A>& box = boxes[static_cast<std::size_t>(i)];
    const A area = (box.x2 - box.x1 + offset) * (box.y2 - box.y1 + offset);
    bool removed = false;
    for (std::size_t k = 0; k < kept.size() && !removed; ++k) {
      removed = overlaps(kept_boxes[k], box, areas[k], area, offset, threshold);
    }
    if (removed) continue;
    kept.push_back(i);
    kept_boxes.push_back(box);
    areas.push_back(area);
  }
  return kept;
}

}  // namespace specops
