// MatMulCompressed: a matrix multiplication with weights as they are stored, which are decoded as they are used.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "compressed.h"
#include "kept.h"
#include "numbers.h"
#include "pages.h"
#include "spare.h"

namespace specops {
namespace {

using compressed::After;
using compressed::Kind;
using compressed::Matrix;
using compressed::Number;
using compressed::Weights;

// The maximum number of rows and columns of a matrix.
constexpr std::int64_t largest = 1 << 24;
// The number of weights that justify a separate piece of work.
constexpr std::int64_t grain = 1 << 15;
// The maximum number of rows that kept panels are multiplied by at once: such a chunk fits the second-level cache and
// consists of whole tiles.
constexpr std::int64_t rows_at_once = 252, whole_tiles = 12;

Number number_of(Type type) {
  switch (type) {
    case Type::float32: return Number::float32;
    case Type::float16: return Number::float16;
    case Type::bfloat16: return Number::bfloat16;
    case Type::uint8: return Number::uint8;
    case Type::int8: return Number::int8;
    default: fail("element type ", name(type), " is not supported");
  }
}

std::size_t byte_size(Type type) {
  return type == Type::float32 ? 4 : type == Type::float16 || type == Type::bfloat16 ? 2 : 1;
}

// Decodes an 8-bit float.
float decoded(std::uint8_t code, bool e4m3) {
  if (!e4m3) {
    Float16 half;
    half.value = static_cast<std::uint16_t>(code << 8);
    return static_cast<float>(half);
  }
  const int magnitude = code & 0x7f, exponent = magnitude >> 3, fraction = magnitude & 7;
  if (magnitude == 0x7f) return std::nanf("");
  const float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                    : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  return (code & 0x80) != 0 ? -value : value;
}

bool means(const float* codebook, bool e4m3) {
  for (int code = 0; code < 256; ++code) {
    const float wanted = decoded(static_cast<std::uint8_t>(code), e4m3);
    if (codebook[code] != wanted && !(std::isnan(codebook[code]) && std::isnan(wanted))) return false;
  }
  return true;
}

// A cache line.
struct alignas(64) Line {
  std::uint8_t bytes[64];
};

// A matrix of scales or zero points for each weight matrix, or one for all.
struct Numbers2 {
  Matrix matrix;
  std::int64_t step = 0;  // bytes between matrices

  Matrix at(std::int64_t batch) const {
    Matrix out = matrix;
    out.data = static_cast<const std::uint8_t*>(matrix.data) + batch * step;
    return out;
  }
};

class MatMulCompressed : public Kernel {
 public:
  explicit MatMulCompressed(const KernelInfo& info)
      : packed_(info.choice("packed")),
        columns_(info.integer("N")),
        depth_(info.integer("K")),
        block_size_(info.integer("block_size")),
        transposed_(info.flag("transB")),
        quantized_(info.choice("activations") == 1),
        gelu_(info.choice("function") == 1) {
    const Type type = info.input_type(1);
    bool constant = type == Type::float16 || type == Type::bfloat16;
    for (std::size_t i = 1; i < 5 && constant; ++i) {
      constant = info.input_type(i) == Type::undefined || info.constant_input(i).has_value();
    }
    if (constant) kept_ = std::make_unique<Kept>();
    if (const auto weights = info.constant_input(1)) {
      join_pages(weights->bytes(), weights->size() * static_cast<std::int64_t>(byte_size(type)));
    }
  }

  void compute(Context& context) const override {
    const Input a = context.input(0), b = context.input(1);
    const Shape &left = a.shape(), &right = b.shape();
    if (left.empty() || left.back() != depth_) {
      fail("A has the shape ", to_string(left), "; expected K = ", depth_, " elements in its last dimension");
    }

    // The weight matrices.
    float table[256];
    Weights weights = describe(b, context.input(4), table);
    const std::int64_t matrix_bits = columns_ * depth_ * compressed::bits(weights.kind);
    Shape batch;
    if (packed_ == 0 || right.size() != 1) {
      if (right.size() < 2) refuse(right);
      batch.assign(right.begin(), right.end() - 2);
    }
    const std::int64_t matrices = element_count(batch), bytes = b.size() * (byte_size(b.type()));
    const bool fits = matrices == 0 || matrix_bits <= 8 * bytes / matrices;  // otherwise the product may be too large
    if (!fits || (matrices * matrix_bits + 7) / 8 != bytes ||
        (matrices > 1 && matrix_bits % 8 != 0)) {
      refuse(right);
    }
    const Numbers2 scales = numbers(context.input(2), "scales", weights, batch);
    const Numbers2 zero_points = numbers(context.input(3), "zero_points", weights, batch);

    // Pairs the matrices.
    const std::int64_t rank = static_cast<std::int64_t>(left.size());
    const Shape left_batch(left.begin(), left.end() - std::min<std::int64_t>(rank, 2));
    std::int64_t rows = rank > 1 ? left[left.size() - 2] : 1;
    Shape result_batch;
    std::vector<std::int64_t> left_index, right_index;
    if (matrices == 1 && batch.size() <= left_batch.size()) {
      result_batch = left_batch;
      rows *= element_count(left_batch);
      left_index = right_index = {0};
    } else {
      broadcast(left_batch, batch, result_batch, left_index, right_index);
    }
    Shape result = result_batch;
    if (rank > 1) result.push_back(left[left.size() - 2]);
    result.push_back(columns_);
    const std::int64_t size = element_count(result);
    After after = {nullptr, gelu_};
    if (const Input given = context.input(5); !given.absent()) {
      if (given.shape() != Shape{columns_}) fail("bias has the shape ", to_string(given.shape()), " instead of [", columns_, "]");
      after.bias = given.data<float>();
    }
    Output output = context.output(0, result);
    if (size == 0) return;
    outputs_.prepare(output.bytes(), size * static_cast<std::int64_t>(byte_size(a.type())));
    const Numbers<float> numbers(a);
    fill_narrow<float>(output, a.type(), size, [&](float* to) {
      if (depth_ == 0) {
        std::fill(to, to + size, 0.0f);
        return compressed::kernels().finish(after, to, size / columns_, columns_, 0, columns_);
      }
      for (std::size_t i = 0; i < left_index.size(); ++i) {
        Weights one = weights;
        one.codes += right_index[i] * matrix_bits / 8;
        one.scales = scales.at(right_index[i]);
        one.zero_points = zero_points.at(right_index[i]);
        const float* from = numbers.data() + left_index[i] * rows * depth_;
        Kept* const kept = matrices == 1 ? kept_.get() : nullptr;
        multiply(context, one, kept, from, rows, after, to + static_cast<std::int64_t>(i) * rows * columns_);
      }
    });
  }

 private:
  // Describes the encoding of B; fills the table.
  Weights describe(const Input& b, const Input& codebook, float* table) const {
    Weights weights{};
    weights.codes = static_cast<const std::uint8_t*>(b.bytes());
    weights.transposed = transposed_;
    weights.columns = columns_;
    weights.depth = depth_;
    weights.group = std::max<std::int64_t>(std::min(block_size_, depth_), 1);
    weights.groups = (depth_ + weights.group - 1) / weights.group;
    weights.table = table;
    if (packed_ != 0) {
      check_type(b.type(), Type::uint8);
      const bool two = packed_ == 1, is_signed = packed_ == 3;
      weights.kind = two ? Kind::table2 : Kind::table4;
      weights.flip = is_signed ? 0x88 : 0;
      weights.flipped = is_signed ? 8.0f : 0.0f;
      for (int i = 0; i < 16; ++i) table[i] = static_cast<float>(is_signed && i > 7 ? i - 16 : i % (two ? 4 : 16));
    } else {
      weights.kind = b.type() == Type::uint8     ? Kind::unsigned8
                     : b.type() == Type::int8    ? Kind::signed8
                     : b.type() == Type::float16 ? Kind::float16
                     : b.type() == Type::float32 ? Kind::float32
                                                 : Kind::bfloat16;
      weights.flip = b.type() == Type::int8 ? 0x80 : 0;
      weights.flipped = b.type() == Type::int8 ? 128.0f : 0.0f;
    }
    if (codebook.absent()) return weights;
    if (b.type() != Type::uint8 || packed_ == 3) fail("a codebook requires unsigned integers");
    const std::int64_t entries = std::int64_t{1} << compressed::bits(weights.kind);
    if (codebook.shape() != Shape{entries}) {
      fail("codebook has the shape ", to_string(codebook.shape()), " instead of [", entries, "]");
    }
    const float* given = codebook.data<float>();
    for (std::int64_t i = 0; i < std::max<std::int64_t>(entries, 16); ++i) table[i] = given[i % entries];
    const auto finite = std::find_if(given, given + entries, [](float x) { return std::isfinite(x); }) - given;
    const int code = finite == entries ? 0 : static_cast<int>(finite);
    weights.padding = static_cast<std::uint8_t>(entries == 4 ? code * 0x55 : entries == 16 ? code * 0x11 : code);
    if (entries == 256) {
      weights.kind = means(given, true) ? Kind::float8e4m3 : means(given, false) ? Kind::float8e5m2 : Kind::table8;
    }
    return weights;
  }

  [[noreturn]] void refuse(const Shape& b) const {
    fail("B has the shape ", to_string(b), "; expected matrices for N = ", columns_, " and K = ", depth_);
  }

  // [..., N, groups], or [..., groups, N] for weights that are not transposed. Missing dimensions and those of 1 are
  // broadcast.
  Numbers2 numbers(const Input& input, const char* what, const Weights& weights, const Shape& batch) const {
    Numbers2 out;
    if (!input.present()) return out;
    Shape shape = input.shape();
    const bool empty = input.size() == 0;
    if (empty && columns_ != 0 && depth_ != 0) return out;  // represents an omitted input
    if (shape.size() < 2) shape.insert(shape.begin(), 2 - shape.size(), 1);
    const std::int64_t outer = shape[shape.size() - 2], inner = shape.back();
    const std::int64_t columns = transposed_ ? outer : inner, groups = transposed_ ? inner : outer;
    const Shape leading(shape.begin(), shape.end() - 2);
    const std::int64_t matrices = element_count(leading);
    if ((columns != 1 && columns != columns_) || (groups != 1 && groups != weights.groups) ||
        (matrices != 1 && leading != batch)) {
      fail(what, " has the shape ", to_string(input.shape()), "; expected numbers for N = ", columns_, " and ", weights.groups,
           " groups");
    }
    out.matrix.data = input.bytes();
    out.matrix.type = number_of(input.type());
    out.matrix.column_step = columns == 1 ? 0 : transposed_ ? inner : 1;
    out.matrix.group_step = groups == 1 ? 0 : transposed_ ? 1 : inner;
    out.step = matrices == 1 ? 0 : outer * inner * static_cast<std::int64_t>(byte_size(input.type()));
    return out;
  }

  // Broadcasts the batch dimensions of both sides.
  static void broadcast(const Shape& left, const Shape& right, Shape& result, std::vector<std::int64_t>& left_index,
                        std::vector<std::int64_t>& right_index) {
    const std::size_t rank = std::max(left.size(), right.size());
    Shape a(rank - left.size(), 1), b(rank - right.size(), 1);
    a.insert(a.end(), left.begin(), left.end());
    b.insert(b.end(), right.begin(), right.end());
    for (std::size_t i = 0; i < rank; ++i) {
      if (a[i] != b[i] && a[i] != 1 && b[i] != 1) fail("A and B have the batches ", to_string(left), " and ", to_string(right));
      result.push_back(a[i] == 1 ? b[i] : a[i]);
    }
    const std::int64_t count = element_count(result);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t rest = i, at[2] = {0, 0}, step[2] = {1, 1};
      for (std::size_t axis = rank; axis-- > 0;) {
        const std::int64_t position = rest % result[axis];
        rest /= result[axis];
        at[0] += a[axis] == 1 ? 0 : position * step[0];
        at[1] += b[axis] == 1 ? 0 : position * step[1];
        step[0] *= a[axis], step[1] *= b[axis];
      }
      left_index.push_back(at[0]);
      right_index.push_back(at[1]);
    }
  }

  void multiply(const Context& context, const Weights& weights, Kept* kept, const float* a, std::int64_t rows,
                const After& after, float* to) const {
    const compressed::Kernels& kernels = compressed::kernels();
    const std::int64_t block = compressed::quantized_block, few = compressed::few_rows(weights.kind);
    const bool integers = weights.kind == Kind::unsigned8 || weights.kind == Kind::signed8 || weights.kind == Kind::table2 ||
                          weights.kind == Kind::table4;
    if (quantized_ && integers && context.input(4).absent() && transposed_ && depth_ % block == 0 &&
        weights.group % block == 0) {
      return multiply_quantized(context, kernels, weights, a, rows, after, to);
    }
    if (rows <= few && transposed_) {
      const std::int64_t depth = compressed::arranged_depth(weights);
      std::vector<float> arranged(static_cast<std::size_t>(rows * depth));
      for (std::int64_t i = 0; i < rows; ++i) kernels.arrange(weights, a + i * depth_, arranged.data() + i * depth);
      context.parallel_ranges(columns_, grain / depth_ + 1, [&](std::int64_t first, std::int64_t last) {
        kernels.multiply_few(weights, arranged.data(), rows, to, columns_, first, last);
        kernels.finish(after, to, rows, columns_, first, last);
      });
      return;
    }
    const std::int64_t step = spread(depth_, sizeof(float));
    std::optional<Spare> copy;
    if (step != depth_) {
      float* const to_copy = copy.emplace(rows * step).get();
      context.parallel_ranges(rows, grain / depth_ + 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) std::copy_n(a + i * depth_, depth_, to_copy + i * step);
      });
      a = to_copy;
    }
    if (kept != nullptr) {
      const float* panels = kept->get(compressed::kept_floats(kernels, weights), [&](float* fill) {
        each_panel(context, kernels, 1, 1, [&](std::int64_t, std::int64_t, std::int64_t first, std::int64_t last, void* scratch) {
          kernels.keep(weights, first, last, fill, scratch);
        });
      });
      if (panels != nullptr) return multiply_kept(context, kernels, weights, panels, a, step, rows, after, to);
    }
    each_panel(context, kernels, rows, kernels.most_panels, [&](std::int64_t row, std::int64_t count, std::int64_t first,
                                                                std::int64_t last, void* scratch) {
      kernels.multiply(weights, a + row * step, step, count, after, to + row * columns_, columns_, first, last, scratch);
    });
  }

  void multiply_kept(const Context& context, const compressed::Kernels& kernels, const Weights& weights, const float* panels,
                     const float* a, std::int64_t step, std::int64_t rows, const After& after, float* to) const {
    const std::int64_t most = kernels.most_panels * kernels.panel_columns;
    // Enough pieces for all threads, of equal numbers of whole tiles if possible.
    std::int64_t row_blocks = (rows + rows_at_once - 1) / rows_at_once, width = most;
    const auto pieces = [&] { return row_blocks * ((columns_ + width - 1) / width); };
    while (width > kernels.panel_columns && pieces() < Context::most_pieces()) width -= kernels.panel_columns;
    const std::int64_t at_once = ((rows + row_blocks - 1) / row_blocks + whole_tiles - 1) / whole_tiles * whole_tiles;
    row_blocks = (rows + at_once - 1) / at_once;
    const std::int64_t column_blocks = (columns_ + width - 1) / width;
    context.parallel_for(static_cast<std::size_t>(pieces()), [&](std::size_t i) {
      const std::int64_t piece = static_cast<std::int64_t>(i), row = piece / column_blocks * at_once;
      const std::int64_t first = piece % column_blocks * width, last = std::min(first + width, columns_);
      kernels.multiply_kept(weights, panels, a + row * step, step, std::min(at_once, rows - row), after, to + row * columns_,
                            columns_, first, last);
    });
  }

  // The row stride. If it is a multiple of this many bytes, rows that are processed together share few cache sets and evict
  // each other.
  static std::int64_t spread(std::int64_t depth, std::int64_t bytes) {
    const std::int64_t few_lines = bytes > 1 ? 4096 : 2048;
    return depth * bytes % few_lines == 0 ? depth + 64 / bytes : depth;
  }

  void multiply_quantized(const Context& context, const compressed::Kernels& kernels, const Weights& weights, const float* a,
                          std::int64_t rows, const After& after, float* to) const {
    const std::int64_t blocks = depth_ / compressed::quantized_block, step = spread(depth_, 1);
    const std::int64_t few = compressed::few_rows(weights.kind);
    std::vector<std::int8_t> values(static_cast<std::size_t>(rows * step));
    std::vector<float> scales(static_cast<std::size_t>(rows * blocks)), sums(static_cast<std::size_t>(rows * weights.groups));
    context.parallel_ranges(rows, grain / depth_ + 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        kernels.quantize(a + i * depth_, depth_, weights.group, values.data() + i * step, scales.data() + i * blocks,
                         sums.data() + i * weights.groups);
        if (rows <= few) kernels.arrange_quantized(weights, values.data() + i * step);
      }
    });
    if (rows <= few) {
      const compressed::Quantized all = {values.data(), step, scales.data(), sums.data()};
      context.parallel_ranges(columns_, grain / depth_ + 1, [&](std::int64_t first, std::int64_t last) {
        kernels.multiply_few_quantized(weights, all, rows, to, columns_, first, last);
        kernels.finish(after, to, rows, columns_, first, last);
      });
      return;
    }
    each_panel(context, kernels, rows, 1, [&](std::int64_t row, std::int64_t count, std::int64_t first, std::int64_t last,
                                              void* scratch) {
      const compressed::Quantized some = {values.data() + row * step, step, scales.data() + row * blocks,
                                          sums.data() + row * weights.groups};
      kernels.multiply_quantized(weights, some, count, to + row * columns_, columns_, first, last, scratch);
      kernels.finish(after, to + row * columns_, count, columns_, first, last);
    });
  }

  // Calls body(row, count, first column, end, scratch) for up to `most` panels of columns at a time, in parallel.
  template <class Body>
  void each_panel(const Context& context, const compressed::Kernels& kernels, std::int64_t rows, std::int64_t most,
                  const Body& body) const {
    // Each block of rows decodes the weights again, so there are several only with few panels.
    const std::int64_t panels = (columns_ + kernels.panel_columns - 1) / kernels.panel_columns;
    const std::int64_t wanted = std::min((Context::most_pieces() + panels - 1) / panels, (rows + 191) / 192);
    const std::int64_t step = (rows + wanted - 1) / wanted, row_blocks = (rows + step - 1) / step;
    // Several panels at a time share the reads of rows, as long as there is work for every thread.
    const std::int64_t together = std::clamp(panels * row_blocks / Context::most_pieces(), std::int64_t{1}, most);
    const std::int64_t width = together * kernels.panel_columns, pieces = (panels + together - 1) / together;
    context.parallel_for(static_cast<std::size_t>(pieces * row_blocks), [&](std::size_t i) {
      const std::int64_t at = static_cast<std::int64_t>(i), row = at % row_blocks * step, first = at / row_blocks * width;
      // Kept, because new memory causes page faults, and aligned, because a vector across two cache lines takes two loads.
      thread_local std::vector<Line> scratch;
      scratch.resize(static_cast<std::size_t>(kernels.scratch_bytes) / sizeof(Line) + 1);
      body(row, std::min(step, rows - row), first, std::min(first + width, columns_), scratch.data());
    });
  }

  std::size_t packed_;  // index of none, uint2, uint4, int4
  std::int64_t columns_, depth_, block_size_;
  bool transposed_, quantized_, gelu_;
  Outputs outputs_;
  std::unique_ptr<Kept> kept_;  // for constant 16-bit weights
};

}  // namespace

const Op& mat_mul_compressed() {
  constexpr Type any = Type::undefined;
  static const Op op = {
      "MatMulCompressed",
      {{"A"},
       {"B", false, {Type::uint8, Type::int8, Type::float16, Type::bfloat16, Type::float32}},
       {"scales", true, {Type::float32, Type::float16, Type::bfloat16}},
       {"zero_points", true, {Type::uint8, Type::int8, Type::float32, Type::float16, Type::bfloat16}},
       {"codebook", true, {Type::float32}},
       {"bias", true, {Type::float32}}},
      {{"Y"}},
      {Attribute::integer("N").within(0, largest), Attribute::integer("K").within(0, largest),
       Attribute::integer("block_size").within(1, largest),
       Attribute::string("packed", "no").one_of({"no", "uint2", "uint4", "int4"}), Attribute::integer("transB", 1).within(0, 1),
       Attribute::string("activations", "float").one_of({"float", "int8"}),
       Attribute::string("function", "none").one_of({"none", "gelu"})},
      {{{Type::float32, any, any, any, any, any}, {Type::float32}},
       {{Type::float16, any, any, any, any, any}, {Type::float16}},
       {{Type::bfloat16, any, any, any, any, any}, {Type::bfloat16}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<MatMulCompressed>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
