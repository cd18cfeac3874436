#include "string_tensor.h"

#include <cstdlib>
#include <cstring>
#include <memory>

namespace specops {
namespace {

// Whether the objects at `strings`, which ORT created from `expected`, have the layout of this library's std::string.
// Nothing outside of them is read at first: heap-allocated characters are read only after the preceding short strings, which
// are stored inline, have confirmed the layout.
template <std::size_t Count>
bool same_layout(const std::string* strings, const char* const (&expected)[Count]) {
  for (std::size_t i = 0; i < Count; ++i) {
    const std::string_view text = expected[i];
    if (strings[i].size() != text.size()) return false;
    const auto object = reinterpret_cast<std::uintptr_t>(&strings[i]);
    const auto data = reinterpret_cast<std::uintptr_t>(strings[i].data());
    const bool inside = data >= object && data + text.size() <= object + sizeof(std::string);
    if (inside != (i + 1 < Count)) return false;
    if (std::memcmp(strings[i].data(), text.data(), text.size()) != 0) return false;
  }
  return true;
}

}  // namespace

bool has_our_strings(const abi::Api& api) {
  const char* choice = std::getenv("ONNX_SPECOPS_STRINGS");
  if (choice != nullptr && std::string_view(choice) == "api") return false;
  // Four objects of any library's std::string are at least as long as one of this library's.
  static const char* const probes[] = {"", "a", "onnx", "specops",
                                       "a string too long for any library to keep it in the object itself"};
  constexpr std::size_t count = sizeof probes / sizeof *probes;
  abi::OrtAllocator* allocator = nullptr;
  abi::OrtValue* value = nullptr;
  const std::int64_t dimension = count;
  if (!succeeded(api, api.GetAllocatorWithDefaultOptions(&allocator)) ||
      !succeeded(api, api.CreateTensorAsOrtValue(allocator, &dimension, 1, abi::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
                                                 &value))) {
    return false;
  }
  void* data = nullptr;
  const bool same = succeeded(api, api.FillStringTensor(value, probes, count)) &&
                    succeeded(api, api.GetTensorMutableData(value, &data)) && data != nullptr &&
                    same_layout(static_cast<const std::string*>(data), probes);
  api.ReleaseValue(value);
  return same;
}

const std::string* strings_in_place(const Input& input) {
  const Runtime& runtime = input.runtime();
  if (!runtime.our_strings || input.type() != Type::string) return nullptr;
  void* data = nullptr;
  check(runtime, runtime.GetTensorMutableData(const_cast<abi::OrtValue*>(input.value()), &data));
  return static_cast<const std::string*>(data);
}

bool StringElements::equal(std::size_t index, std::string_view text) const {
  const abi::Api& api = input_.runtime();
  std::size_t size = 0;
  check(api, api.GetStringTensorElementLength(input_.value(), index, &size));
  if (size != text.size()) return false;
  char near[256];
  std::unique_ptr<char[]> far;
  char* bytes = near;
  if (size > sizeof near) {
    far.reset(new char[size]);
    bytes = far.get();
  }
  check(api, api.GetStringTensorElement(input_.value(), size, index, bytes));
  return std::memcmp(bytes, text.data(), size) == 0;
}

std::string quoted(std::string_view text) {
  constexpr std::size_t most = 60;
  static const char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte >= 0x20 && byte < 0x7F) {
      out += c;
    } else {
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out + (text.size() > most ? "...\"" : "\"");
}

}  // namespace specops
