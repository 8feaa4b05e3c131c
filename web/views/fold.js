// Repeated layers of a long graph, found in the sequence of boxes: one of them is drawn, the rest counted.

/**
 * @typedef {object} Fold
 * @property {number} start   first box of the layer that is drawn
 * @property {number} period  boxes in a layer
 * @property {number} times   how often it comes
 */

const MIN_PERIOD = 3;

/** @param {any} box what two boxes must agree in to count as the same part of a layer */
export function likeness({ op, on, results, weights }) {
  const dims = (/** @type {any[]} */ list) => list.map((t) => `${t.dtype}${t.dims}`).join();
  return `${on} ${op} ${dims(results)} ${dims(weights)}`;
}

/** @param {string[]} keys @returns {Fold[]} that do not overlap, in order */
export function findFolds(keys, from = 0, to = keys.length) {
  const best = bestRepeat(keys, from, to);
  if (!best) return [];
  const end = best.start + best.period * best.times;
  return [...findFolds(keys, from, best.start), best, ...findFolds(keys, end, to)];
}

/** @param {string[]} keys @param {number} from @param {number} to @returns {Fold | null} the repeat that hides most boxes */
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
        best = { start: i - matched, period, times };
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
  const standIns = Array.from({ length: count }, (_, i) => i);
  for (const { start, period, times } of folds) {
    for (let i = start + period; i < start + period * times; i++) standIns[i] = start + ((i - start) % period);
  }
  const shown = standIns.flatMap((s, i) => (s === i ? [i] : []));
  return { shown, standIn: (index) => (index < 0 ? index : standIns[index]) };
}
