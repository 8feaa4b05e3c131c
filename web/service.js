// Python's service on the thread that imports this: what worker.js and local.js share.
import { bootPyodide } from './boot.js';
import * as half from './js/bridge.js';
import { decode, encode } from './lib/arrays.js';
import { explained, openGiven, packagesFor } from './lib/opened.js';
import { LANGUAGE_PACKAGES, WebGPUPyError, isFolder } from './protocol.js';
import { pythonFiles } from './python-files.js';

/**
 * @typedef {object} Listener
 * @property {AbortSignal} signal
 * @property {(progress: import('./protocol.js').Progress) => void} onProgress
 * @property {(message: string) => void} onWarning
 * @property {(event: any) => void} onEvent
 */

/**
 * Starts Python and gives its service.
 * @param {{packages: string[], pyodideURL?: string, gpuDevice?: any, onProgress: (progress: any) => void}} options
 */
export async function startService({ packages, pyodideURL, gpuDevice, onProgress }) {
  const jsHalf = gpuDevice ? { ...half, open: (/** @type {any} */ options) => half.open({ ...options, device: gpuDevice }) } : half;
  const py = await bootPyodide({
    ...pythonFiles,
    ...(pyodideURL && { pyodideURL }),
    packages,
    jsHalf,
    onProgress: (/** @type {any} */ progress) => onProgress({ unit: 'bytes', ...progress }),
  });
  const service = py.pyimport('webgpu_py.page').Service();
  const listen = async (/** @type {string | null} */ level, /** @type {(record: any) => void} */ heard) => {
    await service.listen(level ?? undefined, (/** @type {string} */ text) => heard(JSON.parse(text)));
  };
  return { info: { pyodide: py.version, version: service.version }, call: answer.bind(null, py, service), listen };
}

/**
 * Answers one call.
 * @param {any} py @param {any} service @param {number} id @param {string} method @param {any} args
 * @param {Listener} listener
 * @returns {Promise<{value: any, buffers: Uint8Array[]}>} `buffers` are those within `value`
 */
async function answer(py, service, id, method, args, listener) {
  listener.signal.throwIfAborted();
  const asked = (/** @type {any} */ given) => ask(py, service, id, method, given, listener);
  const { source } = args;
  if (!source) return asked(args);
  const several = source.files || (source.url && isFolder(source.url));
  return several ? withFolder(py, args, asked) : withSource(py, args, listener, asked);
}

/**
 * Several files make a model: Python opens those it needs, by their names.
 * @param {any} py @param {any} args @param {(args: any) => Promise<any>} asked
 */
async function withFolder(py, args, asked) {
  const { url, files = [] } = args.source;
  const given = files.map((/** @type {File} */ file) => ({ handle: half.addSource(half.blobSource(file)), name: file.name, nbytes: file.size }));
  try {
    await py.loadPackage([...LANGUAGE_PACKAGES], { messageCallback: () => {} });
    return await asked({ ...args, source: { url, files: given } });
  } catch (error) {
    for (const { handle } of given) half.dropSource(handle);
    throw url ? await explained(url, error) : error;
  }
}

/** @param {any} py @param {any} args @param {Listener} listener @param {(args: any) => Promise<any>} asked @returns {Promise<any>} */
async function withSource(py, args, listener, asked, again = false) {
  const { signal, onWarning } = listener;
  const onProgress = (/** @type {any} */ progress) => listener.onProgress({ stage: 'download', unit: 'bytes', ...progress });
  const source = await openGiven(args.source, { signal, onProgress, onWarning });
  const handle = half.addSource(source);
  try {
    const packages = packagesFor(source);
    if (packages.length) await py.loadPackage(packages, { messageCallback: () => {} });
    const { name, nbytes, sha256 = null } = source;
    return await asked({ ...args, source: { handle, name, nbytes, sha256 } });
  } catch (error) {
    half.dropSource(handle);
    // The file changed while it was read: what was taken of it is worthless, a second reading is not.
    if (!source.restart || again || signal.aborted) throw error;
    return await withSource(py, args, listener, asked, true);
  }
}

/** @param {any} py @param {any} service @param {number} id @param {string} method @param {any} args @param {Listener} listener */
async function ask(py, service, id, method, args, { signal, onProgress, onEvent }) {
  signal.throwIfAborted();
  const { json, buffers } = encode(args);
  const emit = (/** @type {string} */ text) => {
    const event = JSON.parse(text);
    if ('progress' in event) onProgress(event.progress);
    else onEvent(event);
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

/** @param {any} error @returns {import('./protocol.js').ErrorRecord} why Python did not start */
export function startError(error) {
  if (error?.code) return { code: error.code, message: error.message };
  const code = error instanceof TypeError ? 'NetworkError' : 'WebGPUPyError';
  return { code, message: `Python did not start: ${error?.message ?? error}. Reload the page; if that does not help, see that the addresses in python-files.js are served.` };
}
