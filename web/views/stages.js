// What is being loaded: one line a stage, with bytes and the time that is left.
import { el } from '../lib/dom.js';
import { bytes, count, duration } from '../lib/format.js';

const TITLES = {
  python: 'Python, in this page',
  packages: 'Its packages',
  webgpu_py: 'webgpu_py',
  device: 'Your GPU',
  file: 'Reading the file',
  header: 'Reading the header',
  tokenizer: 'Tokenizer',
  download: 'Downloading the model',
  weights: 'Weights to the GPU',
  kernels: 'Compiling kernels',
};

/** Long enough ago that a rate means something. */
const MIN_RATE_MS = 400;

export class Stages {
  /** @type {Map<string, any>} */
  stages = new Map();
  list = el('ol', { class: 'stages' });
  live = el('p', { class: 'hidden', role: 'status' });
  current = '';

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.reset();
  }

  reset() {
    this.list.replaceChildren();
    this.root.replaceChildren(this.list, this.live);
    this.stages.clear();
    this.current = '';
  }

  /** @param {import('../protocol.js').Progress} progress */
  show({ stage, loaded, total, unit = 'bytes', file }) {
    if (stage === 'ready') return;
    const entry = this.stages.get(stage) ?? this.#add(stage);
    if (stage !== this.current) this.#enter(stage);
    const done = total > 0 && loaded >= total;
    entry.bar.max = total || 1;
    if (total) entry.bar.value = loaded;
    else entry.bar.removeAttribute('value');
    entry.item.dataset.state = done ? 'done' : 'now';
    entry.amount.textContent = amountText(loaded, total, unit, performance.now() - entry.since, file);
  }

  /** Everything shown so far is done. */
  finish() {
    for (const { item, bar } of this.stages.values()) {
      item.dataset.state = 'done';
      bar.value = bar.max;
    }
  }

  /** @param {string} stage */
  #add(stage) {
    const title = TITLES[/** @type {keyof typeof TITLES} */ (stage)] ?? stage;
    const bar = el('progress', { 'aria-label': title, max: 1 });
    const amount = el('span', { class: 'amount' });
    const item = el('li', { 'data-stage': stage, 'data-state': 'now' }, el('span', {}, title), amount, bar);
    this.list.append(item);
    const entry = { item, bar, amount, since: performance.now() };
    this.stages.set(stage, entry);
    return entry;
  }

  /** @param {string} stage */
  #enter(stage) {
    const before = this.stages.get(this.current);
    if (before) {
      before.item.dataset.state = 'done';
      before.bar.value = before.bar.max;
    }
    this.current = stage;
    this.live.textContent = TITLES[/** @type {keyof typeof TITLES} */ (stage)] ?? stage;
  }
}

/** @param {number} loaded @param {number} total @param {string} unit @param {number} elapsed @param {string} [file] */
function amountText(loaded, total, unit, elapsed, file) {
  if (!loaded && !total) return '';
  if (unit === 'items') return `${count(loaded)} of ${count(total)}`;
  const text = total ? `${bytes(loaded)} of ${bytes(total)}` : bytes(loaded);
  if (!total || loaded >= total || elapsed < MIN_RATE_MS || !loaded) return text;
  return `${text} · ${duration((elapsed * (total - loaded)) / loaded)} left`;
}
