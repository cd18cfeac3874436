// The hash bucket of a text: the attributes `hasher`, `hasher_key_0` and `hasher_key_1` of a node.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "hashing.h"
#include "op.h"

namespace specops {

class Bucketing {
 public:
  Bucketing() = default;
  Bucketing(const KernelInfo& info, std::int64_t buckets);

  // Appends these attributes to an operator's own.
  static std::vector<Attribute> attributes(std::vector<Attribute> own);

  // Whether `reduce(fingerprint64(text))` is the text's bucket.
  bool by_fingerprint() const noexcept { return hasher_ == Hasher::fasthash; }

  std::int64_t reduce(std::uint64_t hash) const noexcept { return static_cast<std::int64_t>(hash % buckets_); }

  std::int64_t operator()(std::string_view text) const noexcept {
    switch (hasher_) {
      case Hasher::legacy: return reduce(legacy_hash64(text));
      case Hasher::stronghash: return reduce(siphash24(text, key_));
      default: return reduce(fingerprint64(text));
    }
  }

 private:
  Hasher hasher_ = Hasher::fasthash;
  std::array<std::uint64_t, 2> key_{};
  std::uint64_t buckets_ = 1;
};

}  // namespace specops
