// Runs a converted folder in Transformers.js: node in_node.mjs FOLDER ARCHITECTURE DTYPE INPUTS.json
// INPUTS.json: {"texts": [...]} for the folder's tokenizer, or {"tensors": {name: {type, dims, data}}}.
// Prints the outputs: {name: {dims, data}}, and for texts also "tokens", the output of the tokenizer.
import { readFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import * as transformers from "@huggingface/transformers";

const [folder, architecture, dtype, inputs] = process.argv.slice(2);
const { env, AutoTokenizer, Tensor } = transformers;
env.allowRemoteModels = false;
env.localModelPath = dirname(resolve(folder));
const name = basename(folder);
const given = JSON.parse(readFileSync(inputs, "utf8"));

const Model = transformers[architecture];
if (!Model) throw new Error(`Transformers.js has no ${architecture}`);
const model = await Model.from_pretrained(name, { dtype });
let feeds = {};
for (const [key, { type, dims, data }] of Object.entries(given.tensors ?? {})) {
  feeds[key] = new Tensor(type, type === "int64" ? data.map(BigInt) : data, dims);
}
const printed = {};
if (given.texts) {
  const tokenizer = await AutoTokenizer.from_pretrained(name);
  feeds = { ...(await tokenizer(given.texts, { padding: true, truncation: true })), ...feeds };
  printed.tokens = { dims: feeds.input_ids.dims, data: Array.from(feeds.input_ids.data, Number) };
}
const outputs = await model(feeds);
for (const [key, value] of Object.entries(outputs)) {
  if (value?.data) printed[key] = { dims: value.dims, data: Array.from(value.data, Number) };
}
console.log(JSON.stringify(printed));
