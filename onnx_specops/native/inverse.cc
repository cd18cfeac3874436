// Inverse: inverses of square matrices, by elimination with partial pivoting.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "numbers.h"
#include "simd.h"

namespace specops {
namespace {

// Subtracts `factor` times row `from` from row `to`.
SPECOPS_CLONES void subtract(float* to, const float* from, float factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] -= factor * from[i];
}

// `joined` [n, 2 * n] is a matrix followed by the identity; its second half becomes the inverse.
void eliminate(float* joined, std::int64_t n) {
  const std::int64_t width = 2 * n;
  for (std::int64_t column = 0; column < n; ++column) {
    const auto at = [&](std::int64_t row) { return std::abs(joined[row * width + column]); };
    std::int64_t pivot = column;
    for (std::int64_t row = column + 1; row < n && !std::isnan(at(pivot)); ++row) {
      if (at(row) > at(pivot) || std::isnan(at(row))) pivot = row;
    }
    // Columns to the left are not read again.
    const std::int64_t rest = width - column;
    float* const own = joined + column * width + column;
    if (pivot != column) std::swap_ranges(own, own + rest, joined + pivot * width + column);
    const float divisor = own[0];
    for (std::int64_t i = 0; i < rest; ++i) own[i] /= divisor;
    for (std::int64_t row = 0; row < n; ++row) {
      if (row != column) subtract(joined + row * width + column, own, joined[row * width + column], rest);
    }
  }
}

class Inverse : public Kernel {
 public:
  explicit Inverse(const KernelInfo& info) : adjoint_(info.flag("adjoint")) {}

  void compute(Context& context) const override {
    const Input input = context.input(0);
    const Shape& shape = input.shape();
    if (shape.size() < 2 || shape[shape.size() - 1] != shape[shape.size() - 2]) {
      fail("input has the shape ", to_string(shape), "; expected square matrices");
    }
    Output output = context.output(0, shape);
    if (input.size() == 0) return;
    const std::int64_t n = shape.back(), matrices = input.size() / n / n;
    dispatch<float, double, Float16, BFloat16>(input.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* all = input.data<T>();
      T* results = output.data<T>();
      context.parallel_ranges(matrices, 16384 / (n * n * n) + 1, [&](std::int64_t first, std::int64_t last) {
        std::vector<float> joined(static_cast<std::size_t>(2 * n * n));
        for (std::int64_t matrix = first; matrix < last; ++matrix) {
          const T* from = all + matrix * n * n;
          T* to = results + matrix * n * n;
          std::fill(joined.begin(), joined.end(), 0.0f);
          for (std::int64_t row = 0; row < n; ++row) {
            float* own = joined.data() + row * 2 * n;
            for (std::int64_t i = 0; i < n; ++i) own[i] = static_cast<float>(from[row * n + i]);
            own[n + row] = 1;
          }
          eliminate(joined.data(), n);
          for (std::int64_t row = 0; row < n; ++row) {
            const float* own = joined.data() + row * 2 * n + n;
            for (std::int64_t i = 0; i < n; ++i) to[adjoint_ ? i * n + row : row * n + i] = T(own[i]);
          }
        }
      });
    });
  }

 private:
  bool adjoint_;
};

}  // namespace

const Op& inverse() {
  static const Op op = {
      "Inverse",
      {{"input"}},
      {{"output"}},
      {Attribute::flag("adjoint", false)},
      [] {
        std::vector<Signature> all;
        for (const Type type : float_types()) all.push_back({{type}, {type}});
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<Inverse>(info); },
      [](ShapeInference& graph) { graph.set_output(0, graph.type(0), graph.shape(0)); },
  };
  return op;
}

}  // namespace specops
