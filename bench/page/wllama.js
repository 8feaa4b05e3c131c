// wllama (llama.cpp in WebAssembly) on the same GGUF. Its WebGPU needs shader-f16 and falls back to
// the CPU without a word, so what ran is read from llama.cpp's own log.

const FOLDER = './peers/wllama/';
const MOST_ON_CPU = 128; // tokens of a prompt: one of 1024 takes minutes

/** @param {string} name */
export function wllamaModel(name) {
  let engine, blob;
  const lines = [];
  const keep = (...words) => lines.push(words.join(' '));
  return {
    name,

    async load(_shape, { context, url }) {
      blob ??= await (await fetch(url)).blob();
      const { Wllama } = await import(`${FOLDER}index.js`);
      const logger = { debug: keep, log: keep, warn: keep, error: keep };
      engine = new Wllama({ default: new URL(`${FOLDER}wllama.wasm`, location.href).href }, { logger });
      const started = performance.now();
      await engine.loadModel([blob], { n_ctx: context, n_threads: 1, n_gpu_layers: 999, n_parallel: 1 });
      const onGpu = lines.some((line) => /WebGPU model buffer size/.test(line));
      const cpu = { ran: 'CPU, 1 thread', longest: MOST_ON_CPU };
      return { load_ms: performance.now() - started, ...(onGpu ? { ran: 'WebGPU' } : cpu) };
    },

    async generate(prompt, count) {
      const started = performance.now();
      const at = [];
      // It takes text only; each of these words is one token to it.
      const stream = await engine.createCompletion({
        prompt: ' the'.repeat(prompt.length), max_tokens: count, temperature: 0, top_k: 1, seed: 1, n_probs: 0,
        stream: true, cache_prompt: false, ignore_eos: true,
      });
      for await (const _ of stream) at.push(performance.now());
      const tokens = at.slice(0, count);
      return { first_ms: tokens[0] - started, decode_ms: tokens.at(-1) - tokens[0], tokens };
    },

    release: () => engine.exit(),
  };
}
