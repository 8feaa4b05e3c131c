// What an operator is for, told by its name: the colours of the graph.

/** @type {[string, RegExp][]} first match wins */
const RULES = [
  ['sizes', /(^|::)sym_|^(add$|sub$|mul$|floordiv$|eq$|lt$|gt$|le$|ge$)|executorch_prim|select_as_symint/],
  ['attention', /sdpa|attention|update_cache|kv_cache/],
  ['position', /rotary|rope/],
  ['lookup', /embedding|gather|index|scatter|argmax|argmin|topk|select|sampl/],
  ['convolution', /conv|pool|grid|upsample|pixel_/],
  ['matmul', /linear|mm\b|addmm|bmm|matmul|_mm\.|gemm/],
  ['quantize', /quant|choose_qparams|q8ta|q4gsw|dq8/],
  ['norm', /norm|softmax|mean|sum|amax|amin|var|std|cumsum/],
  ['shape', /view|reshape|permute|transpose|squeeze|expand|slice|cat\b|split|copy|clone|flip|pad|repeat|stack|to_dim|narrow|full|zeros|ones|arange|unbind|t_copy|scalar_tensor|as_strided|et_view/],
  ['elementwise', /./],
];

export const KINDS = ['matmul', 'attention', 'position', 'lookup', 'norm', 'elementwise', 'convolution', 'quantize', 'shape', 'sizes'];

/** @param {string} op @returns {string} */
export function kindOf(op) {
  return RULES.find(([, pattern]) => pattern.test(op))?.[0] ?? 'elementwise';
}

/** @param {string} op `et_vk.rms_norm.default` and `aten::rms_norm.out` -> `rms_norm` */
export function shortName(op) {
  if (op.includes('::')) return op.split('::')[1].split('.')[0];
  const parts = op.split('.');
  return parts.length > 2 ? parts[1] : parts[0] === 'webgpu_py' ? parts[1] : parts[0];
}
