// What was found right before, so that it need not be tested again: names in a cache of their own.
// Another version of the browser brings another compiler, so its own name belongs to them.

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
