// Tokenizer operators from strings to strings, and from ids to strings: VocabDecoder, UTF8Validate, ByteFallback,
// BytesToChars, CharsToBytes.
#include <algorithm>
#include <array>

#include "ops.h"
#include "ragged.h"
#include "string_tensor.h"

namespace specops {
namespace {

constexpr Type i = Type::int32, u = Type::uint8;

void infer_strings(ShapeInference& graph) {
  graph.set_output(0, Type::int32, graph.shape(0));
  graph.set_output(1, Type::int32, graph.shape(0));
}

template <class T>
std::unique_ptr<Kernel> create(const KernelInfo&) {
  return std::make_unique<T>();
}

class VocabDecoder : public Kernel {
 public:
  void compute(Context& context) const override {
    const Input ids = context.input(0);
    if (ids.shape().size() != 2) fail("ids has the shape ", to_string(ids.shape()), "; expected [rows, length]");
    const Texts tokens(context.input(1), context.input(2), context.input(3), "vocab_");
    const Input skips = context.input_count() > 4 ? context.input(4) : Input();
    std::vector<std::int32_t> skipped;
    if (!skips.absent()) skipped.assign(skips.data<std::int32_t>(), skips.data<std::int32_t>() + skips.size());
    std::sort(skipped.begin(), skipped.end());

    const std::int64_t rows = ids.shape()[0], length = std::max<std::int64_t>(1, ids.shape()[1]);
    const auto* const id = ids.data<std::int32_t>();
    const bool filled = ids.shape()[1] != 0;
    Output row_begins = context.output(0, {rows}), row_ends = context.output(1, {rows});
    Output begins = context.output(2, {rows * length}), ends = context.output(3, {rows * length});
    auto* const row_begin = row_begins.data<std::int32_t>();
    auto* const row_end = row_ends.data<std::int32_t>();
    auto* const begin = begins.data<std::int32_t>();
    auto* const end = ends.data<std::int32_t>();
    const auto known = [&](std::int64_t k) {
      return filled && id[k] >= 0 && static_cast<std::size_t>(id[k]) < tokens.size() &&
             (skipped.empty() || !std::binary_search(skipped.begin(), skipped.end(), id[k]));
    };
    std::int64_t total = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      row_begin[row] = static_cast<std::int32_t>(row * length);
      row_end[row] = static_cast<std::int32_t>((row + 1) * length);
    }
    for (std::int64_t k = 0; k < rows * length; ++k) {
      begin[k] = static_cast<std::int32_t>(total);
      if (known(k)) total += static_cast<std::int64_t>(tokens[static_cast<std::size_t>(id[k])].size());
      if (total > std::numeric_limits<std::int32_t>::max()) fail("symbols: more bytes than an int32 can count");
      end[k] = static_cast<std::int32_t>(total);
    }
    context.check_size("symbols", total);
    Output symbols = context.output(4, {total});
    auto* to = symbols.data<std::uint8_t>();
    for (std::int64_t k = 0; k < rows * length; ++k) {
      if (end[k] == begin[k]) continue;
      const std::string_view token = tokens[static_cast<std::size_t>(id[k])];
      std::memcpy(to + begin[k], token.data(), token.size());
    }
  }
};

class Utf8Validate : public Kernel {
 public:
  explicit Utf8Validate(const KernelInfo& info) : replacement_(info.flag("replace_mode") ? "\xEF\xBF\xBD" : "") {}

  void compute(Context& context) const override {
    const Texts texts(context, 0);
    rewrite(context, texts, [&](std::size_t k, std::string& out) { append(texts[k], out); });
  }

 private:
  void append(std::string_view text, std::string& out) const {
    constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    std::size_t kept = 0;  // bytes from here on are copied unchanged
    for (std::size_t at = 0; at < text.size();) {
      const unsigned lead = byte(at);
      if (lead < 0x80) {
        ++at;
        continue;
      }
      const std::size_t size = lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
      std::size_t end = at + 1, times = 0;
      if (size == 0) {
        times = 1;
      } else {
        std::uint32_t point = lead & (0xFF >> (size + 1));
        while (end < std::min(at + size, text.size()) && byte(end) >> 6 == 2) point = point << 6 | (byte(end++) & 0x3F);
        times = end < at + size ? 1 : point < least[size] ? size : 0;
      }
      if (times != 0) {
        out.append(text.substr(kept, at - kept));
        for (; times > 0; --times) out += replacement_;
        kept = end;
      }
      at = end;
    }
    out.append(text.substr(kept));
  }

  std::string replacement_;
};

class ByteFallback : public Kernel {
 public:
  void compute(Context& context) const override {
    const Texts texts(context, 0);
    rewrite(context, texts, [&](std::size_t k, std::string& out) {
      const std::string_view text = texts[k];
      if (text.size() != 6 || text.rfind('<') != 0 || text.rfind('>') != 5) {
        out += text;
        return;
      }
      const int high = digit(text[3]), low = digit(text[4]);
      const bool names = text[1] == '0' && text[2] == 'x' && high >= 0 && low >= 0;
      out += static_cast<char>(names ? 16 * high + low : 255);
    });
  }

 private:
  static int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }
};

// The characters that represent bytes in GPT-2's byte-level vocabularies: printable ones represent themselves, the others
// are U+0100 and following.
struct ByteCharacters {
  std::array<std::array<char, 2>, 256> text{};
  std::array<bool, 256> is_one_byte{};
  std::array<std::int16_t, 0x200> byte{};  // by code point; -1 for none

  ByteCharacters() {
    byte.fill(-1);
    unsigned other = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const unsigned point = printable ? b : other++;
      byte[point] = static_cast<std::int16_t>(b);
      is_one_byte[b] = point < 0x80;
      text[b] = is_one_byte[b] ? std::array<char, 2>{static_cast<char>(point), 0}
                               : std::array<char, 2>{static_cast<char>(0xC0 | point >> 6), static_cast<char>(0x80 | (point & 0x3F))};
    }
  }
};

const ByteCharacters& byte_characters() {
  static const ByteCharacters characters;
  return characters;
}

class BytesToChars : public Kernel {
 public:
  void compute(Context& context) const override {
    const Texts texts(context, 0);
    const Skips skips(context, 3, texts.size());
    const ByteCharacters& characters = byte_characters();
    rewrite(context, texts, [&](std::size_t k, std::string& out) {
      if (skips[k]) {
        out += texts[k];
        return;
      }
      for (const char c : texts[k]) {
        const auto b = static_cast<unsigned char>(c);
        out.append(characters.text[b].data(), characters.is_one_byte[b] ? 1 : 2);
      }
    });
  }
};

class CharsToBytes : public Kernel {
 public:
  void compute(Context& context) const override {
    const TextRows rows(context);
    const Texts& texts = rows.texts();
    const ByteCharacters& characters = byte_characters();
    std::string all;
    Output begins = context.output(0, rows.shape()), ends = context.output(1, rows.shape());
    auto* const begin = begins.data<std::int32_t>();
    auto* const end = ends.data<std::int32_t>();
    for (std::size_t row = 0; row < rows.size(); ++row) {
      begin[row] = static_cast<std::int32_t>(all.size());
      for (std::size_t k = rows.begin(row); k < rows.end(row); ++k) append(characters, texts[k], all);
      if (all.size() > std::numeric_limits<std::int32_t>::max()) fail("symbols: more bytes than an int32 can count");
      end[row] = static_cast<std::int32_t>(all.size());
    }
    Output symbols = context.output(2, {static_cast<std::int64_t>(all.size())});
    if (!all.empty()) std::memcpy(symbols.bytes(), all.data(), all.size());
  }

 private:
  static void append(const ByteCharacters& characters, std::string_view text, std::string& out) {
    for (std::size_t at = 0; at < text.size(); ++at) {
      const auto first = static_cast<unsigned char>(text[at]);
      if (first < 0x80) {
        out += text[at];
        continue;
      }
      const unsigned second = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0;
      const unsigned point = (first & 0x1Fu) << 6 | (second & 0x3F);
      if (first >> 5 != 6 || second >> 6 != 2 || point >= 0x200 || point < 0x80 || characters.byte[point] < 0) {
        fail(quoted(text), " has no byte at ", at);
      }
      out += static_cast<char>(characters.byte[point]);
      ++at;
    }
  }
};

}  // namespace

const Op& vocab_decoder() {
  static const Op op = {
      "VocabDecoder",
      {{"ids"}, {"vocab_begins"}, {"vocab_ends"}, {"vocab_symbols"}, {"skip_tokens", true}},
      {{"ragged_begins"}, {"ragged_ends"}, {"begins"}, {"ends"}, {"symbols"}},
      {},
      {{{i, i, i, u, i}, {i, i, i, i, u}}},
      create<VocabDecoder>,
      nullptr,
  };
  return op;
}

const Op& utf8_validate() {
  static const Op op = {
      "UTF8Validate",
      {{"begins"}, {"ends"}, {"symbols"}},
      {{"begins"}, {"ends"}, {"symbols"}},
      {Attribute::flag("replace_mode", false).within(0, 1)},
      {{{i, i, u}, {i, i, u}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<Utf8Validate>(info); },
      infer_strings,
  };
  return op;
}

const Op& byte_fallback() {
  static const Op op = {
      "ByteFallback",
      {{"begins"}, {"ends"}, {"symbols"}},
      {{"begins"}, {"ends"}, {"symbols"}},
      {},
      {{{i, i, u}, {i, i, u}}},
      create<ByteFallback>,
      infer_strings,
  };
  return op;
}

const Op& bytes_to_chars() {
  static const Op op = {
      "BytesToChars",
      {{"begins"}, {"ends"}, {"symbols"}, {"skips", true}},
      {{"begins"}, {"ends"}, {"symbols"}},
      {},
      {{{i, i, u, Type::boolean}, {i, i, u}}},
      create<BytesToChars>,
      infer_strings,
  };
  return op;
}

const Op& chars_to_bytes() {
  static const Op op = {
      "CharsToBytes",
      {{"ragged_begins"}, {"ragged_ends"}, {"begins"}, {"ends"}, {"symbols"}},
      {{"begins"}, {"ends"}, {"symbols"}},
      {},
      {{{i, i, i, i, u}, {i, i, u}}},
      create<CharsToBytes>,
      infer_strings,
  };
  return op;
}

}  // namespace specops
