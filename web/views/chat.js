// The chat: a conversation that lives in this page only, answers streamed as they come.
import { el } from '../lib/dom.js';
import { bytes, count, duration, fileName } from '../lib/format.js';
import { markdown } from '../lib/markdown.js';
import { errorRecord } from '../protocol.js';
import { Sampling } from './sampling.js';
import { saveButton } from './save.js';

const IDEAS = ['Explain gravity to a child in two sentences.', 'Write a short poem about the sea.', 'Give me three ideas for a rainy Sunday.'];

/** @typedef {{role: 'user' | 'assistant' | 'system', content: string}} Message */

export class ChatView {
  /** @type {Message[]} */
  messages = [];
  sampling = new Sampling();
  /** @type {AbortController | null} */
  answering = null;
  context = 0;
  /** @type {any} the client's model */
  llm = null;

  /**
   * @param {HTMLElement} root
   * @param {object} hooks
   * @param {() => void} hooks.onBusy  when an answer begins or ends
   * @param {(error: any) => void} hooks.onLost  when the model is gone
   */
  constructor(root, hooks) {
    this.root = root;
    this.hooks = hooks;
    this.log = el('div', { class: 'log', role: 'log', 'aria-label': 'Conversation' });
    this.filled = el('span', { class: 'row' });
    this.device = el('span');
  }

  /** @param {any} llm */
  open(llm) {
    this.llm = llm;
    this.context = llm.info.context;
    // Only its texts change: a control that is replaced while it has the focus loses it.
    const status = el('div', { class: 'chat-status small soft' }, this.filled, this.device,
      el('span', { class: 'row end' }, saveButton(llm),
        el('button', { type: 'button', class: 'quiet', id: 'sampling', onclick: () => this.sampling.open() }, 'Sampling'),
        el('button', { type: 'button', class: 'quiet', id: 'new-chat', onclick: () => this.fresh() }, 'New chat')));
    this.root.replaceChildren(this.log, status);
    this.fresh();
  }

  /** Start over. */
  fresh() {
    this.stop();
    this.answering = null;
    this.hooks.onBusy();
    this.messages = [];
    this.used = 0;
    const { layers, hidden, context } = this.llm.info;
    this.log.replaceChildren(el('div', { class: 'welcome' },
      el('h1', {}, 'Ask something'),
      el('p', { class: 'lead' }, 'The model runs on this machine, in this page. Nothing you type is sent anywhere.'),
      el('p', { class: 'small soft' }, `${fileName(this.llm.name)}: ${layers} layers of ${count(hidden)}, a context of ${count(context)} tokens`),
      el('div', { class: 'row ideas' }, IDEAS.map((idea) => el('button', { type: 'button', onclick: () => this.send(idea) }, idea)))));
    this.#showStatus();
  }

  /** @param {string} text */
  async send(text) {
    if (this.answering || !text.trim()) return;
    this.log.querySelector('.welcome')?.remove();
    this.messages.push({ role: 'user', content: text });
    this.log.append(el('div', { class: 'message user' }, el('span', { class: 'hidden' }, 'You: '), text));
    await this.#answer();
  }

  stop() {
    this.answering?.abort(new DOMException('Stopped', 'AbortError'));
  }

  async #answer() {
    const controller = (this.answering = new AbortController());
    const bubble = this.#newBubble();
    const started = performance.now();
    const text = { whole: '', tokens: 0, first: 0, drawn: false };
    const draw = () => {
      text.drawn = false;
      const follow = this.#atEnd();
      bubble.body.replaceChildren(...markdown(text.whole));
      if (follow) this.#toEnd();
    };
    this.hooks.onBusy();
    this.#toEnd();
    let problem = null;
    try {
      const stream = this.llm.chat(this.#prompt(), { signal: controller.signal, ...this.sampling.options() });
      for await (const piece of stream.pieces()) {
        text.first ||= performance.now() - started;
        text.whole += piece.text;
        text.tokens += piece.tokens.length;
        this.used = stream.promptTokens + text.tokens;
        if (!text.drawn) requestAnimationFrame(draw);
        text.drawn = true;
      }
      if (stream.finishReason === 'length') bubble.note.textContent = this.used >= this.context ? 'The context is full. Start a new chat to go on.' : 'Cut at the longest answer that the settings allow.';
    } catch (error) {
      if (controller.signal.aborted) bubble.note.textContent = 'Stopped.';
      else problem = error;
    }
    // Of an answer that a new chat has stopped nothing is kept.
    if (this.answering !== controller) return;
    draw();
    this.answering = null;
    this.messages.push({ role: 'assistant', content: text.whole });
    bubble.element.setAttribute('aria-busy', 'false');
    if (problem) this.#failed(bubble, problem);
    else this.#finished(bubble, text, performance.now() - started);
    this.hooks.onBusy();
  }

  /** @returns {Message[]} */
  #prompt() {
    const { system } = this.sampling.values;
    return system ? [{ role: 'system', content: system }, ...this.messages] : this.messages;
  }

  #newBubble() {
    // The newest answer only: readers and tests look for one.
    for (const old of this.log.querySelectorAll('[data-testid=answer]')) old.removeAttribute('data-testid');
    for (const old of this.log.querySelectorAll('.after')) old.remove();
    const body = el('div', { class: 'markdown', 'data-testid': 'answer' }, el('span', { class: 'waiting', 'aria-label': 'thinking' }));
    const note = el('p', { class: 'small soft note' });
    const element = el('div', { class: 'message assistant', 'aria-live': 'polite', 'aria-busy': 'true' }, body, note);
    this.log.append(element);
    return { element, body, note };
  }

  /** @param {any} bubble @param {{whole: string, tokens: number, first: number}} text @param {number} elapsed */
  #finished(bubble, { whole, tokens, first }, elapsed) {
    const rate = tokens > 1 ? (1000 * (tokens - 1)) / Math.max(elapsed - first, 1) : 0;
    bubble.element.append(el('div', { class: 'after row small soft' },
      el('span', {}, `${count(tokens)} tokens${rate ? ` · ${rate.toFixed(1)} tokens/s` : ''}${first ? ` · first after ${duration(first)}` : ''}`),
      el('button', { type: 'button', class: 'quiet', onclick: () => this.#regenerate() }, 'Regenerate'),
      el('button', { type: 'button', class: 'quiet', onclick: (/** @type {any} */ e) => copy(whole, e.currentTarget) }, 'Copy')));
    this.#showStatus();
    this.#toEnd();
  }

  /** @param {any} bubble @param {any} error */
  #failed(bubble, error) {
    const { code, message } = errorRecord(error);
    this.messages.pop();
    const question = this.messages.pop();
    bubble.body.replaceChildren();
    bubble.note.replaceChildren(el('span', { class: 'bad' }, message), ' ',
      code === 'ContextLength' ? el('button', { type: 'button', class: 'quiet', onclick: () => this.fresh() }, 'Start a new chat')
        : el('button', { type: 'button', class: 'quiet', onclick: () => { bubble.element.remove(); this.log.lastElementChild?.remove(); this.send(question?.content ?? ''); } }, 'Try again'));
    if (code === 'DeviceLost') this.hooks.onLost(error);
  }

  #regenerate() {
    if (this.answering || this.messages.at(-1)?.role !== 'assistant') return;
    this.messages.pop();
    this.log.lastElementChild?.remove();
    this.#answer();
  }

  async #showStatus() {
    const { llm } = this;
    const share = this.context ? this.used / this.context : 0;
    const meter = el('meter', { min: 0, max: 1, high: 0.85, value: share, 'aria-label': 'Context used' });
    this.filled.replaceChildren(meter, `${count(this.used)} of ${count(this.context)} tokens`);
    const memory = await llm.memory().catch(() => null);
    if (llm !== this.llm) return;
    this.device.textContent = memory ? `${bytes(memory.gpu.total)} on the GPU` : '';
    this.device.title = memory ? `Python heap ${bytes(memory.wasm_nbytes)}` : '';
  }

  #atEnd() {
    const page = document.documentElement;
    return page.scrollHeight - page.scrollTop - page.clientHeight < 120;
  }

  #toEnd() {
    document.documentElement.scrollTo({ top: document.documentElement.scrollHeight });
  }
}

/** @param {string} text @param {HTMLButtonElement} button */
async function copy(text, button) {
  await navigator.clipboard.writeText(text).then(() => (button.textContent = 'Copied'), () => (button.textContent = 'Not allowed'));
  setTimeout(() => (button.textContent = 'Copy'), 1500);
}
