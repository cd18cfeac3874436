// StateSpaceScan: the recurrence of a state space with one decay for each head (Mamba 2).
#include <algorithm>
#include <cstdint>

#include "numbers.h"
#include "recurrences.h"

namespace specops {
namespace {

using recurrences::most_rows;

struct Sizes {
  std::int64_t tokens, heads, channels, groups, size;
};

class StateSpaceScan : public Kernel {
 public:
  void compute(Context& context) const override {
    static constexpr const char* names[] = {"x", "decay", "input_gate", "output_gate", "state"};
    const Input x = context.input(0), input_gate = context.input(2);
    if (x.shape().size() != 4 || input_gate.shape().size() != 4) {
      fail("x and input_gate have the shapes ", to_string(x.shape()), " and ", to_string(input_gate.shape()),
           "; expected [batch, tokens, heads, channels] and [batch, tokens, groups, size]");
    }
    const std::int64_t batch = x.shape()[0];
    const Sizes sizes = {x.shape()[1], x.shape()[2], x.shape()[3], input_gate.shape()[2], input_gate.shape()[3]};
    const Shape gates = {batch, sizes.tokens, sizes.groups, sizes.size};
    const Shape states = {batch, sizes.heads, sizes.channels, sizes.size};
    const Shape wanted[] = {x.shape(), {batch, sizes.tokens, sizes.heads}, gates, gates, states};
    for (std::size_t i = 1; i < 5; ++i) {
      const Input given = context.input(i);
      if (given.shape() != wanted[i]) {
        fail(names[i], " has the shape ", to_string(given.shape()), " instead of ", to_string(wanted[i]));
      }
    }
    if (sizes.groups == 0 || sizes.heads % sizes.groups != 0) {
      fail("x has ", sizes.heads, " heads; expected a multiple of ", sizes.groups, ", the groups of input_gate");
    }
    Output y = context.output(0, x.shape()), present = context.output(1, states);
    const auto *from = x.data<float>(), *factors = context.input(1).data<float>();
    const auto *in = input_gate.data<float>(), *out = context.input(3).data<float>(), *state = context.input(4).data<float>();
    auto *to = y.data<float>(), *after = present.data<float>();
    if (sizes.tokens == 0) {
      std::copy(state, state + batch * sizes.heads * sizes.channels * sizes.size, after);
      return;
    }
    // A piece is some rows of the state of one head.
    const std::int64_t blocks = (sizes.channels + most_rows - 1) / most_rows;
    const std::int64_t work = sizes.tokens * (sizes.size + 8) * most_rows;
    context.parallel_ranges(batch * sizes.heads * blocks, 1 + 65536 / work, [&](std::int64_t first, std::int64_t last) {
      recurrences::StateSpace space{};
      space.tokens = sizes.tokens;
      space.size = sizes.size;
      space.x_step = sizes.heads * sizes.channels;
      space.decay_step = sizes.heads;
      space.gate_step = sizes.groups * sizes.size;
      for (std::int64_t piece = first; piece < last; ++piece) {
        const std::int64_t channel = piece % blocks * most_rows, head = piece / blocks % sizes.heads;
        const std::int64_t row = piece / blocks / sizes.heads, group = head / (sizes.heads / sizes.groups);
        const std::int64_t at = (row * sizes.tokens * sizes.heads + head) * sizes.channels + channel;
        const std::int64_t gate = (row * sizes.tokens * sizes.groups + group) * sizes.size;
        const std::int64_t own = ((row * sizes.heads + head) * sizes.channels + channel) * sizes.size;
        space.count = std::min(most_rows, sizes.channels - channel);
        space.x = from + at;
        space.y = to + at;
        space.decay = factors + row * sizes.tokens * sizes.heads + head;
        space.input_gate = in + gate;
        space.output_gate = out + gate;
        space.before = state + own;
        space.after = after + own;
        recurrences::kernels().state_space(space);
      }
    });
  }
};

}  // namespace

const Op& state_space_scan() {
  static const Op op = {
      "StateSpaceScan",
      {{"x"}, {"decay"}, {"input_gate"}, {"output_gate"}, {"state"}},
      {{"y"}, {"present_state"}},
      {},
      {{std::vector<Type>(5, Type::float32), {Type::float32, Type::float32}}},
      [](const KernelInfo&) -> std::unique_ptr<Kernel> { return std::make_unique<StateSpaceScan>(); },
      [](ShapeInference& graph) {
        graph.set_output(0, graph.type(0), graph.shape(0));
        graph.set_output(1, graph.type(0), graph.shape(4));
      },
  };
  return op;
}

}  // namespace specops
