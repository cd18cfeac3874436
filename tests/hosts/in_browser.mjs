// node in_browser.mjs URL EXAMPLES: like in_node.mjs, in headless Chromium. The server at URL has the manifest and its models
// in /, this folder in /tests/ and EXAMPLES in /examples/.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [url, examples] = process.argv.slice(2);
const { launched } = await import(pathToFileURL(join(resolve(examples), 'web', 'chromium.mjs')).href);
const folder = await mkdtemp(join(tmpdir(), 'cases-'));
const context = await launched(folder);
try {
  const page = await context.newPage();
  await page.exposeFunction('tell', (line) => process.stdout.write(`${JSON.stringify(line)}\n`));
  await page.goto(new URL('blank.html', url).href);
  await page.evaluate(
    async () => {
      const ort = await import('/examples/node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs');
      ort.env.wasm.numThreads = 1;
      const { runAll } = await import('/tests/cases.mjs');
      const load = async (name) => new Uint8Array(await (await fetch(`/${name}`)).arrayBuffer());
      await runAll(ort, await (await fetch('/manifest.json')).json(), load, window.tell, { executionProviders: ['wasm'] });
    },
  );
} finally {
  await context.close();
  await rm(folder, { recursive: true, force: true });
}
