// The attributes of an operator: their declarations, and the values of a node.
//
// These declarations equal those of onnx_specops/ops/ in Python (tests/onnx_specops/native/test_contract.py compares them),
// and kernels read attributes only by them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "errors.h"

namespace specops {

// An attribute. It is required if it has no default.
struct Attribute {
  enum class Kind { integer, number, string };  // ONNX's INT, FLOAT and STRING
  using Value = std::variant<std::int64_t, float, std::string>;

  static constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

  const char* name;
  Kind kind;
  std::optional<Value> otherwise;               // the default
  std::int64_t least = lowest, most = highest;  // range of an integer
  std::vector<const char*> choices = {};        // valid values of a string; empty if all are valid

  static Attribute integer(const char* name) { return {name, Kind::integer, {}}; }
  static Attribute integer(const char* name, std::int64_t otherwise) { return {name, Kind::integer, otherwise}; }
  static Attribute flag(const char* name) { return integer(name); }  // true unless 0
  static Attribute flag(const char* name, bool otherwise) { return integer(name, otherwise ? 1 : 0); }
  static Attribute number(const char* name) { return {name, Kind::number, {}}; }
  static Attribute number(const char* name, float otherwise) { return {name, Kind::number, otherwise}; }
  static Attribute string(const char* name) { return {name, Kind::string, {}}; }
  static Attribute string(const char* name, const char* otherwise) { return {name, Kind::string, std::string(otherwise)}; }

  Attribute at_least(std::int64_t limit) && { return std::move(*this).within(limit, most); }
  Attribute within(std::int64_t first, std::int64_t last) && {
    least = first;
    most = last;
    return std::move(*this);
  }
  Attribute one_of(std::vector<const char*> all) && {
    choices = std::move(all);
    return std::move(*this);
  }
};

// A limit for the product of non-negative integers that together determine the work.
struct Product {
  std::vector<const char*> factors;
  std::int64_t most;
};

// A node's values for the declared attributes. The constructor reads and checks all of them.
class Attributes {
 public:
  Attributes(const abi::Api& api, const abi::OrtKernelInfo* info, const std::vector<Attribute>& declared,
             const std::vector<Product>& products);

  std::int64_t integer(std::string_view name) const;
  bool flag(std::string_view name) const { return integer(name) != 0; }
  float number(std::string_view name) const;
  const std::string& string(std::string_view name) const;
  // The index of the string among its choices.
  std::size_t choice(std::string_view name) const;

 private:
  std::size_t find(std::string_view name) const;

  const std::vector<Attribute>& declared_;
  std::vector<Attribute::Value> values_;
};

}  // namespace specops
