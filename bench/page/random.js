// Random operands as sources of the JavaScript half: made from one pool, never kept whole.

import { addSource } from './js/bridge.js';

const POOL_WORDS = 1 << 21;

function randomWords(seed) {
  const words = new Uint32Array(POOL_WORDS);
  let x = seed;
  for (let i = 0; i < words.length; i++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    words[i] = x;
  }
  return words;
}

const noise = randomWords(2463534242);

// Scales and activations must be finite and of everyday size, so only their low bits are random.
const KINDS = {
  codes: (word) => word,
  f16_scales: (word) => 0x1c001c00 | (word & 0x03ff03ff), // 0.0039 to 0.0078
  f16: (word) => 0x30003000 | (word & 0x87ff87ff), // ±0.125 to ±0.5
  f32_scales: (word) => 0x3b800000 | (word & 0x007fffff), // 0.0039 to 0.0078
  f32: (word) => (0x3e000000 | (word & 0x80ffffff)) >>> 0, // ±0.125 to ±0.5
};

const pools = new Map();

function pool(kind) {
  if (!pools.has(kind)) pools.set(kind, new Uint8Array(noise.map(KINDS[kind]).buffer));
  return pools.get(kind);
}

/** `nbytes` random bytes of a kind; another `seed` gives other bytes. */
export function randomBytes(kind, nbytes, seed) {
  const bytes = pool(kind);
  const out = new Uint8Array(nbytes);
  let from = (seed * 104729 * 4) % bytes.length;
  for (let done = 0; done < nbytes; ) {
    const count = Math.min(nbytes - done, bytes.length - from);
    out.set(bytes.subarray(from, from + count), done);
    done += count;
    from = 0;
  }
  return out;
}

/** Random int32 indices below `limit`. */
export function randomIndices(count, limit, seed) {
  return Int32Array.from({ length: count }, (_, i) => noise[(i + 7919 * seed) % noise.length] % limit);
}

/** A handle of a source for a constant that never exists in Python's heap. */
export function randomSource(kind, nbytes, seed) {
  const read = async (offset, count) => randomBytes(kind, count, seed + Math.floor(offset / 4));
  return addSource({ name: `random ${kind}`, nbytes, read });
}
