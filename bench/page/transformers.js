// transformers.js on the decoder that ort-decoder.js makes: its files come from memory.

import { decoderGraph, exported } from './ort-decoder.js';

const FOLDER = './peers/transformers/';
const NAME = 'bench';
// Its name for a format, which is part of the files' names. One configuration is for all of them, as
// it reads that of a folder once.
const FORMATS = { float32: 'q4', float16: 'q4f16' };
const formats = Object.entries(FORMATS);
const CONFIG = {
  use_external_data_format: Object.fromEntries(formats.map(([, format]) => [`model_${format}.onnx`, 1])),
  kv_cache_dtype: Object.fromEntries(formats.map(([float, format]) => [format, float])),
};

function filesOf(shape, context, float) {
  const model = `model_${FORMATS[float.name]}.onnx`;
  const { file, weights } = decoderGraph(shape, context, exported(), `${model}_data`, float);
  const ends = { bos_token_id: 1, eos_token_id: 2, pad_token_id: 2 };
  const config = { architectures: ['LlamaForCausalLM'], tie_word_embeddings: true, hidden_act: 'silu', ...shape, ...ends, 'transformers.js_config': CONFIG };
  return new Map([
    ['config.json', JSON.stringify(config)],
    ['generation_config.json', JSON.stringify(ends)],
    [`onnx/${model}`, file],
    [`onnx/${model}_data`, weights],
  ]);
}

/** @param {string} name @param {typeof import('./ort-types.js').FLOAT32} float */
export function transformersModel(name, float) {
  let library, model;
  return {
    name,

    async load(shape, { context }) {
      library = await import(`${FOLDER}transformers.min.js`);
      const { env } = library;
      const files = filesOf(shape, context, float);
      Object.assign(env, { allowRemoteModels: false, allowLocalModels: true, useBrowserCache: false, useWasmCache: false });
      env.localModelPath = '/memory/';
      env.backends.onnx.wasm.wasmPaths = new URL(FOLDER, location.href).href;
      env.backends.onnx.wasm.numThreads = 1;
      env.fetch = async (resource, options) => {
        const [, path] = String(resource.url ?? resource).split(`/memory/${NAME}/`);
        if (path === undefined) return fetch(resource, options);
        return files.has(path) ? new Response(files.get(path)) : new Response('', { status: 404 });
      };
      const started = performance.now();
      model = await library.AutoModelForCausalLM.from_pretrained(NAME, { device: 'webgpu', dtype: FORMATS[float.name] });
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
