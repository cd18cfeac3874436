// Floats in the type for arithmetic: float64 is unchanged, other types become float32.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "op.h"

namespace specops {

// Calls `body(Tag<double>())` for float64, `body(Tag<float>())` for other float types.
template <class Body>
void dispatch_wide(Type type, Body&& body) {
  if (type == Type::float64) {
    body(Tag<double>());
  } else {
    body(Tag<float>());
  }
}

// An input's elements as A (float or double), without a copy if they have that type.
template <class A>
class Numbers {
 public:
  explicit Numbers(const Input& input) : size_(input.size()) {
    if (!input.present() || size_ == 0) return;
    if (input.type() == type_of<A>()) {
      data_ = input.data<A>();
      return;
    }
    if constexpr (std::is_same_v<A, float>) {
      dispatch<Float16, BFloat16>(input.type(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* from = input.data<T>();
        copy_.resize(static_cast<std::size_t>(size_));
        for (std::int64_t i = 0; i < size_; ++i) copy_[static_cast<std::size_t>(i)] = static_cast<float>(from[i]);
      });
      data_ = copy_.data();
    } else {
      data_ = input.data<A>();  // throws for other types
    }
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  const A* data() const { return data_; }
  std::int64_t size() const { return size_; }
  A operator[](std::int64_t i) const { return data_[i]; }

 private:
  const A* data_ = nullptr;
  std::int64_t size_ = 0;
  std::vector<A> copy_;
};

// Calls `body(A* elements)`, which computes the `size` elements of an output of `type`; they are narrowed afterwards.
template <class A, class Body>
void fill_narrow(Output& output, Type type, std::int64_t size, Body&& body) {
  if (type == type_of<A>()) {
    body(output.data<A>());
    return;
  }
  if constexpr (std::is_same_v<A, float>) {
    std::vector<float> elements(static_cast<std::size_t>(size));
    body(elements.data());
    dispatch<Float16, BFloat16>(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* to = output.data<T>();
      for (std::int64_t i = 0; i < size; ++i) to[i] = T(elements[static_cast<std::size_t>(i)]);
    });
  }
}

inline const std::vector<Type>& float_types() {
  static const std::vector<Type> all = {Type::float32, Type::float64, Type::float16, Type::bfloat16};
  return all;
}

inline const std::vector<Type>& numeric_types() {
  static const std::vector<Type> all = {Type::float32, Type::float64, Type::float16, Type::bfloat16,
                                        Type::int8,    Type::int16,   Type::int32,   Type::int64,
                                        Type::uint8,   Type::uint16,  Type::uint32,  Type::uint64};
  return all;
}

template <class Body>
void dispatch_numeric(Type type, Body&& body) {
  dispatch<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
           std::uint16_t, std::uint32_t, std::uint64_t>(type, std::forward<Body>(body));
}

// Converts 16-bit floats to float32 for comparisons; other types are unchanged.
template <class T>
inline T comparable(T value) {
  return value;
}
inline float comparable(Float16 value) { return static_cast<float>(value); }
inline float comparable(BFloat16 value) { return static_cast<float>(value); }

// The value of a scalar or one-element float32 input.
inline float real(const Input& input, const char* input_name) {
  if (!input.present() || input.size() != 1 || input.shape().size() > 1) {
    fail(input_name, " has the shape ", to_string(input.shape()), "; expected a scalar or [1]");
  }
  return *input.data<float>();
}

// The value of a required scalar or one-element integer input.
inline std::int64_t integer(const Input& input, const char* input_name) {
  if (input.size() != 1) fail(input_name, " has ", input.size(), " elements instead of one");
  return scalar(input, input_name);
}

}  // namespace specops
