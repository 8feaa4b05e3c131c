// Every message between the page and its worker, in one place: plain structured-clone data, request
// ids, typed errors. Neither side acts on a message that is not described here.

import { LEVELS } from './events.js';

export { WebGPUPyError } from './js/errors.js';

/** Changed with every change of the messages below; a page and a worker of two releases refuse each other. */
export const MESSAGES_VERSION = 6;

/** What a page may ask its worker for; each is a method of webgpu_py/page.py's service. */
export const METHODS = Object.freeze([
  'device', // () -> {info, limits, features}
  'open', // ({source, device, sha256, options}) -> {kind: 'program' | 'model', ...}
  'build', // ({steps, device}) -> {kind: 'graph', ...}: a graph of web/graph.js
  'look', // ({prompt}) -> tokens, first layer, kernels, memory
  'run', // ({method, inputs, profile}) -> outputs of a program; ({inputs}) -> outputs of a graph by name
  'debug', // ({method, inputs}) -> {nodes, fault, unchecked, text}: the first wrong value of a run
  'reset', // () -> the caches of a program or a graph are as at first
  'timings', // () -> milliseconds of a graph's build and last run
  'chat', // ({messages, options}) -> the finished answer; pieces arrive as events
  'generate', // ({prompt, options}) -> the same for raw text
  'tokenize', // ({text}) -> ids
  'save', // ({first}) -> the next piece of the model as one file, an empty one after the last
  'autotune', // () -> {tuned}: the kernels found fastest for the model, by trying them
  'memory', // () -> {gpu, python_heap, ...}
  'close', // () -> everything of the open file is freed
]);

/**
 * @typedef {{code: string, message: string}} ErrorRecord
 *
 * @typedef {{kind: 'start', version: number, packages: string[], lock?: string, pyodideURL?: string}
 *   | {kind: 'call', id: number, method: string, args: any}
 *   | {kind: 'fetch', id: number, url: string}
 *   | {kind: 'cancel', id: number}
 *   | {kind: 'listen', level: string | null}} ToWorker
 *
 * @typedef {{kind: 'ready', info: {pyodide: string, version: string}}
 *   | {kind: 'failed', error: ErrorRecord}
 *   | {kind: 'progress', id: number, progress: Progress}
 *   | {kind: 'warning', id: number, message: string}
 *   | {kind: 'event', id: number, event: any}
 *   | {kind: 'happened', record: {event: string, level: string, facts: any, time: number}}
 *   | {kind: 'result', id: number, value: any}
 *   | {kind: 'error', id: number, error: ErrorRecord}} ToPage
 *
 * @typedef {object} Progress
 * @property {string} stage    python | packages | webgpu_py | download | header | weights | kernels ...
 * @property {number} loaded   bytes or items done in this stage
 * @property {number} total    0 when it is not known yet
 * @property {'bytes'|'items'} [unit]
 * @property {string} [file]
 */

/** What the tokenizer and the templates of a language model need beyond the core. */
export const LANGUAGE_PACKAGES = Object.freeze(['tiktoken', 'jinja2']);

/** @param {string} name of a file, or its address */
export const isProgram = (name) => /\.pte([?#]|$)/i.test(name);

/** @param {string} url whole address @returns {boolean} whether it means a folder of a model's files */
export const isFolder = (url) => /(\/|\.safetensors|\.safetensors\.index\.json)$/.test(new URL(url).pathname);

/** The id under which the worker reports its own start; calls count from 1. */
export const START_ID = 0;

const isId = (/** @type {any} */ id) => Number.isSafeInteger(id) && id >= 1;

/** @type {Record<string, (m: any) => boolean>} */
const TO_WORKER = {
  start: (m) => Number.isInteger(m.version) && isStrings(m.packages) && (m.pyodideURL === undefined || typeof m.pyodideURL === 'string'),
  call: (m) => isId(m.id) && METHODS.includes(m.method),
  fetch: (m) => isId(m.id) && typeof m.url === 'string',
  cancel: (m) => isId(m.id),
  listen: (m) => m.level === null || LEVELS.includes(m.level),
};

/** @type {Record<string, (m: any) => boolean>} */
const TO_PAGE = {
  ready: (m) => typeof m.info === 'object',
  failed: (m) => isErrorRecord(m.error),
  progress: (m) => Number.isSafeInteger(m.id) && typeof m.progress?.stage === 'string',
  warning: (m) => isId(m.id) && typeof m.message === 'string',
  event: (m) => isId(m.id),
  happened: (m) => typeof m.record?.event === 'string' && LEVELS.includes(m.record.level),
  result: (m) => isId(m.id),
  error: (m) => isId(m.id) && isErrorRecord(m.error),
};

const isStrings = (/** @type {any} */ v) => Array.isArray(v) && v.every((s) => typeof s === 'string');
const isErrorRecord = (/** @type {any} */ e) => typeof e?.code === 'string' && typeof e?.message === 'string';

/** @param {any} data @returns {ToWorker | null} the message, or null for anything else */
export function messageToWorker(data) {
  return Object.hasOwn(TO_WORKER, data?.kind) && TO_WORKER[data.kind](data) ? data : null;
}

/** @param {any} data @returns {ToPage | null} */
export function messageToPage(data) {
  return Object.hasOwn(TO_PAGE, data?.kind) && TO_PAGE[data.kind](data) ? data : null;
}

/** @param {any} error @returns {ErrorRecord} what crosses of an error: its code and its words */
export function errorRecord(error) {
  const code = typeof error?.code === 'string' ? error.code : 'WebGPUPyError';
  return { code, message: String(error?.message ?? error) };
}
