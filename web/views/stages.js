// What is being loaded: one line a stage, with bytes and the time that is left.
import { el } from '../lib/dom.js';
import { bytes, count, duration } from '../lib/format.js';

const TITLES = {
  python: 'Python, in this page',
  packages: 'Its packages',
  webgpu_py: 'webgpu_py',
  device: 'Your GPU',
  header: 'Reading the header',
  tokenizer: 'Tokenizer',
  download: 'Downloading the model',
  weights: 'Weights to the GPU',
  kernels: 'Compiling kernels',
  hash: 'Checking its hash',
};

/** Long enough ago that a rate means something. */
const MIN_RATE_MS = 400;

export class Stages {
  /** @type {Map<string, any>} */
  stages = new Map();
  list = el('ol', { class: 'stages' });
  live = el('p', { class: 'hidden', role: 'status' });

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.reset();
  }

  reset() {
    this.list.replaceChildren();
    this.root.replaceChildren(this.list, this.live);
    this.stages.clear();
  }

  /** @param {import('../protocol.js').Progress} progress */
  show({ stage, loaded, total, unit = 'bytes' }) {
    if (stage === 'ready') return;
    const entry = this.stages.get(stage) ?? this.#add(stage, loaded);
    const done = total > 0 && loaded >= total;
    entry.bar.max = total || 1;
    if (total) entry.bar.value = loaded;
    else entry.bar.removeAttribute('value');
    entry.item.dataset.state = done ? 'done' : 'now';
    entry.amount.textContent = amountText(loaded, total, unit, entry);
  }

  /** Everything shown so far is done. */
  finish() {
    for (const { item, bar } of this.stages.values()) {
      item.dataset.state = 'done';
      bar.value = bar.max;
    }
  }

  /** @param {string} stage @param {number} from what is there when it begins */
  #add(stage, from) {
    // A download goes on beside what is done with the part that is here.
    for (const [name, { item, bar }] of this.stages) {
      if (name === 'download') continue;
      item.dataset.state = 'done';
      bar.value = bar.max;
    }
    const title = TITLES[/** @type {keyof typeof TITLES} */ (stage)] ?? stage;
    const bar = el('progress', { 'aria-label': title, max: 1 });
    const amount = el('span', { class: 'amount' });
    const item = el('li', { 'data-stage': stage, 'data-state': 'now' }, el('span', {}, title), amount, bar);
    this.list.append(item);
    this.live.textContent = title;
    const entry = { item, bar, amount, from, since: performance.now() };
    this.stages.set(stage, entry);
    return entry;
  }
}

/** @param {number} loaded @param {number} total @param {string} unit @param {{from: number, since: number}} begun */
function amountText(loaded, total, unit, { from, since }) {
  if (!loaded && !total) return '';
  if (unit === 'items') return `${count(loaded)} of ${count(total)}`;
  const text = total ? `${bytes(loaded)} of ${bytes(total)}` : bytes(loaded);
  const elapsed = performance.now() - since;
  if (!total || loaded >= total || elapsed < MIN_RATE_MS || loaded <= from) return text;
  return `${text} · ${duration((elapsed * (total - loaded)) / (loaded - from))} left`;
}
