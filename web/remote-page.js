// The page around a remote worker: starts the script that <html data-worker> names and gives the
// page's driver `remote.ready`, `remote.progress` and `remote.request`.
const root = document.documentElement;
const pending = new Map();
let nextId = 1;

const worker = new Worker(root.dataset.worker + location.search, { type: 'module' });

const ready = new Promise((resolve, reject) => {
  const received = {
    progress: ({ progress }) => {
      window.remote.progress.push(progress);
      window.onRemoteProgress?.(progress);
    },
    ready: ({ info }) => resolve(info),
    failed: ({ code, message }) => reject(new Error(code ? `${code}: ${message}` : message)),
    event: ({ id, json }) => window.onRemoteEvent?.(id, json),
    done: ({ id, error }) => settle(id, error),
  };
  worker.onmessage = ({ data }) => received[data.kind](data);
  worker.onerror = (event) => {
    const message = `worker: ${event.message || 'could not be loaded'}`;
    reject(new Error(message));
    for (const id of pending.keys()) settle(id, { type: 'WorkerError', message });
  };
});

function settle(id, error) {
  pending.get(id)?.({ error });
  pending.delete(id);
}

ready.then(
  () => (root.dataset.state = 'ready'),
  () => (root.dataset.state = 'error'),
);

window.remote = {
  ready,
  progress: [],
  /** Resolves to {error?}; the result itself went to the server. */
  request: (request, input, output) =>
    new Promise((resolve) => {
      const id = nextId++;
      pending.set(id, resolve);
      worker.postMessage({ id, request, input, output });
    }),
};
