// DetectionOutput: decodes and suppresses the boxes of a single-shot detector.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "selection.h"
#include "suppression.h"

namespace specops {
namespace {

constexpr char center_size[] = "caffe.PriorBoxParameter.CENTER_SIZE", corner[] = "caffe.PriorBoxParameter.CORNER";

// The node's attributes.
struct Given {
  explicit Given(const KernelInfo& info)
      : keep(info.integer("keep_top_k")),
        background(info.integer("background_label_id")),
        top(info.integer("top_k")),
        overlap(info.number("nms_threshold")),
        confidence(info.number("confidence_threshold")),
        objectness(info.number("objectness_score")),
        encoded(info.flag("variance_encoded_in_target")),
        shared(info.flag("share_location")),
        clip_after(info.flag("clip_after_nms")),
        clip_before(info.flag("clip_before_nms")),
        decrease(info.flag("decrease_label_id")),
        normalized(info.flag("normalized")),
        center(info.string("code_type") == center_size),
        height(info.integer("input_height")),
        width(info.integer("input_width")) {}

  std::int64_t keep, background, top;
  float overlap, confidence, objectness;
  bool encoded, shared, clip_after, clip_before, decrease, normalized, center;
  std::int64_t height, width;
};

struct Sizes {
  std::int64_t images, priors, classes;
  std::int64_t boxes;          // per prior: one, or one per class
  std::int64_t prior_images;   // one for all images, or one per image
  std::int64_t prior_numbers;  // per image, including variances
  std::int64_t numbers;        // per prior box

  std::int64_t rows(const Given& given) const {
    if (given.keep > 0) return element_count({images, given.keep});
    return element_count({images, classes, given.keep == -1 && given.top > 0 ? given.top : priors});
  }
};

Sizes checked(const Given& given, const Input& logits, const Input& predictions, const Input& proposals,
              const Input& aux_predictions, const Input& aux_logits) {
  const Shape &p = proposals.shape(), &c = predictions.shape();
  const std::int64_t numbers = given.normalized ? 4 : 5, least = given.encoded ? 1 : 2;
  if (p.size() != 3 || p[1] < least || p[2] % numbers != 0) {
    fail("proposals has the shape ", to_string(p), " instead of [N, ", least, ", priors * ", numbers, "]");
  }
  const std::int64_t priors = p[2] / numbers;
  if (c.size() != 2 || priors == 0 || c[1] % priors != 0) {
    fail("class_preds has the shape ", to_string(c), " for ", priors, " priors");
  }
  const std::int64_t classes = c[1] / priors;
  const Sizes sizes = {c[0], priors, classes, given.shared ? 1 : classes, p[0], p[1] * p[2], numbers};
  const auto check_shape = [](const char* what, const Input& input, const Shape& shape) {
    if (input.shape() != shape) fail(what, " has the shape ", to_string(input.shape()), " instead of ", to_string(shape));
  };
  const Shape offsets = {sizes.images, priors * 4 * sizes.boxes};
  check_shape("box_logits", logits, offsets);
  if (!aux_predictions.absent()) check_shape("aux_class_preds", aux_predictions, {sizes.images, priors * 2});
  if (!aux_logits.absent()) check_shape("aux_box_preds", aux_logits, offsets);
  if (p[0] != 1 && p[0] != sizes.images) fail("proposals are for ", p[0], " images, class_preds for ", sizes.images);
  return sizes;
}

template <class A>
Corners<A> clipped(const Corners<A>& box) {
  const auto within = [](A x) { return std::min(std::max(x, A(0)), A(1)); };
  return {within(box.x1), within(box.y1), within(box.x2), within(box.y2)};
}

// A box decoded from offsets, scaled by variances if there are any.
template <class A>
Corners<A> decoded(const Corners<A>& prior, const A* offsets, const A* variances, bool center) {
  A o[4];
  for (int i = 0; i < 4; ++i) o[i] = variances == nullptr ? offsets[i] : variances[i] * offsets[i];
  if (!center) return {prior.x1 + o[0], prior.y1 + o[1], prior.x2 + o[2], prior.y2 + o[3]};
  const A width = prior.x2 - prior.x1, height = prior.y2 - prior.y1;
  const A x = o[0] * width + (prior.x1 + prior.x2) / 2, y = o[1] * height + (prior.y1 + prior.y2) / 2;
  const A half_width = std::exp(o[2]) * width / 2, half_height = std::exp(o[3]) * height / 2;
  return {x - half_width, y - half_height, x + half_width, y + half_height};
}

template <class A>
struct Detection {
  A score;
  std::int64_t class_, prior;
  Corners<A> box;
};

// The inputs for one image.
template <class A>
class Image {
 public:
  Image(const Given& given, const Sizes& sizes, std::int64_t image, const A* logits, const A* predictions,
        const A* priors, const A* aux_predictions, const A* aux_logits)
      : given_(given), sizes_(sizes) {
    const std::int64_t offsets = image * sizes.priors * sizes.boxes * 4;
    logits_ = logits + offsets;
    predictions_ = predictions + image * sizes.priors * sizes.classes;
    priors_ = priors + (sizes.prior_images == 1 ? 0 : image) * sizes.prior_numbers;
    if (!given.encoded) variances_ = priors_ + sizes.priors * sizes.numbers;
    if (aux_logits != nullptr) aux_logits_ = aux_logits + offsets;
    if (aux_predictions != nullptr) {
      aux_predictions_ = aux_predictions + image * sizes.priors * 2;
      only_background_.assign(static_cast<std::size_t>(sizes.classes), A(0));
      if (given.background >= 0 && given.background < sizes.classes) {
        only_background_[static_cast<std::size_t>(given.background)] = 1;
      }
    }
    while (count_ < sizes.priors && (given.normalized || priors_[count_ * sizes.numbers] != A(-1))) ++count_;
  }

  // The number of priors before the end marker.
  std::int64_t count() const { return count_; }

  // The scores of a prior's classes.
  const A* scores(std::int64_t prior) const {
    if (aux_predictions_ != nullptr && aux_predictions_[prior * 2 + 1] < static_cast<A>(given_.objectness)) {
      return only_background_.data();
    }
    return predictions_ + prior * sizes_.classes;
  }

  Corners<A> box(std::int64_t class_, std::int64_t prior) const {
    const A* p = priors_ + (prior + 1) * sizes_.numbers - 4;
    const std::int64_t at = (prior * sizes_.boxes + (given_.shared ? 0 : class_)) * 4;
    const A* variances = variances_ == nullptr ? nullptr : variances_ + prior * 4;
    Corners<A> box = {p[0], p[1], p[2], p[3]};
    for (const A* offsets : {aux_logits_, logits_}) {
      if (offsets == nullptr) continue;
      if (!given_.normalized) {  // applied twice to refined boxes
        const A width = static_cast<A>(given_.width), height = static_cast<A>(given_.height);
        box = {box.x1 / width, box.y1 / height, box.x2 / width, box.y2 / height};
      }
      box = decoded(box, offsets + at, variances, given_.center);
      if (given_.clip_before) box = clipped(box);
    }
    return box;
  }

 private:
  const Given& given_;
  const Sizes& sizes_;
  const A *logits_, *predictions_, *priors_, *variances_ = nullptr, *aux_predictions_ = nullptr, *aux_logits_ = nullptr;
  std::vector<A> only_background_;
  std::int64_t count_ = 0;
};

template <class A>
using Groups = std::vector<std::vector<Ranked<A>>>;  // the candidates of each class, best first

template <class A>
Groups<A> candidates_of_classes(const Context& context, const Given& given, const Image<A>& image,
                                std::int64_t classes) {
  const RowsAbove<A> above(context, image.count(), classes, static_cast<A>(given.confidence),
                           [&](std::int64_t prior) { return image.scores(prior); });
  Groups<A> groups(static_cast<std::size_t>(classes));
  context.parallel_for(groups.size(), [&](std::size_t class_) {
    if (static_cast<std::int64_t>(class_) == given.background) return;
    std::vector<Ranked<A>>& all = groups[class_];
    above.each(static_cast<std::int64_t>(class_),
               [&](std::int64_t prior) { all.push_back({image.scores(prior)[class_], prior}); });
    keep_best(all, given.top);
  });
  return groups;
}

// Assigns each prior to its best class except 0, and keeps the best priors.
template <class A>
Groups<A> candidates_of_priors(const Context& context, const Given& given, const Image<A>& image,
                               std::int64_t priors, std::int64_t classes) {
  std::vector<Ranked<A>> best(static_cast<std::size_t>(image.count()));
  context.parallel_ranges(image.count(), 32768 / (classes + 1) + 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t prior = first; prior < last; ++prior) {
      const A* scores = image.scores(prior);
      Ranked<A> highest = {A(-1), -1};
      for (std::int64_t class_ = 1; class_ < classes; ++class_) {
        if (scores[class_] >= static_cast<A>(given.confidence) && scores[class_] > highest.score) {
          highest = {scores[class_], class_ * priors + prior};
        }
      }
      best[static_cast<std::size_t>(prior)] = highest;
    }
  });
  best.erase(std::remove_if(best.begin(), best.end(), [](const Ranked<A>& one) { return one.at < 0; }), best.end());
  keep_best(best, given.top);
  Groups<A> groups(static_cast<std::size_t>(classes));
  for (const Ranked<A>& one : best) groups[static_cast<std::size_t>(one.at / priors)].push_back({one.score, one.at % priors});
  return groups;
}

// The decoded boxes of candidates. Boxes that classes share are decoded once.
template <class A>
class Boxes {
 public:
  Boxes(const Context& context, const Image<A>& image, const Groups<A>& groups, bool shared) : image_(image) {
    if (!shared) return;
    std::vector<std::uint8_t> wanted(static_cast<std::size_t>(image.count()));
    for (const auto& group : groups) {
      for (const Ranked<A>& one : group) wanted[static_cast<std::size_t>(one.at)] = 1;
    }
    boxes_.resize(wanted.size());
    context.parallel_ranges(image.count(), 2048, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t prior = first; prior < last; ++prior) {
        const auto at = static_cast<std::size_t>(prior);
        if (wanted[at] != 0) boxes_[at] = image.box(0, prior);
      }
    });
  }

  Corners<A> box(std::int64_t class_, std::int64_t prior) const {
    return boxes_.empty() ? image_.box(class_, prior) : boxes_[static_cast<std::size_t>(prior)];
  }

 private:
  const Image<A>& image_;
  std::vector<Corners<A>> boxes_;
};

// Keeps the best detections of an image; equal scores by prior, then class.
template <class A>
void keep_best(std::vector<Detection<A>>& found, std::int64_t limit) {
  if (limit < 0 || limit >= static_cast<std::int64_t>(found.size())) return;
  std::nth_element(found.begin(), found.begin() + limit, found.end(), [](const auto& a, const auto& b) {
    return a.score > b.score || (a.score == b.score && std::tie(a.prior, a.class_) < std::tie(b.prior, b.class_));
  });
  found.resize(static_cast<std::size_t>(limit));
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    if (a.class_ != b.class_) return a.class_ < b.class_;
    return a.score > b.score || (a.score == b.score && a.prior < b.prior);
  });
}

// The detections of an image, sorted by class, then by descending score.
template <class A>
std::vector<Detection<A>> detected(const Context& context, const Given& given, const Sizes& sizes,
                                   const Image<A>& image) {
  const Groups<A> groups = given.decrease ? candidates_of_priors(context, given, image, sizes.priors, sizes.classes)
                                          : candidates_of_classes(context, given, image, sizes.classes);
  const Boxes<A> boxes(context, image, groups, given.shared);
  std::vector<std::vector<Detection<A>>> kept(groups.size());
  context.parallel_for(groups.size(), [&](std::size_t group) {
    const auto class_ = static_cast<std::int64_t>(group);
    KeptBoxes<A> others(0);
    for (const Ranked<A>& one : groups[group]) {
      const Corners<A> box = boxes.box(class_, one.at);
      const A area = others.area(box);
      if (others.template remove<SharesMore>(box, area, static_cast<A>(given.overlap))) continue;
      others.push_back(box, area);
      kept[group].push_back({one.score, class_, one.at, box});
    }
  });
  std::vector<Detection<A>> all;
  for (const auto& group : kept) all.insert(all.end(), group.begin(), group.end());
  keep_best(all, given.keep);
  return all;
}

class DetectionOutput : public Kernel {
 public:
  explicit DetectionOutput(const KernelInfo& info) : given_(info) {}

  void compute(Context& context) const override {
    const Input logits = context.input(0), predictions = context.input(1), proposals = context.input(2);
    const Input aux_predictions = context.input(3), aux_logits = context.input(4);
    const Sizes sizes = checked(given_, logits, predictions, proposals, aux_predictions, aux_logits);
    Output output = context.output(0, {1, 1, sizes.rows(given_), 7});
    dispatch_wide(predictions.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      const Numbers<A> all[] = {Numbers<A>(logits), Numbers<A>(predictions), Numbers<A>(proposals),
                                Numbers<A>(aux_predictions), Numbers<A>(aux_logits)};
      std::vector<std::vector<Detection<A>>> found;
      for (std::int64_t n = 0; n < sizes.images; ++n) {
        const Image<A> image(given_, sizes, n, all[0].data(), all[1].data(), all[2].data(), all[3].data(), all[4].data());
        found.push_back(detected(context, given_, sizes, image));
      }
      fill_narrow<A>(output, predictions.type(), sizes.rows(given_) * 7,
                     [&](A* to) { give(found, to, to + sizes.rows(given_) * 7); });
    });
  }

 private:
  template <class A>
  void give(const std::vector<std::vector<Detection<A>>>& found, A* to, A* end) const {
    for (std::size_t image = 0; image < found.size(); ++image) {
      for (const Detection<A>& one : found[image]) {
        if (to == end) return;
        const Corners<A> box = given_.clip_after ? clipped(one.box) : one.box;
        const auto label = static_cast<A>(one.class_ - (given_.decrease ? 1 : 0));
        for (const A number : {static_cast<A>(image), label, one.score, box.x1, box.y1, box.x2, box.y2}) *to++ = number;
      }
    }
    std::fill(to, end, A(0));
    if (to != end) *to = -1;
  }

  Given given_;
};

}  // namespace

const Op& detection_output() {
  static const Op op = {
      "DetectionOutput",
      {{"box_logits"}, {"class_preds"}, {"proposals"}, {"aux_class_preds", true}, {"aux_box_preds", true}},
      {{"output"}},
      {Attribute::integer("keep_top_k").within(-2147483648LL, most_boxes), Attribute::number("nms_threshold"),
       Attribute::integer("background_label_id", 0), Attribute::integer("top_k", -1).at_least(-1),
       Attribute::flag("variance_encoded_in_target", false),
       Attribute::string("code_type", corner).one_of({corner, center_size}), Attribute::flag("share_location", true),
       Attribute::number("confidence_threshold", 0), Attribute::flag("clip_after_nms", false),
       Attribute::flag("clip_before_nms", false), Attribute::flag("decrease_label_id", false),
       Attribute::flag("normalized", false), Attribute::integer("input_height", 1), Attribute::integer("input_width", 1),
       Attribute::number("objectness_score", 0)},
      [] {
        std::vector<Signature> all;
        for (const Type type : float_types()) all.push_back({{type, type, type, type, type}, {type}});
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<DetectionOutput>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
