#include "suppression.h"

namespace specops {

template <class A>
template <class Condition>
SPECOPS_CLONES typename KeptBoxes<A>::Match KeptBoxes<A>::next(const Block* blocks, std::size_t from, std::size_t count,
                                                               const Corners<A>& box, A area, A offset, A threshold) {
  for (std::size_t at = from; at < count; ++at) {
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < lanes; ++i) {
      found |= test<Condition>(blocks[at], i, box, area, offset, threshold) ? std::uint32_t{1} << i : 0;
    }
    if (found != 0) return {at, found};
  }
  return {count, 0};
}

#define SPECOPS_INSTANTIATE(A, Condition)                                                                                \
  template KeptBoxes<A>::Match KeptBoxes<A>::next<Condition>(const Block*, std::size_t, std::size_t, const Corners<A>&, \
                                                             A, A, A);
#define SPECOPS_INSTANTIATE_FLOATS(Condition) \
  SPECOPS_INSTANTIATE(float, Condition)       \
  SPECOPS_INSTANTIATE(double, Condition)
SPECOPS_INSTANTIATE_FLOATS(Exceeds)
SPECOPS_INSTANTIATE_FLOATS(SharesMore)
SPECOPS_INSTANTIATE_FLOATS(Reaches)
SPECOPS_INSTANTIATE_FLOATS(Overlaps)
#undef SPECOPS_INSTANTIATE_FLOATS
#undef SPECOPS_INSTANTIATE

}  // namespace specops
