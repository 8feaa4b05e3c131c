// The page side of the harness: one worker, one promise a request. `?half=` names the JavaScript
// half and `?packages=a,b` what the lock should load beyond the core.
const state = document.documentElement.dataset;
const pending = new Map();
let nextId = 1;

const worker = new Worker('worker.js' + location.search, { type: 'module' });

const ready = new Promise((resolve, reject) => {
  worker.onmessage = ({ data }) => {
    if (data.kind === 'progress') window.harness.progress.push(data.progress);
    else if (data.kind === 'ready') resolve(data.info);
    else if (data.kind === 'failed') reject(new Error(data.message));
    else {
      pending.get(data.id)?.(data);
      pending.delete(data.id);
    }
  };
  worker.onerror = (event) => {
    const message = `worker: ${event.message || 'could not be loaded'}`;
    reject(new Error(message));
    for (const [id, settle] of pending) settle({ id, error: { type: 'WorkerError', message } });
    pending.clear();
  };
});
ready.then(
  () => (state.state = 'ready'),
  () => (state.state = 'error'),
);

window.harness = {
  ready,
  progress: [],
  run: (request) =>
    new Promise((resolve) => {
      const id = nextId++;
      pending.set(id, resolve);
      worker.postMessage({ id, ...request });
    }),
};
