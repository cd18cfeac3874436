// Opens a page in headless Chromium and prints window.recommended as JSON.
//
//     node look.mjs URL [PICTURE.png] [--dark]
//
// Uses the installed Chromium: $CHROMIUM, or `chromium` on the path.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launched } from './chromium.mjs';

const [url, picture] = process.argv.slice(2).filter((argument) => argument !== '--dark');
const colorScheme = process.argv.includes('--dark') ? 'dark' : 'light';
const folder = await mkdtemp(join(tmpdir(), 'look-'));
const context = await launched(folder, { colorScheme, viewport: { width: 920, height: 480 } });
try {
  const page = await context.newPage();
  page.on('pageerror', (error) => console.error(error.message));
  await page.goto(url);
  await page.waitForFunction(() => window.recommended !== undefined, undefined, { timeout: 60_000 });
  if (picture !== undefined) await page.screenshot({ path: picture, fullPage: true });
  console.log(JSON.stringify(await page.evaluate(() => window.recommended)));
} finally {
  await context.close();
  await rm(folder, { recursive: true, force: true });
}
