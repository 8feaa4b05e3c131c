// The JavaScript half of a soak: counts what lives in its worker beside the GPU's objects.
import { listeners } from './listeners.js';
export * from './faulty-half.js';

let proxies; // WeakRef of every JavaScript handle of a Python object that was not destroyed
let pyodide;

/** Counts from now on what Pyodide, whose module this is, makes of either side's objects. */
export function watchProxies(module) {
  if (proxies) return;
  pyodide = module;
  proxies = new Set();
  const byToken = new WeakMap();
  const { finalizationRegistry: real } = module;
  module.finalizationRegistry = {
    register(proxy, held, token) {
      const ref = new WeakRef(proxy);
      proxies.add(ref);
      byToken.set(token, ref);
      real.register(proxy, held, token);
    },
    unregister(token) {
      proxies.delete(byToken.get(token));
      real.unregister(token);
    },
  };
}

/** What is alive; collect garbage before. */
export function census() {
  for (const ref of proxies) if (!ref.deref()) proxies.delete(ref);
  return { python_proxies: proxies.size, javascript_proxies: pyodide._hiwire_num_refs(), listeners: listeners() };
}
