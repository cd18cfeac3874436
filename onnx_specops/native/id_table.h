// A hash table from fingerprints to ids, for vocabularies whose entries are stored elsewhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "compiler.h"

namespace specops {

inline void prefetch([[maybe_unused]] const void* address) noexcept { SPECOPS_PREFETCH(address); }

// Open addressing with linear probing at a load factor of one half. Each entry has two slots of 8 bytes, with the low half
// of its hash and its id. The entries are not stored. Callers compare the key with the entry of the found id, and continue
// the search if they differ.
class IdTable {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint64_t most_entries = std::uint64_t{1} << 30;

  // The state of a search.
  struct Cursor {
    std::size_t slot;
    std::uint32_t tag;
  };

  IdTable() = default;
  explicit IdTable(std::size_t entries) : slots_(std::max<std::size_t>(2 * entries, 2)) {}

  Cursor start(std::uint64_t hash) const noexcept {
    return {static_cast<std::size_t>((hash >> 32) * slots_.size() >> 32), static_cast<std::uint32_t>(hash)};
  }

  void prefetch(Cursor cursor) const noexcept { specops::prefetch(&slots_[cursor.slot]); }

  // The next entry with the cursor's hash, or `none`; the cursor is then at a free slot.
  std::uint32_t next(Cursor& cursor) const noexcept {
    for (;;) {
      const Slot slot = slots_[cursor.slot];
      if (slot.id == none) return none;
      advance(cursor);
      if (slot.tag == cursor.tag) return slot.id;
    }
  }

  // Fills the free slot where `next` ended. The table never fills up, because it has two slots per entry.
  void insert(Cursor cursor, std::uint32_t id) noexcept { slots_[cursor.slot] = {cursor.tag, id}; }

  // The number of slots between a hash's own slot and the cursor.
  std::size_t distance(std::uint64_t hash, Cursor cursor) const noexcept {
    const std::size_t own = start(hash).slot;
    return cursor.slot >= own ? cursor.slot - own : cursor.slot + slots_.size() - own;
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t id = none;
  };

  void advance(Cursor& cursor) const noexcept {
    if (++cursor.slot == slots_.size()) cursor.slot = 0;
  }

  std::vector<Slot> slots_;
};

}  // namespace specops
