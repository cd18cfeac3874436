// Data structures of byte-pair encoding: the table of merges and the queue of pending ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace specops {

// Maps pairs of ids to their merge's rank and the resulting id.
class PairTable {
 public:
  struct Merge {
    std::int32_t rank, id;  // ranks are not negative
  };

  PairTable() : PairTable(0) {}
  // Reserves capacity for `count` pairs.
  explicit PairTable(std::size_t count) {
    std::size_t slots = 8;
    while (slots < 2 * count) slots *= 2;
    mask_ = slots - 1;
    slots_.resize(slots);
  }

  // The last of equal pairs counts.
  void put(std::int32_t left, std::int32_t right, Merge merge) {
    slots_[find_slot(key(left, right))] = {key(left, right), merge};
  }

  const Merge* find(std::int32_t left, std::int32_t right) const {
    const Slot& slot = slots_[find_slot(key(left, right))];
    return slot.merge.rank < 0 ? nullptr : &slot.merge;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Merge merge{-1, 0};
  };

  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t find_slot(std::uint64_t wanted) const {
    std::uint64_t hash = wanted * 0x9E3779B97F4A7C15;
    hash ^= hash >> 32;
    std::size_t at = static_cast<std::size_t>(hash) & mask_;
    while (slots_[at].merge.rank >= 0 && slots_[at].key != wanted) at = (at + 1) & mask_;
    return at;
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
};

// A binary heap that returns entries of equal rank and order like libstdc++'s std::priority_queue. Both neighbors of a
// merged pair may have the same merge, and their order determines the tokens.
class MergeQueue {
 public:
  struct Entry {
    std::int32_t rank, order, id, left, right;
    bool behind(const Entry& other) const { return rank != other.rank ? rank > other.rank : order > other.order; }
  };

  bool empty() const { return heap_.empty(); }
  void clear() { heap_.clear(); }
  void push(const Entry& entry) {
    heap_.push_back(entry);
    rise(heap_.size() - 1, entry);
  }
  Entry pop() {
    const Entry first = heap_.front(), entry = heap_.back();
    heap_.pop_back();
    const std::size_t size = heap_.size();
    if (size == 0) return first;
    std::size_t hole = 0, child = 0;
    while (child < (size - 1) / 2) {
      child = 2 * (child + 1);
      if (heap_[child].behind(heap_[child - 1])) --child;
      heap_[hole] = heap_[child];
      hole = child;
    }
    if (size % 2 == 0 && child == (size - 2) / 2) {
      child = 2 * child + 1;
      heap_[hole] = heap_[child];
      hole = child;
    }
    rise(hole, entry);
    return first;
  }

 private:
  void rise(std::size_t hole, const Entry& entry) {
    while (hole != 0 && heap_[(hole - 1) / 2].behind(entry)) {
      heap_[hole] = heap_[(hole - 1) / 2];
      hole = (hole - 1) / 2;
    }
    heap_[hole] = entry;
  }

  std::vector<Entry> heap_;
};

}  // namespace specops
