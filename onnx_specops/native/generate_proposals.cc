// GenerateProposals and ExperimentalDetectronGenerateProposalsSingleImage: the proposals of a region proposal network.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "suppression.h"

namespace specops {
namespace {

// log(1000 / 16)
constexpr double most_scaling = 4.135166556742356;

struct Grid {
  std::int64_t anchors, positions;  // positions: rows times columns
};

// The boxes decoded from the anchors of one image, by position, clipped to the image.
template <class A>
std::vector<Corners<A>> refined(const A* info, const A* anchors, const A* deltas, const Grid& grid, A offset) {
  std::vector<Corners<A>> boxes(static_cast<std::size_t>(grid.anchors * grid.positions));
  const A limits[2] = {info[1] - offset, info[0] - offset};
  const A half = A(0.5), most = static_cast<A>(most_scaling);
  for (std::int64_t p = 0; p < grid.positions; ++p) {
    for (std::int64_t a = 0; a < grid.anchors; ++a) {
      const std::int64_t at = p * grid.anchors + a;
      A starts[2], ends[2];
      for (int i = 0; i < 2; ++i) {
        const A shift = deltas[(4 * a + i) * grid.positions + p], scaling = deltas[(4 * a + i + 2) * grid.positions + p];
        const A start = anchors[4 * at + i];
        A extent = anchors[4 * at + i + 2] - start + offset;
        const A center = shift * extent + (start + half * extent);
        extent = std::exp(scaling > most ? most : scaling) * extent;
        const auto within = [&](A x) {
          if (x > limits[i]) x = limits[i];
          return x < 0 ? A(0) : x;
        };
        starts[i] = within(center - half * extent);
        ends[i] = within(center + half * extent - offset);
      }
      boxes[static_cast<std::size_t>(at)] = {starts[0], starts[1], ends[0], ends[1]};
    }
  }
  return boxes;
}

// Reorders scores [A, H, W] to the order of the boxes.
template <class A>
std::vector<A> in_order(const A* scores, const Grid& grid) {
  std::vector<A> all(static_cast<std::size_t>(grid.anchors * grid.positions));
  for (std::int64_t p = 0; p < grid.positions; ++p) {
    for (std::int64_t a = 0; a < grid.anchors; ++a) {
      all[static_cast<std::size_t>(p * grid.anchors + a)] = scores[a * grid.positions + p];
    }
  }
  return all;
}

class Proposals : public Kernel {
 public:
  explicit Proposals(const KernelInfo& info)
      : min_size_(info.number("min_size")),
        threshold_(info.number("nms_threshold")),
        before_(info.integer("pre_nms_count")),
        after_(info.integer("post_nms_count")) {}

  // The attributes of both operators, followed by their own. `most`: the largest number of boxes.
  static std::vector<Attribute> attributes(std::int64_t most, const std::vector<Attribute>& own) {
    std::vector<Attribute> all = {Attribute::number("min_size"), Attribute::number("nms_threshold"),
                                  Attribute::integer("pre_nms_count").at_least(0),
                                  Attribute::integer("post_nms_count").within(0, most)};
    all.insert(all.end(), own.begin(), own.end());
    return all;
  }

 protected:
  float min_size_, threshold_;
  std::int64_t before_, after_;
};

class GenerateProposals : public Proposals {
 public:
  explicit GenerateProposals(const KernelInfo& info)
      : Proposals(info), offset_(info.flag("normalized") ? 0 : 1) {}

  void compute(Context& context) const override {
    const Input info = context.input(0), anchors = context.input(1), deltas = context.input(2), scores = context.input(3);
    const Shape& s = scores.shape();
    if (s.size() != 4) fail("scores has the shape ", to_string(s), " instead of [N, A, H, W]");
    if (deltas.shape() != Shape{s[0], 4 * s[1], s[2], s[3]}) {
      fail("boxesdeltas has the shape ", to_string(deltas.shape()), ", scores ", to_string(s));
    }
    const std::int64_t boxes = element_count({s[1], s[2], s[3]});
    if (anchors.shape().empty() || anchors.shape().back() != 4 || anchors.size() != 4 * boxes) {
      fail("anchors has the shape ", to_string(anchors.shape()), ", scores ", to_string(s));
    }
    const Shape& i = info.shape();
    if (i.size() != 2 || i[0] != s[0] || i[1] < 2 || i[1] > 4) {
      fail("im_info has the shape ", to_string(i), " instead of [", s[0], ", 3] or [", s[0], ", 4]");
    }
    dispatch_wide(scores.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      run<A>(context, info, anchors, deltas, scores);
    });
  }

 private:
  template <class A>
  void run(Context& context, const Input& info, const Input& anchors, const Input& deltas, const Input& scores) const {
    struct Image {
      std::vector<Corners<A>> boxes;
      std::vector<A> scores;
    };
    const Shape& s = scores.shape();
    const Grid grid = {s[1], s[2] * s[3]};
    const std::int64_t numbers = info.shape()[1], count = grid.anchors * grid.positions;
    const Numbers<A> infos(info), anchor(anchors), delta(deltas), score(scores);
    const A offset = static_cast<A>(offset_);
    std::vector<Image> images(static_cast<std::size_t>(s[0]));
    context.parallel_for(images.size(), [&](std::size_t n) {
      if (count == 0) return;
      const auto at = static_cast<std::int64_t>(n);
      const A* own = infos.data() + at * numbers;
      const auto boxes = refined(own, anchor.data(), delta.data() + at * 4 * count, grid, offset);
      const auto values = in_order(score.data() + at * count, grid);
      const A scales[2] = {numbers == 2 ? A(1) : own[numbers - 1], numbers == 2 ? A(1) : own[2]};
      const A least[2] = {static_cast<A>(min_size_) * scales[0], static_cast<A>(min_size_) * scales[1]};
      const auto small = [&](std::int64_t i) {
        const Corners<A>& box = boxes[static_cast<std::size_t>(i)];
        return box.x2 - box.x1 + offset < least[0] || box.y2 - box.y1 + offset < least[1];
      };
      for (const std::int64_t i : suppressed(boxes, highest(values.data(), count, before_), static_cast<A>(threshold_),
                                             offset, after_, small)) {
        images[n].boxes.push_back(boxes[static_cast<std::size_t>(i)]);
        images[n].scores.push_back(values[static_cast<std::size_t>(i)]);
      }
    });
    std::int64_t total = 0;
    Output counts = context.output(2, {s[0]});
    auto* each = counts.data<std::int64_t>();
    for (const Image& image : images) {
      *each++ = static_cast<std::int64_t>(image.boxes.size());
      total += static_cast<std::int64_t>(image.boxes.size());
    }
    Output rois = context.output(0, {total, 4}), roi_scores = context.output(1, {total});
    fill_narrow<A>(rois, scores.type(), total * 4, [&](A* to) {
      for (const Image& image : images) {
        for (const Corners<A>& box : image.boxes) {
          for (const A corner : {box.x1, box.y1, box.x2, box.y2}) *to++ = corner;
        }
      }
    });
    fill_narrow<A>(roi_scores, scores.type(), total, [&](A* to) {
      for (const Image& image : images) to = std::copy(image.scores.begin(), image.scores.end(), to);
    });
  }

  int offset_;
};

class SingleImage : public Proposals {
 public:
  using Proposals::Proposals;

  void compute(Context& context) const override {
    const Input info = context.input(0), anchors = context.input(1), deltas = context.input(2), scores = context.input(3);
    const Shape& s = scores.shape();
    if (s.size() != 3 || deltas.shape() != Shape{4 * s[0], s[1], s[2]}) {
      fail("deltas has the shape ", to_string(deltas.shape()), ", scores ", to_string(s));
    }
    if (anchors.shape() != Shape{scores.size(), 4} || info.shape() != Shape{3}) {
      fail("anchors has the shape ", to_string(anchors.shape()), ", im_info ", to_string(info.shape()));
    }
    dispatch_wide(scores.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      const Grid grid = {s[0], s[1] * s[2]};
      const std::int64_t count = scores.size();
      const Numbers<A> infos(info), anchor(anchors), delta(deltas), score(scores);
      std::vector<Corners<A>> boxes;
      std::vector<A> values;
      if (count > 0) {
        boxes = refined(infos.data(), anchor.data(), delta.data(), grid, A(1));
        values = in_order(score.data(), grid);
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        const A least = static_cast<A>(min_size_);
        const bool large = boxes[i].x2 - boxes[i].x1 + 1 >= least && boxes[i].y2 - boxes[i].y1 + 1 >= least;
        values[i] *= static_cast<A>(large ? 1 : 0);
      }
      const auto kept = suppressed(boxes, highest(values.data(), count, before_), static_cast<A>(threshold_), A(0), after_,
                                   [](std::int64_t) { return false; });
      Output rois = context.output(0, {after_, 4}), roi_scores = context.output(1, {after_});
      fill_narrow<A>(rois, scores.type(), after_ * 4, [&](A* to) {
        A* const end = to + after_ * 4;
        for (const std::int64_t i : kept) {
          const Corners<A>& box = boxes[static_cast<std::size_t>(i)];
          for (const A corner : {box.x1, box.y1, box.x2, box.y2}) *to++ = corner;
        }
        std::fill(to, end, A(0));
      });
      fill_narrow<A>(roi_scores, scores.type(), after_, [&](A* to) {
        A* const end = to + after_;
        for (const std::int64_t i : kept) *to++ = values[static_cast<std::size_t>(i)];
        std::fill(to, end, A(0));
      });
    });
  }
};

}  // namespace

const Op& generate_proposals() {
  static const Op op = {
      "GenerateProposals",
      {{"im_info"}, {"anchors"}, {"boxesdeltas"}, {"scores"}},
      {{"rpnrois"}, {"rpnscores"}, {"rpnroisnum"}},
      Proposals::attributes(Attribute::highest, {Attribute::flag("normalized", true)}),
      [] {
        std::vector<Signature> all;
        for (const Type type : float_types()) all.push_back({{type, type, type, type}, {type, type, Type::int64}});
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<GenerateProposals>(info); },
      nullptr,  // the number of proposals is only known at run time
  };
  return op;
}

const Op& experimental_detectron_generate_proposals_single_image() {
  static const Op op = {
      "ExperimentalDetectronGenerateProposalsSingleImage",
      {{"im_info"}, {"anchors"}, {"deltas"}, {"scores"}},
      {{"rois"}, {"roi_scores"}},
      Proposals::attributes(most_boxes, {}),
      [] {
        std::vector<Signature> all;
        for (const Type type : float_types()) all.push_back({{type, type, type, type}, {type, type}});
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<SingleImage>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
