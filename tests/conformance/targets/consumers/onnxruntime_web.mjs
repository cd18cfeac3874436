// onnxruntime-web (WebAssembly) under Node: node SCRIPT MODEL.onnx INPUTS.json OUTPUTS.json
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [model, given, results] = process.argv.slice(2);
const ort = createRequire(join(process.cwd(), "package.json"))("onnxruntime-web");
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";
const session = await ort.InferenceSession.create(readFileSync(model), { executionProviders: ["wasm"] });
const feeds = {};
for (const { name, type, dims, data } of JSON.parse(readFileSync(given))) {
  const values = type === "int64" ? BigInt64Array.from(data.map(BigInt)) : type === "float32" ? Float32Array.from(data) : data;
  feeds[name] = new ort.Tensor(type, values, dims);
}
const outputs = await session.run(feeds);
const text = session.outputNames.map((name) => {
  const { type, dims, data } = outputs[name];
  return { type, dims, data: Array.from(data, (value) => (Number.isFinite(Number(value)) ? Number(value) : String(value))) };
});
writeFileSync(results, JSON.stringify(text));
