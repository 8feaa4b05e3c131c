// onnxruntime-web on a decoder of a given shape: the graph its own tools make of one (4-bit linear
// layers and embedding, grouped-query attention with the rotation inside, last row's logits), with
// random weights. Time does not depend on what the weights are.

import { external, initializer, input, model, node, output, real } from './onnx.js';
import { randomBytes } from './random.js';

const MICROSOFT = 'com.microsoft';
const BLOCK = 32;

/** Collects weights in one block of bytes that lies outside the model's file. */
class Weights {
  constructor() {
    this.parts = [];
    this.nbytes = 0;
    this.declared = [];
  }

  add(name, type, dims, data) {
    this.declared.push(external(name, type, dims, this.nbytes, data.byteLength));
    this.parts.push(data);
    this.nbytes += data.byteLength;
    return name;
  }

  whole() {
    const all = new Uint8Array(this.nbytes);
    let at = 0;
    for (const part of this.parts) {
      all.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), at);
      at += part.byteLength;
    }
    return all;
  }
}

const floats = (count, seed) => randomBytes('f32', 4 * count, seed);

function graph(c, capacity) {
  const weights = new Weights();
  const nodes = [];
  const quantized = (name, n, k, dims) => {
    weights.add(`${name}.w`, 'uint8', dims ?? [n, k / BLOCK, BLOCK / 2], randomBytes('codes', (n * k) / 2, weights.parts.length));
    weights.add(`${name}.s`, 'float32', dims ? [n, k / BLOCK] : [(n * k) / BLOCK], randomBytes('f32_scales', (4 * n * k) / BLOCK, weights.parts.length));
  };
  const linear = (x, name, n, k) => {
    quantized(name, n, k);
    nodes.push(node('MatMulNBits', [x, `${name}.w`, `${name}.s`], [name], { K: k, N: n, bits: 4, block_size: BLOCK, accuracy_level: 0 }, MICROSOFT));
    return name;
  };
  const norm = (x, residual, name) => {
    weights.add(`${name}.n`, 'float32', [c.hidden_size], floats(c.hidden_size, weights.parts.length));
    const epsilon = real(c.rms_norm_eps);
    if (!residual) nodes.push(node('SimplifiedLayerNormalization', [x, `${name}.n`], [name], { axis: -1, epsilon, stash_type: 1 }));
    else nodes.push(node('SkipSimplifiedLayerNormalization', [residual, x, `${name}.n`], [name, '', '', `${name}.sum`], { epsilon }, MICROSOFT));
    return [name, residual ? `${name}.sum` : x];
  };
  const { hidden_size: d, intermediate_size: f, num_attention_heads: heads, num_key_value_heads: kv, head_dim: dim, vocab_size: v } = c;
  const cache = [1, kv, capacity, dim];
  const ports = [input('ids', 'int64', [1, 's']), input('last', 'int32', [1]), input('total', 'int32', []), output('logits', 'float32', [1, 1, v])];
  for (const name of ['cos', 'sin']) weights.add(name, 'float32', [capacity, dim / 2], floats((capacity * dim) / 2, weights.parts.length));
  quantized('embedding', v, d, [v, d / 2]);
  nodes.push(node('GatherBlockQuantized', ['embedding.w', 'ids', 'embedding.s'], ['x'], { gather_axis: 0, quantize_axis: 1, block_size: BLOCK, bits: 4 }, MICROSOFT));
  let x = 'x';
  let residual = null;
  for (let l = 0; l < c.num_hidden_layers; l++) {
    const at = (name) => `${l}.${name}`;
    let normed;
    [normed, residual] = norm(x, residual, at('n1'));
    const [q, k, value] = [['q', heads], ['k', kv], ['v', kv]].map(([name, count]) => linear(normed, at(name), count * dim, d));
    nodes.push(node('GroupQueryAttention', [q, k, value, at('pk'), at('pv'), 'last', 'total', 'cos', 'sin'], [at('a'), at('nk'), at('nv')], { num_heads: heads, kv_num_heads: kv, do_rotary: 1, rotary_interleaved: 1, scale: real(1 / Math.sqrt(dim)) }, MICROSOFT));
    ports.push(...['pk', 'pv'].map((name) => input(at(name), 'float32', cache)), ...['nk', 'nv'].map((name) => output(at(name), 'float32', cache)));
    [normed, residual] = norm(linear(at('a'), at('o'), d, heads * dim), residual, at('n2'));
    const gate = linear(normed, at('g'), f, d);
    const up = linear(normed, at('u'), f, d);
    nodes.push(node('Sigmoid', [gate], [at('sigmoid')]), node('Mul', [gate, at('sigmoid')], [at('silu')]), node('Mul', [at('silu'), up], [at('m')]));
    x = linear(at('m'), at('d'), d, f);
  }
  const [last] = norm(x, residual, 'norm');
  const constant = (name, value) => initializer(name, 'int64', [1], BigInt64Array.of(value));
  nodes.push(node('Slice', [last, 'from', 'to', 'axis'], ['row']));
  linear('row', 'logits', v, d);
  const small = [constant('from', -1n), constant('to', 2n ** 62n), constant('axis', 1n)];
  return { file: model([...nodes, ...small, ...weights.declared, ...ports]), weights: weights.whole() };
}

function largest(logits) {
  let best = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i] > logits[best]) best = i;
  return best;
}

/** @param {any} ort @param {number} chunk the most prompt tokens that one run takes */
export function ortModel(ort, chunk) {
  let session, gpu, caches, layers, room;
  return {
    name: 'onnxruntime-web',

    async load(shape, { context }) {
      const { file, weights } = graph(shape, context);
      const started = performance.now();
      session = await ort.InferenceSession.create(file, {
        executionProviders: ['webgpu'],
        externalData: [{ path: 'weights', data: weights }],
        preferredOutputLocation: { logits: 'cpu' },
      });
      gpu = await ort.env.webgpu.device;
      layers = shape.num_hidden_layers;
      room = [1, shape.num_key_value_heads, context, shape.head_dim];
      const size = 4 * room.reduce((a, b) => a * b, 1);
      const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
      caches = Array.from({ length: 2 * layers }, () => gpu.createBuffer({ size, usage }));
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
          const held = ort.Tensor.fromGpuBuffer(buffer, { dataType: 'float32', dims: room });
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
