// FakeQuantize: rounds numbers to levels between two limits, in one pass.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "op.h"
#include "simd.h"

namespace specops {
namespace {

// Quantizes numbers with one set of limits, with the specification's order of operations.
template <class T>
struct Levels {
  T low, high, range, start, end, extent, steps;
};

template <class T>
Levels<T> levels_of(T low, T high, T start, T end, T steps) {
  return {low, high, high - low, start, end, end - start, steps};
}

template <class T>
SPECOPS_INLINE T quantized(T x, const Levels<T>& at, T least, T most) {
  const T inside = x < least ? least : (x > most ? most : x);  // false for NaN
  const T level = std::nearbyint((inside - at.low) / at.range * at.steps);
  const T result = level / at.steps * at.extent + at.start;
  return x > most ? at.end : (x <= least ? at.start : result);
}

template <class T>
SPECOPS_INLINE void quantize_run(const T* from, std::int64_t count, const Levels<T>& at, T* to) {
  const T least = at.low < at.high ? at.low : at.high, most = at.low < at.high ? at.high : at.low;
  for (std::int64_t i = 0; i < count; ++i) to[i] = quantized(from[i], at, least, most);
}

SPECOPS_CLONES void quantize(const float* from, std::int64_t count, Levels<float> at, float* to) {
  quantize_run(from, count, at, to);
}

SPECOPS_CLONES void quantize(const double* from, std::int64_t count, Levels<double> at, double* to) {
  quantize_run(from, count, at, to);
}

// The limits vary along the innermost axis: one set per number.
template <class T>
SPECOPS_INLINE void quantize_each_of(const T* from, std::int64_t count, const std::array<const T*, 4>& limits,
                   const std::array<std::int64_t, 4>& along, T steps, T* to) {
  const auto one = [&](std::int64_t i, T low, T high, T start, T end) {
    const T least = low < high ? low : high, most = low < high ? high : low;
    to[i] = quantized(from[i], levels_of(low, high, start, end, steps), least, most);
  };
  const auto [low, high, start, end] = limits;
  if (std::all_of(along.begin(), along.end(), [](std::int64_t step) { return step == 1; })) {
    for (std::int64_t i = 0; i < count; ++i) one(i, low[i], high[i], start[i], end[i]);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    one(i, low[i * along[0]], high[i * along[1]], start[i * along[2]], end[i * along[3]]);
  }
}

SPECOPS_CLONES void quantize_each(const float* from, std::int64_t count, const std::array<const float*, 4>& limits,
                                  const std::array<std::int64_t, 4>& along, float steps, float* to) {
  quantize_each_of(from, count, limits, along, steps, to);
}

SPECOPS_CLONES void quantize_each(const double* from, std::int64_t count, const std::array<const double*, 4>& limits,
                                  const std::array<std::int64_t, 4>& along, double steps, double* to) {
  quantize_each_of(from, count, limits, along, steps, to);
}

// The strides of a limit along each axis of the data; 0 for broadcast axes.
Shape strides(const Input& limit, const Shape& shape) {
  const Shape& own = limit.shape();
  if (own.size() > shape.size()) fail("a limit does not broadcast to the data");
  Shape result(shape.size(), 0);
  std::int64_t step = 1;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::int64_t dim = own[own.size() - 1 - i];
    const std::size_t axis = shape.size() - 1 - i;
    if (dim != 1 && dim != shape[axis]) fail("a limit does not broadcast to the data");
    result[axis] = dim == 1 ? 0 : step;
    step *= dim;
  }
  return result;
}

class FakeQuantize : public Kernel {
 public:
  explicit FakeQuantize(const KernelInfo& info) : steps_(info.integer("levels") - 1) {}

  void compute(Context& context) const override {
    dispatch<float, double>(context.input(0).type(), [&](auto tag) { compute<typename decltype(tag)::type>(context); });
  }

 private:
  template <class T>
  void compute(Context& context) const {
    const Input x = context.input(0);
    const Shape& shape = x.shape();
    const T steps = static_cast<T>(steps_);
    std::array<Shape, 4> along;
    std::array<const T*, 4> limits;
    for (std::size_t i = 0; i < 4; ++i) {
      const Input limit = context.input(i + 1);
      along[i] = strides(limit, shape);
      limits[i] = limit.data<T>();
    }
    Output y = context.output(0, shape);
    const T* from = x.data<T>();
    T* to = y.data<T>();
    if (x.size() == 0) return;

    // The innermost axes along which no limit varies form one run.
    std::size_t outer = shape.size();
    std::int64_t run = 1;
    const auto moves = [&](std::size_t axis) {
      return std::any_of(along.begin(), along.end(), [&](const Shape& s) { return s[axis] != 0; });
    };
    while (outer > 0 && !moves(outer - 1)) run *= shape[--outer];
    const bool each = run == 1 && outer > 0;
    std::array<std::int64_t, 4> inner{};
    if (each) {
      run = shape[--outer];
      for (std::size_t i = 0; i < 4; ++i) inner[i] = along[i][outer];
    }
    const std::int64_t runs = x.size() / run;
    const auto at = [&](std::int64_t index) {
      std::array<const T*, 4> found = limits;
      for (std::size_t axis = outer; axis-- > 0;) {
        const std::int64_t position = index % shape[axis];
        index /= shape[axis];
        for (std::size_t i = 0; i < 4; ++i) found[i] += position * along[i][axis];
      }
      return found;
    };
    context.parallel_ranges(x.size(), 16384, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t done = first; done < last;) {
        const std::int64_t index = done / run, skipped = done % run, count = std::min(last - done, run - skipped);
        std::array<const T*, 4> own = at(runs == 1 ? 0 : index);
        if (each) {
          for (std::size_t i = 0; i < 4; ++i) own[i] += skipped * inner[i];
          quantize_each(from + done, count, own, inner, steps, to + done);
        } else {
          quantize(from + done, count, levels_of(*own[0], *own[1], *own[2], *own[3], steps), to + done);
        }
        done += count;
      }
    });
  }

  std::int64_t steps_;
};

}  // namespace

const Op& fake_quantize() {
  static const Op op = {
      "FakeQuantize",
      {{"data"}, {"input_low"}, {"input_high"}, {"output_low"}, {"output_high"}},
      {{"output"}},
      {Attribute::integer("levels").at_least(2), Attribute::integer("ordered", 0).within(0, 1)},
      [] {
        std::vector<Signature> all;
        for (const Type type : {Type::float32, Type::float64}) all.push_back({{type, type, type, type, type}, {type}});
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<FakeQuantize>(info); },
      [](ShapeInference& graph) { graph.set_output(0, graph.type(0), graph.shape(0)); },
  };
  return op;
}

}  // namespace specops
