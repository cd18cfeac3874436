// GroupQueryAttentionCompressed: causal attention with a cache of quantized keys and values, which it extends.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "compressed_cache.h"
#include "op.h"

namespace specops {
namespace {

using compressed_cache::Attention;
using compressed_cache::Cache;
using compressed_cache::Piece;

constexpr std::int64_t most_heads = 65536;
// The maximum number of rows of a piece (each piece decodes the cache again), and the number of slots that justify one.
constexpr std::int64_t piece_rows = 96, piece_slots = 256;

class GroupQueryAttentionCompressed : public Kernel {
 public:
  explicit GroupQueryAttentionCompressed(const KernelInfo& info)
      : heads_(info.integer("num_heads")),
        groups_(info.integer("kv_num_heads")),
        window_(info.integer("local_window_size")),
        scale_(info.number("scale")),
        softcap_(info.number("softcap")),
        interleaved_(info.integer("rotary_interleaved") == 1) {}

  void compute(Context& context) const override {
    const Input query = context.input(0), key = context.input(1), value = context.input(2);
    const Input past_key = context.input(3), past_value = context.input(4);
    const Input lengths = context.input(5), total_length = context.input(6);
    const Input cosine = context.input(7), sine = context.input(8), sink = context.input(9);
    const std::int64_t total = scalar(total_length, "total_sequence_length");

    Attention all;
    all.heads = heads_;
    all.groups = groups_;
    set_sizes(all, query, key, value, past_key, past_value);
    const std::int64_t batch = query.shape()[0];
    const std::vector<std::int64_t> begins = find_begins(lengths, batch, all, total);
    set_turning(all, cosine, sine, begins);
    all.scale = scale_ == 0 ? 1 / std::sqrt(static_cast<float>(all.size)) : scale_;
    all.softcap = softcap_;
    all.window = std::max(window_, std::int64_t{0});
    if (!sink.absent()) {
      if (sink.shape() != Shape{heads_}) fail("head_sink has the shape ", to_string(sink.shape()), " instead of [", heads_, "]");
      all.sink = sink.data<float>();
    }
    all.query = query.data<float>();
    all.key = key.data<float>();
    all.value = value.data<float>();
    all.present_room = std::max(all.past_room, total);
    all.past_key = static_cast<const std::uint8_t*>(past_key.bytes());
    all.past_value = static_cast<const std::uint8_t*>(past_value.bytes());
    Shape present = past_key.shape();
    present[2] = all.present_room;
    Output output = context.output(0, query.shape());
    Output present_key = context.output(1, present), present_value = context.output(2, present);
    all.output = output.data<float>();
    all.present_key = static_cast<std::uint8_t*>(present_key.bytes());
    all.present_value = static_cast<std::uint8_t*>(present_value.bytes());

    take_over(context, all, begins, all.past_key, all.present_key);
    take_over(context, all, begins, all.past_value, all.present_value);
    if (query.size() == 0) return;
    attend(context, all, begins, lengths.data<std::int32_t>());
  }

 private:
  void set_sizes(Attention& all, const Input& query, const Input& key, const Input& value, const Input& past_key,
                 const Input& past_value) const {
    if (heads_ % groups_ != 0) fail("num_heads = ", heads_, " is not a multiple of kv_num_heads = ", groups_);
    all.cache = past_key.type() == Type::uint8 ? Cache::uint8 : Cache::float16;
    const Shape &q = query.shape(), &k = key.shape(), &cache = past_key.shape();
    if (q.size() != 3 || q[2] % heads_ != 0 || q[2] == 0) {
      fail("query has the shape ", to_string(q), "; expected [batch, tokens, ", heads_, " * head size]");
    }
    all.sequence = q[1];
    all.size = q[2] / heads_;
    const Shape wanted = {q[0], q[1], groups_ * all.size};
    if (k != wanted || value.shape() != k) {
      fail("key and value have the shapes ", to_string(k), " and ", to_string(value.shape()), "; expected ",
           to_string(wanted));
    }
    const std::int64_t elements = all.cache == Cache::uint8 ? all.size + compressed_cache::row_tail : all.size;
    if (cache.size() != 4 || cache != Shape{q[0], groups_, cache[2], elements} || past_value.shape() != cache) {
      fail("past_key and past_value have the shapes ", to_string(cache), " and ", to_string(past_value.shape()),
           "; expected [", q[0], ", ", groups_, ", slots, ", elements, "]");
    }
    all.width = all.cache == Cache::uint8 ? elements : 2 * elements;
    all.past_room = cache[2];
  }

  // The slot of each row's first token.
  std::vector<std::int64_t> find_begins(const Input& lengths, std::int64_t batch, const Attention& all,
                                        std::int64_t total) const {
    if (lengths.shape() != Shape{batch}) {
      fail("seqlens_k has the shape ", to_string(lengths.shape()), " instead of [", batch, "]");
    }
    if (total < all.sequence) fail("total_sequence_length = ", total, " is less than the ", all.sequence, " tokens of the run");
    const std::int32_t* given = lengths.data<std::int32_t>();
    std::vector<std::int64_t> begins(static_cast<std::size_t>(batch));
    for (std::size_t row = 0; row < begins.size(); ++row) {
      const std::int64_t length = std::int64_t{given[row]} + 1;
      begins[row] = total == all.sequence ? 0 : length - all.sequence;
      if (length < 1 || length > total || begins[row] < 0) {
        fail("seqlens_k[", row, "] = ", given[row], " is out of range for ", total, " tokens, ", all.sequence, " of them new");
      }
      if (begins[row] > all.past_room) {
        fail("seqlens_k[", row, "] = ", given[row], " is out of range: the cache has room for ", all.past_room, " tokens");
      }
    }
    return begins;
  }

  void set_turning(Attention& all, const Input& cosine, const Input& sine, const std::vector<std::int64_t>& begins) const {
    if (cosine.absent() && sine.absent()) return;
    const Shape& shape = cosine.shape();
    if (shape.size() != 2 || sine.shape() != shape || 2 * shape[1] > all.size) {
      fail("cos_cache and sin_cache have the shapes ", to_string(shape), " and ", to_string(sine.shape()), " for heads of ",
           all.size, " elements");
    }
    for (const std::int64_t begin : begins) {
      if (begin + all.sequence > shape[0]) {
        fail("position ", begin + all.sequence - 1, " is out of range of the cos_cache's ", shape[0]);
      }
    }
    all.cosine = cosine.data<float>();
    all.sine = sine.data<float>();
    all.pairs = shape[1];
    all.interleaved = interleaved_;
  }

  // Copies the past cache, unless it is extended in place.
  static void take_over(const Context& context, const Attention& all, const std::vector<std::int64_t>& begins,
                        const std::uint8_t* past, std::uint8_t* present) {
    if (past == present) return;
    context.parallel_for(begins.size() * static_cast<std::size_t>(all.groups), [&](std::size_t i) {
      const std::int64_t index = static_cast<std::int64_t>(i);
      const std::int64_t held = std::min(begins[i / static_cast<std::size_t>(all.groups)], all.past_room) * all.width;
      std::uint8_t* to = present + index * all.present_room * all.width;
      if (held > 0) std::memcpy(to, past + index * all.past_room * all.width, static_cast<std::size_t>(held));
      std::memset(to + held, 0, static_cast<std::size_t>(all.present_room * all.width - held));
    });
  }

  static void attend(const Context& context, const Attention& all, const std::vector<std::int64_t>& begins,
                     const std::int32_t* lengths) {
    const std::int64_t shared = all.heads / all.groups, step = std::max<std::int64_t>(piece_rows / shared, 1);
    const std::int64_t tiles = (all.sequence + step - 1) / step, rows = std::min(step, all.sequence) * shared;
    const std::int64_t wholes = static_cast<std::int64_t>(begins.size()) * all.groups * tiles;
    // With few pieces, the cache is split as well.
    const std::int64_t longest = *std::max_element(begins.begin(), begins.end()) + all.sequence;
    const std::int64_t wanted = std::min(Context::most_pieces() / wholes, longest / piece_slots);
    const std::int64_t parts = tiles == 1 ? std::max<std::int64_t>(wanted, 1) : 1;
    const std::int64_t partial = rows * (all.size + 2);
    std::vector<float> partials(parts == 1 ? 0 : static_cast<std::size_t>(wholes * parts * partial));

    const compressed_cache::Kernels& kernels = compressed_cache::kernels();
    const std::size_t memory = static_cast<std::size_t>(kernels.scratch(all, rows));
    context.parallel_for(static_cast<std::size_t>(wholes * parts), [&](std::size_t i) {
      // The last tokens attend to the most keys, so they come first.
      const std::int64_t index = static_cast<std::int64_t>(i), part = index % parts, whole = index / parts;
      const std::int64_t tile = tiles - 1 - whole / (wholes / tiles), head = whole % (wholes / tiles);
      Piece piece;
      piece.row = head / all.groups;
      piece.group = head % all.groups;
      piece.begin = begins[static_cast<std::size_t>(piece.row)];
      piece.length = std::int64_t{lengths[piece.row]} + 1;
      piece.first = tile * step;
      piece.last = std::min(piece.first + step, all.sequence);
      const std::int64_t slots = piece.begin + piece.last;
      piece.from_slot = slots * part / parts;
      piece.to_slot = slots * (part + 1) / parts;
      piece.extends = part == parts - 1;
      piece.partial = parts == 1 ? nullptr : partials.data() + index * partial;
      // Kept, because new memory causes page faults.
      thread_local std::vector<float> scratch;
      if (scratch.size() < memory) scratch.resize(memory);
      kernels.attend(all, piece, scratch.data());
    });
    if (parts == 1) return;
    context.parallel_for(static_cast<std::size_t>(wholes), [&](std::size_t i) {
      merge(all, static_cast<std::int64_t>(i), parts, rows, partials.data() + static_cast<std::int64_t>(i) * parts * partial);
    });
  }

  // Merges a head's partial results, each [rows][size + 2] (compressed_cache.h).
  static void merge(const Attention& all, std::int64_t head, std::int64_t parts, std::int64_t rows, const float* partials) {
    const std::int64_t shared = all.heads / all.groups, step = all.size + 2;
    for (std::int64_t row = 0; row < rows; ++row) {
      float largest = -std::numeric_limits<float>::infinity(), sum = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        largest = std::max(largest, partials[(part * rows + row) * step + all.size + 1]);
      }
      const std::int64_t token = head / all.groups * all.sequence + row / shared;
      float* to = all.output + (token * all.heads + head % all.groups * shared + row % shared) * all.size;
      std::fill(to, to + all.size, 0.0f);
      for (std::int64_t part = 0; part < parts; ++part) {
        const float* from = partials + (part * rows + row) * step;
        if (from[all.size] == 0) continue;  // it had no visible keys
        const float factor = std::exp(from[all.size + 1] - largest);
        sum += factor * from[all.size];
        for (std::int64_t i = 0; i < all.size; ++i) to[i] += factor * from[i];
      }
      for (std::int64_t i = 0; i < all.size; ++i) to[i] /= sum;
    }
  }

  std::int64_t heads_, groups_, window_;
  float scale_, softcap_;
  bool interleaved_;
};

}  // namespace

const Op& group_query_attention_compressed() {
  constexpr Type any = Type::undefined;
  static const auto signature = [](Type cache) {
    return Signature{{Type::float32, Type::float32, Type::float32, cache, cache, any, any, any, any, any},
                     {Type::float32, cache, cache}};
  };
  static const Op op = {
      "GroupQueryAttentionCompressed",
      {{"query"},
       {"key"},
       {"value"},
       {"past_key"},
       {"past_value"},
       {"seqlens_k", false, {Type::int32}},
       {"total_sequence_length", false, {Type::int32}},
       {"cos_cache", true, {Type::float32}},
       {"sin_cache", true, {Type::float32}},
       {"head_sink", true, {Type::float32}}},
      {{"output"}, {"present_key"}, {"present_value"}},
      {Attribute::integer("num_heads").within(1, most_heads), Attribute::integer("kv_num_heads").within(1, most_heads),
       Attribute::number("scale", 0), Attribute::number("softcap", 0),
       Attribute::integer("local_window_size", -1).at_least(-1),
       Attribute::integer("rotary_interleaved", 0).within(0, 1)},
      {signature(Type::float16), signature(Type::uint8)},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> {
        return std::make_unique<GroupQueryAttentionCompressed>(info);
      },
      nullptr,
  };
  return op;
}

}  // namespace specops
