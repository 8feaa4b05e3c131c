// `chat.completions` in OpenAI's shape, over one loaded model.
import { WebGPUPyError } from './protocol.js';

/** Parameter -> option of the engine; what is neither here nor in IGNORED is refused by name. */
const OPTIONS = {
  max_tokens: 'max_tokens', max_completion_tokens: 'max_tokens', temperature: 'temperature', top_p: 'top_p', top_k: 'top_k',
  min_p: 'min_p', presence_penalty: 'presence_penalty', frequency_penalty: 'frequency_penalty',
  repetition_penalty: 'repetition_penalty', seed: 'seed', stop: 'stop', logit_bias: 'logit_bias', tools: 'tools',
};
const IGNORED = ['model', 'messages', 'stream', 'stream_options', 'n', 'user', 'store', 'metadata', 'logprobs', 'top_logprobs'];

/** @param {any} llm `chat.completions` of one model */
export function completions(llm) {
  return {
    /** @param {any} request @param {{signal?: AbortSignal}} [options] */
    async create(request, { signal } = {}) {
      const stream = llm.chat(request.messages, { signal, ...engineOptions(request) });
      const head = { id: `chatcmpl-${crypto.randomUUID()}`, created: Math.floor(Date.now() / 1000), model: llm.name };
      return request.stream ? chunks(stream, head, request) : whole(stream, head, request);
    },
  };
}

/** @param {any} request */
function engineOptions(request) {
  const unknown = Object.keys(request).filter((name) => !(name in OPTIONS) && !IGNORED.includes(name));
  if (unknown.length) throw new WebGPUPyError('FeatureMissing', `${unknown.join(', ')}: not a parameter of this engine; it takes ${Object.keys(OPTIONS).join(', ')}.`);
  if ((request.n ?? 1) !== 1) throw new WebGPUPyError('FeatureMissing', `n=${request.n}: one answer at a time.`);
  const found = Object.entries(OPTIONS).flatMap(([name, option]) => (request[name] == null ? [] : [[option, request[name]]]));
  return { ...Object.fromEntries(found), ...(request.logprobs && { top_logprobs: request.top_logprobs ?? 0 }) };
}

const reason = (/** @type {string | null} */ finish) => (finish === 'length' ? 'length' : 'stop');

const usage = (/** @type {any} */ stream) => ({
  prompt_tokens: stream.promptTokens, completion_tokens: stream.tokens.length, total_tokens: stream.promptTokens + stream.tokens.length,
});

/** @param {any} stream @param {any} head @param {any} request */
async function* chunks(stream, head, request) {
  const chunk = (/** @type {any} */ delta, /** @type {any} */ rest = {}) => ({
    ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...rest }],
  });
  yield chunk({ role: 'assistant', content: '' });
  for await (const piece of stream.pieces()) {
    if (piece.text || request.logprobs) yield chunk({ content: piece.text }, request.logprobs ? { logprobs: { content: logprobsOf(piece) } } : {});
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
function logprobsOf({ text, tokens, logprobs }) {
  return tokens.map((/** @type {number} */ token, /** @type {number} */ i) => ({ token: i ? '' : text, token_id: token, logprob: logprobs[i] }));
}
