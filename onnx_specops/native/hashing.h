// The three string hashes of TensorFlow's tf.strings.to_hash_bucket*, for bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace specops {

// FarmHash's Fingerprint64 ("fasthash"): tf.strings.to_hash_bucket_fast.
std::uint64_t fingerprint64(std::string_view text) noexcept;

// A MurmurHash64A with the seed 0xDECAFCAFFE ("legacy"): tf.strings.to_hash_bucket.
std::uint64_t legacy_hash64(std::string_view text) noexcept;

// SipHash-2-4 ("stronghash"): tf.strings.to_hash_bucket_strong.
std::uint64_t siphash24(std::string_view text, std::array<std::uint64_t, 2> key) noexcept;

enum class Hasher { fasthash, legacy, stronghash };

// The decimal representation of a number, which is hashed for integer keys.
class Decimal {
 public:
  explicit Decimal(std::int64_t number) noexcept;
  operator std::string_view() const noexcept { return {digits_ + start_, sizeof digits_ - start_}; }

 private:
  char digits_[20];  // "-9223372036854775808"
  std::size_t start_ = sizeof digits_;
};

}  // namespace specops
