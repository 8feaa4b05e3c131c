// onnxruntime-web's WebGPU on a decoder of a given shape, its caches on the GPU and written in place.

import { decoderGraph, inPlace } from './ort-decoder.js';

function largest(logits) {
  let best = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i] > logits[best]) best = i;
  return best;
}

/**
 * @param {any} ort @param {string} name @param {typeof import('./ort-types.js').FLOAT32} float
 * @param {number} chunk the most prompt tokens that one run takes
 */
export function ortModel(ort, name, float, chunk) {
  let session, gpu, caches, room;
  return {
    name,

    async load(shape, { context }) {
      const { file, weights } = decoderGraph(shape, context, inPlace(context), 'weights', float);
      const started = performance.now();
      session = await ort.InferenceSession.create(file, {
        executionProviders: ['webgpu'],
        externalData: [{ path: 'weights', data: weights }],
        preferredOutputLocation: { logits: 'cpu' },
      });
      gpu = await ort.env.webgpu.device;
      room = [1, shape.num_key_value_heads, context, shape.head_dim];
      const size = float.nbytes * room.reduce((a, b) => a * b, 1);
      const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
      caches = Array.from({ length: 2 * shape.num_hidden_layers }, () => gpu.createBuffer({ size, usage }));
      return { load_ms: performance.now() - started, ran: 'WebGPU, random weights' };
    },

    async generate(prompt, count) {
      const step = async (ids, total) => {
        const feeds = {
          ids: new ort.Tensor('int64', BigInt64Array.from(ids, BigInt), [1, ids.length]),
          last: new ort.Tensor('int32', Int32Array.of(total - 1), [1]),
          total: new ort.Tensor('int32', Int32Array.of(total), []),
        };
        const fetches = { logits: null };
        caches.forEach((buffer, i) => {
          const [at, side] = [i >> 1, 'kv'[i % 2]];
          const held = ort.Tensor.fromGpuBuffer(buffer, { dataType: float.name, dims: room });
          feeds[`${at}.p${side}`] = held;
          fetches[`${at}.n${side}`] = held;
        });
        const { logits } = await session.run(feeds, fetches);
        return largest(logits.data);
      };
      const started = performance.now();
      let next;
      for (let at = 0; at < prompt.length; at += chunk) {
        const part = prompt.slice(at, at + chunk);
        next = await step(part, at + part.length);
      }
      const first = performance.now();
      const tokens = [next];
      while (tokens.length < count) tokens.push(await step([tokens.at(-1)], prompt.length + tokens.length));
      return { first_ms: first - started, decode_ms: performance.now() - first, tokens };
    },

    async release() {
      await session?.release();
      caches?.forEach((buffer) => buffer.destroy());
    },
  };
}
