// What the self test and the doctor ask of the browser.
//
// What was found right before, so that it need not be tested again: names in a cache of their own.
// Another version of the browser brings another compiler, so its own name belongs to them.

import {writableStore} from './stores.js';

const CACHE = 'webgpu_py checks';
const address = (name) => `https://webgpu-py.invalid/checks/${encodeURIComponent(`${navigator.userAgent} ${name}`)}`;

/** Whether `noteChecked` heard this name before, in this browser. */
export async function isChecked(name) {
  try {
    return Boolean(await (await caches.open(CACHE)).match(address(name)));
  } catch {
    // No cache here: private mode, or storage that is full.
    return false;
  }
}

/** Remember a name; earlier ones are of older drivers or releases. */
export async function noteChecked(name) {
  try {
    const cache = await caches.open(CACHE);
    for (const old of await cache.keys()) await cache.delete(old);
    await cache.put(address(name), new Response(''));
  } catch {
    // Then the next start tests again.
  }
}

const HEADERS = ['content-security-policy', 'cross-origin-opener-policy', 'cross-origin-embedder-policy', 'permissions-policy'];

/** What surrounds this code, as far as it matters here: browser, storage, and the headers it was served with. */
export async function surroundings() {
  const estimate = await navigator.storage?.estimate?.().catch(() => null);
  const served = await fetch(location.href, {method: 'HEAD', cache: 'no-store'}).catch(() => null);
  const {persistent} = await writableStore();
  return {
    browser: navigator.userAgent,
    page: `${location.origin}, ${globalThis.isSecureContext ? 'secure' : 'not secure'}, ${globalThis.crossOriginIsolated ? '' : 'not '}isolated`,
    storage: {kept: persistent, used: estimate?.usage ?? 0, quota: estimate?.quota ?? 0},
    headers: Object.fromEntries(HEADERS.map((name) => [name, served?.headers.get(name) ?? '']).filter(([, value]) => value)),
  };
}
