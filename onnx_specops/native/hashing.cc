#include "hashing.h"

#include <cstring>
#include <utility>

namespace specops {
namespace {

using Word = std::uint64_t;

// Loads an unaligned little-endian word of `Size` bytes.
template <std::size_t Size = 8>
Word load(const char* bytes) noexcept {
  Word word = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  for (std::size_t i = Size; i-- > 0;) word = word << 8 | static_cast<unsigned char>(bytes[i]);
#else
  std::memcpy(&word, bytes, Size);
#endif
  return word;
}

// Loads the last `size` < 8 bytes of a text as a word, padded with zeros.
Word load_tail(const char* bytes, std::size_t size) noexcept {
  Word word = 0;
  for (std::size_t i = size; i-- > 0;) word = word << 8 | static_cast<unsigned char>(bytes[i]);
  return word;
}

constexpr Word right(Word word, int shift) noexcept { return word >> shift | word << (64 - shift); }

// FarmHash's multipliers and mixers.
constexpr Word k0 = 0xC3A5C85C97CB3127, k1 = 0xB492B66FBE98F273, k2 = 0x9AE16A3B2F90404F;

constexpr Word fold(Word word) noexcept { return word ^ word >> 47; }

constexpr Word merge(Word low, Word high, Word multiplier) noexcept {
  return fold((fold((low ^ high) * multiplier) ^ high) * multiplier) * multiplier;
}

Word fingerprint_of_0_to_16(const char* text, std::size_t size, Word multiplier) noexcept {
  const char* end = text + size;
  if (size >= 8) {
    const Word head = load(text) + k2, tail = load(end - 8);
    return merge(right(tail, 37) * multiplier + head, (right(head, 25) + tail) * multiplier, multiplier);
  }
  if (size >= 4) return merge(size + (load<4>(text) << 3), load<4>(end - 4), multiplier);
  if (size == 0) return k2;
  const Word head = load<1>(text) + (load<1>(text + (size >> 1)) << 8), tail = size + (load<1>(end - 1) << 2);
  return fold(head * k2 ^ tail * k0) * k2;
}

Word fingerprint_of_17_to_32(const char* text, std::size_t size, Word multiplier) noexcept {
  const char* end = text + size;
  const Word a = load(text) * k1, b = load(text + 8), c = load(end - 8) * multiplier, d = load(end - 16) * k2;
  return merge(right(a + b, 43) + right(c, 30) + d, a + right(b + k2, 18) + c, multiplier);
}

Word fingerprint_of_33_to_64(const char* text, std::size_t size, Word multiplier) noexcept {
  const char* end = text + size;
  const Word a = load(text) * k2, b = load(text + 8), c = load(end - 8) * multiplier, d = load(end - 16) * k2;
  const Word low = right(a + b, 43) + right(c, 30) + d;
  const Word high = merge(low, a + right(b + k2, 18) + c, multiplier);
  const Word e = load(text + 16) * multiplier, f = load(text + 24);
  const Word g = (low + load(end - 32)) * multiplier, h = (high + load(end - 24)) * multiplier;
  return merge(right(e + f, 43) + right(g, 30) + h, e + right(f + a, 18) + g, multiplier);
}

// A state of two words that absorbs 32 bytes at a time.
struct Lane {
  Word low = 0, high = 0;

  static Lane absorb(const char* bytes, Word low, Word high) noexcept {
    const Word last = load(bytes + 24);
    low += load(bytes);
    const Word total = low + load(bytes + 8) + load(bytes + 16);
    return {total + last, right(high + low + last, 21) + right(total, 44) + low};
  }
};

Word fingerprint_of_more_than_64(const char* text, std::size_t size) noexcept {
  constexpr Word seed = 81;
  Word x = seed * k2 + load(text), y = seed * k1 + 113, z = fold(y * k2 + 113) * k2;
  Lane v, w;
  const char* const last = text + size - 64;
  for (std::size_t block = (size - 1) / 64; block > 0; --block, text += 64) {
    x = right(x + y + v.low + load(text + 8), 37) * k1 ^ w.high;
    y = right(y + v.high + load(text + 48), 42) * k1 + v.low + load(text + 40);
    z = right(z + w.low, 33) * k1;
    v = Lane::absorb(text, v.high * k1, x + w.low);
    w = Lane::absorb(text + 32, z + w.high, y + load(text + 16));
    std::swap(x, z);
  }
  const Word multiplier = k1 + ((z & 0xFF) << 1);
  w.low += (size - 1) & 63;
  v.low += w.low;
  w.low += v.low;
  x = right(x + y + v.low + load(last + 8), 37) * multiplier ^ w.high * 9;
  y = right(y + v.high + load(last + 48), 42) * multiplier + v.low * 9 + load(last + 40);
  z = right(z + w.low, 33) * multiplier;
  v = Lane::absorb(last, v.high * multiplier, x + w.low);
  w = Lane::absorb(last + 32, z + w.high, y + load(last + 16));
  return merge(merge(v.low, w.low, multiplier) + fold(y) * k0 + x, merge(v.high, w.high, multiplier) + z, multiplier);
}

}  // namespace

std::uint64_t fingerprint64(std::string_view text) noexcept {
  const std::size_t size = text.size();
  const Word multiplier = k2 + 2 * size;
  if (size <= 16) return fingerprint_of_0_to_16(text.data(), size, multiplier);
  if (size <= 32) return fingerprint_of_17_to_32(text.data(), size, multiplier);
  if (size <= 64) return fingerprint_of_33_to_64(text.data(), size, multiplier);
  return fingerprint_of_more_than_64(text.data(), size);
}

std::uint64_t legacy_hash64(std::string_view text) noexcept {
  constexpr Word multiplier = 0xC6A4A7935BD1E995;
  const char* bytes = text.data();
  std::size_t left = text.size();
  Word state = 0xDECAFCAFFE ^ left * multiplier;
  for (; left >= 8; left -= 8, bytes += 8) {
    state = (state ^ fold(load(bytes) * multiplier) * multiplier) * multiplier;
  }
  if (left > 0) state = (state ^ load_tail(bytes, left)) * multiplier;
  return fold(fold(state) * multiplier);
}

std::uint64_t siphash24(std::string_view text, std::array<std::uint64_t, 2> key) noexcept {
  // The initial state spells "somepseudorandomlygeneratedbytes".
  Word a = key[0] ^ 0x736F6D6570736575, b = key[1] ^ 0x646F72616E646F6D;
  Word c = key[0] ^ 0x6C7967656E657261, d = key[1] ^ 0x7465646279746573;
  const auto round = [&] {
    a += b, c += d;
    b = right(b, 51) ^ a, d = right(d, 48) ^ c;
    a = right(a, 32);
    c += b, a += d;
    b = right(b, 47) ^ c, d = right(d, 43) ^ a;
    c = right(c, 32);
  };
  const auto absorb = [&](Word word) {
    d ^= word;
    round(), round();
    a ^= word;
  };
  const char* bytes = text.data();
  std::size_t left = text.size();
  for (; left >= 8; left -= 8, bytes += 8) absorb(load(bytes));
  absorb(load_tail(bytes, left) | static_cast<Word>(text.size()) << 56);
  c ^= 0xFF;
  round(), round(), round(), round();
  return a ^ b ^ c ^ d;
}

Decimal::Decimal(std::int64_t number) noexcept {
  // The magnitude of the lowest number has no signed representation.
  Word left = number < 0 ? -static_cast<Word>(number) : static_cast<Word>(number);
  do {
    digits_[--start_] = static_cast<char>('0' + left % 10);
    left /= 10;
  } while (left > 0);
  if (number < 0) digits_[--start_] = '-';
}

}  // namespace specops
