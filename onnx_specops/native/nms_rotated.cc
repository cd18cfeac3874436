// NMSRotated: greedy suppression of overlapping rotated boxes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "op.h"
#include "selection.h"

namespace specops {
namespace {

// The corners of a box in order, as fractions of its width and height.
constexpr double across_shares[4] = {0.5, 0.5, -0.5, -0.5}, down_shares[4] = {0.5, -0.5, -0.5, 0.5};

struct Box {
  double x, y, width, height, angle, area, radius;
};

// The part of an edge, from 0 to 1, that is inside a half-plane.
struct Part {
  double start = 0, end = 1;

  // Clips to where `distance + t * rate` is positive, or always 0 and `on_border`.
  void clip(double distance, double rate, bool on_border) {
    if (rate > 0) {
      start = std::max(start, -distance / rate);
    } else if (rate < 0) {
      end = std::min(end, -distance / rate);
    } else if (rate == 0 && (distance < 0 || (distance == 0 && !on_border))) {
      end = -1;
    }
  }
  double length() const { return std::max(end - start, 0.0); }
};

// The border of the intersection consists of the parts of each box's edges inside the other box. Its area is half the sum of
// the cross products of their ends. Coordinates are relative to box `a`, whose edges are parallel to the axes. If edges of
// both coincide, only those of `b` count, and only if they have the same direction.
double overlap(const Box& a, const Box& b, double sign) {
  if (!(a.area > 0) || !(b.area > 0)) return 0;
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double reach = (a.radius + b.radius) * 1.0001;
  if (dx * dx + dy * dy > reach * reach) return 0;
  const double angle = (b.angle - a.angle) * sign;
  const double turn_cosine = std::cos(a.angle), turn_sine = std::sin(a.angle * sign);
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const double center_x = dx * turn_cosine + dy * turn_sine, center_y = dy * turn_cosine - dx * turn_sine;
  double x[4], y[4], ex[4], ey[4], ax[4], ay[4], fx[4], fy[4];
  for (int i = 0; i < 4; ++i) {
    const double across = b.width * across_shares[i], down = b.height * down_shares[i];
    x[i] = center_x + across * cosine - down * sine;
    y[i] = center_y + across * sine + down * cosine;
    ax[i] = across_shares[i] * a.width;
    ay[i] = down_shares[i] * a.height;
  }
  for (int i = 0; i < 4; ++i) {
    ex[i] = x[(i + 1) % 4] - x[i];
    ey[i] = y[(i + 1) % 4] - y[i];
    fx[i] = ax[(i + 1) % 4] - ax[i];
    fy[i] = ay[(i + 1) % 4] - ay[i];
  }
  double total = 0;
  for (int i = 0; i < 4; ++i) {
    Part part;
    for (const double side : {1.0, -1.0}) part.clip(a.width / 2 - side * x[i], -side * ex[i], side * -ey[i] > 0);
    for (const double side : {1.0, -1.0}) part.clip(a.height / 2 - side * y[i], -side * ey[i], side * ex[i] > 0);
    total += part.length() * (x[i] * ey[i] - y[i] * ex[i]);
  }
  double rest = 0;
  for (int i = 0; i < 4; ++i) {
    Part part;
    for (int j = 0; j < 4; ++j) {
      part.clip(ey[j] * (ax[i] - x[j]) - ex[j] * (ay[i] - y[j]), ey[j] * fx[i] - ex[j] * fy[i], false);
    }
    rest += part.length() * (ax[i] * fy[i] - ay[i] * fx[i]);
  }
  const double shared = std::abs(total + rest) / 2;
  return shared / (a.area + b.area - shared);
}

class NMSRotated : public Kernel {
 public:
  explicit NMSRotated(const KernelInfo& info)
      : descending_(info.flag("sort_result_descending")),
        sign_(info.flag("clockwise") ? 1.0 : -1.0) {}

  void compute(Context& context) const override {
    const Input boxes = context.input(0), scores = context.input(1);
    check_boxes(boxes, scores, 5);
    const std::int64_t most = integer(context.input(2), "max_output_boxes_per_class");
    const double iou_threshold = real(context.input(3), "iou_threshold");
    const float score_threshold = real(context.input(4), "score_threshold");
    dispatch_wide(scores.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      run<A>(context, boxes, scores, most, iou_threshold, static_cast<A>(score_threshold));
    });
  }

 private:
  template <class A>
  void run(Context& context, const Input& box_input, const Input& score_input, std::int64_t most, double iou_threshold,
           A score_threshold) const {
    const std::int64_t batches = score_input.shape()[0], classes = score_input.shape()[1], count = score_input.shape()[2];
    const Numbers<A> numbers(box_input), scores(score_input);
    std::vector<std::vector<Selected<A>>> groups(count > 0 ? static_cast<std::size_t>(batches * classes) : 0);
    context.parallel_for(groups.size(), [&](std::size_t group) {
      const auto at = static_cast<std::int64_t>(group);
      const std::int64_t batch = at / classes, class_ = at % classes;
      const A* score = scores.data() + at * count;
      std::vector<Box> chosen;
      auto ranked = candidates(score, count, [&](A s) { return s > score_threshold; });
      keep_best(ranked, -1);
      for (const Ranked<A>& one : ranked) {
        if (static_cast<std::int64_t>(chosen.size()) >= most) break;
        const A* n = numbers.data() + (batch * count + one.at) * 5;
        Box box = {double(n[0]), double(n[1]), double(n[2]), double(n[3]), double(n[4]), 0, 0};
        box.area = box.width * box.height;
        box.radius = std::hypot(box.width, box.height) / 2;
        if (std::any_of(chosen.begin(), chosen.end(),
                        [&](const Box& other) { return overlap(other, box, sign_) > iou_threshold; })) {
          continue;
        }
        chosen.push_back(box);
        groups[group].push_back({batch, class_, one.at, one.score});
      }
    });
    give_selected(context, groups, descending_, score_input.type());
  }

  bool descending_;
  double sign_;
};

}  // namespace

const Op& nms_rotated() {
  static const Op op = {
      "NMSRotated",
      {{"boxes"}, {"scores"}, {"max_output_boxes_per_class"}, {"iou_threshold"}, {"score_threshold"}},
      {{"selected_indices"}, {"selected_scores"}},
      {Attribute::flag("sort_result_descending", true), Attribute::flag("clockwise", true)},
      [] {
        std::vector<Signature> all;
        for (const Type type : float_types()) {
          all.push_back({{type, type, Type::int64, Type::float32, Type::float32}, {Type::int64, type}});
        }
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<NMSRotated>(info); },
      nullptr,  // the number of selected boxes is only known at run time
  };
  return op;
}

}  // namespace specops
