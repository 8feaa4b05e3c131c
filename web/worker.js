// The page's worker: Pyodide, the package and the GPU device live here. It does what protocol.js
// lists and nothing else; Python is reached through one service object, with JSON and buffers.
import { fetchAhead } from './js/download.js';
import { hearEvents } from './js/events.js';
import { transferable } from './lib/arrays.js';
import { MESSAGES_VERSION, START_ID, WebGPUPyError, errorRecord, messageToWorker } from './protocol.js';
import { startError, startService } from './service.js';

/** @type {ReturnType<typeof startService> | undefined} */
let started;
/** @type {string | null} level of the events that the page listens to */
let wanted = null;
/** @type {Map<number, AbortController>} */
const running = new Map();

/** @param {import('./protocol.js').ToPage} message @param {any[]} [moved] */
const post = (message, moved = []) => self.postMessage(message, { transfer: moved });

self.onmessage = ({ data }) => {
  const known = messageToWorker(data);
  if (known) return take[known.kind](known);
  // Without an id nobody waits for an answer.
  if (!(Number.isSafeInteger(data?.id) && data.id > 0)) return;
  const message = `the worker knows no message ${JSON.stringify(data.kind)} ${JSON.stringify(data.method)}`;
  post({ kind: 'error', id: data.id, error: { code: 'WebGPUPyError', message } });
};

/** @type {Record<string, (message: any) => void>} */
const take = {
  start: (message) => {
    // The page waits for this lock: it gets it when this worker is gone, for whatever reason.
    if (!message.lock || !navigator.locks) return start(message);
    navigator.locks.request(message.lock, () => {
      start(message);
      return new Promise(() => {});
    });
  },
  call,
  listen: ({ level }) => {
    wanted = level;
    started?.then(tellWanted, () => {});
  },
  fetch: bring,
  cancel: ({ id }) => running.get(id)?.abort(new WebGPUPyError('Cancelled', 'The caller asked to stop.')),
};

function start({ version, packages, pyodideURL }) {
  started ??= boot(version, packages, pyodideURL);
  started.then(
    async (service) => {
      if (wanted) await tellWanted(service);
      post({ kind: 'ready', info: service.info });
    },
    (error) => post({ kind: 'failed', error: startError(error) }),
  );
}

/** @param {Awaited<ReturnType<typeof startService>>} service */
const tellWanted = ({ listen }) => listen(wanted, (record) => post({ kind: 'happened', record }));

async function boot(version, packages, pyodideURL) {
  if (version !== MESSAGES_VERSION) {
    throw new WebGPUPyError('VersionMismatch', `The page speaks message version ${version}, its worker ${MESSAGES_VERSION}. Reload, so that both come from one release.`);
  }
  return startService({ packages, pyodideURL, onProgress: (progress) => post({ kind: 'progress', id: START_ID, progress }) });
}

async function call({ id, method, args }) {
  const { signal } = setUp(id);
  try {
    if (!started) throw new WebGPUPyError('WebGPUPyError', 'The worker was not started.');
    const service = await started;
    const { value, buffers } = await service.call(id, method, args ?? {}, {
      signal,
      onProgress: (progress) => post({ kind: 'progress', id, progress }),
      onWarning: (message) => post({ kind: 'warning', id, message }),
      onEvent: (event) => post({ kind: 'event', id, event }),
    });
    post({ kind: 'result', id, value }, transferable(buffers));
  } catch (error) {
    post({ kind: 'error', id, error: errorRecord(signal.aborted ? signal.reason : error) });
  } finally {
    running.delete(id);
  }
}

/** Brings a file into the cache until that is cancelled. A worker that does this starts no Python. */
async function bring({ id, url }) {
  const { signal } = setUp(id);
  // A few records a download: the page drops those that nobody listens to.
  hearEvents((event, level, facts) => post({ kind: 'happened', record: { event, level, facts: JSON.parse(facts), time: Date.now() } }));
  await fetchAhead(url, { signal, onProgress: (progress) => post({ kind: 'progress', id, progress: { stage: 'download', unit: 'bytes', ...progress } }) });
  running.delete(id);
  post({ kind: 'result', id, value: null });
}

function setUp(id) {
  const controller = new AbortController();
  running.set(id, controller);
  return controller;
}
