// Operators from strings to ids: BPETokenizer, WordpieceTokenizer, UnigramTokenizer, TrieTokenizer.
#include <algorithm>
#include <limits>
#include <optional>

#include "byte_trie.h"
#include "hashing.h"
#include "merging.h"
#include "ops.h"
#include "ragged.h"
#include "string_tensor.h"

namespace specops {
namespace {

using Tokens = std::vector<std::pair<std::string_view, std::int32_t>>;

// The greatest id.
constexpr std::int64_t most_id = std::numeric_limits<std::int32_t>::max();

// A model that is created from constant inputs once per session, and otherwise in every run.
template <class Model>
class Prepared : public Kernel {
 public:
  explicit Prepared(const KernelInfo& info) : settings_(info) {
    if (const auto known = info.constant_inputs(Model::first_input, Model::inputs)) model_.emplace(settings_, *known);
  }

  void compute(Context& context) const override {
    const TextRows rows(context);
    if (model_) return run(context, rows, *model_);
    run(context, rows, Model(settings_, context.inputs(Model::first_input, Model::inputs)));
  }

 private:
  static void run(Context& context, const TextRows& rows, const Model& model) {
    tokenize(
        context, rows, [&] { return typename Model::Scratch(); },
        [&](std::string_view text, auto& scratch, std::vector<std::int32_t>& ids) { model.encode(text, scratch, ids); });
  }

  typename Model::Settings settings_;
  std::optional<Model> model_;
};

Texts vocabulary(const std::vector<Input>& inputs) { return Texts(inputs[0], inputs[1], inputs[2], "vocab_"); }

void check_count(const Input& input, const char* name, std::size_t tokens) {
  if (static_cast<std::size_t>(input.size()) != tokens) {
    fail(name, " has ", input.size(), " elements instead of one for each of the ", tokens, " tokens");
  }
}

// -------------------------------------------------------------------------------------------------------------------- BPE

// The merges in a node's input.
PairTable merges_of(const Input& input) {
  if (input.shape().size() != 2 || input.shape()[1] != 3) {
    fail("merges has the shape ", to_string(input.shape()), "; expected [merges, 3]");
  }
  const auto* entry = input.data<std::int32_t>();
  const auto count = static_cast<std::size_t>(input.shape()[0]);
  if (count > std::size_t{std::numeric_limits<std::int32_t>::max()}) fail("merges: more than an int32 can count");
  PairTable table(count);
  for (std::size_t i = 0; i < count; ++i, entry += 3) {
    table.put(entry[0], entry[1], {static_cast<std::int32_t>(i), entry[2]});
  }
  return table;
}

// The ids of earlier texts within one run.
class Memory {
 public:
  struct Slot {
    std::uint64_t hash = 0;
    std::string_view text;
    std::uint32_t begin = 0, count = 0;
    bool used = false;
  };

  // The slot of the text, or the free slot for it.
  Slot& find(std::string_view text) {
    if (2 * used_ >= slots_.size()) grow();
    const std::uint64_t hash = fingerprint64(text);
    Slot& slot = *place(slots_, hash, text);
    slot.hash = hash;
    return slot;
  }
  void keep(Slot& slot, std::string_view text, std::size_t begin, std::size_t count) {
    if (begin > std::numeric_limits<std::uint32_t>::max()) return;
    slot = {slot.hash, text, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(count), true};
    ++used_;
  }

 private:
  static Slot* place(std::vector<Slot>& slots, std::uint64_t hash, std::string_view text) {
    std::size_t at = hash & (slots.size() - 1);
    while (slots[at].used && (slots[at].hash != hash || slots[at].text != text)) at = (at + 1) & (slots.size() - 1);
    return &slots[at];
  }
  void grow() {
    std::vector<Slot> larger(slots_.empty() ? 64 : 4 * slots_.size());
    for (const Slot& slot : slots_) {
      if (slot.used) *place(larger, slot.hash, slot.text) = slot;
    }
    slots_.swap(larger);
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

class Bpe {
 public:
  static constexpr std::size_t first_input = 5, inputs = 6;

  struct Settings {
    explicit Settings(const KernelInfo& info)
        : unknown(static_cast<std::int32_t>(info.integer("unk_token_id"))), suffix(info.string("end_suffix")) {}
    std::int32_t unknown;
    std::string suffix;
  };

  struct Symbol {
    std::int32_t id, previous, next;
    bool alive;
  };
  struct Scratch {
    std::vector<Symbol> symbols;
    MergeQueue queue;
    Memory memory;
    std::string text;
  };

  Bpe(const Settings& settings, const std::vector<Input>& inputs) : suffix_(settings.suffix), merges_(merges_of(inputs[4])) {
    const Texts texts = vocabulary(inputs);
    check_count(inputs[3], "vocab_ids", texts.size());
    const auto* ids = inputs[3].data<std::int32_t>();
    Tokens tokens(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) tokens[i] = {texts[i], ids[i]};
    tokens_ = ByteTrie(std::move(tokens));
    std::fill(std::begin(fallback_), std::end(fallback_), settings.unknown);
    if (!inputs[5].absent()) {
      if (inputs[5].size() != 256) fail("byte_ids has ", inputs[5].size(), " elements instead of 256");
      const auto* bytes = inputs[5].data<std::int32_t>();
      for (std::size_t i = 0; i < 256; ++i) {
        if (bytes[i] != -1) fallback_[i] = bytes[i];
      }
    }
  }

  void encode(std::string_view text, Scratch& scratch, std::vector<std::int32_t>& ids) const {
    // Long texts rarely repeat, but the lookup costs little compared to their merges.
    if (text.size() > 1024) return encode_uncached(text, scratch, ids);
    Memory::Slot& slot = scratch.memory.find(text);
    const std::size_t before = ids.size();
    if (slot.used) {
      ids.resize(before + slot.count);
      std::copy_n(ids.begin() + slot.begin, slot.count, ids.begin() + static_cast<std::ptrdiff_t>(before));
      return;
    }
    encode_uncached(text, scratch, ids);
    scratch.memory.keep(slot, text, before, ids.size() - before);
  }

 private:
  void encode_uncached(std::string_view text, Scratch& scratch, std::vector<std::int32_t>& ids) const {
    if (!suffix_.empty()) {
      scratch.text.assign(text);
      scratch.text += suffix_;
      text = scratch.text;
    }
    std::vector<Symbol>& symbols = scratch.symbols;
    symbols.clear();
    const auto append = [&](std::int32_t id) {
      const auto index = static_cast<std::int32_t>(symbols.size());
      if (index > 0) symbols.back().next = index;
      symbols.push_back({id, index - 1, -1, true});
    };
    for (std::size_t at = 0; at < text.size();) {
      const ByteTrie::Match match = tokens_.longest(text.substr(at));
      const std::int32_t id = match.length != 0 ? match.id : fallback_[static_cast<unsigned char>(text[at])];
      if (id != -1) append(id);
      at += match.length != 0 ? match.length : 1;
    }
    merge(symbols, scratch.queue);
    for (std::int32_t i = first_alive(symbols); i != -1; i = symbols[static_cast<std::size_t>(i)].next) {
      ids.push_back(symbols[static_cast<std::size_t>(i)].id);
    }
  }

  // The first live symbol: the first one, or the last one that replaced it.
  static std::int32_t first_alive(const std::vector<Symbol>& symbols) {
    for (std::size_t i = symbols.size(); i-- > 0;) {
      if (symbols[i].alive && symbols[i].previous == -1) return static_cast<std::int32_t>(i);
    }
    return -1;
  }

  void merge(std::vector<Symbol>& symbols, MergeQueue& queue) const {
    queue.clear();
    const auto at = [&](std::int32_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
    const auto push = [&](std::int32_t left, std::int32_t right, std::int32_t order) {
      if (const PairTable::Merge* merge = merges_.find(at(left).id, at(right).id)) {
        queue.push({merge->rank, order, merge->id, left, right});
      }
    };
    const auto count = static_cast<std::int32_t>(symbols.size());
    for (std::int32_t left = 0; left + 1 < count; ++left) push(left, left + 1, left);
    std::int32_t order = std::max(0, count - 1);
    while (!queue.empty()) {
      const MergeQueue::Entry entry = queue.pop();
      // A merge removes both symbols. Two former neighbors remain neighbors as long as both are alive.
      if (!at(entry.left).alive || !at(entry.right).alive) continue;
      const std::int32_t previous = at(entry.left).previous, next = at(entry.right).next;
      const auto merged = static_cast<std::int32_t>(symbols.size());
      symbols.push_back({entry.id, previous, next, true});
      at(entry.left).alive = at(entry.right).alive = false;
      if (previous != -1) at(previous).next = merged;
      if (next != -1) at(next).previous = merged;
      ++order;
      if (previous != -1) push(previous, merged, order);
      if (next != -1) push(merged, next, order);
    }
  }

  std::string suffix_;
  PairTable merges_;
  ByteTrie tokens_;
  std::int32_t fallback_[256];
};

// -------------------------------------------------------------------------------------------------------------- WordPiece

class Wordpiece {
 public:
  static constexpr std::size_t first_input = 5, inputs = 3;

  struct Settings {
    explicit Settings(const KernelInfo& info)
        : indicator(info.string("suffix_indicator")),
          most(info.integer("max_bytes_per_word")),
          unknown(static_cast<std::int32_t>(info.integer("unk_token_id"))) {}
    std::string indicator;
    std::int64_t most;
    std::int32_t unknown;
  };
  struct Scratch {};

  Wordpiece(const Settings& settings, const std::vector<Input>& inputs)
      : most_(settings.most), unknown_(settings.unknown) {
    const Texts texts = vocabulary(inputs);
    const std::string_view indicator = settings.indicator;
    Tokens first, following;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string_view token = texts[i];
      const auto id = static_cast<std::int32_t>(i);
      if (token.substr(0, indicator.size()) == indicator) {
        following.emplace_back(token.substr(indicator.size()), id);
      } else {
        first.emplace_back(token, id);
      }
    }
    first_ = ByteTrie(std::move(first));
    following_ = ByteTrie(std::move(following));
  }

  void encode(std::string_view word, Scratch&, std::vector<std::int32_t>& ids) const {
    const std::size_t before = ids.size();
    if (static_cast<std::int64_t>(word.size()) <= most_) {
      ByteTrie::Match match = first_.longest(word);
      while (match.length != 0) {
        ids.push_back(match.id);
        word.remove_prefix(match.length);
        if (word.empty()) return;
        match = following_.longest(word);
      }
      ids.resize(before);
    }
    ids.push_back(unknown_);
  }

 private:
  std::int64_t most_;
  std::int32_t unknown_;
  ByteTrie first_, following_;
};

// ---------------------------------------------------------------------------------------------------------------- unigram

class Unigram {
 public:
  static constexpr std::size_t first_input = 5, inputs = 4;

  struct Settings {
    explicit Settings(const KernelInfo& info) : unknown(static_cast<std::int32_t>(info.integer("unk_token_id"))) {}
    std::int32_t unknown;
  };
  // The best path to a position: the start of its last token, and that token.
  struct Place {
    float score;
    std::int32_t begin, id;
  };
  struct Scratch {
    std::vector<Place> places;
  };

  Unigram(const Settings& settings, const std::vector<Input>& inputs) : unknown_(settings.unknown) {
    const Texts texts = vocabulary(inputs);
    check_count(inputs[3], "scores", texts.size());
    const auto* scores = inputs[3].data<float>();
    scores_.assign(scores, scores + texts.size());
    Tokens tokens(texts.size());
    float least = std::numeric_limits<float>::max();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      tokens[i] = {texts[i], static_cast<std::int32_t>(i)};
      least = std::min(least, scores[i]);
    }
    penalty_ = static_cast<float>(double{least} - 10.0);
    tokens_ = ByteTrie(std::move(tokens));
  }

  void encode(std::string_view text, Scratch& scratch, std::vector<std::int32_t>& ids) const {
    std::vector<Place>& places = scratch.places;
    places.assign(text.size() + 1, Place{0.0f, -1, unknown_});
    const auto reach = [&](std::size_t end, float score, std::size_t begin, std::int32_t id) {
      Place& place = places[end];
      if (place.begin == -1 || score > place.score) place = {score, static_cast<std::int32_t>(begin), id};
    };
    for (std::size_t at = 0; at < text.size();) {
      const auto lead = static_cast<unsigned char>(text[at]);
      const std::size_t width = std::min<std::size_t>(lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1,
                                                      text.size() - at);
      const float score = places[at].score;
      bool found = false;
      ByteTrie::Node node = ByteTrie::root;
      for (std::size_t end = at; end < text.size() && tokens_.step(node, static_cast<unsigned char>(text[end]));) {
        ++end;
        if (!tokens_.has_token(node)) continue;
        const std::int32_t id = tokens_.id(node);
        reach(end, scores_[static_cast<std::size_t>(id)] + score, at, id);
        found = found || end - at == width;
      }
      if (!found) reach(at + width, penalty_ + score, at, unknown_);
      at += width;
    }
    const auto before = static_cast<std::ptrdiff_t>(ids.size());
    std::int32_t following = -1;
    for (std::size_t at = text.size(); at > 0;) {
      const Place& place = places[at];
      if (place.id != unknown_ || following != unknown_) ids.push_back(following = place.id);
      at = static_cast<std::size_t>(place.begin);
    }
    std::reverse(ids.begin() + before, ids.end());
  }

 private:
  std::int32_t unknown_;
  float penalty_;
  std::vector<float> scores_;
  ByteTrie tokens_;
};

// ------------------------------------------------------------------------------------------------------------------- trie

class LongestTokens {
 public:
  static constexpr std::size_t first_input = 5, inputs = 4;

  struct Settings {
    explicit Settings(const KernelInfo&) {}
  };
  struct Scratch {};

  LongestTokens(const Settings&, const std::vector<Input>& inputs) {
    const Texts texts = vocabulary(inputs);
    check_count(inputs[3], "vocab_ids", texts.size());
    const auto* ids = inputs[3].data<std::int32_t>();
    Tokens tokens(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) tokens[i] = {texts[i], ids[i]};
    tokens_ = ByteTrie(std::move(tokens));
  }

  void encode(std::string_view text, Scratch&, std::vector<std::int32_t>& ids) const {
    while (!text.empty()) {
      const ByteTrie::Match match = tokens_.longest(text);
      if (match.length == 0) fail("no token for ", quoted(text));
      ids.push_back(match.id);
      text.remove_prefix(match.length);
    }
  }

 private:
  ByteTrie tokens_;
};

template <class Model>
std::unique_ptr<Kernel> create(const KernelInfo& info) {
  return std::make_unique<Prepared<Model>>(info);
}

void infer_rows(ShapeInference& graph) {
  graph.set_output(0, Type::int32, graph.shape(0));
  graph.set_output(1, Type::int32, graph.shape(0));
}

std::vector<Parameter> parameters(std::vector<Parameter> more) {
  std::vector<Parameter> all = {{"ragged_begins"}, {"ragged_ends"},  {"begins"},     {"ends"},
                                {"symbols"},       {"vocab_begins"}, {"vocab_ends"}, {"vocab_symbols"}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<Signature> signatures(const std::vector<Type>& more) {
  constexpr Type i = Type::int32, u = Type::uint8;
  std::vector<Type> inputs = {i, i, i, i, u, i, i, u};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return {{inputs, {i, i, i}}};
}

}  // namespace

const Op& bpe_tokenizer() {
  static const Op op = {
      "BPETokenizer",
      parameters({{"vocab_ids"}, {"merges"}, {"byte_ids", true}}),
      {{"ragged_begins"}, {"ragged_ends"}, {"ids"}},
      {Attribute::integer("unk_token_id", -1).within(-1, most_id), Attribute::string("end_suffix", "")},
      signatures({Type::int32, Type::int32, Type::int32}),
      create<Bpe>,
      infer_rows,
  };
  return op;
}

const Op& wordpiece_tokenizer() {
  static const Op op = {
      "WordpieceTokenizer",
      parameters({}),
      {{"ragged_begins"}, {"ragged_ends"}, {"ids"}},
      {Attribute::string("suffix_indicator", "##"), Attribute::integer("max_bytes_per_word", 100).at_least(0),
       Attribute::integer("unk_token_id").within(-1, most_id)},
      signatures({}),
      create<Wordpiece>,
      infer_rows,
  };
  return op;
}

const Op& unigram_tokenizer() {
  static const Op op = {
      "UnigramTokenizer",
      parameters({{"scores"}}),
      {{"ragged_begins"}, {"ragged_ends"}, {"ids"}},
      {Attribute::integer("unk_token_id").within(-1, most_id)},
      signatures({Type::float32}),
      create<Unigram>,
      infer_rows,
  };
  return op;
}

const Op& trie_tokenizer() {
  static const Op op = {
      "TrieTokenizer",
      parameters({{"vocab_ids"}}),
      {{"ragged_begins"}, {"ragged_ends"}, {"ids"}},
      {},
      signatures({Type::int32}),
      create<LongestTokens>,
      infer_rows,
  };
  return op;
}

}  // namespace specops
