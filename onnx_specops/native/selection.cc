#include "selection.h"

namespace specops {

template <class A>
SPECOPS_CLONES void mark_above(const A* const* rows, std::int64_t count, std::int64_t classes, A threshold,
                               std::uint32_t* bits) {
  for (std::int64_t i = 0; i < count; ++i) {
    const A* row = rows[i];
    const std::uint32_t bit = std::uint32_t{1} << i;
    for (std::int64_t class_ = 0; class_ < classes; ++class_) bits[class_] |= row[class_] > threshold ? bit : 0;
  }
}

template void mark_above(const float* const*, std::int64_t, std::int64_t, float, std::uint32_t*);
template void mark_above(const double* const*, std::int64_t, std::int64_t, double, std::uint32_t*);

}  // namespace specops
