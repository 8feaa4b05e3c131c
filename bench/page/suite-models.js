// Whole models, ours and the peers' in turns: load, first token of a prompt, milliseconds a token.

import { summary } from './measure.js';

const ROPE = { rope_theta: 500000, rope_scaling: { rope_type: 'llama3', factor: 32, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8192 } };

/** Hugging Face's terms, as far as a decoder's shape and speed depend on them. */
export const LLAMA1B = {
  model_type: 'llama', hidden_size: 2048, intermediate_size: 8192, num_hidden_layers: 16, num_attention_heads: 32,
  num_key_value_heads: 8, head_dim: 64, vocab_size: 128256, max_position_embeddings: 131072, rms_norm_eps: 1e-5, ...ROPE,
};
export const SMOLLM2 = {
  model_type: 'llama', hidden_size: 576, intermediate_size: 1536, num_hidden_layers: 30, num_attention_heads: 9,
  num_key_value_heads: 3, head_dim: 64, vocab_size: 49152, max_position_embeddings: 8192, rms_norm_eps: 1e-5, rope_theta: 100000,
};

const SMOLLM2_FILE = 'models/SmolLM2-135M-Instruct.Q4_1.gguf';

/** What each suite runs: a model, prompts of so many tokens, and the tokens decoded after each. */
export function modelRuns(suite, { software, quick }) {
  const contexts = { model: [128, 1024, 4096], llama1b: [128, 512, 1024, 2048, 4096, 8192] }[suite];
  const few = quick ? contexts.slice(0, 1) : contexts;
  const prompts = software ? { model: [32], llama1b: [8] }[suite] : few;
  const tokens = software ? { model: 5, llama1b: 3 }[suite] : 64;
  return { prompts, tokens, context: prompts.at(-1) + tokens + 16 };
}

/** Any text will do: time does not depend on which tokens they are. */
export const promptOf = (length, vocabulary) => Array.from({ length }, (_, i) => 1000 + ((i * 7919) % (vocabulary - 2000)));

const OURS = 'webgpu_py';

/** Milliseconds by engine and case, and what went wrong, by engine. */
class Book {
  constructor() {
    this.samples = new Map();
    this.failed = new Map();
    this.firsts = new Map();
    this.facts = {};
  }

  add(engine, key, ms) {
    const at = `${engine} ${key}`;
    this.samples.set(at, [...(this.samples.get(at) ?? []), ms]);
  }

  summary(engine, key) {
    const found = this.samples.get(`${engine} ${key}`);
    return found ? summary(found) : null;
  }

  /** What `act` gives, or null where it throws: the engine is then left alone. */
  async attempt(engine, act) {
    if (this.failed.has(engine)) return null;
    try {
      return await act();
    } catch (error) {
      this.failed.set(engine, error.message);
      return null;
    }
  }
}

/**
 * @param {'model'|'llama1b'} suite
 * @param {any[]} peers engines: {name, load(shape, run), generate(prompt, tokens), release()}
 * @param {any} context see main.js
 */
export async function runModels(suite, peers, context) {
  const { ours, log, keep } = context;
  const name = suite === 'model' ? 'smollm2' : 'llama1b';
  const shape = suite === 'model' ? SMOLLM2 : LLAMA1B;
  const run = { ...modelRuns(suite, context), name, url: new URL(SMOLLM2_FILE, location.href).href };
  const cold = `${name}/load_and_answer/${run.prompts[0]}`;
  const cases = [`${name}/load`, cold, ...run.prompts.flatMap((n) => [`${name}/first_token/${n}`, `${name}/decode/${n}`])].filter(keep);
  if (!cases.length) return;
  if (context.late()) {
    context.leaveOut(cases);
    return;
  }
  if (suite === 'model' && !(await fetch(run.url, { method: 'HEAD' })).ok) {
    await log(`${suite}: not run, there is no ${SMOLLM2_FILE} here`);
    return;
  }
  const mine = {
    name: OURS,
    load: () => ours.call('load', { context: run.context, steps: [1, ...run.prompts], ...(suite === 'model' ? { url: run.url } : { config: shape }) }),
    generate: (prompt, tokens) => ours.call('generate', { prompt, tokens }),
    release: () => ours.call('release'),
  };
  const book = new Book();
  const engines = [mine, ...peers];
  for (const engine of engines) {
    const facts = await book.attempt(engine.name, () => engine.load(shape, run));
    if (facts) book.add(engine.name, `${name}/load`, facts.load_ms);
    book.facts[engine.name] = facts;
    await log(`${engine.name} ${name}: ${book.failed.get(engine.name) ?? `loaded ${JSON.stringify(facts)}`}`);
  }
  for (const length of run.prompts) {
    if (context.late()) context.leaveOut(cases.filter((key) => key.endsWith(`/${length}`)));
    else await answer(engines, length, shape, run, book, context);
  }
  for (const { name: engine } of engines) {
    // The first of all answers, with what is compiled on its way.
    const first = book.firsts.get(engine);
    if (first) book.add(engine, cold, book.facts[engine].load_ms + first);
  }
  for (const engine of engines) await book.attempt(engine.name, () => engine.release());
  for (const key of cases.filter((key) => !context.leftOut(key))) {
    const answered = peers.filter(({ name: peer }) => book.failed.has(peer) || book.summary(peer, key));
    for (const peer of answered.length ? answered : [null]) await context.row(rowOf(suite, key, peer?.name, book, context));
    const told = engines.map((e) => `${e.name} ${book.summary(e.name, key)?.ms ?? book.failed.get(e.name) ?? '-'} ms`);
    await log(`${key}  ${told.join('  ')}`);
  }
  await overheads(name, cases, book, context);
}

// Answers of all engines in turns. The first compiles what is still to be compiled, and is left out
// where there is time for others.
async function answer(engines, length, shape, { name, tokens: count }, book, { software, quick, raiseClock }) {
  const rounds = software ? 1 : quick ? 2 : 4;
  for (let round = 0; round < rounds; round++) {
    for (const engine of engines) {
      if (length > (book.facts[engine.name]?.longest ?? Infinity)) continue;
      const prompt = promptOf(length, shape.vocab_size);
      await raiseClock();
      const found = await book.attempt(engine.name, () => engine.generate(prompt, count));
      if (!found) continue;
      const { first_ms, decode_ms, tokens, crossings } = found;
      if (!book.firsts.has(engine.name)) book.firsts.set(engine.name, first_ms);
      if (!round && rounds > 1) continue;
      book.add(engine.name, `${name}/first_token/${length}`, first_ms);
      book.add(engine.name, `${name}/decode/${length}`, decode_ms / (tokens.length - 1));
      if (crossings !== undefined) book.add(engine.name, `${name}/crossings_a_token`, crossings / (tokens.length - 1));
    }
  }
}

function rowOf(suite, key, peer, book, { versions }) {
  const own = book.summary(OURS, key);
  const theirs = peer ? book.summary(peer, key) : null;
  const notes = [OURS, peer].filter((n) => book.failed.has(n)).map((n) => `${n}: ${book.failed.get(n)}`);
  const [, kind, length] = key.split('/');
  const tokens = { first_token: Number(length), decode: 1 }[kind];
  return {
    suite, case: key,
    ours: OURS, ours_ms: own?.ms ?? null,
    ...(tokens && own && { ours_ran: book.facts[OURS].ran[kind === 'decode' ? 1 : length] }),
    peer: peer ?? null, peer_version: peer ? versions[peer.split(' ')[0]] : null, peer_ms: theirs?.ms ?? null,
    ratio: own && theirs ? theirs.ms / own.ms : null, share_of_limit: null,
    ours_spread: own?.spread ?? null, peer_spread: theirs?.spread ?? null,
    ...(tokens && { ours_per_s: own && (1000 * tokens) / own.ms, peer_per_s: theirs && (1000 * tokens) / theirs.ms }),
    ...(book.facts[peer]?.ran && { peer_ran: book.facts[peer].ran }),
    ...(notes.length && { note: notes.join('; ') }),
  };
}

async function overheads(name, cases, book, context) {
  const facts = book.facts[OURS];
  if (!facts || !cases.includes(`${name}/load`)) return;
  const crossings = book.summary(OURS, `${name}/crossings_a_token`);
  const counted = [
    ['dispatches_a_token', facts.dispatches], ['pipelines', facts.pipelines],
    ...(crossings ? [['crossings_a_token', crossings.ms]] : []),
  ];
  const none = { peer: null, peer_version: null, peer_ms: null, ratio: null, share_of_limit: null };
  for (const [what, value] of counted) {
    await context.row({ suite: 'overhead', case: `${name}/${what}`, ours: OURS, ours_ms: null, ...none, value });
  }
  await context.row({ suite: 'overhead', case: `${name}/pipelines_ms`, ours: OURS, ours_ms: facts.pipelines_ms, ...none });
}
