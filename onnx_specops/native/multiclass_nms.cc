// MulticlassNms: suppression per class, with limits per image and an adaptive threshold.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "selection.h"
#include "suppression.h"

namespace specops {
namespace {

// The boxes of an image: all of them if classes share them, otherwise the part of each class.
struct Part {
  std::int64_t start, count;
};

std::vector<Part> parts(const Input& boxes, const Input& scores, const Input& numbers) {
  const Shape &b = boxes.shape(), &s = scores.shape();
  if (b.size() != 3 || b[2] != 4) fail("boxes has the shape ", to_string(b), " instead of [N, M, 4]");
  if (s.size() == 3) {
    if (s[0] != b[0] || s[2] != b[1]) fail("scores has the shape ", to_string(s), ", boxes ", to_string(b));
    return std::vector<Part>(static_cast<std::size_t>(b[0]), Part{0, b[1]});
  }
  if (s != Shape{b[0], b[1]} || !numbers.present() || numbers.shape().size() != 1) {
    fail("scores has the shape ", to_string(s), ", boxes ", to_string(b), ", and roisnum is needed");
  }
  std::vector<Part> all;
  std::int64_t start = 0;
  for (std::int64_t i = 0; i < numbers.size(); ++i) {
    const std::int64_t count = std::max<std::int64_t>(numbers.data<std::int64_t>()[i], 0);
    if (count > s[1] - start) fail("roisnum sums to more than the boxes of scores, of the shape ", to_string(s));
    all.push_back({start, count});
    start += count;
  }
  return all;
}

class MulticlassNms : public Kernel {
 public:
  explicit MulticlassNms(const KernelInfo& info)
      : sort_(info.string("sort_result_type")),
        across_(info.flag("sort_result_across_batch")),
        iou_threshold_(info.number("iou_threshold")),
        score_threshold_(info.number("score_threshold")),
        top_(info.integer("nms_top_k")),
        keep_(info.integer("keep_top_k")),
        background_(info.integer("background_class")),
        offset_(info.flag("normalized") ? 0 : 1),
        eta_(info.number("nms_eta")) {}

  void compute(Context& context) const override {
    const Input boxes = context.input(0), scores = context.input(1), numbers = context.input(2);
    const std::vector<Part> images = parts(boxes, scores, numbers);
    dispatch_wide(scores.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      run<A>(context, boxes, scores, images);
    });
  }

 private:
  template <class A>
  void run(Context& context, const Input& box_input, const Input& score_input, const std::vector<Part>& images) const {
    const bool shared = score_input.shape().size() == 3;
    const std::int64_t classes = score_input.shape()[shared ? 1 : 0], count = box_input.shape()[1];
    const Numbers<A> boxes(box_input), scores(score_input);
    const auto corners = [&](std::int64_t image, std::int64_t class_, std::int64_t box) {
      const Part& part = images[static_cast<std::size_t>(image)];
      return boxes.data() + 4 * ((shared ? image : class_) * count + part.start + box);
    };
    std::vector<std::vector<Selected<A>>> groups(static_cast<std::size_t>(
        element_count({static_cast<std::int64_t>(images.size()), classes})));
    context.parallel_for(groups.size(), [&](std::size_t group) {
      const std::int64_t image = static_cast<std::int64_t>(group) / classes;
      const std::int64_t class_ = static_cast<std::int64_t>(group) % classes;
      const Part& part = images[static_cast<std::size_t>(image)];
      if (class_ == background_ || part.count == 0) return;
      const A* score = scores.data() + (shared ? image * classes + class_ : class_) * count + part.start;
      for (const auto& one : suppress(corners(image, class_, 0), score, part.count)) {
        groups[group].push_back({image, class_, one.at, one.score});
      }
    });
    const auto number = static_cast<std::int64_t>(images.size());
    const Order order = {keep_, sort_ == "classid", sort_ == "score", across_};
    give_rows(
        context, in_order(groups, number, classes, order), number, score_input.type(),
        [&](const auto& one) { return corners(one.batch, one.class_, one.box); },
        [&](const auto& one) {
          const std::int64_t at = images[static_cast<std::size_t>(one.batch)].start + one.box;
          return shared ? one.batch * count + one.box : at * classes + one.class_;
        });
  }

  // The kept boxes, with their scores.
  template <class A>
  std::vector<Ranked<A>> suppress(const A* boxes, const A* scores, std::int64_t count) const {
    const A lowest = static_cast<A>(score_threshold_), eta = static_cast<A>(eta_);
    const bool adaptive = eta_ >= 0 && eta_ < 1;
    A threshold = static_cast<A>(iou_threshold_);
    std::vector<Ranked<A>> ranked = candidates(scores, count, [&](A score) { return score >= lowest; });
    keep_best(ranked, top_);
    KeptBoxes<A> kept(static_cast<A>(offset_));
    std::vector<Ranked<A>> result;
    for (const Ranked<A>& one : ranked) {
      const A* corner = boxes + 4 * one.at;
      const Corners<A> box = {corner[0], corner[1], corner[2], corner[3]};
      const A area = kept.area(box);
      // A box whose score equals the threshold is only compared with the last one.
      const std::int64_t from = adaptive && one.score == lowest ? std::max<std::int64_t>(kept.size() - 1, 0) : 0;
      if (kept.template remove<Reaches>(box, area, threshold, from)) continue;
      kept.push_back(box, area);
      result.push_back(one);
      if (adaptive && threshold > A(0.5)) threshold *= eta;
    }
    return result;
  }

  std::string sort_;
  bool across_;
  float iou_threshold_, score_threshold_;
  std::int64_t top_, keep_, background_;
  int offset_;
  float eta_;
};

}  // namespace

const Op& multiclass_nms() {
  static const Op op = {
      "MulticlassNms",
      {{"boxes"}, {"scores"}, {"roisnum", true}},
      {{"selected_outputs"}, {"selected_indices"}, {"selected_num"}},
      selecting({Attribute::number("iou_threshold", 0), Attribute::number("nms_eta", 1)}),
      [] {
        std::vector<Signature> all;
        for (const Type type : float_types()) {
          all.push_back({{type, type, Type::int64}, {type, Type::int64, Type::int64}});
        }
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<MulticlassNms>(info); },
      nullptr,  // the number of selected boxes is only known at run time
  };
  return op;
}

}  // namespace specops
