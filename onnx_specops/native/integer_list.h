// Lists of integers in attributes, such as "2,2".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "errors.h"

namespace specops {

// Numbers of up to six digits, separated by commas. Throws for other texts.
inline std::vector<std::int64_t> parse_integers(const char* name, const std::string& text) {
  std::vector<std::int64_t> numbers;
  const auto refuse = [&] { fail(name, " = '", text, "' is not a list of integers"); };
  if (text.find_first_not_of(' ') == std::string::npos) return numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, end - begin);
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    if (part.empty() || part.size() > 6 || part.find_first_not_of("0123456789") != std::string::npos) refuse();
    std::int64_t number = 0;
    for (const char digit : part) number = number * 10 + (digit - '0');
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

// Throws unless an attribute has `count` numbers or none.
inline void check_list(const char* name, const std::vector<std::int64_t>& numbers, std::size_t count) {
  if (!numbers.empty() && numbers.size() != count) fail(name, " has ", numbers.size(), " numbers instead of ", count);
}

}  // namespace specops
