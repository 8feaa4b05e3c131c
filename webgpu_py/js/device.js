// Adapter, device and what every call needs of them: state by handle, loss, error scopes.

import {WebGPUPyError} from './errors.js';
import {tell} from './events.js';

const MATRICES = 'chromium-experimental-subgroup-matrix';
// A feature of WGSL rather than of a device: it is there or not, and needs no asking.
const INTEGER_DOT = 'packed_4x8_integer_dot_product';
const USEFUL_FEATURES = ['timestamp-query', 'shader-f16', 'subgroups', MATRICES, INTEGER_DOT];

const devices = new Map();
let lastHandle = 0;

/** A fresh integer for a device, buffer, pipeline, plan or source. */
export function newHandle() {
  return ++lastHandle;
}

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

function hasMatrix(info, type, resultType, depth) {
  return [...(info.subgroupMatrixConfigs ?? [])].some(
    (c) => c.M === 16 && c.N === 16 && c.K === depth && c.componentType === type && c.resultComponentType === resultType);
}

// Whether packed_gemm_int8 and, with float16, packed_gemm_matrix can run: they are written for subgroups of 32. One feature
// stands for both, so an adapter that has matrices of one kind only does without.
function fitsMatrices(features, info) {
  return info?.subgroupMinSize === 32 && info.subgroupMaxSize === 32 && hasMatrix(info, 'i8', 'i32', 32) &&
    (!features.has('shader-f16') || hasMatrix(info, 'f16', 'f32', 16));
}

// Apple's GPUs have no instruction for integer dot products: there they would take longer than floats.
function hasDots(info) {
  return info?.vendor !== 'apple' && Boolean(navigator.gpu.wgslLanguageFeatures?.has(INTEGER_DOT));
}

// Of an adapter's or device's features those that are wanted and that kernels can use.
function usable(features, info, wanted) {
  const found = {[MATRICES]: fitsMatrices(features, info), [INTEGER_DOT]: hasDots(info)};
  return wanted.filter((f) => (f === INTEGER_DOT || features.has(f)) && (found[f] ?? true));
}

function wantedFeatures(names = USEFUL_FEATURES) {
  const unknown = names.filter((f) => !USEFUL_FEATURES.includes(f));
  if (unknown.length) throw new WebGPUPyError('FeatureMissing', `features ${unknown.join(', ')} are none that kernels use; name some of ${USEFUL_FEATURES.join(', ')}, or none.`);
  return names;
}

/**
 * Open a device with the adapter's own limits and `features` (those that kernels use), or take over the app's:
 * {device: GPUDevice}.
 */
export async function open(options = {}) {
  const wanted = wantedFeatures(options.features);
  let gpu = options.device;
  let adapterInfo = gpu?.adapterInfo;
  if (!gpu) {
    const problem = await diagnose();
    if (problem) throw new WebGPUPyError(problem.code, problem.message);
    const adapter = await requestAdapter(options);
    adapterInfo = adapter.info;
    const requiredLimits = {};
    for (const name in adapter.limits) {
      if (typeof adapter.limits[name] === 'number') requiredLimits[name] = adapter.limits[name];
    }
    // The two subgroup sizes are reported among the limits by some versions but can't be asked for.
    delete requiredLimits.minSubgroupSize;
    delete requiredLimits.maxSubgroupSize;
    const requiredFeatures = usable(adapter.features, adapterInfo, wanted).filter((f) => f !== INTEGER_DOT);
    gpu = await adapter.requestDevice({requiredLimits, requiredFeatures}).catch((error) => {
      throw new WebGPUPyError('NoAdapter', `The adapter gives no device: ${error.message}. Try again; if that does not help, restart the browser or update the GPU driver.`);
    });
  }
  const device = newHandle();
  const state = {
    gpu, owned: !options.device, lost: null, errors: [],
    buffers: new Map(), pipelines: new Map(), plans: new Map(), waiting: new Set(),
  };
  state.whenLost = gpu.lost.then((info) => {
    state.lost = new WebGPUPyError('DeviceLost', `The GPU device was lost (${info.reason}): ${info.message || 'no reason given'}. Build the session again.`);
    // A device that was closed is lost too, which is nobody's news.
    if (devices.has(device)) tell('device.lost', {reason: info.reason, message: info.message}, 'warning');
    for (const lost of state.waiting) lost(state.lost);
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
    features: usable(gpu.features, adapterInfo, wanted),
  };
}

/** The state of an open device; throws what ended it otherwise. */
export function stateOf(device) {
  const state = devices.get(device);
  if (!state) throw new WebGPUPyError('DeviceLost', 'This device was closed; request a new one.');
  if (state.lost) throw state.lost;
  return state;
}

// A mapping is aborted a moment before the loss that caused it is announced.
const LOSS_ANNOUNCED_MS = 1000;

/** `promise`, or the device's loss, whichever comes first; a loss explains what it aborted. */
export async function orLost(state, promise) {
  let lost;
  try {
    // Not Promise.race: the loss is one promise for all, and would remember every call that it was raced with.
    return await new Promise((resolve, reject) => {
      if (state.lost) reject(state.lost);
      state.waiting.add((lost = reject));
      promise.then(resolve, reject);
    });
  } catch (error) {
    if (error?.name === 'AbortError') {
      await Promise.race([state.whenLost, new Promise((resolve) => setTimeout(resolve, LOSS_ANNOUNCED_MS))]);
    }
    throw state.lost ?? error;
  } finally {
    state.waiting.delete(lost);
  }
}

/** Run `make` under error scopes; a GPU error becomes a typed one that names `what`. */
export async function scoped(state, what, make) {
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
    throw Object.assign(new WebGPUPyError(code, `${what}: ${error.message}`), {made});
  }
  return made;
}

/** A GPU error that no scope caught fails the call that notices it. */
export function raiseUncaptured(state) {
  if (state.errors.length) throw new WebGPUPyError('WebGPUPyError', `GPU error: ${state.errors.splice(0).join('; ')}`);
}

/** Forget a device and free all it holds; the app's own GPUDevice stays alive. */
export async function close(device) {
  const state = devices.get(device);
  if (!state) return;
  devices.delete(device);
  for (const plan of state.plans.values()) plan.destroy();
  for (const buffer of state.buffers.values()) buffer.destroy();
  if (state.owned) state.gpu.destroy();
}

/** The state of a device that may be closed or lost: for freeing. */
export function maybeState(device) {
  return devices.get(device);
}

/** Whether a device is lost or closed. */
export function isLost(device) {
  return Boolean(devices.get(device)?.lost ?? !devices.has(device));
}

/** Lose the device on purpose, as a driver reset would. For tests. */
export function lose(device) {
  stateOf(device).gpu.destroy();
}
