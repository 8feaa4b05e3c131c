// The token loop: prefill in chunks, then decode steps that feed themselves on the GPU.
// Python hands over plans, buffers and the vocabulary once; no step enters it again.

import {newHandle, orLost, raiseUncaptured, stateOf} from './device.js';
import {withBytes} from './buffers.js';
import {WebGPUPyError} from './errors.js';
import {encodePlan, planOf} from './plans.js';
import {TextAssembler, topLogprobs} from './text.js';

// Chromium looks for finished work every 2 ms: with four steps in flight the GPU never waits for it.
const STEPS_IN_FLIGHT = 4;
const RESULT_NBYTES = 16;
const PADDED_FROM = 128;
const PADDED_SHARE = 0.7;

const generators = new Map();

/** A model ready to generate: `spec` is made by webgpu_py/llm.py. */
class Generator {
  constructor(state, spec, blob, offsets) {
    Object.assign(this, spec);
    this.state = state;
    this.blob = withBytes(blob, (bytes) => bytes.slice());
    this.offsets = withBytes(offsets, (bytes) => new Uint32Array(bytes.slice().buffer));
    this.ends = new Set(spec.ends);
    this.variants = [...spec.variants].sort((a, b) => a.tokens - b.tokens);
    this.cached = [];
    this.last = Promise.resolve();
    this.spare = [];
  }

  buffer(name) {
    return this.state.buffers.get(this.buffers[name]);
  }

  destroy() {
    this.closed = true;
    for (const staging of this.spare.splice(0)) staging.destroy();
  }

  /** Bytes that a token shows; none for control tokens. */
  bytesOf(token) {
    return this.blob.subarray(this.offsets[token], this.offsets[token + 1]);
  }

  /** Submit one step at position `pos`; with `ids` a chunk of the prompt, else the last token. */
  submit({tokens, pos, ids, sample}) {
    const {gpu} = this.state;
    const variant = this.variants.find((v) => v.tokens >= tokens && pos + v.tokens <= this.context) ?? this.variants[0];
    const plan = planOf(this.state, variant.plan);
    const write = (name, data) => gpu.queue.writeBuffer(this.buffer(name), 0, data);
    write('live', Int32Array.from(variant.base, (word, i) => word + pos * variant.position[i] + (tokens - 1) * variant.last[i]));
    const encoder = gpu.createCommandEncoder();
    if (ids) {
      const padded = new Int32Array(variant.tokens);
      padded.set(ids);
      write('ids', padded);
    } else if (this.buffer('token') !== this.buffer('ids')) {
      // Memory that is shared by liveness can make one buffer of both: then the token lies there.
      encoder.copyBufferToBuffer(this.buffer('token'), 0, this.buffer('ids'), 0, 4);
    }
    const pass = encoder.beginComputePass();
    encodePlan(pass, sample ? plan : {groups: plan.groups, commands: plan.commands.slice(0, 4 * variant.head)});
    pass.end();
    if (!sample) {
      gpu.queue.submit([encoder.finish()]);
      return null;
    }
    const staging = this.spare.pop() ?? gpu.createBuffer({size: RESULT_NBYTES, usage: 0x1 | 0x8, label: 'token'});
    encoder.copyBufferToBuffer(this.buffer('token'), 0, staging, 0, 4);
    encoder.copyBufferToBuffer(this.buffer('logprob'), 0, staging, 4, 4);
    encoder.copyBufferToBuffer(this.buffer('fault'), 0, staging, 8, 8);
    gpu.queue.submit([encoder.finish()]);
    return this.result(staging);
  }

  async result(staging) {
    let words;
    try {
      await orLost(this.state, staging.mapAsync(1));
      words = new Int32Array(staging.getMappedRange().slice(0));
      staging.unmap();
      if (!this.closed) this.spare.push(staging);
    } finally {
      if (!words || this.closed) staging.destroy();
    }
    raiseUncaptured(this.state);
    if (words[2]) throw new WebGPUPyError('IndexOutOfRange', `node ${words[2] - 1}: an index at position ${words[3]} is out of range`);
    if (words[0] < 0 || words[0] >= this.offsets.length - 1) {
      throw new WebGPUPyError('WrongNumbers', 'No logit is a number, all are NaN or -inf: a weight of the file may be damaged. A session\'s debug names the first node whose result holds NaN.');
    }
    return {token: words[0], logprob: new Float32Array(words.buffer)[1]};
  }

  async logits() {
    const {gpu} = this.state;
    const size = 4 * this.vocabSize;
    const staging = gpu.createBuffer({size, usage: 0x1 | 0x8, label: 'logits'});
    try {
      const encoder = gpu.createCommandEncoder();
      encoder.copyBufferToBuffer(this.buffer('logits'), 0, staging, 0, size);
      gpu.queue.submit([encoder.finish()]);
      await orLost(this.state, staging.mapAsync(1));
      return new Float32Array(staging.getMappedRange().slice(0));
    } finally {
      staging.destroy();
    }
  }

  /** Settings, seed and the counts of tokens already seen, for one request. */
  begin(prompt, options) {
    const {queue} = this.state.gpu;
    const settings = new Float32Array([
      options.temperature, options.top_k, options.top_p, options.min_p,
      options.repetition_penalty, options.presence_penalty, options.frequency_penalty, 0,
    ]);
    new Int32Array(settings.buffer)[7] = options.seed | 0;
    queue.writeBuffer(this.buffer('settings'), 0, settings);
    queue.writeBuffer(this.buffer('fault'), 0, new Uint32Array(4));
    const counts = new Int32Array(this.vocabSize);
    for (const token of prompt) counts[token]++;
    queue.writeBuffer(this.buffer('counts'), 0, counts);
    const bias = new Float32Array(this.vocabSize);
    for (const [token, value] of options.logit_bias) bias[token] = value;
    queue.writeBuffer(this.buffer('bias'), 0, bias);
  }

  check(prompt) {
    if (!prompt.length) throw new WebGPUPyError('ShapeError', 'The prompt has no tokens; give it some text.');
    if (prompt.length >= this.context) {
      throw new WebGPUPyError('ContextLength', `The prompt has ${prompt.length} tokens; this model was loaded with a context of ${this.context}, which prompt and answer share. Shorten it or load with a larger context.`);
    }
    const bad = prompt.findIndex((t) => !(t >= 0 && t < this.vocabSize));
    if (bad >= 0) throw new WebGPUPyError('IndexOutOfRange', `Token id ${prompt[bad]} at position ${bad}: the vocabulary has ids 0 to ${this.vocabSize - 1}.`);
  }

  /** How many of the tokens left the next step takes, with `room` rows in the cache. */
  stepOf(left, room) {
    const sizes = this.variants.map((v) => v.tokens).filter((tokens) => tokens <= room);
    const padded = sizes.find((tokens) => tokens >= left);
    const full = sizes.findLast((tokens) => tokens <= left) ?? 1;
    if (!padded) return full;
    // Rows of padding cost what tokens cost, once there are enough of them to fill a GPU.
    return full >= PADDED_FROM && left < PADDED_SHARE * padded ? full : left;
  }

  /** Compute the prompt's rows that the cache lacks; gives the first sampled token's promise. */
  prefill(prompt, request) {
    let pos = 0;
    while (pos < Math.min(this.cached.length, prompt.length - 1) && this.cached[pos] === prompt[pos]) pos++;
    request.reused = pos;
    this.cached.length = pos;
    let first = null;
    while (pos < prompt.length) {
      const tokens = this.stepOf(prompt.length - pos, this.context - pos);
      const sample = pos + tokens === prompt.length;
      first = this.submit({tokens, pos, ids: prompt.slice(pos, pos + tokens), sample});
      pos += tokens;
    }
    return first;
  }
}

/** One answer: an async iterator of {tokens, text, logprobs}; `finishReason` and `timings` at the end. */
class Request {
  constructor(generator, prompt, options) {
    this.generator = generator;
    this.prompt = prompt;
    this.options = options;
    this.cancelled = false;
    this.finishReason = '';
    this.timings = {first_token_ms: 0, prefill_tps: 0, decode_tps: 0};
    this.reused = 0;
    this.iterator = this.pieces();
  }

  cancel() {
    this.cancelled = true;
    this.finishReason ||= 'cancelled';
    // Whoever left the answer half read does not come back for the end of it, and the next one waits for that.
    this.iterator.return().catch(() => {});
  }

  next() {
    return this.iterator.next();
  }

  async *pieces() {
    const generator = this.generator;
    const before = generator.last;
    let release;
    generator.last = new Promise((resolve) => (release = resolve));
    await before;
    try {
      yield* this.run();
    } finally {
      release();
    }
  }

  async *run() {
    const {generator, prompt, options} = this;
    generator.check(prompt);
    const room = Math.min(options.max_tokens, generator.context - prompt.length);
    const text = new TextAssembler(options.stop);
    const started = performance.now();
    if (this.cancelled || room < 1) {
      this.finishReason = this.cancelled ? 'cancelled' : 'length';
      return;
    }
    generator.begin(prompt, options);
    const inFlight = [generator.prefill(prompt, this)];
    generator.cached = [...prompt];
    let submitted = 1;
    let delivered = 0;
    let firstAt = 0;
    const window = options.top_logprobs ? 1 : STEPS_IN_FLIGHT;
    try {
      while (!this.finishReason) {
        while (!this.cancelled && submitted < room && inFlight.length < window) {
          inFlight.push(generator.submit({tokens: 1, pos: prompt.length + submitted - 1, sample: true}));
          submitted++;
        }
        if (this.cancelled) break;
        const {token, logprob} = await inFlight.shift();
        firstAt ||= performance.now();
        if (generator.ends.has(token)) {
          this.finishReason = 'stop';
          break;
        }
        const top = options.top_logprobs ? topLogprobs(await generator.logits(), options.top_logprobs) : [];
        if (delivered) generator.cached.push(this.previous);
        this.previous = token;
        delivered++;
        const piece = text.push(generator.bytesOf(token));
        if (text.stopped) this.finishReason = 'stop';
        else if (delivered === room) this.finishReason = 'length';
        yield {tokens: [token], text: this.finishReason === 'length' ? piece + text.flush() : piece, logprobs: [logprob], top};
      }
      if (this.cancelled) this.finishReason = 'cancelled';
      const rest = this.finishReason === 'stop' && !text.stopped ? text.flush() : '';
      if (rest) yield {tokens: [], text: rest, logprobs: [], top: []};
    } catch (error) {
      // Which rows were written is anybody's guess now.
      generator.cached = [];
      throw error;
    } finally {
      // Steps that were submitted ahead write rows past the stop: they count as unwritten.
      await Promise.allSettled(inFlight);
      const ended = performance.now();
      const prefilled = prompt.length - this.reused;
      // Cancelled before the first token, it has none of these.
      if (firstAt) {
        this.timings = {
          first_token_ms: firstAt - started,
          prefill_tps: (1000 * prefilled) / Math.max(firstAt - started, 1e-3),
          decode_tps: delivered > 1 ? (1000 * (delivered - 1)) / Math.max(ended - firstAt, 1e-3) : 0,
        };
      }
    }
  }
}

/** Make a generator of loaded plans; `blob` and `offsets` say what each token shows. */
export function createGenerator(device, spec, blob, offsets) {
  const handle = newHandle();
  generators.set(handle, new Generator(stateOf(device), spec, blob, offsets));
  return handle;
}

export function destroyGenerator(handle) {
  generators.get(handle)?.destroy();
  generators.delete(handle);
}

/** Start an answer to prompt tokens; the request's `next()` gives its pieces.
 *
 * Options are those of GenerationOptions in webgpu_py/generation.py, under the same names; all are given.
 */
export function startRequest(handle, prompt, options) {
  const generator = generators.get(handle);
  if (!generator || generator.state.lost) throw new WebGPUPyError('DeviceLost', 'This model was closed; load it again.');
  return new Request(generator, [...prompt], options);
}

/** Tokens whose rows the cache holds: what the next prompt may reuse. */
export function cachedTokens(handle) {
  return generators.get(handle)?.cached.length ?? 0;
}
