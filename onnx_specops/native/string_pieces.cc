// StringJoin and StringSplit: joins strings along an axis, and splits them at a delimiter.
#include <limits>

#include "ops.h"
#include "ragged.h"

namespace specops {
namespace {

std::string_view bytes_of(const Input& input, const char* name) {
  if (input.shape().size() != 1) fail(name, " has the shape ", to_string(input.shape()), "; expected one dimension");
  return {static_cast<const char*>(input.bytes()), static_cast<std::size_t>(input.size())};
}

template <class T>
T scalar(const Input& input, const char* name) {
  if (input.size() != 1) fail(name, " has ", input.size(), " elements instead of one");
  return *input.data<T>();
}

class StringJoin : public Kernel {
 public:
  void compute(Context& context) const override {
    const Texts texts(context, 0);
    const std::string_view separator = bytes_of(context.input(3), "separator");
    auto axis = scalar<std::int64_t>(context.input(4), "axis");
    Shape shape = texts.shape();
    const auto rank = static_cast<std::int64_t>(shape.size());
    std::int64_t count = 1, inner = 1, outer = 1;
    if (rank != 0) {
      if (axis < -rank || axis >= rank) fail("axis = ", axis, " is out of range [", -rank, ", ", rank - 1, "]");
      axis += axis < 0 ? rank : 0;
      for (std::int64_t d = 0; d < rank; ++d) {
        const std::int64_t size = shape[static_cast<std::size_t>(d)];
        std::int64_t& product = d < axis ? outer : d == axis ? count : inner;
        if (product != 0 && size > std::numeric_limits<std::int64_t>::max() / product) fail("begins: too many elements");
        product *= size;
      }
      shape.erase(shape.begin() + axis);
    }
    // A shape without elements may have dimensions of any size.
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (inner != 0 && outer > most / inner) fail("begins: more than an int32 can count");
    const std::int64_t joined = outer * inner;
    context.check_size("begins", joined);
    const std::int64_t between = std::max<std::int64_t>(0, count - 1);
    const auto gap = static_cast<std::int64_t>(separator.size());
    // Checked before the multiplication, because the separators alone may exceed the limit.
    if (gap != 0 && between != 0 && joined > most / gap / between) {
      fail("symbols: more bytes than an int32 can count");
    }
    const std::int64_t total = texts.total() + joined * between * gap;
    context.check_size("symbols", total);
    if (total > most) fail("symbols: more bytes than an int32 can count");
    Output begins = context.output(0, shape), ends = context.output(1, shape), symbols = context.output(2, {total});
    auto* begin = begins.data<std::int32_t>();
    auto* end = ends.data<std::int32_t>();
    auto* const to = symbols.data<std::uint8_t>();
    std::int32_t at = 0;
    const auto append = [&](std::string_view text) {
      if (!text.empty()) std::memcpy(to + at, text.data(), text.size());
      at += static_cast<std::int32_t>(text.size());
    };
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) {
        *begin++ = at;
        for (std::int64_t k = 0; k < count; ++k) {
          if (k != 0) append(separator);
          append(texts[static_cast<std::size_t>((o * count + k) * inner + i)]);
        }
        *end++ = at;
      }
    }
  }
};

class StringSplit : public Kernel {
 public:
  void compute(Context& context) const override {
    const Texts texts(context, 0);
    const std::string_view delimiter = bytes_of(context.input(3), "delimiter");
    const bool skips = scalar<bool>(context.input(4), "skip_empty");
    struct Piece {
      std::size_t owner;
      std::int64_t place;
      std::string_view text;
    };
    std::vector<Piece> pieces;
    std::int64_t most = 0;
    const auto columns = static_cast<std::int64_t>(texts.shape().size()) + 1;
    for (std::size_t owner = 0; owner < texts.size(); ++owner) {
      std::int64_t place = 0;
      const auto add = [&](std::string_view text) {
        if (!skips || !text.empty()) pieces.push_back({owner, place, text});
        ++place;
      };
      std::string_view rest = texts[owner];
      if (delimiter.empty()) {
        for (std::size_t k = 0; k < rest.size(); ++k) add(rest.substr(k, 1));
      } else {
        for (std::size_t found; (found = rest.find(delimiter)) != std::string_view::npos;) {
          add(rest.substr(0, found));
          rest.remove_prefix(found + delimiter.size());
        }
        add(rest);
      }
      most = std::max(most, place);
      context.check_size("indices", static_cast<std::int64_t>(pieces.size()) * columns);
    }
    write(context, texts.shape(), pieces, most);
  }

 private:
  template <class Pieces>
  static void write(Context& context, const Shape& shape, const Pieces& pieces, std::int64_t most) {
    const auto count = static_cast<std::int64_t>(pieces.size()), rank = static_cast<std::int64_t>(shape.size());
    std::int64_t total = 0;
    for (const auto& piece : pieces) total += static_cast<std::int64_t>(piece.text.size());
    Output indices = context.output(0, {count, rank + 1});
    Output begins = context.output(1, {count}), ends = context.output(2, {count}), symbols = context.output(3, {total});
    Output dense = context.output(4, {rank + 1});
    auto* index = indices.template data<std::int64_t>();
    auto* begin = begins.template data<std::int32_t>();
    auto* end = ends.template data<std::int32_t>();
    auto* to = symbols.template data<std::uint8_t>();
    std::int32_t at = 0;
    for (const auto& piece : pieces) {
      auto rest = static_cast<std::int64_t>(piece.owner);
      for (std::size_t d = shape.size(); d-- > 0;) {
        index[d] = rest % shape[d];
        rest /= shape[d];
      }
      index[rank] = piece.place;
      index += rank + 1;
      *begin++ = at;
      if (!piece.text.empty()) std::memcpy(to + at, piece.text.data(), piece.text.size());
      *end++ = at += static_cast<std::int32_t>(piece.text.size());
    }
    auto* size = dense.template data<std::int64_t>();
    for (const std::int64_t dimension : shape) *size++ = dimension;
    *size = most;
  }
};

template <class T>
std::unique_ptr<Kernel> create(const KernelInfo&) {
  return std::make_unique<T>();
}

constexpr Type i = Type::int32, u = Type::uint8;

}  // namespace

const Op& string_join() {
  static const Op op = {
      "StringJoin",
      {{"begins"}, {"ends"}, {"symbols"}, {"separator"}, {"axis"}},
      {{"begins"}, {"ends"}, {"symbols"}},
      {},
      {{{i, i, u, u, Type::int64}, {i, i, u}}},
      create<StringJoin>,
      nullptr,
  };
  return op;
}

const Op& string_split() {
  static const Op op = {
      "StringSplit",
      {{"begins"}, {"ends"}, {"symbols"}, {"delimiter"}, {"skip_empty"}},
      {{"indices"}, {"begins"}, {"ends"}, {"symbols"}, {"shape"}},
      {},
      {{{i, i, u, u, Type::boolean}, {Type::int64, i, i, u, Type::int64}}},
      create<StringSplit>,
      nullptr,
  };
  return op;
}

}  // namespace specops
