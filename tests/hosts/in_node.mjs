// node in_node.mjs MANIFEST EXAMPLES: prints a line of JSON for each model. EXAMPLES is the folder with the Node packages.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { runAll } from './cases.mjs';

const [manifest, examples] = process.argv.slice(2).map((path) => resolve(path));
const ort = createRequire(join(examples, 'package.json'))('onnxruntime-node');
const tell = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const load = (name) => readFile(join(dirname(manifest), name));
await runAll(ort, JSON.parse(await readFile(manifest)), load, tell);
