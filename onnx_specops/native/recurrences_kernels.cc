// The implementation of recurrences.h. CMake defines SPECOPS_SET, the function that returns it.

#include <math.h>

#include <cstdint>
#include <cstring>

#include "recurrences.h"
#include "vectors.inc"

namespace specops::recurrences {
namespace {

#include "exponentials.inc"

constexpr std::int64_t lanes = Floats::size;

// ------------------------------------------------------------------------------------------------------ GatedDeltaRule

template <int packs>
ALWAYS void load(const float* from, std::int64_t count, Floats (&to)[packs]) {
  if (count == packs * lanes) {
    UNROLL(4)
    for (int p = 0; p < packs; ++p) to[p] = Floats::load(from + p * lanes);
  } else {
    float padded[packs * lanes] = {};
    for (std::int64_t i = 0; i < count; ++i) padded[i] = from[i];
    UNROLL(4)
    for (int p = 0; p < packs; ++p) to[p] = Floats::load(padded + p * lanes);
  }
}

template <int packs>
ALWAYS void store(const Floats (&from)[packs], std::int64_t count, float* to) {
  if (count == packs * lanes) {
    UNROLL(4)
    for (int p = 0; p < packs; ++p) from[p].store(to + p * lanes);
  } else {
    float padded[packs * lanes];
    UNROLL(4)
    for (int p = 0; p < packs; ++p) from[p].store(padded + p * lanes);
    for (std::int64_t i = 0; i < count; ++i) to[i] = padded[i];
  }
}

// Adds the update of a token to its decayed state, and computes its output. Then decays the state for the next token, and
// computes the values that the token finds in it. The state of the last token is stored in `after`.
template <int packs, bool last>
ALWAYS void step(const DeltaRule& rule, std::int64_t token, float next_factor, const Floats (&delta)[packs],
                 Floats (&output)[packs], Floats (&found)[packs]) {
  constexpr std::int64_t width = packs * lanes;
  const float *query = rule.query + token * rule.key_step, *key = rule.key + token * rule.key_step;
  const float* next_key = key + rule.key_step;
  const Floats factor = Floats::all(next_factor);
  for (std::int64_t row = 0; row < rule.rows; ++row) {
    float* const state = rule.state + row * width;
    const Floats own = Floats::all(key[row]), asked = Floats::all(query[row]);
    Floats current[packs];
    UNROLL(4)
    for (int p = 0; p < packs; ++p) {
      current[p] = multiply_add(delta[p], own, Floats::load(state + p * lanes));
      output[p] = multiply_add(current[p], asked, output[p]);
    }
    if constexpr (last) {
      store(current, rule.count, rule.after + row * rule.state_step);
    } else {
      const Floats next = Floats::all(next_key[row]);
      UNROLL(4)
      for (int p = 0; p < packs; ++p) {
        current[p] = current[p] * factor;
        current[p].store(state + p * lanes);
        found[p] = multiply_add(current[p], next, found[p]);
      }
    }
  }
}

template <int packs>
void apply_rule(const DeltaRule& rule) {
  constexpr std::int64_t width = packs * lanes;
  Floats found[packs];
  UNROLL(4)
  for (int p = 0; p < packs; ++p) found[p] = Floats::zero();
  const Floats first = Floats::all(expf(rule.decay[0]));
  for (std::int64_t row = 0; row < rule.rows; ++row) {
    Floats current[packs];
    load(rule.before + row * rule.state_step, rule.count, current);
    const Floats key = Floats::all(rule.key[row]);
    UNROLL(4)
    for (int p = 0; p < packs; ++p) {
      current[p] = current[p] * first;
      current[p].store(rule.state + row * width + p * lanes);
      found[p] = multiply_add(current[p], key, found[p]);
    }
  }
  for (std::int64_t t = 0; t < rule.tokens; ++t) {
    Floats delta[packs], output[packs], next_found[packs];
    load(rule.value + t * rule.value_step, rule.count, delta);
    const Floats beta = Floats::all(rule.beta[t * rule.gate_step]);
    UNROLL(4)
    for (int p = 0; p < packs; ++p) {
      delta[p] = (delta[p] - found[p]) * beta;
      output[p] = next_found[p] = Floats::zero();
    }
    if (t + 1 < rule.tokens) {
      step<packs, false>(rule, t, expf(rule.decay[(t + 1) * rule.gate_step]), delta, output, next_found);
    } else {
      step<packs, true>(rule, t, 0.0f, delta, output, next_found);
    }
    store(output, rule.count, rule.output + t * rule.value_step);
    UNROLL(4)
    for (int p = 0; p < packs; ++p) found[p] = next_found[p];
  }
}

void apply_delta_rule(const DeltaRule& rule) {
  constexpr int most = static_cast<int>(most_columns / lanes);
  if constexpr (most > 2) {
    if (rule.count <= lanes) return apply_rule<1>(rule);
  }
  if (rule.count <= most_columns / 2) return apply_rule<most / 2>(rule);
  apply_rule<most>(rule);
}

// ------------------------------------------------------------------------------------------------------ StateSpaceScan

// The number of vectors of a row that are computed together. A step adds to as many sums as registers can hold.
template <int rows, int packs>
ALWAYS void advance(const StateSpace& space, std::int64_t n, const float* before, const Floats& factor,
                    const Floats (&added)[rows], const float* in, const float* out, Floats (&sums)[rows]) {
  UNROLL(4)
  for (int p = 0; p < packs; ++p) {
    const std::int64_t at = n + p * lanes;
    const Floats into = Floats::load(in + at), from = Floats::load(out + at);
    UNROLL(4)
    for (int r = 0; r < rows; ++r) {
      const Floats current = multiply_add(into, added[r], Floats::load(before + r * space.size + at) * factor);
      current.store(space.after + r * space.size + at);
      sums[r] = multiply_add(current, from, sums[r]);
    }
  }
}

template <int rows>
void scan_rows(const StateSpace& space) {
  const std::int64_t size = space.size, whole = size / lanes * lanes;
  const float* before = space.before;
  for (std::int64_t t = 0; t < space.tokens; ++t) {
    const float factor = space.decay[t * space.decay_step], *const x = space.x + t * space.x_step;
    const float *in = space.input_gate + t * space.gate_step, *out = space.output_gate + t * space.gate_step;
    const Floats factors = Floats::all(factor);
    Floats added[rows], sums[rows];
    UNROLL(4)
    for (int r = 0; r < rows; ++r) {
      added[r] = Floats::all(x[r]);
      sums[r] = Floats::zero();
    }
    std::int64_t n = 0;
    for (; n + 2 * lanes <= whole; n += 2 * lanes) advance<rows, 2>(space, n, before, factors, added, in, out, sums);
    for (; n < whole; n += lanes) advance<rows, 1>(space, n, before, factors, added, in, out, sums);
    float* const y = space.y + t * space.x_step;
    UNROLL(4)
    for (int r = 0; r < rows; ++r) {
      float sum = sums[r].sum();
      for (std::int64_t rest = whole; rest < size; ++rest) {
        const float current = before[r * size + rest] * factor + x[r] * in[rest];
        space.after[r * size + rest] = current;
        sum += current * out[rest];
      }
      y[r] = sum;
    }
    before = space.after;
  }
}

void scan_space(const StateSpace& space) {
  if (space.count == most_rows) return scan_rows<static_cast<int>(most_rows)>(space);
  for (std::int64_t r = 0; r < space.count; ++r) {
    StateSpace row = space;
    row.x += r;
    row.y += r;
    row.before += r * space.size;
    row.after += r * space.size;
    scan_rows<1>(row);
  }
}

// ------------------------------------------------------------------------------------------------------- SelectiveScan

constexpr float smallest = -87.0f;  // the logarithm of the smallest normal number
constexpr int scan_packs = static_cast<int>(scan_lanes / lanes);
static_assert(scan_lanes % lanes == 0);

ALWAYS Floats lesser(Floats a, Floats b) {  // b where either is NaN
#if defined(__AVX512F__)
  return {_mm512_min_ps(a.lanes, b.lanes)};
#elif defined(__AVX2__)
  return {_mm256_min_ps(a.lanes, b.lanes)};
#else
  return each_slice([](Slice x, Slice y) { return x < y ? x : y; }, a, b);
#endif
}

// exp(x) for any x; 0 below `lowest`. It is computed as the square of exp(x / 2), because the largest powers of two are not
// representable.
ALWAYS Floats exponential_above(float lowest, Floats x) {
  const Floats half = lesser(Floats::all(45.0f), greater(Floats::all(-52.0f), x * Floats::all(0.5f)));
  const Rounded rounded = Rounded::of(half, Floats::all(1.44269504f));
  // ln(2) in two parts. The first part has few enough bits that the product is exact.
  Floats rest = multiply_add(rounded.whole, Floats::all(-0.693359375f), half);
  rest = multiply_add(rounded.whole, Floats::all(2.12194440e-4f), rest);
  Floats sum = multiply_add(rest, Floats::all(1.9875691500e-4f), Floats::all(1.3981999507e-3f));
  sum = multiply_add(sum, rest, Floats::all(8.3334519073e-3f));
  sum = multiply_add(sum, rest, Floats::all(4.1665795894e-2f));
  sum = multiply_add(sum, rest, Floats::all(1.6666665459e-1f));
  sum = multiply_add(sum, rest, Floats::all(5.0000001201e-1f));
  const Floats root = rounded.scale(multiply_add(sum * rest, rest, rest + Floats::all(1.0f)));
  return below_zero(x - Floats::all(lowest), Floats::zero(), root * root);
}

ALWAYS Floats load_part(const float* from, std::int64_t number, int pack) {
  return Floats::load(from + number * scan_lanes + pack * lanes);
}

void scan_block(const Selective& scan, std::int64_t block, float lowest) {
  const float* const rates = scan.decay + block * scan_lanes;
  Floats rate[scan_packs], total[scan_packs], kept[scan_packs], added[scan_packs], current[scan_packs];
  UNROLL(2)
  for (int p = 0; p < scan_packs; ++p) {
    rate[p] = load_part(rates, 0, p);
    total[p] = added[p] = current[p] = Floats::zero();
  }
  for (std::int64_t t = scan.tokens - 1; t >= 0; --t) {
    const Floats width = Floats::all(scan.time_step[t * scan.step]);
    UNROLL(2)
    for (int p = 0; p < scan_packs; ++p) {
      total[p].store(scan.behind + t * scan_lanes + p * lanes);
      total[p] = multiply_add(width, rate[p], total[p]);
    }
  }
  const Floats first = Floats::all(scan.time_step[0]);
  UNROLL(2)
  for (int p = 0; p < scan_packs; ++p) {
    kept[p] = load_part(scan.before, block, p) * exponential_above(smallest, first * rate[p]);
  }
  const float *in = scan.input_gate + block * scan.tokens * scan_lanes;
  const float *out = scan.output_gate + block * scan.tokens * scan_lanes;
  for (std::int64_t t = 0; t < scan.tokens; ++t) {
    const Floats value = Floats::all(scan.x[t * scan.step]), epsilon = Floats::all(scan.epsilon);
    Floats sum = Floats::zero();
    UNROLL(2)
    for (int p = 0; p < scan_packs; ++p) {
      const Floats e = exponential_above(lowest, load_part(scan.behind, t, p));
      added[p] = added[p] + multiply_add(value * load_part(in, t, p), e, kept[p]);
      current[p] = added[p] / (e + epsilon);
      sum = multiply_add(current[p], load_part(out, t, p), sum);
    }
    float* const to = scan.sums + t * lanes;
    (block == 0 ? sum : Floats::load(to) + sum).store(to);
  }
  UNROLL(2)
  for (int p = 0; p < scan_packs; ++p) current[p].store(scan.after + block * scan_lanes + p * lanes);
}

void scan_channel(const Selective& scan) {
  // Terms this much smaller than epsilon do not change the result, and denormal numbers are slow.
  float lowest = -104.0f;
  if (scan.epsilon > 0) {
    const float least = logf(scan.epsilon) - 46.0f;
    lowest = least > smallest ? least : smallest;
  }
  for (std::int64_t block = 0; block < scan.blocks; ++block) scan_block(scan, block, lowest);
  std::int64_t t = 0;
  for (; t + lanes <= scan.tokens; t += lanes) {
    Floats all[lanes];
    UNROLL(16)
    for (int i = 0; i < lanes; ++i) all[i] = Floats::load(scan.sums + (t + i) * lanes);
    float of_tokens[lanes];
    sums(all).store(of_tokens);
    UNROLL(16)
    for (int i = 0; i < lanes; ++i) scan.y[(t + i) * scan.step] = of_tokens[i];
  }
  for (; t < scan.tokens; ++t) scan.y[t * scan.step] = Floats::load(scan.sums + t * lanes).sum();
}

// ---------------------------------------------------------------------------------------------------------- CausalConv

// One token. `fixed` is the number of taps, or 0 for any number.
template <int fixed>
ALWAYS void convolve_token(const Convolution& of, std::int64_t t) {
  const std::int64_t taps = fixed != 0 ? fixed : of.taps, from = t - taps + 1;
  float* const to = of.y + t * of.channels;
  const auto row = [&](std::int64_t at) ALWAYS_LAMBDA {
    return at < 0 ? of.history + (taps - 1 + at) * of.channels : of.x + at * of.channels;
  };
  std::int64_t c = 0;
  if constexpr (fixed != 0) {
    const float* rows[fixed];
    UNROLL(4)
    for (int k = 0; k < fixed; ++k) rows[k] = row(from + k);
    for (; c + lanes <= of.channels; c += lanes) {
      Floats sum = Floats::zero();
      UNROLL(4)
      for (int k = 0; k < fixed; ++k) {
        sum = multiply_add(Floats::load(rows[k] + c), Floats::load(of.weight + k * of.channels + c), sum);
      }
      sum.store(to + c);
    }
  } else {
    for (; c + lanes <= of.channels; c += lanes) {
      Floats sum = Floats::zero();
      for (std::int64_t k = 0; k < taps; ++k) {
        sum = multiply_add(Floats::load(row(from + k) + c), Floats::load(of.weight + k * of.channels + c), sum);
      }
      sum.store(to + c);
    }
  }
  for (; c < of.channels; ++c) {
    float sum = 0;
    for (std::int64_t k = 0; k < taps; ++k) sum += row(from + k)[c] * of.weight[k * of.channels + c];
    to[c] = sum;
  }
}

void convolve(const Convolution& of) {
  for (std::int64_t t = of.first; t < of.last; ++t) {
    if (of.taps == 4) {
      convolve_token<4>(of, t);
    } else if (of.taps == 3) {
      convolve_token<3>(of, t);
    } else {
      convolve_token<0>(of, t);
    }
  }
}

}  // namespace

const Kernels& SPECOPS_SET() {
  static const Kernels all = {SPECOPS_NAME, apply_delta_rule, scan_space, scan_channel, convolve};
  return all;
}

}  // namespace specops::recurrences
