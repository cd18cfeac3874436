// Opens pages in headless Chromium as a phone does; prints the width of each page's content and of its window.
//
//     node width.mjs EXAMPLES PAGE.html...
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [examples, ...pages] = process.argv.slice(2);
const { launched } = await import(pathToFileURL(join(examples, 'web', 'chromium.mjs')));
const folder = await mkdtemp(join(tmpdir(), 'width-'));
const context = await launched(folder, { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true });
try {
  const page = await context.newPage();
  for (const path of pages) {
    await page.goto(pathToFileURL(path).href);
    const sizes = () => ({ content: document.documentElement.scrollWidth, window: document.documentElement.clientWidth });
    console.log(JSON.stringify(await page.evaluate(sizes)));
  }
} finally {
  await context.close();
  await rm(folder, { recursive: true, force: true });
}
