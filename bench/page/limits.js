// What the machine allows: bytes a second of a plain copy kernel, operations a second of chained FMAs.
// Copies of 64 MiB that wait for each other, as the kernels' cases do, are told beside it.

import { PassTimer, median } from './measure.js';

const COPY = `
@group(0) @binding(0) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> b: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {
  let i = id.x + id.y * n.x * 256u;
  if (i < arrayLength(&a)) { b[i] = a[i]; }
}`;

// Four chains that depend on nothing but themselves, fed from a buffer, so that nothing folds.
const FMA = (turns) => `
@group(0) @binding(0) var<storage, read_write> y: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let m = y[0];
  var a = m + f32(id.x);
  var b = a + 1.0;
  var c = a + 2.0;
  var d = a + 3.0;
  for (var i = 0u; i < ${turns}u; i++) {
    ${'a = fma(a, m, b); b = fma(b, m, c); c = fma(c, m, d); d = fma(d, m, a);'.repeat(4)}
  }
  let r = a + b + c + d;
  if (r.x == 12345.678) { y[1] = r; }
}`;
const FMA_OPERATIONS = 4 * 4 * 4 * 2; // chains, repeats, lanes, multiply and add

const HOW = { budgetMs: 300, warmMs: 60, least: 3, most: 30 };

async function pipelineOf(gpu, code) {
  const module = gpu.createShaderModule({ code });
  return gpu.createComputePipelineAsync({ layout: 'auto', compute: { module, entryPoint: 'main' } });
}

function bound(gpu, pipeline, buffers) {
  return gpu.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: buffers.map((buffer, binding) => ({ binding, resource: { buffer } })),
  });
}

const CHAIN_NBYTES = 64 << 20;
const CHAIN_NODES = 4;

/** Bytes a second, read and written, of copies of several buffers into one. */
async function copyRate(gpu, timer, nbytes, nodes) {
  const buffers = Array.from({ length: nodes + 1 }, () => gpu.createBuffer({ size: nbytes, usage: GPUBufferUsage.STORAGE }));
  const copy = await pipelineOf(gpu, COPY);
  const groups = buffers.slice(1).map((source) => bound(gpu, copy, [source, buffers[0]]));
  const workgroups = nbytes / 16 / 256;
  const ms = median(await timer.samples((pass) => {
    pass.setPipeline(copy);
    for (const group of groups) {
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(Math.min(workgroups, 16384), Math.ceil(workgroups / 16384));
    }
  }, HOW));
  for (const buffer of buffers) buffer.destroy();
  return (2 * nbytes * nodes) / ms / 1e6;
}

/**
 * @param {GPUDevice} gpu @param {boolean} software
 * @returns {Promise<{copy_gbps: number, copy_nbytes: number, chain_gbps?: number, chain_nbytes?: number, fma_gflops: number}>}
 */
export async function measureLimits(gpu, software) {
  const timer = new PassTimer(gpu);
  const most = Math.min(gpu.limits.maxStorageBufferBindingSize, gpu.limits.maxBufferSize);
  const nbytes = software ? 64 << 20 : Math.min(1 << 30, 2 ** Math.floor(Math.log2(most)));
  const copy_gbps = await copyRate(gpu, timer, nbytes, 1);
  const chain = software ? {} : { chain_gbps: await copyRate(gpu, timer, CHAIN_NBYTES, CHAIN_NODES), chain_nbytes: CHAIN_NBYTES };
  const turns = software ? 16 : 512;
  const many = software ? 64 : 8192;
  const fma = await pipelineOf(gpu, FMA(turns));
  const numbers = gpu.createBuffer({ size: 256, usage: GPUBufferUsage.STORAGE });
  const fmaGroup = bound(gpu, fma, [numbers]);
  const fmaMs = median(await timer.samples((pass) => {
    pass.setPipeline(fma);
    pass.setBindGroup(0, fmaGroup);
    pass.dispatchWorkgroups(many);
  }, HOW));
  numbers.destroy();
  timer.destroy();
  return {
    copy_gbps,
    copy_nbytes: nbytes,
    ...chain,
    fma_gflops: (many * 256 * turns * FMA_OPERATIONS) / fmaMs / 1e6,
  };
}

/** The least milliseconds that so many bytes and operations can take, and what says so. */
export function boundOf(limits, { nbytes, flops }) {
  const memory = nbytes / limits.copy_gbps / 1e6;
  const arithmetic = flops / limits.fma_gflops / 1e6;
  return { ms: Math.max(memory, arithmetic), by: memory >= arithmetic ? 'memory' : 'arithmetic' };
}
