// Attention: multi-head attention. The heads of a token are adjacent in its row.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "compressed.h"
#include "op.h"
#include "pages.h"
#include "spare.h"

namespace specops {
namespace {

using compressed::Head;
using compressed::Mask;

// The maximum number of heads.
constexpr std::int64_t largest = 1 << 24;

// A mask and the strides of its four dimensions.
struct Masks {
  Mask first;
  std::int64_t batch_step = 0, head_step = 0;

  Mask at(std::int64_t batch, std::int64_t head) const {
    Mask out = first;
    const std::int64_t offset = batch * batch_step + head * head_step;
    if (out.add != nullptr) out.add += offset;
    if (out.keep != nullptr) out.keep += offset;
    return out;
  }
};

class Attention : public Kernel {
 public:
  explicit Attention(const KernelInfo& info)
      : heads_(info.integer("q_num_heads")), key_heads_(info.integer("kv_num_heads")), scale_(info.number("scale")) {
    if (heads_ % key_heads_ != 0) fail("q_num_heads = ", heads_, " is not a multiple of kv_num_heads = ", key_heads_);
  }

  void compute(Context& context) const override {
    const Input query = context.input(0), key = context.input(1), value = context.input(2);
    const Shape &q = query.shape(), &k = key.shape(), &v = value.shape();
    if (q.size() != 3 || k.size() != 3 || v.size() != 3 || q[2] % heads_ != 0 || k[2] % key_heads_ != 0 ||
        v[2] % key_heads_ != 0 || q[2] / heads_ != k[2] / key_heads_ || k[0] != q[0] || v[0] != q[0] || k[1] != v[1]) {
      fail("Q, K and V have the shapes ", to_string(q), ", ", to_string(k), " and ", to_string(v),
           "; expected [batch, tokens, heads * size], ", heads_, " heads in Q and ", key_heads_, " in K and V");
    }
    const std::int64_t batch = q[0], queries = q[1], value_size = v[2] / key_heads_;
    const Head shared = {k[1], q[2] / heads_, value_size, nullptr, nullptr, scale(q[2] / heads_), {}};
    const Masks masks = mask(context.input(3), {batch, heads_, queries, shared.keys});
    Output output = context.output(0, {batch, queries, heads_ * value_size});
    float* const to = output.data<float>();
    outputs_.prepare(to, batch * queries * heads_ * value_size * static_cast<std::int64_t>(sizeof(float)));
    if (batch * queries * value_size == 0) return;
    if (shared.keys == 0) {
      std::fill_n(to, batch * queries * heads_ * value_size, 0.0f);
      return;
    }

    const compressed::Kernels& kernels = compressed::kernels();
    const std::int64_t key_floats = kernels.key_floats(shared), all_floats = key_floats + kernels.value_floats(shared);
    const std::int64_t packed = batch * key_heads_;
    const Spare spare(packed * all_floats);
    float* const panels = spare.get();
    const float *from_keys = key.data<float>(), *from_values = value.data<float>(), *from_queries = query.data<float>();
    const std::int64_t grain = 1 + (1 << 15) / (1 + all_floats);
    context.parallel_ranges(packed, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t b = i / key_heads_, h = i % key_heads_;
        float* const panel = panels + i * all_floats;
        kernels.pack_keys(from_keys + b * k[1] * k[2] + h * shared.size, k[2], shared.keys, shared.size, panel);
        kernels.pack_values(from_values + b * v[1] * v[2] + h * value_size, v[2], shared.keys, value_size, panel + key_floats);
      }
    });

    const std::int64_t at_once = kernels.query_rows, blocks = (queries + at_once - 1) / at_once;
    context.parallel_ranges(batch * heads_ * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      thread_local std::vector<float> scratch;
      scratch.resize(static_cast<std::size_t>(kernels.attention_floats(shared)) + 16);
      float* const aligned = scratch.data() + (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64 / sizeof(float);
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t first = i % blocks * at_once, h = i / blocks % heads_, b = i / blocks / heads_;
        Head head = shared;
        head.key_panels = panels + (b * key_heads_ + h / (heads_ / key_heads_)) * all_floats;
        head.value_panels = head.key_panels + key_floats;
        head.mask = masks.at(b, h);
        const std::int64_t row = b * queries + first;
        kernels.attend(head, from_queries + row * q[2] + h * shared.size, q[2], first, std::min(at_once, queries - first),
                       to + row * heads_ * value_size + h * value_size, heads_ * value_size, aligned);
      }
    });
  }

 private:
  float scale(std::int64_t size) const {
    return scale_ != 0.0f ? scale_ : static_cast<float>(1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(size, 1))));
  }

  static Masks mask(const Input& input, const Shape& wanted) {
    Masks out;
    if (input.absent()) return out;
    Shape shape = input.shape();
    if (shape.size() < 4) shape.insert(shape.begin(), 4 - shape.size(), 1);
    bool fits = shape.size() == 4;
    std::int64_t steps[4] = {}, step = 1;
    for (std::size_t axis = 4; axis-- > 0 && fits;) {
      fits = shape[axis] == wanted[axis] || shape[axis] == 1;
      steps[axis] = shape[axis] == 1 ? 0 : step;
      step *= shape[axis];
    }
    if (!fits) {
      fail("attn_mask has the shape ", to_string(input.shape()), "; expected a shape that broadcasts to ", to_string(wanted));
    }
    if (input.type() == Type::boolean) {
      out.first.keep = input.data<bool>();
    } else {
      out.first.add = input.data<float>();
    }
    out.batch_step = steps[0], out.head_step = steps[1];
    out.first.query_step = steps[2], out.first.key_step = steps[3];
    return out;
  }

  std::int64_t heads_, key_heads_;
  float scale_;
  Outputs outputs_;
};

}  // namespace

const Op& attention() {
  static const Op op = {
      "Attention",
      {{"Q"}, {"K"}, {"V"}, {"attn_mask", true, {Type::float32, Type::boolean}}},
      {{"Y"}},
      {Attribute::integer("q_num_heads").within(1, largest), Attribute::integer("kv_num_heads").within(1, largest),
       Attribute::number("scale", 0.0f)},
      {{{Type::float32, Type::float32, Type::float32, Type::undefined}, {Type::float32}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<Attention>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
