// Code shared by the multi-head attention operators: the sizes of their inputs, masks, and blocks of queries.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "compressed.h"
#include "op.h"
#include "spare.h"

namespace specops {

// The numbers of heads and the factor of the scores, as attributes.
class MultiHead {
 public:
  // The maximum number of heads.
  static constexpr std::int64_t largest = 1 << 24;

  explicit MultiHead(const KernelInfo& info)
      : heads_(info.integer("q_num_heads")), key_heads_(info.integer("kv_num_heads")), scale_(info.number("scale")) {
    if (heads_ % key_heads_ != 0) fail("q_num_heads = ", heads_, " is not a multiple of kv_num_heads = ", key_heads_);
  }

  static std::vector<Attribute> attributes() {
    return {Attribute::integer("q_num_heads").within(1, largest), Attribute::integer("kv_num_heads").within(1, largest),
            Attribute::number("scale", 0.0f)};
  }

  // The sizes of one node's inputs.
  struct Sizes {
    std::int64_t batch, queries, keys, heads, key_heads, size, value_size;

    Shape output() const { return {batch, queries, heads * value_size}; }
    std::int64_t elements() const { return batch * queries * heads * value_size; }
  };

  Sizes sizes(const Input& query, const Input& key, const Input& value) const {
    const Shape &q = query.shape(), &k = key.shape(), &v = value.shape();
    if (q.size() != 3 || k.size() != 3 || v.size() != 3 || q[2] % heads_ != 0 || k[2] % key_heads_ != 0 ||
        v[2] % key_heads_ != 0 || q[2] / heads_ != k[2] / key_heads_ || k[0] != q[0] || v[0] != q[0] || k[1] != v[1]) {
      fail("Q, K and V have the shapes ", to_string(q), ", ", to_string(k), " and ", to_string(v),
           "; expected [batch, tokens, heads * size], ", heads_, " heads in Q and ", key_heads_, " in K and V");
    }
    return {q[0], q[1], k[1], heads_, key_heads_, q[2] / heads_, v[2] / key_heads_};
  }

  float scale(std::int64_t size) const {
    return scale_ != 0.0f ? scale_ : static_cast<float>(1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(size, 1))));
  }

 private:
  std::int64_t heads_, key_heads_;
  float scale_;
};

// A mask and the strides of its first two dimensions.
class HeadMasks {
 public:
  HeadMasks(const Input& input, const MultiHead::Sizes& sizes) {
    if (input.absent()) return;
    const Shape wanted = {sizes.batch, sizes.heads, sizes.queries, sizes.keys};
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
      first_.keep = input.data<bool>();
    } else {
      first_.add = input.data<float>();
    }
    batch_step_ = steps[0], head_step_ = steps[1];
    first_.query_step = steps[2], first_.key_step = steps[3];
  }

  compressed::Mask at(std::int64_t batch, std::int64_t head) const {
    compressed::Mask out = first_;
    const std::int64_t offset = batch * batch_step_ + head * head_step_;
    if (out.add != nullptr) out.add += offset;
    if (out.keep != nullptr) out.keep += offset;
    return out;
  }

 private:
  compressed::Mask first_;
  std::int64_t batch_step_ = 0, head_step_ = 0;
};

// A thread's scratch memory, aligned to cache lines.
inline float* attention_scratch(std::int64_t floats) {
  thread_local std::vector<float> memory;
  memory.resize(static_cast<std::size_t>(floats) + 16);
  return memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64 / sizeof(float);
}

// Packs the keys and values of each head by `pack(batch, head, panels)`. Each head needs `floats` floats.
template <typename Pack>
void pack_heads(Context& context, const MultiHead::Sizes& sizes, std::int64_t floats, float* panels, const Pack& pack) {
  const std::int64_t grain = 1 + (1 << 15) / (1 + floats);
  context.parallel_ranges(sizes.batch * sizes.key_heads, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) pack(i / sizes.key_heads, i % sizes.key_heads, panels + i * floats);
  });
}

// A block of queries of one head.
struct QueryBlock {
  std::int64_t batch, head, first, rows;
  std::int64_t row;   // the first row, counted over all batches
  std::int64_t pair;  // the index of the head's keys and values, counted over all batches

  // The number of elements before those of the block, if each row has `size` elements per head.
  std::int64_t offset(std::int64_t heads, std::int64_t size) const { return (row * heads + head) * size; }
};

// Calls `attend(block)` for each block of at most `at_once` queries.
template <typename Attend>
void for_each_block(Context& context, const MultiHead::Sizes& sizes, std::int64_t at_once, const Attend& attend) {
  const std::int64_t blocks = (sizes.queries + at_once - 1) / at_once, shared_by = sizes.heads / sizes.key_heads;
  context.parallel_ranges(sizes.batch * sizes.heads * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % blocks * at_once, h = i / blocks % sizes.heads, b = i / blocks / sizes.heads;
      attend(QueryBlock{b, h, first, std::min(at_once, sizes.queries - first), b * sizes.queries + first,
                        b * sizes.key_heads + h / shared_by});
    }
  });
}

}  // namespace specops
