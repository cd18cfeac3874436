// MulticlassNms: suppression class by class, with limits for each image, and a threshold that may fall.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "selection.h"
#include "suppression.h"

namespace specops {
namespace {

// The boxes of an image: all where classes share them, else a part of those of each class.
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
      : sort_(info.string("sort_result_type", "none")),
        across_(info.integer("sort_result_across_batch", 0) != 0),
        iou_threshold_(info.number("iou_threshold", 0)),
        score_threshold_(info.number("score_threshold", 0)),
        top_(info.integer("nms_top_k", -1)),
        keep_(info.integer("keep_top_k", -1)),
        background_(info.integer("background_class", -1)),
        offset_(info.integer("normalized", 1) != 0 ? 0 : 1),
        eta_(info.number("nms_eta", 1)) {
    if (sort_ != "none" && sort_ != "classid" && sort_ != "score") {
      fail("sort_result_type = '", sort_, "' is none of none, classid, score");
    }
  }

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
      for (const std::int64_t i : suppress(corners(image, class_, 0), score, part.count)) {
        groups[group].push_back({image, class_, i, score[i]});
      }
    });
    const auto selected = in_order(groups, static_cast<std::int64_t>(images.size()), classes);
    const auto rows = static_cast<std::int64_t>(selected.size());
    Output outputs = context.output(0, {rows, 6}), indices = context.output(1, {rows, 1});
    Output numbers = context.output(2, {static_cast<std::int64_t>(images.size())});
    auto* index = indices.data<std::int64_t>();
    auto* number = numbers.data<std::int64_t>();
    std::fill(number, number + images.size(), 0);
    for (const auto& one : selected) {
      const std::int64_t at = images[static_cast<std::size_t>(one.batch)].start + one.box;
      *index++ = shared ? one.batch * count + one.box : at * classes + one.class_;
      ++number[one.batch];
    }
    fill_narrow<A>(outputs, score_input.type(), rows * 6, [&](A* to) {
      for (const auto& one : selected) {
        *to++ = static_cast<A>(one.class_);
        *to++ = one.score;
        to = std::copy_n(corners(one.batch, one.class_, one.box), 4, to);
      }
    });
  }

  template <class A>
  std::vector<std::int64_t> suppress(const A* boxes, const A* scores, std::int64_t count) const {
    const A lowest = static_cast<A>(score_threshold_), eta = static_cast<A>(eta_), offset = static_cast<A>(offset_);
    const bool adaptive = eta_ >= 0 && eta_ < 1;
    A threshold = static_cast<A>(iou_threshold_);
    std::vector<std::int64_t> candidates = by_score(scores, count, [&](A score) { return score >= lowest; });
    if (top_ >= 0 && top_ < static_cast<std::int64_t>(candidates.size())) {
      candidates.resize(static_cast<std::size_t>(top_));
    }
    struct Kept {
      const A* box;
      A area;
    };
    std::vector<Kept> kept;
    std::vector<std::int64_t> result;
    for (const std::int64_t i : candidates) {
      const A* box = boxes + 4 * i;
      const A area = (box[2] - box[0] + offset) * (box[3] - box[1] + offset);
      const auto overlap = [&](const Kept& other) {
        if (!(area > 0) || !(other.area > 0)) return A(0);
        const A width = std::max(std::min(other.box[2], box[2]) - std::max(other.box[0], box[0]) + offset, A(0));
        const A height = std::max(std::min(other.box[3], box[3]) - std::max(other.box[1], box[1]) + offset, A(0));
        const A shared = width * height;
        return shared / (other.area + area - shared);
      };
      bool removed;
      if (adaptive && scores[i] == lowest) {
        removed = !kept.empty() && overlap(kept.back()) >= threshold;
      } else {
        removed = std::any_of(kept.begin(), kept.end(), [&](const Kept& other) { return overlap(other) >= threshold; });
      }
      if (removed) continue;
      kept.push_back({box, area});
      result.push_back(i);
      if (adaptive && threshold > A(0.5)) threshold *= eta;
    }
    return result;
  }

  template <class A>
  std::vector<Selected<A>> in_order(const std::vector<std::vector<Selected<A>>>& groups, std::int64_t images,
                                    std::int64_t classes) const {
    std::vector<Selected<A>> all;
    for (std::int64_t image = 0; image < images; ++image) {
      std::vector<Selected<A>> own;
      for (std::int64_t class_ = 0; class_ < classes; ++class_) {
        const auto& group = groups[static_cast<std::size_t>(image * classes + class_)];
        own.insert(own.end(), group.begin(), group.end());
      }
      std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) {
        if (a.score != b.score) return a.score > b.score;
        return std::tie(a.class_, a.box) < std::tie(b.class_, b.box);
      });
      if (keep_ >= 0 && keep_ < static_cast<std::int64_t>(own.size())) {
        own.erase(own.begin() + keep_, own.end());
      }
      all.insert(all.end(), own.begin(), own.end());
    }
    if (sort_ == "classid") {
      std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
        return across_ ? std::tie(a.class_, a.batch) < std::tie(b.class_, b.batch)
                       : std::tie(a.batch, a.class_) < std::tie(b.batch, b.class_);
      });
    } else if (sort_ == "score" && across_) {
      std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    }
    return all;
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
      [] {
        std::vector<Signature> all;
        for (const Type type : float_types()) {
          all.push_back({{type, type, Type::int64}, {type, Type::int64, Type::int64}});
        }
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<MulticlassNms>(info); },
      nullptr,  // how many boxes are selected is not known before the run
  };
  return op;
}

}  // namespace specops
