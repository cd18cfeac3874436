// YUVtoRGB: converts the planes of video frames to images.
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "numbers.h"
#include "simd.h"

namespace specops {
namespace {

template <class T>
SPECOPS_INLINE float number(T x) {
  return static_cast<float>(x);
}

template <class T>
SPECOPS_INLINE T bounded(float x) {
  x = x < 0 ? 0 : x > 255 ? 255 : x;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::int32_t>(std::rint(x)));
  } else {
    return T(x);
  }
}

// Converts a frame two rows at a time, because these share U and V.
template <class T>
struct Rows {
  const T *y, *u, *v;
  T* image;
  std::int64_t width;
};

// Converts `count` pixels of both rows through local arrays, which the compiler knows not to alias.
template <int count, int step, class T>
SPECOPS_INLINE void convert_some(const Rows<T>& rows, std::int64_t first, bool bgr) {
  float red[count], by_v[count], by_u[count], blue[count];
  for (int i = 0; i < count; ++i) {
    const std::int64_t at = (first + i) / 2 * step;
    const float d = number(rows.u[at]) - 128, e = number(rows.v[at]) - 128;
    red[i] = e * 1.596f;
    by_v[i] = e * 0.813f;
    by_u[i] = d * 0.391f;
    blue[i] = d * 2.018f;
  }
  for (int row = 0; row < 2; ++row) {
    const T* y = rows.y + row * rows.width + first;
    T* to = rows.image + 3 * (row * rows.width + first);
    T channels[3][count];
    // term by term, because the results are rounded to bytes and the last digit may matter
    for (int i = 0; i < count; ++i) {
      const float c = (number(y[i]) - 16) * 1.164f;
      channels[0][i] = bounded<T>(c + red[i]);
      channels[1][i] = bounded<T>(c - by_v[i] - by_u[i]);
      channels[2][i] = bounded<T>(c + blue[i]);
    }
    const T *left = channels[bgr ? 2 : 0], *right = channels[bgr ? 0 : 2];
    for (int i = 0; i < count; ++i) {
      to[3 * i] = left[i];
      to[3 * i + 1] = channels[1][i];
      to[3 * i + 2] = right[i];
    }
  }
}

template <int step, class T>
SPECOPS_INLINE void convert_rows(const Rows<T>& rows, bool bgr) {
  constexpr int some = 64;
  std::int64_t i = 0;
  for (; i + some <= rows.width; i += some) convert_some<some, step>(rows, i, bgr);
  for (; i < rows.width; i += 2) convert_some<2, step>(rows, i, bgr);
}

// U and V are `step` apart.
template <class T>
SPECOPS_INLINE void convert_rows(const Rows<T>& rows, std::int64_t step, bool bgr) {
  step == 1 ? convert_rows<1>(rows, bgr) : convert_rows<2>(rows, bgr);
}

SPECOPS_CLONES void convert(const Rows<std::uint8_t>& rows, std::int64_t step, bool bgr) { convert_rows(rows, step, bgr); }
SPECOPS_CLONES void convert(const Rows<float>& rows, std::int64_t step, bool bgr) { convert_rows(rows, step, bgr); }
template <class T>
void convert(const Rows<T>& rows, std::int64_t step, bool bgr) {
  convert_rows(rows, step, bgr);
}

class YUVtoRGB : public Kernel {
 public:
  explicit YUVtoRGB(const KernelInfo& info) : bgr_(info.flag("bgr")) {}

  void compute(Context& context) const override {
    const Input y = context.input(0), u = context.input(1);
    const Input v = context.input_count() > 2 ? context.input(2) : Input();
    const Shape& shape = y.shape();
    if (shape.size() != 4 || shape[3] != 1 || shape[1] % 2 != 0 || shape[2] % 2 != 0) {
      fail("y has the shape ", to_string(shape), " instead of [N, H, W, 1] with H and W even");
    }
    const bool together = !v.present() || v.shape() == Shape{0};
    const Shape half = {shape[0], shape[1] / 2, shape[2] / 2, together ? 2 : 1};
    check_plane("u", u, half, shape);
    if (!together) check_plane("v", v, half, shape);
    const std::int64_t width = shape[2], pairs = shape[0] * half[1], each = half[2] * half[3];
    Output image = context.output(0, {shape[0], shape[1], width, 3});
    dispatch<std::uint8_t, float, double, Float16, BFloat16>(y.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T *luma = y.data<T>(), *first = u.data<T>(), *second = together ? first + 1 : v.data<T>();
      T* to = image.data<T>();
      context.parallel_ranges(pairs, (1 << 13) / (width + 1) + 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const Rows<T> rows = {luma + i * 2 * width, first + i * each, second + i * each, to + i * 6 * width, width};
          convert(rows, half[3], bgr_);
        }
      });
    });
  }

 private:
  static void check_plane(const char* name, const Input& plane, const Shape& wanted, const Shape& y) {
    if (plane.shape() != wanted) {
      fail(name, " has the shape ", to_string(plane.shape()), " for y of the shape ", to_string(y));
    }
  }

  bool bgr_;
};

}  // namespace

const Op& yuv_to_rgb() {
  static const Op op = {
      "YUVtoRGB",
      {{"y"}, {"u"}, {"v", true}},
      {{"image"}},
      {Attribute::flag("bgr", false)},
      [] {
        std::vector<Signature> all = {{{Type::uint8, Type::uint8, Type::uint8}, {Type::uint8}}};
        for (const Type type : float_types()) all.push_back({{type, type, type}, {type}});
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<YUVtoRGB>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
