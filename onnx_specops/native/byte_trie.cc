#include "byte_trie.h"

#include <algorithm>
#include <cstddef>

#include "errors.h"

namespace specops {

ByteTrie::ByteTrie(std::vector<std::pair<std::string_view, std::int32_t>> tokens) {
  tokens.erase(std::remove_if(tokens.begin(), tokens.end(), [](const auto& token) { return token.first.empty(); }),
               tokens.end());
  std::stable_sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // The last of equal tokens is kept.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i + 1 < tokens.size() && tokens[i].first == tokens[i + 1].first) continue;
    tokens[kept++] = tokens[i];
  }
  tokens.resize(kept);

  // The root is its own parent, so that no transition leads to it.
  units_[root].parent = nobody - 1;
  struct Range {
    std::size_t first, last, depth;
    Node node;
  };
  std::vector<Range> pending = {{0, tokens.size(), 0, root}};
  std::vector<unsigned char> labels;
  std::vector<std::size_t> edges;
  while (!pending.empty()) {
    Range range = pending.back();
    pending.pop_back();
    if (range.first < range.last && tokens[range.first].first.size() == range.depth) {
      units_[range.node].has_token = true;
      units_[range.node].id = tokens[range.first].second;
      ++range.first;
    }
    labels.clear();
    edges.clear();
    for (std::size_t i = range.first; i < range.last; ++i) {
      const auto label = static_cast<unsigned char>(tokens[i].first[range.depth]);
      if (labels.empty() || labels.back() != label) {
        labels.push_back(label);
        edges.push_back(i);
      }
    }
    edges.push_back(range.last);
    if (labels.empty()) continue;
    const std::uint32_t base = find_base(labels);
    units_[range.node].base = base;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const Node child = base ^ labels[i];
      units_[child].parent = range.node;
      frontier_ = std::max(frontier_, child);
      pending.push_back({edges[i], edges[i + 1], range.depth + 1, child});
    }
  }
  // The children of a base are in its block of 256.
  units_.resize(((static_cast<std::size_t>(frontier_) | 255) + 1));
}

std::uint32_t ByteTrie::find_base(const std::vector<unsigned char>& labels) {
  // The size of the range that is searched for free units.
  constexpr std::uint32_t window = 1024;
  for (std::uint32_t at = frontier_ > window ? frontier_ - window : 1;; ++at) {
    if (at >= nobody - 512) fail("vocab_symbols: too many bytes");
    if ((at | 255u) >= units_.size()) units_.resize(2 * units_.size());
    if (units_[at].parent != nobody) continue;
    const std::uint32_t base = at ^ labels.front();
    if (std::all_of(labels.begin(), labels.end(), [&](unsigned char l) { return units_[base ^ l].parent == nobody; })) {
      return base;
    }
  }
}

}  // namespace specops
