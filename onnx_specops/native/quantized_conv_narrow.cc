#include "quantized_conv_narrow.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace specops::byte_conv {

namespace {

// The time for 16 activations, relative to the time with 16-bit integers that are not converted from bytes for each panel.
constexpr double cost_of_quads = 0.70, cost_of_pairs = 0.84, cost_of_words = 1.1;
constexpr double cost_of_panel = 1.0;  // for a few rows
constexpr double largest_cost = 0.95;
// The number of blocks that are tried first. If few of them have quads, quads are not tried for other blocks.
constexpr std::int64_t sample = 48, least_quads_of_sample = 12;
// The maximum sum of the positive or negative weights of a sum of products.
constexpr std::int16_t most_weight = 128;
// Orders with larger excesses, or after more exchanges, are almost never found.
constexpr int most_excess = 1200, most_exchanges = 12;

constexpr std::size_t size_of_block = block_depth;

// The weights of some activations in each column, or sums of weights. Positive and negative weights are separate.
struct Weights {
  std::array<std::int16_t, block_columns> positive{}, negative{};

  void add(const Weights& more) {
    for (std::size_t c = 0; c < block_columns; ++c) {
      positive[c] = static_cast<std::int16_t>(positive[c] + more.positive[c]);
      negative[c] = static_cast<std::int16_t>(negative[c] + more.negative[c]);
    }
  }
};

std::int16_t above(std::int16_t sum) { return std::max<std::int16_t>(static_cast<std::int16_t>(sum - most_weight), 0); }

// The amount by which the weights of all columns exceed the limits if `less` is exchanged for `more`: at most 2 * 16 * 512.
int excess(const Weights& sums, const Weights& less, const Weights& more) {
  std::int16_t out = 0;
  for (std::size_t c = 0; c < block_columns; ++c) {
    const auto positive = static_cast<std::int16_t>(sums.positive[c] - less.positive[c] + more.positive[c]);
    const auto negative = static_cast<std::int16_t>(sums.negative[c] - less.negative[c] + more.negative[c]);
    out = static_cast<std::int16_t>(out + above(positive) + above(negative));
  }
  return out;
}

// The order of the activations of a block.
struct Block {
  std::array<Weights, size_of_block> activations;
  std::array<std::uint8_t, size_of_block> order;

  // Exchanges activations until the sums of each `size` in the order fit; returns whether they do.
  bool arrange(std::size_t size) {
    const Weights none;
    std::iota(order.begin(), order.end(), std::uint8_t{0});
    std::array<Weights, size_of_block> sums;
    std::array<int, size_of_block> over{};
    int all = 0;
    for (std::size_t group = 0; group < size_of_block / size; ++group) {
      for (std::size_t i = group * size; i < (group + 1) * size; ++i) sums[group].add(activations[i]);
      all += over[group] = excess(sums[group], none, none);
    }
    for (int exchanges = 0; all > 0; ++exchanges) {
      if (all > most_excess || exchanges == most_exchanges) return false;
      const auto worst = static_cast<std::size_t>(std::max_element(over.begin(), over.end()) - over.begin());
      int best = 0;
      std::size_t best_i = 0, best_j = 0;
      for (std::size_t i = worst * size; i < (worst + 1) * size; ++i) {
        const Weights& one = activations[order[i]];
        for (std::size_t j = 0; j < size_of_block; ++j) {
          if (j / size == worst) continue;
          const Weights& other = activations[order[j]];
          const int before = over[worst] + over[j / size], after = excess(sums[worst], one, other);
          if (before - after <= best) continue;
          const int gain = before - after - excess(sums[j / size], other, one);
          if (gain > best) {
            best = gain;
            best_i = i;
            best_j = j;
          }
        }
      }
      if (best == 0) return false;
      std::swap(order[best_i], order[best_j]);
      for (const std::size_t group : {worst, best_j / size}) {
        sums[group] = none;
        for (std::size_t i = group * size; i < (group + 1) * size; ++i) sums[group].add(activations[order[i]]);
        over[group] = excess(sums[group], none, none);
      }
      all = std::accumulate(over.begin(), over.end(), 0);
    }
    return true;
  }
};

struct Chosen {
  Sums kind;
  std::array<std::uint8_t, size_of_block> order;
};

// The weights of a layer as blocks, panel after panel.
class Blocks {
 public:
  Blocks(const std::int8_t* weights, std::int64_t columns, std::int64_t depth)
      : weights_(weights), columns_(columns), depth_(depth), per_panel_(depth / block_depth),
        chosen_(static_cast<std::size_t>(panels() * per_panel_)) {}

  std::int64_t panels() const { return (columns_ + block_columns - 1) / block_columns; }
  std::int64_t per_panel() const { return per_panel_; }
  const Chosen& chosen(std::int64_t panel, std::int64_t block) const {
    return chosen_[static_cast<std::size_t>(panel * per_panel_ + block)];
  }
  // Returns 0 if there is no such column.
  std::int8_t weight(std::int64_t panel, std::int64_t block, std::int64_t column, std::int64_t activation) const {
    const std::int64_t at = panel * block_columns + column;
    return at < columns_ ? weights_[at * depth_ + block * block_depth + activation] : std::int8_t{0};
  }

  // Returns whether products of bytes are faster than those of 16-bit integers, of which `used` activations are multiplied.
  bool choose(std::int64_t used) {
    const auto count = static_cast<std::int64_t>(chosen_.size()), step = std::max<std::int64_t>(count / sample, 1);
    std::int64_t tried = 0, quads = 0;
    double cost = 0.0;
    for (std::int64_t i = 0; i < count; i += step, ++tried) {
      const Sums kind = choose(i, true);
      quads += kind == Sums::quads;
      cost += kind == Sums::quads ? cost_of_quads : kind == Sums::pairs ? cost_of_pairs : cost_of_words;
    }
    const double of_panel = cost / static_cast<double>(tried) * static_cast<double>(per_panel_) + cost_of_panel;
    if (of_panel * block_depth > largest_cost * static_cast<double>(used)) return false;
    for (std::int64_t i = 0; i < count; ++i) {
      if (i % step != 0) choose(i, quads >= least_quads_of_sample);
    }
    return true;
  }

 private:
  Sums choose(std::int64_t i, bool may_be_quads) {
    Block block;
    for (std::int64_t k = 0; k < block_depth; ++k) {
      for (std::int64_t c = 0; c < block_columns; ++c) {
        const std::int16_t one = weight(i / per_panel_, i % per_panel_, c, k);
        Weights& of_activation = block.activations[static_cast<std::size_t>(k)];
        of_activation.positive[static_cast<std::size_t>(c)] = std::max<std::int16_t>(one, 0);
        of_activation.negative[static_cast<std::size_t>(c)] = std::max<std::int16_t>(static_cast<std::int16_t>(-one), 0);
      }
    }
    Chosen& out = chosen_[static_cast<std::size_t>(i)];
    if (may_be_quads && block.arrange(4)) {
      // Adjacent products are added first, then the products of both halves of eight.
      for (std::size_t k = 0; k < size_of_block; ++k) out.order[k] = block.order[k / 8 * 8 + k % 4 / 2 * 4 + k % 8 / 4 * 2 + k % 2];
      return out.kind = Sums::quads;
    }
    out.kind = block.arrange(2) ? Sums::pairs : Sums::words;
    out.order = block.order;
    return out.kind;
  }

  const std::int8_t* weights_;
  std::int64_t columns_, depth_, per_panel_;
  std::vector<Chosen> chosen_;
};

// A position in the packed numbers.
class Place {
 public:
  explicit Place(std::uint8_t* to) : to_(to) { align(); }
  void align() { to_ += (64 - reinterpret_cast<std::uintptr_t>(to_) % 64) % 64; }
  const std::uint8_t* here() const { return to_; }
  template <class T>
  void put(T number) {
    std::memcpy(to_, &number, sizeof number);
    to_ += sizeof number;
  }

 private:
  std::uint8_t* to_;
};

constexpr Sums all_kinds[] = {Sums::quads, Sums::pairs, Sums::words};

}  // namespace

Narrow pack_narrow(const std::int8_t* weights, std::int64_t columns, std::int64_t depth, std::int64_t used) {
  Narrow out;
  Blocks blocks(weights, columns, depth);
  if (columns == 0 || used == 0 || !blocks.choose(used)) return out;
  std::size_t size = 64;
  for (std::int64_t panel = 0; panel < blocks.panels(); ++panel) {
    NarrowPanel next{};
    for (std::int64_t i = 0; i < blocks.per_panel(); ++i) {
      const Sums kind = blocks.chosen(panel, i).kind;
      ++(kind == Sums::quads ? next.quads : kind == Sums::pairs ? next.pairs : next.words);
      size += sizeof(std::int32_t) + block_depth + (kind == Sums::words ? 2 : 1) * block_depth * block_columns;
    }
    size += 3 * 64;  // for alignment
    out.panels.push_back(next);
  }
  out.numbers.resize(size);
  Place to(out.numbers.data());
  for (std::int64_t panel = 0; panel < blocks.panels(); ++panel) {
    const auto for_all = [&](auto function) {
      for (const Sums kind : all_kinds) {
        for (std::int64_t i = 0; i < blocks.per_panel(); ++i) {
          if (blocks.chosen(panel, i).kind == kind) function(i, blocks.chosen(panel, i));
        }
      }
      to.align();
    };
    NarrowPanel& next = out.panels[static_cast<std::size_t>(panel)];
    next.places = reinterpret_cast<const std::int32_t*>(to.here());
    for_all([&](std::int64_t i, const Chosen&) { to.put(static_cast<std::int32_t>(i * block_depth)); });
    next.orders = to.here();
    for_all([&](std::int64_t, const Chosen& chosen) {
      if (chosen.kind != Sums::words) to.put(chosen.order);
    });
    next.weights = reinterpret_cast<const std::int8_t*>(to.here());
    for_all([&](std::int64_t i, const Chosen& chosen) {
      const std::int64_t width = chosen.kind == Sums::words ? 2 : 4;  // activations of a column side by side
      for (std::int64_t k = 0; k < block_depth; k += width) {
        for (std::int64_t at = 0; at < width * block_columns; ++at) {
          const std::int64_t activation = k + at % width;
          if (chosen.kind == Sums::words) {
            to.put<std::int16_t>(blocks.weight(panel, i, at / width, activation));
          } else {
            to.put(blocks.weight(panel, i, at / width, chosen.order[static_cast<std::size_t>(activation)]));
          }
        }
      }
    });
  }
  return out;
}

}  // namespace specops::byte_conv
