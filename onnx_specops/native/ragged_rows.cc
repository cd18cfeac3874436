// CombineSegments and RaggedToDense: concatenates rows of elements, and converts them to a padded tensor.
#include <algorithm>

#include "ops.h"
#include "ragged.h"

namespace specops {
namespace {

class CombineSegments : public Kernel {
 public:
  void compute(Context& context) const override {
    const Input begins = context.input(0), ends = context.input(1), elements = context.input(2);
    const Input counts = context.input(3), sizes = context.input(4), ids = context.input(5);
    const std::int64_t count = ids.size();
    if (counts.size() != count || sizes.size() != count) fail("counts, sizes and ids have different numbers of segments");
    std::vector<Segment> segments;
    std::int64_t row = 0, first = 0, rows = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t own = counts.data<std::int64_t>()[k], size = sizes.data<std::int64_t>()[k];
      if (own < 0 || size < 0 || own > begins.size() - row || size > elements.size() - first) {
        fail("the sums of counts and sizes do not match the inputs");
      }
      segments.push_back({row, first, own, size});
      rows = std::max(rows, own);
      row += own;
      first += size;
    }
    if (row != begins.size() || row != ends.size() || first != elements.size()) {
      fail("the sums of counts and sizes do not match the inputs");
    }
    for (const Segment& segment : segments) {
      if (segment.rows != 1 && segment.rows != rows) fail("a segment of ", segment.rows, " rows next to one of ", rows);
    }
    check_spans(segments, begins.data<std::int32_t>(), ends.data<std::int32_t>());
    dispatch<std::int32_t, std::int64_t, float>(elements.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      dispatch<std::int32_t, std::int64_t>(ids.type(), [&](auto id_tag) {
        combine<T, typename decltype(id_tag)::type>(context, segments, rows, elements, ids);
      });
    });
  }

 private:
  struct Segment {
    std::int64_t first_row, first_element, rows, elements;
  };

  static void check_spans(const std::vector<Segment>& segments, const std::int32_t* begins, const std::int32_t* ends) {
    for (const Segment& segment : segments) {
      for (std::int64_t row = segment.first_row; row < segment.first_row + segment.rows; ++row) {
        const std::int32_t begin = begins[row], end = ends[row];
        const std::int64_t size = segment.elements;
        if (begin < 0 || begin > size) fail("ragged_begins[", row, "] = ", begin, " is out of range [0, ", size, "]");
        if (end < 0 || end > size) fail("ragged_ends[", row, "] = ", end, " is out of range [0, ", size, "]");
        if (begin > end) fail("ragged_begins[", row, "] = ", begin, " is greater than ragged_ends[", row, "] = ", end);
      }
    }
  }

  template <class T, class Id>
  static void combine(Context& context, const std::vector<Segment>& segments, std::int64_t rows, const Input& elements,
                      const Input& ids) {
    const Input begins = context.input(0), ends = context.input(1);
    const auto* const begin = begins.data<std::int32_t>();
    const auto* const end = ends.data<std::int32_t>();
    Output row_begins = context.output(0, {rows}), row_ends = context.output(1, {rows});
    auto* const row_begin = row_begins.data<std::int32_t>();
    auto* const row_end = row_ends.data<std::int32_t>();
    std::int64_t total = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      row_begin[row] = static_cast<std::int32_t>(total);
      for (const Segment& segment : segments) {
        const std::int64_t at = segment.first_row + (segment.rows == 1 ? 0 : row);
        total += end[at] - begin[at];
      }
      if (total > std::numeric_limits<std::int32_t>::max()) fail("combined: more elements than an int32 can count");
      row_end[row] = static_cast<std::int32_t>(total);
    }
    context.check_size("combined", total);
    Output combined = context.output(2, {total}), segment_ids = context.output(3, {total});
    T* to = combined.data<T>();
    Id* id = segment_ids.data<Id>();
    const T* const from = elements.data<T>();
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::size_t k = 0; k < segments.size(); ++k) {
        const Segment& segment = segments[k];
        const std::int64_t at = segment.first_row + (segment.rows == 1 ? 0 : row);
        const std::int64_t length = end[at] - begin[at];
        to = std::copy_n(from + segment.first_element + begin[at], length, to);
        id = std::fill_n(id, length, ids.data<Id>()[k]);
      }
    }
  }
};

class RaggedToDense : public Kernel {
 public:
  void compute(Context& context) const override {
    const Input begins = context.input(0), ends = context.input(1), data = context.input(2);
    if (data.shape().empty()) fail("data is a scalar; expected at least one dimension");
    const Spans rows(begins, ends, data.shape()[0], "ragged_begins", "ragged_ends");
    const std::int64_t target = scalar(context.input(3), "length");
    if (target < 0) fail("length = ", target, " is negative");
    const Input filling = context.input(4), side = context.input(5);
    if (filling.size() != 1) fail("default_value has ", filling.size(), " elements instead of one");
    if (side.size() != 1) fail("pad_right has ", side.size(), " elements instead of one");
    const bool right = side.data<bool>()[0];

    Shape shape = begins.shape();
    shape.push_back(target);
    context.check_size("the places of elements", element_count(shape));  // also for elements of size 0
    std::int64_t inner = 1;
    for (std::size_t axis = 1; axis < data.shape().size(); ++axis) {
      shape.push_back(data.shape()[axis]);
      inner *= data.shape()[axis];
    }
    Output dense = context.output(0, shape), mask = context.output(1, shape);
    auto* flags = mask.data<bool>();
    const auto fill = [&](auto* to, const auto* from, auto value) {
      for (std::size_t row = 0; row < rows.size(); ++row) {
        const std::int64_t length = std::min<std::int64_t>(rows.end(row) - rows.begin(row), target);
        const std::int64_t before = right ? 0 : target - length, after = right ? target - length : 0;
        to = std::fill_n(to, before * inner, value);
        flags = std::fill_n(flags, before * inner, false);
        to = std::copy_n(from + rows.begin(row) * inner, length * inner, to);
        flags = std::fill_n(flags, length * inner, true);
        to = std::fill_n(to, after * inner, value);
        flags = std::fill_n(flags, after * inner, false);
      }
    };
    if (data.type() == Type::boolean) return fill(dense.data<bool>(), data.data<bool>(), filling.data<bool>()[0]);
    // Copies bits, whatever their type is.
    const auto fill_bits = [&](auto bits) {
      using T = decltype(bits);
      fill(static_cast<T*>(dense.bytes()), static_cast<const T*>(data.bytes()), static_cast<const T*>(filling.bytes())[0]);
    };
    switch (data.type()) {
      case Type::int8:
      case Type::uint8:
        return fill_bits(std::uint8_t{});
      case Type::int16:
      case Type::uint16:
      case Type::float16:
      case Type::bfloat16:
        return fill_bits(std::uint16_t{});
      case Type::int32:
      case Type::uint32:
      case Type::float32:
        return fill_bits(std::uint32_t{});
      default:
        return fill_bits(std::uint64_t{});
    }
  }
};

template <class T>
std::unique_ptr<Kernel> create(const KernelInfo&) {
  return std::make_unique<T>();
}

constexpr Type i = Type::int32, l = Type::int64;

std::vector<Signature> combine_signatures() {
  std::vector<Signature> all;
  for (const Type element : {i, l, Type::float32}) {
    for (const Type id : {i, l}) all.push_back({{i, i, element, l, l, id}, {i, i, element, id}});
  }
  return all;
}

std::vector<Signature> dense_signatures() {
  std::vector<Signature> all;
  for (const Type type : {Type::float16, Type::bfloat16, Type::float32, Type::float64, Type::int8, Type::int16, Type::int32,
                          Type::int64, Type::uint8, Type::uint16, Type::uint32, Type::uint64, Type::boolean}) {
    all.push_back({{i, i, type, Type::undefined, type, Type::boolean}, {type, Type::boolean}});
  }
  return all;
}

}  // namespace

const Op& combine_segments() {
  static const Op op = {
      "CombineSegments",
      {{"ragged_begins"}, {"ragged_ends"}, {"elements"}, {"counts"}, {"sizes"}, {"ids"}},
      {{"ragged_begins"}, {"ragged_ends"}, {"combined"}, {"segment_ids"}},
      {},
      combine_signatures(),
      create<CombineSegments>,
      nullptr,
  };
  return op;
}

const Op& ragged_to_dense() {
  static const Op op = {
      "RaggedToDense",
      {{"ragged_begins"}, {"ragged_ends"}, {"data"}, {"length", false, {Type::int32, Type::int64}}, {"default_value"}, {"pad_right"}},
      {{"dense"}, {"mask"}},
      {},
      dense_signatures(),
      create<RaggedToDense>,
      nullptr,
  };
  return op;
}

}  // namespace specops
