// ErfInv: the inverse of the error function, as OpenVINO approximates it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numbers.h"
#include "simd.h"

namespace specops {
namespace {

// See onnx_specops/ops/erf_inv.py for the source.
constexpr double middle[] = {2.81022636e-08, 3.43273939e-07,  -3.5233877e-06,  -4.39150654e-06, 0.00021858087,
                             -0.00125372503, -0.00417768164, 0.246640727,     1.50140941};
constexpr double tails[] = {-0.000200214257, 0.000100950558, 0.00134934322,   -0.00367342844, 0.00573950773,
                            -0.0076224613,   -0.00943887047, 1.00167406,      2.83297682};

template <class A>
SPECOPS_INLINE A polynomial(const double (&coefficients)[9], A x) {
  A y = static_cast<A>(coefficients[0]);
  for (int i = 1; i < 9; ++i) y = y * x + static_cast<A>(coefficients[i]);
  return y;
}

SPECOPS_INLINE double logarithm(double x) { return std::log(x); }

// For normal numbers, with an error of one or two roundings, without branches or tables: ln(2^e m) = e ln(2) + 2 artanh((m -
// 1) / (m + 1)), with m between sqrt(1/2) and sqrt(2).
SPECOPS_INLINE float logarithm(float x) {
  constexpr std::uint32_t root = 0x3f3504f3;  // the bits of sqrt(1/2)
  const std::uint32_t moved = bits::of(x) - root;
  const float exponent = static_cast<float>(static_cast<std::int32_t>(moved) >> 23);
  const float m = bits::to_float((moved & 0x7fffffu) + root);
  const float s = (m - 1) / (m + 1), z = s * s;
  const float series = (((z * (1.0f / 9) + 1.0f / 7) * z + 1.0f / 5) * z + 1.0f / 3) * z * s + s;
  return 2 * series + exponent * 0.693147181f;
}

template <class A>
SPECOPS_INLINE A erf_inverse(A x) {
  const A w = -logarithm((1 - x) * (1 + x));
  const A y = (w < 5 ? polynomial(middle, w - A(2.5)) : polynomial(tails, std::sqrt(w) - 3)) * x;
  const A size = std::abs(x);
  if (size <= 1) return size < 1 ? y : x * std::numeric_limits<A>::infinity();
  return std::numeric_limits<A>::quiet_NaN();
}

template <class A>
SPECOPS_INLINE void erf_inverses(const A* from, std::int64_t count, A* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = erf_inverse(from[i]);
}

SPECOPS_CLONES void evaluate(const float* from, std::int64_t count, float* to) { erf_inverses(from, count, to); }

void evaluate(const double* from, std::int64_t count, double* to) { erf_inverses(from, count, to); }

template <class T>
void evaluate(const T* from, std::int64_t count, T* to) {
  constexpr std::int64_t chunk = 256;
  float wide[chunk];
  for (std::int64_t done = 0; done < count; done += chunk) {
    const std::int64_t size = std::min(chunk, count - done);
    for (std::int64_t i = 0; i < size; ++i) wide[i] = static_cast<float>(from[done + i]);
    evaluate(wide, size, wide);
    for (std::int64_t i = 0; i < size; ++i) to[done + i] = T(wide[i]);
  }
}

class ErfInv : public Kernel {
 public:
  void compute(Context& context) const override {
    const Input x = context.input(0);
    Output y = context.output(0, x.shape());
    dispatch<float, double, Float16, BFloat16>(x.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = x.data<T>();
      T* to = y.data<T>();
      context.parallel_ranges(x.size(), 8192, [&](std::int64_t first, std::int64_t last) {
        evaluate(from + first, last - first, to + first);
      });
    });
  }
};

}  // namespace

const Op& erf_inv() {
  static const Op op = {
      "ErfInv",
      {{"x"}},
      {{"y"}},
      {},
      [] {
        std::vector<Signature> all;
        for (const Type type : float_types()) all.push_back({{type}, {type}});
        return all;
      }(),
      [](const KernelInfo&) -> std::unique_ptr<Kernel> { return std::make_unique<ErfInv>(); },
      [](ShapeInference& graph) { graph.set_output(0, graph.type(0), graph.shape(0)); },
  };
  return op;
}

}  // namespace specops
