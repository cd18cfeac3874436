// Attention: multi-head attention. The heads of a token are adjacent in its row.
#include <cstdint>
#include <memory>

#include "multi_head.h"
#include "pages.h"

namespace specops {
namespace {

class Attention : public Kernel {
 public:
  explicit Attention(const KernelInfo& info) : all_(info) {}

  void compute(Context& context) const override {
    const Input query = context.input(0), key = context.input(1), value = context.input(2);
    const MultiHead::Sizes sizes = all_.sizes(query, key, value);
    const HeadMasks masks(context.input(3), sizes);
    Output output = context.output(0, sizes.output());
    float* const to = output.data<float>();
    outputs_.prepare(to, sizes.elements() * static_cast<std::int64_t>(sizeof(float)));
    if (sizes.elements() == 0) return;
    if (sizes.keys == 0) {
      std::fill_n(to, sizes.elements(), 0.0f);
      return;
    }
    const compressed::Kernels& kernels = compressed::kernels();
    const compressed::Head shared = {sizes.keys, sizes.size, sizes.value_size, nullptr, nullptr, all_.scale(sizes.size), {}};
    const std::int64_t key_floats = kernels.key_floats(shared), all_floats = key_floats + kernels.value_floats(shared);
    const Spare panels(sizes.batch * sizes.key_heads * all_floats);
    const float *from_keys = key.data<float>(), *from_values = value.data<float>(), *from_queries = query.data<float>();
    const std::int64_t key_step = sizes.key_heads * sizes.size, value_step = sizes.key_heads * sizes.value_size;
    pack_heads(context, sizes, all_floats, panels.get(), [&](std::int64_t b, std::int64_t h, float* panel) {
      kernels.pack_keys(from_keys + b * sizes.keys * key_step + h * sizes.size, key_step, sizes.keys, sizes.size, panel);
      kernels.pack_values(from_values + b * sizes.keys * value_step + h * sizes.value_size, value_step, sizes.keys,
                          sizes.value_size, panel + key_floats);
    });
    for_each_block(context, sizes, kernels.query_rows, [&](const QueryBlock& block) {
      compressed::Head head = shared;
      head.key_panels = panels.get() + block.pair * all_floats;
      head.value_panels = head.key_panels + key_floats;
      head.mask = masks.at(block.batch, block.head);
      const compressed::Result result = {to + block.offset(sizes.heads, sizes.value_size), nullptr,
                                         sizes.heads * sizes.value_size};
      kernels.attend(head, from_queries + block.offset(sizes.heads, sizes.size), sizes.heads * sizes.size, block.first,
                     block.rows, result, attention_scratch(kernels.attention_floats(shared)));
    });
  }

 private:
  MultiHead all_;
  Outputs outputs_;
};

}  // namespace

const Op& attention() {
  static const Op op = {
      "Attention",
      {{"Q"}, {"K"}, {"V"}, {"attn_mask", true, {Type::float32, Type::boolean}}},
      {{"Y"}},
      MultiHead::attributes(),
      {{{Type::float32, Type::float32, Type::float32, Type::undefined}, {Type::float32}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<Attention>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
