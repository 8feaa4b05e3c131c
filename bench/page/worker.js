// Our side of a comparison, as in the product: Pyodide, the wheel and the device in a worker.
// Takes {id, call, args}, answers {id, value} or {id, error}.

import { bootPyodide } from './web/boot.js';
import * as half from './js/bridge.js';
import { stateOf } from './js/device.js';
import { encodePlan, planOf } from './js/plans.js';
import { loadedBytes } from './loaded-bytes.js';
import { PassTimer } from './measure.js';
import { randomBytes, randomIndices, randomSource } from './random.js';

const MODULES = ['kernels', 'models', 'overhead'];
const PACKAGES = ['tiktoken', 'jinja2'];

async function boot() {
  const started = performance.now();
  const py = await bootPyodide({ pyodideURL: 'pyodide/', wheelURL: 'wheel/webgpu_py.whl', jsHalf: half, packages: PACKAGES });
  py.registerJsModule('bench_random', { randomSource, randomIndices });
  for (const name of MODULES) py.FS.writeFile(`/home/pyodide/${name}.py`, await (await fetch(`${name}.py`)).text());
  const version = py.runPython("from importlib import metadata; metadata.version('webgpu-py')");
  return {
    kernels: py.pyimport('kernels').Kernels(),
    models: py.pyimport('models').Models(),
    overhead: py.pyimport('overhead').Overhead(),
    info: { pyodide: py.version, webgpu_py: version, ready_ms: performance.now() - started },
  };
}

// What a person would write for one plan: write the input, dispatch, copy, map.
function byHand({ gpu, buffers }, plan) {
  const [[into, , nbytes]] = plan.inputs.slice(-1);
  const [[from, , size]] = plan.outputs;
  const staging = gpu.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const x = new Float32Array(nbytes / 4);
  return async () => {
    gpu.queue.writeBuffer(buffers.get(into), 0, x);
    const encoder = gpu.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (let c = 0; c < plan.commands.length; c += 4) {
      const { pipeline, bindGroup } = plan.groups[plan.commands[c]];
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, bindGroup);
      pass.dispatchWorkgroups(plan.commands[c + 1], plan.commands[c + 2], plan.commands[c + 3]);
    }
    pass.end();
    encoder.copyBufferToBuffer(buffers.get(from), 0, staging, 0, size);
    gpu.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const y = new Float32Array(staging.getMappedRange().slice(0));
    staging.unmap();
    return y;
  };
}

const started = boot();
/** @type {() => Promise<Float32Array>} */
let chain;
let timer;
/** @type {{plan: any, dispatches: number}} */
let loaded;

const calls = {
  info: ({ info }) => info,

  bytes: () => loadedBytes(),

  /** Build what a case needs and load it on the device. */
  async prepare({ kernels }, one) {
    const { device, plan, dispatches, ran, live, inputs } = JSON.parse(await kernels.prepare(JSON.stringify(one)));
    half.write(device, live[0], 0, new Uint8Array(Int32Array.from(live[1]).buffer));
    Object.entries(inputs).forEach(([name, [buffer, dims]], seed) => {
      const count = dims.reduce((a, b) => a * b, 1);
      const bytes = name.startsWith('i') ? new Uint8Array(randomIndices(count, one.n, seed + 1).buffer) : randomBytes('f32', 4 * count, seed + 1);
      half.write(device, buffer, 0, bytes);
    });
    const state = stateOf(device);
    if (timer?.gpu !== state.gpu) timer = new PassTimer(state.gpu);
    loaded = { plan: planOf(state, plan), dispatches };
    return { dispatches, ran };
  },

  /** Milliseconds of whole passes of what was prepared. */
  time: (_, how) => timer.samples((pass) => encodePlan(pass, loaded.plan), how),

  async release({ kernels, models }) {
    kernels.close();
    models.close();
  },

  load: async ({ models }, given) => JSON.parse(await models.load(JSON.stringify(given))),

  generate: async ({ models }, given) => JSON.parse(await models.generate(JSON.stringify(given))),

  async chain({ overhead }) {
    const found = JSON.parse(await overhead.prepare());
    const state = stateOf(found.device);
    chain = byHand(state, planOf(state, found.plan));
    return found;
  },

  /** Milliseconds of runs of the chain through the public API, and crossings of them all. */
  runChain: async ({ overhead }, count) => JSON.parse(await overhead.run(count)),

  /** Milliseconds of the same work without Python. */
  async runByHand(_, count) {
    const times = [];
    for (let i = 0; i < count; i++) {
      const from = performance.now();
      await chain();
      times.push(performance.now() - from);
    }
    return times;
  },
};

self.onmessage = async ({ data: { id, call, args } }) => {
  try {
    self.postMessage({ id, value: await calls[call](await started, args) });
  } catch (error) {
    self.postMessage({ id, error: String(error?.message ?? error) });
  }
};
