// transformers.js on the decoder that ort-decoder.js makes: its files come from memory.

import { decoderGraph, exported } from './ort-decoder.js';
import { FLOAT32 } from './ort-types.js';

const FOLDER = './peers/transformers/';
const NAME = 'bench';
const WEIGHTS = 'model_q4.onnx_data';

function filesOf(shape, context) {
  const { file, weights } = decoderGraph(shape, context, exported(), WEIGHTS, FLOAT32);
  const ends = { bos_token_id: 1, eos_token_id: 2, pad_token_id: 2 };
  const external = { use_external_data_format: { 'model_q4.onnx': 1 }, kv_cache_dtype: { q4: 'float32' } };
  const config = { architectures: ['LlamaForCausalLM'], tie_word_embeddings: true, hidden_act: 'silu', ...shape, ...ends, 'transformers.js_config': external };
  return new Map([
    ['config.json', JSON.stringify(config)],
    ['generation_config.json', JSON.stringify(ends)],
    ['onnx/model_q4.onnx', file],
    [`onnx/${WEIGHTS}`, weights],
  ]);
}

export function transformersModel() {
  let library, model;
  return {
    name: 'transformers.js',

    async load(shape, { context }) {
      library = await import(`${FOLDER}transformers.min.js`);
      const { env } = library;
      const files = filesOf(shape, context);
      Object.assign(env, { allowRemoteModels: false, allowLocalModels: true, useBrowserCache: false, useWasmCache: false });
      env.localModelPath = '/memory/';
      env.backends.onnx.wasm.wasmPaths = new URL(FOLDER, location.href).href;
      env.backends.onnx.wasm.numThreads = 1;
      env.fetch = async (resource, options) => {
        const [, name] = String(resource.url ?? resource).split(`/memory/${NAME}/`);
        if (name === undefined) return fetch(resource, options);
        return files.has(name) ? new Response(files.get(name)) : new Response('', { status: 404 });
      };
      const started = performance.now();
      model = await library.AutoModelForCausalLM.from_pretrained(NAME, { device: 'webgpu', dtype: 'q4' });
      return { load_ms: performance.now() - started, ran: 'WebGPU, random weights' };
    },

    async generate(prompt, count) {
      const dims = [1, prompt.length];
      const ids = new library.Tensor('int64', BigInt64Array.from(prompt, BigInt), dims);
      const mask = new library.Tensor('int64', new BigInt64Array(prompt.length).fill(1n), dims);
      const at = [];
      const streamer = { put: () => at.push(performance.now()), end() {} };
      const started = performance.now();
      // No token ends the answer early.
      await model.generate({ inputs: ids, attention_mask: mask, max_new_tokens: count, do_sample: false, eos_token_id: [-1], streamer });
      // The streamer is handed the prompt first.
      const tokens = at.slice(1);
      return { first_ms: tokens[0] - started, decode_ms: tokens.at(-1) - tokens[0], tokens };
    },

    async release() {
      await model?.dispose();
    },
  };
}
