// A matrix as a picture: blue below zero, orange above, the ground at zero. The value under the
// pointer, or under the cursor that the arrow keys move, is written below.
import { el } from './dom.js';
import { number } from './format.js';

const SCHEME = matchMedia('(prefers-color-scheme: dark)');
const PALETTES = {
  light: { zero: [250, 250, 252], low: [38, 84, 196], high: [214, 90, 20], odd: [120, 120, 120] },
  dark: { zero: [26, 28, 36], low: [112, 156, 255], high: [255, 158, 92], odd: [120, 120, 120] },
};

/** @type {Set<WeakRef<HTMLCanvasElement & {repaint: () => void}>>} */
const painted = new Set();
SCHEME.addEventListener('change', () => {
  for (const reference of painted) {
    const canvas = reference.deref();
    if (canvas) canvas.repaint();
    else painted.delete(reference);
  }
});

/**
 * @param {object} options
 * @param {ArrayLike<number | bigint>} options.data  row-major
 * @param {number} options.rows
 * @param {number} options.cols
 * @param {string} options.title
 * @param {string[]} [options.rowLabels]
 * @param {number} [options.group]  columns of one head, marked by a line
 * @param {(row: number, col: number) => string} [options.place]  words for a cell
 * @returns {HTMLElement}
 */
export function heatMap({ data, rows, cols, title, rowLabels, group, place }) {
  const [low, high] = range(data);
  const scale = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const canvas = el('canvas', { width: cols, height: rows, tabindex: 0, role: 'img', 'aria-label': `${title}: ${rows} rows of ${cols} values from ${number(low)} to ${number(high)}` });
  canvas.style.height = `${Math.max(rows * rowHeight(rows), 24)}px`;
  canvas.classList.toggle('fine', cols > 900);
  canvas.repaint = () => paint(canvas, data, rows, cols, scale);
  canvas.repaint();
  painted.add(new WeakRef(canvas));

  const frame = el('div', { class: 'heat-frame' }, canvas);
  for (let c = group ?? cols; c < cols; c += group ?? cols) frame.append(line(c / cols));
  const cursor = el('div', { class: 'heat-cursor', hidden: true });
  frame.append(cursor);
  const labels = rowLabels && el('div', { class: 'heat-rows', 'aria-hidden': 'true' }, rowLabels.map((text) => el('span', { title: text }, text)));
  const idle = `${number(low)} … ${number(high)}`;
  const readout = el('output', { class: 'small mono' }, idle);
  const words = place ?? ((row, col) => `row ${row}, column ${col}`);
  const pick = (/** @type {number} */ row, /** @type {number} */ col) => {
    readout.textContent = `${words(row, col)}: ${number(Number(data[row * cols + col]))}`;
    Object.assign(cursor.style, { left: `${(100 * col) / cols}%`, top: `${(100 * row) / rows}%`, width: `${100 / cols}%`, height: `${100 / rows}%` });
    cursor.hidden = false;
  };
  follow(canvas, rows, cols, pick, () => {
    readout.textContent = idle;
    cursor.hidden = true;
  });
  return el('figure', { class: 'heat' }, el('figcaption', {}, el('span', {}, title), legend(scale)), el('div', { class: labels ? 'heat-body labelled' : 'heat-body' }, labels, frame), readout);
}

/** @param {number} rows */
const rowHeight = (rows) => (rows <= 24 ? 22 : rows <= 64 ? 8 : Math.max(1, Math.floor(480 / rows)));

/** @param {number} at share of the width */
function line(at) {
  const rule = el('i', { class: 'heat-line' });
  rule.style.left = `${100 * at}%`;
  return rule;
}

/** @param {number} scale */
function legend(scale) {
  return el('span', { class: 'heat-legend small soft' }, number(-scale), el('i', { 'aria-hidden': 'true' }), number(scale));
}

/** @param {ArrayLike<number | bigint>} data @returns {[number, number]} */
function range(data) {
  let low = Infinity;
  let high = -Infinity;
  for (let i = 0; i < data.length; i++) {
    const value = Number(data[i]);
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 0];
}

/**
 * @param {HTMLCanvasElement} canvas @param {ArrayLike<number | bigint>} data
 * @param {number} rows @param {number} cols @param {number} scale
 */
function paint(canvas, data, rows, cols, scale) {
  const context = canvas.getContext('2d');
  if (!context || !rows || !cols) return;
  const image = context.createImageData(cols, rows);
  const palette = SCHEME.matches ? PALETTES.dark : PALETTES.light;
  for (let i = 0; i < rows * cols; i++) {
    const value = Number(data[i]) / scale;
    const [r, g, b] = Number.isFinite(value) ? blend(palette, value) : palette.odd;
    image.data.set([r, g, b, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
}

/** @param {typeof PALETTES.light} palette @param {number} value -1 to 1 */
function blend({ zero, low, high }, value) {
  const end = value < 0 ? low : high;
  // Weights and activations crowd around zero: the root spreads them over the colours.
  const share = Math.sqrt(Math.min(Math.abs(value), 1));
  return zero.map((z, i) => z + (end[i] - z) * share);
}

/**
 * @param {HTMLCanvasElement} canvas @param {number} rows @param {number} cols
 * @param {(row: number, col: number) => void} pick @param {() => void} leave
 */
function follow(canvas, rows, cols, pick, leave) {
  let at = [0, 0];
  const move = (/** @type {number} */ row, /** @type {number} */ col) => {
    at = [clamp(row, rows), clamp(col, cols)];
    pick(at[0], at[1]);
  };
  canvas.addEventListener('pointermove', (event) => {
    const box = canvas.getBoundingClientRect();
    move(Math.floor(((event.clientY - box.top) / box.height) * rows), Math.floor(((event.clientX - box.left) / box.width) * cols));
  });
  canvas.addEventListener('pointerleave', leave);
  canvas.addEventListener('blur', leave);
  canvas.addEventListener('keydown', (event) => {
    const step = /** @type {Record<string, number[]>} */ ({ ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -cols], End: [0, cols] })[event.key];
    if (!step) return;
    event.preventDefault();
    move(at[0] + step[0], at[1] + step[1]);
  });
}

/** @param {number} value @param {number} count */
const clamp = (value, count) => Math.max(0, Math.min(count - 1, value));
