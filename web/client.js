// The package for a page: `const llm = await load(url); for await (const text of llm.chat(messages)) …`
// Types are in client.d.ts. Everything runs in a worker beside this file; nothing leaves the machine.
import { Connection } from './connection.js';
import { subscribe } from './events.js';
import { Graph, array, dim } from './graph.js';
import { diagnose } from './js/bridge.js';
import { cached, forget } from './js/cache.js';
import { LanguageModel } from './language-model.js';
import { LANGUAGE_PACKAGES, WebGPUPyError, isProgram } from './protocol.js';
import { Program, Session } from './sessions.js';

export { Connection, Graph, LanguageModel, Program, Session, WebGPUPyError, array, cached, dim, forget, subscribe };

/** Loads a model or an ExecuTorch program: an address, a File or Blob, or the Files of a model's folder. */
export async function load(source, options = {}) {
  const given = Array.isArray(source) ? { files: source } : source instanceof Blob ? { file: source } : { url: new URL(source, document.baseURI).href };
  const name = given.url ?? given.file?.name ?? 'files';
  const packages = isProgram(name) ? [] : [...LANGUAGE_PACKAGES];
  const args = { source: given, sha256: options.sha256, options: loadOptions(options) };
  const open = (/** @type {any} */ more) => connected('open', args, packages, { ahead: given.url, ...options, ...more });
  const [connection, opened] = await open();
  return opened.kind === 'program' ? new Program(connection, opened, open) : new LanguageModel(connection, opened, open);
}

/** What of a call's options is Python's; left out is as there. */
function loadOptions({ context, quantize, kvCacheDtype }) {
  const given = { context, quantize, kv_cache_dtype: kvCacheDtype };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** Puts a graph onto a device. */
export async function build(graph, options = {}) {
  const open = (/** @type {any} */ more) => connected('build', { steps: graph.steps }, [], { ...options, ...more });
  const [connection, opened] = await open();
  return new Session(connection, opened, open);
}

/** Calls a method that opens something, on the connection that was given or a new one. */
async function connected(method, args, packages, { device = 'browser', signal, onProgress, onWarning, ...options }) {
  signal?.throwIfAborted();
  const problem = device === 'cpu' || options.gpuDevice ? null : await diagnose();
  if (problem) throw new WebGPUPyError(problem.code, problem.message);
  const connection = options.connection ?? (await connect({ packages, onProgress, ...options }));
  const giveUp = () => connection.close();
  signal?.addEventListener('abort', giveUp);
  try {
    await connection.ready;
    signal?.removeEventListener('abort', giveUp);
    return [connection, await connection.call(method, { ...args, device }, { signal, onProgress, onWarning })];
  } catch (error) {
    if (!options.connection) connection.close();
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', giveUp);
  }
}

async function connect({ gpuDevice, ...options }) {
  if (!gpuDevice) return new Connection(options);
  const { LocalConnection } = await import('./local.js');
  return new LocalConnection({ gpuDevice, ...options });
}
