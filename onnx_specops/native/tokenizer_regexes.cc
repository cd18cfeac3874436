// Operators with regular expressions: RegexNormalization, RegexSplit, SpecialTokensSplit.
#include <algorithm>

#include "ops.h"
#include "ragged.h"
#include "regex.h"

namespace specops {
namespace {

// ---------------------------------------------------------------------------------------------------------- normalization

class RegexNormalization : public Kernel {
 public:
  explicit RegexNormalization(const KernelInfo& info)
      : regex_(info.string("pattern")), length_(info.string("replacement").size()), all_(info.flag("global_replace")) {
    parse(info.string("replacement"));
  }

  void compute(Context& context) const override {
    const Texts texts(context, 0);
    const Skips skips(context, 3, texts.size());
    rewrite(
        context, texts, [this] { return Search(regex_); },
        [&](std::size_t i, Search& search, std::string& out) {
          if (skips[i]) {
            out += texts[i];
          } else {
            substitute(context, search, texts[i], out);
          }
        });
  }

 private:
  // A part of the replacement: text, or a group number.
  struct Part {
    std::string text;
    std::size_t group = 0;
    bool is_group = false;
  };

  void parse(const std::string& replacement) {
    std::string literal;
    for (std::size_t at = 0; at < replacement.size(); ++at) {
      if (replacement[at] != '$') {
        literal += replacement[at];
        continue;
      }
      if (replacement.substr(at, 2) == "$$") {
        literal += '$';
        ++at;
        continue;
      }
      std::size_t digits = at + 1;
      const bool braced = digits < replacement.size() && replacement[digits] == '{';
      digits += braced;
      std::size_t last = digits, group = 0;
      while (last < replacement.size() && last < digits + 3 && replacement[last] >= '0' && replacement[last] <= '9') {
        group = 10 * group + static_cast<std::size_t>(replacement[last++] - '0');
      }
      const bool closed = !braced || (last < replacement.size() && replacement[last] == '}');
      if (last == digits || !closed || group > regex_.groups()) {
        fail("replacement '", replacement, "' refers to no group of the pattern");
      }
      if (!literal.empty()) parts_.push_back({literal, 0, false});
      literal.clear();
      parts_.push_back({"", group, true});
      at = last - 1 + braced;
    }
    if (!literal.empty()) parts_.push_back({literal, 0, false});
  }

  void substitute(const Context& context, Search& search, std::string_view text, std::string& out) const {
    const std::size_t before = out.size();
    std::size_t at = 0, start = 0, most = 0;
    std::uint32_t options = 0;
    search.text(text);
    while (true) {
      if (!search.next(start, options)) {
        if (options == 0) break;
        // There is no non-empty match at the position of the empty one, so continue one character later.
        if (start >= text.size()) break;
        const std::size_t size = character_size(text.substr(start));
        start += size == 0 ? 1 : size;
        options = 0;
        continue;
      }
      if (most == 0) most = 4 * (text.size() + search.count() * length_);
      out.append(text.substr(at, search.begin() - at));
      for (const Part& part : parts_) {
        if (!part.is_group) {
          out += part.text;
        } else if (!search.has(part.group)) {
          out.resize(before);
          out += text;
          return;
        } else {
          out.append(text.substr(search.begin(part.group), search.end(part.group) - search.begin(part.group)));
        }
      }
      context.check_size("symbols", static_cast<std::int64_t>(out.size()));
      at = start = search.end();
      if (!all_) break;
      options = search.begin() == search.end() ? pcre2::NOTEMPTY_ATSTART | pcre2::ANCHORED : 0;
    }
    out.append(text.substr(at));
    // Text that would grow without bound is left unchanged.
    if (most != 0 && out.size() - before >= most) {
      out.resize(before);
      out += text;
    }
  }

  Regex regex_;
  std::size_t length_;
  bool all_;
  std::vector<Part> parts_;
};

// ----------------------------------------------------------------------------------------------------------------- pieces

// The pieces of some rows.
struct Pieces {
  std::vector<std::int32_t> begins, ends, counts;
  std::vector<char> skips;

  void add(std::size_t begin, std::size_t end, bool skip) {
    begins.push_back(static_cast<std::int32_t>(begin));
    ends.push_back(static_cast<std::int32_t>(end));
    skips.push_back(skip);
  }
};

// body(search, text, first, pieces) appends the pieces of a string that begins at `first` among the symbols.
template <class Body>
void split(Context& context, const Regex& regex, const TextRows& rows, const Body& body) {
  const Texts& texts = rows.texts();
  const Skips skips(context, 5, texts.size());
  std::vector<std::int64_t> weights(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t i = rows.begin(row); i < rows.end(row); ++i) {
      weights[row] += static_cast<std::int64_t>(texts[i].size());
    }
  }
  const std::vector<std::size_t> edges = divide(context, rows.size(), texts.total(), weights);
  std::vector<Pieces> parts(edges.size() - 1);
  context.parallel_for(parts.size(), [&](std::size_t part) {
    Search search(regex);
    Pieces& pieces = parts[part];
    for (std::size_t row = edges[part]; row < edges[part + 1]; ++row) {
      const std::size_t before = pieces.begins.size();
      for (std::size_t i = rows.begin(row); i < rows.end(row); ++i) {
        const auto first = static_cast<std::size_t>(texts.begin(i));
        if (skips[i]) {
          pieces.add(first, first + texts[i].size(), true);
        } else {
          search.text(texts[i]);
          body(search, texts[i], first, pieces);
        }
      }
      pieces.counts.push_back(static_cast<std::int32_t>(pieces.begins.size() - before));
    }
  });

  std::size_t total = 0;
  for (const Pieces& part : parts) total += part.begins.size();
  if (total > std::numeric_limits<std::int32_t>::max()) fail("begins: more pieces than an int32 can count");
  const Shape flat = {static_cast<std::int64_t>(total)};
  Output row_begins = context.output(0, rows.shape()), row_ends = context.output(1, rows.shape());
  Output begins = context.output(2, flat), ends = context.output(3, flat), flags = context.output(4, flat);
  auto* row_begin = row_begins.data<std::int32_t>();
  auto* row_end = row_ends.data<std::int32_t>();
  auto* begin = begins.data<std::int32_t>();
  auto* end = ends.data<std::int32_t>();
  auto* flag = flags.data<bool>();
  std::int32_t at = 0;
  for (const Pieces& part : parts) {
    for (const std::int32_t count : part.counts) {
      *row_begin++ = at;
      *row_end++ = at += count;
    }
    begin = std::copy(part.begins.begin(), part.begins.end(), begin);
    end = std::copy(part.ends.begin(), part.ends.end(), end);
    flag = std::copy(part.skips.begin(), part.skips.end(), flag);
  }
}

class RegexSplit : public Kernel {
 public:
  explicit RegexSplit(const KernelInfo& info)
      : behaviour_(static_cast<Behaviour>(info.choice("behaviour"))),
        invert_(info.flag("invert")),
        max_splits_(info.integer("max_splits")),
        regex_(pattern(info)) {}

  void compute(Context& context) const override {
    const TextRows rows(context);
    if (rows.texts().symbols() == 0) return pass(context, rows);
    split(context, regex_, rows, [this](Search& search, std::string_view text, std::size_t first, Pieces& pieces) {
      split_one(search, text, first, pieces);
    });
  }

 private:
  enum class Behaviour { remove, isolate, contiguous, merged_with_previous, merged_with_next };

  static std::string pattern(const KernelInfo& info) {
    const std::string& given = info.string("pattern");
    const bool contiguous = static_cast<Behaviour>(info.choice("behaviour")) == Behaviour::contiguous;
    return contiguous && (given.empty() || given.back() != '+') ? "(" + given + ")+" : given;
  }

  // Without symbols, outputs one row without pieces, and the strings unchanged.
  static void pass(Context& context, const TextRows& rows) {
    const auto count = static_cast<std::int64_t>(rows.texts().size());
    Output row_begins = context.output(0, {1}), row_ends = context.output(1, {1});
    row_begins.data<std::int32_t>()[0] = row_ends.data<std::int32_t>()[0] = 0;
    Output begins = context.output(2, {count}), ends = context.output(3, {count}), flags = context.output(4, {count});
    const Skips skips(context, 5, rows.texts().size());
    auto* const begin = begins.data<std::int32_t>();
    auto* const end = ends.data<std::int32_t>();
    auto* const flag = flags.data<bool>();
    for (std::size_t i = 0; i < rows.texts().size(); ++i) {
      begin[i] = end[i] = rows.texts().begin(i);
      flag[i] = skips[i];
    }
  }

  void split_one(Search& search, std::string_view text, std::size_t first, Pieces& pieces) const {
    const auto size = static_cast<std::int64_t>(text.size());
    std::int64_t count = 0, last = -1, at = 0;
    const auto add = [&](std::int64_t begin, std::int64_t end, bool is_delimiter) {
      switch (behaviour_) {
        case Behaviour::remove:
          if (is_delimiter) return;
          break;
        case Behaviour::merged_with_previous:
          if (!is_delimiter && end != size) {
            last = begin;
            return;
          }
          if (is_delimiter) begin = last;
          break;
        case Behaviour::merged_with_next:
          if (is_delimiter) {
            last = begin;
            return;
          }
          if (last != -1) begin = last;
          break;
        default:
          break;
      }
      begin = std::max<std::int64_t>(0, begin);
      end = count == max_splits_ ? size : std::min(size, end);
      pieces.add(first + static_cast<std::size_t>(begin), first + static_cast<std::size_t>(end), false);
      ++count;
    };
    while (at <= size && search.next(static_cast<std::size_t>(at)) && search.begin() != search.end()) {
      const auto begin = static_cast<std::int64_t>(search.begin()), end = static_cast<std::int64_t>(search.end());
      if (begin != at) add(at, begin, invert_);
      add(begin, end, !invert_);
      at = end;
    }
    if (at < size) {
      add(at, size, invert_);
    } else if (behaviour_ == Behaviour::merged_with_next && last != size) {
      add(last, size, invert_);
    }
  }

  Behaviour behaviour_;
  bool invert_;
  std::int64_t max_splits_;
  Regex regex_;
};

class SpecialTokensSplit : public Kernel {
 public:
  explicit SpecialTokensSplit(const KernelInfo& info) : regex_(info.string("pattern")) {}

  void compute(Context& context) const override {
    const TextRows rows(context);
    split(context, regex_, rows, [](Search& search, std::string_view text, std::size_t first, Pieces& pieces) {
      std::size_t at = 0;
      while (search.next(at) && search.begin() != search.end()) {
        const std::size_t begin = search.begin(), end = search.end();
        std::size_t token_begin = begin, token_end = end;
        for (std::size_t group = search.count(); group-- > 1;) {
          if (!search.has(group) || search.begin(group) < begin || search.end(group) > end) continue;
          if (search.begin(group) != search.end(group)) {
            token_begin = search.begin(group);
            token_end = search.end(group);
          }
          break;
        }
        if (at < begin) pieces.add(first + at, first + begin, false);
        pieces.add(first + token_begin, first + token_end, true);
        at = end;
      }
      if (at < text.size()) pieces.add(first + at, first + text.size(), false);
    });
  }

 private:
  Regex regex_;
};

template <class T>
std::unique_ptr<Kernel> create(const KernelInfo& info) {
  return std::make_unique<T>(info);
}

constexpr Type i = Type::int32, u = Type::uint8, b = Type::boolean;

}  // namespace

const Op& regex_normalization() {
  static const Op op = {
      "RegexNormalization",
      {{"begins"}, {"ends"}, {"symbols"}, {"skips", true}},
      {{"begins"}, {"ends"}, {"symbols"}},
      {Attribute::string("pattern"), Attribute::string("replacement", ""),
       Attribute::flag("global_replace", true).within(0, 1)},
      {{{i, i, u, b}, {i, i, u}}},
      create<RegexNormalization>,
      [](ShapeInference& graph) {
        graph.set_output(0, i, graph.shape(0));
        graph.set_output(1, i, graph.shape(0));
      },
  };
  return op;
}

const Op& regex_split() {
  static const Op op = {
      "RegexSplit",
      {{"ragged_begins"}, {"ragged_ends"}, {"begins"}, {"ends"}, {"symbols"}, {"skips", true}},
      {{"ragged_begins"}, {"ragged_ends"}, {"begins"}, {"ends"}, {"skips_out"}},
      {Attribute::string("pattern"),
       Attribute::string("behaviour", "remove")
           .one_of({"remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext"}),
       Attribute::flag("invert", false).within(0, 1), Attribute::integer("max_splits", -1).at_least(-1)},
      {{{i, i, i, i, u, b}, {i, i, i, i, b}}},
      create<RegexSplit>,
      nullptr,
  };
  return op;
}

const Op& special_tokens_split() {
  static const Op op = {
      "SpecialTokensSplit",
      {{"ragged_begins"}, {"ragged_ends"}, {"begins"}, {"ends"}, {"symbols"}, {"skips", true}},
      {{"ragged_begins"}, {"ragged_ends"}, {"begins"}, {"ends"}, {"skips_out"}},
      {Attribute::string("pattern")},
      {{{i, i, i, i, u, b}, {i, i, i, i, b}}},
      create<SpecialTokensSplit>,
      [](ShapeInference& graph) {
        graph.set_output(0, i, graph.shape(0));
        graph.set_output(1, i, graph.shape(0));
      },
  };
  return op;
}

}  // namespace specops
