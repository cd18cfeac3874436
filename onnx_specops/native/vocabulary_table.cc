// VocabularyTable: keys to ids, with a table that is built once for a constant vocabulary.
#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include "bucketing.h"
#include "hashing.h"
#include "id_table.h"
#include "ops.h"
#include "string_tensor.h"

namespace specops {
namespace {

// The id or hash bucket of unknown keys.
struct Otherwise {
  std::int64_t default_value = -1;
  std::int64_t num_oov_buckets = 0;
  Bucketing bucketing;
};

// A random hash key, for a vocabulary that was made to collide under the default one.
struct Secret {
  bool in_use = false;
  std::array<std::uint64_t, 2> key{};

  void draw() {
    std::random_device device;
    for (std::uint64_t& word : key) word = std::uint64_t{device()} << 32 | device();
    in_use = true;
  }
};

// The entries of a vocabulary: integers, strings in place, or strings through ORT's functions. Each class reads a tensor of
// keys, and provides a key's hash, the bucket of a hashed key, and the comparison of entry i with a key.

template <class T>
class Integers {
 public:
  using Key = T;

  explicit Integers(const Input& vocabulary) : entries_(keys(vocabulary)) {}

  static const T* keys(const Input& input) { return input.data<T>(); }
  static std::uint64_t hash(Key key, const Secret& secret) {
    auto word = static_cast<std::uint64_t>(key);
    if (secret.in_use) return siphash24({reinterpret_cast<const char*>(&word), sizeof word}, secret.key);
    word = (word ^ word >> 32) * 0x9E3779B97F4A7C15;
    word = (word ^ word >> 29) * 0xBF58476D1CE4E5B9;
    return word ^ word >> 32;
  }
  static std::int64_t bucket(Key key, std::uint64_t, const Secret&, const Bucketing& bucketing) {
    return bucketing(Decimal(key));
  }
  static std::string shown(Key key) { return std::to_string(key); }

  void prefetch(std::size_t i) const { specops::prefetch(entries_ + i); }
  void prefetch_text(std::size_t, Key) const {}
  bool equal(std::size_t i, Key key) const { return entries_[i] == key; }

 private:
  const T* entries_;
};

struct Texts {
  using Key = std::string_view;

  static std::uint64_t hash(Key key, const Secret& secret) {
    return secret.in_use ? siphash24(key, secret.key) : fingerprint64(key);
  }
  static std::int64_t bucket(Key key, std::uint64_t hash, const Secret& secret, const Bucketing& bucketing) {
    return bucketing.by_fingerprint() && !secret.in_use ? bucketing.reduce(hash) : bucketing(key);
  }
  static std::string shown(Key key) { return quoted(key); }
};

class TextsInPlace : public Texts {
 public:
  explicit TextsInPlace(const Input& vocabulary) : entries_(keys(vocabulary)) {}

  static const std::string* keys(const Input& input) { return strings_in_place(input); }

  void prefetch(std::size_t i) const { specops::prefetch(entries_ + i); }
  void prefetch_text(std::size_t i, Key key) const {
    if (entries_[i].size() == key.size()) specops::prefetch(entries_[i].data());
  }
  bool equal(std::size_t i, Key key) const { return entries_[i] == key; }

 private:
  const std::string* entries_;
};

class TextsByElement : public Texts {
 public:
  explicit TextsByElement(const Input& vocabulary) : entries_(vocabulary) {}

  static Strings keys(const Input& input) { return input.strings(); }

  void prefetch(std::size_t) const {}
  void prefetch_text(std::size_t, Key) const {}
  bool equal(std::size_t i, Key key) const { return entries_.equal(i, key); }

 private:
  StringElements entries_;
};

// A vocabulary with its hash table.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;
  virtual void find(const Context& context, const Input& keys, std::int64_t* ids, const Otherwise& otherwise) const = 0;
};

// Fewer keys do not justify another thread.
constexpr std::int64_t grain = 1024;

// Every step of a search waits for memory, so keys are processed in blocks, whose waits overlap.
constexpr std::size_t block = 32;

template <class Entries>
class VocabularyOf : public Vocabulary {
 public:
  explicit VocabularyOf(const Input& vocabulary)
      : entries_(vocabulary), count_(static_cast<std::size_t>(vocabulary.size())) {
    const auto source = Entries::keys(vocabulary);
    if (fill(source)) return;
    secret_.draw();
    fill(source);
  }

  void find(const Context& context, const Input& keys, std::int64_t* ids, const Otherwise& otherwise) const override {
    const auto source = Entries::keys(keys);
    context.parallel_ranges(keys.size(), grain, [&](std::int64_t begin, std::int64_t end) {
      const auto last = static_cast<std::size_t>(end);
      for (auto first = static_cast<std::size_t>(begin); first < last; first += block) {
        find_block(source, first, std::min(block, last - first), ids, otherwise);
      }
    });
  }

 private:
  using Key = typename Entries::Key;

  template <class Source>
  void find_block(const Source& source, std::size_t first, std::size_t size, std::int64_t* ids,
                  const Otherwise& otherwise) const {
    Key key[block];
    std::uint64_t hash[block];
    IdTable::Cursor cursor[block];
    std::uint32_t id[block];
    for (std::size_t i = 0; i < size; ++i) {
      key[i] = source[first + i];
      hash[i] = Entries::hash(key[i], secret_);
      cursor[i] = table_.start(hash[i]);
      table_.prefetch(cursor[i]);
    }
    // Separates hits and misses without branches, which would often be mispredicted.
    std::size_t hit[block], miss[block], hits = 0, misses = 0;
    for (std::size_t i = 0; i < size; ++i) {
      id[i] = table_.next(cursor[i]);
      const bool found = id[i] != IdTable::none;
      hit[hits] = miss[misses] = i;
      hits += found;
      misses += !found;
      entries_.prefetch(found ? id[i] : 0);
    }
    for (std::size_t k = 0; k < hits; ++k) entries_.prefetch_text(id[hit[k]], key[hit[k]]);
    for (std::size_t k = 0; k < hits; ++k) {
      const std::size_t i = hit[k];
      while (id[i] != IdTable::none && !entries_.equal(id[i], key[i])) id[i] = table_.next(cursor[i]);
      if (id[i] == IdTable::none) {
        miss[misses++] = i;
      } else {
        ids[first + i] = id[i];
      }
    }
    for (std::size_t k = 0; k < misses; ++k) {
      const std::size_t i = miss[k];
      ids[first + i] = otherwise.num_oov_buckets == 0 ? otherwise.default_value
                                                      : static_cast<std::int64_t>(count_) +
                                                            Entries::bucket(key[i], hash[i], secret_, otherwise.bucketing);
    }
  }

  // Returns false if entries cluster improbably and there is another hash to try.
  template <class Source>
  bool fill(const Source& source) {
    constexpr std::size_t most_distance = 1024;
    table_ = IdTable(count_);
    std::uint64_t hash[block];
    for (std::size_t first = 0; first < count_; first += block) {
      const std::size_t size = std::min(block, count_ - first);
      for (std::size_t i = 0; i < size; ++i) {
        hash[i] = Entries::hash(source[first + i], secret_);
        table_.prefetch(table_.start(hash[i]));
      }
      for (std::size_t i = 0; i < size; ++i) {
        const Key key = source[first + i];
        IdTable::Cursor cursor = table_.start(hash[i]);
        for (std::uint32_t id = table_.next(cursor); id != IdTable::none; id = table_.next(cursor)) {
          if (Key(source[id]) == key) {
            fail("vocabulary[", first + i, "] = ", Entries::shown(key), " repeats vocabulary[", id, "]");
          }
        }
        if (!secret_.in_use && table_.distance(hash[i], cursor) > most_distance) return false;
        table_.insert(cursor, static_cast<std::uint32_t>(first + i));
      }
    }
    return true;
  }

  Entries entries_;
  std::size_t count_;
  Secret secret_;
  IdTable table_;
};

std::unique_ptr<Vocabulary> prepare(const Input& vocabulary, const Otherwise& otherwise) {
  if (vocabulary.shape().size() != 1) {
    fail("vocabulary has the shape ", to_string(vocabulary.shape()), "; expected one dimension");
  }
  if (vocabulary.size() == 0) fail("vocabulary: no entries");
  if (static_cast<std::uint64_t>(vocabulary.size()) > IdTable::most_entries) {
    fail("vocabulary: ", vocabulary.size(), " entries, more than ", IdTable::most_entries);
  }
  if (otherwise.num_oov_buckets > std::numeric_limits<std::int64_t>::max() - vocabulary.size()) {
    fail("num_oov_buckets: ", otherwise.num_oov_buckets, " and the vocabulary's ", vocabulary.size(),
         " entries exceed the range of ids");
  }
  if (vocabulary.type() == Type::int64) return std::make_unique<VocabularyOf<Integers<std::int64_t>>>(vocabulary);
  if (vocabulary.type() == Type::int32) return std::make_unique<VocabularyOf<Integers<std::int32_t>>>(vocabulary);
  if (strings_in_place(vocabulary) != nullptr) return std::make_unique<VocabularyOf<TextsInPlace>>(vocabulary);
  return std::make_unique<VocabularyOf<TextsByElement>>(vocabulary);
}

class VocabularyTable : public Kernel {
 public:
  explicit VocabularyTable(const KernelInfo& info) {
    otherwise_.default_value = info.integer("default_value");
    otherwise_.num_oov_buckets = info.integer("num_oov_buckets");
    otherwise_.bucketing = Bucketing(info, otherwise_.num_oov_buckets);
    if (const auto constant = info.constant_input(1)) vocabulary_ = prepare(*constant, otherwise_);
  }

  void compute(Context& context) const override {
    const Input keys = context.input(0);
    std::unique_ptr<Vocabulary> transient;
    if (vocabulary_ == nullptr) transient = prepare(context.input(1), otherwise_);
    Output output = context.output(0, keys.shape());
    (transient ? *transient : *vocabulary_).find(context, keys, output.data<std::int64_t>(), otherwise_);
  }

 private:
  Otherwise otherwise_;
  std::unique_ptr<Vocabulary> vocabulary_;
};

}  // namespace

const Op& vocabulary_table() {
  static const Op op = {
      "VocabularyTable",
      {{"keys"}, {"vocabulary"}},
      {{"ids"}},
      Bucketing::attributes(
          {Attribute::integer("num_oov_buckets", 0).at_least(0), Attribute::integer("default_value", -1)}),
      {{{Type::string, Type::string}, {Type::int64}},
       {{Type::int64, Type::int64}, {Type::int64}},
       {{Type::int32, Type::int32}, {Type::int64}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<VocabularyTable>(info); },
      [](ShapeInference& graph) { graph.set_output(0, Type::int64, graph.shape(0)); },
  };
  return op;
}

}  // namespace specops
