// The two element types that onnxruntime's kernels have for activations, scales and norms.

import { randomBytes } from './random.js';

export const FLOAT32 = Object.freeze({
  name: 'float32', nbytes: 4,
  values: (count, seed) => randomBytes('f32', 4 * count, seed),
  scales: (count, seed) => randomBytes('f32_scales', 4 * count, seed),
});

/** Needs shader-f16. */
export const FLOAT16 = Object.freeze({
  name: 'float16', nbytes: 2,
  values: (count, seed) => randomBytes('f16', 2 * count, seed),
  scales: (count, seed) => randomBytes('f16_scales', 2 * count, seed),
});
