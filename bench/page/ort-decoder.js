// A decoder of a given shape as onnxruntime's own tools export one: 4-bit linear layers and
// embedding, grouped-query attention with the rotation inside, the last row's logits. Its weights
// are random: time does not depend on what they are.

import { ELEMENT, external, initializer, input, model, node, output, real } from './onnx.js';
import { randomBytes } from './random.js';

const MICROSOFT = 'com.microsoft';
const BLOCK = 32;

/** Collects weights in one block of bytes that lies outside the model's file. */
class Weights {
  constructor(location) {
    this.location = location;
    this.parts = [];
    this.nbytes = 0;
    this.declared = [];
  }

  add(name, type, dims, data) {
    this.declared.push(external(name, type, dims, this.location, this.nbytes, data.byteLength));
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

/**
 * Ports for a cache of fixed size that a run writes in place: `ids`, `last` and `total` (the last
 * position and the tokens so far), `N.pk`, `N.pv` in and `N.nk`, `N.nv` out.
 */
export function inPlace(capacity) {
  return {
    ids: 'ids', past: (l, side) => `${l}.p${side}`, present: (l, side) => `${l}.n${side}`, room: [capacity, capacity],
    prelude: () => [input('last', 'int32', [1]), input('total', 'int32', [])],
  };
}

/** The ports that transformers.js feeds: positions come from the attention mask, caches grow. */
export function exported() {
  const name = { k: 'key', v: 'value' };
  const constant = (label, value, dims) => initializer(label, 'int64', dims, BigInt64Array.of(value));
  return {
    ids: 'input_ids', past: (l, side) => `past_key_values.${l}.${name[side]}`, present: (l, side) => `present.${l}.${name[side]}`, room: ['p', 't'],
    prelude: () => [
      input('attention_mask', 'int64', [1, 't']), constant('one', 1n, [1]), constant('index', 1n, []),
      node('ReduceSum', ['attention_mask', 'one'], ['seen']), node('Sub', ['seen', 'one'], ['last64']), node('Cast', ['last64'], ['last'], { to: ELEMENT.int32 }),
      node('Shape', ['attention_mask'], ['dims']), node('Gather', ['dims', 'index'], ['total64'], { axis: 0 }), node('Cast', ['total64'], ['total'], { to: ELEMENT.int32 }),
    ],
  };
}

/**
 * @param {Record<string, any>} c the shape, in Hugging Face's terms
 * @param {number} context rows of the rotation's tables
 * @param {ReturnType<typeof inPlace>} names of the ports
 * @param {string} location of the weights
 * @param {typeof import('./ort-types.js').FLOAT32} float of activations, scales and norms
 * @returns {{file: Uint8Array, weights: Uint8Array}} the model, and what its `location` names
 */
export function decoderGraph(c, context, names, location, float) {
  const weights = new Weights(location);
  const nodes = [];
  const quantized = (name, n, k, dims) => {
    weights.add(`${name}.w`, 'uint8', dims ?? [n, k / BLOCK, BLOCK / 2], randomBytes('codes', (n * k) / 2, weights.parts.length));
    weights.add(`${name}.s`, float.name, dims ? [n, k / BLOCK] : [(n * k) / BLOCK], float.scales((n * k) / BLOCK, weights.parts.length));
  };
  const linear = (x, name, n, k) => {
    quantized(name, n, k);
    nodes.push(node('MatMulNBits', [x, `${name}.w`, `${name}.s`], [name], { K: k, N: n, bits: 4, block_size: BLOCK, accuracy_level: 0 }, MICROSOFT));
    return name;
  };
  const norm = (x, residual, name) => {
    weights.add(`${name}.n`, float.name, [c.hidden_size], float.values(c.hidden_size, weights.parts.length));
    const epsilon = real(c.rms_norm_eps);
    if (!residual) nodes.push(node('SimplifiedLayerNormalization', [x, `${name}.n`], [name], { axis: -1, epsilon, stash_type: 1 }));
    else nodes.push(node('SkipSimplifiedLayerNormalization', [residual, x, `${name}.n`], [name, '', '', `${name}.sum`], { epsilon }, MICROSOFT));
    return [name, residual ? `${name}.sum` : x];
  };
  const { hidden_size: d, intermediate_size: f, num_attention_heads: heads, num_key_value_heads: kv, head_dim: dim, vocab_size: v } = c;
  const [before, after] = names.room.map((rows) => [1, kv, rows, dim]);
  const ports = [input(names.ids, 'int64', [1, 's']), output('logits', float.name, [1, 1, v]), ...names.prelude()];
  for (const name of ['cos', 'sin']) weights.add(name, float.name, [context, dim / 2], float.values((context * dim) / 2, weights.parts.length));
  quantized('embedding', v, d, [v, d / 2]);
  nodes.push(node('GatherBlockQuantized', ['embedding.w', names.ids, 'embedding.s'], ['x'], { gather_axis: 0, quantize_axis: 1, block_size: BLOCK, bits: 4 }, MICROSOFT));
  let x = 'x';
  let residual = null;
  for (let l = 0; l < c.num_hidden_layers; l++) {
    const at = (name) => `${l}.${name}`;
    let normed;
    [normed, residual] = norm(x, residual, at('n1'));
    const [q, k, value] = [['q', heads], ['k', kv], ['v', kv]].map(([name, count]) => linear(normed, at(name), count * dim, d));
    nodes.push(node('GroupQueryAttention', [q, k, value, names.past(l, 'k'), names.past(l, 'v'), 'last', 'total', 'cos', 'sin'], [at('a'), names.present(l, 'k'), names.present(l, 'v')], { num_heads: heads, kv_num_heads: kv, do_rotary: 1, rotary_interleaved: 1, scale: real(1 / Math.sqrt(dim)) }, MICROSOFT));
    for (const side of 'kv') ports.push(input(names.past(l, side), float.name, before), output(names.present(l, side), float.name, after));
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
