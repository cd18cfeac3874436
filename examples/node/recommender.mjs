// A converted recommender in Node, without the plugin: the domain's operators run as function bodies in the file.
//
//     node recommender.mjs MODEL.onnx
//
// The model is models/recommender_int, with integer ids, because string hashes have no body. Prints inputs and outputs as JSON.
import * as ort from 'onnxruntime-node';
import { numbers, request } from '../web/request.mjs';

const [path] = process.argv.slice(2);
if (path === undefined) {
  console.error('recommender.mjs MODEL.onnx');
  process.exit(2);
}
const session = await ort.InferenceSession.create(path);
const inputs = request(ort.Tensor);
const outputs = await session.run(inputs, ['user_ids', 'probabilities', 'best_items', 'best_probabilities']);
console.log(JSON.stringify({ inputs: numbers(inputs), outputs: numbers(outputs) }));
