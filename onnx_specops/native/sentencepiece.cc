// SentencepieceTokenizer and SentencepieceDetokenizer: strings to the ids of a SentencePiece model's pieces, and back.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include "byte_trie.h"
#include "chars_map.h"
#include "merging.h"
#include "ops.h"
#include "ragged.h"

namespace specops {
namespace {

constexpr std::string_view space = "\xE2\x96\x81", replacement = "\xEF\xBF\xBD";

// The types of pieces, numbered as in SentencePiece's files; 0 marks special tokens, which a model does not have.
enum Piece : std::uint8_t { special, normal, unknown, control, user_defined, unused, byte_piece };

// The greatest id.
constexpr std::int64_t most_id = std::numeric_limits<std::int32_t>::max();

std::size_t width(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  return std::min<std::size_t>(lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1, text.size());
}

// The byte that a piece such as <0x0A> represents, or -1.
int byte_of(std::string_view piece) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
  if (piece.size() != 6 || piece.substr(0, 3) != "<0x" || piece[5] != '>') return -1;
  const int high = digit(piece[3]), low = digit(piece[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

const std::uint8_t* types_of(const Input& types, const Texts& pieces) {
  if (static_cast<std::size_t>(types.size()) != pieces.size()) {
    fail("types has ", types.size(), " elements instead of one for each of the ", pieces.size(), " pieces");
  }
  return types.data<std::uint8_t>();
}

template <class T>
const T* as_many(const Input& input, const char* name, std::size_t pieces) {
  if (static_cast<std::size_t>(input.size()) != pieces) {
    fail(name, " has ", input.size(), " elements instead of one for each of the ", pieces, " pieces");
  }
  return input.data<T>();
}

// A character map that leaves the longest user-defined symbol at each position unchanged.
class SymbolsKept {
 public:
  SymbolsKept(const CharsMap& map, const ByteTrie* symbols) : map_(map), symbols_(symbols) {}
  CharsMap::Prefix prefix(std::string_view text) const {
    if (symbols_ != nullptr) {
      const std::size_t length = symbols_->longest(text).length;
      if (length != 0) return {text.substr(0, length), length};
    }
    return map_.prefix(text);
  }

 private:
  const CharsMap& map_;
  const ByteTrie* symbols_;
};

// A model, created from the inputs vocab_begins to charsmap. A piece is identified by its index in the vocabulary.
class Model {
 public:
  static constexpr std::size_t first_input = 5, inputs = 7;
  enum Kind : std::size_t { unigram, bpe, word, character };

  struct Symbol {
    std::uint32_t begin, size;  // size 0: merged into another symbol
    std::int32_t id;            // negative: never merged
    std::int32_t previous, next;
  };
  // The best path to a position of a text: the start of its last piece, and that piece.
  struct Place {
    float score;
    std::int32_t begin, piece;
  };
  struct Scratch {
    std::string normalized;
    std::vector<Place> places;
    std::vector<std::pair<std::int32_t, std::string_view>> cut;
    std::vector<Symbol> symbols;
    MergeQueue queue;
    std::unordered_map<std::int32_t, std::pair<std::int32_t, std::int32_t>> halves;
  };

  Model(Kind kind, const Whitespace& spaces, const std::vector<Input>& given)
      : kind_(kind), spaces_(spaces), map_(given[6]) {
    const Texts texts(given[0], given[1], given[2], "vocab_");
    const std::size_t count = texts.size();
    const auto* ids = as_many<std::int32_t>(given[3], "vocab_ids", count);
    const auto* scores = as_many<float>(given[4], "scores", count);
    const auto* types = types_of(given[5], texts);
    ids_.assign(ids, ids + count);
    types_.assign(types, types + count);
    check(texts, scores);
    const auto trie = [&](std::initializer_list<Piece> kinds) {
      std::vector<std::pair<std::string_view, std::int32_t>> entries;
      for (std::size_t i = count; i-- > 0;) {  // the first of equal pieces counts, but the trie uses the last
        if (std::find(kinds.begin(), kinds.end(), types_[i]) != kinds.end()) {
          entries.emplace_back(texts[i], static_cast<std::int32_t>(i));
        }
      }
      return ByteTrie(std::move(entries));
    };
    special_ = trie({special});
    mergeable_ = trie({normal, user_defined, unused});
    reserved_ = trie({unknown, control, byte_piece});
    symbols_ = trie({user_defined});
    has_symbols_ = std::find(types_.begin(), types_.end(), user_defined) != types_.end();
    if (kind_ == unigram) prepare_scores(texts, scores);
    if (kind_ == bpe) prepare_merges(texts, scores);
  }

  // Finds the id of a special token; returns false if there is none.
  bool special_id(std::string_view text, std::int32_t& id) const {
    const std::int32_t place = exact(special_, text);
    if (place < 0) return false;
    id = ids_[static_cast<std::size_t>(place)];
    return true;
  }

  void encode(const Context& context, std::string_view text, Scratch& scratch, std::vector<std::int32_t>& ids) const {
    scratch.normalized.clear();
    normalize(context, SymbolsKept(map_, has_symbols_ ? &symbols_ : nullptr), spaces_, text, scratch.normalized);
    if (scratch.normalized.size() > static_cast<std::size_t>(most_id)) fail("a normalized string is too long");
    Sink sink{*this, ids};
    const std::string_view normalized = scratch.normalized;
    switch (kind_) {
      case unigram:
        return encode_unigram(normalized, scratch, sink);
      case bpe:
        return encode_merged(normalized, scratch, sink);
      case word:
        return encode_words(normalized, sink);
      case character:
        for (std::string_view rest = normalized; !rest.empty();) {
          const std::size_t size = unit(rest).first;
          sink.add(rest.substr(0, size));
          rest.remove_prefix(size);
        }
    }
  }

 private:
  // Receives the pieces of a text and writes their ids.
  struct Sink {
    const Model& model;
    std::vector<std::int32_t>& ids;
    bool after_unknown = false;

    void add(std::string_view piece) { add(model.find(piece), piece); }
    void add(std::int32_t place, std::string_view piece) {
      const bool is_unknown = place == model.unknown_;
      if (is_unknown && model.has_bytes_) {
        for (const char c : piece) ids.push_back(model.bytes_[static_cast<unsigned char>(c)]);
      } else if (!is_unknown || !after_unknown) {
        ids.push_back(model.ids_[static_cast<std::size_t>(place)]);
      }
      after_unknown = is_unknown;
    }
  };

  void check(const Texts& texts, const float* scores) {
    std::size_t unknowns = 0, bytes = 0;
    std::array<bool, 256> found{};
    for (std::size_t i = 0; i < types_.size(); ++i) {
      if (texts[i].empty()) fail("vocab_begins: piece ", i, " is empty");
    }
    for (std::size_t i = 0; i < types_.size(); ++i) {
      if (std::isnan(scores[i])) fail("scores[", i, "] is NaN");
    }
    for (std::size_t i = 0; i < types_.size(); ++i) {
      if (types_[i] > byte_piece) fail("types[", i, "] = ", int{types_[i]}, " is greater than 6");
    }
    for (std::size_t i = types_.size(); i-- > 0;) {
      if (types_[i] == unknown) {
        ++unknowns;
        unknown_ = static_cast<std::int32_t>(i);
      } else if (types_[i] == byte_piece) {
        has_bytes_ = true;
        const int byte = byte_of(texts[i]);
        if (byte < 0) continue;
        bytes += !found[static_cast<std::size_t>(byte)];
        found[static_cast<std::size_t>(byte)] = true;
        bytes_[static_cast<std::size_t>(byte)] = ids_[i];
      }
    }
    if (unknowns != 1) fail("types: ", unknowns, " pieces are unknown (2); expected one");
    if (has_bytes_ && bytes != 256) fail("types: there are bytes (6), but not all 256");
  }

  // Returns -1 if the trie does not contain the text.
  static std::int32_t exact(const ByteTrie& trie, std::string_view text) {
    ByteTrie::Node node = ByteTrie::root;
    for (const char c : text) {
      if (!trie.step(node, static_cast<unsigned char>(c))) return -1;
    }
    return trie.has_token(node) ? trie.id(node) : -1;
  }

  // Finds the piece of a text, with unused and control pieces last.
  std::int32_t find(std::string_view text) const {
    std::int32_t place = exact(reserved_, text);
    if (place < 0) place = exact(mergeable_, text);
    return place < 0 ? unknown_ : place;
  }

  // The length of the user-defined symbol or character at the start of a text, and whether it is a symbol.
  std::pair<std::size_t, bool> unit(std::string_view text) const {
    const std::size_t length = has_symbols_ ? symbols_.longest(text).length : 0;
    return length != 0 ? std::make_pair(length, true) : std::make_pair(width(text), false);
  }

  void encode_words(std::string_view text, Sink& sink) const {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size(); at += width(text.substr(at))) {
      if (at == begin || text.substr(at, space.size()) != space) continue;
      sink.add(text.substr(begin, at - begin));
      begin = at;
    }
    if (!text.empty()) sink.add(text.substr(begin));
  }

  // ---- unigram

  void prepare_scores(const Texts& texts, const float* scores) {
    float least = std::numeric_limits<float>::max(), most = std::numeric_limits<float>::min();
    for (std::size_t i = 0; i < types_.size(); ++i) {
      if (types_[i] != normal) continue;
      least = std::min(least, scores[i]);
      most = std::max(most, scores[i]);
    }
    penalty_ = least - 10.0f;
    scores_.resize(types_.size());
    for (std::size_t i = 0; i < types_.size(); ++i) {
      const float bonus = static_cast<float>(texts[i].size()) * most;
      scores_[i] = types_[i] == user_defined ? double{bonus} - 0.1 : double{scores[i]};
    }
  }

  void encode_unigram(std::string_view text, Scratch& scratch, Sink& sink) const {
    std::vector<Place>& places = scratch.places;
    places.assign(text.size() + 1, Place{0.0f, -1, -1});
    // SentencePiece adds and compares in double, but stores float.
    const auto reach = [&](std::size_t end, double score, std::size_t begin, std::int32_t piece) {
      Place& place = places[end];
      if (place.begin == -1 || score > double{place.score}) {
        place = {static_cast<float>(score), static_cast<std::int32_t>(begin), piece};
      }
    };
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = width(text.substr(at));
      const float score = places[at].score;
      bool found = false;
      ByteTrie::Node node = ByteTrie::root;
      for (std::size_t end = at; end < text.size() && mergeable_.step(node, static_cast<unsigned char>(text[end]));) {
        ++end;
        if (!mergeable_.has_token(node)) continue;
        const auto piece = static_cast<std::size_t>(mergeable_.id(node));
        if (types_[piece] == unused) continue;
        reach(end, scores_[piece] + double{score}, at, static_cast<std::int32_t>(piece));
        found = found || end - at == size;
      }
      if (!found) reach(at + size, double{penalty_ + score}, at, unknown_);
      at += size;
    }
    auto& cut = scratch.cut;
    cut.clear();
    for (std::size_t end = text.size(); end > 0;) {
      const auto begin = static_cast<std::size_t>(places[end].begin);
      cut.emplace_back(places[end].piece, text.substr(begin, end - begin));
      end = begin;
    }
    for (auto piece = cut.rbegin(); piece != cut.rend(); ++piece) sink.add(piece->first, piece->second);
  }

  // ---- byte pairs

  // Assigns an id to every possible symbol: its index for a piece that occurs in texts, and an id after all indices for a
  // character of such pieces that is not a piece.
  void prepare_merges(const Texts& texts, const float* scores) {
    std::vector<float> ranked(scores, scores + types_.size());
    std::sort(ranked.begin(), ranked.end(), std::greater<float>());
    ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());
    std::vector<std::int32_t> pieces;
    for (std::size_t i = 0; i < types_.size(); ++i) {
      const auto place = static_cast<std::int32_t>(i);
      sizes_.push_back(static_cast<std::uint32_t>(texts[i].size()));
      finals_.push_back(find(texts[i]));
      if (exact(mergeable_, texts[i]) == place && types_[i] >= normal) pieces.push_back(place);
    }
    std::unordered_map<std::string_view, std::int32_t> characters;
    for (const std::int32_t piece : pieces) {
      std::string_view rest = texts[static_cast<std::size_t>(piece)];
      while (!rest.empty()) {
        const std::string_view one = rest.substr(0, width(rest));
        rest.remove_prefix(one.size());
        if (characters.count(one) != 0) continue;
        std::int32_t id = exact(mergeable_, one);
        if (id < 0) {
          id = static_cast<std::int32_t>(sizes_.size());
          sizes_.push_back(static_cast<std::uint32_t>(one.size()));
          finals_.push_back(find(one));
        }
        characters.emplace(one, id);
      }
    }
    // A part is a piece, or a character that is not a piece.
    const auto id_of = [&](std::int32_t id, std::string_view part) {
      if (id >= 0 || width(part) != part.size()) return id;
      const auto found = characters.find(part);
      return found == characters.end() ? -1 : found->second;
    };
    const ByteTrie backwards = reversed(texts);
    struct Pair {
      std::int32_t left, right, piece;
    };
    std::vector<Pair> pairs;
    std::vector<std::int32_t> lefts, rights;  // the pieces that end and begin at each position
    for (const std::int32_t piece : pieces) {
      const std::string_view text = texts[static_cast<std::size_t>(piece)];
      const std::size_t size = text.size();
      lefts.assign(size + 1, -1);
      rights.assign(size + 1, -1);
      ByteTrie::Node node = ByteTrie::root;
      for (std::size_t i = 0; i < size && mergeable_.step(node, static_cast<unsigned char>(text[i])); ++i) {
        if (mergeable_.has_token(node)) lefts[i + 1] = mergeable_.id(node);
      }
      node = ByteTrie::root;
      for (std::size_t i = size; i > 0 && backwards.step(node, static_cast<unsigned char>(text[i - 1])); --i) {
        if (backwards.has_token(node)) rights[i - 1] = backwards.id(node);
      }
      for (std::size_t at = width(text); at < size; at += width(text.substr(at))) {
        const std::int32_t left = id_of(lefts[at], text.substr(0, at));
        const std::int32_t right = left < 0 ? -1 : id_of(rights[at], text.substr(at));
        if (right >= 0) pairs.push_back({left, right, piece});
      }
    }
    merges_ = PairTable(pairs.size());
    for (const Pair& pair : pairs) {
      const auto rank = std::lower_bound(ranked.begin(), ranked.end(), scores[pair.piece], std::greater<float>());
      merges_.put(pair.left, pair.right, {static_cast<std::int32_t>(rank - ranked.begin()), pair.piece});
    }
    std::vector<std::pair<std::string_view, std::int32_t>> units(characters.begin(), characters.end());
    characters_ = ByteTrie(std::move(units));
  }

  // The pieces that occur in texts, with their bytes reversed.
  ByteTrie reversed(const Texts& texts) const {
    // Pieces may share bytes, so a small file may contain very many.
    if (texts.total() > most_shared && texts.total() / 16 > texts.symbols()) {
      fail("the pieces have ", texts.total(), " bytes, more than ", most_shared, " and than 16 times those of vocab_symbols");
    }
    std::vector<std::string> turned;
    turned.reserve(texts.size());
    std::vector<std::pair<std::string_view, std::int32_t>> tokens;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto place = static_cast<std::int32_t>(i);
      if (exact(mergeable_, texts[i]) != place) continue;
      turned.emplace_back(texts[i].rbegin(), texts[i].rend());
      tokens.emplace_back(turned.back(), place);
    }
    return ByteTrie(std::move(tokens));
  }

  static constexpr std::int64_t most_shared = 1 << 24;

  void encode_merged(std::string_view text, Scratch& scratch, Sink& sink) const {
    std::vector<Symbol>& symbols = scratch.symbols;
    symbols.clear();
    scratch.halves.clear();
    for (std::size_t at = 0; at < text.size();) {
      const auto [size, is_symbol] = unit(text.substr(at));
      const auto index = static_cast<std::int32_t>(symbols.size());
      const bool is_last = at + size == text.size();
      symbols.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(size),
                         is_symbol ? -1 : exact(characters_, text.substr(at, size)), index - 1, is_last ? -1 : index + 1});
      at += size;
    }
    merge(symbols, scratch);
    for (std::int32_t i = symbols.empty() ? -1 : 0; i != -1; i = symbols[static_cast<std::size_t>(i)].next) {
      const Symbol& symbol = symbols[static_cast<std::size_t>(i)];
      const std::string_view piece = text.substr(symbol.begin, symbol.size);
      if (symbol.id < 0) {
        sink.add(piece);
      } else {
        add_cut(symbol.id, piece, scratch, sink);
      }
    }
  }

  void merge(std::vector<Symbol>& symbols, Scratch& scratch) const {
    MergeQueue& queue = scratch.queue;
    queue.clear();
    const auto at = [&](std::int32_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
    const auto push = [&](std::int32_t left, std::int32_t right) {
      if (left == -1 || right == -1 || at(left).id < 0 || at(right).id < 0) return;
      const PairTable::Merge* const merge = merges_.find(at(left).id, at(right).id);
      if (merge == nullptr) return;
      queue.push({merge->rank, left, merge->id, left, right});
      if (types_[static_cast<std::size_t>(merge->id)] == unused) scratch.halves[merge->id] = {at(left).id, at(right).id};
    };
    for (std::int32_t right = 1; right < static_cast<std::int32_t>(symbols.size()); ++right) push(right - 1, right);
    while (!queue.empty()) {
      const MergeQueue::Entry entry = queue.pop();
      Symbol &left = at(entry.left), &right = at(entry.right);
      // A later merge may have consumed one of them.
      if (left.size == 0 || right.size == 0 || left.size + right.size != sizes_[static_cast<std::size_t>(entry.id)]) continue;
      left.size += right.size;
      left.id = entry.id;
      left.next = right.next;
      if (right.next >= 0) at(right.next).previous = entry.left;
      right.size = 0;
      push(left.previous, entry.left);
      push(entry.left, left.next);
    }
  }

  // Splits unused pieces again, which only serve as intermediate results of merges.
  void add_cut(std::int32_t id, std::string_view piece, Scratch& scratch, Sink& sink) const {
    const std::int32_t place = finals_[static_cast<std::size_t>(id)];
    if (types_[static_cast<std::size_t>(place)] == unused) {
      const auto halves = scratch.halves.find(id);
      if (halves != scratch.halves.end()) {
        const std::size_t middle = sizes_[static_cast<std::size_t>(halves->second.first)];
        add_cut(halves->second.first, piece.substr(0, middle), scratch, sink);
        return add_cut(halves->second.second, piece.substr(middle), scratch, sink);
      }
    }
    sink.add(place, piece);
  }

  Kind kind_;
  Whitespace spaces_;
  CharsMap map_;
  std::vector<std::int32_t> ids_;
  std::vector<std::uint8_t> types_;
  ByteTrie special_, mergeable_, reserved_, symbols_;
  bool has_symbols_ = false, has_bytes_ = false;
  std::int32_t unknown_ = 0;
  std::array<std::int32_t, 256> bytes_{};
  // unigram models
  float penalty_ = 0;
  std::vector<double> scores_;
  // byte-pair models, by id
  PairTable merges_;
  ByteTrie characters_;
  std::vector<std::uint32_t> sizes_;
  std::vector<std::int32_t> finals_;
};

class SentencepieceTokenizer : public Kernel {
 public:
  explicit SentencepieceTokenizer(const KernelInfo& info)
      : kind_(static_cast<Model::Kind>(info.choice("model_type"))),
        spaces_(info),
        add_bos_(info.flag("add_bos")),
        add_eos_(info.flag("add_eos")),
        reverse_(info.flag("reverse")),
        bos_(static_cast<std::int32_t>(info.integer("bos_id"))),
        eos_(static_cast<std::int32_t>(info.integer("eos_id"))) {
    if (const auto known = info.constant_inputs(Model::first_input, Model::inputs)) model_.emplace(kind_, spaces_, *known);
  }

  void compute(Context& context) const override {
    const TextRows rows(context);
    const Skips skips(context, Model::first_input + Model::inputs, rows.texts().size());
    if (model_) return run(context, rows, skips, *model_);
    run(context, rows, skips, Model(kind_, spaces_, context.inputs(Model::first_input, Model::inputs)));
  }

 private:
  void run(Context& context, const TextRows& rows, const Skips& skips, const Model& model) const {
    tokenize_rows(
        context, rows, [] { return Model::Scratch(); },
        [&](std::size_t row, Model::Scratch& scratch, std::vector<std::int32_t>& ids) {
          const auto before = static_cast<std::ptrdiff_t>(ids.size());
          for (std::size_t i = rows.begin(row); i < rows.end(row); ++i) {
            std::int32_t id = 0;
            if (skips[i]) {
              if (model.special_id(rows.texts()[i], id)) ids.push_back(id);
              continue;
            }
            if (add_bos_) ids.push_back(bos_);
            model.encode(context, rows.texts()[i], scratch, ids);
          }
          if (add_eos_) ids.push_back(eos_);
          if (reverse_) std::reverse(ids.begin() + before, ids.end());
        });
  }

  Model::Kind kind_;
  Whitespace spaces_;
  bool add_bos_, add_eos_, reverse_;
  std::int32_t bos_, eos_;
  std::optional<Model> model_;
};

// The text of every piece, with blanks for U+2581.
class Surfaces {
 public:
  Surfaces(const std::vector<Input>& pieces, std::string_view unknown_surface)
      : pieces_(pieces[0], pieces[1], pieces[2], "vocab_"), unknown_surface_(unknown_surface) {
    const auto* kinds = types_of(pieces[3], pieces_);
    surfaces_.reserve(pieces_.size());
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      Surface surface{kinds[i], 0};
      if (surface.kind == byte_piece) {
        const int byte = byte_of(pieces_[i]);
        if (byte < 0) fail("types[", i, "] = 6, but that piece is not a byte");
        surface.byte = static_cast<char>(byte);
      }
      surfaces_.push_back(surface);
    }
  }

  void decode(const Context& context, const std::int32_t* ids, std::int64_t count, bool prefix, bool squeeze,
              std::string& pending, std::string& out) const {
    const std::size_t before = out.size();
    bool at_begin = true, prefix_seen = false;
    pending.clear();
    for (std::int64_t k = 0; k < count; ++k) {
      const auto id = static_cast<std::size_t>(ids[k]);
      if (id >= surfaces_.size()) continue;
      const Surface& surface = surfaces_[id];
      if (surface.kind == byte_piece) {
        pending += surface.byte;
        continue;
      }
      if (!pending.empty()) flush(pending, out);
      at_begin = at_begin && !prefix_seen && out.size() == before;
      prefix_seen = false;
      if (surface.kind == control) continue;
      if (surface.kind == unknown) {
        out += unknown_surface_;
      } else {
        std::string_view text = pieces_[id];
        if (at_begin && (prefix || squeeze) && text.substr(0, space.size()) == space) {
          text.remove_prefix(space.size());
          prefix_seen = !squeeze;
        }
        for (std::size_t at; (at = text.find(space)) != std::string_view::npos; text.remove_prefix(at + space.size())) {
          out += text.substr(0, at);
          out += ' ';
        }
        out += text;
      }
      context.check_size("symbols", static_cast<std::int64_t>(out.size()));  // pieces may share bytes
    }
    flush(pending, out);
  }

 private:
  struct Surface {
    std::uint8_t kind;
    char byte;
  };

  static void flush(std::string& pending, std::string& out) {
    for (std::string_view rest = pending; !rest.empty();) {
      const std::size_t size = character_size(rest);
      out += size == 0 ? replacement : rest.substr(0, size);
      rest.remove_prefix(std::max<std::size_t>(1, size));
    }
    pending.clear();
  }

  Texts pieces_;
  std::string unknown_surface_;
  std::vector<Surface> surfaces_;
};

class SentencepieceDetokenizer : public Kernel {
 public:
  explicit SentencepieceDetokenizer(const KernelInfo& info)
      : unknown_(info.string("unk_surface")),
        prefix_(info.flag("add_dummy_prefix")),
        squeeze_(info.flag("remove_extra_whitespaces")) {
    if (const auto known = info.constant_inputs(1, 4)) fill(surfaces_, *known);
  }

  void compute(Context& context) const override {
    const Input ids = context.input(0);
    if (ids.shape().size() != 2) fail("ids has the shape ", to_string(ids.shape()), "; expected [rows, length]");
    std::optional<Surfaces> transient;
    if (!surfaces_) fill(transient, context.inputs(1, 4));
    const Surfaces& surfaces = surfaces_ ? *surfaces_ : *transient;
    const std::int64_t rows = ids.shape()[0], length = ids.shape()[1];
    const auto* id = ids.data<std::int32_t>();
    for (std::int64_t k = 0; k < ids.size(); ++k) {
      if (id[k] < 0) fail("ids[", k, "] = ", id[k], " is less than 0");
    }
    Output begins = context.output(0, {rows}), ends = context.output(1, {rows});
    auto* const begin = begins.data<std::int32_t>();
    auto* const end = ends.data<std::int32_t>();
    std::string all, pending;
    for (std::int64_t row = 0; row < rows; ++row, id += length) {
      begin[row] = static_cast<std::int32_t>(all.size());
      surfaces.decode(context, id, length, prefix_, squeeze_, pending, all);
      if (all.size() > std::numeric_limits<std::int32_t>::max()) fail("symbols: more bytes than an int32 can count");
      end[row] = static_cast<std::int32_t>(all.size());
    }
    Output symbols = context.output(2, {static_cast<std::int64_t>(all.size())});
    if (!all.empty()) std::memcpy(symbols.bytes(), all.data(), all.size());
  }

 private:
  void fill(std::optional<Surfaces>& surfaces, const std::vector<Input>& pieces) const {
    surfaces.emplace(pieces, unknown_);
  }

  std::string unknown_;
  bool prefix_, squeeze_;
  std::optional<Surfaces> surfaces_;
};

Attribute flag(const char* name, bool otherwise) { return Attribute::flag(name, otherwise).within(0, 1); }

}  // namespace

const Op& sentencepiece_tokenizer() {
  constexpr Type i = Type::int32, u = Type::uint8;
  static const Op op = {
      "SentencepieceTokenizer",
      {{"ragged_begins"}, {"ragged_ends"}, {"begins"}, {"ends"}, {"symbols"}, {"vocab_begins"}, {"vocab_ends"},
       {"vocab_symbols"}, {"vocab_ids"}, {"scores"}, {"types"}, {"charsmap", true}, {"skips", true}},
      {{"ragged_begins"}, {"ragged_ends"}, {"ids"}},
      {Attribute::string("model_type", "unigram").one_of({"unigram", "bpe", "word", "char"}), flag("add_dummy_prefix", true),
       flag("remove_extra_whitespaces", true), flag("escape_whitespaces", true), flag("treat_whitespace_as_suffix", false),
       flag("add_bos", false), Attribute::integer("bos_id", -1).within(-1, most_id), flag("add_eos", false),
       Attribute::integer("eos_id", -1).within(-1, most_id), flag("reverse", false)},
      {{{i, i, i, i, u, i, i, u, i, Type::float32, u, u, Type::boolean}, {i, i, i}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<SentencepieceTokenizer>(info); },
      [](ShapeInference& graph) {
        graph.set_output(0, Type::int32, graph.shape(0));
        graph.set_output(1, Type::int32, graph.shape(0));
      },
  };
  return op;
}

const Op& sentencepiece_detokenizer() {
  constexpr Type i = Type::int32, u = Type::uint8;
  static const Op op = {
      "SentencepieceDetokenizer",
      {{"ids"}, {"vocab_begins"}, {"vocab_ends"}, {"vocab_symbols"}, {"types"}},
      {{"begins"}, {"ends"}, {"symbols"}},
      {Attribute::string("unk_surface", " \xE2\x81\x87 "), flag("add_dummy_prefix", true),
       flag("remove_extra_whitespaces", true)},
      {{{i, i, i, u, u}, {i, i, u}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<SentencepieceDetokenizer>(info); },
      nullptr,
  };
  return op;
}

}  // namespace specops
