// The package for a page: `const llm = await load(url); for await (const text of llm.chat(messages)) …`
// Types are in client.d.ts. Everything runs in a worker beside this file; nothing leaves the machine.
import { completions } from './completions.js';
import { Connection } from './connection.js';
import { diagnose } from './js/bridge.js';
import { cached, forget } from './js/cache.js';
import { LANGUAGE_PACKAGES, WebGPUPyError, isProgram } from './protocol.js';

export { Connection, WebGPUPyError, cached, forget };

/** Loads a GGUF model or an ExecuTorch program: an address, a File or a Blob. */
export async function load(source, options = {}) {
  const { device = 'browser', context, sha256, onProgress, onWarning, signal, workerURL } = options;
  signal?.throwIfAborted();
  const problem = device === 'cpu' ? null : await diagnose();
  if (problem) throw new WebGPUPyError(problem.code, problem.message);
  const given = source instanceof Blob ? { file: source } : { url: new URL(source, document.baseURI).href };
  const name = given.file ? given.file.name ?? 'file' : given.url;
  const packages = isProgram(name) ? [] : [...LANGUAGE_PACKAGES];
  const connection = options.connection ?? new Connection({ packages, onProgress, workerURL });
  const giveUp = () => connection.close();
  signal?.addEventListener('abort', giveUp);
  try {
    await connection.ready;
    signal?.removeEventListener('abort', giveUp);
    const opened = await connection.call('open', { source: given, device, sha256, options: { context } }, { signal, onProgress, onWarning });
    return opened.kind === 'program' ? new Program(connection, opened) : new LanguageModel(connection, opened);
  } catch (error) {
    if (!options.connection) connection.close();
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', giveUp);
  }
}

class Opened {
  constructor(connection, info) {
    this.connection = connection;
    this.info = info;
    this.name = info.name;
  }

  /** GPU bytes by kind, and the Python heap. */
  memory() {
    return this.connection.call('memory');
  }

  /** The adapter with its limits and features. */
  device() {
    return this.connection.call('device');
  }

  /** Frees the model, the device and the worker. */
  close() {
    this.connection.close();
  }
}

/** A language model; made by `load`. */
export class LanguageModel extends Opened {
  constructor(connection, info) {
    super(connection, info);
    const stream = (method, what) => (given, { signal, ...options } = {}) => new Stream(connection, method, { [what]: given, options }, signal);
    /** Answers a conversation of {role, content}. */
    this.chat = Object.assign(stream('chat', 'messages'), { completions: completions(this) });
    /** Continues a raw prompt, a text or token ids. */
    this.generate = stream('generate', 'prompt');
  }

  async tokenize(text) {
    return (await this.connection.call('tokenize', { text })).ids;
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

/** An ExecuTorch program; made by `load`. */
export class Program extends Opened {
  /** Runs a method on arrays `{dtype, shape, data}` and numbers; its outputs are the same. */
  async run(inputs, { method = 'forward', signal } = {}) {
    const { outputs } = await this.connection.call('run', { method, inputs, whole: true }, { signal });
    return outputs.map((output) => output.array ?? output.value);
  }

  /** Caches and mutable buffers as at first. */
  reset() {
    return this.connection.call('reset');
  }
}
