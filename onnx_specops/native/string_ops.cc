// Operators on strings, their bytes and their hash buckets.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "bucketing.h"
#include "ops.h"
#include "string_tensor.h"

namespace specops {
namespace {

// Calls `body(strings)`, where `strings[i]` is string i of `input`.
template <class Body>
void with_strings(const Input& input, const Body& body) {
  if (const std::string* strings = strings_in_place(input)) return body(strings);
  body(input.strings());
}

class StringToHashBucket : public Kernel {
 public:
  explicit StringToHashBucket(const KernelInfo& info) : bucketing_(info, info.integer("num_buckets")) {}

  void compute(Context& context) const override {
    constexpr std::int64_t grain = 4096;
    const Input input = context.input(0);
    Output output = context.output(0, input.shape());
    auto* const out = output.data<std::int64_t>();
    with_strings(input, [&](const auto& strings) {
      context.parallel_ranges(input.size(), grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) out[i] = bucketing_(strings[static_cast<std::size_t>(i)]);
      });
    });
  }

 private:
  Bucketing bucketing_;
};

class StringTensorUnpack : public Kernel {
 public:
  void compute(Context& context) const override {
    const Input input = context.input(0);
    Output begins = context.output(0, input.shape()), ends = context.output(1, input.shape());
    auto* const begin = begins.data<std::int32_t>();
    auto* const end = ends.data<std::int32_t>();
    with_strings(input, [&](const auto& strings) {
      const auto count = static_cast<std::size_t>(input.size());
      std::uint64_t total = 0;
      for (std::size_t i = 0; i < count; ++i) {
        begin[i] = static_cast<std::int32_t>(total);
        total += std::string_view(strings[i]).size();
        if (total > std::numeric_limits<std::int32_t>::max()) fail("data: more bytes than an int32 can count");
        end[i] = static_cast<std::int32_t>(total);
      }
      Output symbols = context.output(2, {static_cast<std::int64_t>(total)});
      auto* const bytes = symbols.data<std::uint8_t>();
      for (std::size_t i = 0; i < count; ++i) {
        const std::string_view text = strings[i];
        if (!text.empty()) std::memcpy(bytes + begin[i], text.data(), text.size());
      }
    });
  }
};

class StringTensorPack : public Kernel {
 public:
  void compute(Context& context) const override {
    const Input begins = context.input(0), ends = context.input(1), symbols = context.input(2);
    if (ends.shape() != begins.shape()) {
      fail("ends has the shape ", to_string(ends.shape()), "; expected that of begins, ", to_string(begins.shape()));
    }
    if (symbols.shape().size() != 1) fail("symbols has the shape ", to_string(symbols.shape()), "; expected one dimension");
    Output output = context.output(0, begins.shape());
    const auto* bytes = static_cast<const char*>(symbols.bytes());
    dispatch<std::int32_t, std::int64_t>(begins.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const begin = begins.data<T>();
      const T* const end = ends.data<T>();
      std::int64_t total = 0;
      for (std::int64_t i = 0; i < begins.size(); ++i) {
        check_offset("begins", i, begin[i], symbols.size());
        check_offset("ends", i, end[i], symbols.size());
        if (begin[i] > end[i]) fail("begins[", i, "] = ", begin[i], " is greater than ends[", i, "] = ", end[i]);
        total += end[i] - begin[i];
      }
      context.check_size("output", total);
      for (std::int64_t i = 0; i < begins.size(); ++i) {
        output.set_string(static_cast<std::size_t>(i),
                          {bytes + begin[i], static_cast<std::size_t>(end[i] - begin[i])});
      }
    });
  }

 private:
  static void check_offset(const char* input_name, std::int64_t index, std::int64_t offset, std::int64_t size) {
    if (offset >= 0 && offset <= size) return;
    fail(input_name, "[", index, "] = ", offset, " is out of range [0, ", size, "]");
  }
};

class NumericToString : public Kernel {
 public:
  void compute(Context& context) const override {
    const Input input = context.input(0);
    Output output = context.output(0, input.shape());
    dispatch<float, double>(input.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const data = input.data<T>();
      for (std::int64_t i = 0; i < input.size(); ++i) output.set_string(static_cast<std::size_t>(i), text(data[i]));
    });
  }

 private:
  static std::string text(double number) {
    if (std::isnan(number)) return std::signbit(number) ? "-nan" : "nan";
    if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
    char written[32];
    const int length = std::snprintf(written, sizeof written, "%g", number);
    std::string text(written, static_cast<std::size_t>(length));
    // The decimal point depends on the locale.
    for (char& c : text) {
      if (!(c >= '0' && c <= '9') && c != 'e' && c != '+' && c != '-') c = '.';
    }
    return text;
  }
};

template <class T>
std::unique_ptr<Kernel> create(const KernelInfo&) {
  return std::make_unique<T>();
}

}  // namespace

const Op& numeric_to_string() {
  static const Op op = {
      "NumericToString",
      {{"data"}},
      {{"output"}},
      {},
      {{{Type::float32}, {Type::string}}, {{Type::float64}, {Type::string}}},
      create<NumericToString>,
      [](ShapeInference& graph) { graph.set_output(0, Type::string, graph.shape(0)); },
  };
  return op;
}

const Op& string_to_hash_bucket() {
  static const Op op = {
      "StringToHashBucket",
      {{"strings"}},
      {{"buckets"}},
      Bucketing::attributes({Attribute::integer("num_buckets").at_least(1)}),
      {{{Type::string}, {Type::int64}}},
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<StringToHashBucket>(info); },
      [](ShapeInference& graph) { graph.set_output(0, Type::int64, graph.shape(0)); },
  };
  return op;
}

const Op& string_tensor_unpack() {
  static const Op op = {
      "StringTensorUnpack",
      {{"data"}},
      {{"begins"}, {"ends"}, {"symbols"}},
      {},
      {{{Type::string}, {Type::int32, Type::int32, Type::uint8}}},
      create<StringTensorUnpack>,
      [](ShapeInference& graph) {
        graph.set_output(0, Type::int32, graph.shape(0));
        graph.set_output(1, Type::int32, graph.shape(0));
      },
  };
  return op;
}

const Op& string_tensor_pack() {
  static const Op op = {
      "StringTensorPack",
      {{"begins"}, {"ends"}, {"symbols"}},
      {{"output"}},
      {},
      {{{Type::int32, Type::int32, Type::uint8}, {Type::string}},
       {{Type::int64, Type::int64, Type::uint8}, {Type::string}}},
      create<StringTensorPack>,
      [](ShapeInference& graph) { graph.set_output(0, Type::string, graph.shape(0)); },
  };
  return op;
}

}  // namespace specops
