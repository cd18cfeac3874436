// The tensors of tokenizer operators: strings as bytes in one buffer, and rows of strings or ids.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "op.h"

namespace specops {

// Validated begins and ends within `size` elements.
class Spans {
 public:
  Spans(const Input& begins, const Input& ends, std::int64_t size, const char* begins_name, const char* ends_name);

  std::size_t size() const { return size_; }
  const Shape& shape() const { return *shape_; }
  std::int32_t begin(std::size_t i) const { return begins_[i]; }
  std::int32_t end(std::size_t i) const { return ends_[i]; }
  std::int64_t total() const { return total_; }  // sum of all lengths

 private:
  const std::int32_t* begins_;
  const std::int32_t* ends_;
  const Shape* shape_;
  std::size_t size_;
  std::int64_t total_ = 0;
};

// Strings in the inputs begins, ends and symbols, from `first` on. The view keeps these inputs.
class Texts {
 public:
  Texts(const Context& context, std::size_t first);                                          // inputs of this run
  Texts(const Input& begins, const Input& ends, const Input& symbols, const char* prefix);  // a vocabulary

  std::size_t size() const { return spans_.size(); }
  const Shape& shape() const { return begins_.shape(); }
  std::int32_t begin(std::size_t i) const { return spans_.begin(i); }
  std::string_view operator[](std::size_t i) const {
    return {bytes_ + spans_.begin(i), static_cast<std::size_t>(spans_.end(i) - spans_.begin(i))};
  }
  std::int64_t total() const { return spans_.total(); }
  std::int64_t symbols() const { return symbols_.size(); }

 private:
  Input begins_, ends_, symbols_;
  const char* bytes_;
  Spans spans_;
};

// Rows of strings: the inputs ragged_begins and ragged_ends, then those of `Texts`.
class TextRows {
 public:
  explicit TextRows(const Context& context);

  const Texts& texts() const { return texts_; }
  std::size_t size() const { return rows_.size(); }
  const Shape& shape() const { return begins_.shape(); }
  std::size_t begin(std::size_t row) const { return static_cast<std::size_t>(rows_.begin(row)); }
  std::size_t end(std::size_t row) const { return static_cast<std::size_t>(rows_.end(row)); }

 private:
  Input begins_, ends_;
  Texts texts_;
  Spans rows_;
};

// The strings that are left unchanged: an optional boolean input.
class Skips {
 public:
  Skips(const Context& context, std::size_t index, std::size_t count);
  bool operator[](std::size_t i) const { return flags_ != nullptr && flags_[i]; }

 private:
  const bool* flags_ = nullptr;
};

// Split points of [0, count) for threads: pieces of similar weight, each large enough for a thread.
std::vector<std::size_t> divide(const Context& context, std::size_t count, std::int64_t total,
                                const std::vector<std::int64_t>& weights);

// The concatenated ids of rows.
struct Ids {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> counts;  // of each row
};

void write_rows(Context& context, const Shape& shape, const std::vector<Ids>& parts);

// Throws if the inputs do not justify the memory of the ids; called while they are appended.
inline void check_ids(const Context& context, const std::vector<std::int32_t>& ids) {
  context.check_size("the ids' bytes", static_cast<std::int64_t>(ids.size() * sizeof(std::int32_t)));
}

// body(row, kept, ids) appends the ids of a row; all are written to the outputs ragged_begins, ragged_ends, ids. `prepare()`
// creates the state that a thread keeps between rows.
template <class Prepare, class Body>
void tokenize_rows(Context& context, const TextRows& rows, const Prepare& prepare, const Body& body) {
  std::vector<std::int64_t> weights(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t i = rows.begin(row); i < rows.end(row); ++i) {
      weights[row] += static_cast<std::int64_t>(rows.texts()[i].size());
    }
  }
  const std::vector<std::size_t> edges = divide(context, rows.size(), rows.texts().total(), weights);
  std::vector<Ids> parts(edges.size() - 1);
  std::atomic<std::int64_t> total{0};  // over all threads
  context.parallel_for(parts.size(), [&](std::size_t part) {
    auto kept = prepare();
    Ids& out = parts[part];
    out.counts.reserve(edges[part + 1] - edges[part]);
    for (std::size_t row = edges[part]; row < edges[part + 1]; ++row) {
      const std::size_t before = out.ids.size();
      body(row, kept, out.ids);
      const auto grown = static_cast<std::int64_t>(out.ids.size() - before);
      context.check_size("the ids' bytes", 4 * (total.fetch_add(grown, std::memory_order_relaxed) + grown));
      if (out.ids.size() > std::numeric_limits<std::int32_t>::max()) fail("ids: more than an int32 can count");
      out.counts.push_back(static_cast<std::int32_t>(out.ids.size() - before));
    }
  });
  write_rows(context, rows.shape(), parts);
}

// The same for rows whose ids are those of their strings: body(text, kept, ids) appends them.
template <class Prepare, class Body>
void tokenize(Context& context, const TextRows& rows, const Prepare& prepare, const Body& body) {
  tokenize_rows(context, rows, prepare, [&](std::size_t row, auto& kept, std::vector<std::int32_t>& ids) {
    for (std::size_t i = rows.begin(row); i < rows.end(row); ++i) {
      body(rows.texts()[i], kept, ids);
      check_ids(context, ids);
    }
  });
}

// body(i, kept, out) appends the result for string i; all are written to the outputs begins, ends, symbols. `prepare()`
// creates the state that a thread keeps between strings.
template <class Prepare, class Body>
void rewrite(Context& context, const Texts& texts, const Prepare& prepare, const Body& body) {
  std::vector<std::int64_t> weights(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) weights[i] = static_cast<std::int64_t>(texts[i].size());
  const std::vector<std::size_t> edges = divide(context, texts.size(), texts.total(), weights);
  const std::size_t parts = edges.size() - 1;
  Output begins = context.output(0, texts.shape()), ends = context.output(1, texts.shape());
  auto* const begin = begins.data<std::int32_t>();
  auto* const end = ends.data<std::int32_t>();
  std::vector<std::string> written(parts);
  std::atomic<std::int64_t> all{0};  // over all threads
  context.parallel_for(parts, [&](std::size_t part) {
    auto kept = prepare();
    std::string& out = written[part];
    for (std::size_t i = edges[part]; i < edges[part + 1]; ++i) {
      const std::size_t before = out.size();
      begin[i] = static_cast<std::int32_t>(before);
      body(i, kept, out);
      const auto grown = static_cast<std::int64_t>(out.size() - before);
      context.check_size("symbols", all.fetch_add(grown, std::memory_order_relaxed) + grown);
      if (out.size() > std::numeric_limits<std::int32_t>::max()) fail("symbols: more bytes than an int32 can count");
      end[i] = static_cast<std::int32_t>(out.size());
    }
  });
  std::size_t total = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    if (total + written[part].size() > std::numeric_limits<std::int32_t>::max()) {
      fail("symbols: more bytes than an int32 can count");
    }
    for (std::size_t i = edges[part]; total != 0 && i < edges[part + 1]; ++i) {
      begin[i] += static_cast<std::int32_t>(total);
      end[i] += static_cast<std::int32_t>(total);
    }
    total += written[part].size();
  }
  Output symbols = context.output(2, {static_cast<std::int64_t>(total)});
  auto* to = symbols.data<std::uint8_t>();
  for (const std::string& part : written) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
}

struct Nothing {};

// The same without state.
template <class Body>
void rewrite(Context& context, const Texts& texts, const Body& body) {
  rewrite(
      context, texts, [] { return Nothing(); }, [&](std::size_t i, Nothing&, std::string& out) { body(i, out); });
}

// The number of bytes of the text's first character; 0 for invalid UTF-8. The text is not empty.
std::size_t character_size(std::string_view text);

}  // namespace specops
