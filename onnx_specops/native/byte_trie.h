// A trie of tokens over bytes: a double array, so that a child is found in one step.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace specops {

class ByteTrie {
 public:
  using Node = std::uint32_t;
  static constexpr Node root = 0;
  static constexpr std::int32_t none = -1;

  struct Match {
    std::int32_t id = none;
    std::size_t length = 0;  // 0 if there is no match
  };

  ByteTrie() = default;
  // The last of equal tokens counts; empty tokens are ignored.
  explicit ByteTrie(std::vector<std::pair<std::string_view, std::int32_t>> tokens);

  // Moves to the child of `node`; returns false if it has no child for the byte.
  bool step(Node& node, unsigned char byte) const {
    const std::uint32_t child = units_[node].base ^ byte;
    if (units_[child].parent != node) return false;
    node = child;
    return true;
  }
  // Whether a token ends at the node.
  bool has_token(Node node) const { return units_[node].has_token; }
  std::int32_t id(Node node) const { return units_[node].id; }

  // The longest token that is a prefix of the text.
  Match longest(std::string_view text) const {
    Match match;
    Node node = root;
    for (std::size_t i = 0; i < text.size() && step(node, static_cast<unsigned char>(text[i])); ++i) {
      if (units_[node].has_token) match = {units_[node].id, i + 1};
    }
    return match;
  }

 private:
  static constexpr std::uint32_t nobody = 0xFFFFFFFF;
  struct Unit {
    std::uint32_t base = 0;
    std::uint32_t parent = nobody;
    std::int32_t id = none;
    bool has_token = false;
  };

  std::uint32_t find_base(const std::vector<unsigned char>& labels);

  std::vector<Unit> units_ = std::vector<Unit>(256);
  std::uint32_t frontier_ = 1;
};

}  // namespace specops
