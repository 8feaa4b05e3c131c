// The page's end of worker.js: an engine like the peers' modules.

/** @returns {any} a proxy: `await ours.call('time', how)` */
export function startOurs() {
  const worker = new Worker('worker.js', { type: 'module' });
  const waiting = new Map();
  let last = 0;
  worker.onmessage = ({ data: { id, value, error } }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) resolve(value);
    else reject(new Error(error));
  };
  worker.onerror = (event) => {
    for (const { reject } of waiting.values()) reject(new Error(`worker: ${event.message || 'could not be loaded'}`));
    waiting.clear();
  };
  return {
    call: (call, args) =>
      new Promise((resolve, reject) => {
        waiting.set(++last, { resolve, reject });
        worker.postMessage({ id: last, call, args });
      }),
    stop: () => worker.terminate(),
  };
}
