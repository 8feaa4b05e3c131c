// `chat.completions` in OpenAI's shape, over one loaded model.
import { WebGPUPyError } from './protocol.js';

/** Parameter -> option of the engine; what is neither here nor in IGNORED is refused by name. */
const OPTIONS = {
  max_tokens: 'max_tokens', max_completion_tokens: 'max_tokens', temperature: 'temperature', top_p: 'top_p', top_k: 'top_k',
  min_p: 'min_p', presence_penalty: 'presence_penalty', frequency_penalty: 'frequency_penalty',
  repetition_penalty: 'repetition_penalty', seed: 'seed', stop: 'stop', logit_bias: 'logit_bias', tools: 'tools',
  chat_template_kwargs: 'chat_template_kwargs',
};
const IGNORED = ['model', 'messages', 'stream', 'stream_options', 'n', 'user', 'store', 'metadata', 'logprobs', 'top_logprobs'];

/** @param {any} llm `chat.completions` of one model */
export function completions(llm) {
  return {
    /** @param {any} request @param {{signal?: AbortSignal}} [options] */
    async create(request, { signal } = {}) {
      const stop = new AbortController();
      const signals = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
      const stream = llm.chat((request.messages ?? []).map(known), { signal: signals, ...engineOptions(request) });
      const head = { id: `chatcmpl-${crypto.randomUUID()}`, created: Math.floor(Date.now() / 1000), model: llm.name };
      // As OpenAI's client has it: `controller` ends the iteration, and not with an error.
      return request.stream ? Object.assign(chunks(stream, head, request, stop.signal), { controller: stop }) : whole(stream, head, request);
    },
  };
}

/** @param {any} message OpenAI's later name for a role that templates know */
const known = (message) => (message.role === 'developer' ? { ...message, role: 'system' } : message);

/** @param {any} request */
function engineOptions(request) {
  const unknown = Object.keys(request).filter((name) => !(name in OPTIONS) && !IGNORED.includes(name));
  if (unknown.length) throw new WebGPUPyError('FeatureMissing', `${unknown.join(', ')}: not a parameter of this engine; it takes ${Object.keys(OPTIONS).join(', ')}.`);
  if ((request.n ?? 1) !== 1) throw new WebGPUPyError('FeatureMissing', `n=${request.n}: one answer at a time.`);
  const found = Object.entries(OPTIONS).flatMap(([name, option]) => (request[name] == null ? [] : [[option, request[name]]]));
  // A seed of the engine's is the same every time, OpenAI's is another.
  const seed = Math.floor(Math.random() * 2 ** 32);
  return { seed, ...Object.fromEntries(found), ...(request.logprobs && { top_logprobs: request.top_logprobs ?? 0 }) };
}

const reason = (/** @type {string | null} */ finish) => (finish === 'length' ? 'length' : 'stop');

const usage = (/** @type {any} */ stream) => ({
  prompt_tokens: stream.promptTokens, completion_tokens: stream.tokens.length, total_tokens: stream.promptTokens + stream.tokens.length,
});

/** @param {any} stream @param {any} head @param {any} request @param {AbortSignal} stopped */
async function* chunks(stream, head, request, stopped) {
  const chunk = (/** @type {any} */ delta, /** @type {any} */ rest = {}) => ({
    ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...rest }],
  });
  yield chunk({ role: 'assistant', content: '' });
  try {
    for await (const piece of stream.pieces()) {
      if (piece.text || request.logprobs) yield chunk({ content: piece.text }, request.logprobs ? { logprobs: { content: logprobsOf(piece) } } : {});
    }
  } catch (error) {
    if (stopped.aborted) return;
    throw error;
  }
  yield chunk({}, { finish_reason: reason(stream.finishReason) });
  if (request.stream_options?.include_usage) yield { ...head, object: 'chat.completion.chunk', choices: [], usage: usage(stream) };
}

/** @param {any} stream @param {any} head @param {any} request */
async function whole(stream, head, request) {
  let content = '';
  const logprobs = [];
  for await (const piece of stream.pieces()) {
    content += piece.text;
    logprobs.push(...logprobsOf(piece));
  }
  const choice = { index: 0, message: { role: 'assistant', content }, logprobs: request.logprobs ? { content: logprobs } : null, finish_reason: reason(stream.finishReason) };
  return { ...head, object: 'chat.completion', choices: [choice], usage: usage(stream) };
}

/** @param {any} piece */
function logprobsOf({ tokens, token_texts: texts, logprobs, top_logprobs: top }) {
  const entry = (/** @type {string} */ token, /** @type {number} */ id, /** @type {number} */ logprob) => ({ token, token_id: id, logprob, bytes: bytesOf(token) });
  const others = (top ?? []).map((/** @type {[number, number, string]} */ [id, logprob, token]) => entry(token, id, logprob));
  return tokens.map((/** @type {number} */ id, /** @type {number} */ i) => ({ ...entry(texts[i], id, logprobs[i]), top_logprobs: others }));
}

/** @param {string} token @returns {number[] | null} null for a part of a character */
const bytesOf = (token) => (token.includes('\ufffd') ? null : [...new TextEncoder().encode(token)]);
