// What an operator's file is written against: its inputs and outputs as typed views, errors as exceptions, ORT's thread
// pool, and the description `Op` from which registration.cc makes what ORT asks for. An example:
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
// and `times()` is added to ops.h. No kernel keeps state between calls: one may run in several threads at once.
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

// An error where a tensor has not the element type that is asked for.
inline void check_type(Type given, Type wanted) {
  if (given != wanted) fail("element type ", name(given), " where ", name(wanted), " was expected");
}

// Calls `body(Tag<T>())` for the T among `Types` that `type` names.
template <class... Types, class Body>
void dispatch(Type type, Body&& body) {
  if (!((type == type_of<Types>() ? (body(Tag<Types>()), true) : false) || ...)) {
    fail("element type ", name(type), " is not supported");
  }
}

// --------------------------------------------------------------------------------------------------------- tensors

using Shape = std::vector<std::int64_t>;

// The number of elements; an error when it does not fit an int64.
std::int64_t element_count(const Shape& shape);
std::string to_string(const Shape& shape);  // "[2, 3]"

// All strings of a tensor, copied into one buffer (string_tensor.h reads them in place where that is possible).
class Strings {
 public:
  std::size_t size() const { return begins_.size() - 1; }
  std::string_view operator[](std::size_t i) const {
    return {bytes_.get() + begins_[i], begins_[i + 1] - begins_[i]};
  }
  // The whole buffer; string i is [begins()[i], begins()[i + 1]) of it.
  const char* bytes() const { return bytes_.get(); }
  const std::vector<std::size_t>& begins() const { return begins_; }

 private:
  friend class Input;
  std::unique_ptr<char[]> bytes_;
  std::vector<std::size_t> begins_;
};

class Input {
 public:
  Input() = default;  // an input left out
  Input(const Runtime& runtime, const abi::OrtValue* value);

  bool present() const { return value_ != nullptr; }
  // Left out, or empty: what stands for "absent" where every input must be given.
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
  // For what the views above do not offer.
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

// The one value of a scalar or one-element integer input (int32 or int64).
std::int64_t scalar(const Input& input, const char* input_name);

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
  Input input(std::size_t index) const;  // not present() where the node leaves it out
  std::vector<Input> inputs(std::size_t first, std::size_t count) const;
  // An error where the inputs do not justify so many elements (check_size).
  Output output(std::size_t index, const Shape& shape);
  // An error where `what`, which a run makes, has more than most_elements and than most_growth times those of the inputs:
  // a few numbers in a node shall not take all memory.
  void check_size(const char* what, std::int64_t elements) const;

  // Into how many pieces work is worth dividing.
  static std::int64_t most_pieces();

  // body(i) for every i in [0, count), on ORT's threads, in any order; the first exception is thrown on.
  template <class Body>
  void parallel_for(std::size_t count, const Body& body) const {
    if (count == 0) return;
    if (count == 1) return body(std::size_t{0});
    run_parallel(
        count, [](const void* data, std::size_t i) { (*static_cast<const Body*>(data))(i); }, &body);
  }

  // body(begin, end) over pieces of [0, total), each of at least `grain` where there are that many.
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

// A node when the session is made: its attributes, and what is known of its inputs.
class KernelInfo : public Attributes {
 public:
  KernelInfo(const Runtime& runtime, const abi::OrtKernelInfo* info, const Op& op);

  Type input_type(std::size_t index) const;  // undefined where the node leaves the input out
  // The input's value where it is a constant of the graph (its data live as long as the session).
  std::optional<Input> constant_input(std::size_t index) const;
  // `count` inputs from `first` on, those left out not present(); nothing where one of them is no constant.
  std::optional<std::vector<Input>> constant_inputs(std::size_t first, std::size_t count) const;

 private:
  const Runtime& runtime_;
  const abi::OrtKernelInfo* info_;
};

// ------------------------------------------------------------------------------------------------- shape inference

// A dimension is known (value >= 0), or named, or neither.
struct Dimension {
  std::int64_t value = -1;
  std::string symbol;
};
using SymbolicShape = std::vector<Dimension>;

// A node while the graph is resolved. Must not throw for a graph that is wrong: the run will say what is.
class ShapeInference {
 public:
  ShapeInference(const abi::Api& api, const abi::OrtShapeInferContext* context);

  Type type(std::size_t index) const;  // undefined where the input is left out
  // Empty where the rank is unknown. A scalar looks the same: ORT does not tell them apart in version 17.
  SymbolicShape shape(std::size_t index) const;
  // Says nothing unless every dimension is known or named: ORT would take the rest for the number -1.
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
  // Types that go with every signature, which says Type::undefined then. Fewer signatures make sessions sooner: ORT
  // compares each with all.
  std::vector<Type> any_of = {};
};

// The types of all inputs and outputs in one combination that the op is there for.
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
};

}  // namespace specops
