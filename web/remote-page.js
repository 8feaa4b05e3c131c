// The page around a remote worker: starts the script that <html data-worker> names and gives the
// page's driver `remote.ready` and `remote.request`; the driver may set `onRemoteProgress(progress)`
// and `onRemoteEvent(id, json)`.
const root = document.documentElement;
const pending = new Map();
let nextId = 1;

const worker = new Worker(root.dataset.worker + location.search, { type: 'module' });

// Settles when the driver has seen all that the worker sent: nothing overtakes an event.
let told = Promise.resolve();
const tell = (promise) => (told = Promise.all([told, promise]));

const ready = new Promise((resolve, reject) => {
  const received = {
    progress: ({ progress }) => tell(window.onRemoteProgress?.(progress)),
    ready: ({ info }) => told.then(() => resolve(info)),
    failed: ({ code, message }) => reject(new Error(code ? `${code}: ${message}` : message)),
    event: ({ id, json }) => tell(window.onRemoteEvent?.(id, json)),
    done: ({ id, error }) => told.then(() => settle(id, error)),
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
  /** Resolves to {error?}; the result itself went to the server. */
  request: (request, input, output) =>
    new Promise((resolve) => {
      const id = nextId++;
      pending.set(id, resolve);
      worker.postMessage({ id, request, input, output });
    }),
};
