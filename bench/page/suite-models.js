// Whole models, ours and the peers' in turns: load, first token of a prompt, milliseconds a token.

import { median, summary } from './measure.js';

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

/**
 * @param {'model'|'llama1b'} suite
 * @param {any[]} peers engines: {name, load(shape, run), generate(prompt, tokens), release()}
 * @param {any} context see main.js
 */
export async function runModels(suite, peers, context) {
  const { ours, log, keep, quick, software } = context;
  const name = suite === 'model' ? 'smollm2' : 'llama1b';
  const shape = suite === 'model' ? SMOLLM2 : LLAMA1B;
  const run = modelRuns(suite, context);
  const cases = run.prompts.flatMap((n) => [`${name}/first_token/${n}`, `${name}/decode/${n}`]);
  if (![`${name}/load`, ...cases].some(keep) || context.late(`${name}/load`)) return;
  const url = new URL(SMOLLM2_FILE, location.href).href;
  if (suite === 'model' && !(await fetch(url, { method: 'HEAD' })).ok) {
    await log(`${suite}: not run, there is no ${SMOLLM2_FILE} here`);
    return;
  }
  const mine = {
    name: 'webgpu_py',
    load: () => ours.call('load', { context: run.context, ...(suite === 'model' ? { url } : { config: shape }) }),
    generate: (prompt, tokens) => ours.call('generate', { prompt, tokens }),
    release: () => ours.call('release'),
  };
  const failed = new Map();
  const found = new Map();
  const add = (engine, key, ms) => found.set(`${engine} ${key}`, [...(found.get(`${engine} ${key}`) ?? []), ms]);
  const facts = {};
  const engines = [];
  for (const engine of [mine, ...peers]) {
    try {
      facts[engine.name] = await engine.load(shape, { ...run, url });
      add(engine.name, `${name}/load`, facts[engine.name].load_ms);
      engines.push(engine);
      await log(`${engine.name} ${name}: loaded ${JSON.stringify(facts[engine.name])}`);
    } catch (error) {
      failed.set(engine.name, error.message);
      await log(`${engine.name} ${name}: ${error.message}`);
    }
  }
  // The first answer compiles what is still to be compiled, and is left out.
  const rounds = software ? 1 : quick ? 2 : 6;
  for (const length of run.prompts) {
    if (context.late(`${name}/first_token/${length}`)) continue;
    for (let round = 0; round < rounds; round++) {
      for (const engine of engines.filter((e) => !failed.has(e.name))) {
        try {
          const prompt = promptOf(length, shape.vocab_size);
          const { first_ms, decode_ms, tokens, crossings } = await engine.generate(prompt, run.tokens);
          if (!round && !software) continue;
          add(engine.name, `${name}/first_token/${length}`, first_ms);
          add(engine.name, `${name}/decode/${length}`, decode_ms / (tokens.length - 1));
          if (crossings !== undefined) add(engine.name, `${name}/crossings`, crossings / (tokens.length - 1));
        } catch (error) {
          failed.set(engine.name, error.message);
        }
      }
    }
  }
  for (const engine of engines) await engine.release();

  const crossings = found.get(`webgpu_py ${name}/crossings`);
  for (const key of [`${name}/load`, ...cases].filter(keep)) {
    const own = found.has(`webgpu_py ${key}`) ? summary(found.get(`webgpu_py ${key}`)) : null;
    for (const peer of peers.length ? peers : [null]) {
      const theirs = peer && found.has(`${peer.name} ${key}`) ? summary(found.get(`${peer.name} ${key}`)) : null;
      const notes = ['webgpu_py', peer?.name].filter((n) => failed.has(n)).map((n) => `${n}: ${failed.get(n)}`);
      const length = Number(key.split('/').at(-1));
      const done = key.includes('/first_token/') ? length : key.includes('/decode/') ? 1 : null;
      await context.row({
        suite, case: key, ours: 'webgpu_py', ours_ms: own?.ms ?? null,
        peer: peer?.name ?? null, peer_version: peer && context.versions[peer.name.split(' ')[0]], peer_ms: theirs?.ms ?? null,
        ratio: own && theirs ? theirs.ms / own.ms : null, share_of_limit: null,
        ours_spread: own?.spread ?? null, peer_spread: theirs?.spread ?? null,
        ...(done && { ours_per_s: own && (1000 * done) / own.ms, peer_per_s: theirs && (1000 * done) / theirs.ms }),
        ...(peer && facts[peer.name]?.ran && { peer_ran: facts[peer.name].ran }),
        ...(notes.length && { note: notes.join('; ') }),
      });
      await log(`${key}  ${own?.ms ?? '-'} ms  ${peer?.name ?? ''} ${theirs?.ms ?? '-'} ms`);
    }
  }
  const extra = { [`${name}/crossings_a_token`]: crossings && median(crossings), [`${name}/dispatches_a_token`]: facts.webgpu_py?.dispatches, [`${name}/pipelines`]: facts.webgpu_py?.pipelines, [`${name}/pipelines_ms`]: facts.webgpu_py?.pipelines_ms };
  for (const [key, value] of Object.entries(extra)) {
    if (value === undefined || !keep(`${name}/load`)) continue;
    await context.row({
      suite: 'overhead', case: key, ours: 'webgpu_py', ours_ms: key.endsWith('_ms') ? value : null, peer: null, peer_version: null,
      peer_ms: null, ratio: null, share_of_limit: null, value,
    });
  }
}
