// CharsMapNormalization: replaces characters of strings by SentencePiece's map, and normalizes white space.
#include <optional>

#include "chars_map.h"
#include "ops.h"
#include "ragged.h"

namespace specops {
namespace {

class CharsMapNormalization : public Kernel {
 public:
  explicit CharsMapNormalization(const KernelInfo& info) : spaces_(info) {
    if (const auto constant = info.constant_input(3)) {
      map_.emplace(*constant);
    } else if (info.input_type(3) == Type::undefined) {
      map_.emplace(Input());
    }
  }

  void compute(Context& context) const override {
    const Texts texts(context, 0);
    const Skips skips(context, 4, texts.size());
    std::optional<CharsMap> transient;
    if (!map_) transient.emplace(context.input(3));
    const CharsMap& map = map_ ? *map_ : *transient;
    rewrite(context, texts, [&](std::size_t i, std::string& out) {
      if (skips[i]) {
        out += texts[i];
      } else {
        normalize(context, map, spaces_, texts[i], out);
      }
    });
  }

 private:
  Whitespace spaces_;
  std::optional<CharsMap> map_;
};

}  // namespace

const Op& chars_map_normalization() {
  constexpr Type i = Type::int32, u = Type::uint8;
  static const Op op = {
      "CharsMapNormalization",
      {{"begins"}, {"ends"}, {"symbols"}, {"charsmap", true}, {"skips", true}},
      {{"begins"}, {"ends"}, {"symbols"}},
      {Attribute::flag("add_dummy_prefix", false).within(0, 1), Attribute::flag("remove_extra_whitespaces", true).within(0, 1),
       Attribute::flag("escape_whitespaces", false).within(0, 1),
       Attribute::flag("treat_whitespace_as_suffix", false).within(0, 1)},
      {{{i, i, u, u, Type::boolean}, {i, i, u}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<CharsMapNormalization>(info); },
      [](ShapeInference& graph) {
        graph.set_output(0, Type::int32, graph.shape(0));
        graph.set_output(1, Type::int32, graph.shape(0));
      },
  };
  return op;
}

}  // namespace specops
