// ExperimentalDetectronDetectionOutput: decodes and suppresses the boxes of a two-stage detector.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "selection.h"
#include "suppression.h"

namespace specops {
namespace {

// The regions, their decoded boxes for each class, and the scores.
template <class A>
class Regions {
 public:
  Regions(const Input& rois, const Input& deltas, const Input& scores, const Input& weights, A most_scaling)
      : count_(scores.shape()[0]),
        classes_(scores.shape()[1]),
        rois_(rois),
        deltas_(deltas),
        scores_(scores),
        weights_(weights),
        most_scaling_(most_scaling),
        none_(static_cast<std::size_t>(classes_)) {}

  std::int64_t count() const { return count_; }
  std::int64_t classes() const { return classes_; }

  const A* scores(std::int64_t region) const {
    return empty(region) ? none_.data() : scores_.data() + region * classes_;
  }

  Corners<A> box(std::int64_t region, std::int64_t class_) const {
    if (empty(region)) return {0, 0, 0, 0};
    const A* delta = deltas_.data() + (region * classes_ + class_) * 4;
    A starts[2], ends[2];
    for (int i = 0; i < 2; ++i) {
      const A start = rois_[4 * region + i], extent = rois_[4 * region + i + 2] - start + 1;
      const A center = delta[i] / weights_[i] * extent + (start + A(0.5) * extent);
      const A half = A(0.5) * (std::exp(std::min(delta[i + 2] / weights_[i + 2], most_scaling_)) * extent);
      starts[i] = std::max(center - half, A(0));
      ends[i] = std::max(center + half - 1, A(0));
    }
    return {starts[0], starts[1], ends[0], ends[1]};
  }

  // Regions with an empty extent have no area.
  A area(std::int64_t region, A otherwise) const { return empty(region) ? A(0) : otherwise; }

 private:
  bool empty(std::int64_t region) const {
    const A* roi = rois_.data() + 4 * region;
    return roi[2] - roi[0] <= 0 || roi[3] - roi[1] <= 0;
  }

  std::int64_t count_, classes_;
  Numbers<A> rois_, deltas_, scores_, weights_;
  A most_scaling_;
  std::vector<A> none_;
};

template <class A>
struct Detection {
  A score;
  std::int64_t region, class_;
  Corners<A> box;
};

class ExperimentalDetectronDetectionOutput : public Kernel {
 public:
  explicit ExperimentalDetectronDetectionOutput(const KernelInfo& info)
      : score_threshold_(info.number("score_threshold")),
        overlap_threshold_(info.number("nms_threshold")),
        most_scaling_(info.number("max_delta_log_wh")),
        most_of_class_(info.integer("post_nms_count")),
        most_(info.integer("max_detections_per_image")) {}

  void compute(Context& context) const override {
    const Input rois = context.input(0), deltas = context.input(1), scores = context.input(2), weights = context.input(3);
    const Shape &r = rois.shape(), &s = scores.shape();
    if (r.size() != 2 || r[1] != 4 || s.size() != 2 || s[0] != r[0]) {
      fail("rois has the shape ", to_string(r), ", scores ", to_string(s));
    }
    if (deltas.shape() != Shape{s[0], s[1] * 4} || weights.size() != 4) {
      fail("deltas has the shape ", to_string(deltas.shape()), ", scores ", to_string(s), ", deltas_weights ",
           to_string(weights.shape()));
    }
    dispatch_wide(scores.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      const Regions<A> regions(rois, deltas, scores, weights, static_cast<A>(most_scaling_));
      give(context, detected(context, regions), scores.type());
    });
  }

 private:
  template <class A>
  std::vector<Detection<A>> detected(const Context& context, const Regions<A>& regions) const {
    const RowsAbove<A> above(context, regions.count(), regions.classes(), static_cast<A>(score_threshold_),
                             [&](std::int64_t region) { return regions.scores(region); });
    std::vector<std::vector<Detection<A>>> groups(static_cast<std::size_t>(regions.classes()));
    context.parallel_for(groups.size(), [&](std::size_t group) {
      if (group > 0) groups[group] = detected(regions, above, static_cast<std::int64_t>(group));
    });
    std::vector<Detection<A>> all;
    for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
    if (static_cast<std::int64_t>(all.size()) > most_) {
      partial_sort(all, most_, [](const auto& a, const auto& b) {
        return a.score > b.score || (a.score == b.score && a.region < b.region);
      });
    }
    return all;
  }

  template <class A>
  std::vector<Detection<A>> detected(const Regions<A>& regions, const RowsAbove<A>& above, std::int64_t class_) const {
    std::vector<Ranked<A>> ranked;
    above.each(class_, [&](std::int64_t region) { ranked.push_back({regions.scores(region)[class_], region}); });
    keep_best(ranked, -1);
    const std::int64_t limit = most_of_class_ == -1 ? std::numeric_limits<std::int64_t>::max() : most_of_class_;
    KeptBoxes<A> others(1);
    std::vector<Detection<A>> found;
    for (const Ranked<A>& one : ranked) {
      if (others.size() >= limit) break;
      const Corners<A> box = regions.box(one.at, class_);
      const A area = regions.area(one.at, others.area(box));
      if (others.template remove<Exceeds>(box, area, static_cast<A>(overlap_threshold_))) continue;
      others.push_back(box, area);
      found.push_back({one.score, one.at, class_, box});
    }
    return found;
  }

  template <class A>
  void give(Context& context, const std::vector<Detection<A>>& found, Type type) const {
    Output boxes = context.output(0, {most_, 4}), classes = context.output(1, {most_}), scores = context.output(2, {most_});
    auto* class_ = classes.data<std::int64_t>();
    std::fill(class_, class_ + most_, 0);
    for (const auto& one : found) *class_++ = one.class_;
    fill_narrow<A>(boxes, type, most_ * 4, [&](A* to) {
      std::fill(to, to + most_ * 4, A(0));
      for (const auto& one : found) {
        for (const A corner : {one.box.x1, one.box.y1, one.box.x2, one.box.y2}) *to++ = corner;
      }
    });
    fill_narrow<A>(scores, type, most_, [&](A* to) {
      std::fill(to, to + most_, A(0));
      for (const auto& one : found) *to++ = one.score;
    });
  }

  float score_threshold_, overlap_threshold_, most_scaling_;
  std::int64_t most_of_class_, most_;
};

}  // namespace

const Op& experimental_detectron_detection_output() {
  static const Op op = {
      "ExperimentalDetectronDetectionOutput",
      {{"rois"}, {"deltas"}, {"scores"}, {"deltas_weights"}},
      {{"boxes"}, {"classes"}, {"box_scores"}},
      {Attribute::number("score_threshold"), Attribute::number("nms_threshold"),
       Attribute::integer("post_nms_count").at_least(-1),
       Attribute::integer("max_detections_per_image").within(0, most_boxes), Attribute::number("max_delta_log_wh")},
      [] {
        std::vector<Signature> all;
        for (const Type type : float_types()) all.push_back({{type, type, type, type}, {type, Type::int64, type}});
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> {
        return std::make_unique<ExperimentalDetectronDetectionOutput>(info);
      },
      nullptr,
  };
  return op;
}

}  // namespace specops
