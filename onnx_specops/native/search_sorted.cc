// SearchSorted: insertion positions of values in sorted sequences.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "numbers.h"

namespace specops {
namespace {

// The first position whose element is greater (`right`) or not less; 0 for NaN.
template <bool right, class T>
std::int64_t position(const T* sequence, std::int64_t count, T value) {
  const auto wanted = comparable(value);
  std::int64_t low = 0, high = count;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const auto element = comparable(sequence[middle]);
    if (right ? element <= wanted : element < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

class SearchSorted : public Kernel {
 public:
  explicit SearchSorted(const KernelInfo& info) : right_(info.flag("right_mode")) {}

  void compute(Context& context) const override {
    const Input sequence = context.input(0), values = context.input(1);
    const Shape &shape = sequence.shape(), &wanted = values.shape();
    if (shape.empty()) fail("sorted_sequence is a scalar; expected at least one dimension");
    const std::size_t leading = shape.size() - 1;
    if (leading > 0 && (wanted.size() != shape.size() || !std::equal(wanted.begin(), wanted.end() - 1, shape.begin()))) {
      fail("values has the shape ", to_string(wanted), "; expected the leading dimensions of sorted_sequence, ",
           to_string(shape));
    }
    Output output = context.output(0, wanted);
    const std::int64_t count = shape.back();
    const std::int64_t each = leading > 0 ? wanted.back() : values.size();  // the number of values per sequence
    dispatch_numeric(sequence.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T *from = sequence.data<T>(), *looked_for = values.data<T>();
      auto* to = output.data<std::int64_t>();
      context.parallel_ranges(values.size(), 2048, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
          const T* row = leading > 0 ? from + i / each * count : from;
          to[i] = right_ ? position<true>(row, count, looked_for[i]) : position<false>(row, count, looked_for[i]);
        }
      });
    });
  }

 private:
  bool right_;
};

}  // namespace

const Op& search_sorted() {
  static const Op op = {
      "SearchSorted",
      {{"sorted_sequence"}, {"values"}},
      {{"output"}},
      {Attribute::flag("right_mode", false)},
      [] {
        std::vector<Signature> all;
        for (const Type type : numeric_types()) all.push_back({{type, type}, {Type::int64}});
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<SearchSorted>(info); },
      [](ShapeInference& graph) { graph.set_output(0, Type::int64, graph.shape(1)); },
  };
  return op;
}

}  // namespace specops
