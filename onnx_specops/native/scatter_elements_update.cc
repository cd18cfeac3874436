// ScatterElementsUpdate: writes or reduces updates into a copy of a tensor, at indices along one axis.
//
// Data is viewed as [outer, d, inner] around the axis. Updates, which are no longer than data in the other dimensions, are
// viewed as [.., n, lines]. A line has the elements at one position of the other dimensions. Lines do not share elements,
// and one thread applies the updates of a line in order, so results do not depend on the number of threads.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

#include "copy.h"
#include "ops.h"
#include "simd.h"

namespace specops {
namespace {

// ------------------------------------------------------------------------------------------------------- reductions

enum class Reduction { none, sum, prod, min, max, mean };

struct Write {
  template <class T>
  static SPECOPS_INLINE T apply(T, T b) {
    return b;
  }
};

// Integers wrap around.
struct Sum {
  template <class T>
  static SPECOPS_INLINE T apply(T a, T b) {
    if constexpr (std::is_same_v<T, bool>) {
      return a || b;
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    } else {
      return a + b;
    }
  }
  template <class T>
  static T neutral() {
    return T(0);
  }
};

struct Prod {
  template <class T>
  static SPECOPS_INLINE T apply(T a, T b) {
    if constexpr (std::is_same_v<T, bool>) {
      return a && b;
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
      return a * b;
    }
  }
  template <class T>
  static T neutral() {
    return T(1);
  }
};

// NaN is propagated.
struct Min {
  template <class T>
  static SPECOPS_INLINE T apply(T a, T b) {
    return b < a || b != b ? b : a;
  }
  template <class T>
  static T neutral() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
};

struct Max {
  template <class T>
  static SPECOPS_INLINE T apply(T a, T b) {
    return a < b || b != b ? b : a;
  }
  template <class T>
  static T neutral() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
};

// sum / count, toward minus infinity for integers.
template <class T>
SPECOPS_INLINE T divided(T sum, std::uint32_t count) {
  if constexpr (std::is_same_v<T, float>) {
    if (count <= 1u << 24) return sum / static_cast<float>(count);  // equal to the rounded quotient of doubles
  }
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(static_cast<double>(sum) / count);
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(sum / count);
  } else {
    const std::int64_t divisor = count;
    return static_cast<T>(sum / divisor - (sum % divisor < 0 ? 1 : 0));
  }
}

// ---------------------------------------------------------------------------------------------------------- geometry

// The dimensions on one side of the axis, merged if updates are as long as data.
struct Side {
  Shape data, updates;
  std::int64_t data_count = 1, update_count = 1;

  Side(const Shape& data_shape, const Shape& update_shape, std::size_t begin, std::size_t end) {
    bool merge = false;
    for (std::size_t k = end; k-- > begin;) {
      const std::int64_t size = data_shape[k], updated = update_shape[k];
      data_count *= size;
      update_count *= updated;
      if (merge) {
        data.front() *= size;
        updates.front() *= updated;
      } else {
        data.insert(data.begin(), size);
        updates.insert(updates.begin(), updated);
      }
      merge = data.front() == updates.front();
    }
  }
};

// Iterates over the positions of a side in data's (or updates') order, with the corresponding position in the other tensor.
class Walk {
 public:
  Walk(const Shape& over, const Shape& other, std::int64_t position) : over_(over), other_(other), at_(over.size()) {
    for (std::size_t k = over.size(); k-- > 0;) {
      at_[k] = position % over[k];
      position /= over[k];
    }
    locate();
  }

  bool inside() const { return inside_; }        // within the other tensor
  std::int64_t place() const { return place_; }  // in the other tensor
  void next() {
    if (over_.empty()) return;
    std::size_t k = over_.size() - 1;
    if (++at_[k] < over_[k]) {
      ++place_;
      inside_ = inside_ && at_[k] < other_[k];
      return;
    }
    while (k > 0 && at_[k] == over_[k]) {
      at_[k] = 0;
      ++at_[--k];
    }
    locate();
  }

 private:
  void locate() {
    inside_ = true;
    place_ = 0;
    for (std::size_t k = 0; k < over_.size(); ++k) {
      inside_ = inside_ && at_[k] < other_[k];
      place_ = place_ * other_[k] + at_[k];
    }
  }

  const Shape& over_;
  const Shape& other_;
  Shape at_;
  std::int64_t place_ = 0;
  bool inside_ = true;
};

struct Geometry {
  Side outer, inner;
  std::int64_t d, n;

  Geometry(const Shape& data, const Shape& updates, std::size_t axis)
      : outer(data, updates, 0, axis), inner(data, updates, axis + 1, data.size()), d(data[axis]), n(updates[axis]) {}
  std::int64_t slab() const { return d * inner.data_count; }
  std::int64_t updates_a_slab() const { return n * inner.update_count; }
};

// ------------------------------------------------------------------------------------------------------------- loops

constexpr std::int64_t chunk = 512;

// Converts indices to [0, d); negative ones count from the end. Returns false if one is out of range.
template <class Index>
SPECOPS_CLONES bool normalise(const void* indices, std::int64_t first, std::int64_t count, std::int64_t d,
                              std::int64_t* to) {
  const Index* from = static_cast<const Index*>(indices) + first;
  std::int64_t signs = 0;  // negative if any index was below 0 or above d - 1
  for (std::int64_t k = 0; k < count; ++k) {
    auto index = static_cast<std::int64_t>(from[k]);
    if constexpr (std::is_signed_v<Index>) index += index < 0 ? d : 0;
    signs |= index | (d - 1 - index);
    to[k] = index;
  }
  return signs >= 0;
}

struct Indices {
  const void* data;
  std::int64_t d;
  bool (*normalise)(const void*, std::int64_t first, std::int64_t count, std::int64_t d, std::int64_t* to);
};

struct OutOfRange {};

// Some lines of a slab, and the order of their updates: chunks that are contiguous in memory.
class Block {
 public:
  Block(const Geometry& geometry, std::int64_t first_line, std::int64_t lines)
      : geometry_(geometry), first_(first_line), lines_(lines) {
    const Side& inner = geometry.inner;
    plain_ = inner.update_count == 1 && inner.data_count == 1;
    // All lines if they are short: several rows of updates form one chunk.
    rows_ = lines == inner.update_count ? std::max<std::int64_t>(chunk / lines, 1) : 1;
    rows_ = std::min(rows_, geometry.n);
    if (plain_) return;
    Walk walk(inner.updates, inner.data, first_line);
    for (std::int64_t line = 0; line < lines; ++line, walk.next()) {
      offsets_[line] = walk.place();
      slots_[line] = line;
    }
    for (std::int64_t k = lines; k < rows_ * lines; ++k) {
      offsets_[k] = offsets_[k - lines];
      slots_[k] = slots_[k - lines];
    }
  }

  // The number of elements in all lines, which slots number.
  std::int64_t slots() const { return geometry_.d * lines_; }

  // Calls body(update, element, slot) for each of the block's updates in the slab whose updates begin at `base`.
  template <class Body>
  SPECOPS_INLINE void for_each(const Indices& indices, std::int64_t base, const Body& body) const {
    std::int64_t at[chunk];
    const std::int64_t stride = geometry_.inner.data_count;
    for (std::int64_t row = 0; row < geometry_.n; row += rows_) {
      const std::int64_t count = std::min(rows_, geometry_.n - row) * lines_;
      const std::int64_t first = base + row * geometry_.inner.update_count + first_;
      if (!indices.normalise(indices.data, first, count, indices.d, at)) throw OutOfRange();
      if (plain_) {
        for (std::int64_t k = 0; k < count; ++k) body(first + k, at[k], at[k]);
      } else {
        for (std::int64_t k = 0; k < count; ++k) {
          body(first + k, at[k] * stride + offsets_[k], at[k] * lines_ + slots_[k]);
        }
      }
    }
  }

 private:
  const Geometry& geometry_;
  std::int64_t first_, lines_, rows_;
  bool plain_;
  std::int64_t offsets_[chunk], slots_[chunk];
};

// Per-thread state that is reused between blocks and runs: the number of updates of each element, all zero between blocks.
struct Scratch {
  std::vector<std::uint32_t> counts;
  std::vector<float> sums;
};

// The scratch memory of the thread while it processes a range.
class Lent {
 public:
  Lent() { std::swap(scratch_, kept()); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  ~Lent() {
    // After an error, not all counts are zero.
    if (std::uncaught_exceptions() == exceptions_ && scratch_.counts.size() <= most) std::swap(scratch_, kept());
  }
  Scratch& operator*() { return scratch_; }

 private:
  static Scratch& kept() {
    thread_local Scratch kept;
    return kept;
  }

  static constexpr std::size_t most = std::size_t{1} << 20;  // 8 MiB with the sums; larger memory is freed

  Scratch scratch_;
  int exceptions_ = std::uncaught_exceptions();
};

// The types in which reductions are computed.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float, T>;

template <class T>
struct Job {
  Indices indices;
  const T* updates;
  bool use_init_val;
};

// If the original data are not used, updated elements start with the neutral element.
template <class Op, class T>
void begin(const Job<T>& job, const Block& block, std::int64_t base, T* out) {
  if (job.use_init_val) return;
  const T neutral = Op::template neutral<T>();
  block.for_each(job.indices, base,
                 [&](std::int64_t, std::int64_t element, std::int64_t) { out[element] = neutral; });
}

// Reduces within the output.
template <class T, class Op>
void reduce(const Job<T>& job, const Block& block, std::int64_t base, T* out, Scratch&) {
  if constexpr (!std::is_same_v<Op, Write>) begin<Op>(job, block, base, out);
  const T* updates = job.updates;
  block.for_each(job.indices, base, [&](std::int64_t update, std::int64_t element, std::int64_t) {
    out[element] = Op::template apply<T>(out[element], updates[update]);
  });
}

// Reduces 16-bit floats in float32, element by element, and rounds once.
template <class T, class Op, bool mean>
void reduce_wide(const Job<T>& job, const Block& block, std::int64_t base, T* out, Scratch& scratch) {
  const auto slots = static_cast<std::size_t>(block.slots());
  if (scratch.counts.size() < slots) scratch.counts.resize(slots);
  if (scratch.sums.size() < slots) scratch.sums.resize(slots);
  std::uint32_t* counts = scratch.counts.data();
  float* sums = scratch.sums.data();
  const T* updates = job.updates;
  block.for_each(job.indices, base, [&](std::int64_t update, std::int64_t element, std::int64_t slot) {
    float sum = sums[slot];
    if (counts[slot]++ == 0) sum = job.use_init_val ? static_cast<float>(out[element]) : Op::template neutral<float>();
    sums[slot] = Op::apply(sum, static_cast<float>(updates[update]));
  });
  block.for_each(job.indices, base, [&](std::int64_t, std::int64_t element, std::int64_t slot) {
    if (counts[slot] == 0) return;
    out[element] = T(mean ? divided(sums[slot], counts[slot] + job.use_init_val) : sums[slot]);
    counts[slot] = 0;
  });
}

template <class T>
void reduce_mean(const Job<T>& job, const Block& block, std::int64_t base, T* out, Scratch& scratch) {
  const auto slots = static_cast<std::size_t>(block.slots());
  if (scratch.counts.size() < slots) scratch.counts.resize(slots);
  std::uint32_t* counts = scratch.counts.data();
  const T* updates = job.updates;
  begin<Sum>(job, block, base, out);
  block.for_each(job.indices, base, [&](std::int64_t update, std::int64_t element, std::int64_t slot) {
    out[element] = Sum::apply<T>(out[element], updates[update]);
    ++counts[slot];
  });
  // An element that occurs again has been divided and its count reset, so it is divided by one.
  const std::uint32_t initial = job.use_init_val ? 1 : 0;
  block.for_each(job.indices, base, [&](std::int64_t, std::int64_t element, std::int64_t slot) {
    out[element] = divided(out[element], std::max<std::uint32_t>(counts[slot] + initial, 1));
    counts[slot] = 0;
  });
}

template <class T>
using Reduce = void (*)(const Job<T>&, const Block&, std::int64_t base, T* out, Scratch&);

template <class T>
Reduce<T> choose(Reduction reduction) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    switch (reduction) {
      case Reduction::none: return reduce<T, Write>;
      case Reduction::sum: return reduce_wide<T, Sum, false>;
      case Reduction::prod: return reduce_wide<T, Prod, false>;
      case Reduction::min: return reduce_wide<T, Min, false>;
      case Reduction::max: return reduce_wide<T, Max, false>;
      case Reduction::mean: return reduce_wide<T, Sum, true>;
    }
  } else {
    switch (reduction) {
      case Reduction::none: return reduce<T, Write>;
      case Reduction::sum: return reduce<T, Sum>;
      case Reduction::prod: return reduce<T, Prod>;
      case Reduction::min: return reduce<T, Min>;
      case Reduction::max: return reduce<T, Max>;
      case Reduction::mean:
        if constexpr (!std::is_same_v<T, bool>) return reduce_mean<T>;
    }
  }
  return nullptr;
}

// ------------------------------------------------------------------------------------------------------------ kernel

struct alignas(64) Line {
  char bytes[64];
};

template <class T>
void run(const Context& context, const Geometry& geometry, const Job<T>& job, Reduce<T> reduce_block, const T* data,
         T* out) {
  const Side& outer = geometry.outer;
  const std::int64_t lines = geometry.inner.update_count;
  const std::int64_t slab_bytes = geometry.slab() * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t total_bytes = outer.data_count * slab_bytes;
  const bool nothing = geometry.n == 0 || lines == 0 || outer.update_count == 0;

  if (!nothing && outer.data_count > 1 && slab_bytes <= (1 << 18)) {
    // A few slabs at a time are copied and updated while in the cache. Large outputs are computed in a buffer and then
    // written with non-temporal stores.
    const std::int64_t together = std::max<std::int64_t>((1 << 12) / slab_bytes, 1);
    const bool streaming = total_bytes > streaming_bytes && slab_bytes <= (1 << 14);
    const auto work = [&](std::int64_t begin, std::int64_t end) {
      Lent scratch;
      std::vector<Block> blocks;
      blocks.reserve(static_cast<std::size_t>((lines + chunk - 1) / chunk));
      for (std::int64_t line = 0; line < lines; line += chunk) {
        blocks.emplace_back(geometry, line, std::min(chunk, lines - line));
      }
      std::vector<Line> stage(streaming ? static_cast<std::size_t>(together * slab_bytes) / sizeof(Line) + 1 : 0);
      Walk walk(outer.data, outer.updates, begin);
      for (std::int64_t first = begin; first < end; first += together) {
        const std::int64_t count = std::min(together, end - first);
        T* const to = out + first * geometry.slab();
        T* slab = streaming ? reinterpret_cast<T*>(stage.data()) : to;
        std::memcpy(static_cast<void*>(slab), data + first * geometry.slab(), static_cast<std::size_t>(count * slab_bytes));
        for (std::int64_t i = 0; i < count; ++i, slab += geometry.slab(), walk.next()) {
          if (!walk.inside()) continue;
          const std::int64_t base = walk.place() * geometry.updates_a_slab();
          for (const Block& block : blocks) reduce_block(job, block, base, slab, *scratch);
        }
        if (streaming) stream(to, stage.data(), count * slab_bytes);
      }
      if (streaming) streamed();
    };
    context.parallel_ranges(outer.data_count, std::max<std::int64_t>((1 << 16) / slab_bytes, 1), work);
    return;
  }

  parallel_copy(context, out, data, total_bytes);
  if (nothing) return;
  // Enough blocks of lines to keep all threads busy.
  const std::int64_t wanted = std::max<std::int64_t>(context.most_pieces() / outer.update_count, 1);
  const std::int64_t size = std::min(std::max<std::int64_t>((lines + wanted - 1) / wanted, 16), chunk);
  const std::int64_t blocks = (lines + size - 1) / size;
  const std::int64_t grain = std::max<std::int64_t>(4096 / (size * geometry.n), 1);
  context.parallel_ranges(outer.update_count * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    Lent scratch;
    Walk walk(outer.updates, outer.data, begin / blocks);
    for (std::int64_t i = begin; i < end; ++i) {
      if (i != begin && i % blocks == 0) walk.next();
      const std::int64_t line = i % blocks * size;
      const Block block(geometry, line, std::min(size, lines - line));
      reduce_block(job, block, i / blocks * geometry.updates_a_slab(), out + walk.place() * geometry.slab(), *scratch);
    }
  });
}

// Throws the error of the first index that is out of range.
template <class Index>
void check_indices(const Index* indices, const Shape& shape, std::int64_t count, std::int64_t d) {
  std::int64_t unused;
  for (std::int64_t i = 0; i < count; ++i) {
    if (normalise<Index>(indices, i, 1, d, &unused)) continue;
    Shape position(shape.size());
    std::int64_t rest = i;
    for (std::size_t k = shape.size(); k-- > 0;) {
      position[k] = rest % shape[k];
      rest /= shape[k];
    }
    fail("indices", to_string(position), " = ", indices[i], " is out of range [", -d, ", ", d - 1, "]");
  }
}

class ScatterElementsUpdate : public Kernel {
 public:
  explicit ScatterElementsUpdate(const KernelInfo& info)
      : reduction_(static_cast<Reduction>(info.choice("reduction"))), use_init_val_(info.flag("use_init_val")) {}

  void compute(Context& context) const override {
    const Input data = context.input(0);
    const Input indices = context.input(1);
    const Input updates = context.input(2);
    const Input axis_input = context.input(3);
    const auto rank = static_cast<std::int64_t>(data.shape().size());
    if (data.type() == Type::boolean && reduction_ == Reduction::mean) fail("data: booleans have no mean");
    if (indices.shape() != updates.shape()) {
      fail("updates has the shape ", to_string(updates.shape()), ", indices ", to_string(indices.shape()));
    }
    if (indices.shape().size() != data.shape().size()) {
      fail("indices has the rank ", indices.shape().size(), ", data ", rank);
    }
    if (axis_input.size() != 1) fail("axis has ", axis_input.size(), " elements instead of one");
    std::int64_t axis = *axis_input.data<std::int64_t>();
    if (axis < -rank || axis >= rank) fail("axis = ", axis, " is out of range [", -rank, ", ", rank - 1, "]");
    if (axis < 0) axis += rank;
    for (std::int64_t k = 0; k < rank; ++k) {
      if (k != axis && indices.shape()[static_cast<std::size_t>(k)] > data.shape()[static_cast<std::size_t>(k)]) {
        fail("indices has the shape ", to_string(indices.shape()), ", longer than data ", to_string(data.shape()),
             " outside axis ", axis);
      }
    }
    const Geometry geometry(data.shape(), indices.shape(), static_cast<std::size_t>(axis));
    if (geometry.n >= std::numeric_limits<std::uint32_t>::max()) fail("indices: more than 2^32 updates along the axis");

    Output output = context.output(0, data.shape());
    dispatch<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
             std::uint64_t>(indices.type(), [&](auto index_type) {
      using Index = typename decltype(index_type)::type;
      try {
        if (data.size() == 0) {
          check_indices(indices.data<Index>(), indices.shape(), indices.size(), geometry.d);
          return;
        }
        update(context, geometry, {indices.data<Index>(), geometry.d, normalise<Index>}, data, updates, output);
      } catch (const OutOfRange&) {
        check_indices(indices.data<Index>(), indices.shape(), indices.size(), geometry.d);
        throw;
      }
    });
  }

 private:
  void update(const Context& context, const Geometry& geometry, const Indices& indices, const Input& data,
              const Input& updates, Output& output) const {
    dispatch<bool, float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
             std::uint16_t, std::uint32_t, std::uint64_t>(data.type(), [&](auto type) {
      using T = typename decltype(type)::type;
      const Job<T> job = {indices, updates.data<T>(), use_init_val_};
      run(context, geometry, job, choose<T>(reduction_), data.data<T>(), output.data<T>());
    });
  }

  Reduction reduction_;
  bool use_init_val_;
};

const std::vector<Type> integers = {Type::int8,  Type::int16,  Type::int32,  Type::int64,
                                    Type::uint8, Type::uint16, Type::uint32, Type::uint64};

std::vector<Signature> signatures() {
  std::vector<Type> types = {Type::boolean, Type::float16, Type::bfloat16, Type::float32, Type::float64};
  types.insert(types.end(), integers.begin(), integers.end());
  std::vector<Signature> all;
  for (const Type type : types) all.push_back({{type, Type::undefined, type, Type::int64}, {type}});
  return all;
}

}  // namespace

const Op& scatter_elements_update() {
  static const Op op = {
      "ScatterElementsUpdate",
      {{"data"}, {"indices", false, integers}, {"updates"}, {"axis"}},
      {{"output"}},
      // in the order of Reduction
      {Attribute::string("reduction", "none").one_of({"none", "sum", "prod", "min", "max", "mean"}),
       Attribute::flag("use_init_val", true)},
      signatures(),
      [](const KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<ScatterElementsUpdate>(info); },
      [](ShapeInference& graph) { graph.set_output(0, graph.type(0), graph.shape(0)); },
  };
  return op;
}

}  // namespace specops
