// Runs the converted recommender on this page and shows the films that each visitor may like.
import * as ort from 'onnxruntime-web/wasm';
import { numbers, request } from './request.mjs';

// One thread, because several threads need cross-origin isolation.
ort.env.wasm.numThreads = 1;

function element(tag, properties = {}, children = []) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function film(id, probability, most) {
  const bar = element('div', { className: 'bar' });
  bar.style.width = `${(100 * probability) / most}%`;
  const percent = probability === 0 ? 'seen' : `${(100 * probability).toFixed(1)} %`;
  return element('div', { className: probability === 0 ? 'film masked' : 'film' }, [
    element('span', { textContent: id }),
    element('div', {}, [bar]),
    element('span', { textContent: percent }),
  ]);
}

function draw(inputs, outputs) {
  const [visitors, count] = inputs.candidates.dims;
  const { data } = outputs.probabilities;
  for (let visitor = 0; visitor < visitors; visitor += 1) {
    const films = Array.from({ length: count }, (_, i) => ({
      id: inputs.candidates.data[visitor * count + i],
      probability: data[visitor * count + i],
    })).sort((a, b) => b.probability - a.probability);
    const heading = element('h2', { textContent: `Visitor ${inputs.user.data[visitor]}` });
    const rows = films.map(({ id, probability }) => film(id, probability, films[0].probability));
    document.querySelector('#visitors').append(element('section', {}, [heading, ...rows]));
  }
}

const status = document.querySelector('#status');
try {
  const path = new URLSearchParams(location.search).get('model') ?? 'model.onnx';
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}. Convert models/recommender_int/model.xml into it`);
  const bytes = await response.arrayBuffer();
  const session = await ort.InferenceSession.create(bytes, { executionProviders: ['wasm'] });
  const given = request(ort.Tensor);
  const wanted = ['user_ids', 'probabilities', 'best_items', 'best_probabilities'];
  await session.run(given, wanted); // the first run also allocates memory
  const started = performance.now();
  const results = await session.run(given, wanted);
  const taken = performance.now() - started;
  const [inputs, outputs] = [numbers(given), numbers(results)];
  draw(inputs, outputs);
  status.textContent = `${Math.round(bytes.byteLength / 1024)} KiB, scored in ${taken.toFixed(1)} ms`;
  window.recommended = { inputs, outputs };
} catch (error) {
  status.textContent = error.message;
  window.recommended = { error: error.message };
}
