// Boxes that are selected per class of each image: their order and their outputs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "numbers.h"
#include "partial_sort.h"
#include "simd.h"

namespace specops {

// Keeps the `limit` best of all (all for a negative limit), best first; equal scores by position.
template <class A>
void keep_best(std::vector<Ranked<A>>& all, std::int64_t limit) {
  const auto before = [](const Ranked<A>& a, const Ranked<A>& b) {
    return a.score > b.score || (a.score == b.score && a.at < b.at);
  };
  if (limit >= 0 && limit < static_cast<std::int64_t>(all.size())) {
    std::nth_element(all.begin(), all.begin() + limit, all.end(), before);
    all.resize(static_cast<std::size_t>(limit));
  }
  std::sort(all.begin(), all.end(), before);
}

// The positions in [0, count) for which `takes_part` is true, with their scores.
template <class A, class Condition>
std::vector<Ranked<A>> candidates(const A* scores, std::int64_t count, Condition takes_part) {
  std::vector<Ranked<A>> all;
  all.reserve(static_cast<std::size_t>(std::count_if(scores, scores + count, takes_part)));
  for (std::int64_t i = 0; i < count; ++i) {
    if (takes_part(scores[i])) all.push_back({scores[i], i});
  }
  return all;
}

// Sets `bit` of `bits[class]` for each of `count` rows of scores whose class scores more than the threshold; the first row
// has the lowest bit. Defined in selection.cc.
template <class A>
void mark_above(const A* const* rows, std::int64_t count, std::int64_t classes, A threshold, std::uint32_t* bits);

// The positions of scores above a threshold in [rows, classes], read by row and queried by class.
template <class A>
class RowsAbove {
 public:
  // `row(i)` returns the scores of row i.
  template <class Row>
  RowsAbove(const Context& context, std::int64_t rows, std::int64_t classes, A threshold, Row row)
      : classes_(classes), words_((rows + width - 1) / width), bits_(static_cast<std::size_t>(words_ * classes)) {
    context.parallel_ranges(words_, 32768 / (width * classes + 1) + 1, [&](std::int64_t first, std::int64_t last) {
      const A* starts[width];
      for (std::int64_t word = first; word < last; ++word) {
        const std::int64_t begin = word * width, count = std::min(width, rows - begin);
        for (std::int64_t i = 0; i < count; ++i) starts[i] = row(begin + i);
        mark_above(starts, count, classes, threshold, bits_.data() + word * classes);
      }
    });
  }

  // Calls body(row) for each row of a class, in ascending order.
  template <class Body>
  void each(std::int64_t class_, Body body) const {
    for (std::int64_t word = 0; word < words_; ++word) {
      std::uint32_t bits = bits_[static_cast<std::size_t>(word * classes_ + class_)];
      for (; bits != 0; bits &= bits - 1) body(word * width + lowest_bit(bits));
    }
  }

 private:
  static constexpr std::int64_t width = 32;
  std::int64_t classes_, words_;
  std::vector<std::uint32_t> bits_;
};

template <class A>
struct Selected {
  std::int64_t batch, class_, box;
  A score;
};

// Compares scores in descending order, with NaN first for a strict weak order.
template <class A>
bool above(A a, A b) {
  return std::isnan(a) ? !std::isnan(b) : a > b;
}

// Outputs the selection of each class of each batch (`groups[batch * classes + class]`): `batch, class, box` and `batch,
// class, score`.
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

// The attributes of operators that select boxes of several classes, with their own.
inline std::vector<Attribute> selecting(const std::vector<Attribute>& own) {
  std::vector<Attribute> all = {Attribute::string("sort_result_type", "none").one_of({"none", "classid", "score"}),
                                Attribute::flag("sort_result_across_batch", false), Attribute::number("score_threshold", 0),
                                Attribute::integer("nms_top_k", -1).at_least(-1),
                                Attribute::integer("keep_top_k", -1).at_least(-1),
                                Attribute::integer("background_class", -1), Attribute::flag("normalized", true)};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

// The order of boxes selected from several images.
struct Order {
  std::int64_t keep;  // the number of boxes per image; negative for all
  bool by_class, by_score, across;
};

// The selection of each class of each image (`groups[image * classes + class]`): by image and descending score, equal ones
// by class, then box; then by class, in each image or `across` all, or `across` all by score.
template <class A>
std::vector<Selected<A>> in_order(const std::vector<std::vector<Selected<A>>>& groups, std::int64_t images,
                                  std::int64_t classes, const Order& order) {
  std::vector<Selected<A>> all;
  for (std::int64_t image = 0; image < images; ++image) {
    std::vector<Selected<A>> own;
    for (std::int64_t class_ = 0; class_ < classes; ++class_) {
      const auto& group = groups[static_cast<std::size_t>(image * classes + class_)];
      own.insert(own.end(), group.begin(), group.end());
    }
    const auto count = static_cast<std::int64_t>(own.size());
    const auto best = own.begin() + (order.keep < 0 ? count : std::min(order.keep, count));
    std::partial_sort(own.begin(), best, own.end(), [](const auto& a, const auto& b) {
      if (a.score != b.score) return a.score > b.score;
      return std::tie(a.class_, a.box) < std::tie(b.class_, b.box);
    });
    all.insert(all.end(), own.begin(), best);
  }
  if (order.by_class) {
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return order.across ? std::tie(a.class_, a.batch) < std::tie(b.class_, b.batch)
                          : std::tie(a.batch, a.class_) < std::tie(b.batch, b.class_);
    });
  } else if (order.by_score && order.across) {
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  }
  return all;
}

// Outputs rows `class, score, box`, the index of each row's box, and the number of rows of each image. `box_of(selected)`
// returns the four numbers of a box.
template <class A, class Box, class Index>
void give_rows(Context& context, const std::vector<Selected<A>>& selected, std::int64_t images, Type type, Box box_of,
               Index index_of) {
  const auto rows = static_cast<std::int64_t>(selected.size());
  Output outputs = context.output(0, {rows, 6}), indices = context.output(1, {rows, 1});
  Output numbers = context.output(2, {images});
  auto* index = indices.data<std::int64_t>();
  auto* number = numbers.data<std::int64_t>();
  std::fill(number, number + images, 0);
  for (const auto& one : selected) {
    *index++ = index_of(one);
    ++number[one.batch];
  }
  fill_narrow<A>(outputs, type, rows * 6, [&](A* to) {
    for (const auto& one : selected) {
      *to++ = static_cast<A>(one.class_);
      *to++ = one.score;
      to = std::copy_n(box_of(one), 4, to);
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
