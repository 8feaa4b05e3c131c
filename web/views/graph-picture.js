// A method as a picture: boxes from top to bottom in running order, a straight line to the next box,
// a lane on the right for what is used later, sizes on every line.
import { svg } from '../lib/dom.js';
import { shape, shortType } from '../lib/format.js';
import { folded } from './fold.js';
import { kindOf, shortName } from './op-kinds.js';

const LEFT = 18;
const WIDTH = 268;
const LABELS = 104;
const LANE = 13;
const GAP = 36;
const LINE = 15;
const FRAME_TITLE = 20;
const NOWHERE = -1;
const CHARACTERS = 41;

/**
 * @typedef {{dtype: string, dims: number[]}} Shape
 * @typedef {Shape & {from: number}} Edge
 * @typedef {{kind: string, title: string, words: string[], on?: string, index?: number, edges: Edge[], y: number, height: number, results: Shape[]}} Row
 */

/**
 * @param {any} picture a method as webgpu_py/picture.py describes it
 * @param {import('./fold.js').Fold[]} folds
 * @returns {SVGElement}
 */
export function drawGraph(picture, folds) {
  const { shown, standIn } = folded(picture.boxes.length, folds);
  const rows = rowsOf(picture, shown);
  const rowOfBox = new Map(shown.map((box, at) => [box, picture.inputs.length + at]));
  const rowOf = (/** @type {number} */ from) => (from < 0 ? -1 - from : rowOfBox.get(standIn(from)) ?? NOWHERE);
  const trunks = route(rows, rowOf);
  const lanes = assignLanes(trunks);
  const height = place(rows, new Set(folds.map((fold) => rowOfBox.get(fold.start))));
  const width = LEFT + WIDTH + LABELS + LANE * (lanes + 1);
  return svg('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'group', 'aria-label': `Graph of ${picture.name}: ${picture.boxes.length} operators` },
    arrowHead(),
    folds.map((fold) => frame(rows, fold, /** @type {number} */ (rowOfBox.get(fold.start)))),
    rows.map((row, at) => straightEdge(rows, at, rowOf)),
    trunks.map((trunk) => trunkPath(rows, trunk)),
    rows.map(drawRow));
}

/** @param {any} picture @param {number[]} shown @returns {Row[]} */
function rowsOf(picture, shown) {
  const port = (/** @type {any} */ p, /** @type {string} */ kind) => ({
    kind, title: p.name, words: [sizeOf(p)], results: [],
    edges: Number.isInteger(p.from) ? [p] : [], y: 0, height: 30,
  });
  const box = (/** @type {number} */ index) => {
    const { op, on, edges, weights, attributes, results } = picture.boxes[index];
    const words = [weights.map(sizeOf).join(', '), attributes.join(' ')];
    return { kind: kindOf(op), title: shortName(op), words: words.filter(Boolean), on, index, edges, results, y: 0, height: 0, op };
  };
  return [
    ...picture.inputs.map((/** @type {any} */ p) => port(p, 'input')),
    ...shown.map(box),
    ...picture.outputs.map((/** @type {any} */ p) => port(p, 'output')),
  ];
}

/**
 * What every row sends further than to the next one.
 * @typedef {{from: number, last: number, lane: number, targets: {row: number, slot: number, label: string}[]}} Trunk
 * @param {Row[]} rows @param {(from: number) => number} rowOf @returns {Trunk[]}
 */
function route(rows, rowOf) {
  /** @type {Map<number, Trunk>} */
  const trunks = new Map();
  rows.forEach((row, at) => {
    const seen = new Set();
    for (const edge of row.edges) {
      const from = rowOf(edge.from);
      const label = sizeOf(edge);
      if (from === NOWHERE || from === at - 1 || seen.has(`${from} ${label}`)) continue;
      seen.add(`${from} ${label}`);
      const trunk = trunks.get(from) ?? { from, last: at, lane: 0, targets: [] };
      trunk.targets.push({ row: at, slot: seen.size, label });
      trunk.last = at;
      trunks.set(from, trunk);
    }
    row.height = Math.max(row.height, 30 + LINE * row.words.length * Number(row.index !== undefined), LINE * (seen.size + 1));
  });
  return [...trunks.values()].sort((a, b) => a.from - b.from);
}

/** @param {Trunk[]} trunks @returns {number} lanes in use */
function assignLanes(trunks) {
  /** @type {number[]} */
  const freeFrom = [];
  for (const trunk of trunks) {
    let lane = freeFrom.findIndex((last) => last < trunk.from);
    if (lane < 0) lane = freeFrom.length;
    freeFrom[lane] = trunk.last;
    trunk.lane = lane;
  }
  return freeFrom.length;
}

/** @param {Row[]} rows @param {Set<number | undefined>} framed rows with a frame's title above @returns {number} height of the picture */
function place(rows, framed) {
  let y = 10;
  for (const [at, row] of rows.entries()) {
    if (framed.has(at)) y += FRAME_TITLE;
    row.y = y;
    const portsFollow = row.kind === rows[at + 1]?.kind && row.index === undefined;
    y += row.height + (portsFollow ? 10 : GAP);
  }
  return y - GAP + 14;
}

/** @param {Trunk} trunk */
const laneX = (trunk) => LEFT + WIDTH + LABELS + LANE * (trunk.lane + 0.5);

/** @param {Row[]} rows @param {Trunk} trunk */
function trunkPath(rows, trunk) {
  const right = LEFT + WIDTH;
  const x = laneX(trunk);
  const start = rows[trunk.from].y + rows[trunk.from].height - 9;
  const ends = trunk.targets.map(({ row, slot }) => rows[row].y + LINE * slot - 2);
  const stem = `M${right} ${start}H${x - 5}q5 0 5 5V${Math.max(...ends) - 5}`;
  const branch = (/** @type {number} */ y) => `M${x} ${y - 5}q0 5 -5 5H${right + 5}`;
  return svg('g', { class: 'edge' },
    svg('path', { d: stem }),
    ends.map((y, i) => [
      svg('path', { d: branch(y), 'marker-end': 'url(#arrow)' }),
      svg('text', { x: right + 12, y: y - 3 }, trunk.targets[i].label),
    ]));
}

/** @param {Row[]} rows @param {number} at @param {(from: number) => number} rowOf */
function straightEdge(rows, at, rowOf) {
  const row = rows[at];
  const edge = row.edges.find((e) => rowOf(e.from) === at - 1);
  if (!edge) return null;
  const x = LEFT + WIDTH / 2;
  const top = rows[at - 1].y + rows[at - 1].height;
  return svg('g', { class: 'edge' },
    svg('path', { d: `M${x} ${top}V${row.y - 5}`, 'marker-end': 'url(#arrow)' }),
    svg('text', { x: x + 8, y: top + GAP / 2 + 2 }, sizeOf(edge)));
}

/** @param {Row} row */
function drawRow(row) {
  const isPort = row.index === undefined;
  const words = isPort ? [] : row.words;
  const label = `${row.title}${row.on === 'cpu' ? ', on the CPU' : ''}: ${[...row.words, ...row.results.map((r) => `gives ${sizeOf(r)}`)].join(', ')}`;
  return svg('g', { class: `box kind-${row.kind} ${row.on === 'cpu' ? 'on-cpu' : ''}`, role: 'img', 'aria-label': label, transform: `translate(${LEFT} ${row.y})` },
    svg('title', {}, label),
    svg('rect', { width: WIDTH, height: row.height, rx: isPort ? row.height / 2 : 8 }),
    !isPort && svg('rect', { class: 'stripe', width: 5, height: row.height - 12, x: 6, y: 6, rx: 2.5 }),
    svg('text', { class: 'name', x: isPort ? 16 : 20, y: 20 }, cut(row.title)),
    isPort && svg('text', { class: 'words', x: WIDTH - 16, y: 20, 'text-anchor': 'end' }, row.words[0]),
    row.on === 'cpu' && svg('text', { class: 'place', x: WIDTH - 10, y: 19, 'text-anchor': 'end' }, 'NumPy'),
    words.map((text, i) => svg('text', { class: 'words', x: 20, y: 36 + LINE * i }, cut(text))));
}

/** @param {Row[]} rows @param {import('./fold.js').Fold} fold @param {number} first */
function frame(rows, fold, first) {
  const last = rows[first + fold.end - fold.start - 1];
  const y = rows[first].y - 8;
  const height = last.y + last.height + 8 - y;
  return svg('g', { class: 'fold' },
    svg('rect', { x: LEFT - 9, y, width: WIDTH + 18, height, rx: 14 }),
    svg('text', { x: LEFT - 2, y: y - 6 }, `this layer comes ${fold.times} times`));
}

function arrowHead() {
  return svg('defs', {},
    svg('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto' },
      svg('path', { d: 'M0 0 8 4 0 8z' })));
}

/** @param {Shape} tensor a number has no dimensions and needs no word for that */
const sizeOf = ({ dims, dtype }) => (dims.length ? `${shape(dims)} ${shortType(dtype)}` : shortType(dtype));

/** @param {string} text */
const cut = (text) => (text.length > CHARACTERS ? `${text.slice(0, CHARACTERS - 1)}…` : text);
