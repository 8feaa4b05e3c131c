// How answers are sampled: a dialog, kept in this browser.
import { el } from '../lib/dom.js';
import { closeButton } from './picker.js';

const KEY = 'webgpu_py sampling';

/** @type {{name: string, title: string, note: string, min: number, max: number, step: number, value: number}[]} */
const NUMBERS = [
  { name: 'temperature', title: 'Temperature', note: '0 always takes the likeliest word; higher is more varied', min: 0, max: 2, step: 0.05, value: 0.3 },
  { name: 'top_p', title: 'Top-p', note: 'words that make up this share of the probability', min: 0.05, max: 1, step: 0.05, value: 0.9 },
  { name: 'top_k', title: 'Top-k', note: 'at most so many words to choose from; 0 is all', min: 0, max: 200, step: 1, value: 0 },
  { name: 'min_p', title: 'Min-p', note: 'at least this share of the likeliest word', min: 0, max: 0.5, step: 0.01, value: 0 },
  { name: 'repetition_penalty', title: 'Repetition penalty', note: '1 is off', min: 1, max: 1.5, step: 0.01, value: 1.05 },
  { name: 'max_tokens', title: 'Longest answer', note: 'in tokens', min: 1, max: 4096, step: 1, value: 1024 },
];

export class Sampling {
  constructor() {
    this.values = { ...defaults(), ...saved(), ...checked(Object.fromEntries(new URLSearchParams(location.search))) };
    this.dialog = el('dialog', { 'aria-labelledby': 'sampling-title' });
    document.body.append(this.dialog);
  }

  open() {
    const form = el('form', { method: 'dialog', onsubmit: () => this.#keep(form) },
      el('label', { class: 'field' }, el('span', {}, 'Instructions for the model'),
        el('textarea', { name: 'system', rows: 2, placeholder: 'You are a helpful assistant.' }, this.values.system)),
      NUMBERS.map((n) => this.#slider(n)),
      el('label', { class: 'field' }, el('span', {}, 'Seed'), el('input', { name: 'seed', inputmode: 'numeric', pattern: '[0-9]*', maxlength: 15, placeholder: 'another one each time', value: this.values.seed })),
      el('div', { class: 'row' }, el('button', { type: 'submit', class: 'primary' }, 'Done'),
        el('button', { type: 'button', class: 'quiet', onclick: () => this.#reset() }, 'Back to the defaults')));
    this.dialog.replaceChildren(el('header', {}, el('h2', { id: 'sampling-title' }, 'Sampling'), closeButton(this.dialog)), form);
    this.dialog.showModal();
  }

  /** @returns {Record<string, number>} as webgpu_py's GenerationOptions names them */
  options() {
    const { system, seed, ...numbers } = this.values;
    return { ...numbers, seed: seed === '' ? Math.floor(Math.random() * 2 ** 32) : Number(seed) };
  }

  /** @param {typeof NUMBERS[0]} number */
  #slider({ name, title, note, min, max, step }) {
    const shown = el('output', { class: 'mono' }, this.values[name]);
    const input = el('input', { type: 'range', name, min, max, step, value: this.values[name], oninput: () => (shown.textContent = input.value) });
    return el('label', { class: 'field' }, el('span', { class: 'spread' }, title, shown), input, el('span', { class: 'small soft' }, note));
  }

  /** @param {HTMLFormElement} form */
  #keep(form) {
    for (const [name, value] of new FormData(form)) this.values[name] = typeof this.values[name] === 'number' ? Number(value) : String(value).trim();
    try {
      localStorage.setItem(KEY, JSON.stringify(this.values));
    } catch {
      // Private windows may refuse storage: the settings then last as long as the page.
    }
  }

  #reset() {
    this.values = defaults();
    this.dialog.close();
    this.open();
  }
}

/** @returns {Record<string, any>} */
const defaults = () => ({ system: '', seed: '', ...Object.fromEntries(NUMBERS.map((n) => [n.name, n.value])) });

/** @returns {Record<string, any>} */
function saved() {
  try {
    return checked(JSON.parse(localStorage.getItem(KEY) ?? '{}'));
  } catch {
    return {};
  }
}

/** @param {Record<string, any>} given by storage or address @returns {Record<string, any>} what of it makes sense */
function checked(given) {
  const whole = (/** @type {typeof NUMBERS[0]} */ { name, step }) => step !== 1 || Number.isInteger(Number(given[name]));
  const inside = NUMBERS.filter((n) => given[n.name] !== undefined && given[n.name] >= n.min && given[n.name] <= n.max && whole(n));
  const texts = [...(typeof given.system === 'string' ? ['system'] : []), ...(/^\d{1,15}$/.test(given.seed) ? ['seed'] : [])];
  return { ...Object.fromEntries(inside.map((n) => [n.name, Number(given[n.name])])), ...Object.fromEntries(texts.map((t) => [t, given[t]])) };
}
