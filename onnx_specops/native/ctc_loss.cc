// CTCLoss: the negative log probability of label sequences, summed over their alignments with the logits.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <unordered_set>
#include <vector>

#include "numbers.h"

namespace specops {
namespace {

template <class A>
A log_sum(A a, A b) {
  const A high = std::max(a, b), low = std::min(a, b);
  return low == -std::numeric_limits<A>::infinity() ? high : high + std::log1p(std::exp(low - high));
}

class CTCLoss : public Kernel {
 public:
  explicit CTCLoss(const KernelInfo& info)
      : collapse_(info.flag("preprocess_collapse_repeated")),
        merge_(info.flag("ctc_merge_repeated")),
        unique_(info.flag("unique")) {}

  void compute(Context& context) const override {
    const Input logits = context.input(0), steps = context.input(1), labels = context.input(2), counts = context.input(3);
    const Input blank_input = context.input(4);
    const Shape& shape = logits.shape();
    if (shape.size() != 3 || labels.shape() != Shape{shape[0], shape[1]}) {
      fail("labels has the shape ", to_string(labels.shape()), ", logits ", to_string(shape));
    }
    check_lengths("logit_length", steps, shape[0], [&](std::int64_t) { return shape[1]; });
    check_lengths("label_length", counts, shape[0], [&](std::int64_t i) { return steps.data<std::int64_t>()[i]; });
    const std::int64_t classes = shape[2];
    const std::int64_t blank = blank_input.absent() ? classes - 1 : scalar(blank_input, "blank_index");
    if (blank < 0 || blank >= classes) fail("blank_index = ", blank, " is out of range [0, ", classes - 1, "]");
    const auto* label = labels.data<std::int64_t>();
    const auto* count = counts.data<std::int64_t>();
    for (std::int64_t n = 0; n < shape[0]; ++n) {
      for (std::int64_t i = 0; i < count[n]; ++i) {
        const std::int64_t at = label[n * shape[1] + i];
        if (at < 0 || at >= classes) {
          fail("labels[", n, ", ", i, "] = ", at, " is out of range [0, ", classes - 1, "]");
        }
      }
    }
    Output output = context.output(0, {shape[0]});
    dispatch_wide(logits.type(), [&](auto tag) {
      using A = typename decltype(tag)::type;
      const Numbers<A> numbers(logits);
      fill_narrow<A>(output, logits.type(), shape[0], [&](A* to) {
        context.parallel_ranges(shape[0], 1, [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t n = first; n < last; ++n) {
            const std::int64_t* own = label + n * shape[1];
            to[n] = loss(numbers.data() + n * shape[1] * classes, steps.data<std::int64_t>()[n], classes,
                         target({own, own + count[n]}), blank);
          }
        });
      });
    });
  }

 private:
  template <class Limit>
  static void check_lengths(const char* name, const Input& lengths, std::int64_t count, Limit limit) {
    if (lengths.shape() != Shape{count}) {
      fail(name, " has the shape ", to_string(lengths.shape()), " instead of [", count, "]");
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t length = lengths.data<std::int64_t>()[i];
      if (length < 0 || length > limit(i)) fail(name, "[", i, "] = ", length, " is out of range [0, ", limit(i), "]");
    }
  }

  std::vector<std::int64_t> target(std::vector<std::int64_t> labels) const {
    if (unique_) {
      std::unordered_set<std::int64_t> seen;
      labels.erase(std::remove_if(labels.begin(), labels.end(), [&](std::int64_t l) { return !seen.insert(l).second; }),
                   labels.end());
    } else if (collapse_) {
      labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    }
    return labels;
  }

  template <class A>
  A loss(const A* logits, std::int64_t steps, std::int64_t classes, const std::vector<std::int64_t>& target,
         std::int64_t blank) const {
    const A lost = -std::numeric_limits<A>::infinity();
    if (steps == 0) return target.empty() ? A(0) : -lost;
    // An alignment's states: blank, label, blank, ..., followed by two impossible ones.
    const std::size_t count = 2 * target.size() + 1;
    std::vector<std::int64_t> states(count, blank);
    for (std::size_t i = 0; i < target.size(); ++i) states[2 * i + 1] = target[i];
    std::vector<A> backward(count + 2, lost), ahead(count + 2, lost);
    for (std::size_t s = count < 2 ? 0 : count - 2; s < count; ++s) backward[s] = 0;
    for (std::int64_t step = steps - 1; step >= 0; --step) {
      const A* row = logits + step * classes;
      const A highest = *std::max_element(row, row + classes);
      A total = 0;
      for (std::int64_t c = 0; c < classes; ++c) total += std::exp(row[c] - highest);
      const A log_total = std::log(total);
      for (std::size_t s = 0; s < count; ++s) ahead[s] = backward[s] + (row[states[s]] - highest - log_total);
      if (step == 0) break;
      for (std::size_t s = 0; s < count; ++s) {
        A sum = log_sum(states[s] == blank || merge_ ? ahead[s] : lost, ahead[s + 1]);
        if (s + 2 < count && states[s] != blank && !(merge_ && states[s] == states[s + 2])) {
          sum = log_sum(sum, ahead[s + 2]);
        }
        backward[s] = sum;
      }
    }
    return -log_sum(ahead[0], ahead[1]);
  }

  bool collapse_, merge_, unique_;
};

}  // namespace

const Op& ctc_loss() {
  static const Op op = {
      "CTCLoss",
      {{"logits"}, {"logit_length"}, {"labels"}, {"label_length"}, {"blank_index", true}},
      {{"output"}},
      {Attribute::flag("preprocess_collapse_repeated", false), Attribute::flag("ctc_merge_repeated", true),
       Attribute::flag("unique", false)},
      [] {
        std::vector<Signature> all;
        for (const Type type : float_types()) {
          all.push_back({{type, Type::int64, Type::int64, Type::int64, Type::int64}, {type}});
        }
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<CTCLoss>(info); },
      [](ShapeInference& graph) {
        const SymbolicShape shape = graph.shape(0);
        if (shape.size() == 3) graph.set_output(0, graph.type(0), {shape[0]});
      },
  };
  return op;
}

}  // namespace specops
