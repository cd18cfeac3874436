// NonMaxSuppression: greedy suppression of overlapping boxes, or the decay of their scores.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "selection.h"
#include "suppression.h"

namespace specops {
namespace {

template <class A>
struct Box {
  A x1, y1, x2, y2, area;
};

// Minimum and maximum as in NumPy, which propagates NaN.
template <class A>
A least(A a, A b) {
  return std::isnan(a) || a < b ? a : b;
}
template <class A>
A most(A a, A b) {
  return std::isnan(a) || a > b ? a : b;
}

template <class A>
Box<A> box_of(const A* numbers, bool center) {
  const A a = numbers[0], b = numbers[1], c = numbers[2], d = numbers[3];
  Box<A> box;
  if (center) {
    const A half = A(0.5);
    box = {a - c * half, b - d * half, a + c * half, b + d * half, A(0)};
  } else {
    box = {least(b, d), least(a, c), most(b, d), most(a, c), A(0)};
  }
  box.area = (box.x2 - box.x1) * (box.y2 - box.y1);
  return box;
}

template <class A>
A overlap(const Box<A>& a, const Box<A>& b) {
  const A width = most(least(a.x2, b.x2) - most(a.x1, b.x1), A(0));
  const A height = most(least(a.y2, b.y2) - most(a.y1, b.y1), A(0));
  const A shared = width * height;
  return shared / (b.area + a.area - shared);
}

struct Limits {
  std::int64_t most;
  float iou, score, sigma;
};

template <class A>
class Suppression {
 public:
  Suppression(const std::vector<Box<A>>& boxes, const A* scores, const Limits& limits)
      : boxes_(boxes), scores_(scores), limits_(limits), count_(static_cast<std::int64_t>(boxes.size())) {
    if (limits.sigma > 0) scale_ = static_cast<A>(-0.5f / limits.sigma);
  }

  // The positions of the selected boxes with their scores, in the order of selection.
  std::vector<Ranked<A>> run() const {
    auto ranked = candidates(scores_, count_, [&](A score) { return score > static_cast<A>(limits_.score); });
    if (!(limits_.sigma > 0)) {
      keep_best(ranked, -1);
      return hard(ranked);
    }
    // Scores that can only fall are updated when they are the highest.
    const bool falling = limits_.score >= 0 && std::all_of(ranked.begin(), ranked.end(), [&](const Ranked<A>& one) {
      const Box<A>& own = box(one.at);
      return std::isfinite(one.score) && std::isfinite(own.area) && own.x1 <= own.x2 && own.y1 <= own.y2;
    });
    return falling ? soft_falling(ranked) : soft(ranked);
  }

 private:
  using Result = std::vector<Ranked<A>>;

  const Box<A>& box(std::int64_t i) const { return boxes_[static_cast<std::size_t>(i)]; }
  bool full(const Result& chosen) const { return static_cast<std::int64_t>(chosen.size()) >= limits_.most; }

  Result hard(const Result& ranked) const {
    Result chosen;
    const A threshold = static_cast<A>(limits_.iou);
    for (const Ranked<A>& one : ranked) {
      if (full(chosen)) break;
      const bool removed = std::any_of(chosen.begin(), chosen.end(), [&](const Ranked<A>& other) {
        return overlap(box(other.at), box(one.at)) >= threshold;
      });
      if (!removed) chosen.push_back(one);
    }
    return chosen;
  }

  A decayed(A score, std::int64_t by, std::int64_t i) const {
    const A iou = overlap(box(by), box(i));
    return std::isnan(iou) || iou == 0 ? score : score * std::exp(scale_ * iou * iou);
  }

  struct Candidate {
    A score;
    std::int64_t at;
    std::int64_t seen;  // the number of selected boxes that its score accounts for
    bool operator<(const Candidate& other) const {
      return score < other.score || (score == other.score && at > other.at);
    }
  };

  // Decays the score by the boxes selected since its last update, until it is too low.
  void update(Candidate& candidate, const Result& chosen, const KeptBoxes<A>& boxes) const {
    const Box<A>& own = box(candidate.at);
    const Corners<A> corners = {own.x1, own.y1, own.x2, own.y2};
    boxes.template each<Overlaps>(corners, own.area, A(0), candidate.seen, [&](std::int64_t i) {
      candidate.score = decayed(candidate.score, chosen[static_cast<std::size_t>(i)].at, candidate.at);
      return candidate.score > static_cast<A>(limits_.score);
    });
    candidate.seen = boxes.size();
  }

  // Restores the heap after its top has changed.
  static void sink(std::vector<Candidate>& heap) {
    const Candidate top = heap.front();
    std::size_t hole = 0;
    for (std::size_t child = 1; child < heap.size(); child = 2 * hole + 1) {
      if (child + 1 < heap.size() && heap[child] < heap[child + 1]) ++child;
      if (!(top < heap[child])) break;
      heap[hole] = heap[child];
      hole = child;
    }
    heap[hole] = top;
  }

  Result soft_falling(const Result& ranked) const {
    std::vector<Candidate> heap;
    heap.reserve(ranked.size());
    for (const Ranked<A>& one : ranked) heap.push_back({one.score, one.at, 0});
    std::make_heap(heap.begin(), heap.end());
    Result chosen;
    KeptBoxes<A> chosen_boxes(0);
    while (!full(chosen) && !heap.empty()) {
      Candidate& best = heap.front();
      const bool known = best.seen == chosen_boxes.size();
      if (known) {
        const Box<A>& own = box(best.at);
        chosen.push_back({best.score, best.at});
        chosen_boxes.push_back({own.x1, own.y1, own.x2, own.y2}, own.area);
      } else {
        update(best, chosen, chosen_boxes);
      }
      if (known || !(best.score > static_cast<A>(limits_.score))) {
        best = heap.back();
        heap.pop_back();
      }
      if (!heap.empty()) sink(heap);
    }
    return chosen;
  }

  Result soft(const Result& ranked) const {
    std::vector<std::int64_t> alive;
    for (const Ranked<A>& one : ranked) alive.push_back(one.at);
    std::vector<A> scores(scores_, scores_ + count_);
    const auto score = [&](std::int64_t i) -> A& { return scores[static_cast<std::size_t>(i)]; };
    Result chosen;
    while (!full(chosen) && !alive.empty()) {
      const std::int64_t best = *std::min_element(
          alive.begin(), alive.end(), [&](std::int64_t a, std::int64_t b) { return above(score(a), score(b)); });
      chosen.push_back({score(best), best});
      alive.erase(std::remove_if(alive.begin(), alive.end(),
                                 [&](std::int64_t i) {
                                   if (i == best) return true;
                                   score(i) = decayed(score(i), best, i);
                                   return score(i) <= static_cast<A>(limits_.score);
                                 }),
                  alive.end());
    }
    return chosen;
  }

  const std::vector<Box<A>>& boxes_;
  const A* scores_;
  const Limits& limits_;
  std::int64_t count_;
  A scale_ = 0;
};

class NonMaxSuppression : public Kernel {
 public:
  explicit NonMaxSuppression(const KernelInfo& info)
      : center_(info.flag("center_point_box")),
        descending_(info.flag("sort_result_descending")) {}

  void compute(Context& context) const override {
    const Input boxes = context.input(0), scores = context.input(1);
    check_boxes(boxes, scores, 4);
    Limits limits;
    limits.most = integer(context.input(2), "max_output_boxes_per_class");
    limits.iou = real(context.input(3), "iou_threshold");
    limits.score = real(context.input(4), "score_threshold");
    limits.sigma = real(context.input(5), "soft_nms_sigma");
    dispatch_wide(scores.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      run<A>(context, boxes, scores, limits);
    });
  }

 private:
  template <class A>
  void run(Context& context, const Input& box_input, const Input& score_input, const Limits& limits) const {
    const std::int64_t batches = score_input.shape()[0], classes = score_input.shape()[1], count = score_input.shape()[2];
    const Numbers<A> numbers(box_input), scores(score_input);
    std::vector<std::vector<Box<A>>> boxes(count > 0 && classes > 0 ? static_cast<std::size_t>(batches) : 0);
    for (std::size_t batch = 0; batch < boxes.size(); ++batch) {
      boxes[batch].reserve(static_cast<std::size_t>(count));
      const A* from = numbers.data() + static_cast<std::int64_t>(batch) * count * 4;
      for (std::int64_t i = 0; i < count; ++i) boxes[batch].push_back(box_of(from + 4 * i, center_));
    }
    std::vector<std::vector<Selected<A>>> groups(boxes.empty() ? 0 : static_cast<std::size_t>(batches * classes));
    context.parallel_for(groups.size(), [&](std::size_t group) {
      const auto at = static_cast<std::int64_t>(group);
      const std::int64_t batch = at / classes, class_ = at % classes;
      const Suppression<A> suppression(boxes[static_cast<std::size_t>(batch)], scores.data() + at * count, limits);
      for (const auto& one : suppression.run()) groups[group].push_back({batch, class_, one.at, one.score});
    });
    give_selected(context, groups, descending_, score_input.type());
  }

  bool center_, descending_;
};

}  // namespace

const Op& non_max_suppression() {
  static const Op op = {
      "NonMaxSuppression",
      {{"boxes"}, {"scores"}, {"max_output_boxes_per_class"}, {"iou_threshold"}, {"score_threshold"}, {"soft_nms_sigma"}},
      {{"selected_indices"}, {"selected_scores"}},
      {Attribute::flag("center_point_box", false), Attribute::flag("sort_result_descending", true)},
      [] {
        std::vector<Signature> all;
        for (const Type type : float_types()) {
          all.push_back({{type, type, Type::int64, Type::float32, Type::float32, Type::float32}, {Type::int64, type}});
        }
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<NonMaxSuppression>(info); },
      nullptr,  // the number of selected boxes is only known at run time
  };
  return op;
}

}  // namespace specops
