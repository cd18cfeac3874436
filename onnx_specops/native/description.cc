#include "description.h"

#include "compressed.h"
#include "pcre2_abi.h"
#include "quantized_conv.h"
#include "simd.h"

namespace specops {
namespace {

#if defined(SPECOPS_VECTORS)
constexpr const char* vectors = "compiler";
#else
constexpr const char* vectors = "loops";
#endif
#if defined(SPECOPS_HAVE_TARGET_CLONES)
constexpr const char* clones = "true";
#else
constexpr const char* clones = "false";
#endif

std::string quoted(std::string_view text) {
  static const char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20) {
      out += {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <class Items, class Describe>
std::string list(const Items& items, const Describe& describe_one) {
  std::string out;
  for (const auto& item : items) out.append(out.empty() ? "" : ", ").append(describe_one(item));
  return "[" + out + "]";
}

std::string of_type(Type type) {
  if (type == Type::undefined) return "null";
  return quoted(type == Type::float32 ? "float" : type == Type::float64 ? "double" : name(type));
}

std::string of_parameter(const Parameter& parameter) {
  return text("{\"name\": ", quoted(parameter.name), ", \"optional\": ", parameter.optional ? "true" : "false",
              ", \"any_of\": ", list(parameter.any_of, of_type), "}");
}

std::string of_value(const Attribute::Value& value) {
  if (const auto* string = std::get_if<std::string>(&value)) return quoted(*string);
  if (const auto* number = std::get_if<float>(&value)) return text(static_cast<double>(*number));
  return text(std::get<std::int64_t>(value));
}

std::string of_attribute(const Attribute& attribute) {
  static const char* const types[] = {"int", "float", "string"};
  std::string out = text("{\"name\": ", quoted(attribute.name), ", \"type\": ", quoted(types[int(attribute.kind)]));
  if (attribute.otherwise) out += text(", \"default\": ", of_value(*attribute.otherwise));
  if (attribute.least != Attribute::lowest) out += text(", \"least\": ", attribute.least);
  if (attribute.most != Attribute::highest) out += text(", \"most\": ", attribute.most);
  if (!attribute.choices.empty()) out += text(", \"choices\": ", list(attribute.choices, quoted));
  return out + "}";
}

std::string of_product(const Product& product) {
  return text("{\"factors\": ", list(product.factors, quoted), ", \"most\": ", product.most, "}");
}

std::string of_signature(const Signature& signature) {
  return text("{\"inputs\": ", list(signature.inputs, of_type), ", \"outputs\": ", list(signature.outputs, of_type), "}");
}

std::string of_op(const Op* op) {
  return text("{\"name\": ", quoted(op->name), ", \"inputs\": ", list(op->inputs, of_parameter),
              ", \"outputs\": ", list(op->outputs, of_parameter), ", \"attributes\": ",
              list(op->attributes, of_attribute), ", \"registered\": ",
              op->is_fast == nullptr || op->is_fast() ? "true" : "false", ", \"products\": ", list(op->products, of_product),
              ", \"signatures\": ", list(op->signatures, of_signature), "}");
}

}  // namespace

std::string describe(const std::vector<const Op*>& ops) {
  return text("{\"most_elements\": ", most_elements, ", \"most_growth\": ", most_growth, ", \"vectors\": ", quoted(vectors),
              ", \"clones\": ", clones, ", \"products\": ", quoted(compressed::kernels().name),
              ", \"convolutions\": ", quoted(byte_conv::kernels().name), ", \"regular_expressions\": ",
              quoted(pcre2::library().description), ", \"operators\": ", list(ops, of_op), "}");
}

}  // namespace specops
