// GatedDeltaRule: linear attention whose state decays and replaces the values of similar keys.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "numbers.h"
#include "recurrences.h"

namespace specops {
namespace {

using recurrences::most_columns;

struct Sizes {
  std::int64_t tokens, heads, columns, groups, rows;
};

class GatedDeltaRule : public Kernel {
 public:
  void compute(Context& context) const override {
    static constexpr const char* names[] = {"query", "key", "value", "past_state", "decay", "beta"};
    const Input query = context.input(0), value = context.input(2);
    if (query.shape().size() != 4 || value.shape().size() != 4) {
      fail("query and value have the shapes ", to_string(query.shape()), " and ", to_string(value.shape()),
           "; expected [batch, tokens, groups, size] and [batch, tokens, heads, size]");
    }
    const std::int64_t batch = value.shape()[0];
    const Sizes sizes = {value.shape()[1], value.shape()[2], value.shape()[3], query.shape()[2], query.shape()[3]};
    const Shape keys = {batch, sizes.tokens, sizes.groups, sizes.rows}, gates = {batch, sizes.tokens, sizes.heads};
    const Shape states = {batch, sizes.heads, sizes.rows, sizes.columns};
    const Shape wanted[] = {keys, keys, value.shape(), states, gates, gates};
    for (std::size_t i = 0; i < 6; ++i) {
      const Input given = context.input(i);
      if (given.shape() != wanted[i]) {
        fail(names[i], " has the shape ", to_string(given.shape()), " instead of ", to_string(wanted[i]));
      }
    }
    if (sizes.groups == 0 || sizes.heads % sizes.groups != 0) {
      fail("value has ", sizes.heads, " heads; expected a multiple of ", sizes.groups, ", the groups of query");
    }
    Output output = context.output(0, value.shape()), present = context.output(1, states);
    const auto *q = query.data<float>(), *k = context.input(1).data<float>(), *v = value.data<float>();
    const auto *before = context.input(3).data<float>(), *decay = context.input(4).data<float>();
    const auto* beta = context.input(5).data<float>();
    auto *out = output.data<float>(), *after = present.data<float>();
    if (sizes.tokens == 0) {
      std::copy(before, before + batch * sizes.heads * sizes.rows * sizes.columns, after);
      return;
    }
    const std::int64_t blocks = (sizes.columns + most_columns - 1) / most_columns;
    const std::int64_t work = sizes.tokens * (sizes.rows + 8) * most_columns;
    context.parallel_ranges(batch * sizes.heads * blocks, 1 + 65536 / work, [&](std::int64_t first, std::int64_t last) {
      std::vector<float> state(static_cast<std::size_t>(sizes.rows * most_columns));
      recurrences::DeltaRule rule{};
      rule.tokens = sizes.tokens;
      rule.rows = sizes.rows;
      rule.key_step = sizes.groups * sizes.rows;
      rule.value_step = sizes.heads * sizes.columns;
      rule.gate_step = sizes.heads;
      rule.state_step = sizes.columns;
      rule.state = state.data();
      for (std::int64_t number = first; number < last; ++number) {
        const std::int64_t column = number % blocks * most_columns, head = number / blocks % sizes.heads;
        const std::int64_t row = number / blocks / sizes.heads, group = head / (sizes.heads / sizes.groups);
        const std::int64_t from = (row * sizes.tokens * sizes.groups + group) * sizes.rows;
        const std::int64_t to = (row * sizes.tokens * sizes.heads + head) * sizes.columns + column;
        const std::int64_t gate = row * sizes.tokens * sizes.heads + head;
        const std::int64_t own = (row * sizes.heads + head) * sizes.rows * sizes.columns + column;
        rule.count = std::min(most_columns, sizes.columns - column);
        rule.query = q + from;
        rule.key = k + from;
        rule.value = v + to;
        rule.output = out + to;
        rule.decay = decay + gate;
        rule.beta = beta + gate;
        rule.before = before + own;
        rule.after = after + own;
        recurrences::kernels().delta_rule(rule);
      }
    });
  }
};

}  // namespace

const Op& gated_delta_rule() {
  static const Op op = {
      "GatedDeltaRule",
      {{"query"}, {"key"}, {"value"}, {"past_state"}, {"decay"}, {"beta"}},
      {{"output"}, {"present_state"}},
      {},
      {{std::vector<Type>(6, Type::float32), {Type::float32, Type::float32}}},
      [](const KernelInfo&) -> std::unique_ptr<Kernel> { return std::make_unique<GatedDeltaRule>(); },
      [](ShapeInference& graph) {
        graph.set_output(0, graph.type(2), graph.shape(2));
        graph.set_output(1, graph.type(2), graph.shape(3));
      },
  };
  return op;
}

}  // namespace specops
