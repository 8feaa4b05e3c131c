// The one box to type in, at the foot of the page: it serves whichever view is shown.
import { byId } from '../lib/dom.js';

export class Composer {
  box = byId('prompt');
  send = byId('send');
  stop = byId('stop');

  /** @param {{submit: (text: string) => void, stop: () => void}} hooks */
  constructor(hooks) {
    const submit = () => {
      const text = this.box.value.trim();
      if (text && !this.send.hidden) hooks.submit(text);
    };
    byId('prompt-form').addEventListener('submit', (/** @type {Event} */ event) => {
      event.preventDefault();
      submit();
    });
    this.box.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
      // Enter also ends the composition of a Chinese or Japanese word.
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      submit();
    });
    this.stop.addEventListener('click', () => {
      hooks.stop();
      this.box.focus();
    });
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && !this.stop.hidden && !document.querySelector('dialog[open]')) hooks.stop();
    });
  }

  /** @param {{placeholder: string, verb: string}} words @param {boolean} answering what can be stopped, and nothing sent meanwhile */
  show({ placeholder, verb }, answering) {
    this.box.placeholder = placeholder;
    this.send.textContent = verb;
    this.send.hidden = answering;
    this.stop.hidden = !answering;
  }
}
