// SegmentMax: the maxima of segments of a tensor.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "numbers.h"
#include "simd.h"

namespace specops {
namespace {

// The lowest finite value of a type.
template <class T>
T lowest() {
  T value;
  if constexpr (std::is_same_v<T, Float16>) {
    value.value = 0xfbff;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    value.value = 0xff7f;
  } else {
    value = std::numeric_limits<T>::lowest();
  }
  return value;
}

template <class T>
SPECOPS_INLINE void raise_to(T* to, const T* from, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) {
    if (comparable(from[j]) > comparable(to[j])) to[j] = from[j];  // false for NaN
  }
}

SPECOPS_CLONES void raise(float* to, const float* from, std::int64_t width) { raise_to(to, from, width); }
template <class T>
void raise(T* to, const T* from, std::int64_t width) {
  raise_to(to, from, width);
}

template <class Id>
void check_ids(const Id* ids, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (ids[i] < 0) fail("segment_ids[", i, "] = ", ids[i], " is negative");
  }
  for (std::int64_t i = 1; i < count; ++i) {
    if (ids[i] < ids[i - 1]) {
      fail("segment_ids[", i, "] = ", ids[i], " is less than segment_ids[", i - 1, "] = ", ids[i - 1]);
    }
  }
}

class SegmentMax : public Kernel {
 public:
  explicit SegmentMax(const KernelInfo& info) : zero_(info.string("fill_mode") == "ZERO") {}

  void compute(Context& context) const override {
    const Input data = context.input(0), ids = context.input(1), segments = context.input(2);
    if (data.shape().empty() || ids.shape() != Shape{data.shape()[0]}) {
      fail("segment_ids has the shape ", to_string(ids.shape()), ", data ", to_string(data.shape()));
    }
    dispatch<std::int32_t, std::int64_t>(ids.type(), [&](auto tag) {
      using Id = typename decltype(tag)::type;
      const Id* id = ids.data<Id>();
      check_ids(id, ids.size());
      std::int64_t count = 0;
      if (!segments.absent()) {
        count = scalar(segments, "num_segments");
        if (count < 0) fail("num_segments = ", count, " is negative");
      } else if (ids.size() > 0) {
        const std::int64_t last = id[ids.size() - 1];
        if (last == std::numeric_limits<std::int64_t>::max()) fail("segment_ids: ", last, " is too large");
        count = last + 1;
      }
      Shape shape = data.shape();
      shape[0] = count;
      Output output = context.output(0, shape);
      const std::int64_t width = element_count(Shape(shape.begin() + 1, shape.end()));
      if (count == 0 || width == 0) return;
      dispatch_numeric(data.type(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* from = data.data<T>();
        T* to = output.data<T>();
        const std::int64_t rows = ids.size() / count + 1;
        context.parallel_ranges(count, 32768 / (rows * width) + 1, [&](std::int64_t first, std::int64_t last) {
          const Id* at = std::lower_bound(id, id + ids.size(), first, [](Id a, std::int64_t b) { return a < b; });
          for (std::int64_t segment = first; segment < last; ++segment) {
            T* row = to + segment * width;
            const bool empty = at == id + ids.size() || *at != segment;
            std::fill(row, row + width, empty && zero_ ? T(0) : lowest<T>());
            for (; at != id + ids.size() && *at == segment; ++at) raise(row, from + (at - id) * width, width);
          }
        });
      });
    });
  }

 private:
  bool zero_;
};

}  // namespace

const Op& segment_max() {
  static const Op op = {
      "SegmentMax",
      {{"data"}, {"segment_ids"}, {"num_segments", true}},
      {{"output"}},
      {Attribute::string("fill_mode").one_of({"ZERO", "LOWEST"})},
      [] {
        std::vector<Signature> all;
        for (const Type type : numeric_types()) {
          for (const Type id : {Type::int32, Type::int64}) all.push_back({{type, id, id}, {type}});
        }
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<SegmentMax>(info); },
      nullptr,  // the number of segments is only known at run time
  };
  return op;
}

}  // namespace specops
