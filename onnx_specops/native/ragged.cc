#include "ragged.h"

namespace specops {

Spans::Spans(const Input& begins, const Input& ends, std::int64_t size, const char* begins_name, const char* ends_name)
    : begins_(begins.data<std::int32_t>()),
      ends_(ends.data<std::int32_t>()),
      shape_(&begins.shape()),
      size_(static_cast<std::size_t>(begins.size())) {
  if (ends.shape() != begins.shape()) {
    fail(ends_name, " has the shape ", to_string(ends.shape()), "; expected that of ", begins_name, ", ",
         to_string(begins.shape()));
  }
  for (std::size_t i = 0; i < size_; ++i) {
    const std::int32_t begin = begins_[i], end = ends_[i];
    if (begin < 0 || begin > size) fail(begins_name, "[", i, "] = ", begin, " is out of range [0, ", size, "]");
    if (end < 0 || end > size) fail(ends_name, "[", i, "] = ", end, " is out of range [0, ", size, "]");
    if (begin > end) fail(begins_name, "[", i, "] = ", begin, " is greater than ", ends_name, "[", i, "] = ", end);
    total_ += end - begin;
  }
}

namespace {

const Input& checked_symbols(const Input& symbols, const char* prefix) {
  if (symbols.shape().size() != 1) {
    fail(prefix, "symbols has the shape ", to_string(symbols.shape()), "; expected one dimension");
  }
  return symbols;
}

}  // namespace

Texts::Texts(const Context& context, std::size_t first)
    : begins_(context.input(first)),
      ends_(context.input(first + 1)),
      symbols_(context.input(first + 2)),
      bytes_(static_cast<const char*>(checked_symbols(symbols_, "").bytes())),
      spans_(begins_, ends_, symbols_.size(), "begins", "ends") {
  context.check_size("symbols", spans_.total());
}

Texts::Texts(const Input& begins, const Input& ends, const Input& symbols, const char* prefix)
    : begins_(begins),
      ends_(ends),
      symbols_(symbols),
      bytes_(static_cast<const char*>(checked_symbols(symbols_, prefix).bytes())),
      spans_(begins_, ends_, symbols_.size(), text(prefix, "begins").c_str(), text(prefix, "ends").c_str()) {
  const std::int64_t given = begins_.size() + ends_.size() + symbols_.size();
  if (spans_.total() > std::max(most_elements, most_growth * given)) fail(prefix, "symbols: ", spans_.total(), " bytes");
}

TextRows::TextRows(const Context& context)
    : begins_(context.input(0)),
      ends_(context.input(1)),
      texts_(context, 2),
      rows_(begins_, ends_, static_cast<std::int64_t>(texts_.size()), "ragged_begins", "ragged_ends") {
  context.check_size("rows", rows_.total());
}

Skips::Skips(const Context& context, std::size_t index, std::size_t count) {
  if (index >= context.input_count()) return;
  const Input input = context.input(index);
  if (input.absent()) return;
  if (static_cast<std::size_t>(input.size()) != count) {
    fail("skips has ", input.size(), " elements instead of one for each of the ", count, " strings");
  }
  flags_ = input.data<bool>();
}

std::vector<std::size_t> divide(const Context&, std::size_t count, std::int64_t total,
                                const std::vector<std::int64_t>& weights) {
  constexpr std::int64_t worth = 1 << 14;
  const std::int64_t pieces = std::max<std::int64_t>(1, std::min(Context::most_pieces(), total / worth));
  std::vector<std::size_t> edges = {0};
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < count && pieces > 1; ++i) {
    sum += weights[i];
    if (sum * pieces >= total * static_cast<std::int64_t>(edges.size()) && edges.back() < i + 1 && i + 1 < count) {
      edges.push_back(i + 1);
    }
  }
  edges.push_back(count);
  return edges;
}

void write_rows(Context& context, const Shape& shape, const std::vector<Ids>& parts) {
  std::size_t total = 0;
  for (const Ids& part : parts) total += part.ids.size();
  if (total > std::numeric_limits<std::int32_t>::max()) fail("ids: more than an int32 can count");
  Output begins = context.output(0, shape), ends = context.output(1, shape);
  Output ids = context.output(2, {static_cast<std::int64_t>(total)});
  auto* begin = begins.data<std::int32_t>();
  auto* end = ends.data<std::int32_t>();
  auto* to = ids.data<std::int32_t>();
  std::int32_t at = 0;
  for (const Ids& part : parts) {
    for (const std::int32_t count : part.counts) {
      *begin++ = at;
      *end++ = at += count;
    }
    if (!part.ids.empty()) std::memcpy(to, part.ids.data(), part.ids.size() * sizeof(std::int32_t));
    to += part.ids.size();
  }
}

std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
  if (size == 0 || text.size() < size) return 0;
  std::uint32_t point = lead & (0xFF >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if (byte(i) >> 6 != 2) return 0;
    point = point << 6 | (byte(i) & 0x3F);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool valid = point >= least[size] && point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
  return valid ? size : 0;
}

}  // namespace specops
