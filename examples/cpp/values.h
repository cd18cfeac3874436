// Inputs and outputs of a session by name, and their text representation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <onnxruntime_cxx_api.h>

namespace examples {

using Dims = std::vector<std::int64_t>;

// Named values of a run, in order.
class Values {
 public:
  // Numbers, which are copied: the value owns its memory.
  template <class T>
  void add(std::string name, const Dims& dims, const std::vector<T>& numbers) {
    Ort::Value value = Ort::Value::CreateTensor<T>(allocator_, dims.data(), dims.size());
    if (value.GetTensorTypeAndShapeInfo().GetElementCount() != numbers.size()) throw std::invalid_argument(name);
    std::memcpy(value.GetTensorMutableData<T>(), numbers.data(), numbers.size() * sizeof(T));
    add(std::move(name), std::move(value));
  }

  // Strings in UTF-8.
  void add(std::string name, const Dims& dims, const std::vector<std::string>& strings) {
    Ort::Value value =
        Ort::Value::CreateTensor(allocator_, dims.data(), dims.size(), ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
    std::vector<const char*> pointers;
    for (const std::string& string : strings) pointers.push_back(string.c_str());
    value.FillStringTensor(pointers.data(), pointers.size());
    add(std::move(name), std::move(value));
  }

  void add(std::string name, Ort::Value value) {
    names_.push_back(std::move(name));
    values_.push_back(std::move(value));
  }

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<Ort::Value>& values() const { return values_; }
  std::vector<Ort::Value>& values() { return values_; }

 private:
  Ort::AllocatorWithDefaultOptions allocator_;
  std::vector<std::string> names_;
  std::vector<Ort::Value> values_;
};

inline std::vector<const char*> pointers(const std::vector<std::string>& names) {
  std::vector<const char*> result;
  for (const std::string& name : names) result.push_back(name.c_str());
  return result;
}

// One run with these inputs and outputs.
inline Values run(Ort::Session& session, const Values& inputs, const std::vector<std::string>& outputs) {
  const auto input_names = pointers(inputs.names()), output_names = pointers(outputs);
  auto results = session.Run(Ort::RunOptions{nullptr}, input_names.data(), inputs.values().data(), input_names.size(),
                             output_names.data(), output_names.size());
  Values values;
  for (std::size_t i = 0; i < outputs.size(); ++i) values.add(outputs[i], std::move(results[i]));
  return values;
}

template <class T>
void print_numbers(const Ort::Value& value, std::size_t count) {
  const T* numbers = value.GetTensorData<T>();
  for (std::size_t i = 0; i < count; ++i) std::cout << '\t' << numbers[i];
}

// Prints a line for each value: its name, dimensions and elements, separated by tabs.
inline void print(const Values& values) {
  std::cout.precision(9);
  for (std::size_t i = 0; i < values.names().size(); ++i) {
    const Ort::Value& value = values.values()[i];
    const auto info = value.GetTensorTypeAndShapeInfo();
    const std::size_t count = info.GetElementCount();
    std::cout << values.names()[i] << '\t';
    const Dims dims = info.GetShape();
    for (std::size_t axis = 0; axis < dims.size(); ++axis) std::cout << (axis ? "x" : "") << dims[axis];
    switch (info.GetElementType()) {
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: print_numbers<float>(value, count); break;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: print_numbers<std::int32_t>(value, count); break;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: print_numbers<std::int64_t>(value, count); break;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING:
        for (std::size_t k = 0; k < count; ++k) std::cout << '\t' << value.GetStringTensorElement(k);
        break;
      default: std::cout << "\t(type " << info.GetElementType() << ")";
    }
    std::cout << '\n';
  }
}

}  // namespace examples
