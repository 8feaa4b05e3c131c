// The JavaScript half of the bridge: owns the GPUDevice, replays plans that Python decided.
// Everything is addressed by integer handles; calls mirror webgpu_py/bridge.py one to one.

import {urlSource} from './sources.js';

export const PROTOCOL_VERSION = 1;

const USEFUL_FEATURES = ['timestamp-query', 'shader-f16', 'subgroups'];
const STORAGE = 0x80 | 0x8 | 0x4; // STORAGE | COPY_DST | COPY_SRC
const LAYOUT_TYPES = {read: 'read-only-storage', read_write: 'storage', uniform: 'uniform'};

const devices = new Map();
let nextHandle = 1;

export class BridgeError extends Error {
  constructor(code, message) {
    super(message);
    this.name = code;
    this.code = code;
  }
}

// ---- adapter and device

/** Why WebGPU can't be used here, or null; needs no device. */
export async function diagnose() {
  if (!globalThis.isSecureContext) {
    return {code: 'InsecureContext', message: 'This page is not a secure context, so the browser hides WebGPU. Serve it over https, or from localhost.'};
  }
  if (!globalThis.navigator?.gpu) {
    return {code: 'NoWebGPU', message: 'This browser has no WebGPU (navigator.gpu is missing). Use a current Chrome, Edge, Firefox or Safari; on Linux start Chromium with --enable-unsafe-webgpu.'};
  }
  if (!(await requestAdapter({}))) {
    return {code: 'NoAdapter', message: 'WebGPU is there, but the browser offers no adapter. Turn on hardware acceleration, update the GPU driver, or on Linux start Chromium with --enable-unsafe-webgpu --enable-features=Vulkan.'};
  }
  return null;
}

// Chromium's first request after its start can be null although an adapter exists: ask twice.
async function requestAdapter(options) {
  const wanted = {powerPreference: options.powerPreference ?? 'high-performance'};
  return (await navigator.gpu.requestAdapter(wanted)) ?? (await navigator.gpu.requestAdapter(wanted));
}

function limitsOf(limits) {
  const found = {};
  for (const name in limits) {
    const snake = name.replace(/[A-Z]/g, (c) => '_' + c.toLowerCase());
    if (typeof limits[name] === 'number') found[snake] = limits[name];
  }
  return found;
}

/** Open a device with the adapter's own limits, or take over the app's: {device: GPUDevice}. */
export async function open(options = {}) {
  let gpu = options.device;
  let adapterInfo = gpu?.adapterInfo;
  if (!gpu) {
    const problem = await diagnose();
    if (problem) throw new BridgeError(problem.code, problem.message);
    const adapter = await requestAdapter(options);
    adapterInfo = adapter.info;
    const requiredLimits = {};
    for (const name in adapter.limits) {
      if (typeof adapter.limits[name] === 'number') requiredLimits[name] = adapter.limits[name];
    }
    // The two subgroup sizes are reported among the limits by some versions but can't be asked for.
    delete requiredLimits.minSubgroupSize;
    delete requiredLimits.maxSubgroupSize;
    const requiredFeatures = USEFUL_FEATURES.filter((f) => adapter.features.has(f));
    gpu = await adapter.requestDevice({requiredLimits, requiredFeatures});
  }
  const device = nextHandle++;
  const state = {
    gpu, owned: !options.device, lost: null, errors: [],
    buffers: new Map(), pipelines: new Map(), plans: new Map(),
  };
  state.whenLost = gpu.lost.then((info) => {
    state.lost = new BridgeError('DeviceLost', `The GPU device was lost (${info.reason}): ${info.message || 'no reason given'}. Build the session again.`);
    throw state.lost;
  });
  state.whenLost.catch(() => {});
  gpu.onuncapturederror = (event) => state.errors.push(event.error.message);
  devices.set(device, state);
  const info = adapterInfo ?? {};
  return {
    device,
    info: {
      vendor: info.vendor ?? '', architecture: info.architecture ?? '',
      device: info.device ?? '', description: info.description ?? '',
      software: Boolean(info.isFallbackAdapter) || /swiftshader|llvmpipe|lavapipe/i.test(`${info.architecture} ${info.description} ${info.device}`),
      subgroup_min_size: info.subgroupMinSize ?? 0, subgroup_max_size: info.subgroupMaxSize ?? 0,
    },
    limits: limitsOf(gpu.limits),
    features: [...gpu.features],
  };
}

function stateOf(device) {
  const state = devices.get(device);
  if (!state) throw new BridgeError('DeviceLost', 'This device was closed; request a new one.');
  if (state.lost) throw state.lost;
  return state;
}

const orLost = (state, promise) => Promise.race([promise, state.whenLost]);

/** Run `make` under error scopes; a GPU error becomes a typed one that names `what`. */
async function scoped(state, what, make) {
  const gpu = state.gpu;
  const kinds = ['validation', 'out-of-memory', 'internal'];
  for (const kind of kinds) gpu.pushErrorScope(kind);
  let made, thrown;
  try {
    made = make();
  } catch (error) {
    thrown = error;
  }
  const popped = [];
  for (const _ of kinds) popped.push(gpu.popErrorScope());
  const errors = await orLost(state, Promise.all(popped));
  if (thrown) throw thrown;
  const error = errors.find(Boolean);
  if (error) {
    const code = error instanceof GPUOutOfMemoryError ? 'OutOfMemory' : 'WebGPUPyError';
    throw Object.assign(new BridgeError(code, `${what}: ${error.message}`), {made});
  }
  return made;
}

export async function close(device) {
  const state = devices.get(device);
  if (!state) return;
  devices.delete(device);
  for (const plan of state.plans.values()) freePlan(plan);
  for (const buffer of state.buffers.values()) buffer.destroy();
  if (state.owned) state.gpu.destroy();
}

/** Lose the device on purpose, as a driver reset would. For tests. */
export function lose(device) {
  stateOf(device).gpu.destroy();
}

// ---- buffers

export async function createBuffers(device, sizes, labels) {
  const state = stateOf(device);
  const made = [];
  try {
    await scoped(state, `allocating ${sizes.length} buffers (${sizes.reduce((a, b) => a + b, 0)} bytes)`, () => {
      sizes.forEach((size, i) => made.push(state.gpu.createBuffer({size, usage: STORAGE, label: labels[i]})));
    });
  } catch (error) {
    for (const buffer of made) buffer.destroy();
    if (error instanceof RangeError) throw new BridgeError('OutOfMemory', error.message);
    throw error;
  }
  return made.map((buffer) => {
    const handle = nextHandle++;
    state.buffers.set(handle, buffer);
    return handle;
  });
}

export function destroyBuffers(device, handles) {
  const state = devices.get(device);
  for (const handle of handles) {
    state?.buffers.get(handle)?.destroy();
    state?.buffers.delete(handle);
  }
}

// `data` is a Python array: its memory is viewed, used and released without an await in between,
// because growing the heap detaches the view.
function withBytes(data, use) {
  if (data instanceof Uint8Array) return use(data);
  const view = data.getBuffer('u8');
  try {
    if (!view.c_contiguous) throw new BridgeError('DtypeError', 'An array for the device must be contiguous.');
    return use(view.data);
  } finally {
    view.release();
  }
}

function writeBytes(state, buffer, offset, bytes) {
  const whole = bytes.length & ~3;
  if (whole) state.gpu.queue.writeBuffer(buffer, offset, bytes, 0, whole);
  if (bytes.length > whole) {
    const tail = new Uint8Array(4);
    tail.set(bytes.subarray(whole));
    state.gpu.queue.writeBuffer(buffer, offset + whole, tail);
  }
}

export function write(device, handle, offset, data) {
  const state = stateOf(device);
  withBytes(data, (bytes) => writeBytes(state, state.buffers.get(handle), offset, bytes));
}

export async function read(device, handle, offset, nbytes) {
  const state = stateOf(device);
  const start = offset & ~3;
  const size = (offset - start + nbytes + 3) & ~3;
  const staging = state.gpu.createBuffer({size: Math.max(size, 4), usage: 0x1 | 0x8, label: 'read'});
  try {
    const encoder = state.gpu.createCommandEncoder();
    if (size) encoder.copyBufferToBuffer(state.buffers.get(handle), start, staging, 0, size);
    state.gpu.queue.submit([encoder.finish()]);
    await orLost(state, staging.mapAsync(1));
    const bytes = new Uint8Array(staging.getMappedRange()).slice(offset - start, offset - start + nbytes);
    raiseUncaptured(state);
    return bytes;
  } finally {
    staging.destroy();
  }
}

// ---- sources: bytes that go to the GPU without passing through Python

const sources = new Map();

/** Register a source of sources.js; any device may upload from it. */
export function addSource(source) {
  const handle = nextHandle++;
  sources.set(handle, source);
  return handle;
}

/** Open a URL as a source: {handle, name, nbytes}. */
export async function openUrl(url) {
  const source = await urlSource(url);
  return {handle: addSource(source), name: source.name, nbytes: source.nbytes};
}

export async function readSource(handle, offset, nbytes) {
  const source = sources.get(handle);
  if (!source) throw new BridgeError('WebGPUPyError', `source ${handle} was dropped`);
  return await source.read(offset, nbytes);
}

export function dropSource(handle) {
  sources.delete(handle);
}

const UPLOAD_STEP = 8 << 20;

export async function upload(device, handle, offset, source, sourceOffset, nbytes) {
  const state = stateOf(device);
  for (let done = 0; done < nbytes; done += UPLOAD_STEP) {
    const bytes = await orLost(state, readSource(source, sourceOffset + done, Math.min(UPLOAD_STEP, nbytes - done)));
    if (state.lost) throw state.lost;
    writeBytes(state, state.buffers.get(handle), offset + done, bytes);
  }
}

// ---- pipelines

export async function createPipelines(device, kernels) {
  const state = stateOf(device);
  const modules = new Map();
  const pending = kernels.map(async (kernel) => {
    if (!modules.has(kernel.name)) modules.set(kernel.name, state.gpu.createShaderModule({code: kernel.wgsl, label: kernel.name}));
    const layout = state.gpu.createBindGroupLayout({
      label: kernel.name,
      entries: kernel.bindings.map(([binding, access]) => ({binding, visibility: 4, buffer: {type: LAYOUT_TYPES[access]}})),
    });
    try {
      return await state.gpu.createComputePipelineAsync({
        label: kernel.name,
        layout: state.gpu.createPipelineLayout({bindGroupLayouts: [layout]}),
        compute: {module: modules.get(kernel.name), entryPoint: 'main', constants: kernel.constants},
      }).then((pipeline) => ({pipeline, layout}));
    } catch (error) {
      const info = await modules.get(kernel.name).getCompilationInfo();
      const lines = info.messages.map((m) => `${kernel.name}.wgsl:${m.lineNum}:${m.linePos} ${m.message}`);
      throw new BridgeError('WebGPUPyError', `pipeline ${kernel.name}: ${[error.message, ...lines].join('; ')}`);
    }
  });
  const made = await orLost(state, Promise.all(pending));
  return made.map((entry) => {
    const handle = nextHandle++;
    state.pipelines.set(handle, entry);
    return handle;
  });
}

// ---- plans

export async function loadPlan(device, data, paramsArray) {
  const state = stateOf(device);
  const {gpu, buffers, pipelines} = state;
  const params = withBytes(paramsArray, (bytes) => bytes.slice());
  const result = data.outputs.reduce((end, [, at, n]) => Math.max(end, at + n), 0);
  const resultNbytes = result + (data.fault >= 0 ? 16 : 0);
  const plan = {
    labels: data.labels, inputs: data.inputs, outputs: data.outputs, fault: data.fault,
    commands: data.commands, outputNbytes: result, resultNbytes, nbytes: 0, groups: [],
  };
  await scoped(state, 'loading a plan', () => {
    if (params.length) {
      plan.params = gpu.createBuffer({size: (params.length + 15) & ~15, usage: 0x40 | 0x8, label: 'params'});
      writeBytes(state, plan.params, 0, params);
      plan.nbytes += plan.params.size;
    }
    if (resultNbytes) {
      plan.staging = gpu.createBuffer({size: resultNbytes, usage: 0x1 | 0x8, label: 'staging'});
      plan.nbytes += plan.staging.size;
    }
    for (let g = 0; g < data.bindGroups.length; g += 3) {
      const {pipeline, layout} = pipelines.get(data.bindGroups[g]);
      const entries = [];
      for (let e = data.bindGroups[g + 1]; e < data.bindGroups[g + 1] + data.bindGroups[g + 2]; e++) {
        const [binding, buffer, offset, size] = data.entries.slice(4 * e, 4 * e + 4);
        entries.push({binding, resource: {buffer: buffer < 0 ? plan.params : buffers.get(buffer), offset, size}});
      }
      plan.groups.push({pipeline, bindGroup: gpu.createBindGroup({layout, entries, label: data.labels[g / 3]})});
    }
  }).catch((error) => {
    freePlan(plan);
    throw error;
  });
  const handle = nextHandle++;
  state.plans.set(handle, plan);
  return handle;
}

function freePlan(plan) {
  plan.params?.destroy();
  plan.staging?.destroy();
  plan.querySet?.destroy();
  plan.resolve?.destroy();
}

export function destroyPlan(device, handle) {
  const state = devices.get(device);
  const plan = state?.plans.get(handle);
  if (plan) freePlan(plan);
  state?.plans.delete(handle);
}

export function planNbytes(device, handle) {
  return devices.get(device)?.plans.get(handle)?.nbytes ?? 0;
}

/** Encode a plan's dispatches into one pass; shared with the token loop. */
export function encodePlan(pass, plan) {
  const {commands, groups} = plan;
  let current = null;
  for (let c = 0; c < commands.length; c += 4) {
    const {pipeline, bindGroup} = groups[commands[c]];
    if (pipeline !== current) pass.setPipeline((current = pipeline));
    pass.setBindGroup(0, bindGroup);
    pass.dispatchWorkgroups(commands[c + 1], commands[c + 2], commands[c + 3]);
  }
}

function writeInputs(state, plan, blob) {
  withBytes(blob, (bytes) => {
    for (const [buffer, at, size] of plan.inputs) {
      state.gpu.queue.writeBuffer(state.buffers.get(buffer), 0, bytes, at, size);
    }
  });
  if (plan.fault >= 0) state.gpu.queue.writeBuffer(state.buffers.get(plan.fault), 0, new Uint32Array(4));
}

function copyOutputs(state, plan, encoder) {
  for (const [buffer, at, size] of plan.outputs) {
    encoder.copyBufferToBuffer(state.buffers.get(buffer), 0, plan.staging, at, size);
  }
  if (plan.fault >= 0) encoder.copyBufferToBuffer(state.buffers.get(plan.fault), 0, plan.staging, plan.outputNbytes, 16);
}

async function readStaging(state, plan) {
  if (!plan.resultNbytes) {
    await orLost(state, state.gpu.queue.onSubmittedWorkDone());
    raiseUncaptured(state);
    return new Uint8Array(0);
  }
  await orLost(state, plan.staging.mapAsync(1, 0, plan.resultNbytes));
  const bytes = new Uint8Array(plan.staging.getMappedRange(0, plan.resultNbytes)).slice();
  plan.staging.unmap();
  raiseUncaptured(state);
  return bytes;
}

function raiseUncaptured(state) {
  if (state.errors.length) throw new BridgeError('WebGPUPyError', `GPU error: ${state.errors.splice(0).join('; ')}`);
}

function planOf(state, handle) {
  const plan = state.plans.get(handle);
  if (!plan) throw new BridgeError('WebGPUPyError', `plan ${handle} was destroyed`);
  return plan;
}

export async function run(device, handle, blob) {
  const state = stateOf(device);
  const plan = planOf(state, handle);
  writeInputs(state, plan, blob);
  const encoder = state.gpu.createCommandEncoder();
  const pass = encoder.beginComputePass();
  encodePlan(pass, plan);
  pass.end();
  copyOutputs(state, plan, encoder);
  state.gpu.queue.submit([encoder.finish()]);
  counts.runs++;
  counts.passes++;
  return await readStaging(state, plan);
}

/** `run` with a pass and a pair of timestamps a dispatch. */
export async function profile(device, handle, blob) {
  const state = stateOf(device);
  const plan = planOf(state, handle);
  const n = plan.labels.length;
  plan.querySet ??= state.gpu.createQuerySet({type: 'timestamp', count: Math.max(2 * n, 2)});
  plan.resolve ??= state.gpu.createBuffer({size: Math.max(16 * n, 16), usage: 0x200 | 0x4, label: 'timestamps'});
  const stamps = state.gpu.createBuffer({size: plan.resolve.size, usage: 0x1 | 0x8, label: 'timestamps'});
  writeInputs(state, plan, blob);
  const encoder = state.gpu.createCommandEncoder();
  for (let i = 0; i < n; i++) {
    const pass = encoder.beginComputePass({timestampWrites: {querySet: plan.querySet, beginningOfPassWriteIndex: 2 * i, endOfPassWriteIndex: 2 * i + 1}});
    encodePlan(pass, {groups: plan.groups, commands: plan.commands.slice(4 * i, 4 * i + 4)});
    pass.end();
  }
  if (n) encoder.resolveQuerySet(plan.querySet, 0, 2 * n, plan.resolve, 0);
  encoder.copyBufferToBuffer(plan.resolve, 0, stamps, 0, plan.resolve.size);
  copyOutputs(state, plan, encoder);
  state.gpu.queue.submit([encoder.finish()]);
  counts.passes += n;
  const result = await readStaging(state, plan);
  await orLost(state, stamps.mapAsync(1));
  const ticks = new BigUint64Array(stamps.getMappedRange()).slice();
  stamps.destroy();
  const micros = [];
  for (let i = 0; i < n; i++) {
    // Tiled mobile GPUs pin all begin stamps to the submit's start: count from the previous end.
    const begin = i && ticks[2 * i - 1] > ticks[2 * i] ? ticks[2 * i - 1] : ticks[2 * i];
    micros.push(ticks[2 * i + 1] > begin ? Number(ticks[2 * i + 1] - begin) / 1000 : 0);
  }
  return {result, micros};
}

// ---- counts, for tests and reports

const counts = {runs: 0, passes: 0};

export function stats(device) {
  const state = stateOf(device);
  let nbytes = 0;
  for (const buffer of state.buffers.values()) nbytes += buffer.size;
  for (const plan of state.plans.values()) nbytes += plan.nbytes;
  return {
    buffers: state.buffers.size, buffer_nbytes: nbytes, plans: state.plans.size,
    pipelines: state.pipelines.size, runs: counts.runs, passes: counts.passes,
  };
}
