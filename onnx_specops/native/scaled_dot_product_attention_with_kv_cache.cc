// ScaledDotProductAttentionWithKVCache: attention with a cache of keys and values, which it extends.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "masked_attention.h"
#include "op.h"

namespace specops {
namespace {

using masked_attention::Query;
using masked_attention::Tokens;

// [batch, heads, tokens, size]
struct Sizes {
  std::int64_t batch, heads, tokens, size;

  explicit Sizes(const Input& input, const char* what) {
    const Shape& shape = input.shape();
    if (shape.size() != 4) fail(what, " has the shape ", to_string(shape), "; expected [batch, heads, tokens, size]");
    batch = shape[0], heads = shape[1], tokens = shape[2], size = shape[3];
  }
};

// The strides of a mask's batches, heads and queries; 0 for broadcast ones.
struct Mask {
  const float* numbers = nullptr;
  std::int64_t batch = 0, head = 0, query = 0;
};

class ScaledDotProductAttentionWithKVCache : public Kernel {
 public:
  explicit ScaledDotProductAttentionWithKVCache(const KernelInfo& info)
      : scaling_{info.number("scale"), info.number("softcap"), info.integer("mask_replaces") != 0} {}

  void compute(Context& context) const override {
    const Input query = context.input(0), key = context.input(1), value = context.input(2), past_key = context.input(3),
                past_value = context.input(4);
    const Sizes queries(query, "query"), keys(key, "key"), values(value, "value"), old_keys(past_key, "past_key"),
        old_values(past_value, "past_value");
    if (keys.batch != queries.batch || keys.tokens != queries.tokens || keys.size != queries.size ||
        values.batch != keys.batch || values.heads != keys.heads || values.tokens != keys.tokens) {
      fail("query ", to_string(query.shape()), ", key ", to_string(key.shape()), ", value ", to_string(value.shape()),
           " do not match");
    }
    if (queries.heads != 0 && (keys.heads == 0 || queries.heads % keys.heads != 0)) {
      fail(queries.heads, " query heads are not a multiple of ", keys.heads, " key heads");
    }
    if (old_keys.heads != keys.heads || old_keys.size != keys.size || old_values.heads != values.heads ||
        old_values.size != values.size || old_keys.batch != old_values.batch || old_keys.tokens != old_values.tokens) {
      fail("key ", to_string(key.shape()), ", value ", to_string(value.shape()), ", past_key ",
           to_string(past_key.shape()), ", past_value ", to_string(past_value.shape()), " do not match");
    }
    const std::int64_t room = old_keys.tokens;
    const Input given = context.input(7);
    const std::int64_t length = given.absent() ? room : scalar(given, "past_length");
    if (length < 0 || length > room) fail("past_length = ", length, " is out of range [0, ", room, "]");
    const std::vector<std::int64_t> beams = rows_of(context.input(6), queries.batch, old_keys.batch, room);
    const std::int64_t total = length + keys.tokens, batch = queries.batch, groups = keys.heads;
    const Mask mask = mask_of(context.input(5), {batch, queries.heads, queries.tokens, total});

    const Input sink = context.input(8);
    const float* const sinks = sink.absent() ? nullptr : sink.data<float>();
    if (sinks != nullptr && sink.shape() != Shape{queries.heads}) {
      fail("sink has the shape ", to_string(sink.shape()), " instead of [", queries.heads, "]");
    }

    const std::int64_t longer = std::max(room, total);
    Output present_key = context.output(1, {batch, groups, longer, keys.size});
    Output present_value = context.output(2, {batch, groups, longer, values.size});
    float* const all_keys = present_key.data<float>();
    float* const all_values = present_value.data<float>();
    extend(context, past_key, key, beams, length, all_keys);
    extend(context, past_value, value, beams, length, all_values);

    Output output = context.output(0, {batch, queries.heads, queries.tokens, values.size});
    float* const to = output.data<float>();
    const std::int64_t times = groups == 0 ? 0 : queries.heads / groups, rows = times * queries.tokens;
    if (batch * groups * rows * values.size == 0) return;
    // The number of queries per piece that keeps every thread busy. They share reads of the cache.
    const std::int64_t shares = (Context::most_pieces() + batch * groups - 1) / (batch * groups);
    std::int64_t step = std::clamp((rows + shares - 1) / shares, std::int64_t{1}, masked_attention::most_queries);
    const std::int64_t tile = masked_attention::tile_queries;
    if (step > tile) step = (step + tile - 1) / tile * tile;
    const std::int64_t pieces = (rows + step - 1) / step;
    const float* const from = query.data<float>();
    context.parallel_for(static_cast<std::size_t>(batch * groups * pieces), [&](std::size_t piece) {
      const std::int64_t at = static_cast<std::int64_t>(piece) / pieces, b = at / groups, g = at % groups;
      const std::int64_t begin = static_cast<std::int64_t>(piece) % pieces * step, end = std::min(begin + step, rows);
      Query taken[masked_attention::most_queries];
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t head = g * times + row / queries.tokens, token = row % queries.tokens;
        const std::int64_t index = (b * queries.heads + head) * queries.tokens + token;
        const float* const masking =
            mask.numbers == nullptr ? nullptr : mask.numbers + b * mask.batch + head * mask.head + token * mask.query;
        taken[row - begin] = {from + index * queries.size, masking, sinks == nullptr ? nullptr : sinks + head,
                              to + index * values.size};
      }
      const Tokens tokens = {all_keys + at * longer * keys.size, all_values + at * longer * values.size, total, keys.size,
                             values.size};
      thread_local std::vector<float> scratch;
      scratch.resize(static_cast<std::size_t>(masked_attention::block * (masked_attention::tile_queries + keys.size)));
      masked_attention::kernels().attend(tokens, scaling_, taken, end - begin, scratch.data());
    });
  }

 private:
  // The cache row that each batch row continues; empty if it is its own.
  static std::vector<std::int64_t> rows_of(const Input& beams, std::int64_t batch, std::int64_t rows, std::int64_t room) {
    std::vector<std::int64_t> found;
    if (!beams.present() || (beams.size() == 0 && batch != 0)) {
      if (room != 0 && rows != batch) fail("the cache has ", rows, " rows instead of ", batch);
      return found;
    }
    if (beams.shape() != Shape{batch}) fail("beam_idx has the shape ", to_string(beams.shape()), " instead of [", batch, "]");
    if (room == 0) return found;
    bool own = rows == batch;
    dispatch<std::int32_t, std::int64_t>(beams.type(), [&](auto tag) {
      const auto* numbers = beams.data<typename decltype(tag)::type>();
      for (std::int64_t i = 0; i < batch; ++i) {
        const std::int64_t row = numbers[i];
        if (row < -rows || row >= rows) fail("beam_idx has a number out of [", -rows, ", ", rows, ")");
        found.push_back(row < 0 ? row + rows : row);
        own = own && found.back() == i;
      }
    });
    if (own) found.clear();
    return found;
  }

  static Mask mask_of(const Input& input, const Shape& whole) {
    Mask mask;
    if (!input.present() || (input.size() == 0 && element_count(whole) != 0)) return mask;
    const Shape& shape = input.shape();
    bool fits = shape.size() == 4 && shape[3] == whole[3];
    for (std::size_t i = 0; fits && i < 3; ++i) fits = shape[i] == 1 || shape[i] == whole[i];
    if (!fits) fail("attention_mask has the shape ", to_string(shape), " instead of ", to_string(whole));
    mask.numbers = input.data<float>();
    mask.query = shape[2] == 1 ? 0 : shape[3];
    mask.head = shape[1] == 1 ? 0 : shape[2] * shape[3];
    mask.batch = shape[0] == 1 ? 0 : shape[1] * shape[2] * shape[3];
    return mask;
  }

  // Appends a run's tokens to the first `length` tokens of the cache. Nothing is moved if `to` is the cache itself.
  static void extend(const Context& context, const Input& past, const Input& added, const std::vector<std::int64_t>& beams,
                     std::int64_t length, float* to) {
    const Shape &old = past.shape(), &shape = added.shape();
    const std::int64_t batch = shape[0], groups = shape[1], tokens = shape[2], size = shape[3], room = old[2];
    const std::int64_t longer = std::max(room, length + tokens);
    const auto *from = past.data<float>(), *extra = added.data<float>();
    const bool in_place = from == to && room != 0;
    std::vector<float> moved;
    if (in_place && !beams.empty()) {  // rows may be read after others overwrote them
      moved.assign(from, from + past.size());
      from = moved.data();
    }
    context.parallel_for(static_cast<std::size_t>(batch * groups), [&](std::size_t index) {
      const std::int64_t i = static_cast<std::int64_t>(index), b = i / groups, g = i % groups;
      float* const begin = to + i * longer * size;
      if (room != 0 && (!in_place || !beams.empty())) {
        const std::int64_t row = beams.empty() ? b : beams[static_cast<std::size_t>(b)];
        std::copy_n(from + (row * groups + g) * room * size, room * size, begin);
      }
      std::copy_n(extra + i * tokens * size, tokens * size, begin + length * size);
    });
  }

  masked_attention::Scaling scaling_;
};

}  // namespace

const Op& scaled_dot_product_attention_with_kv_cache() {
  constexpr Type real = Type::float32, any = Type::undefined;
  static const Op op = {
      "ScaledDotProductAttentionWithKVCache",
      {{"query"},
       {"key"},
       {"value"},
       {"past_key"},
       {"past_value"},
       {"attention_mask", true},
       {"beam_idx", true, {Type::int32, Type::int64}},
       {"past_length", true},
       {"sink", true}},
      {{"Y"}, {"present_key"}, {"present_value"}},
      {Attribute::number("scale"), Attribute::number("softcap", 0.0f), Attribute::integer("mask_replaces", 0)},
      {{{real, real, real, real, real, real, any, Type::int64, real}, {real, real, real}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> {
        return std::make_unique<ScaledDotProductAttentionWithKVCache>(info);
      },
      nullptr,
  };
  return op;
}

}  // namespace specops
