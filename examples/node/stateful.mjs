// A model with a variable, which the caller carries from run to run.
//
//     specops convert --variables inputs examples/stateful/model.xml -o stateful.onnx
//     node stateful.mjs stateful.onnx
//
// ONNX Runtime for JavaScript feeds no input that has a default, hence --variables inputs: both inputs of the variable are
// required, and NAME.is_set says whether NAME counts. Prints each run's inputs and outputs as a line of JSON.
import * as ort from 'onnxruntime-node';
import { numbers } from '../web/request.mjs';

const [path] = process.argv.slice(2);
if (path === undefined) {
  console.error('stateful.mjs MODEL.onnx');
  process.exit(2);
}
const session = await ort.InferenceSession.create(path);

// At first nothing is set: zeros of the right shape, which do not count.
let visit = new ort.Tensor('float32', new Float32Array(8), [1, 8]);
let isSet = new ort.Tensor('bool', [false], []);
for (let step = 0; step < 4; step += 1) {
  const event = new ort.Tensor('float32', [1 - step, 0.5 * step, -0.25, (step * step) / 4], [1, 4]);
  const results = await session.run({ event, visit, 'visit.is_set': isSet });
  console.log(JSON.stringify({ inputs: numbers({ event }), outputs: numbers({ interest: results.interest }) }));
  visit = results['visit.next'];
  isSet = new ort.Tensor('bool', [true], []);
}
