// MatrixNms: lowers scores by overlaps with better boxes, all at once.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "selection.h"
#include "simd.h"

namespace specops {
namespace {

// The boxes of a class, best first, by coordinate, with the area of each and `most`, its largest overlap with a better box.
template <class A>
struct Columns {
  explicit Columns(std::size_t count) : x1(count), y1(count), x2(count), y2(count), area(count), most(count) {}
  std::vector<A> x1, y1, x2, y2, area, most;
};

constexpr std::int64_t block = 64;

// The overlaps of box i with the better boxes [first, first + count). Returns false if it touches none, so that all are 0.
template <class A>
SPECOPS_CLONES bool overlaps(const Columns<A>& boxes, std::int64_t i, std::int64_t first, std::int64_t count, A offset,
                             A* to) {
  const A *x1 = boxes.x1.data() + first, *y1 = boxes.y1.data() + first, *x2 = boxes.x2.data() + first;
  const A *y2 = boxes.y2.data() + first, *areas = boxes.area.data() + first;
  const auto own = static_cast<std::size_t>(i);
  const A left = boxes.x1[own], top = boxes.y1[own], right = boxes.x2[own], bottom = boxes.y2[own], area = boxes.area[own];
  // A box with reversed corners may touch others without common points. Bitwise operators avoid branches.
  int touches = 0;
  for (std::int64_t j = 0; j < count; ++j) {
    touches |= (x1[j] <= right) & (x2[j] >= left) & (y1[j] <= bottom) & (y2[j] >= top) ? 1 : 0;
  }
  if (touches == 0) return false;
  for (std::int64_t j = 0; j < count; ++j) {
    const bool touching = (x1[j] <= right) & (x2[j] >= left) & (y1[j] <= bottom) & (y2[j] >= top);
    const A width = std::min(x2[j], right) - std::max(x1[j], left) + offset;
    const A height = std::min(y2[j], bottom) - std::max(y1[j], top) + offset;
    const A shared = width * height;
    const A ratio = shared / (areas[j] + area - shared);
    to[j] = touching ? ratio : A(0);
  }
  return true;
}

class MatrixNms : public Kernel {
 public:
  explicit MatrixNms(const KernelInfo& info)
      : sort_(info.string("sort_result_type")),
        across_(info.flag("sort_result_across_batch")),
        score_threshold_(info.number("score_threshold")),
        top_(info.integer("nms_top_k")),
        keep_(info.integer("keep_top_k")),
        background_(info.integer("background_class")),
        sigma_(info.number("gaussian_sigma")),
        post_threshold_(info.number("post_threshold")),
        offset_(info.flag("normalized") ? 0 : 1),
        linear_(info.string("decay_function") == "linear") {}

  void compute(Context& context) const override {
    const Input boxes = context.input(0), scores = context.input(1);
    check_boxes(boxes, scores, 4);
    dispatch_wide(scores.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      run<A>(context, boxes, scores);
    });
  }

 private:
  template <class A>
  void run(Context& context, const Input& box_input, const Input& score_input) const {
    const Shape& shape = score_input.shape();
    const std::int64_t images = shape[0], classes = shape[1], count = shape[2];
    const Numbers<A> boxes(box_input), scores(score_input);
    std::vector<std::vector<Selected<A>>> groups(static_cast<std::size_t>(element_count({images, classes})));
    context.parallel_for(groups.size(), [&](std::size_t group) {
      const auto at = static_cast<std::int64_t>(group);
      const std::int64_t image = at / classes, class_ = at % classes;
      if (class_ == background_ || count == 0) return;
      for (const auto& one : lowered(boxes.data() + image * count * 4, scores.data() + at * count, count)) {
        groups[group].push_back({image, class_, one.at, one.score});
      }
    });
    const Order order = {keep_, sort_ == "classid" && across_, sort_ == "score", across_};
    give_rows(
        context, in_order(groups, images, classes, order), images, score_input.type(),
        [&](const auto& one) { return boxes.data() + (one.batch * count + one.box) * 4; },
        [&](const auto& one) { return one.batch * count + one.box; });
  }

  // The boxes of a class whose lowered scores exceed the threshold, with these scores.
  template <class A>
  std::vector<Ranked<A>> lowered(const A* boxes, const A* scores, std::int64_t count) const {
    std::vector<Ranked<A>> ranked =
        candidates(scores, count, [&](A score) { return score > static_cast<A>(score_threshold_); });
    keep_partially_sorted(ranked, top_);
    const A offset = static_cast<A>(offset_);
    Columns<A> columns(ranked.size());
    std::vector<Ranked<A>> result;
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      const A* box = boxes + 4 * ranked[i].at;
      const A width = box[2] - box[0], height = box[3] - box[1];
      columns.x1[i] = box[0], columns.y1[i] = box[1], columns.x2[i] = box[2], columns.y2[i] = box[3];
      columns.area[i] = (width < 0) | (height < 0) ? A(0) : (width + offset) * (height + offset);
    }
    if (linear_) {
      lower<Linear>(columns, ranked);
    } else {
      lower<Gaussian>(columns, ranked);
    }
    for (const Ranked<A>& one : ranked) {
      if (one.score > static_cast<A>(post_threshold_)) result.push_back(one);
    }
    return result;
  }

  struct Linear {
    template <class A>
    static A factor(A iou, A most, A) {
      return (A(1) - iou) / (A(1) - most + A(1e-10));
    }
    // Whether the factor is at least 1 after rounding for boxes that do not overlap.
    template <class A>
    static bool no_matter(A most, A) {
      return std::is_same_v<A, float> && most <= 1;
    }
  };
  struct Gaussian {
    template <class A>
    static A factor(A iou, A most, A sigma) {
      return std::exp((most * most - iou * iou) * sigma);
    }
    template <class A>
    static bool no_matter(A, A sigma) {
      return sigma >= 0;
    }
  };

  template <class Decay, class A>
  void lower(Columns<A>& columns, std::vector<Ranked<A>>& ranked) const {
    const A offset = static_cast<A>(offset_), sigma = static_cast<A>(sigma_);
    const auto count = static_cast<std::int64_t>(ranked.size());
    bool skips = Decay::no_matter(A(0), sigma);
    A overlap[block];
    for (std::int64_t i = 0; i < count; ++i) {
      A most = 0, least = 1;
      for (std::int64_t first = 0; first < i; first += block) {
        const std::int64_t size = std::min(block, i - first);
        if (!overlaps(columns, i, first, size, offset, overlap)) {
          if (skips) continue;
          std::fill(overlap, overlap + size, A(0));
        }
        for (std::int64_t j = 0; j < size; ++j) {
          if (overlap[j] == 0 && skips) continue;
          if (most < overlap[j]) most = overlap[j];
          const A factor = Decay::factor(overlap[j], columns.most[static_cast<std::size_t>(first + j)], sigma);
          if (factor < least) least = factor;
        }
      }
      const auto at = static_cast<std::size_t>(i);
      columns.most[at] = most;
      skips = skips && Decay::no_matter(most, sigma);
      ranked[at].score *= least;
    }
  }

  std::string sort_;
  bool across_;
  float score_threshold_;
  std::int64_t top_, keep_, background_;
  float sigma_, post_threshold_;
  int offset_;
  bool linear_;
};

}  // namespace

const Op& matrix_nms() {
  static const Op op = {
      "MatrixNms",
      {{"boxes"}, {"scores"}},
      {{"selected_outputs"}, {"selected_indices"}, {"valid_outputs"}},
      selecting({Attribute::string("decay_function", "linear").one_of({"linear", "gaussian"}),
                 Attribute::number("gaussian_sigma", 2), Attribute::number("post_threshold", 0)}),
      [] {
        std::vector<Signature> all;
        for (const Type type : float_types()) all.push_back({{type, type}, {type, Type::int64, Type::int64}});
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<MatrixNms>(info); },
      nullptr,  // the number of selected boxes is only known at run time
  };
  return op;
}

}  // namespace specops
