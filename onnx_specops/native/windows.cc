#include "windows.h"

#include "errors.h"
#include "integer_list.h"

namespace specops {

Windows::Windows(const KernelInfo& info, bool may_be_none)
    : strides(parse_integers("strides", info.string("strides"))),
      pads(parse_integers("pads", info.string("pads"))),
      dilations(parse_integers("dilations", info.string("dilations"))),
      may_be_none_(may_be_none) {
  const auto has_zero = [](const std::vector<std::int64_t>& numbers) {
    return std::find(numbers.begin(), numbers.end(), 0) != numbers.end();
  };
  if (has_zero(strides) || has_zero(dilations)) fail("strides and dilations must be at least 1");
}

void Windows::check(std::size_t rank) const {
  check_list("strides", strides, rank);
  check_list("dilations", dilations, rank);
  check_list("pads", pads, 2 * rank);
}

WindowSizes Windows::measure(const Shape& x, std::size_t x_axis, const Shape& w, std::size_t w_axis) const {
  const std::size_t rank = x.size() - 2;
  check(rank);
  constexpr Sizes ones = {1, 1, 1}, zeros = {0, 0, 0};
  WindowSizes found = {ones, ones, ones, ones, ones, ones, zeros};
  for (std::size_t at = 0; at < rank; ++at) {
    const std::size_t i = most_dimensions - rank + at;
    found.in[i] = x[at + x_axis];
    found.kernel[i] = w[at + w_axis];
    if (!strides.empty()) found.strides[i] = strides[at];
    if (!dilations.empty()) found.dilations[i] = dilations[at];
    if (!pads.empty()) found.begin[i] = pads[at];
    const std::int64_t padded = found.in[i] + (pads.empty() ? 0 : pads[at] + pads[at + rank]);
    found.padded[i] = padded;
    // The maximum number of positions of a window, computed without an overflow for large kernels.
    const std::int64_t most = padded > 0 ? (padded - 1) / found.dilations[i] + 1 : may_be_none_ && found.kernel[i] == 1;
    if (found.kernel[i] < 1 || found.kernel[i] > most) {
      fail("W has the shape ", to_string(w), ", but X, padded, has ", padded, " pixels along axis ", at + x_axis);
    }
    const std::int64_t extent = (found.kernel[i] - 1) * found.dilations[i] + 1;
    found.out[i] = padded == 0 ? 0 : (padded - extent) / found.strides[i] + 1;
  }
  return found;
}

}  // namespace specops
