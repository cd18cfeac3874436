#include "quantized_conv_node.h"

#include <algorithm>

#include "errors.h"
#include "integer_list.h"

namespace specops::byte_conv {

namespace {

void check_one_or(const Input& input, const char* name, std::int64_t count) {
  if (input.size() != 1 && input.shape() != Shape{count}) {
    fail(name, " has the shape ", to_string(input.shape()), " instead of [] or [", count, "]");
  }
}

void check_addition(const std::vector<Input>& inputs, std::int64_t columns) {
  bool complete = inputs[input::y_zero_point].type() == Type::uint8;
  for (const std::size_t i : {input::addend_scale, input::addend_zero_point, input::sum_scale, input::sum_zero_point}) {
    complete = complete && !inputs[i].absent();
  }
  if (!complete) {
    fail("addend needs addend_scale, addend_zero_point, sum_scale and sum_zero_point, and an integer as y_zero_point");
  }
  check_one_or(inputs[input::addend_scale], "addend_scale", columns);
  one_element(inputs[input::addend_zero_point], "addend_zero_point");
  check_one_or(inputs[input::sum_scale], "sum_scale", columns);
  check_one_or(inputs[input::sum_zero_point], "sum_zero_point", columns);
}

}  // namespace

Node::Node(const KernelInfo& info)
    : channels(info.integer("channels")),
      kernel(parse_integers("kernel", info.string("kernel"))),
      windows(info, true),
      groups(info.integer("group")),
      function(static_cast<Function>(info.choice("function"))),
      alpha(info.number("alpha")),
      beta(info.number("beta")) {}

Geometry Node::measure(const Shape& x, const Shape& w) const {
  const std::size_t rank = w.size();
  if (rank < 3 || rank > most_dimensions + 2 || x.size() != rank) {
    fail("X and W have the shapes ", to_string(x), " and ", to_string(w), "; expected three to five dimensions each");
  }
  Shape expected = {w[0], channels / groups};
  expected.insert(expected.end(), kernel.begin(), kernel.end());
  if (w != expected) fail("W has the shape ", to_string(w), " instead of ", to_string(expected));
  if (x.back() != w[1] * groups || w[0] % groups != 0) {
    fail("W has the shape ", to_string(w), ", but X has ", x.back(), " channels in ", groups, " groups");
  }
  Geometry out{};
  static_cast<WindowSizes&>(out) = windows.measure(x, 1, w, 2);
  out.batch = x[0];
  out.channels = x.back();
  out.columns = w[0];
  out.groups = groups;
  out.group_channels = w[1];
  out.group_columns = w[0] / groups;
  out.taps = element_count({out.kernel.begin(), out.kernel.end()});
  if (out.taps > most_products / std::max<std::int64_t>(out.group_channels, 1)) {
    fail("a sum has more than ", most_products, " products");
  }
  out.repeats = repeats_of(out.groups, out.group_channels, out.group_columns);
  if (out.repeats > 1) {
    out.channels = out.groups = out.columns;
    out.group_columns = 1;
  } else if (out.group_columns > 0 && !out.depthwise()) {
    const std::int64_t merged = merged_groups(out.groups, out.group_columns);
    out.groups /= merged;
    out.group_channels *= merged;
    out.group_columns *= merged;
  }
  return out;
}

void Node::check(const std::vector<Input>& inputs, bool adds, bool has_residual) const {
  const std::int64_t columns = inputs[input::w].shape()[0];
  const auto check_columns = [&](const Input& input, const char* name) {
    if (!input.absent() && input.shape() != Shape{columns}) {
      fail(name, " has the shape ", to_string(input.shape()), " instead of [", columns, "]");
    }
  };
  check_columns(inputs[input::scale], "scale");
  check_columns(inputs[input::bias], "bias");
  check_columns(inputs[input::factor], "factor");
  check_columns(inputs[input::slope], "slope");
  if (inputs[input::scale].absent() || inputs[input::bias].absent()) fail("scale and bias are required");
  if (function == Function::prelu && inputs[input::slope].absent()) fail("function = 'prelu' needs a slope");
  check_one_or(inputs[input::x_zero_point], "x_zero_point", channels);
  check_one_or(inputs[input::y_zero_point], "y_zero_point", columns);
  if (!inputs[input::x_offset].absent()) check_one_or(inputs[input::x_offset], "x_offset", channels);
  if (!inputs[input::y_offset].absent()) check_one_or(inputs[input::y_offset], "y_offset", columns);
  if (has_residual && inputs[input::y_zero_point].type() != Type::float32) fail("residual needs floats as y_zero_point");
  if (adds) check_addition(inputs, columns);
  if (!adds && !has_residual) return;
  check_columns(inputs[input::sum_slope], "sum_slope");
  check_columns(inputs[input::sum_bias], "sum_bias");
}

bool Node::is_contiguous() const {
  const auto are_all = [](const std::vector<std::int64_t>& numbers, std::int64_t expected) {
    return std::all_of(numbers.begin(), numbers.end(), [=](std::int64_t number) { return number == expected; });
  };
  return are_all(windows.strides, 1) && are_all(windows.pads, 0);
}

std::int64_t repeats_of(std::int64_t groups, std::int64_t group_channels, std::int64_t group_columns) {
  return groups > 1 && group_channels == 1 && group_columns > 1 && group_columns <= most_repeats ? group_columns : 1;
}

std::int64_t merged_groups(std::int64_t groups, std::int64_t group_columns) {
  std::int64_t merged = 1;
  const std::int64_t lanes = kernels().panel_columns / 2;
  for (std::int64_t i = 2; i <= groups && i * group_columns <= lanes; ++i) {
    if (groups % i == 0) merged = i;
  }
  return merged;
}

}  // namespace specops::byte_conv
