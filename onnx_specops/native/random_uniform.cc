// RandomUniform: uniformly distributed numbers, bit for bit like OpenVINO.
//
// Philox: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "numbers.h"
#include "simd.h"

namespace specops {
namespace {

constexpr std::int64_t chunk = 1024;  // numbers that are generated at a time; a multiple of 32

// Numbers [first, first + count) of Philox 4x32-10 for the counters (0, counter), (1, counter), ...; `first` is a multiple
// of 4, and `to` has capacity for a multiple of 32.
SPECOPS_CLONES void philox(std::uint64_t key, std::uint64_t counter, std::int64_t first, std::int64_t count,
                           std::uint32_t* to) {
  constexpr std::uint64_t low = 0xffffffffu;
  for (std::int64_t done = 0; done < count; done += 32) {
    // Eight counters of four numbers each. The upper halves of their words contain carried bits, which products ignore.
    Words a = Words{0, 1, 2, 3, 4, 5, 6, 7} + static_cast<std::uint64_t>((first + done) / 4), b = a >> 32;
    Words c = Words{} + counter, d = c >> 32;
    std::uint64_t low_key = key & low, high_key = key >> 32;
    for (int round = 0; round < 10; ++round) {
      const Words x = (a & low) * 0xD2511F53u, y = (c & low) * 0xCD9E8D57u;
      a = (y >> 32) ^ b ^ low_key;
      b = y;
      c = (x >> 32) ^ d ^ high_key;
      d = x;
      low_key = (low_key + 0x9E3779B9u) & low;
      high_key = (high_key + 0xBB67AE85u) & low;
    }
    const Words front = (a & low) | (b << 32), back = (c & low) | (d << 32);
    for (int i = 0; i < 8; ++i) {
      const std::uint64_t words[] = {front[i], back[i]};
      std::memcpy(to + done + 4 * i, words, sizeof words);
    }
  }
}

// The Mersenne Twister MT19937, one whole state at a time.
class Twister {
 public:
  static constexpr int size = 624;

  explicit Twister(std::uint32_t seed) {
    state_[0] = seed;
    for (std::uint32_t i = 1; i < size; ++i) state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }

  // Generates the next `count` numbers.
  void draw(std::int64_t count, std::uint32_t* to) {
    while (count > 0) {
      if (next_ == size) {
        advance(state_, drawn_);
        next_ = 0;
      }
      const int taken = static_cast<int>(std::min<std::int64_t>(count, size - next_));
      std::copy(drawn_ + next_, drawn_ + next_ + taken, to);
      next_ += taken;
      to += taken;
      count -= taken;
    }
  }

 private:
  SPECOPS_INLINE static std::uint32_t mixed(std::uint32_t word, std::uint32_t next, std::uint32_t far) {
    const std::uint32_t both = (word & 0x80000000u) | (next & 0x7fffffffu);
    return far ^ (both >> 1) ^ ((0 - (both & 1)) & 0x9908b0dfu);
  }

  // Computes the next state and its numbers.
  SPECOPS_CLONES static void advance(std::uint32_t* state, std::uint32_t* drawn) {
    constexpr int far = 397;
    for (int i = 0; i < size - far; ++i) state[i] = mixed(state[i], state[i + 1], state[i + far]);
    for (int i = size - far; i < size - 1; ++i) state[i] = mixed(state[i], state[i + 1], state[i - (size - far)]);
    state[size - 1] = mixed(state[size - 1], state[0], state[far - 1]);
    for (int i = 0; i < size; ++i) {
      std::uint32_t x = state[i];
      x ^= x >> 11;
      x ^= (x << 7) & 0x9d2c5680u;
      x ^= (x << 15) & 0xefc60000u;
      drawn[i] = x ^ (x >> 18);
    }
  }

  std::uint32_t state_[size], drawn_[size];
  int next_ = size;
};

// Converts 32-bit numbers, `words` for each result, into values of T in [low, high).
template <class T>
struct Range {
  T low, high;
  bool pytorch;
  int words = 1;

  Range(T from, T to, bool torch) : low(from), high(to), pytorch(torch) {
    if constexpr (std::is_integral_v<T>) {
      if (low >= high) fail("minval = ", low, " is not less than maxval = ", high);
      if (pytorch && std::max<std::int64_t>(low, high) > 0xffffffffLL) words = 2;
    } else if constexpr (std::is_same_v<T, double>) {
      words = 2;
    }
  }

  std::uint64_t number(const std::uint32_t* drawn, std::int64_t i) const {
    return words == 1 ? drawn[i] : (std::uint64_t{drawn[2 * i]} << 32) | drawn[2 * i + 1];
  }

  SPECOPS_INLINE void convert(const std::uint32_t* drawn, std::int64_t count, T* to) const {
    if constexpr (std::is_integral_v<T>) {
      const std::uint64_t from = static_cast<std::uint64_t>(static_cast<std::int64_t>(low));
      const std::uint64_t span = static_cast<std::uint64_t>(static_cast<std::int64_t>(high)) - from;
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(number(drawn, i) % span + from);
    } else if constexpr (std::is_same_v<T, double>) {
      const int bits = pytorch ? 53 : 52;
      const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
      const double scale = pytorch ? 0x1p-53 : 0x1p-52, span = high - low;
      for (std::int64_t i = 0; i < count; ++i) {
        to[i] = static_cast<double>(static_cast<std::int64_t>(number(drawn, i) & mask)) * scale * span + low;
      }
    } else {
      const int mantissa = std::is_same_v<T, float> ? 23 : std::is_same_v<T, Float16> ? 10 : 7;
      const int bits = mantissa + (pytorch ? 1 : 0);
      const std::uint32_t mask = (std::uint32_t{1} << bits) - 1;
      const float scale = 1.0f / static_cast<float>(std::uint32_t{1} << bits);
      const float from = static_cast<float>(low), span = static_cast<float>(T(static_cast<float>(high) - from));
      const auto fraction = [&](std::int64_t i) {  // exact
        return static_cast<float>(static_cast<std::int32_t>(drawn[i] & mask)) * scale;
      };
      if (pytorch) {
        for (std::int64_t i = 0; i < count; ++i) to[i] = T(fraction(i) * span + from);
      } else if constexpr (std::is_same_v<T, Float16>) {
        for (std::int64_t i = 0; i < count; ++i) {
          to[i] = T(static_cast<float>(T(fraction(i) * span)) + from);
        }
      } else {
        const double wide_span = span, wide_from = from;
        for (std::int64_t i = 0; i < count; ++i) to[i] = T(static_cast<float>(fraction(i) * wide_span + wide_from));
      }
    }
  }
};

SPECOPS_CLONES void convert(const Range<float>& range, const std::uint32_t* drawn, std::int64_t count, float* to) {
  range.convert(drawn, count, to);
}
template <class T>
void convert(const Range<T>& range, const std::uint32_t* drawn, std::int64_t count, T* to) {
  range.convert(drawn, count, to);
}

// A new seed for each call.
std::uint64_t fresh_seed() {
  static std::atomic<std::uint64_t> calls{0};
  const auto now = static_cast<std::uint64_t>(std::chrono::high_resolution_clock::now().time_since_epoch().count());
  return now ^ (calls.fetch_add(1) * 0x9E3779B97F4A7C15u);
}

class RandomUniform : public Kernel {
 public:
  explicit RandomUniform(const KernelInfo& info)
      : global_seed_(static_cast<std::uint64_t>(info.integer("global_seed"))),
        op_seed_(static_cast<std::uint64_t>(info.integer("op_seed"))),
        pytorch_(info.string("alignment") == "PYTORCH") {}

  void compute(Context& context) const override {
    const Input dimensions = context.input(0), low = context.input(1), high = context.input(2);
    const auto* values = dimensions.data<std::int64_t>();
    const Shape shape(values, values + dimensions.size());
    if (dimensions.shape().size() != 1 || std::any_of(shape.begin(), shape.end(), [](auto d) { return d < 0; })) {
      fail("shape = ", to_string(shape), " is not a shape");
    }
    if (low.size() != 1) fail("minval has ", low.size(), " elements instead of one");
    if (high.size() != 1) fail("maxval has ", high.size(), " elements instead of one");
    dispatch<float, double, Float16, BFloat16, std::int32_t, std::int64_t>(low.type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Range<T> range(*low.data<T>(), *high.data<T>(), pytorch_);
      const std::int64_t count = element_count(shape);
      Output output = context.output(0, shape);
      draw(context, range, count, output.data<T>());
    });
  }

 private:
  template <class T>
  void draw(const Context& context, const Range<T>& range, std::int64_t count, T* to) const {
    const std::uint64_t seed = global_seed_ == 0 && op_seed_ == 0 ? fresh_seed() : global_seed_;
    const std::int64_t step = chunk / range.words;
    if (pytorch_) {
      Twister twister(static_cast<std::uint32_t>(seed));
      std::uint32_t drawn[chunk];
      for (std::int64_t i = 0; i < count; i += step) {
        const std::int64_t size = std::min(step, count - i);
        twister.draw(size * range.words, drawn);
        convert(range, drawn, size, to + i);
      }
      return;
    }
    context.parallel_ranges((count + step - 1) / step, 16, [&](std::int64_t first, std::int64_t last) {
      std::uint32_t drawn[chunk];
      for (std::int64_t i = first * step; i < std::min(last * step, count); i += step) {
        const std::int64_t size = std::min(step, count - i);
        philox(seed, op_seed_, i * range.words, size * range.words, drawn);
        convert(range, drawn, size, to + i);
      }
    });
  }

  std::uint64_t global_seed_, op_seed_;
  bool pytorch_;
};

}  // namespace

const Op& random_uniform() {
  static const Op op = {
      "RandomUniform",
      {{"shape"}, {"minval"}, {"maxval"}},
      {{"output"}},
      {Attribute::integer("global_seed", 0), Attribute::integer("op_seed", 0),
       Attribute::string("alignment", "TENSORFLOW").one_of({"TENSORFLOW", "PYTORCH"})},
      [] {
        std::vector<Signature> all;
        for (const Type type : {Type::float32, Type::float64, Type::float16, Type::bfloat16, Type::int32, Type::int64}) {
          all.push_back({{Type::int64, type, type}, {type}});
        }
        return all;
      }(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<RandomUniform>(info); },
      nullptr,  // the shape is only known at run time
  };
  return op;
}

}  // namespace specops
