// What the kernel suite measures. A case says its operator, its sizes, how many nodes with operands
// of their own share a pass (`repeat`), and the bytes and operations one node cannot do without.
//
// Cases with the same `key` run on one graph, live sizes apart: they stand next to each other. Cases
// that are `tooLong` for the adapter are not run, but named among those left out.

const LLAMA = [[2048, 2048], [2048, 512], [2048, 8192], [8192, 2048], [2048, 128256]];
const SMOLLM2 = [[576, 576], [576, 192], [576, 1536], [1536, 576], [576, 49152]];
const ROWS = [1, 16, 128, 512];
const GROUP = 32;

// Operands of a pass together: more than the caches of a GPU hold. A software adapter has no time
// for that, and its caches are the host's.
const OPERANDS_NBYTES = { hardware: 110e6, software: 8e6 };
const MOST_NODES = { hardware: 160, software: 4 };
// Fewer and what a pass takes by itself would count.
const LEAST_NODES = { hardware: 2, software: 1 };
// From where the share of a copy kernel's bandwidth is what counts; too much for a software adapter.
const LARGE_NBYTES = 64 << 20;
// A software adapter does a few GFLOP/s: larger cases are too long, large ones have one node.
const MOST_FLOPS = { hardware: Infinity, software: 3e10 };
const LARGE_FLOPS = { hardware: Infinity, software: 5e8 };

const LLAMA_HEADS = { name: 'llama', heads: 32, kv: 8, dim: 64, width: 2048 };
const SMOLLM2_HEADS = { name: 'smollm2', heads: 9, kv: 3, dim: 64, width: 576 };

/** @param {{software: boolean}} adapter @returns {Record<string, any>[]} every case, scaled to it */
export function kernelCases({ software }) {
  const kind = software ? 'software' : 'hardware';
  const repeat = (nbytes) => Math.max(LEAST_NODES[kind], Math.min(MOST_NODES[kind], Math.ceil(OPERANDS_NBYTES[kind] / nbytes)));
  const made = [
    ...linears(repeat), ...embeddings(software), ...elementwise(repeat, software), ...copies(software),
    ...attention(software), ...sampling(repeat),
  ];
  return made.map((c) => {
    const nodes = c.flops > LARGE_FLOPS[kind] ? 1 : c.repeat;
    const tooLong = c.tooLong || c.flops > MOST_FLOPS[kind];
    return { suite: 'kernels', ...c, repeat: nodes, key: `${c.key} x${nodes}`, tooLong };
  });
}

function* linears(repeat) {
  for (const [op, scale] of [['webgpu_py.linear_q4', 2], ['et_vk.linear_q4gsw', 4]]) {
    for (const [k, n] of [...LLAMA, ...SMOLLM2]) {
      const weight = n * (k / 2 + (k / GROUP) * scale);
      for (const m of ROWS) {
        const key = `${stem(op)}/${k}x${n}`;
        yield {
          case: `${key}/m${m}`, key, op, k, n, m, most: ROWS.at(-1), repeat: repeat(weight),
          nbytes: weight + 4 * m * (k + n), flops: 2 * m * k * n,
        };
      }
    }
  }
}

function* embeddings(software) {
  for (const [op, scale] of [['webgpu_py.embedding_q4', 2], ['et_vk.embedding_q4gsw', 4]]) {
    for (const [v, k] of [[49152, 576], [128256, 2048]]) {
      const large = powerOfTwo(LARGE_NBYTES / (4 * k));
      for (const m of [...ROWS, ...(software ? [] : [large])]) {
        const shape = `${stem(op)}/${v}x${k}`;
        const few = m === large ? { key: `${shape}/m${m}`, most: m, repeat: 4 } : { key: shape, most: ROWS.at(-1), repeat: software ? 4 : 16 };
        yield {
          case: `${shape}/m${m}`, ...few, op, n: v, k, m,
          nbytes: m * (4 + k / 2 + (k / GROUP) * scale + 4 * k), flops: 2 * m * k,
        };
      }
    }
  }
}

const powerOfTwo = (least) => 2 ** Math.ceil(Math.log2(least));

function* elementwise(repeat, software) {
  for (const { name, heads, kv, dim, width } of [LLAMA_HEADS, SMOLLM2_HEADS]) {
    const large = powerOfTwo(LARGE_NBYTES / (4 * (heads + kv) * dim));
    for (const m of [...ROWS, 2048, ...(software ? [] : [large])]) {
      const rotated = 4 * m * (heads + kv) * dim;
      yield {
        case: `rope/${name}/m${m}`, key: `rope/${name}/m${m}`, op: 'et_vk.apply_rotary_emb',
        m, heads, kv, dim, repeat: repeat(rotated), nbytes: 2 * rotated + 4 * m * dim, flops: 3 * m * (heads + kv) * dim,
      };
    }
    for (const m of [...ROWS, 2048]) {
      yield {
        case: `rms_norm/${width}/m${m}`, key: `rms_norm/${width}/m${m}`, op: 'et_vk.rms_norm',
        m, k: width, repeat: repeat(4 * m * width), nbytes: 8 * m * width + 4 * width, flops: 3 * m * width,
      };
    }
  }
}

// What moves a model's weights and activations: stored blocks to packed ones at load, and boxes.
function* copies(software) {
  const rows = software ? 2048 : 65536;
  for (const [type, block, stored] of [['Q4_0', 32, 18], ['Q8_0', 32, 34], ['Q4_K', 256, 144]]) {
    const key = `repack/${type}/n${rows}`;
    yield { case: key, key, op: 'repack', type, n: rows, k: 2048, m: 1, repeat: 2, stored: (rows * 2048 * stored) / block, nbytes: (2 * rows * 2048 * stored) / block, flops: 0 };
  }
  const n = software ? 512 : 8192;
  for (const op of ['aten.cat', 'aten.slice_copy']) {
    const key = `${stem(op)}/2048/n${n}`;
    yield { case: key, key, op, n, k: 2048, m: 1, repeat: 2, nbytes: 8 * n * 2048, flops: 0 };
  }
}

function* attention(software) {
  const contexts = [128, 512, 1024, 2048, 4096, 8192];
  const prompts = [128, 512, 2048];
  const longestPrompt = software ? 128 : 2048;
  for (const shape of [LLAMA_HEADS, SMOLLM2_HEADS]) {
    const { name, heads, kv, dim } = shape;
    const row = 4 * kv * dim;
    const case_ = (kind, context, m, capacity, repeat) => ({
      case: `attention/${name}/${kind}${context}`, key: `attention/${name}/${kind}`, op: 'webgpu_py.attention',
      ...{ heads, kv, dim, m, context, capacity, most: kind === 'decode' ? 1 : capacity, repeat },
      tooLong: context > capacity,
      nbytes: 2 * row * (context + m) + 8 * m * heads * dim,
      // Causal: row i of m sees context - m + i + 1 keys, each a product with q and one with the weight.
      flops: 4 * heads * dim * m * (context - (m - 1) / 2),
    });
    for (const c of contexts) yield case_('decode', c, 1, contexts.at(-1), software ? 4 : 16);
    for (const c of prompts) yield case_('prefill', c, c, longestPrompt, software ? 1 : 4);
  }
}

function* sampling(repeat) {
  for (const n of [4096, 16384, 49152, 128256]) {
    const key = `sample/v${n}`;
    yield { case: key, key, op: 'webgpu_py.sample', n, m: 1, repeat: repeat(12 * n), nbytes: 12 * n, flops: 4 * n };
  }
}

const stem = (op) => op.replace(/^\w+\./, '');

/** Whether a case's name matches a glob in which * stands for anything; several are told by commas. */
export function matches(name, globs) {
  return globs.split(',').some((glob) => {
    const pattern = glob.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('.*');
    return new RegExp(`^${pattern}$`).test(name);
  });
}
