// The JavaScript half over a GPU and a network that fail when they are told to: the n-th call of any
// kind, the way that kind fails in the world, or by losing the device. Counts what is alive as well.
export * from '/js/bridge.js';

const plan = { at: 0, loss: false, calls: 0, failed: '' };
const live = new Map(); // GPUBuffer -> bytes
const scopes = new WeakMap(); // GPUDevice -> error scopes, innermost last
const deviceOf = new WeakMap(); // GPUQueue or GPUBuffer -> GPUDevice
const ERRORS = { validation: GPUValidationError, 'out-of-memory': GPUOutOfMemoryError, internal: GPUInternalError };
const SAID = 'failed on purpose';

/** Fail call `at`, counted from now on; 0 is none. With `loss` the device is lost just before it. */
export function arm(at, loss) {
  Object.assign(plan, { at, loss, calls: 0, failed: '' });
}

/** Calls since, and the name of the one that failed. */
export function fired() {
  return [plan.calls, plan.failed];
}

/** GPU buffers that were created and not destroyed, and their bytes. */
export function alive() {
  let nbytes = 0;
  for (const n of live.values()) nbytes += n;
  return [live.size, nbytes];
}

/** An error of the GPU, as WebGPU reports one: to the innermost scope for its kind, else to the device. */
function report(device, kind) {
  const error = new ERRORS[kind](SAID);
  const scope = scopes.get(device)?.findLast((s) => s.kind === kind);
  if (scope) scope.error ??= error;
  else queueMicrotask(() => device.dispatchEvent(new GPUUncapturedErrorEvent('uncapturederror', { error })));
}

const reported = (kind) => (device, go) => (report(device, kind), go());
const unheard = (device) => report(device, 'validation');
const rejected = (make) => () => Promise.reject(make());
const operation = rejected(() => new DOMException(SAID, 'OperationError'));

/** How each call fails: `fail(device, go)`, where `go` makes the call after all. */
const CALLS = [
  [GPU, 'requestAdapter', async () => null],
  [GPUAdapter, 'requestDevice', operation],
  [GPUDevice, 'createBuffer', reported('out-of-memory')],
  [GPUDevice, 'createShaderModule', reported('validation')],
  [GPUDevice, 'createBindGroupLayout', reported('validation')],
  [GPUDevice, 'createPipelineLayout', reported('validation')],
  [GPUDevice, 'createComputePipelineAsync', rejected(() => new GPUPipelineError(SAID, { reason: 'internal' }))],
  [GPUDevice, 'createBindGroup', reported('validation')],
  [GPUDevice, 'createCommandEncoder', reported('validation')],
  [GPUQueue, 'writeBuffer', unheard],
  [GPUQueue, 'submit', unheard],
  [GPUQueue, 'onSubmittedWorkDone', operation],
  [GPUBuffer, 'mapAsync', operation],
  [FileSystemDirectoryHandle, 'getFileHandle', rejected(() => new DOMException(SAID, 'NoModificationAllowedError'))],
  [FileSystemFileHandle, 'createSyncAccessHandle', rejected(() => new DOMException(SAID, 'InvalidStateError'))],
  [FileSystemSyncAccessHandle, 'write', () => 0],
];

let lastDevice = null;

function wrap(target, name, fail, wrapped = target[name]) {
  target[name] = function (...args) {
    const go = () => noted(this, name, wrapped.apply(this, args));
    if (++plan.calls !== plan.at) return go();
    plan.failed = name;
    if (!plan.loss) return fail(this instanceof GPUDevice ? this : deviceOf.get(this), go);
    lastDevice?.destroy();
    return go();
  };
}

for (const [{ prototype }, name, fail] of CALLS) wrap(prototype, name, fail);
wrap(self, 'fetch', rejected(() => new TypeError(SAID)));

function noted(owner, name, made) {
  if (name === 'createBuffer') {
    live.set(made, made.size);
    deviceOf.set(made, owner);
  }
  if (name !== 'requestDevice') return made;
  return made.then((device) => {
    deviceOf.set(device.queue, (lastDevice = device));
    scopes.set(device, []);
    return device;
  });
}

const { destroy } = GPUBuffer.prototype;
GPUBuffer.prototype.destroy = function () {
  live.delete(this);
  destroy.call(this);
};

const { pushErrorScope, popErrorScope } = GPUDevice.prototype;
GPUDevice.prototype.pushErrorScope = function (kind) {
  scopes.get(this).push({ kind, error: null });
  pushErrorScope.call(this, kind);
};
GPUDevice.prototype.popErrorScope = function () {
  const { error } = scopes.get(this).pop();
  return popErrorScope.call(this).then((real) => real ?? error);
};
