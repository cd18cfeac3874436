// A model with a variable, which the caller passes from run to run.
//
//     specops convert --variables inputs examples/stateful/model.xml -o stateful.onnx
//     node stateful.mjs stateful.onnx
//
// ONNX Runtime for JavaScript cannot set inputs that have a default. With --variables inputs, both inputs of the variable are
// required, and NAME.is_set determines whether NAME is used. Prints the inputs and outputs of each run as a line of JSON.
import * as ort from 'onnxruntime-node';
import { numbers } from '../web/request.mjs';

const [path] = process.argv.slice(2);
if (path === undefined) {
  console.error('stateful.mjs MODEL.onnx');
  process.exit(2);
}
const session = await ort.InferenceSession.create(path);

// In the first run is_set is false: zeros of the right shape are ignored.
let visit = new ort.Tensor('float32', new Float32Array(8), [1, 8]);
let isSet = new ort.Tensor('bool', [false], []);
for (let step = 0; step < 4; step += 1) {
  const event = new ort.Tensor('float32', [1 - step, 0.5 * step, -0.25, (step * step) / 4], [1, 4]);
  const results = await session.run({ event, visit, 'visit.is_set': isSet });
  console.log(JSON.stringify({ inputs: numbers({ event }), outputs: numbers({ interest: results.interest }) }));
  visit = results['visit.next'];
  isSet = new ort.Tensor('bool', [true], []);
}
