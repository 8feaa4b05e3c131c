// What an operator is for, told by its name: the colours of the graph.

/** @type {[string, RegExp][]} first match wins */
const RULES = [
  ['sizes', /^(sym_|add$|sub$|mul$|floordiv$|eq$|lt$|gt$|le$|ge$)|executorch_prim|select_as_symint/],
  ['attention', /sdpa|attention|update_cache|kv_cache/],
  ['position', /rotary|rope/],
  ['lookup', /embedding|gather|index|scatter|argmax|argmin|topk|select|sampl/],
  ['convolution', /conv|pool|grid|upsample|pixel_/],
  ['matmul', /linear|mm\b|addmm|bmm|matmul|_mm\.|gemm/],
  ['quantize', /quant|choose_qparams|q8ta|q4gsw|dq8/],
  ['norm', /norm|softmax|mean|sum|amax|amin|var|std|cumsum/],
  ['shape', /view|reshape|permute|transpose|squeeze|expand|slice|cat\b|split|copy|clone|flip|pad|repeat|stack|to_dim|narrow|full|zeros|ones|arange|unbind|t_copy/],
  ['elementwise', /./],
];

export const KINDS = ['matmul', 'attention', 'position', 'lookup', 'norm', 'elementwise', 'convolution', 'quantize', 'shape', 'sizes'];

/** @param {string} op @returns {string} */
export function kindOf(op) {
  return RULES.find(([, pattern]) => pattern.test(op))?.[0] ?? 'elementwise';
}

/** @param {string} op `et_vk.rms_norm.default` -> `rms_norm` */
export function shortName(op) {
  const parts = op.split(/::|\./).filter((p) => !['default', 'out', 'Tensor'].includes(p));
  return (parts.length > 1 ? parts.slice(1).join('.') : parts[0]) || op;
}
