// The kernel suite's cases as ONNX graphs of onnxruntime's own operators, one node of ours a node
// or two of theirs, with operands of their own.

import { initializer, input, model, node, output, real } from './onnx.js';
import { randomBytes, randomIndices } from './random.js';

const MICROSOFT = 'com.microsoft';

/**
 * @typedef {{file: () => Uint8Array, feeds: [string, string, number[], ArrayBufferView | null][],
 *   results: [string, number[]][], host: [string, string, number[], ArrayBufferView][],
 *   shared?: [string, string][]}} OrtGraph
 *   feeds: name, type, dims, bytes, on the GPU; host: the same in memory; results: name and dims;
 *   shared: an output that is written into an input's buffer
 */

const numbers = (count) => Array.from({ length: count }, (_, i) => i);

function linear(c, float, accuracy) {
  const groups = c.k / 32;
  const nodes = () => numbers(c.repeat).flatMap((i) => [
    initializer(`w${i}`, 'uint8', [c.n, groups, 16], randomBytes('codes', (c.n * c.k) / 2, 2 * i + 1)),
    initializer(`s${i}`, float.name, [c.n * groups], float.scales(c.n * groups, 2 * i + 2)),
    node('MatMulNBits', ['x', `w${i}`, `s${i}`], [`y${i}`], { K: c.k, N: c.n, bits: 4, block_size: 32, accuracy_level: accuracy }, MICROSOFT),
    output(`y${i}`, float.name, ['m', c.n]),
  ]);
  return {
    file: () => model([...nodes(), input('x', float.name, ['m', c.k])]),
    feeds: [['x', float.name, [c.m, c.k], float.values(c.m * c.k, 1)]],
    results: numbers(c.repeat).map((i) => [`y${i}`, [c.m, c.n]]),
  };
}

function embedding(c, float) {
  const parts = () => [
    initializer('w', 'uint8', [c.n, c.k / 2], randomBytes('codes', (c.n * c.k) / 2, 1)),
    initializer('s', float.name, [c.n, c.k / 32], float.scales((c.n * c.k) / 32, 2)),
    ...numbers(c.repeat).flatMap((i) => [
      node('GatherBlockQuantized', ['w', `i${i}`, 's'], [`y${i}`], { gather_axis: 0, quantize_axis: 1, block_size: 32, bits: 4 }, MICROSOFT),
      input(`i${i}`, 'int32', ['m']),
      output(`y${i}`, float.name, ['m', c.k]),
    ]),
  ];
  return {
    file: () => model(parts()),
    feeds: numbers(c.repeat).map((i) => [`i${i}`, 'int32', [c.m], randomIndices(c.m, c.n, i + 1)]),
    results: numbers(c.repeat).map((i) => [`y${i}`, [c.m, c.k]]),
  };
}

function rope(c, float) {
  const sides = [['q', c.heads], ['k', c.kv]];
  const each = numbers(c.repeat).flatMap((i) => sides.map(([side, heads]) => [`${side}${i}`, [1, heads, c.m, c.dim]]));
  const parts = [
    initializer('cos', float.name, [c.m, c.dim / 2], float.values((c.m * c.dim) / 2, 1)),
    initializer('sin', float.name, [c.m, c.dim / 2], float.values((c.m * c.dim) / 2, 2)),
    input('positions', 'int64', [1, 'm']),
    ...each.flatMap(([name, dims]) => [
      node('RotaryEmbedding', [name, 'positions', 'cos', 'sin'], [`y${name}`], { interleaved: 1 }, MICROSOFT),
      input(name, float.name, dims),
      output(`y${name}`, float.name, dims),
    ]),
  ];
  const positions = BigInt64Array.from({ length: c.m }, (_, i) => BigInt(i));
  return {
    file: () => model(parts),
    feeds: [['positions', 'int64', [1, c.m], positions], ...each.map(([name, dims], i) => [name, float.name, dims, float.values(dims[1] * c.m * c.dim, i + 3)])],
    results: each.map(([name, dims]) => [`y${name}`, dims]),
  };
}

function rmsNorm(c, float) {
  const parts = [
    initializer('w', float.name, [c.k], float.values(c.k, 1)),
    ...numbers(c.repeat).flatMap((i) => [
      node('SimplifiedLayerNormalization', [`x${i}`, 'w'], [`y${i}`], { axis: -1, epsilon: real(1e-5), stash_type: 1 }),
      input(`x${i}`, float.name, [c.m, c.k]),
      output(`y${i}`, float.name, [c.m, c.k]),
    ]),
  ];
  return {
    file: () => model(parts),
    feeds: numbers(c.repeat).map((i) => [`x${i}`, float.name, [c.m, c.k], float.values(c.m * c.k, i + 2)]),
    results: numbers(c.repeat).map((i) => [`y${i}`, [c.m, c.k]]),
  };
}

// Past and present share a buffer of `capacity` rows, as a cache that never moves.
function attention(c, float) {
  const cache = [1, c.kv, c.capacity, c.dim];
  const parts = [
    ...[['q', c.heads], ['k', c.kv], ['v', c.kv]].map(([name, heads]) => input(name, float.name, [1, c.m, heads * c.dim])),
    input('last', 'int32', [1]),
    input('total', 'int32', []),
    ...numbers(c.repeat).flatMap((i) => [
      node('GroupQueryAttention', ['q', 'k', 'v', `pk${i}`, `pv${i}`, 'last', 'total'], [`y${i}`, `nk${i}`, `nv${i}`], { num_heads: c.heads, kv_num_heads: c.kv, do_rotary: 0, scale: real(1 / Math.sqrt(c.dim)) }, MICROSOFT),
      ...['pk', 'pv'].map((name) => input(`${name}${i}`, float.name, cache)),
      output(`y${i}`, float.name, [1, c.m, c.heads * c.dim]),
      ...['nk', 'nv'].map((name) => output(`${name}${i}`, float.name, cache)),
    ]),
  ];
  const rows = [['q', c.heads], ['k', c.kv], ['v', c.kv]].map(([name, heads], i) => [name, float.name, [1, c.m, heads * c.dim], float.values(c.m * heads * c.dim, i + 1)]);
  const caches = numbers(c.repeat).flatMap((i) => ['pk', 'pv'].map((name, side) => [`${name}${i}`, float.name, cache, float.values(c.kv * c.capacity * c.dim, 4 + 2 * i + side)]));
  return {
    file: () => model(parts),
    feeds: [...rows, ...caches],
    host: [['last', 'int32', [1], Int32Array.of(c.context - 1)], ['total', 'int32', [], Int32Array.of(c.context)]],
    results: numbers(c.repeat).map((i) => [`y${i}`, [1, c.m, c.heads * c.dim]]),
    shared: numbers(c.repeat).flatMap((i) => [[`nk${i}`, `pk${i}`], [`nv${i}`, `pv${i}`]]),
  };
}

const BUILD = {
  'webgpu_py.linear_q4': linear,
  'et_vk.linear_q4gsw': linear,
  'webgpu_py.embedding_q4': embedding,
  'et_vk.embedding_q4gsw': embedding,
  'et_vk.apply_rotary_emb': rope,
  'et_vk.rms_norm': rmsNorm,
  'webgpu_py.attention': attention,
};

/**
 * @returns {OrtGraph | undefined} the graph of a case, if the library has such an operator; `file`
 *   is made when it is asked for, as weights are large
 */
export const ortGraph = (one, float, accuracy) => BUILD[one.op]?.(one, float, accuracy);
