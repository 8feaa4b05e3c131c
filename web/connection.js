// The page's end of the line to one worker: request ids, progress, cancellation, and the certainty
// that a call settles even when the worker does not live to answer it.
import { attach, detach, happened } from './events.js';
import { MESSAGES_VERSION, METHODS, START_ID, WebGPUPyError, isFolder, messageToPage } from './protocol.js';

/**
 * @typedef {import('./protocol.js').Progress} Progress
 * @typedef {object} CallOptions
 * @property {AbortSignal} [signal]
 * @property {(progress: Progress) => void} [onProgress]
 * @property {(message: string) => void} [onWarning]  by default the console hears it
 * @property {(event: any) => void} [onEvent]
 * @property {Transferable[]} [transfer]  buffers within the arguments that move instead of being copied
 *
 * @typedef {CallOptions & {resolve: (value: any) => void, reject: (reason: any) => void}} Pending
 */

export class Connection {
  /** @type {(info: {pyodide: string, version: string}) => void} */
  #resolveReady = () => {};
  /** @type {(reason: any) => void} */
  #rejectReady = () => {};
  #watching = false;

  /**
   * Starts a worker; `ready` resolves when Python is up. `ahead` is the address of a file that will be
   * opened then: it downloads meanwhile.
   * @param {{packages?: string[], onProgress?: (progress: Progress) => void, baseURL?: string | URL, pyodideURL?: string | URL, ahead?: string}} [options]
   */
  constructor({ packages = [], onProgress, baseURL, pyodideURL, ahead } = {}) {
    /** @type {Map<number, Pending>} */
    this.pending = new Map();
    this.lastId = START_ID;
    /** @type {WebGPUPyError | null} */
    this.gone = null;
    this.onProgress = onProgress;
    this.lock = `webgpu_py worker ${crypto.randomUUID?.() ?? Math.random()}`;
    /** @type {Promise<{pyodide: string, version: string}>} */
    this.ready = new Promise((resolve, reject) => {
      this.#resolveReady = resolve;
      this.#rejectReady = reject;
    });
    this.ready.catch(() => {});
    this.worker = startWorker(baseURL);
    this.worker.onmessage = ({ data }) => this.#received(data);
    this.worker.onerror = (event) => this.#end(`it failed: ${event.message || 'its script could not be loaded'}`);
    this.worker.postMessage({ kind: 'start', version: MESSAGES_VERSION, packages, lock: this.lock, pyodideURL: pyodideURL && absolute(pyodideURL) });
    this.ahead = ahead && !isFolder(absolute(ahead)) ? new Ahead(startWorker(baseURL), absolute(ahead), (progress) => this.onProgress?.(progress)) : null;
    attach(this);
  }

  /** @param {string | null} level of the events that the worker tells of from now on */
  listen(level) {
    this.worker.postMessage({ kind: 'listen', level });
  }

  /**
   * @param {string} method one of METHODS
   * @param {any} [args] plain data
   * @param {CallOptions} [options]
   * @returns {Promise<any>}
   */
  async call(method, args = {}, options = {}) {
    if (!METHODS.includes(method)) throw new WebGPUPyError('WebGPUPyError', `no method ${method}`);
    const { signal, transfer = [] } = options;
    signal?.throwIfAborted();
    if (this.gone) throw this.gone;
    if (method === 'open') {
      await this.ahead?.stop();
      signal?.throwIfAborted();
      if (this.gone) throw this.gone;
    }
    const id = ++this.lastId;
    const cancel = () => this.worker.postMessage({ kind: 'cancel', id });
    signal?.addEventListener('abort', cancel);
    try {
      return await new Promise((resolve, reject) => {
        this.pending.set(id, { ...options, resolve, reject });
        this.worker.postMessage({ kind: 'call', id, method, args }, transfer);
      });
    } finally {
      signal?.removeEventListener('abort', cancel);
      this.pending.delete(id);
      signal?.throwIfAborted();
    }
  }

  /** Ends the worker; what is pending rejects. */
  close() {
    this.#end('it was closed');
  }

  /** @param {any} data */
  #received(data) {
    if (!this.#watching) this.#watch();
    const message = messageToPage(data);
    if (!message) return;
    if (message.kind === 'ready') return this.#resolveReady(message.info);
    if (message.kind === 'failed') return this.#end(message.error.message, message.error.code);
    if (message.kind === 'happened') return happened(message.record);
    const call = this.pending.get(message.id);
    if (message.kind === 'progress') (message.id === START_ID ? this : call)?.onProgress?.(message.progress);
    else if (message.kind === 'warning') (call?.onWarning ?? console.warn)(message.message);
    else if (message.kind === 'event') call?.onEvent?.(message.event);
    else if (message.kind === 'result') call?.resolve(message.value);
    else call?.reject(new WebGPUPyError(message.error.code, message.error.message));
  }

  // The worker holds this lock as long as it lives, and it sends nothing before it holds it.
  #watch() {
    this.#watching = true;
    navigator.locks?.request(this.lock, () => this.#end('its process ended, perhaps for lack of memory'));
  }

  /** @param {string} why @param {string} [code] */
  #end(why, code) {
    if (this.gone) return;
    this.gone = code
      ? new WebGPUPyError(code, why)
      : new WebGPUPyError('DeviceLost', `The worker that runs the model is gone: ${why}. Load the model again.`);
    this.worker.terminate();
    this.ahead?.worker.terminate();
    detach(this);
    this.#rejectReady(this.gone);
    for (const call of this.pending.values()) call.reject(this.gone);
  }
}

/** A file on its way into the browser's cache, in a worker of its own: Python's start holds up the thread it is on. */
class Ahead {
  /** @param {Worker} worker @param {string} url @param {(progress: Progress) => void} onProgress */
  constructor(worker, url, onProgress) {
    this.worker = worker;
    this.ended = new Promise((resolve) => {
      worker.onmessage = ({ data }) => {
        if (data.kind === 'progress') onProgress(data.progress);
        else if (data.kind === 'happened') happened(data.record);
        else resolve(null);
      };
      worker.onerror = resolve;
    });
    worker.postMessage({ kind: 'fetch', id: 1, url });
  }

  /** Ends it where it is, so that another worker can go on from there. */
  async stop() {
    this.worker.postMessage({ kind: 'cancel', id: 1 });
    await this.ended;
    this.worker.terminate();
  }
}

const absolute = (/** @type {string | URL} */ url) => new URL(url, document.baseURI).href;

/** @param {string | URL} [baseURL] folder of worker.js @returns {Worker} */
function startWorker(baseURL) {
  const given = baseURL && new URL('worker.js', new URL(String(baseURL).replace(/\/?$/, '/'), document.baseURI));
  try {
    if (given) return new Worker(given, { type: 'module' });
    // Bundlers look for this very form.
    return new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
  } catch (/** @type {any} */ error) {
    if (error.name !== 'SecurityError') throw error;
    const place = given ? `is ${given}` : `lies beside ${import.meta.url}`;
    throw new WebGPUPyError('NetworkError', `The worker ${place}, this page is at ${location.origin}; browsers start workers from a page's own origin only. Copy the package's folder to your own server and give its address there as baseURL.`);
  }
}
