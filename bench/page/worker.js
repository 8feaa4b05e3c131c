// Our side of a comparison, as in the product: Pyodide, the wheel and the device in a worker.
// Takes {id, call, args}, answers {id, value} or {id, error}.

import { bootPyodide } from './web/boot.js';
import * as half from './js/bridge.js';
import { stateOf } from './js/device.js';
import { encodePlan, planOf } from './js/plans.js';
import { PassTimer } from './measure.js';
import { randomBytes, randomIndices, randomSource } from './random.js';

const MODULES = ['kernels'];

async function boot() {
  const started = performance.now();
  const py = await bootPyodide({ pyodideURL: 'pyodide/', wheelURL: 'wheel/webgpu_py.whl', jsHalf: half });
  py.registerJsModule('bench_random', { randomSource, randomIndices });
  for (const name of MODULES) py.FS.writeFile(`/home/pyodide/${name}.py`, await (await fetch(`${name}.py`)).text());
  return { py, kernels: py.pyimport('kernels').Kernels(), info: { pyodide: py.version, ready_ms: performance.now() - started } };
}

const started = boot();
let timer;
/** @type {{plan: any, dispatches: number}} */
let loaded;

const calls = {
  info: ({ info }) => info,

  /** Build what a case needs and load it on the device. */
  async prepare({ kernels }, one) {
    const { device, plan, dispatches, live, inputs } = JSON.parse(await kernels.prepare(JSON.stringify(one)));
    half.write(device, live[0], 0, new Uint8Array(Int32Array.from(live[1]).buffer));
    Object.entries(inputs).forEach(([name, [buffer, dims]], seed) => {
      const count = dims.reduce((a, b) => a * b, 1);
      const bytes = name.startsWith('i') ? new Uint8Array(randomIndices(count, one.n, seed + 1).buffer) : randomBytes('f32', 4 * count, seed + 1);
      half.write(device, buffer, 0, bytes);
    });
    const state = stateOf(device);
    if (timer?.gpu !== state.gpu) timer = new PassTimer(state.gpu);
    loaded = { plan: planOf(state, plan), dispatches };
    return { dispatches };
  },

  /** Milliseconds of whole passes of what was prepared. */
  time: (_, how) => timer.samples((pass) => encodePlan(pass, loaded.plan), how),

  async release({ kernels }) {
    kernels.close();
  },
};

self.onmessage = async ({ data: { id, call, args } }) => {
  try {
    self.postMessage({ id, value: await calls[call](await started, args) });
  } catch (error) {
    self.postMessage({ id, error: String(error?.message ?? error) });
  }
};
