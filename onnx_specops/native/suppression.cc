#include "suppression.h"

namespace specops {

template <class A>
template <class Condition>
SPECOPS_CLONES std::size_t KeptBoxes<A>::skip(const Block* blocks, std::size_t count, const Corners<A>& box, A area,
                                              A offset, A threshold) {
  for (std::size_t at = 0; at < count; ++at) {
    int found = 0;
    for (std::size_t i = 0; i < lanes; ++i) {
      found |= holds<Condition>(blocks[at], i, box, area, offset, threshold) ? 1 : 0;
    }
    if (found != 0) return at;
  }
  return count;
}

#define SPECOPS_INSTANTIATE(A, Condition) \
  template std::size_t KeptBoxes<A>::skip<Condition>(const Block*, std::size_t, const Corners<A>&, A, A, A);
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
