// Headless Chromium with a separate profile and no network access.
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium } from 'playwright-core';

const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

function executable() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const places = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'chromium'));
  const found = places.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (found === undefined) throw new Error('no chromium on the path: apt-get install chromium, or set CHROMIUM');
  return found;
}

// A browser with the profile in `folder`, which is empty.
export function launched(folder, options = {}) {
  return chromium.launchPersistentContext(folder, { executablePath: executable(), headless: true, args: quiet, ...options });
}
