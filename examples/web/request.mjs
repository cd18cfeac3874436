// The inputs of the recommender (models/recommender_int) for the examples in Node and in the browser.

const known = { users: [1, 6, 123456], countries: [41, 49, 999] };
const films = [10771, 11227, 10387, 11128, 10072, 10822];

// The inputs of one run: three visitors, one of them unknown to the vocabulary, and six films for each.
export function request(Tensor) {
  const int64 = (values, dims) => new Tensor('int64', BigInt64Array.from(values, BigInt), dims);
  const int32 = (values, dims) => new Tensor('int32', Int32Array.from(values), dims);
  const float32 = (values, dims) => new Tensor('float32', Float32Array.from(values), dims);
  // Pools of fixed size, padded with weight 0.
  const filled = (values, size, rest) => [...values, ...Array(size - values.length).fill(rest)];
  return {
    user: int64(known.users, [3]),
    country: int64(known.countries, [3]),
    history: int64([10297, 10759, 10858, 7], [4]),
    history_offsets: int64([0, 3, 3], [3]),
    recent: int64(filled([10301, 11045, 10915, 10774, 10450, 11134], 24, 10301), [24]),
    recent_offsets: int32([0, 2, 4], [3]),
    recent_weights: float32(filled([1, 0.875, 0.75, 0.625, 0.5, 0.375], 24, 0), [24]),
    tags: int64(filled([2, 9, 16, 23, 30], 16, 0), [16]),
    tag_offsets: int64([0, 2, 3], [3]),
    tag_weights: float32(filled([0.5, 0.5, 0.5, 0.5, 0.5], 16, 0), [16]),
    candidates: int64([...films, ...films, ...films], [3, 6]),
    context: float32([14, 21, -0.5, -1, -0.75, 0.25, 3, 8, 0.5, 0, 1, 0, 23, 30, 0, 0.125, -1, 0.5], [3, 6]),
    shown: int32([0, 3, 1, 1, 5, 2], [3, 2]),
    ratings: float32([4.5, 2, 3, 3.5, 1, 5], [3, 2]),
    seen: int64([4, 0, -1], [3, 1]),
  };
}

// Tensors as JSON: dimensions and a flat list of numbers.
export function numbers(tensors) {
  const plain = ({ dims, data }) => ({ dims, data: Array.from(data, Number) });
  return Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, plain(tensor)]));
}
