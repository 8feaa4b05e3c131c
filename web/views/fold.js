// Repeated layers of a long graph, found in the sequence of boxes: one of them is drawn, the rest counted.
// Boxes that only compute sizes are looked through: an exporter puts them where they are first needed.

/**
 * @typedef {object} Fold
 * @property {number} start   first box of the layer that is drawn
 * @property {number} end     first box behind it
 * @property {number} times   how often the layer comes
 * @property {Map<number, number>} standIns  for every hidden box the drawn one, -1 where there is none
 */

const MIN_PERIOD = 3;

/** @param {any} box what two boxes must agree in to count as the same part of a layer; null for sizes */
export function likeness({ op, on, results, weights }) {
  if (results.every((/** @type {any} */ r) => /^int|^symint/.test(r.dtype) && !r.dims.length)) return null;
  const dims = (/** @type {any[]} */ list) => list.map((t) => `${t.dtype}${t.dims}`).join();
  return `${on} ${op} ${dims(results)} ${dims(weights)}`;
}

/** @param {(string | null)[]} keys of all boxes @returns {Fold[]} that do not overlap, in order */
export function findFolds(keys) {
  const core = keys.flatMap((key, i) => (key === null ? [] : [i]));
  const found = repeats(core.map((i) => /** @type {string} */ (keys[i])), 0, core.length);
  return found.map(({ at, period, times }) => {
    const start = core[at];
    const end = core[at + period];
    const behind = core[at + period * times] ?? core[at + period * times - 1] + 1;
    const standIns = new Map();
    for (let i = end; i < behind; i++) standIns.set(i, -1);
    for (let k = at + period; k < at + period * times; k++) standIns.set(core[k], core[at + ((k - at) % period)]);
    return { start, end, times, standIns };
  });
}

/**
 * @typedef {{at: number, period: number, times: number}} Repeat
 * @param {string[]} keys @param {number} from @param {number} to @returns {Repeat[]}
 */
function repeats(keys, from, to) {
  const best = bestRepeat(keys, from, to);
  if (!best) return [];
  const end = best.at + best.period * best.times;
  return [...repeats(keys, from, best.at), best, ...repeats(keys, end, to)];
}

/** @param {string[]} keys @param {number} from @param {number} to @returns {Repeat | null} the one that hides most */
function bestRepeat(keys, from, to) {
  let best = null;
  let most = 0;
  for (let period = MIN_PERIOD; 2 * period <= to - from; period++) {
    let matched = 0;
    for (let i = from; i + period <= to; i++) {
      if (i + period < to && keys[i] === keys[i + period]) {
        matched++;
        continue;
      }
      const times = Math.floor(matched / period) + 1;
      const hidden = (times - 1) * period;
      if (hidden > most) {
        most = hidden;
        best = { at: i - matched, period, times };
      }
      matched = 0;
    }
  }
  return best;
}

/**
 * @param {number} count boxes
 * @param {Fold[]} folds
 * @returns {{shown: number[], standIn: (index: number) => number}} the boxes to draw, and for every box the drawn one
 */
export function folded(count, folds) {
  const hidden = new Map(folds.flatMap((fold) => [...fold.standIns]));
  const shown = Array.from({ length: count }, (_, i) => i).filter((i) => !hidden.has(i));
  return { shown, standIn: (index) => hidden.get(index) ?? index };
}
