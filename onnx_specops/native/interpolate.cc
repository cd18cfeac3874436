// Interpolate: resizes a tensor along some of its axes, in all modes of OpenVINO.
//
// An output element is a weighted sum of elements ("taps") along each axis. Two axes are resized at a time, row by row: the
// taps of the outer axis produce a row of the input's width, which those of the inner axis resize.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "float_kernels.h"
#include "interpolate.h"
#include "numbers.h"
#include "regions.h"
#include "simd.h"

namespace specops {
namespace resizing {

const Kernels& kernels() {
  static const Kernels& chosen = SPECOPS_FLOAT_KERNELS;
  return chosen;
}

}  // namespace resizing

namespace {

// The taps and weights of each output element along an axis.
struct Taps {
  std::vector<std::int64_t> begins = {0}, positions;
  std::vector<double> weights;

  std::int64_t size() const { return static_cast<std::int64_t>(begins.size()) - 1; }
  void add(std::int64_t position, double weight) {
    positions.push_back(position);
    weights.push_back(weight);
  }
  void end_element() { begins.push_back(static_cast<std::int64_t>(positions.size())); }
  // Divides the weights of the current element by their sum, unless that is zero.
  template <class Number>
  void normalize() {
    Number total = 0;
    const auto begin = static_cast<std::size_t>(begins.back());
    for (std::size_t i = begin; i < weights.size(); ++i) total += static_cast<Number>(weights[i]);
    for (std::size_t i = begin; i < weights.size(); ++i) {
      weights[i] = total == 0 ? 0 : static_cast<double>(static_cast<Number>(weights[i]) / total);
    }
  }
  // Whether the resize leaves the axis unchanged.
  bool identity(std::int64_t length) const {
    if (size() != length) return false;
    for (std::int64_t j = 0; j < length; ++j) {
      for (std::int64_t i = begins[static_cast<std::size_t>(j)]; i < begins[static_cast<std::size_t>(j) + 1]; ++i) {
        if (weights[static_cast<std::size_t>(i)] != (positions[static_cast<std::size_t>(i)] == j ? 1 : 0)) return false;
      }
    }
    return true;
  }
};

// The maximum length of an axis. Coordinates are float32, which does not represent all larger integers.
constexpr std::int64_t most_size = 1 << 24;

struct Axis {
  std::int64_t axis, length, size;
  float scale;
  Taps taps;
};

// ------------------------------------------------------------------------------------------------------------- weights

enum class Mode { nearest, linear, linear_onnx, cubic, bilinear_pillow, bicubic_pillow };
enum class Coordinates { half_pixel, pytorch_half_pixel, asymmetric, tf_half_pixel_for_nn, align_corners };
enum class Rounding { round_prefer_floor, round_prefer_ceil, floor, ceil, simple };

template <class A>
A cubic(A t, A a, bool outer) {
  return outer ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : ((a + 2) * t - (a + 3)) * t * t + 1;
}

// The input coordinate of an output coordinate, computed in float32.
float coordinate(const Axis& axis, std::int64_t j, Coordinates how) {
  const float x = static_cast<float>(j);
  if (axis.scale == 1 || axis.size == axis.length) return x;
  switch (how) {
    case Coordinates::align_corners:
      return axis.size > 1 ? x * static_cast<float>(axis.length - 1) / static_cast<float>(axis.size - 1) : x;
    case Coordinates::asymmetric: return x / axis.scale;
    case Coordinates::tf_half_pixel_for_nn: return (x + 0.5f) / axis.scale;
    case Coordinates::pytorch_half_pixel:
      if (axis.size <= 1) return 0;
      [[fallthrough]];
    case Coordinates::half_pixel: break;
  }
  return (x + 0.5f) / axis.scale - 0.5f;
}

float rounded(float x, Rounding how, float scale) {
  const float floor = std::floor(x), rest = x - floor;
  if (how == Rounding::simple) how = scale < 1 ? Rounding::ceil : Rounding::floor;
  switch (how) {
    case Rounding::ceil: return std::ceil(x);
    case Rounding::round_prefer_floor: return rest > 0.5f ? floor + 1 : floor;
    case Rounding::round_prefer_ceil: return rest >= 0.5f ? floor + 1 : floor;
    default: return floor;
  }
}

// The elements whose distance from `centre`, times `scale`, is less than `reach`: [first, last), possibly a few more.
struct Window {
  std::int64_t first = 0, last;

  Window(double centre, double scale, double reach, std::int64_t length) : last(length) {
    if (!(scale > 0) || !std::isfinite(centre)) return;
    first = std::min(std::max<std::int64_t>(whole(std::floor(centre - reach / scale)), 0), length);
    last = std::min(std::max<std::int64_t>(whole(std::ceil(centre + reach / scale)) + 1, first), length);
  }
};

struct Weighing {
  Mode mode;
  Coordinates coordinates;
  Rounding rounding;
  float cube;
  bool antialias;

  bool pillow() const { return mode == Mode::bilinear_pillow || mode == Mode::bicubic_pillow; }

  // `narrowed`: linear downsampling with antialiasing.
  Taps taps(const Axis& axis, bool narrowed) const {
    // The scale is usually close to the quotient of the lengths, so each element is a tap of a few others.
    const std::int64_t most = std::max<std::int64_t>(16 * (axis.length + axis.size), 1 << 20);
    Taps all;
    for (std::int64_t j = 0; j < axis.size; ++j) {
      if (static_cast<std::int64_t>(all.positions.size()) > most) {
        fail("scales: ", static_cast<double>(axis.scale), " along axis ", axis.axis, " does not fit the sizes ", axis.length,
             " and ", axis.size);
      }
      if (pillow()) {
        pillow_weights(axis, j, all);
      } else if (narrowed) {
        triangle_weights(axis, j, all);
      } else {
        neighbours(axis, j, all);
      }
      all.end_element();
    }
    return all;
  }

 private:
  void neighbours(const Axis& axis, std::int64_t j, Taps& to) const {
    const float last = static_cast<float>(axis.length - 1);
    const auto within = [&](float x) { return std::min(whole(std::min(std::max(x, 0.0f), last)), axis.length - 1); };
    float x = coordinate(axis, j, coordinates);
    if (mode == Mode::nearest) return to.add(within(rounded(x, rounding, axis.scale)), 1);
    if (mode != Mode::cubic) x = std::min(std::max(x, 0.0f), last);
    const float floor = std::floor(x), rest = x - floor;
    if (mode == Mode::cubic) {
      const float distances[] = {1 + rest, rest, 1 - rest, 2 - rest};
      for (int k = 0; k < 4; ++k) {
        to.add(within(floor + static_cast<float>(k - 1)), static_cast<double>(cubic(distances[k], cube, k == 0 || k == 3)));
      }
    } else {
      to.add(within(floor), static_cast<double>(1 - rest));
      to.add(within(floor + 1), static_cast<double>(rest));
    }
  }

  // Weights by distance, in output elements.
  void triangle_weights(const Axis& axis, std::int64_t j, Taps& to) const {
    const float x = coordinate(axis, j, coordinates);
    const Window window(static_cast<double>(x), static_cast<double>(axis.scale), 1, axis.length);
    for (std::int64_t i = window.first; i < window.last; ++i) {
      const float weight = 1 - std::abs(axis.scale * (x - static_cast<float>(i)));
      if (weight > 0) to.add(i, static_cast<double>(weight));
    }
    to.normalize<float>();
  }

  // A triangle, or a cubic curve of twice its width, at least as wide as an output element.
  void pillow_weights(const Axis& axis, std::int64_t j, Taps& to) const {
    const double step = static_cast<double>(axis.length) / static_cast<double>(axis.size);
    const double centre = (static_cast<double>(j) + 0.5) * step, wide = std::max(step, 1.0);
    const double reach = mode == Mode::bilinear_pillow ? 1 : 2;
    const Window window(centre, 1 / wide, reach, axis.length);
    for (std::int64_t i = window.first; i < window.last; ++i) {
      const double t = std::abs((static_cast<double>(i) + 0.5 - centre) / wide);
      if (t >= reach) continue;
      const double weight = mode == Mode::bilinear_pillow ? 1 - t : cubic(t, static_cast<double>(cube), t >= 1);
      to.add(i, weight);
    }
    to.normalize<double>();
  }
};

// ---------------------------------------------------------------------------------------------------------------- rows

// The weighted sum of `taps` rows.
template <class A>
SPECOPS_INLINE void sum_rows(const A* const* rows, const A* weights, std::int64_t taps, std::int64_t width, A* to) {
  std::fill(to, to + (taps < 2 ? width : 0), A(0));
  std::int64_t k = taps % 2;
  if (k == 1) {
    for (std::int64_t i = 0; i < width; ++i) to[i] = rows[0][i] * weights[0];
  }
  for (; k < taps; k += 2) {
    const A *one = rows[k], *other = rows[k + 1], first = weights[k], second = weights[k + 1];
    if (k == 0) {
      for (std::int64_t i = 0; i < width; ++i) to[i] = one[i] * first + other[i] * second;
    } else {
      for (std::int64_t i = 0; i < width; ++i) to[i] = to[i] + one[i] * first + other[i] * second;
    }
  }
}

// Resizes a row with `width` numbers per position.
template <class A>
SPECOPS_INLINE void resize_narrow(const A* from, const Taps& taps, const A* weights, std::int64_t width, A* to) {
  for (std::int64_t j = 0; j < taps.size(); ++j) {
    const std::int64_t begin = taps.begins[static_cast<std::size_t>(j)], end = taps.begins[static_cast<std::size_t>(j) + 1];
    const std::int64_t* positions = taps.positions.data();
    for (std::int64_t i = 0; i < width; ++i) {
      A sum = 0;
      for (std::int64_t k = begin; k < end; ++k) sum += from[positions[k] * width + i] * weights[k];
      *to++ = sum;
    }
  }
}

SPECOPS_CLONES void combine(const float* const* rows, const float* weights, std::int64_t taps, std::int64_t width,
                            float* to) {
  sum_rows(rows, weights, taps, width, to);
}
void combine(const double* const* rows, const double* weights, std::int64_t taps, std::int64_t width, double* to) {
  sum_rows(rows, weights, taps, width, to);
}

template <class A>
void resize_row(const A* from, const Taps& taps, const A* weights, std::int64_t width, A* to) {
  if (width < 16) return resize_narrow(from, taps, weights, width, to);
  std::vector<const A*> rows;
  for (std::int64_t j = 0; j < taps.size(); ++j, to += width) {
    const std::int64_t begin = taps.begins[static_cast<std::size_t>(j)], end = taps.begins[static_cast<std::size_t>(j) + 1];
    rows.clear();
    for (std::int64_t k = begin; k < end; ++k) rows.push_back(from + taps.positions[static_cast<std::size_t>(k)] * width);
    combine(rows.data(), weights + begin, end - begin, width, to);
  }
}

// The maximum length of rows of results that are resized by blocks, which need 17 times the memory of the row.
constexpr std::int64_t most_in_blocks = 1 << 16;

// The blocks of a row of floats with one number per position. Empty unless each element has two taps, and all taps of a block
// are in two vectors of the row.
std::vector<resizing::Block> blocks_of(const Taps& taps, std::int64_t length) {
  const std::int64_t lanes = resizing::kernels().lanes, size = taps.size();
  if (length < lanes || size > most_in_blocks || static_cast<std::int64_t>(taps.positions.size()) != 2 * size) return {};
  std::vector<resizing::Block> blocks(static_cast<std::size_t>((size + lanes - 1) / lanes));
  for (std::int64_t j = 0; j < size; ++j) {
    if (taps.begins[static_cast<std::size_t>(j)] != 2 * j) return {};
    resizing::Block& block = blocks[static_cast<std::size_t>(j / lanes)];
    const auto place = [&](std::int64_t tap, std::int64_t& start, std::int32_t* of_lanes, float* weights) {
      const std::int64_t position = taps.positions[static_cast<std::size_t>(tap)], lane = j % lanes;
      if (lane == 0) start = std::min(position, length - lanes);
      of_lanes[lane] = static_cast<std::int32_t>(position - start);
      weights[lane] = static_cast<float>(taps.weights[static_cast<std::size_t>(tap)]);
      return position >= start && position < start + lanes;
    };
    const bool first = place(2 * j, block.first, block.first_lanes, block.first_weights);
    if (!place(2 * j + 1, block.second, block.second_lanes, block.second_weights) || !first) return {};
  }
  return blocks;
}

// The nearest integer (ties to even) within T's range.
template <class T, class A>
T narrowed(A x) {
  if constexpr (std::is_integral_v<T>) {
    // The largest value must be representable in A, so its last bits are 0 if T has more digits.
    constexpr int more = std::numeric_limits<T>::digits - std::numeric_limits<A>::digits;
    constexpr T least = std::numeric_limits<T>::min(), all = std::numeric_limits<T>::max();
    constexpr T most = more > 0 ? static_cast<T>(all >> std::max(more, 0) << std::max(more, 0)) : all;
    const A whole = std::min(std::rint(x), static_cast<A>(most));
    return whole > static_cast<A>(least) ? static_cast<T>(whole) : least;
  } else {
    return T(x);
  }
}

// --------------------------------------------------------------------------------------------------------------- image

// An image as rows. The outer axis combines rows, the inner axis resizes them. Either may be missing.
struct Layout {
  const Axis *y, *x;
  std::int64_t between = 1;  // product of the dimensions between both axes
  std::int64_t rows = 1, length = 1, size = 1;  // rows and the numbers per row, before and after
  std::int64_t width = 1;  // numbers at each position along x

  Layout(const Shape& shape, const Axis* outer, const Axis* inner) : y(outer), x(inner) {
    const std::int64_t rank = static_cast<std::int64_t>(shape.size());
    const std::int64_t first = y != nullptr ? y->axis + 1 : x->axis, second = x != nullptr ? x->axis : rank;
    const auto product = [&](std::int64_t from, std::int64_t to) {
      return element_count(Shape(shape.begin() + from, shape.begin() + to));
    };
    rows = product(0, first) / (y != nullptr ? std::max<std::int64_t>(y->length, 1) : 1) * (y != nullptr ? y->size : 1);
    if (x == nullptr) {
      length = size = product(first, rank);
    } else {
      between = y != nullptr ? product(first, second) : 1;
      width = product(second + 1, rank);
      length = x->length * width;
      size = x->size * width;
    }
    rows *= between;
  }

  // Calls `read(row of the input, tap)` for the taps of an output row.
  template <class Read>
  void each_tap(std::int64_t row, const Read& read) const {
    if (y == nullptr) return read(row, 0);
    const std::int64_t part = row % between, j = row / between % y->size, before = row / between / y->size;
    const auto at = static_cast<std::size_t>(j);
    for (std::int64_t k = y->taps.begins[at]; k < y->taps.begins[at + 1]; ++k) {
      read((before * y->length + y->taps.positions[static_cast<std::size_t>(k)]) * between + part, k);
    }
  }
};

template <class A>
std::vector<A> weights_of(const Axis* axis) {
  return axis == nullptr ? std::vector<A>(1, A(1)) : std::vector<A>(axis->taps.weights.begin(), axis->taps.weights.end());
}

constexpr std::int64_t worth = 1 << 14;  // minimum numbers that a thread writes

std::int64_t grain(const Layout& image) { return worth / std::max<std::int64_t>(image.size, 1) + 1; }

// One pass over the image, computed in A.
template <class A, class From, class To>
void weigh(const Context& context, const Layout& image, const From* from, To* to) {
  const std::vector<A> down = weights_of<A>(image.y), across = weights_of<A>(image.x);
  std::vector<resizing::Block> blocks;
  if (std::is_same_v<A, float> && image.x != nullptr && image.width == 1) blocks = blocks_of(image.x->taps, image.length);
  const auto resize = [&](const A* row, A* resized) {
    if constexpr (std::is_same_v<A, float>) {
      if (!blocks.empty()) return resizing::kernels().resize(blocks.data(), image.size, row, resized);
    }
    resize_row(row, image.x->taps, across.data(), image.width, resized);
  };
  context.parallel_ranges(image.rows, grain(image), [&](std::int64_t begin, std::int64_t end) {
    const auto length = static_cast<std::size_t>(image.length);
    std::vector<A> sum(length), resized(image.x != nullptr ? static_cast<std::size_t>(image.size) : 0), wide;
    std::vector<const A*> rows;
    std::vector<A> weights;
    for (std::int64_t row = begin; row < end; ++row) {
      rows.clear();
      weights.clear();
      image.each_tap(row, [&](std::int64_t at, std::int64_t k) {
        weights.push_back(down[static_cast<std::size_t>(k)]);
        if constexpr (std::is_same_v<From, A>) {
          rows.push_back(from + at * image.length);
        } else {
          if (wide.size() < weights.size() * length) wide.resize(weights.size() * length);
          const From* source = from + at * image.length;
          std::transform(source, source + image.length, wide.data() + (weights.size() - 1) * length,
                         [](From x) { return static_cast<A>(x); });
        }
      });
      if constexpr (!std::is_same_v<From, A>) {
        for (std::size_t k = 0; k < weights.size(); ++k) rows.push_back(wide.data() + k * length);
      }
      const A* result = rows.empty() ? nullptr : rows[0];
      if (image.y != nullptr) {
        combine(rows.data(), weights.data(), static_cast<std::int64_t>(rows.size()), image.length, sum.data());
        result = sum.data();
      }
      To* at = to + row * image.size;
      if constexpr (std::is_same_v<To, A>) {
        if (image.x != nullptr) {
          resize(result, at);
        } else {
          std::copy(result, result + image.size, at);
        }
      } else {
        if (image.x != nullptr) {
          resize(result, resized.data());
          result = resized.data();
        }
        std::transform(result, result + image.size, at, [](A x) { return narrowed<To>(x); });
      }
    }
  });
}

// Copies `count` items of `bytes` bytes each from given positions.
template <std::size_t known>
void pick(const char* from, const std::int64_t* positions, std::int64_t count, std::size_t given, char* to) {
  const std::size_t bytes = known == 0 ? given : known;
  for (std::int64_t j = 0; j < count; ++j) {
    std::memcpy(to, from + static_cast<std::size_t>(positions[j]) * bytes, bytes);
    to += bytes;
  }
}

auto picker(std::size_t bytes) {
  switch (bytes) {
    case 1: return &pick<1>;
    case 2: return &pick<2>;
    case 3: return &pick<3>;
    case 4: return &pick<4>;
    case 6: return &pick<6>;
    case 8: return &pick<8>;
    case 12: return &pick<12>;
    case 16: return &pick<16>;
    default: return &pick<0>;
  }
}

// The same for `nearest`, for elements of `bytes` bytes.
void copy(const Context& context, const Layout& image, std::size_t bytes, const char* from, char* to) {
  const auto pick_row = picker(static_cast<std::size_t>(image.width) * bytes);
  const std::size_t length = static_cast<std::size_t>(image.length) * bytes;
  const std::size_t size = static_cast<std::size_t>(image.size) * bytes;
  context.parallel_ranges(image.rows, grain(image), [&](std::int64_t begin, std::int64_t end) {
    const char* before = nullptr;  // the input row of the previous output row
    for (std::int64_t row = begin; row < end; ++row) {
      char* const at = to + static_cast<std::size_t>(row) * size;
      image.each_tap(row, [&](std::int64_t source, std::int64_t) {
        const char* const given = from + static_cast<std::size_t>(source) * length;
        if (given == before) {
          std::memcpy(at, at - size, size);
        } else if (image.x == nullptr) {
          std::memcpy(at, given, size);
        } else {
          pick_row(given, image.x->taps.positions.data(), image.x->size, static_cast<std::size_t>(image.width) * bytes, at);
        }
        before = given;
      });
    }
  });
}

// -------------------------------------------------------------------------------------------------------------- kernel

std::vector<std::int64_t> parse_axes(const std::string& text) {
  std::vector<std::int64_t> axes;
  const auto refuse = [&] { fail("axes = '", text, "' is not a list of different axes"); };
  if (text.find_first_not_of(' ') == std::string::npos) return axes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, end - begin);
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    if (part.empty() || part.size() > 3 || part.find_first_not_of("0123456789") != std::string::npos) refuse();
    std::int64_t axis = 0;
    for (const char digit : part) axis = axis * 10 + (digit - '0');
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) refuse();
    axes.push_back(axis);
    begin = end + 1;
  }
  return axes;
}

class Interpolate : public Kernel {
 public:
  explicit Interpolate(const KernelInfo& info)
      : axes_text_(info.string("axes")),
        axes_(parse_axes(axes_text_)),
        weighing_{static_cast<Mode>(info.choice("mode")),
                  static_cast<Coordinates>(info.choice("coordinate_transformation_mode")),
                  static_cast<Rounding>(info.choice("nearest_mode")), info.number("cube_coeff"), info.flag("antialias")} {}

  void compute(Context& context) const override {
    const Input image = context.input(0);
    Shape shape = image.shape();
    std::vector<Axis> axes = resized_axes(shape, context.input(1), context.input(2));
    Shape result = shape;
    for (const Axis& axis : axes) result[static_cast<std::size_t>(axis.axis)] = axis.size;
    const std::int64_t elements = element_count(result);
    Output output = context.output(0, result);
    if (elements == 0) return;
    prepare(axes);
    dispatch_numeric(image.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      run(context, shape, axes, image.data<T>(), elements, output.data<T>());
    });
  }

 private:
  std::vector<Axis> resized_axes(const Shape& shape, const Input& sizes, const Input& scales) const {
    const auto count = static_cast<std::int64_t>(axes_.size()), rank = static_cast<std::int64_t>(shape.size());
    for (const auto& [name, given] : {std::pair("sizes", &sizes), std::pair("scales", &scales)}) {
      if (given->shape() != Shape{count}) {
        fail(name, " has the shape ", to_string(given->shape()), " for ", count, " axes");
      }
    }
    std::vector<Axis> axes;
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t axis = axes_[static_cast<std::size_t>(k)], size = sizes.data<std::int64_t>()[k];
      if (axis >= rank) fail("axes: ", axes_text_, " are out of range for an image of rank ", rank);
      const std::int64_t length = shape[static_cast<std::size_t>(axis)];
      if (size < 0 || (size > 0 && length == 0)) {
        fail("sizes: ", length, " elements along axis ", axis, " cannot become ", size);
      }
      if (size > most_size && size != length) fail("sizes: ", size, " along axis ", axis, " is more than ", most_size);
      axes.push_back({axis, length, size, scales.data<float>()[k], {}});
    }
    return axes;
  }

  // Computes the taps, removes axes that do not change, and sorts the others in ascending order.
  void prepare(std::vector<Axis>& axes) const {
    const bool narrow = weighing_.mode == Mode::linear && weighing_.antialias &&
                        std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.scale < 1; });
    for (Axis& axis : axes) axis.taps = weighing_.taps(axis, narrow);
    axes.erase(std::remove_if(axes.begin(), axes.end(), [](const Axis& axis) { return axis.taps.identity(axis.length); }),
               axes.end());
  }

  template <class T>
  void run(const Context& context, const Shape& shape, std::vector<Axis>& axes, const T* from, std::int64_t elements,
           T* to) const {
    using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
    if (axes.empty()) return void(std::memcpy(to, from, static_cast<std::size_t>(elements) * sizeof(T)));
    const auto weighed = [&](const Layout& image, const auto* in, auto* out) { weigh<A>(context, image, in, out); };
    if (weighing_.pillow() && std::is_integral_v<T> && sizeof(T) == 1) {  // rounded after each axis, the last one first
      std::vector<Group> groups;
      for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) groups.push_back({&*axis, nullptr});
      return passes<T>(context, shape, groups, from, to, weighed);
    }
    std::sort(axes.begin(), axes.end(), [](const Axis& one, const Axis& other) { return one.axis < other.axis; });
    std::vector<Group> groups;
    for (std::size_t i = 0; i + 2 < axes.size(); ++i) groups.push_back({&axes[i], nullptr});
    groups.push_back({&axes[axes.size() < 2 ? 0 : axes.size() - 2], axes.size() < 2 ? nullptr : &axes.back()});
    if (weighing_.mode == Mode::nearest) {
      passes<T>(context, shape, groups, from, to, [&](const Layout& image, const T* in, T* out) {
        copy(context, image, sizeof(T), reinterpret_cast<const char*>(in), reinterpret_cast<char*>(out));
      });
    } else {
      passes<A>(context, shape, groups, from, to, weighed);
    }
  }

  // One axis, or two with the outer one first.
  struct Group {
    const Axis *first, *second;
  };

  // Resizes one group after another. Intermediate results have the type Middle.
  template <class Middle, class T, class Pass>
  static void passes(const Context& context, Shape shape, const std::vector<Group>& groups, const T* from, T* to,
                     const Pass& pass) {
    std::unique_ptr<Middle[]> held;
    for (const Group& group : groups) {
      const Layout image = layout(shape, group);
      for (const Axis* axis : {group.first, group.second}) {
        if (axis != nullptr) shape[static_cast<std::size_t>(axis->axis)] = axis->size;
      }
      const bool last = &group == &groups.back();
      const std::int64_t size = element_count(shape);
      context.check_size("an image resized along some of the axes", size);
      std::unique_ptr<Middle[]> next(last ? nullptr : new Middle[static_cast<std::size_t>(size)]);
      const auto give = [&](const auto* in) { last ? pass(image, in, to) : pass(image, in, next.get()); };
      held != nullptr ? give(const_cast<const Middle*>(held.get())) : give(from);
      held = std::move(next);
    }
  }

  static Layout layout(const Shape& shape, const Group& group) {
    if (group.second != nullptr) return {shape, group.first, group.second};
    std::int64_t behind = 1;  // numbers at each position; if there are many, rows are combined instead of resized
    for (std::size_t i = static_cast<std::size_t>(group.first->axis) + 1; i < shape.size(); ++i) behind *= shape[i];
    return behind < 16 ? Layout(shape, nullptr, group.first) : Layout(shape, group.first, nullptr);
  }

  std::string axes_text_;
  std::vector<std::int64_t> axes_;
  Weighing weighing_;
};

}  // namespace

const Op& interpolate() {
  static const Op op = {
      "Interpolate",
      {{"image"}, {"sizes"}, {"scales"}},
      {{"output"}},
      {Attribute::string("axes"),
       // In the order of Mode, Coordinates and Rounding.
       Attribute::string("mode").one_of(
           {"nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"}),
       Attribute::string("coordinate_transformation_mode", "half_pixel")
           .one_of({"half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"}),
       Attribute::string("nearest_mode", "round_prefer_floor")
           .one_of({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"}),
       Attribute::flag("antialias", false), Attribute::number("cube_coeff", -0.75f)},
      [] {
        std::vector<Signature> all;
        for (const Type type : numeric_types()) all.push_back({{type, Type::int64, Type::float32}, {type}});
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<Interpolate>(info); },
      nullptr,  // the output shape is only known at run time
  };
  return op;
}

}  // namespace specops
