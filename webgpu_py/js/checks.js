// What surrounds this code in the browser, and what was found out about it on an earlier visit.

import {writableStore} from './stores.js';

const CACHE = 'webgpu_py checks';
const address = (topic) => `https://webgpu-py.invalid/checks/${encodeURIComponent(topic)}`;
// Another version of the browser brings another compiler.
const fullName = (name) => `${navigator.userAgent} ${name}`;

/** The text that `remember` kept under a topic for this name, in this version of the browser; else undefined. */
export async function remembered(topic, name) {
  try {
    const found = await (await caches.open(CACHE)).match(address(topic));
    const kept = await found?.json();
    return kept?.name === fullName(name) ? kept.text : undefined;
  } catch {
    // No cache here: private mode, or storage that is full.
    return undefined;
  }
}

/** Keep a text under a topic; what is there of another adapter, driver or release goes. */
export async function remember(topic, name, text) {
  try {
    const kept = JSON.stringify({name: fullName(name), text});
    await (await caches.open(CACHE)).put(address(topic), new Response(kept));
  } catch {
    // Then the next visit finds out again.
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
