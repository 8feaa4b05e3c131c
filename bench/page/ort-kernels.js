// onnxruntime-web's WebGPU kernels as an engine of the kernel suite.

import { ortGraph } from './ort-graphs.js';
import { timeRuns, watchPasses } from './peer-passes.js';

const FOLDER = './peers/onnxruntime-web/';
// On a software adapter a run above this takes minutes.
const MOST_SOFTWARE_FLOPS = 3e10;
const WRONG_ON_SOFTWARE_ROWS = 32; // its flash attention, from so many rows on, at subgroups of 4

/** The library, loaded once a page: {ort, version}. */
export async function loadOrt() {
  watchPasses();
  const ort = await import(`${FOLDER}ort.webgpu.min.mjs`);
  ort.env.wasm.wasmPaths = new URL(FOLDER, location.href).href;
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = 'error';
  return { ort, version: ort.env.versions.web };
}

/**
 * @param {any} ort @param {{software: boolean}} context
 * @param {string} name which of its kernels these are
 * @param {typeof import('./ort-types.js').FLOAT32} float @param {number} accuracy of linear layers: 4 rounds activations to
 *   8 bits a block first
 */
export function ortKernels(ort, { software }, name, float, accuracy = 0) {
  let held = { key: '', session: null };

  return {
    name,

    /** Null where this engine has nothing to say about a case; else {name, time, release}. */
    async prepare(one) {
      if (accuracy && !one.op.includes('linear')) return null;
      if (software && one.flops * one.repeat > MOST_SOFTWARE_FLOPS) throw new Error('not run: takes minutes on a software adapter');
      if (software && one.op.includes('attention') && one.m >= WRONG_ON_SOFTWARE_ROWS) throw new Error('not run: its results are wrong on this adapter');
      const graph = ortGraph(one, float, accuracy);
      if (!graph) return null;
      if (held.key !== one.key || !one.op.includes('q4')) {
        await held.session?.release();
        held = { key: one.key, session: await ort.InferenceSession.create(graph.file(), { executionProviders: ['webgpu'] }) };
      }
      const { session } = held;
      const gpu = await ort.env.webgpu.device;
      const buffers = new Map();
      const tensor = (key, type, dims, data) => {
        const count = dims.reduce((a, b) => a * b, 1);
        const nbytes = data?.byteLength ?? float.nbytes * count;
        const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
        if (!buffers.has(key)) buffers.set(key, gpu.createBuffer({ size: Math.max(16, (nbytes + 15) & ~15), usage }));
        if (data) {
          const padded = new Uint8Array((nbytes + 3) & ~3);
          padded.set(new Uint8Array(data.buffer, data.byteOffset, nbytes));
          gpu.queue.writeBuffer(buffers.get(key), 0, padded);
        }
        return ort.Tensor.fromGpuBuffer(buffers.get(key), { dataType: type, dims });
      };
      const feeds = {};
      for (const [key, type, dims, data] of graph.feeds) feeds[key] = tensor(key, type, dims, data);
      for (const [key, type, dims, data] of graph.host ?? []) feeds[key] = new ort.Tensor(type, data, dims);
      // All results of one size lie in one buffer, as in our graph: a node waits for the one before.
      const fetches = {};
      for (const [key, dims] of graph.results) fetches[key] = tensor(`result ${dims}`, float.name, dims);
      for (const [key, from] of graph.shared ?? []) fetches[key] = feeds[from];
      // The first run compiles shaders.
      await session.run(feeds, fetches);
      return {
        name,
        time: (how) => timeRuns(gpu, () => session.run(feeds, fetches), how),
        release: () => buffers.forEach((buffer) => buffer.destroy()),
      };
    },

    async release() {
      await held.session?.release();
      held = { key: '', session: null };
    },
  };
}
