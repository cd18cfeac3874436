// The interface for operator files: inputs and outputs as typed views, errors as exceptions, ORT's thread pool, and the
// description `Op` from which registration.cc creates ORT's custom ops. An example:
//
//   class Times : public Kernel {
//    public:
//     explicit Times(const KernelInfo& info) : factor_(info.integer("factor")) {}
//
//     void compute(Context& context) const override {
//       const Input x = context.input(0);
//       Output y = context.output(0, x.shape());
//       dispatch<float, double>(x.type(), [&](auto tag) {
//         using T = typename decltype(tag)::type;
//         const T factor = static_cast<T>(factor_);
//         const T* from = x.data<T>();
//         T* to = y.data<T>();
//         for (std::int64_t i = 0; i < x.size(); ++i) to[i] = factor * from[i];
//       });
//     }
//
//    private:
//     std::int64_t factor_;
//   };
//
//   const Op& times() {
//     static const Op op = {
//         "Times",
//         {{"x"}},                                                                   // inputs
//         {{"y"}},                                                                   // outputs
//         {Attribute::integer("factor", 2).within(0, 1000)},                         // attributes
//         {{{Type::float32}, {Type::float32}}, {{Type::float64}, {Type::float64}}},  // signatures
//         [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<Times>(info); },
//         [](ShapeInference& graph) { graph.set_output(0, graph.type(0), graph.shape(0)); },
//     };
//     return op;
//   }
//
// `times()` is then added to ops.h. Kernels have no state between calls, because one kernel may run in several threads at
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "attributes.h"
#include "errors.h"
#include "float16.h"
#include "runtime.h"

namespace specops {

// ----------------------------------------------------------------------------------------------------------- types

enum class Type : int {
  undefined = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED,
  float32 = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
  uint8 = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
  int8 = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
  uint16 = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
  int16 = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
  int32 = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
  int64 = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
  string = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
  boolean = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
  float16 = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
  float64 = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
  uint32 = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
  uint64 = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
  bfloat16 = abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
};

const char* name(Type type);

template <class T>
constexpr Type type_of() {
  if constexpr (std::is_same_v<T, float>) return Type::float32;
  if constexpr (std::is_same_v<T, double>) return Type::float64;
  if constexpr (std::is_same_v<T, Float16>) return Type::float16;
  if constexpr (std::is_same_v<T, BFloat16>) return Type::bfloat16;
  if constexpr (std::is_same_v<T, bool>) return Type::boolean;
  if constexpr (std::is_same_v<T, std::int8_t>) return Type::int8;
  if constexpr (std::is_same_v<T, std::int16_t>) return Type::int16;
  if constexpr (std::is_same_v<T, std::int32_t>) return Type::int32;
  if constexpr (std::is_same_v<T, std::int64_t>) return Type::int64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return Type::uint8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return Type::uint16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return Type::uint32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return Type::uint64;
  return Type::undefined;
}

template <class T>
struct Tag {
  using type = T;
};

// Throws if a tensor does not have the requested element type.
inline void check_type(Type given, Type wanted) {
  if (given != wanted) fail("an input has the element type ", name(given), "; expected ", name(wanted));
}

// Calls `body(Tag<T>())` for the T in `Types` that `type` names.
template <class... Types, class Body>
void dispatch(Type type, Body&& body) {
  if (!((type == type_of<Types>() ? (body(Tag<Types>()), true) : false) || ...)) {
    fail("element type ", name(type), " is not supported");
  }
}

// --------------------------------------------------------------------------------------------------------- tensors

using Shape = std::vector<std::int64_t>;

// The number of elements; throws if it does not fit an int64.
std::int64_t element_count(const Shape& shape);
std::string to_string(const Shape& shape);  // "[2, 3]"

// All strings of a tensor, copied into one buffer (string_tensor.h reads them in place if possible).
class Strings {
 public:
  std::size_t size() const { return begins_.size() - 1; }
  std::string_view operator[](std::size_t i) const {
    return {bytes_.get() + begins_[i], begins_[i + 1] - begins_[i]};
  }
  // The whole buffer; string i is [begins()[i], begins()[i + 1]).
  const char* bytes() const { return bytes_.get(); }
  const std::vector<std::size_t>& begins() const { return begins_; }

 private:
  friend class Input;
  std::unique_ptr<char[]> bytes_;
  std::vector<std::size_t> begins_;
};

class Input {
 public:
  Input() = default;  // an omitted input
  Input(const Runtime& runtime, const abi::OrtValue* value);

  bool present() const { return value_ != nullptr; }
  // Whether the input is omitted, or empty, which represents "absent" if every input must be given.
  bool absent() const { return value_ == nullptr || size_ == 0; }
  Type type() const { return type_; }
  const Shape& shape() const { return shape_; }
  std::int64_t size() const { return size_; }
  template <class T>
  const T* data() const {
    check_type(type_, type_of<T>());
    return static_cast<const T*>(data_);
  }
  const void* bytes() const { return data_; }
  Strings strings() const;
  // For access beyond the views above.
  const Runtime& runtime() const { return *runtime_; }
  const abi::OrtValue* value() const { return value_; }

 private:
  const Runtime* runtime_ = nullptr;
  const abi::OrtValue* value_ = nullptr;
  const void* data_ = nullptr;
  Type type_ = Type::undefined;
  Shape shape_;
  std::int64_t size_ = 0;
};

// The value of a scalar or one-element integer input (int32 or int64).
std::int64_t scalar(const Input& input, const char* input_name);

// The input, which must have one element.
inline const Input& one_element(const Input& input, const char* name) {
  if (input.size() != 1) fail(name, " has the shape ", to_string(input.shape()), " instead of []");
  return input;
}

class Output {
 public:
  Output(const abi::Api& api, abi::OrtValue* value);

  template <class T>
  T* data() {
    check_type(type_, type_of<T>());
    return static_cast<T*>(bytes());
  }
  void* bytes();
  void set_string(std::size_t index, std::string_view value);

 private:
  const abi::Api* api_;
  abi::OrtValue* value_;
  Type type_;
};

// --------------------------------------------------------------------------------------------------------- kernels

// onnx_specops/domain.py has the same limits.
constexpr std::int64_t most_elements = std::int64_t{1} << 28, most_growth = 1024;

// One run of a node.
class Context {
 public:
  Context(const Runtime& runtime, abi::OrtKernelContext* context);

  std::size_t input_count() const { return input_count_; }
  Input input(std::size_t index) const;  // not present() if the node omits it
  std::vector<Input> inputs(std::size_t first, std::size_t count) const;
  // Throws if the inputs do not justify the number of elements (check_size).
  Output output(std::size_t index, const Shape& shape);
  // Throws if `what`, an intermediate or output of the run, has more than most_elements elements and more than most_growth
  // times those of the inputs. It keeps small nodes from exhausting the memory.
  void check_size(const char* what, std::int64_t elements) const;

  // The maximum number of pieces into which work is divided: some for each hardware thread.
  static std::int64_t most_pieces();
  static constexpr std::int64_t pieces_of_thread = 4;

  // Calls body(i) for every i in [0, count) on ORT's threads, in any order; rethrows the first exception.
  template <class Body>
  void parallel_for(std::size_t count, const Body& body) const {
    if (count == 0) return;
    if (count == 1) return body(std::size_t{0});
    run_parallel(
        count, [](const void* data, std::size_t i) { (*static_cast<const Body*>(data))(i); }, &body);
  }

  // Calls body(begin, end) for pieces of [0, total), each of at least `grain` if possible.
  template <class Body>
  void parallel_ranges(std::int64_t total, std::int64_t grain, const Body& body) const {
    if (total <= 0) return;
    const std::int64_t most = most_pieces();
    const std::int64_t wanted = grain > 0 ? total / grain : total;
    const std::int64_t pieces = wanted < 1 ? 1 : (wanted < most ? wanted : most);
    const std::int64_t step = total / pieces, rest = total % pieces;
    parallel_for(static_cast<std::size_t>(pieces), [&](std::size_t i) {
      const auto piece = static_cast<std::int64_t>(i);
      const std::int64_t begin = piece * step + (piece < rest ? piece : rest);
      body(begin, begin + step + (piece < rest ? 1 : 0));
    });
  }

 private:
  void run_parallel(std::size_t count, void (*body)(const void*, std::size_t), const void* data) const;

  const Runtime& runtime_;
  abi::OrtKernelContext* context_;
  std::size_t input_count_ = 0;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void compute(Context& context) const = 0;
};

struct Op;

// A node when the session is created: its attributes, and the facts about its inputs.
class KernelInfo : public Attributes {
 public:
  KernelInfo(const Runtime& runtime, const abi::OrtKernelInfo* info, const Op& op);

  Type input_type(std::size_t index) const;  // undefined if the node omits the input
  // The input's value if it is a constant of the graph. Its data exist as long as the session.
  std::optional<Input> constant_input(std::size_t index) const;
  // `count` inputs from `first` on, omitted ones not present(); nothing if one is not constant.
  std::optional<std::vector<Input>> constant_inputs(std::size_t first, std::size_t count) const;

 private:
  const Runtime& runtime_;
  const abi::OrtKernelInfo* info_;
};

// ------------------------------------------------------------------------------------------------- shape inference

// A dimension that is known (value >= 0), named, or unknown.
struct Dimension {
  std::int64_t value = -1;
  std::string symbol;
};
using SymbolicShape = std::vector<Dimension>;

// A node during graph resolution. Must not throw for invalid graphs, because the run reports errors.
class ShapeInference {
 public:
  ShapeInference(const abi::Api& api, const abi::OrtShapeInferContext* context);

  Type type(std::size_t index) const;  // undefined if the input is omitted
  // Empty if the rank is unknown. Scalars are also empty: ORT does not distinguish them in version 17.
  SymbolicShape shape(std::size_t index) const;
  // Does nothing unless every dimension is known or named, because ORT would use -1 for unknown ones.
  void set_output(std::size_t index, Type type, const SymbolicShape& shape);

 private:
  const abi::Api& api_;
  const abi::OrtShapeInferContext* context_;
  std::size_t input_count_ = 0;

  const abi::OrtTensorTypeAndShapeInfo* find(std::size_t index) const;
};

// ------------------------------------------------------------------------------------------------- the description

struct Parameter {
  const char* name;
  bool optional = false;
  // Types for inputs whose signature has Type::undefined. Fewer signatures shorten session creation: ORT compares all of
  // them in pairs.
  std::vector<Type> any_of = {};
};

// A supported combination of the types of all inputs and outputs.
struct Signature {
  std::vector<Type> inputs;
  std::vector<Type> outputs;
};

struct Op {
  const char* name;
  std::vector<Parameter> inputs;
  std::vector<Parameter> outputs;
  std::vector<Attribute> attributes;
  std::vector<Signature> signatures;
  std::unique_ptr<Kernel> (*create)(const KernelInfo& info);
  void (*infer)(ShapeInference& graph);  // may be null
  std::vector<Product> products = {};
  // Whether the kernel is faster than ONNX Runtime's for the function body on this processor; null if it always is. Other
  // kernels are not registered, so the body runs.
  bool (*is_fast)() = nullptr;
};

}  // namespace specops
