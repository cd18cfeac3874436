// EmbeddingBagOffsetsSum: sums (weighted) rows of a table, bag by bag.
//
// Sums follow the order of the indices, products are rounded before they are added, integers wrap around, and 16-bit floats
// are summed in float32. The result equals that of a plain loop, and OpenVINO's.
#include <algorithm>
#include <atomic>

#include "ops.h"
#include "simd.h"

namespace specops {
namespace {

// Unsigned arithmetic for integers: overflow wraps around, and int16 is not promoted.
template <class T, bool is_integer = std::is_integral_v<T>>
struct Arithmetic {
  using type = T;
};
template <class T>
struct Arithmetic<T, true> {
  using type = std::make_unsigned_t<T>;
};
template <>
struct Arithmetic<Float16, false> {
  using type = float;
};
template <>
struct Arithmetic<BFloat16, false> {
  using type = float;
};

template <class T, class Index>
struct Bags {
  const T* table;
  std::int64_t rows;
  std::int64_t width;  // elements per row
  const Index* indices;
  std::int64_t index_count;
  const Index* offsets;
  std::int64_t bag_count;
  const T* weights;      // or null
  const T* default_row;  // or null: zeros
  T* output;

  std::int64_t begin(std::int64_t bag) const { return bag < bag_count ? offsets[bag] : index_count; }
};

// The prefetch distance in bytes.
constexpr std::int64_t prefetch_bytes = 4096;

// Adds `count` packs of the rows at indices [begin, end), from `column` on. Returns false if an index is out of range.
template <int count, bool weighted, class A, class T, class Index>
SPECOPS_INLINE bool sum_columns(const Bags<T, Index>& bags, std::int64_t begin, std::int64_t end, std::int64_t column,
                                std::int64_t ahead, A* to) {
  constexpr std::int64_t lanes = Pack<A>::size;
  const A* table = reinterpret_cast<const A*>(bags.table) + column;
  const A* weights = reinterpret_cast<const A*>(bags.weights);
  const std::uint64_t row_bytes = static_cast<std::uint64_t>(bags.width) * sizeof(A);
  const std::int64_t last = bags.index_count - 1;
  Pack<A> sums[count];
  for (std::int64_t i = begin; i < end; ++i) {
    const auto row = static_cast<std::uint64_t>(static_cast<std::int64_t>(bags.indices[i]));
    if (row >= static_cast<std::uint64_t>(bags.rows)) return false;
    // An invalid index is harmless here, because a prefetch reads nothing.
    const auto next = static_cast<std::uint64_t>(static_cast<std::int64_t>(bags.indices[std::min(i + ahead, last)]));
    const std::uintptr_t then = reinterpret_cast<std::uintptr_t>(table) + next * row_bytes;
    for (std::uintptr_t k = 0; k < count * sizeof(Pack<A>); k += 64) {
      SPECOPS_PREFETCH(reinterpret_cast<const char*>(then + k));
    }
    const A* from = table + static_cast<std::int64_t>(row) * bags.width;
    SPECOPS_UNROLL(8)
    for (int k = 0; k < count; ++k) {
      Pack<A> part;
      part.load(from + k * lanes);
      if constexpr (weighted) part.multiply(weights[i]);
      sums[k].add(part);
    }
  }
  for (int k = 0; k < count; ++k) sums[k].store(to + column + k * lanes);
  return true;
}

template <bool weighted, class T, class Index>
SPECOPS_INLINE bool sum_bag(const Bags<T, Index>& bags, std::int64_t begin, std::int64_t end, std::int64_t ahead,
                            T* out) {
  using A = typename Arithmetic<T>::type;
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    constexpr std::int64_t chunk = 256;
    for (std::int64_t column = 0; column < bags.width; column += chunk) {
      const std::int64_t size = std::min(chunk, bags.width - column);
      float sums[chunk] = {};
      for (std::int64_t i = begin; i < end; ++i) {
        const auto row = static_cast<std::uint64_t>(static_cast<std::int64_t>(bags.indices[i]));
        if (row >= static_cast<std::uint64_t>(bags.rows)) return false;
        const T* from = bags.table + static_cast<std::int64_t>(row) * bags.width + column;
        if constexpr (weighted) {
          const float weight = static_cast<float>(bags.weights[i]);
          for (std::int64_t j = 0; j < size; ++j) sums[j] += static_cast<float>(from[j]) * weight;
        } else {
          for (std::int64_t j = 0; j < size; ++j) sums[j] += static_cast<float>(from[j]);
        }
      }
      for (std::int64_t j = 0; j < size; ++j) out[column + j] = T(sums[j]);
    }
    return true;
  } else {
    A* to = reinterpret_cast<A*>(out);
    constexpr std::int64_t lanes = Pack<A>::size;
    std::int64_t column = 0;
    for (; column + 8 * lanes <= bags.width; column += 8 * lanes) {
      if (!sum_columns<8, weighted>(bags, begin, end, column, ahead, to)) return false;
    }
    if (column + 4 * lanes <= bags.width) {
      if (!sum_columns<4, weighted>(bags, begin, end, column, ahead, to)) return false;
      column += 4 * lanes;
    }
    if (column + 2 * lanes <= bags.width) {
      if (!sum_columns<2, weighted>(bags, begin, end, column, ahead, to)) return false;
      column += 2 * lanes;
    }
    if (column + lanes <= bags.width) {
      if (!sum_columns<1, weighted>(bags, begin, end, column, ahead, to)) return false;
      column += lanes;
    }
    for (; column < bags.width; ++column) {
      A sum(0);
      for (std::int64_t i = begin; i < end; ++i) {
        const auto row = static_cast<std::uint64_t>(static_cast<std::int64_t>(bags.indices[i]));
        if (row >= static_cast<std::uint64_t>(bags.rows)) return false;
        A part = reinterpret_cast<const A*>(bags.table)[static_cast<std::int64_t>(row) * bags.width + column];
        // The factors are widened first, because a product of two uint16 as int may overflow.
        if constexpr (weighted && std::is_integral_v<T>) {
          part = static_cast<A>(std::uint64_t{part} * reinterpret_cast<const A*>(bags.weights)[i]);
        } else if constexpr (weighted) {
          part *= bags.weights[i];
        }
        sum = static_cast<A>(sum + part);
      }
      to[column] = sum;
    }
    return true;
  }
}

// Computes the bags [first, last). Returns false if an index is out of range.
template <bool weighted, class T, class Index>
SPECOPS_CLONES bool sum_bags(const Bags<T, Index>& bags, std::int64_t first, std::int64_t last) {
  const std::int64_t row_bytes = std::max<std::int64_t>(bags.width * static_cast<std::int64_t>(sizeof(T)), 1);
  const std::int64_t ahead = std::max<std::int64_t>(prefetch_bytes / row_bytes, 2);
  for (std::int64_t bag = first; bag < last; ++bag) {
    const std::int64_t begin = bags.begin(bag), end = bags.begin(bag + 1);
    T* out = bags.output + bag * bags.width;
    if (begin == end) {
      if (bags.default_row != nullptr) {
        std::copy(bags.default_row, bags.default_row + bags.width, out);
      } else {
        std::fill(out, out + bags.width, T(0));
      }
    } else if (!sum_bag<weighted>(bags, begin, end, ahead, out)) {
      return false;
    }
  }
  return true;
}

template <class Index>
void check_offsets(const Index* offsets, std::int64_t count, std::int64_t index_count) {
  std::int64_t previous = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t offset = offsets[i];
    if (offset < 0 || offset > index_count) {
      fail("offsets[", i, "] = ", offset, " is out of range [0, ", index_count, "]");
    }
    if (offset < previous) {
      fail("offsets[", i, "] = ", offset, " is less than offsets[", i - 1, "] = ", previous);
    }
    previous = offset;
  }
}

template <class Index>
void check_indices(const Index* indices, std::int64_t begin, std::int64_t end, std::int64_t rows) {
  for (std::int64_t i = begin; i < end; ++i) {
    if (indices[i] < 0 || indices[i] >= rows) {
      fail("indices[", i, "] = ", indices[i], " is out of range [0, ", rows - 1, "]");
    }
  }
}

void check_rank(const Input& input, const char* input_name) {
  if (input.shape().size() != 1) {
    fail(input_name, " has the shape ", to_string(input.shape()), "; expected one dimension");
  }
}

class EmbeddingBagOffsetsSum : public Kernel {
 public:
  void compute(Context& context) const override {
    const Input table = context.input(0);
    const Input indices = context.input(1);
    const Input offsets = context.input(2);
    const Input default_index = context.input(3);
    const Input weights = context.input(4);
    if (table.shape().empty()) fail("emb_table is a scalar; expected at least one dimension");
    check_rank(indices, "indices");
    check_rank(offsets, "offsets");

    std::int64_t default_row = -1;
    if (!default_index.absent()) {
      default_row = scalar(default_index, "default_index");
      if (default_row < -1 || default_row >= table.shape()[0]) {
        fail("default_index = ", default_row, " is out of range [-1, ", table.shape()[0] - 1, "]");
      }
    }
    // Without indices, empty weights count as absent.
    if (!weights.absent() && weights.shape() != indices.shape()) {
      fail("per_sample_weights has the shape ", to_string(weights.shape()), ", indices ", to_string(indices.shape()));
    }

    Shape shape = table.shape();
    shape[0] = offsets.size();
    Output output = context.output(0, shape);

    dispatch<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
             std::uint16_t, std::uint32_t, std::uint64_t>(table.type(), [&](auto type) {
      using T = typename decltype(type)::type;
      dispatch<std::int32_t, std::int64_t>(indices.type(), [&](auto index_type) {
        using Index = typename decltype(index_type)::type;
        Bags<T, Index> bags;
        bags.table = table.data<T>();
        bags.rows = shape[0] = table.shape()[0];
        bags.width = element_count(Shape(shape.begin() + 1, shape.end()));
        bags.indices = indices.data<Index>();
        bags.index_count = indices.size();
        bags.offsets = offsets.data<Index>();
        bags.bag_count = offsets.size();
        bags.weights = weights.absent() ? nullptr : weights.data<T>();
        bags.default_row = default_row < 0 ? nullptr : bags.table + default_row * bags.width;
        bags.output = output.data<T>();
        run(context, bags);
      });
    });
  }

 private:
  template <class T, class Index>
  static void run(const Context& context, const Bags<T, Index>& bags) {
    check_offsets(bags.offsets, bags.bag_count, bags.index_count);
    const std::int64_t first = bags.begin(0);
    check_indices(bags.indices, 0, first, bags.rows);  // indices outside bags are checked, too
    if (bags.width == 0) check_indices(bags.indices, first, bags.index_count, bags.rows);

    // Pieces of equal work, measured by rows read and written.
    const std::int64_t total = bags.index_count - first + bags.bag_count;
    const std::int64_t row_bytes = std::max<std::int64_t>(bags.width * static_cast<std::int64_t>(sizeof(T)), 1);
    const auto bag_at = [&](std::int64_t work) {  // the first bag that begins at or after this amount of work
      std::int64_t low = 0, high = bags.bag_count;
      while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (bags.begin(middle) - first + middle < work) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return low;
    };
    std::atomic<bool> wrong{false};
    context.parallel_ranges(total, std::max<std::int64_t>((std::int64_t{1} << 18) / row_bytes, 1),
                            [&](std::int64_t begin, std::int64_t end) {
                              const std::int64_t from = bag_at(begin);
                              const std::int64_t to = end == total ? bags.bag_count : bag_at(end);
                              const bool right = bags.weights != nullptr ? sum_bags<true>(bags, from, to)
                                                                         : sum_bags<false>(bags, from, to);
                              if (!right) wrong.store(true, std::memory_order_relaxed);
                            });
    if (wrong.load()) check_indices(bags.indices, first, bags.index_count, bags.rows);  // reports the invalid index
  }
};

std::vector<Signature> signatures() {
  std::vector<Signature> all;
  for (const Type type : {Type::float32, Type::float64, Type::float16, Type::bfloat16, Type::int8, Type::int16,
                          Type::int32, Type::int64, Type::uint8, Type::uint16, Type::uint32, Type::uint64}) {
    for (const Type index : {Type::int32, Type::int64}) all.push_back({{type, index, index, index, type}, {type}});
  }
  return all;
}

void infer(ShapeInference& graph) {
  SymbolicShape shape = graph.shape(0);
  const SymbolicShape offsets = graph.shape(2);
  if (shape.empty() || offsets.size() != 1) return;
  shape[0] = offsets[0];
  graph.set_output(0, graph.type(0), shape);
}

}  // namespace

const Op& embedding_bag_offsets_sum() {
  static const Op op = {
      "EmbeddingBagOffsetsSum",
      {{"emb_table"}, {"indices"}, {"offsets"}, {"default_index", true}, {"per_sample_weights", true}},
      {{"output"}},
      {},
      signatures(),
      [](const KernelInfo&) -> std::unique_ptr<Kernel> { return std::make_unique<EmbeddingBagOffsetsSum>(); },
      infer,
  };
  return op;
}

}  // namespace specops
