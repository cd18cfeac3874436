// SentencePiece's character maps, and text normalization by them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "op.h"
#include "ragged.h"

namespace specops {

// A map in SentencePiece's format: the size of a double array (Darts), its 32-bit units, and NUL-terminated values.
class CharsMap {
 public:
  explicit CharsMap(const Input& input) {
    if (input.absent()) return;
    const auto* data = input.data<std::uint8_t>();
    const auto size = static_cast<std::size_t>(input.size());
    std::uint32_t array = 0;
    if (size > 4) array = read(data);
    if (size <= 4 || array >= size - 3 || array % 4 != 0) fail("charsmap: its double array does not fit in it");
    units_.resize(array / 4);
    for (std::size_t i = 0; i < units_.size(); ++i) units_[i] = read(data + 4 + 4 * i);
    values_.assign(reinterpret_cast<const char*>(data) + 4 + array, size - 4 - array);
    // Most maps do not replace single-byte characters, only sequences that begin with them.
    for (unsigned byte = 0; byte < 128; ++byte) alone_[byte] = !is_prefix(byte);
  }

  struct Prefix {
    std::string_view value;
    std::size_t length;
  };

  // The replacement of the text's beginning, and the number of bytes of that beginning. The text is not empty.
  Prefix prefix(std::string_view text) const {
    const auto lead = static_cast<unsigned char>(text[0]);
    if (lead < 128 && (units_.empty() || alone_[lead])) return {text.substr(0, 1), 1};
    std::size_t length = 0, value = 0, found = 0;
    if (!units_.empty()) {
      std::uint32_t place = offset(units_[0]);
      for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        place ^= byte;
        if (place >= units_.size() || (units_[place] & 0x800000FF) != byte) break;
        const std::uint32_t unit = units_[place];
        place ^= offset(unit);
        if ((unit & 0x100) == 0) continue;
        if (place >= units_.size()) break;
        length = i + 1;
        value = units_[place] & 0x7FFFFFFF;
        if (++found == 32) break;
      }
    }
    if (length != 0) {
      const std::string_view rest = value < values_.size() ? std::string_view(values_).substr(value) : "";
      return {rest.substr(0, rest.find('\0')), length};
    }
    const std::size_t size = character_size(text);
    if (size == 0) return {"\xEF\xBF\xBD", 1};
    return {text.substr(0, size), size};
  }

 private:
  static std::uint32_t read(const std::uint8_t* bytes) {
    return bytes[0] | std::uint32_t{bytes[1]} << 8 | std::uint32_t{bytes[2]} << 16 | std::uint32_t{bytes[3]} << 24;
  }
  static std::uint32_t offset(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }
  bool is_prefix(unsigned byte) const {
    if (units_.empty()) return false;
    const std::uint32_t place = offset(units_[0]) ^ byte;
    return place < units_.size() && (units_[place] & 0x800000FF) == byte;
  }

  std::vector<std::uint32_t> units_;
  std::string values_;
  bool alone_[128] = {};
};

// The normalization of white space.
struct Whitespace {
  explicit Whitespace(const KernelInfo& info)
      : prefix(info.flag("add_dummy_prefix")),
        squeeze(info.flag("remove_extra_whitespaces")),
        escape(info.flag("escape_whitespaces")),
        suffix(info.flag("treat_whitespace_as_suffix")) {}
  bool prefix, squeeze, escape, suffix;
};

// Appends the text normalized by a map, which has `prefix(text)` like CharsMap. `context.check_size` is called as the output
// grows, because a character may be replaced by as many bytes as the map contains.
template <class Map>
void normalize(const Context& context, const Map& map, const Whitespace& spaces, std::string_view text, std::string& out) {
  const std::string_view blank = spaces.escape ? "\xE2\x96\x81" : " ";
  while (spaces.squeeze && !text.empty()) {
    const CharsMap::Prefix prefix = map.prefix(text);
    if (prefix.value != " ") break;
    text.remove_prefix(prefix.length);
  }
  if (text.empty()) return;
  const std::size_t before = out.size();
  if (spaces.prefix && !spaces.suffix) out += blank;
  bool after_blank = spaces.squeeze;
  while (!text.empty()) {
    CharsMap::Prefix prefix = map.prefix(text);
    text.remove_prefix(prefix.length);
    std::string_view value = prefix.value;
    while (after_blank && !value.empty() && value[0] == ' ') value.remove_prefix(1);
    if (value.empty()) continue;
    if (spaces.escape && value.find(' ') != std::string_view::npos) {
      for (const char c : value) {
        if (c == ' ') {
          out += blank;
        } else {
          out += c;
        }
      }
    } else {
      out += value;
    }
    after_blank = spaces.squeeze && value.back() == ' ';
    context.check_size("a normalized string", static_cast<std::int64_t>(out.size()));
  }
  while (spaces.squeeze && out.size() - before >= blank.size() &&
         std::string_view(out).substr(out.size() - blank.size()) == blank) {
    out.resize(out.size() - blank.size());
  }
  if (spaces.prefix && spaces.suffix) out += blank;
}

}  // namespace specops
