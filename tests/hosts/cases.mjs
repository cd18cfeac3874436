// Runs the models of a manifest (subjects.py) in ONNX Runtime for JavaScript and compares the results with the manifest's.

const arrays = {
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  bool: Uint8Array,
};

function decoded({ type, data }) {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  return new arrays[type](bytes.buffer);
}

function close(got, wanted) {
  if (Number.isNaN(wanted)) return Number.isNaN(got);
  return got === wanted || Math.abs(got - wanted) <= 1e-6 + 1e-5 * Math.abs(wanted);
}

function difference(got, wanted, values) {
  if (got.type !== wanted.type) return `types ${got.type} and ${wanted.type}`;
  if (got.dims.join() !== wanted.dims.join()) return `shapes ${got.dims} and ${wanted.dims}`;
  if (!values) return '';
  const numbers = decoded(wanted);
  const equal = wanted.type.startsWith('float') ? close : (a, b) => a === b;
  const differing = numbers.findIndex((number, i) => !equal(got.data[i], number));
  return differing < 0 ? '' : `element ${differing} is ${got.data[differing]}, not ${numbers[differing]}`;
}

// Returns the fault of a model, or ''.
async function fault(ort, entry, model, options) {
  let session;
  try {
    session = await ort.InferenceSession.create(model, { logSeverityLevel: 4, ...options });
  } catch (error) {
    return `does not load: ${error.message ?? error}`;
  }
  try {
    const feeds = {};
    for (const [name, tensor] of Object.entries(entry.inputs)) {
      feeds[name] = new ort.Tensor(tensor.type, decoded(tensor), tensor.dims);
    }
    const results = await session.run(feeds);
    for (const [name, wanted] of Object.entries(entry.outputs)) {
      const why = difference(results[name], wanted, entry.values);
      if (why) return `differs: ${name}: ${why}`;
    }
    return '';
  } catch (error) {
    return `does not run: ${error.message ?? error}`;
  } finally {
    await session.release?.();
  }
}

// Runs each model of the manifest. `load` returns a model's bytes. `tell` receives {key} before a model runs, then {key, fault}.
export async function runAll(ort, manifest, load, tell, options = {}) {
  for (const entry of manifest) {
    tell({ key: entry.key });
    tell({ key: entry.key, fault: await fault(ort, entry, await load(entry.model), options) });
  }
}
