// Element-wise instructions for one instruction set, SPECOPS_SET; see elementwise.h.
#include "compiler.h"
#include "elementwise.h"

#define ALWAYS SPECOPS_INLINE
#include "quantized_conv_vectors.inc"

namespace specops::programs {
namespace {

using byte_conv::applied;
using byte_conv::between;
using byte_conv::Floats;
using byte_conv::Function;
using byte_conv::Ints;
using byte_conv::lanes;

static_assert(step % (2 * lanes) == 0);

// The number of vectors in one iteration of a loop.
constexpr int vectors = step / lanes;

// NaN is propagated.
constexpr float infinity = __builtin_inff();
ALWAYS Floats at_most(Floats x, Floats high) { return between(x, Floats::same(-infinity), high); }
ALWAYS Floats at_least(Floats x, Floats low) { return between(x, low, Floats::same(infinity)); }

// The elements of an argument. `next` is the distance between iterations of a loop: 0 if one number applies to all elements.
struct Numbers {
  const float* at;
  std::int64_t next = step;
};

// Repeats a number for one iteration of a loop.
ALWAYS Numbers repeated(float number, float* buffer) {
  for (int v = 0; v < vectors; ++v) Floats::same(number).store(buffer + v * lanes);
  return {buffer, 0};
}

// Stores `compute(i, v)` for each vector: the elements from `i + v` on.
template <class Compute>
ALWAYS void store_all(std::int64_t count, float* to, const Compute& compute) {
  for (std::int64_t i = 0; i < count; i += step) {
    SPECOPS_UNROLL(4)
    for (int v = 0; v < vectors; ++v) compute(i, v * lanes).store(to + i + v * lanes);
  }
}

// The elements of an argument. They are repeated or dequantized in `buffer` if necessary.
Numbers numbers_of(const Argument& argument, std::int64_t count, const float* previous, float* buffer) {
  if (argument.data == nullptr) return {previous};
  const auto* const floats = static_cast<const float*>(argument.data);
  const auto* const bytes = static_cast<const std::uint8_t*>(argument.data);
  if (argument.scale == nullptr) return argument.same ? repeated(*floats, buffer) : Numbers{floats};
  alignas(64) float scales[step], zeros[step], one[step];
  Numbers scale{argument.scale}, zero{argument.zero};
  if (argument.same_scale) {
    scale = repeated(*argument.scale, scales);
    zero = repeated(*argument.zero, zeros);
  }
  const auto dequantize = [&](const auto& number) {
    store_all(count, buffer, [&](std::int64_t i, int v) {
      const std::int64_t at = i / step;
      return (number(i, v) - Floats::load(zero.at + at * zero.next + v)) * Floats::load(scale.at + at * scale.next + v);
    });
  };
  if (argument.bytes) {
    dequantize([&](std::int64_t i, int v) { return Floats::of(Ints::of_bytes(bytes + i + v, lanes)); });
  } else {
    const Numbers x = argument.same ? repeated(*floats, one) : Numbers{floats};
    dequantize([&](std::int64_t i, int v) { return Floats::load(x.at + i / step * x.next + v); });
  }
  return {buffer};
}

// The destination of a step's results: float32, or integers as in a job.
struct Results {
  void* to;
  bool quantized;
  float factor;
  std::int32_t zero_point;
};

// Stores the results of a function of one to three arguments. The results may replace an argument.
template <class Compute, class... More>
ALWAYS void store_results(const Results& results, std::int64_t count, const Compute& compute, Numbers x, More... more) {
  const auto each = [&](const auto& store) {
    for (std::int64_t i = 0; i < count; i += step) {
      Floats all[vectors];
      SPECOPS_UNROLL(4)
      for (int v = 0; v < vectors; ++v) all[v] = compute(Floats::load(x.at + v * lanes), Floats::load(more.at + v * lanes)...);
      x.at += x.next;
      ((more.at += more.next), ...);
      store(i, all);
    }
  };
  if (results.quantized) {
    const Ints zero[2] = {Ints::same(results.zero_point), Ints::same(results.zero_point)};
    each([&](std::int64_t i, const Floats* all) {
      auto* const to = static_cast<std::uint8_t*>(results.to) + i;
      SPECOPS_UNROLL(4)
      for (int v = 0; v < vectors; v += 2) {
        const Floats both[2] = {all[v] * results.factor, all[v + 1] * results.factor};
        byte_conv::store_row<2, false, true>(both, zero, to + v * lanes, 2 * lanes);
      }
    });
  } else {
    each([&](std::int64_t i, const Floats* all) {
      auto* const to = static_cast<float*>(results.to) + i;
      SPECOPS_UNROLL(4)
      for (int v = 0; v < vectors; ++v) all[v].store(to + v * lanes);
    });
  }
}

void compute_step(const Step& one, std::int64_t count, const float* previous, const Results& results) {
  alignas(64) float buffers[3][most_numbers];
  const auto argument = [&](int i) { return numbers_of(one.arguments[i], count, previous, buffers[i]); };
  const Numbers x = argument(0);
  const auto of_one = [&](const auto& compute) { store_results(results, count, compute, x); };
  const auto of_two = [&](const auto& compute) { store_results(results, count, compute, x, argument(1)); };
  const auto of_three = [&](const auto& compute) { store_results(results, count, compute, x, argument(1), argument(2)); };
  const auto of_function = [&](auto function) {
    of_one([](Floats a) { return applied<decltype(function)::value>(a, a, 1.0f, 0.0f); });
  };
  switch (one.code) {
    case Code::copy: return of_one([](Floats a) { return a; });
    case Code::add: return of_two([](Floats a, Floats b) { return a + b; });
    case Code::sub: return of_two([](Floats a, Floats b) { return a - b; });
    case Code::mul: return of_two([](Floats a, Floats b) { return a * b; });
    case Code::div: return of_two([](Floats a, Floats b) { return a / b; });
    case Code::min: return of_two([](Floats a, Floats b) { return at_most(a, b); });
    case Code::max: return of_two([](Floats a, Floats b) { return at_least(a, b); });
    case Code::relu: return of_one([](Floats a) { return at_least(a, Floats::same(0.0f)); });
    case Code::clip: return of_three([](Floats a, Floats low, Floats high) { return between(a, low, high); });
    case Code::prelu: return of_two([](Floats a, Floats slope) { return below_zero(a, a * slope, a); });
    case Code::hard_sigmoid: return of_three([](Floats a, Floats b, Floats c) { return between(a * b + c, 0.0f, 1.0f); });
    case Code::sigmoid: return of_function(std::integral_constant<Function, Function::sigmoid>());
    case Code::gelu: return of_function(std::integral_constant<Function, Function::gelu>());
    case Code::gelu_tanh: return of_function(std::integral_constant<Function, Function::gelu_tanh>());
    case Code::elu: return of_function(std::integral_constant<Function, Function::elu>());
    case Code::mish: return of_function(std::integral_constant<Function, Function::mish>());
  }
}

// Each step is computed for all elements before the next one. There are few enough elements that the results stay in the
// first-level cache, and enough that selecting the step's code costs little.
void compute(const Job& job) {
  alignas(64) float results[most_numbers];
  for (int i = 0; i < job.step_count; ++i) {
    const bool is_last = i + 1 == job.step_count;
    compute_step(job.steps[i], job.count, results,
                 is_last ? Results{job.to, job.quantized, job.factor, job.zero_point} : Results{results, false, 1.0f, 0});
  }
}

void widen(const std::uint8_t* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}

}  // namespace

const Kernels& SPECOPS_SET() {
  static const Kernels kernels = {SPECOPS_NAME, compute, widen};
  return kernels;
}

}  // namespace specops::programs
