// GroupedMatMul: multiplies each group of rows by its own matrix.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "float_kernels.h"
#include "grouped_mat_mul.h"
#include "numbers.h"
#include "simd.h"

namespace specops {
namespace grouped {

const Kernels& kernels() {
  static const Kernels& chosen = SPECOPS_FLOAT_KERNELS;
  return chosen;
}

}  // namespace grouped

namespace {

using grouped::tile_columns;

// A thread multiplies a block of rows by some rows of the matrix, a part of the depth at a time, so that repeatedly read
// data stay in its caches.
constexpr std::int64_t block_rows = 96, block_columns = 64, block_depth = 1024;

void multiply(const float* a, std::int64_t rows, std::int64_t step, const float* const* b, int columns, std::int64_t depth,
              bool add, float* to, std::int64_t width) {
  grouped::kernels().multiply({a, rows, step, b, columns, depth, add, to, width});
}
SPECOPS_CLONES void multiply(const double* a, std::int64_t rows, std::int64_t step, const double* const* b, int columns,
                             std::int64_t depth, bool add, double* to, std::int64_t width) {
  constexpr std::int64_t lanes = static_cast<std::int64_t>(Pack<double>::size);
  for (std::int64_t i = 0; i < rows; ++i, a += step, to += width) {
    for (int j = 0; j < columns; ++j) {
      Pack<double> sums;
      std::int64_t k = 0;
      for (; k + lanes <= depth; k += lanes) {
        Pack<double> left, right;
        left.load(a + k);
        right.load(b[j] + k);
        sums.add_product(left, right);
      }
      double parts[Pack<double>::size], sum = add ? to[j] : 0.0;
      sums.store(parts);
      for (const double part : parts) sum += part;
      for (; k < depth; ++k) sum += a[k] * b[j][k];
      to[j] = sum;
    }
  }
}

// The rows [first, last) of a group.
struct Group {
  std::int64_t index, first, last;
};

// The non-empty groups.
template <class Index>
std::vector<Group> find_groups(const Index* ends, std::int64_t count, std::int64_t rows) {
  std::vector<Group> groups;
  std::int64_t start = 0;
  for (std::int64_t g = 0; g < count; ++g) {
    const std::int64_t end = ends[g];
    if (end < start) fail("offsets[", g, "] = ", end, " is less than ", start, ", the start of its group");
    if (start < std::min(end, rows)) groups.push_back({g, start, std::min(end, rows)});
    start = end;
  }
  if (start < rows) fail("offsets: the last of ", rows, " rows belongs to no group");
  return groups;
}

struct Sizes {
  std::int64_t rows, columns, depth;
};

// Calls `body(group, first row, end, first column, end)` for blocks of the product, in parallel.
template <class Body>
void each_block(const Context& context, const std::vector<Group>& groups, std::int64_t columns, const Body& body) {
  std::vector<std::pair<const Group*, std::int64_t>> blocks;  // with the first row of each block
  for (const Group& group : groups) {
    for (std::int64_t row = group.first; row < group.last; row += block_rows) blocks.emplace_back(&group, row);
  }
  const std::int64_t across = (columns + block_columns - 1) / block_columns;
  context.parallel_for(blocks.size() * static_cast<std::size_t>(across), [&](std::size_t i) {
    const auto& [group, row] = blocks[i / static_cast<std::size_t>(across)];
    const std::int64_t column = static_cast<std::int64_t>(i) % across * block_columns;
    body(group->index, row, std::min(row + block_rows, group->last), column, std::min(column + block_columns, columns));
  });
}

// Floats, accumulated in A. Elements of the matrices are widened as they are read.
template <class A, class T>
void multiply_groups(const Context& context, const std::vector<Group>& groups, const Sizes& sizes, const A* a, const T* b,
                     A* to) {
  each_block(context, groups, sizes.columns, [&](std::int64_t group, std::int64_t row, std::int64_t last_row,
                                                 std::int64_t first, std::int64_t last) {
    std::vector<A> wide(std::is_same_v<A, T> ? 0 : tile_columns * block_depth);
    for (std::int64_t k = 0; k < sizes.depth; k += block_depth) {
      const std::int64_t depth = std::min(block_depth, sizes.depth - k);
      for (std::int64_t column = first; column < last; column += tile_columns) {
        const int columns = static_cast<int>(std::min<std::int64_t>(tile_columns, last - column));
        const A* rows[tile_columns] = {};
        for (int j = 0; j < columns; ++j) {
          const T* from = b + (group * sizes.columns + column + j) * sizes.depth + k;
          if constexpr (std::is_same_v<A, T>) {
            rows[j] = from;
          } else {
            A* widened = wide.data() + j * block_depth;
            std::transform(from, from + depth, widened, [](T x) { return static_cast<A>(x); });
            rows[j] = widened;
          }
        }
        multiply(a + row * sizes.depth + k, last_row - row, sizes.depth, rows, columns, depth, k > 0,
                 to + row * sizes.columns + column, sizes.columns);
      }
    }
  });
}

// Integers, which wrap around.
template <class T>
void multiply_integers(const Context& context, const std::vector<Group>& groups, const Sizes& sizes, const T* a, const T* b,
                       T* to) {
  using Sum = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  each_block(context, groups, sizes.columns, [&](std::int64_t group, std::int64_t row, std::int64_t last_row,
                                                 std::int64_t first, std::int64_t last) {
    for (std::int64_t column = first; column < last; ++column) {
      const T* right = b + (group * sizes.columns + column) * sizes.depth;
      for (std::int64_t i = row; i < last_row; ++i) {
        const T* left = a + i * sizes.depth;
        Sum sum = 0;
        for (std::int64_t k = 0; k < sizes.depth; ++k) sum += static_cast<Sum>(left[k]) * static_cast<Sum>(right[k]);
        to[i * sizes.columns + column] = static_cast<T>(sum);
      }
    }
  });
}

class GroupedMatMul : public Kernel {
 public:
  void compute(Context& context) const override {
    const Input a = context.input(0), b = context.input(1), offsets = context.input(2);
    const Shape &left = a.shape(), &right = b.shape();
    if (left.size() != 2 || right.size() != 3 || left[1] != right[2]) {
      fail("mat_a and mat_b have the shapes ", to_string(left), " and ", to_string(right),
           "; expected [rows, K] and [groups, N, K]");
    }
    if (offsets.shape() != Shape{right[0]}) {
      fail("offsets has the shape ", to_string(offsets.shape()), " instead of [", right[0], "]");
    }
    std::vector<Group> groups;
    dispatch<std::int32_t, std::int64_t>(offsets.type(), [&](auto tag) {
      groups = find_groups(offsets.data<typename decltype(tag)::type>(), right[0], left[0]);
    });
    const Sizes sizes = {left[0], right[1], left[1]};
    const Shape result = {sizes.rows, sizes.columns};
    const std::int64_t elements = element_count(result);
    Output output = context.output(0, result);
    dispatch_numeric(a.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>) {
        multiply_integers(context, groups, sizes, a.data<T>(), b.data<T>(), output.data<T>());
      } else {
        using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
        const Numbers<A> rows(a);
        fill_narrow<A>(output, a.type(), elements, [&](A* to) {
          if (sizes.depth == 0) std::fill(to, to + elements, A(0));
          multiply_groups(context, groups, sizes, rows.data(), b.data<T>(), to);
        });
      }
    });
  }
};

}  // namespace

const Op& grouped_mat_mul() {
  static const Op op = {
      "GroupedMatMul",
      {{"mat_a"}, {"mat_b"}, {"offsets", false, {Type::int32, Type::int64}}},
      {{"output"}},
      {},
      [] {
        std::vector<Signature> all;
        for (const Type type : numeric_types()) all.push_back({{type, type, Type::undefined}, {type}});
        return all;
      }(),
      [](const KernelInfo&) -> std::unique_ptr<Kernel> { return std::make_unique<GroupedMatMul>(); },
      nullptr,
  };
  return op;
}

}  // namespace specops
