#include "feature_maps.h"

#include <cmath>
#include <limits>

#include "simd.h"

namespace specops {
namespace {

// Pools `reader.size()` items, which a reader reads for a channel and those after it.
template <class A>
struct Places {
  const A* map;
  std::int64_t channels;
  const std::vector<std::int64_t>& at;

  std::size_t size() const { return at.size(); }
  SPECOPS_INLINE A one(std::size_t i, std::int64_t channel) const { return map[at[i] * channels + channel]; }
  SPECOPS_INLINE Pack<A> pack(std::size_t i, std::int64_t channel) const {
    Pack<A> values;
    values.load(map + at[i] * channels + channel);
    return values;
  }
};

template <class A>
struct Samples {
  const A* map;
  std::int64_t channels;
  const std::vector<Sample<A>>& samples;

  std::size_t size() const { return samples.size(); }
  SPECOPS_INLINE A one(std::size_t i, std::int64_t channel) const {
    const Sample<A>& sample = samples[i];
    A value = 0;
    for (int k = 0; k < 4; ++k) value += map[sample.at[k] * channels + channel] * sample.weights[k];
    return value;
  }
  SPECOPS_INLINE Pack<A> pack(std::size_t i, std::int64_t channel) const {
    const Sample<A>& sample = samples[i];
    Pack<A> value;
    for (int k = 0; k < 4; ++k) {
      Pack<A> corner;
      corner.load(map + sample.at[k] * channels + channel);
      corner.multiply(sample.weights[k]);
      value.add(corner);
    }
    return value;
  }
};

template <int packs, class A, class Reader>
SPECOPS_INLINE void pool_packs(const Reader& reader, std::int64_t channel, Pooling how, const Pack<A>& least, A* to) {
  constexpr std::int64_t width = static_cast<std::int64_t>(Pack<A>::size);
  Pack<A> pooled[packs];
  for (Pack<A>& pack : pooled) pack = least;
  for (std::size_t i = 0; i < reader.size(); ++i) {
    for (int p = 0; p < packs; ++p) {
      const Pack<A> values = reader.pack(i, channel + p * width);
      if (how == Pooling::sum) {
        pooled[p].add(values);
      } else {
        pooled[p].raise(values);
      }
    }
  }
  for (int p = 0; p < packs; ++p) pooled[p].store(to + channel + p * width);
}

template <class A, class Reader>
SPECOPS_INLINE void pool_channels(const Reader& reader, Pooling how, A least, A* to) {
  constexpr std::int64_t width = static_cast<std::int64_t>(Pack<A>::size);
  A lanes[Pack<A>::size];
  std::fill(lanes, lanes + width, least);
  Pack<A> all_least;
  all_least.load(lanes);
  std::int64_t c = 0;
  for (; c + 4 * width <= reader.channels; c += 4 * width) pool_packs<4>(reader, c, how, all_least, to);
  for (; c + width <= reader.channels; c += width) pool_packs<1>(reader, c, how, all_least, to);
  for (; c < reader.channels; ++c) {
    A pooled = least;
    for (std::size_t i = 0; i < reader.size(); ++i) {
      const A value = reader.one(i, c);
      if (how == Pooling::sum) {
        pooled += value;
      } else if (value > pooled || std::isnan(value)) {
        pooled = value;
      }
    }
    to[c] = pooled;
  }
}

SPECOPS_CLONES void pool_floats(const Samples<float>& reader, Pooling how, float* to) {
  pool_channels(reader, how, 0.0f, to);
}

SPECOPS_CLONES void pool_floats(const Places<float>& reader, float* to) {
  pool_channels(reader, Pooling::maximum, -std::numeric_limits<float>::infinity(), to);
}

}  // namespace

void pool(const float* map, std::int64_t channels, const std::vector<Sample<float>>& samples, Pooling how, float* to) {
  pool_floats(Samples<float>{map, channels, samples}, how, to);
}

void pool(const double* map, std::int64_t channels, const std::vector<Sample<double>>& samples, Pooling how, double* to) {
  pool_channels(Samples<double>{map, channels, samples}, how, 0.0, to);
}

void maximum(const float* map, std::int64_t channels, const std::vector<std::int64_t>& places, float* to) {
  if (places.empty()) return void(std::fill(to, to + channels, 0.0f));
  pool_floats(Places<float>{map, channels, places}, to);
}

void maximum(const double* map, std::int64_t channels, const std::vector<std::int64_t>& places, double* to) {
  if (places.empty()) return void(std::fill(to, to + channels, 0.0));
  pool_channels(Places<double>{map, channels, places}, Pooling::maximum, -std::numeric_limits<double>::infinity(), to);
}

}  // namespace specops
