// A connection without a worker: Python on the thread that imports this, so that it can use a
// GPUDevice of the app's own, which no browser lets cross to a worker. Long work holds the thread up.
import { attach, detach, happened } from './events.js';
import { START_ID, WebGPUPyError, errorRecord } from './protocol.js';
import { startError, startService } from './service.js';

/**
 * @typedef {import('./connection.js').CallOptions} CallOptions
 */

export class LocalConnection {
  #lastId = START_ID;
  /** @type {WebGPUPyError | null} */
  gone = null;

  /** @param {{gpuDevice: any, packages?: string[], pyodideURL?: string | URL, onProgress?: (progress: any) => void}} options */
  constructor({ gpuDevice, packages = [], pyodideURL, onProgress = () => {} }) {
    this.service = startService({ packages, gpuDevice, pyodideURL: pyodideURL && String(pyodideURL), onProgress }).catch((error) => {
      const { code, message } = startError(error);
      throw new WebGPUPyError(code, message);
    });
    this.ready = this.service.then(({ info }) => info);
    this.ready.catch(() => {});
    attach(this);
  }

  /** @param {string | null} level of the events that Python tells of from now on */
  listen(level) {
    this.service.then(({ listen }) => listen(level, happened), () => {});
  }

  /** @param {string} method @param {any} [args] @param {CallOptions} [options] @returns {Promise<any>} */
  async call(method, args = {}, { signal = new AbortController().signal, onProgress = () => {}, onWarning = console.warn, onEvent = () => {} } = {}) {
    signal.throwIfAborted();
    if (this.gone) throw this.gone;
    const { call } = await this.service;
    try {
      return (await call(++this.#lastId, method, args, { signal, onProgress, onWarning, onEvent })).value;
    } catch (error) {
      signal.throwIfAborted();
      const { code, message } = errorRecord(error);
      throw new WebGPUPyError(code, message);
    }
  }

  /** Frees what is open; the GPUDevice stays the app's. */
  close() {
    if (this.gone) return;
    this.call('close').catch(() => {});
    this.listen(null);
    detach(this);
    this.gone = new WebGPUPyError('DeviceLost', 'This connection was closed. Load the model again.');
  }
}
