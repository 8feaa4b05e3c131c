// What a run gave: values as heat maps and tables, time per operator, memory.
import { el } from '../lib/dom.js';
import { bytes, count, duration, number, shape, shortType } from '../lib/format.js';
import { heatMap } from '../lib/heatmap.js';
import { kernelTable, memoryTable } from './tables.js';

const MAX_ROWS = 512;
const MAX_COLS = 4096;
const TABLE_ROWS = 8;
const TABLE_COLS = 8;

/** @param {any} result @param {any} method @returns {HTMLElement[]} */
export function outputsOf(result, method) {
  return [
    ...result.outputs.map((/** @type {any} */ o, /** @type {number} */ i) => valueCard(method.outputs[i]?.name ?? `out${i}`, o)),
    el('section', { class: 'card' }, el('h2', {}, 'What it took'),
      el('p', { class: 'small soft' }, `${count(result.dispatches)} dispatches, ${duration(result.run_ms)} from call to result`),
      kernelTable(result.kernels), memoryTable(result.memory)),
    el('details', { class: 'card' }, el('summary', {}, 'Inputs of this run'),
      result.inputs.map((/** @type {any} */ v, /** @type {number} */ i) => valueCard(method.inputs[i].name, v))),
  ];
}

/** @param {string} name @param {any} value */
function valueCard(name, value) {
  const head = (/** @type {any[]} */ ...rest) => el('h3', {}, el('span', { class: 'mono' }, name), ' ', el('span', { class: 'soft small' }, ...rest));
  if (!value.shape) return el('section', { class: 'card', 'data-testid': 'output' }, head(), el('p', { class: 'mono' }, String(value.value)));
  const facts = `${shape(value.shape)} ${shortType(value.dtype)}`;
  const spread = 'min' in value ? `from ${number(value.min)} to ${number(value.max)}, mean ${number(value.mean)}` : 'no finite value';
  const bad = value.numel - value.finite;
  return el('section', { class: 'card', 'data-testid': 'output' }, head(facts), el('p', { class: 'small soft' }, spread),
    bad > 0 && el('p', { class: 'small bad' }, `${count(bad)} of ${count(value.numel)} values are not finite`),
    value.array ? [pictureOf(name, value.array), table(value.array)] : el('p', { class: 'small soft' }, `${bytes(4 * (value.numel ?? 0))}: too large to show.`));
}

/** @param {number[]} dims @returns {[number, number]} */
function flat(dims) {
  const cols = dims.at(-1) ?? 1;
  return [dims.slice(0, -1).reduce((a, b) => a * b, 1), cols];
}

/** @param {string} name @param {import('../lib/arrays.js').NdArray} array */
function pictureOf(name, { data, shape: dims }) {
  const [rows, cols] = flat(dims);
  if (rows * cols < 4 || cols > MAX_COLS) return null;
  const shown = Math.min(rows, MAX_ROWS);
  return heatMap({ data: data.subarray(0, shown * cols), rows: shown, cols, title: shown < rows ? `${name}, first ${shown} of ${rows} rows` : name });
}

/** @param {import('../lib/arrays.js').NdArray} array */
function table({ data, shape: dims }) {
  const [rows, cols] = flat(dims);
  const shownRows = Math.min(rows, TABLE_ROWS);
  const shownCols = Math.min(cols, TABLE_COLS);
  const cells = (/** @type {number} */ r) => Array.from({ length: shownCols }, (_, c) => el('td', {}, number(Number(data[r * cols + c]))));
  const more = shownRows < rows || shownCols < cols;
  return el('details', {}, el('summary', { class: 'small' }, 'Values'),
    el('div', { class: 'scroll', tabindex: 0 }, el('table', { class: 'values mono' }, el('tbody', {}, Array.from({ length: shownRows }, (_, r) => el('tr', {}, cells(r)))))),
    more && el('p', { class: 'small soft' }, `the first ${shownRows} × ${shownCols} of ${rows} × ${cols}`));
}
