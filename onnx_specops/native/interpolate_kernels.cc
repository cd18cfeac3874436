// Resizing of rows for one instruction set, SPECOPS_SET: elements of a vector are moved to the lanes that need them.
#include "interpolate.h"
#include "vectors.inc"

namespace specops::resizing {
namespace {

constexpr std::int64_t lanes = Floats::size;
static_assert(lanes <= most_lanes);

void resize(const Block* blocks, std::int64_t size, const float* from, float* to) {
  for (std::int64_t at = 0; at < size; at += lanes, ++blocks) {
    const Floats first = moved(Floats::load(from + blocks->first), blocks->first_lanes);
    const Floats second = moved(Floats::load(from + blocks->second), blocks->second_lanes);
    const Floats half = first * Floats::load(blocks->first_weights);
    const Floats both = multiply_add(second, Floats::load(blocks->second_weights), half);
    if (at + lanes <= size) {
      both.store(to + at);
    } else {
      both.store_first(to + at, size - at);
    }
  }
}

}  // namespace

const Kernels& SPECOPS_SET() {
  static const Kernels found = {SPECOPS_NAME, lanes, resize};
  return found;
}

}  // namespace specops::resizing
