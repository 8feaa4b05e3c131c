// The page's worker: Pyodide, the package and the GPU device live here. It does what protocol.js
// lists and nothing else; Python is reached through one service object, with JSON and buffers.
import { bootPyodide } from './boot.js';
import * as jsHalf from './js/bridge.js';
import { decode, encode, transferable } from './lib/arrays.js';
import { openGiven, packagesFor } from './lib/opened.js';
import { pythonFiles } from './python-files.js';
import { MESSAGES_VERSION, START_ID, WebGPUPyError, errorRecord, messageToWorker } from './protocol.js';

/** @type {Promise<{py: any, service: any}> | undefined} */
let started;
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
  cancel: ({ id }) => running.get(id)?.abort(new WebGPUPyError('Cancelled', 'The caller asked to stop.')),
};

function start({ version, packages }) {
  started ??= boot(version, packages);
  started.then(
    ({ py, service }) => post({ kind: 'ready', info: { pyodide: py.version, version: service.version } }),
    (error) => post({ kind: 'failed', error: startError(error) }),
  );
}

function startError(error) {
  if (error?.code) return errorRecord(error);
  const code = error instanceof TypeError ? 'NetworkError' : 'WebGPUPyError';
  return { code, message: `Python did not start: ${error?.message ?? error}. Reload the page; if that does not help, see that its server has the folders pyodide/ and wheel/.` };
}

async function boot(version, packages) {
  if (version !== MESSAGES_VERSION) {
    throw new WebGPUPyError('VersionMismatch', `The page speaks message version ${version}, its worker ${MESSAGES_VERSION}. Reload, so that both come from one release.`);
  }
  const py = await bootPyodide({
    ...pythonFiles,
    packages,
    jsHalf,
    onProgress: (progress) => post({ kind: 'progress', id: START_ID, progress: { unit: 'bytes', ...progress } }),
  });
  return { py, service: py.pyimport('webgpu_py.page').Service() };
}

async function call({ id, method, args }) {
  const controller = new AbortController();
  running.set(id, controller);
  try {
    const { value, buffers } = await answer(id, method, args ?? {}, controller.signal);
    post({ kind: 'result', id, value }, transferable(buffers));
  } catch (error) {
    post({ kind: 'error', id, error: errorRecord(controller.signal.aborted ? controller.signal.reason : error) });
  } finally {
    running.delete(id);
  }
}

async function answer(id, method, args, signal) {
  return args.source ? await answerWithSource(id, method, args, signal) : await ask(id, method, args, signal);
}

async function answerWithSource(id, method, args, signal, again = false) {
  if (!started) throw new WebGPUPyError('WebGPUPyError', 'The worker was not started.');
  const { py } = await started;
  signal.throwIfAborted();
  const source = await openGiven(args.source, {
    signal,
    onProgress: (progress) => post({ kind: 'progress', id, progress: { stage: 'download', unit: 'bytes', ...progress } }),
    onWarning: (message) => post({ kind: 'warning', id, message }),
  });
  const handle = jsHalf.addSource(source);
  try {
    const packages = packagesFor(source);
    if (packages.length) await py.loadPackage(packages, { messageCallback: () => {} });
    const { name, nbytes, sha256 = null } = source;
    return await ask(id, method, { ...args, source: { handle, name, nbytes, sha256 } }, signal);
  } catch (error) {
    jsHalf.dropSource(handle);
    // The file changed while it was read: what was taken of it is worthless, a second reading is not.
    if (!source.restart || again || signal.aborted) throw error;
    return await answerWithSource(id, method, args, signal, true);
  }
}

async function ask(id, method, args, signal) {
  if (!started) throw new WebGPUPyError('WebGPUPyError', 'The worker was not started.');
  const { py, service } = await started;
  signal.throwIfAborted();
  const { json, buffers } = encode(args);
  const emit = (text) => {
    const event = JSON.parse(text);
    post('progress' in event ? { kind: 'progress', id, progress: event.progress } : { kind: 'event', id, event });
  };
  const cancel = () => service.cancel(id);
  signal.addEventListener('abort', cancel);
  try {
    const proxy = await service.call(id, method, json, py.toPy(buffers), emit);
    const [text, found] = proxy.toJs();
    proxy.destroy();
    const value = decode(text, found);
    if (value.error) throw new WebGPUPyError(value.error.code, value.error.message);
    if (method === 'memory') value.result.wasm_nbytes = py._module.HEAPU8.byteLength;
    return { value: value.result, buffers: found };
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}
