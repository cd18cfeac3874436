#include "op.h"

#include <atomic>
#include <cstring>
#include <limits>
#include <thread>

namespace specops {

namespace {

class TypeAndShape {
 public:
  TypeAndShape(const abi::Api& api, abi::OrtTensorTypeAndShapeInfo* info) : api_(api), info_(info) {}
  TypeAndShape(const TypeAndShape&) = delete;
  TypeAndShape& operator=(const TypeAndShape&) = delete;
  ~TypeAndShape() { api_.ReleaseTensorTypeAndShapeInfo(info_); }
  abi::OrtTensorTypeAndShapeInfo* get() const { return info_; }

 private:
  const abi::Api& api_;
  abi::OrtTensorTypeAndShapeInfo* info_;
};

// A tensor's element type, and its shape if requested.
Type type_and_shape(const abi::Api& api, const abi::OrtValue* value, Shape* shape) {
  abi::ONNXTensorElementDataType type{};
  std::size_t rank = 0;
  if (api.GetTensorElementTypeAndShapeDataReference != nullptr) {  // otherwise five calls and two copies
    const std::int64_t* dimensions = nullptr;
    check(api, api.GetTensorElementTypeAndShapeDataReference(value, &type, &dimensions, &rank));
    if (shape != nullptr && rank != 0) shape->assign(dimensions, dimensions + rank);
    return static_cast<Type>(type);
  }
  abi::OrtTensorTypeAndShapeInfo* raw = nullptr;
  check(api, api.GetTensorTypeAndShape(value, &raw));
  const TypeAndShape info(api, raw);
  check(api, api.GetTensorElementType(info.get(), &type));
  if (shape != nullptr) {
    check(api, api.GetDimensionsCount(info.get(), &rank));
    shape->resize(rank);
    if (rank != 0) check(api, api.GetDimensions(info.get(), shape->data(), rank));
  }
  return static_cast<Type>(type);
}

}  // namespace

const char* name(Type type) {
  switch (type) {
    case Type::float32: return "float32";
    case Type::float64: return "float64";
    case Type::float16: return "float16";
    case Type::bfloat16: return "bfloat16";
    case Type::boolean: return "bool";
    case Type::string: return "string";
    case Type::int8: return "int8";
    case Type::int16: return "int16";
    case Type::int32: return "int32";
    case Type::int64: return "int64";
    case Type::uint8: return "uint8";
    case Type::uint16: return "uint16";
    case Type::uint32: return "uint32";
    case Type::uint64: return "uint64";
    case Type::undefined: break;
  }
  return "undefined";
}

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t dimension : shape) {
    if (dimension == 0) return 0;
  }
  for (const std::int64_t dimension : shape) {
    if (dimension < 0 || count > std::numeric_limits<std::int64_t>::max() / dimension) {
      fail("a tensor of shape ", to_string(shape), " is not possible");
    }
    count *= dimension;
  }
  return count;
}

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) out += ", ";
    out += std::to_string(shape[i]);
  }
  return out + "]";
}

Input::Input(const Runtime& runtime, const abi::OrtValue* value) : runtime_(&runtime), value_(value) {
  if (value == nullptr) return;
  const abi::Api& api = runtime;
  type_ = type_and_shape(api, value, &shape_);
  size_ = element_count(shape_);
  if (type_ != Type::string) {
    void* data = nullptr;
    check(api, api.GetTensorMutableData(const_cast<abi::OrtValue*>(value), &data));
    data_ = data;
  }
}

Strings Input::strings() const {
  check_type(type_, Type::string);
  const abi::Api& api = *runtime_;
  Strings out;
  const auto count = static_cast<std::size_t>(size_);
  std::size_t bytes = 0;
  check(api, api.GetStringTensorDataLength(value_, &bytes));
  out.bytes_.reset(new char[bytes + 1]);
  out.begins_.resize(count + 1);
  if (count != 0) {
    check(api, api.GetStringTensorContent(value_, out.bytes_.get(), bytes, out.begins_.data(), count));
  }
  out.begins_[count] = bytes;
  return out;
}

std::int64_t scalar(const Input& input, const char* input_name) {
  if (!input.present() || input.size() != 1 || input.shape().size() > 1) {
    fail(input_name, " has the shape ", to_string(input.shape()), "; expected a scalar or [1]");
  }
  if (input.type() == Type::int32) return *input.data<std::int32_t>();
  if (input.type() == Type::int64) return *input.data<std::int64_t>();
  fail(input_name, " has the element type ", name(input.type()), "; expected int32 or int64");
}

Output::Output(const abi::Api& api, abi::OrtValue* value)
    : api_(&api), value_(value), type_(type_and_shape(api, value, nullptr)) {}

void* Output::bytes() {
  void* data = nullptr;
  check(*api_, api_->GetTensorMutableData(value_, &data));
  return data;
}

void Output::set_string(std::size_t index, std::string_view value) {
  char* buffer = nullptr;
  check(*api_, api_->GetResizedStringTensorElementBuffer(value_, index, value.size(), &buffer));
  if (!value.empty()) std::memcpy(buffer, value.data(), value.size());
}

Context::Context(const Runtime& runtime, abi::OrtKernelContext* context) : runtime_(runtime), context_(context) {
  check(runtime_, runtime_.KernelContext_GetInputCount(context_, &input_count_));
}

Input Context::input(std::size_t index) const {
  if (index >= input_count_) return {};
  const abi::OrtValue* value = nullptr;
  check(runtime_, runtime_.KernelContext_GetInput(context_, index, &value));
  return Input(runtime_, value);
}

std::vector<Input> Context::inputs(std::size_t first, std::size_t count) const {
  std::vector<Input> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(input(first + i));
  return all;
}

void Context::check_size(const char* what, std::int64_t elements) const {
  if (elements <= most_elements) return;
  std::int64_t given = 0;
  for (std::size_t i = 0; i < input_count_; ++i) given += input(i).size();
  if ((elements - 1) / most_growth < given) return;
  fail(what, " would have ", elements, " elements, more than ", most_elements, " and than ", most_growth,
       " times as many as the inputs");
}

Output Context::output(std::size_t index, const Shape& shape) {
  check_size("output", element_count(shape));
  abi::OrtValue* value = nullptr;
  check(runtime_, runtime_.KernelContext_GetOutput(context_, index, shape.data(), shape.size(), &value));
  if (value == nullptr) fail("output ", index, " is missing");
  return Output(runtime_, value);
}

std::int64_t Context::most_pieces() {
  // ORT does not report its number of threads. A few pieces per hardware thread balance unequal work.
  static const std::int64_t most = [] {
    const unsigned threads = std::thread::hardware_concurrency();
    return static_cast<std::int64_t>(threads == 0 ? 8 : threads) * pieces_of_thread;
  }();
  return most;
}

void Context::run_parallel(std::size_t count, void (*body)(const void*, std::size_t), const void* data) const {
  struct Work {
    void (*body)(const void*, std::size_t);
    const void* data;
    std::atomic<bool> failed{false};
    std::exception_ptr error;  // written by the thread that set `failed`
  } work;
  work.body = body;
  work.data = data;
  // Exceptions must not propagate through ORT's threads.
  const auto call = [](void* raw, std::size_t i) {
    Work& shared = *static_cast<Work*>(raw);
    if (shared.failed.load(std::memory_order_relaxed)) return;
    try {
      shared.body(shared.data, i);
    } catch (...) {
      if (!shared.failed.exchange(true)) shared.error = std::current_exception();
    }
  };
  check(runtime_, runtime_.KernelContext_ParallelFor(context_, call, count, 0, &work));
  if (work.error) std::rethrow_exception(work.error);
}

KernelInfo::KernelInfo(const Runtime& runtime, const abi::OrtKernelInfo* info, const Op& op)
    : Attributes(runtime, info, op.attributes, op.products), runtime_(runtime), info_(info) {}

Type KernelInfo::input_type(std::size_t index) const {
  abi::OrtTypeInfo* info = nullptr;
  if (!succeeded(runtime_, runtime_.KernelInfo_GetInputTypeInfo(info_, index, &info))) return Type::undefined;
  const abi::OrtTensorTypeAndShapeInfo* tensor = nullptr;
  abi::ONNXTensorElementDataType type{};
  const bool known = succeeded(runtime_, runtime_.CastTypeInfoToTensorInfo(info, &tensor)) && tensor != nullptr &&
                     succeeded(runtime_, runtime_.GetTensorElementType(tensor, &type));
  runtime_.ReleaseTypeInfo(info);
  return known ? static_cast<Type>(type) : Type::undefined;
}

std::optional<Input> KernelInfo::constant_input(std::size_t index) const {
  int is_constant = 0;
  const abi::OrtValue* value = nullptr;
  if (!succeeded(runtime_, runtime_.KernelInfoGetConstantInput_tensor(info_, index, &is_constant, &value))) return {};
  if (is_constant == 0 || value == nullptr) return {};
  return Input(runtime_, value);
}

std::optional<std::vector<Input>> KernelInfo::constant_inputs(std::size_t first, std::size_t count) const {
  std::vector<Input> all;
  for (std::size_t i = first; i < first + count; ++i) {
    if (const auto constant = constant_input(i)) {
      all.push_back(*constant);
    } else if (input_type(i) == Type::undefined) {
      all.emplace_back();
    } else {
      return std::nullopt;
    }
  }
  return all;
}

ShapeInference::ShapeInference(const abi::Api& api, const abi::OrtShapeInferContext* context)
    : api_(api), context_(context) {
  check(api_, api_.ShapeInferContext_GetInputCount(context_, &input_count_));
}

const abi::OrtTensorTypeAndShapeInfo* ShapeInference::find(std::size_t index) const {
  if (index >= input_count_) return nullptr;
  abi::OrtTensorTypeAndShapeInfo* info = nullptr;  // owned by ORT, not released
  return succeeded(api_, api_.ShapeInferContext_GetInputTypeShape(context_, index, &info)) ? info : nullptr;
}

Type ShapeInference::type(std::size_t index) const {
  const abi::OrtTensorTypeAndShapeInfo* info = find(index);
  if (info == nullptr) return Type::undefined;
  abi::ONNXTensorElementDataType type{};
  check(api_, api_.GetTensorElementType(info, &type));
  return static_cast<Type>(type);
}

SymbolicShape ShapeInference::shape(std::size_t index) const {
  const abi::OrtTensorTypeAndShapeInfo* info = find(index);
  if (info == nullptr) return {};
  std::size_t rank = 0;
  check(api_, api_.GetDimensionsCount(info, &rank));
  SymbolicShape shape(rank);
  if (rank == 0) return shape;
  std::vector<std::int64_t> values(rank, -1);
  std::vector<const char*> symbols(rank, nullptr);
  check(api_, api_.GetDimensions(info, values.data(), rank));
  check(api_, api_.GetSymbolicDimensions(info, symbols.data(), rank));
  for (std::size_t i = 0; i < rank; ++i) {
    shape[i].value = values[i];
    if (symbols[i] != nullptr) shape[i].symbol = symbols[i];
  }
  return shape;
}

void ShapeInference::set_output(std::size_t index, Type type, const SymbolicShape& shape) {
  if (shape.empty() || type == Type::undefined) return;
  for (const Dimension& dimension : shape) {
    if (dimension.value < 0 && dimension.symbol.empty()) return;
  }
  abi::OrtTensorTypeAndShapeInfo* raw = nullptr;
  check(api_, api_.CreateTensorTypeAndShapeInfo(&raw));
  const TypeAndShape info(api_, raw);
  std::vector<std::int64_t> values;
  std::vector<const char*> symbols;
  for (const Dimension& dimension : shape) {
    values.push_back(dimension.value);
    symbols.push_back(dimension.symbol.c_str());
  }
  check(api_, api_.SetTensorElementType(info.get(), static_cast<abi::ONNXTensorElementDataType>(type)));
  check(api_, api_.SetDimensions(info.get(), values.data(), values.size()));
  check(api_, api_.SetSymbolicDimensions(info.get(), symbols.data(), symbols.size()));
  check(api_, api_.ShapeInferContext_SetOutputTypeShape(context_, index, info.get()));
}

}  // namespace specops
