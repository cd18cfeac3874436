// Proposal: the proposals of a region proposal network.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "suppression.h"

namespace specops {
namespace {

template <class A>
A within(A x, A limit) {
  if (x > limit) x = limit;
  return x < 0 ? A(0) : x;
}

class Proposal : public Kernel {
 public:
  explicit Proposal(const KernelInfo& info)
      : stride_(info.integer("feat_stride")),
        min_size_(info.integer("min_size")),
        before_(info.integer("pre_nms_topn")),
        after_(info.integer("post_nms_topn")),
        threshold_(info.number("nms_thresh")),
        coordinate_scale_(info.number("box_coordinate_scale")),
        size_scale_(info.number("box_size_scale")),
        normalize_(info.flag("normalize")),
        clip_before_(info.flag("clip_before_nms")),
        clip_after_(info.flag("clip_after_nms")),
        tensorflow_(info.string("framework") == "tensorflow") {}

  void compute(Context& context) const override {
    const Input probs = context.input(0), deltas = context.input(1), image = context.input(2), anchors = context.input(3);
    const Shape &p = probs.shape(), &d = deltas.shape(), &a = anchors.shape();
    if (a.size() != 2 || a[1] != 4) fail("anchors has the shape ", to_string(a), " instead of [A, 4]");
    if (p.size() != 4 || p[1] != 2 * a[0]) fail("class_probs has the shape ", to_string(p), " for ", a[0], " anchors");
    if (d.size() != 4 || d[1] != 4 * a[0] || d[2] != p[2] || d[3] != p[3]) {
      fail("bbox_deltas has the shape ", to_string(d), " for ", a[0], " anchors");
    }
    if (p[0] != d[0]) fail("class_probs is for ", p[0], " images, bbox_deltas for ", d[0]);
    if (image.shape() != Shape{3} && image.shape() != Shape{4}) {
      fail("image_shape has the shape ", to_string(image.shape()), " instead of [3] or [4]");
    }
    dispatch_wide(probs.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      run<A>(context, probs, deltas, image, anchors);
    });
  }

 private:
  template <class A>
  struct Found {
    std::vector<Corners<A>> boxes;
    std::vector<A> scores;
  };

  template <class A>
  void run(Context& context, const Input& prob_input, const Input& delta_input, const Input& image_input,
           const Input& anchor_input) const {
    const Shape& shape = prob_input.shape();
    const Numbers<A> probs(prob_input), deltas(delta_input), image(image_input), anchors(anchor_input);
    for (std::int64_t i = 0; i < image.size(); ++i) {
      if (!std::isfinite(image[i]) || (i < 2 ? image[i] <= 0 : image[i] < 0)) {
        fail("image_shape[", i, "] = ", double(image[i]), ": it must be positive, and its scale not negative");
      }
    }
    std::vector<Found<A>> found(static_cast<std::size_t>(shape[0]));
    context.parallel_for(found.size(), [&](std::size_t n) {
      found[n] = propose<A>(static_cast<std::int64_t>(n), shape, probs, deltas, image, anchors);
    });
    const std::int64_t rows = element_count({shape[0], after_});
    Output rois = context.output(0, {rows, 5}), scores = context.output(1, {rows});
    fill_narrow<A>(rois, prob_input.type(), rows * 5, [&](A* to) {
      std::fill(to, to + rows * 5, A(0));
      for (std::size_t n = 0; n < found.size(); ++n) {
        A* row = to + static_cast<std::int64_t>(n) * after_ * 5;
        for (const Corners<A>& box : found[n].boxes) {
          for (const A number : {static_cast<A>(n), box.x1, box.y1, box.x2, box.y2}) *row++ = number;
        }
        if (static_cast<std::int64_t>(found[n].boxes.size()) < after_) *row = -1;
      }
    });
    fill_narrow<A>(scores, prob_input.type(), rows, [&](A* to) {
      std::fill(to, to + rows, A(0));
      for (std::size_t n = 0; n < found.size(); ++n) {
        std::copy(found[n].scores.begin(), found[n].scores.end(), to + static_cast<std::int64_t>(n) * after_);
      }
    });
  }

  template <class A>
  Found<A> propose(std::int64_t n, const Shape& shape, const Numbers<A>& probs, const Numbers<A>& deltas,
                   const Numbers<A>& image, const Numbers<A>& anchors) const {
    const std::int64_t count = anchors.size() / 4, rows = shape[2], columns = shape[3], positions = rows * columns;
    Found<A> found;
    if (count == 0 || positions == 0) return found;
    const A offset = static_cast<A>(tensorflow_ ? 0 : 1), half = A(0.5);
    const A width = tensorflow_ ? image[0] : image[1], height = tensorflow_ ? image[1] : image[0];
    const A limits[2] = {width, height};
    const A scales[2] = {static_cast<A>(coordinate_scale_), static_cast<A>(size_scale_)};
    const A least[2] = {static_cast<A>(min_size_) * image[image.size() - 1], static_cast<A>(min_size_) * image[2]};
    const A* score = probs.data() + (n * 2 + 1) * count * positions;
    const A* delta = deltas.data() + n * 4 * count * positions;
    std::vector<Corners<A>> boxes(static_cast<std::size_t>(count * positions));
    std::vector<A> values(boxes.size());
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const std::int64_t position = row * columns + column;
        const A down = static_cast<A>(row) * static_cast<A>(stride_), across = static_cast<A>(column) * static_cast<A>(stride_);
        const A shifts[2] = {tensorflow_ ? down : across, tensorflow_ ? across : down};
        for (std::int64_t a = 0; a < count; ++a) {
          const auto at = static_cast<std::size_t>(position * count + a);
          A starts[2], ends[2];
          bool large = true;
          for (int i = 0; i < 2; ++i) {
            A start = shifts[i] + anchors[4 * a + i], end = shifts[i] + anchors[4 * a + i + 2];
            if (tensorflow_) {
              start = within(start, limits[i]);
              end = within(end, limits[i]);
            }
            const A shift = delta[(4 * a + i) * positions + position] / scales[0];
            const A scaling = delta[(4 * a + i + 2) * positions + position] / scales[1];
            A extent = end - start + offset;
            const A center = shift * extent + (start + half * extent);
            extent = std::exp(scaling) * extent;
            starts[i] = center - half * extent;
            ends[i] = center + half * extent;
            if (clip_before_) {
              starts[i] = within(starts[i], limits[i] - offset);
              ends[i] = within(ends[i], limits[i] - offset);
            }
            large = large && least[i] <= ends[i] - starts[i] + offset;
          }
          boxes[at] = {starts[0], starts[1], ends[0], ends[1]};
          values[at] = static_cast<A>(large ? 1 : 0) * score[a * positions + position];
        }
      }
    }
    const auto best = highest(values.data(), static_cast<std::int64_t>(values.size()), before_);
    for (const std::int64_t i :
         suppressed(boxes, best, static_cast<A>(threshold_), offset, after_, [](std::int64_t) { return false; })) {
      Corners<A> box = boxes[static_cast<std::size_t>(i)];
      if (clip_after_) box = {within(box.x1, width), within(box.y1, height), within(box.x2, width), within(box.y2, height)};
      if (normalize_) box = {box.x1 / width, box.y1 / height, box.x2 / width, box.y2 / height};
      found.boxes.push_back(box);
      found.scores.push_back(values[static_cast<std::size_t>(i)]);
    }
    return found;
  }

  std::int64_t stride_, min_size_, before_, after_;
  float threshold_, coordinate_scale_, size_scale_;
  bool normalize_, clip_before_, clip_after_, tensorflow_;
};

}  // namespace

const Op& proposal() {
  static const Op op = {
      "Proposal",
      {{"class_probs"}, {"bbox_deltas"}, {"image_shape"}, {"anchors"}},
      {{"rois"}, {"probs"}},
      {Attribute::integer("feat_stride"), Attribute::integer("min_size"), Attribute::integer("pre_nms_topn").at_least(0),
       Attribute::integer("post_nms_topn").within(0, most_boxes), Attribute::number("nms_thresh"),
       Attribute::number("box_coordinate_scale", 1), Attribute::number("box_size_scale", 1),
       Attribute::flag("normalize", false), Attribute::flag("clip_before_nms", true),
       Attribute::flag("clip_after_nms", false), Attribute::string("framework", "").one_of({"", "tensorflow"})},
      [] {
        std::vector<Signature> all;
        for (const Type type : float_types()) all.push_back({{type, type, type, type}, {type, type}});
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<Proposal>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
