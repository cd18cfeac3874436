#include "attributes.h"

#include <algorithm>

namespace specops {
namespace {

const char* name(Attribute::Kind kind) {
  switch (kind) {
    case Attribute::Kind::integer: return "an integer";
    case Attribute::Kind::number: return "a float";
    case Attribute::Kind::string: break;
  }
  return "a string";
}

// The value of a node's attribute, or ORT's error message.
struct Reading {
  std::optional<Attribute::Value> value;
  std::string message;
};

class Reader {
 public:
  Reader(const abi::Api& api, const abi::OrtKernelInfo* info) : api_(api), info_(info) {}

  Attribute::Value read(const Attribute& attribute) const {
    Reading reading = ask(attribute.kind, attribute.name);
    if (reading.value) return *std::move(reading.value);
    if (!says_missing(attribute, reading.message)) fail("attribute ", attribute.name, " is not ", name(attribute.kind));
    if (!attribute.otherwise) fail("attribute ", attribute.name, " is missing");
    return *attribute.otherwise;
  }

 private:
  Reading ask(Attribute::Kind kind, const char* name) const {
    switch (kind) {
      case Attribute::Kind::integer: {
        std::int64_t value = 0;
        return result(api_.KernelInfoGetAttribute_int64(info_, name, &value), value);
      }
      case Attribute::Kind::number: {
        float value = 0;
        return result(api_.KernelInfoGetAttribute_float(info_, name, &value), value);
      }
      case Attribute::Kind::string: break;
    }
    std::size_t size = 0;
    if (auto message = failure(api_, api_.KernelInfoGetAttribute_string(info_, name, nullptr, &size))) {
      return {{}, *std::move(message)};
    }
    std::string value(size, '\0');
    check(api_, api_.KernelInfoGetAttribute_string(info_, name, value.data(), &size));
    value.resize(size == 0 ? 0 : size - 1);  // ORT counts the final NUL
    return {std::move(value), {}};
  }

  template <class T>
  Reading result(abi::OrtStatus* status, const T& value) const {
    if (auto message = failure(api_, status)) return {{}, *std::move(message)};
    return {value, {}};
  }

  // ORT has one error code for a missing attribute and for one of another type, so the wording must distinguish them. The
  // wording is obtained by asking for an attribute that no node has.
  bool says_missing(const Attribute& attribute, const std::string& message) const {
    constexpr std::string_view nobodys = "onnx_specops has no attribute of this name";
    std::string expected = ask(attribute.kind, nobodys.data()).message;
    if (const auto at = expected.find(nobodys); at != std::string::npos) expected.replace(at, nobodys.size(), attribute.name);
    return message == expected;
  }

  const abi::Api& api_;
  const abi::OrtKernelInfo* info_;
};

void check_limits(const Attribute& attribute, const Attribute::Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    if (*integer < attribute.least) fail("attribute ", attribute.name, " = ", *integer, " is less than ", attribute.least);
    if (*integer > attribute.most) fail("attribute ", attribute.name, " = ", *integer, " is more than ", attribute.most);
  } else if (const auto* string = std::get_if<std::string>(&value)) {
    const auto& all = attribute.choices;
    if (all.empty() || std::find(all.begin(), all.end(), *string) != all.end()) return;
    constexpr std::size_t most_shown = 60;
    std::string known;
    for (const char* choice : all) known.append(known.empty() ? "" : ", ").append(choice);
    fail("attribute ", attribute.name, " = '", string->substr(0, most_shown), "' is not one of ", known);
  }
}

}  // namespace

Attributes::Attributes(const abi::Api& api, const abi::OrtKernelInfo* info, const std::vector<Attribute>& declared,
                       const std::vector<Product>& products)
    : declared_(declared) {
  const Reader reader(api, info);
  for (const Attribute& attribute : declared) {
    values_.push_back(reader.read(attribute));
    check_limits(attribute, values_.back());
  }
  for (const Product& limit : products) {
    double product = 1;  // exact within the limits
    std::string names;
    for (const char* factor : limit.factors) {
      names.append(names.empty() ? "" : " * ").append(factor);
      product *= static_cast<double>(integer(factor));
    }
    if (product > static_cast<double>(limit.most)) fail(names, " = ", product, " is more than ", limit.most);
  }
}

std::size_t Attributes::find(std::string_view name) const {
  for (std::size_t i = 0; i < declared_.size(); ++i) {
    if (declared_[i].name == name) return i;
  }
  throw std::logic_error(text("the kernel reads the attribute ", name, ", which its operator does not declare"));
}

std::int64_t Attributes::integer(std::string_view name) const { return std::get<std::int64_t>(values_[find(name)]); }

float Attributes::number(std::string_view name) const { return std::get<float>(values_[find(name)]); }

const std::string& Attributes::string(std::string_view name) const { return std::get<std::string>(values_[find(name)]); }

std::size_t Attributes::choice(std::string_view name) const {
  const std::size_t i = find(name);
  const auto& all = declared_[i].choices;
  return static_cast<std::size_t>(std::find(all.begin(), all.end(), std::get<std::string>(values_[i])) - all.begin());
}

}  // namespace specops
