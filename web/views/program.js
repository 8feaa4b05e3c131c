// An ExecuTorch program: its graph, inputs to fill, a run, outputs, time per operator, memory.
import { el } from '../lib/dom.js';
import { bytes, count, duration, fileName } from '../lib/format.js';
import { errorRecord } from '../protocol.js';
import { likeness, findFolds } from './fold.js';
import { drawGraph } from './graph-picture.js';
import { inputForm } from './inputs.js';
import { KINDS, kindOf } from './op-kinds.js';
import { outputsOf } from './outputs.js';

const FOLD_ABOVE = 24;

export class ProgramView {
  /** @type {any} the method that is shown, as webgpu_py/picture.py describes it */
  method;
  /** @type {import('./fold.js').Fold[]} */
  folds = [];
  folded = true;
  /** @type {any} the client's program */
  opened;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
  }

  /** @param {any} opened */
  open(opened) {
    this.opened = opened;
    const { methods } = opened.info;
    this.picture = el('div', { class: 'graph', 'data-testid': 'graph', tabindex: 0, 'aria-label': 'Graph, scrollable' });
    this.legend = el('div', { class: 'legend' });
    this.side = el('div', { class: 'side' });
    const choice = methods.length > 1 && el('select', { id: 'method', onchange: () => this.#show(methods[choice.selectedIndex]) },
      methods.map((/** @type {any} */ m) => el('option', {}, m.name)));
    this.summary = el('p', { class: 'soft' });
    this.root.replaceChildren(
      el('div', { class: 'program-head' }, el('h1', {}, fileName(opened.name)), this.summary, choice && el('label', {}, 'Method ', choice)),
      el('div', { class: 'program-body' }, el('div', { class: 'picture' }, this.legend, this.picture), this.side));
    // The method with the most to see first.
    const first = methods.reduce((/** @type {any} */ a, /** @type {any} */ b) => (b.boxes.length > a.boxes.length ? b : a));
    if (choice) choice.value = first.name;
    this.#show(first);
  }

  /** @param {any} method */
  #show(method) {
    this.method = method;
    const { boxes } = method;
    const onCpu = boxes.filter((/** @type {any} */ b) => b.on === 'cpu').length;
    this.summary.textContent = [
      bytes(this.opened.info.nbytes), `${count(boxes.length)} operators`, onCpu === 0 ? 'all on the GPU' : onCpu === boxes.length ? 'all on NumPy' : `${count(onCpu)} of them on NumPy`,
      `${bytes(this.opened.info.memory.total ?? 0)} on the device`,
    ].join(' · ');
    this.folds = findFolds(boxes.map(likeness));
    this.folded = boxes.length > FOLD_ABOVE;
    this.#draw();
    this.#showForm();
  }

  #draw() {
    const counts = new Map();
    for (const box of this.method.boxes) counts.set(kindOf(box.op), (counts.get(kindOf(box.op)) ?? 0) + 1);
    const toggle = this.folds.length > 0 && el('button', { type: 'button', class: 'quiet', 'aria-pressed': String(this.folded), onclick: () => {
      this.folded = !this.folded;
      this.#draw();
    } }, this.folded ? `Show all ${count(this.method.boxes.length)} operators` : 'Fold repeated layers');
    this.legend.replaceChildren(
      ...KINDS.filter((k) => counts.has(k)).map((k) => el('span', { class: `key kind-${k}` }, el('i', { 'aria-hidden': 'true' }), `${k} ${counts.get(k)}`)),
      ...(toggle ? [toggle] : []));
    this.picture.replaceChildren(drawGraph(this.method, this.folded ? this.folds : []));
  }

  #showForm() {
    const forms = this.method.inputs.map(inputForm);
    this.status = el('p', { class: 'small', role: 'status' });
    this.results = el('div', { class: 'results' });
    const run = el('button', { type: 'submit', class: 'primary', 'data-testid': 'run' }, 'Run');
    const reset = el('button', { type: 'button', class: 'quiet', onclick: () => this.#reset() }, 'Reset state');
    const form = el('form', { class: 'card', novalidate: true, onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#run(forms, run);
    } }, el('h2', {}, 'Inputs'), forms.length ? forms.map((/** @type {any} */ f) => f.element) : el('p', { class: 'soft' }, 'This method takes none.'),
    el('div', { class: 'row' }, run, reset), this.status);
    this.side.replaceChildren(form, this.results);
  }

  /** @param {any[]} forms @param {HTMLButtonElement} button */
  async #run(forms, button) {
    button.disabled = true;
    this.#say('Running…');
    try {
      const inputs = forms.map((f) => f.read());
      const result = await this.opened.connection.call('run', { method: this.method.name, inputs, profile: true });
      this.#say(`Ran in ${duration(result.run_ms)}.`);
      this.results.replaceChildren(...outputsOf(result, this.method));
    } catch (error) {
      this.#say(errorRecord(error).message, true);
    } finally {
      button.disabled = false;
    }
  }

  async #reset() {
    try {
      await this.opened.reset();
      this.#say('Caches and mutable buffers are as at first.');
    } catch (error) {
      this.#say(errorRecord(error).message, true);
    }
  }

  /** @param {string} text @param {boolean} [bad] */
  #say(text, bad = false) {
    this.status.textContent = text;
    this.status.classList.toggle('bad', bad);
  }
}
