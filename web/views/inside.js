// Inside a model: the tokens of a prompt, their embeddings, the rotated queries and keys of the first
// layer, and what computing them took.
import { el } from '../lib/dom.js';
import { bytes, count, duration } from '../lib/format.js';
import { heatMap } from '../lib/heatmap.js';
import { errorRecord } from '../protocol.js';
import { kernelTable, memoryTable } from './tables.js';

export const FIRST_PROMPT = 'The GPU in your machine reads these words.';

export class InsideView {
  /** @type {any} the client's model */
  llm = null;
  /** What to look at next: the newest of what was asked for while the model looks at something. */
  wanted = '';
  looking = false;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
  }

  /** @param {any} llm */
  open(llm) {
    this.llm = llm;
    this.root.replaceChildren();
  }

  get empty() {
    return !this.root.firstChild;
  }

  /** @param {string} prompt */
  async look(prompt) {
    this.wanted = prompt;
    if (this.looking) return;
    this.looking = true;
    if (this.empty) this.root.replaceChildren(el('p', { class: 'soft', role: 'status' }, 'Building the first layer…'));
    while (this.wanted) await this.#lookAt(this.#take());
    this.looking = false;
  }

  #take() {
    const { wanted } = this;
    this.wanted = '';
    return wanted;
  }

  /** @param {string} prompt */
  async #lookAt(prompt) {
    const { llm } = this;
    try {
      const found = await llm.look(prompt);
      if (llm === this.llm) this.#show(prompt, found);
    } catch (error) {
      if (llm === this.llm) this.root.replaceChildren(el('p', { class: 'card error', role: 'alert' }, errorRecord(error).message));
    }
  }

  /** @param {string} prompt @param {any} found */
  #show(prompt, found) {
    const { tokens, looked_at: shown, embedding, q, k } = found;
    const { layers, hidden, heads, kv_heads: kvHeads, head_dim: dim } = this.llm.info;
    const rowLabels = tokens.texts.slice(0, shown).map(visible);
    const map = (/** @type {string} */ title, /** @type {any} */ array, /** @type {number | undefined} */ group) => heatMap({
      data: array.data, rows: shown, cols: array.data.length / shown, title, rowLabels, group,
      place: (row, col) => `“${rowLabels[row]}” ${group ? `head ${Math.floor(col / group)}, ${col % group}` : col}`,
    });
    const types = Object.entries(found.types).map(([type, n]) => `${n} × ${type}`).join(', ');
    this.root.replaceChildren(
      el('div', { class: 'inside-head' }, el('h1', {}, 'What the model sees first'),
        el('p', { class: 'lead' }, `Your words become numbers, and the first of ${layers} layers asks what belongs together. Computed just now, on this machine.`)),
      el('section', { class: 'card' }, step(1, 'Tokens', `The text is cut into ${count(tokens.ids.length)} pieces that the model has a number for.`),
        el('ol', { class: 'chips', 'data-testid': 'tokens', 'aria-label': 'Tokens' }, tokens.texts.map((/** @type {string} */ text, /** @type {number} */ i) => el('li', {}, el('span', {}, visible(text)), el('small', {}, tokens.ids[i])))),
        tokens.ids.length > shown && el('p', { class: 'small soft' }, `The pictures show the first ${shown}.`)),
      el('section', { class: 'card' }, step(2, 'Embedding', `Each token's row of the model's table: ${count(hidden)} numbers.`), map('embedding', embedding, undefined)),
      el('section', { class: 'card' }, step(3, 'Queries and keys', `Layer 0 turns each row into ${several(heads, 'query', 'queries')} and ${several(kvHeads, 'key', 'keys')} of ${dim} numbers, rotated by the token's position.`),
        map(`queries, ${several(heads, 'head', 'heads')}`, q, dim), map(`keys, ${several(kvHeads, 'head', 'heads')}`, k, dim),
        found.check.map((/** @type {string} */ line) => el('p', { class: 'small', 'data-testid': 'check' }, line))),
      el('section', { class: 'card' }, step(4, 'What it took', `${count(found.dispatches)} dispatches in one pass, ${duration(found.run_ms)} from Python to the GPU and back. Weights as stored: ${types}.`),
        el('div', { class: 'took' }, kernelTable(found.kernels), memoryTable(found.memory)),
        el('p', { class: 'small soft' }, `The whole model holds ${bytes(this.llm.info.memory.total)} on the device.`)));
    this.root.dataset.prompt = prompt;
  }
}

/** @param {number} at @param {string} title @param {string} words */
function step(at, title, words) {
  return el('div', { class: 'step' }, el('span', { class: 'number', 'aria-hidden': 'true' }, at), el('h2', {}, title), el('p', { class: 'soft' }, words));
}

/** @param {number} n @param {string} one @param {string} many */
const several = (n, one, many) => `${n} ${n === 1 ? one : many}`;

/** @param {string} text a token with its spaces and line ends to be seen */
function visible(text) {
  return text.replaceAll(' ', '·').replaceAll('\n', '↵').replaceAll('\t', '⇥') || '∅';
}
