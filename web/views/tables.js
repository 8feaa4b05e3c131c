// Time per kernel and memory by kind, for programs and models alike.
import { el } from '../lib/dom.js';
import { bytes, count, duration } from '../lib/format.js';

/** @param {[string, number][] | null | undefined} kernels label and microseconds of each dispatch; null: the adapter has no timestamps */
export function kernelTable(kernels) {
  if (!kernels?.length) return el('p', { class: 'small soft' }, 'Time per kernel needs the adapter feature timestamp-query, which is not there.');
  /** @type {Map<string, {times: number, micros: number}>} */
  const sums = new Map();
  for (const [label, micros] of kernels) {
    const sum = sums.get(label) ?? { times: 0, micros: 0 };
    sums.set(label, { times: sum.times + 1, micros: sum.micros + micros });
  }
  const total = kernels.reduce((sum, [, micros]) => sum + micros, 0) || 1;
  const rows = [...sums].sort((a, b) => b[1].micros - a[1].micros).map(([label, { times, micros }]) => {
    const bar = el('i', { class: 'bar', 'aria-hidden': 'true' });
    bar.style.width = `${(100 * micros) / total}%`;
    const [op, kernel] = label.split(' ');
    return el('tr', {},
      el('th', { scope: 'row' }, el('span', { class: 'mono' }, kernel ?? op), el('span', { class: 'soft small' }, ` ${op}`), bar),
      el('td', {}, `× ${count(times)}`), el('td', {}, duration(micros / 1000)));
  });
  return el('table', { class: 'kernels', 'data-testid': 'kernels' },
    el('caption', {}, `Time per kernel, ${duration(total / 1000)} in all`),
    el('thead', { class: 'hidden' }, el('tr', {}, ['kernel', 'dispatches', 'time'].map((t) => el('th', { scope: 'col' }, t)))),
    el('tbody', {}, rows));
}

const MEMORY_NAMES = { weights: 'weights', state: 'caches and state', activations: 'activations', plans: 'plans and staging', total: 'GPU memory in all' };

/** @param {Record<string, number>} memory bytes by kind */
export function memoryTable(memory) {
  return el('table', { class: 'facts-table', 'data-testid': 'memory' }, el('tbody', {},
    Object.entries(memory).map(([kind, nbytes]) => el('tr', {},
      el('th', { scope: 'row' }, MEMORY_NAMES[/** @type {keyof typeof MEMORY_NAMES} */ (kind)] ?? kind), el('td', {}, bytes(nbytes))))));
}
