// ErfInv: the inverse of the error function, as OpenVINO approximates it.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numbers.h"

namespace specops {
namespace {

// onnx_specops/ops/erf_inv.py says where these are from.
constexpr double middle[] = {2.81022636e-08, 3.43273939e-07,  -3.5233877e-06,  -4.39150654e-06, 0.00021858087,
                             -0.00125372503, -0.00417768164, 0.246640727,     1.50140941};
constexpr double tails[] = {-0.000200214257, 0.000100950558, 0.00134934322,   -0.00367342844, 0.00573950773,
                            -0.0076224613,   -0.00943887047, 1.00167406,      2.83297682};

double polynomial(const double (&coefficients)[9], double x) {
  double y = coefficients[0];
  for (int i = 1; i < 9; ++i) y = y * x + coefficients[i];
  return y;
}

double erf_inverse(double x) {
  if (std::abs(x) == 1) return x * std::numeric_limits<double>::infinity();
  const double w = -std::log((1 - x) * (1 + x));
  return (w < 5 ? polynomial(middle, w - 2.5) : polynomial(tails, std::sqrt(w) - 3)) * x;
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
      context.parallel_ranges(x.size(), 2048, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
          const double result = erf_inverse(static_cast<double>(comparable(from[i])));
          if constexpr (std::is_same_v<T, double>) {
            to[i] = result;
          } else {
            to[i] = T(static_cast<float>(result));
          }
        }
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
