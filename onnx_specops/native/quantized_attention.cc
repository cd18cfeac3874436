// QuantizedAttention: multi-head attention of 8-bit queries and keys.
#include <cmath>
#include <cstdint>
#include <memory>

#include "multi_head.h"
#include "pages.h"

namespace specops {
namespace {

// onnx_specops/ops/quantized_attention.py has the same limit: larger sums may overflow 32 bits.
constexpr std::int64_t most_products = std::int64_t{1} << 15;

class QuantizedAttention : public Kernel {
 public:
  explicit QuantizedAttention(const KernelInfo& info) : all_(info) {}

  void compute(Context& context) const override {
    const Input query = context.input(0), key = context.input(3), value = context.input(6);
    const MultiHead::Sizes sizes = all_.sizes(query, key, value);
    if (sizes.size > most_products) fail("a head has ", sizes.size, " numbers; at most ", most_products, " are supported");
    const float query_scale = scale(context, 1, "q_scale"), key_scale = scale(context, 4, "k_scale");
    const std::int32_t query_zero = zero(context, 2, "q_zero_point") - 128, key_zero = zero(context, 5, "k_zero_point");
    const HeadMasks masks(context.input(9), sizes);
    const std::int64_t row = sizes.heads * sizes.value_size;
    Output output = context.output(0, sizes.output());
    const bool has_bytes = context.input(8).type() == Type::uint8;
    compressed::Result all{};
    all.step = row;
    if (has_bytes) {
      all.scale = scale(context, 7, "y_scale"), all.zero_point = zero(context, 8, "y_zero_point");
      all.bytes = output.data<std::uint8_t>();
      outputs_.prepare(all.bytes, sizes.elements());
    } else {
      all.floats = output.data<float>();
      outputs_.prepare(all.floats, sizes.elements() * static_cast<std::int64_t>(sizeof(float)));
    }
    if (sizes.elements() == 0) return;
    if (sizes.keys == 0) {
      if (has_bytes) {
        std::fill_n(all.bytes, sizes.elements(), static_cast<std::uint8_t>(all.zero_point));
      } else {
        std::fill_n(all.floats, sizes.elements(), 0.0f);
      }
      return;
    }
    const compressed::Kernels& kernels = compressed::kernels();
    compressed::ByteHead shared{};
    shared.keys = sizes.keys, shared.size = sizes.size, shared.value_size = sizes.value_size;
    shared.scale = query_scale * key_scale * all_.scale(sizes.size);
    shared.query_zero = query_zero, shared.key_zero = key_zero;
    // Each head has the bytes of its keys, a sum for each key, padded to panels, and its values.
    const std::int64_t padded = (sizes.keys + kernels.panel_columns - 1) / kernels.panel_columns * kernels.panel_columns;
    const std::int64_t key_floats = kernels.key_bytes(shared) / static_cast<std::int64_t>(sizeof(float));
    const std::int64_t all_floats = key_floats + padded + kernels.value_floats(shared);
    const Spare panels(sizes.batch * sizes.key_heads * all_floats);
    const std::uint8_t *from_keys = key.data<std::uint8_t>(), *from_queries = query.data<std::uint8_t>();
    const float* const from_values = value.data<float>();
    const std::int64_t key_step = sizes.key_heads * sizes.size, value_step = sizes.key_heads * sizes.value_size;
    pack_heads(context, sizes, all_floats, panels.get(), [&](std::int64_t b, std::int64_t h, float* panel) {
      kernels.pack_key_bytes(from_keys + b * sizes.keys * key_step + h * sizes.size, key_step, sizes.keys, sizes.size,
                             query_zero, key_zero, reinterpret_cast<std::uint8_t*>(panel),
                             reinterpret_cast<std::int32_t*>(panel + key_floats));
      kernels.pack_values(from_values + b * sizes.keys * value_step + h * sizes.value_size, value_step, sizes.keys,
                          sizes.value_size, panel + key_floats + padded);
    });
    for_each_block(context, sizes, kernels.query_rows, [&](const QueryBlock& block) {
      compressed::ByteHead head = shared;
      const float* const panel = panels.get() + block.pair * all_floats;
      head.key_bytes = reinterpret_cast<const std::uint8_t*>(panel);
      head.key_sums = reinterpret_cast<const std::int32_t*>(panel + key_floats);
      head.value_panels = panel + key_floats + padded;
      head.mask = masks.at(block.batch, block.head);
      kernels.attend_bytes(head, from_queries + block.offset(sizes.heads, sizes.size), sizes.heads * sizes.size, block.first,
                           block.rows, all.from(block.offset(sizes.heads, sizes.value_size)),
                           attention_scratch(kernels.attention_floats(shared)));
    });
  }

 private:
  static float scale(Context& context, std::size_t index, const char* name) {
    return *one_element(context.input(index), name).data<float>();
  }

  static std::int32_t zero(Context& context, std::size_t index, const char* name) {
    return *one_element(context.input(index), name).data<std::uint8_t>();
  }

  MultiHead all_;
  Outputs outputs_;
};

}  // namespace

const Op& quantized_attention() {
  constexpr Type byte = Type::uint8, number = Type::float32, any = Type::undefined;
  static const Op op = {
      "QuantizedAttention",
      {{"Q"}, {"q_scale"}, {"q_zero_point"}, {"K"}, {"k_scale"}, {"k_zero_point"}, {"V"}, {"y_scale"}, {"y_zero_point"},
       {"attn_mask", true, {Type::float32, Type::boolean}}},
      {{"Y"}},
      MultiHead::attributes(),
      {{{byte, number, byte, byte, number, byte, number, number, byte, any}, {byte}},
       {{byte, number, byte, byte, number, byte, number, number, number, any}, {number}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<QuantizedAttention>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
