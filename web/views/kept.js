// What this browser keeps of models: which, how much of each, and a way to be rid of them.
import { cached, forget } from '../client.js';
import { el } from '../lib/dom.js';
import { bytes, fileName } from '../lib/format.js';

export class Kept {
  root = el('div', { class: 'field', hidden: true });

  /** @param {(url: string) => void} choose */
  constructor(choose) {
    this.choose = choose;
  }

  /** Looks again at what there is. */
  async show() {
    const files = await cached();
    this.root.hidden = !files.length;
    this.root.replaceChildren(el('span', {}, 'Kept in this browser'), el('ul', { class: 'kept', 'data-testid': 'kept' }, files.map((file) => this.#line(file))));
  }

  /** @param {import('../client.js').CachedFile} file */
  #line({ url, nbytes, stored, complete }) {
    const size = complete || !nbytes ? bytes(stored) : `${bytes(stored)} of ${bytes(nbytes)}`;
    const name = fileName(url);
    const remove = el('button', { type: 'button', class: 'quiet', 'aria-label': `Remove ${name}`, onclick: () => this.#remove(url, remove) }, 'Remove');
    return el('li', {},
      el('button', { type: 'button', class: 'link', title: url, onclick: () => this.choose(url) }, name),
      el('span', { class: 'small soft' }, size), remove);
  }

  /** @param {string} url @param {HTMLElement} button */
  async #remove(url, button) {
    try {
      await forget(url);
    } catch {
      button.textContent = 'In use';
      return;
    }
    await this.show();
  }
}
