// A language model and its answers.
import { completions } from './completions.js';
import { Opened } from './sessions.js';

/** A language model; made by `load`. */
export class LanguageModel extends Opened {
  constructor(connection, info, open) {
    super(connection, info, open);
    const stream = (method, what) => (given, { signal, ...options } = {}) => new Stream(this.connection, method, { [what]: given, options }, signal);
    /** Answers a conversation of {role, content}. */
    this.chat = Object.assign(stream('chat', 'messages'), { completions: completions(this) });
    /** Continues a raw prompt, a text or token ids. */
    this.generate = stream('generate', 'prompt');
  }

  async tokenize(text) {
    return (await this.connection.call('tokenize', { text })).ids;
  }

  /** A model that came as safetensors as one file, which loads to the same bits without quantizing. */
  async save({ signal, onProgress } = {}) {
    const pieces = [];
    for (let first = true, loaded = 0; ; first = false) {
      const { piece } = await this.connection.call('save', { first }, { signal });
      if (!piece.data.length) return new Blob(pieces);
      // A Blob may lie on the disk; arrays of a whole model would not.
      pieces.push(new Blob([piece.data]));
      onProgress?.({ stage: 'save', loaded: (loaded += piece.data.length), total: 0, unit: 'bytes' });
    }
  }

  /** The fastest kernels for this model on this GPU, found by trying: {case, way, ratio} each. Up to a minute, once. */
  async autotune() {
    return (await this.connection.call('autotune', {})).tuned;
  }

  /** Tokens of a prompt, and embedding, rotated queries and keys of the first layer. */
  look(prompt) {
    return this.connection.call('look', { prompt });
  }
}

/** An answer: iterate for its text. It starts with the iteration and ends when that is left. */
export class Stream {
  constructor(connection, method, args, signal) {
    this.finishReason = null;
    this.timings = null;
    this.promptTokens = 0;
    this.tokens = [];
    this.start = (options) => connection.call(method, args, options);
    this.signal = signal;
  }

  async *[Symbol.asyncIterator]() {
    for await (const { text } of this.pieces()) if (text) yield text;
  }

  /** The answer step by step: {text, tokens, logprobs, top_logprobs}. */
  async *pieces() {
    const left = new AbortController();
    const signal = this.signal ? AbortSignal.any([this.signal, left.signal]) : left.signal;
    const queue = new Queue();
    const done = this.start({ signal, onEvent: (event) => queue.push(event) }).then((result) => {
      Object.assign(this, { finishReason: result.finish_reason, timings: result.timings });
    });
    done.then(() => queue.end(), (error) => queue.end(error));
    try {
      for await (const event of queue) {
        if ('prompt_tokens' in event) this.promptTokens = event.prompt_tokens;
        else {
          this.tokens.push(...event.tokens);
          yield event;
        }
      }
    } finally {
      left.abort();
    }
  }

  /** The whole answer. */
  async text() {
    let whole = '';
    for await (const text of this) whole += text;
    return whole;
  }
}

/** What is pushed, in order, to whoever awaits it. */
class Queue {
  items = [];
  wake = () => {};
  ended = false;

  push(item) {
    this.items.push(item);
    this.wake();
  }

  end(error) {
    this.ended = true;
    this.error = error;
    this.wake();
  }

  async *[Symbol.asyncIterator]() {
    while (true) {
      while (this.items.length) yield this.items.shift();
      if (this.error) throw this.error;
      if (this.ended) return;
      await new Promise((resolve) => (this.wake = resolve));
    }
  }
}
