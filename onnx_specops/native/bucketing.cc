#include "bucketing.h"

namespace specops {

Bucketing::Bucketing(const KernelInfo& info, std::int64_t buckets)
    : hasher_(static_cast<Hasher>(info.choice("hasher"))),
      key_{static_cast<std::uint64_t>(info.integer("hasher_key_0")), static_cast<std::uint64_t>(info.integer("hasher_key_1"))},
      buckets_(static_cast<std::uint64_t>(buckets)) {}

std::vector<Attribute> Bucketing::attributes(std::vector<Attribute> own) {
  // in the order of Hasher
  own.push_back(Attribute::string("hasher", "fasthash").one_of({"fasthash", "legacy", "stronghash"}));
  own.push_back(Attribute::integer("hasher_key_0", 0));
  own.push_back(Attribute::integer("hasher_key_1", 0));
  return own;
}

}  // namespace specops
