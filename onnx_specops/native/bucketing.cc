#include "bucketing.h"

#include "string_tensor.h"

namespace specops {

Bucketing::Bucketing(const KernelInfo& info, std::int64_t buckets) : buckets_(static_cast<std::uint64_t>(buckets)) {
  const std::string name = info.string("hasher", "fasthash");
  const auto hasher = find_hasher(name);
  if (!hasher) fail("hasher: ", quoted(name), " is unknown; known: fasthash, legacy, stronghash");
  hasher_ = *hasher;
  key_ = {static_cast<std::uint64_t>(info.integer("hasher_key_0", 0)),
          static_cast<std::uint64_t>(info.integer("hasher_key_1", 0))};
}

}  // namespace specops
