// GatherTree: complete beams from the steps of a beam search.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "numbers.h"

namespace specops {
namespace {

// Truncates like a conversion in C, but is defined for every value.
template <class T>
std::int64_t whole(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::int64_t>(value);
  } else {
    const auto number = comparable(value);
    if (std::isnan(number) || number < -0x1p62 || number > 0x1p62) return std::numeric_limits<std::int64_t>::min();
    return static_cast<std::int64_t>(number);
  }
}

template <class T>
struct Tree {
  const T *tokens, *parents, *lengths;
  T end;
  std::int64_t time, batch, beams;

  bool is_end(T token) const { return comparable(token) == comparable(end); }

  // Follows one beam from its last step to the first. Returns false if a parent is out of range.
  bool follow(std::int64_t row, std::int64_t column, T* output) const {
    const std::int64_t length = whole(lengths[row]), stride = batch * beams, first = row * beams;
    std::int64_t beam = column, ended = time;  // the first step with the end token
    for (std::int64_t step = time - 1; step >= 0; --step) {
      T* to = output + step * stride + first + column;
      if (length <= step) {
        *to = end;
        ended = step;
        continue;
      }
      const std::int64_t at = step * stride + first + beam;
      *to = tokens[at];
      if (is_end(*to)) ended = step;
      if (step > 0) {
        beam = whole(parents[at]);
        if (beam < 0 || beam >= beams) return false;
      }
    }
    for (std::int64_t step = ended; step < time; ++step) output[step * stride + first + column] = end;
    return true;
  }

  // Throws the error of the last invalid step.
  void diagnose() const {
    std::vector<std::int64_t> at(static_cast<std::size_t>(batch * beams));
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::int64_t>(i) % beams;
    for (std::int64_t step = time - 1; step > 0; --step) {
      for (std::size_t i = 0; i < at.size(); ++i) {
        const std::int64_t row = static_cast<std::int64_t>(i) / beams;
        if (whole(lengths[row]) <= step) continue;
        at[i] = whole(parents[(step * batch + row) * beams + at[i]]);
        if (at[i] < 0 || at[i] >= beams) {
          fail("parent_ids: step ", step, " of batch ", row, " continues beam ", at[i], ", out of range [0, ", beams - 1,
               "]");
        }
      }
    }
  }
};

class GatherTree : public Kernel {
 public:
  void compute(Context& context) const override {
    const Input tokens = context.input(0), parents = context.input(1), lengths = context.input(2), end = context.input(3);
    const Shape& shape = tokens.shape();
    if (shape.size() != 3 || parents.shape() != shape || lengths.shape() != Shape{shape[1]}) {
      fail("the shapes ", to_string(shape), ", ", to_string(parents.shape()), " and ", to_string(lengths.shape()),
           " of step_ids, parent_ids and max_seq_len do not fit [time, batch, beams] and [batch]");
    }
    if (end.size() < 1) fail("end_token has no element");
    Output output = context.output(0, shape);
    if (tokens.size() == 0) return;
    dispatch_numeric(tokens.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Tree<T> tree = {tokens.data<T>(), parents.data<T>(), lengths.data<T>(), *end.data<T>(),
                            shape[0],         shape[1],          shape[2]};
      T* to = output.data<T>();
      std::atomic<bool> wrong{false};
      context.parallel_ranges(tree.batch * tree.beams, 16384 / tree.time + 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
          if (!tree.follow(i / tree.beams, i % tree.beams, to)) return wrong.store(true);
        }
      });
      if (wrong.load()) tree.diagnose();
    });
  }
};

}  // namespace

const Op& gather_tree() {
  static const Op op = {
      "GatherTree",
      {{"step_ids"}, {"parent_ids"}, {"max_seq_len"}, {"end_token"}},
      {{"final_ids"}},
      {},
      [] {
        std::vector<Signature> all;
        for (const Type type : numeric_types()) all.push_back({{type, type, type, type}, {type}});
        return all;
      }(),
      [](const KernelInfo&) -> std::unique_ptr<Kernel> { return std::make_unique<GatherTree>(); },
      [](ShapeInference& graph) { graph.set_output(0, graph.type(0), graph.shape(0)); },
  };
  return op;
}

}  // namespace specops
