// onnxruntime-web (WebAssembly) under Node: node in_node.mjs MODEL.onnx FEEDS.json RESULTS.json EXAMPLES
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const [model, given, results, examples] = process.argv.slice(2).map((path) => resolve(path));
const ort = createRequire(join(examples, 'package.json'))('onnxruntime-web');
ort.env.wasm.numThreads = 1;
ort.env.logLevel = 'error';
const arrays = { float32: Float32Array, uint8: Uint8Array, int64: BigInt64Array };
const session = await ort.InferenceSession.create(readFileSync(model), { executionProviders: ['wasm'] });
const found = [];
for (const feeds of JSON.parse(readFileSync(given))) {
  const tensors = {};
  for (const [name, { type, dims, data }] of Object.entries(feeds)) {
    const bytes = Uint8Array.from(Buffer.from(data, 'base64'));
    tensors[name] = new ort.Tensor(type, new arrays[type](bytes.buffer), dims);
  }
  const outputs = await session.run(tensors);
  const told = {};
  for (const [name, { type, dims, data }] of Object.entries(outputs)) {
    const text = type === 'string' ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
    told[name] = { type, dims, data: text };
  }
  found.push(told);
}
writeFileSync(results, JSON.stringify(found));
