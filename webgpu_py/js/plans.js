// Pipelines and plans: bind groups built once, one command array replayed for every run.

import {maybeState, newHandle, orLost, raiseUncaptured, scoped, stateOf} from './device.js';
import {withBytes, writeBytes} from './buffers.js';
import {WebGPUPyError} from './errors.js';

const LAYOUT_TYPES = {read: 'read-only-storage', read_write: 'storage', uniform: 'uniform'};
const counts = {runs: 0, passes: 0};

export async function createPipelines(device, kernels) {
  const state = stateOf(device);
  const modules = new Map();
  const pending = kernels.map(async (kernel) => {
    if (!modules.has(kernel.wgsl)) modules.set(kernel.wgsl, state.gpu.createShaderModule({code: kernel.wgsl, label: kernel.name}));
    const layout = state.gpu.createBindGroupLayout({
      label: kernel.name,
      entries: kernel.bindings.map(([binding, access]) => ({binding, visibility: 4, buffer: {type: LAYOUT_TYPES[access]}})),
    });
    try {
      return await state.gpu.createComputePipelineAsync({
        label: kernel.name,
        layout: state.gpu.createPipelineLayout({bindGroupLayouts: [layout]}),
        compute: {module: modules.get(kernel.wgsl), entryPoint: 'main', constants: kernel.constants},
      }).then((pipeline) => ({pipeline, layout}));
    } catch (error) {
      const info = await modules.get(kernel.wgsl).getCompilationInfo();
      const text = kernel.wgsl.split('\n');
      const lines = info.messages.map((m) => `${kernel.name}.wgsl:${m.lineNum}:${m.linePos} ${m.message} in \`${(text[m.lineNum - 1] ?? '').trim()}\``);
      throw new WebGPUPyError('WebGPUPyError', `pipeline ${kernel.name}: ${[error.message, ...lines].join('; ')}`);
    }
  });
  const made = await orLost(state, Promise.all(pending));
  return made.map((entry) => {
    const handle = newHandle();
    state.pipelines.set(handle, entry);
    return handle;
  });
}

export async function loadPlan(device, data, paramsArray) {
  const state = stateOf(device);
  const {gpu, buffers, pipelines} = state;
  const params = withBytes(paramsArray, (bytes) => bytes.slice());
  const plan = new Plan(data);
  await scoped(state, 'loading a plan', () => {
    if (params.length) {
      plan.params = gpu.createBuffer({size: (params.length + 15) & ~15, usage: 0x40 | 0x8, label: 'params'});
      writeBytes(state, plan.params, 0, params);
      plan.nbytes += plan.params.size;
    }
    if (plan.resultNbytes) {
      plan.staging = gpu.createBuffer({size: plan.resultNbytes, usage: 0x1 | 0x8, label: 'staging'});
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
    plan.destroy();
    throw error;
  });
  const handle = newHandle();
  state.plans.set(handle, plan);
  return handle;
}

class Plan {
  constructor(data) {
    Object.assign(this, {labels: data.labels, inputs: data.inputs, outputs: data.outputs, fault: data.fault, commands: data.commands});
    this.outputNbytes = data.outputs.reduce((end, [, at, n]) => Math.max(end, at + n), 0);
    this.resultNbytes = this.outputNbytes + (data.fault >= 0 ? 16 : 0);
    this.nbytes = 0;
    this.groups = [];
  }

  destroy() {
    for (const held of [this.params, this.staging, this.querySet, this.resolve]) held?.destroy();
  }
}

export function destroyPlan(device, handle) {
  const state = maybeState(device);
  const plan = state?.plans.get(handle);
  plan?.destroy();
  state?.plans.delete(handle);
}

export function planNbytes(device, handle) {
  return maybeState(device)?.plans.get(handle)?.nbytes ?? 0;
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

export function planOf(state, handle) {
  const plan = state.plans.get(handle);
  if (!plan) throw new WebGPUPyError('WebGPUPyError', `plan ${handle} was destroyed`);
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

/** Milliseconds that `count` runs of a plan take, on what lies in its buffers. */
export async function repeat(device, handle, count) {
  const state = stateOf(device);
  const plan = planOf(state, handle);
  const started = performance.now();
  const encoder = state.gpu.createCommandEncoder();
  for (let i = 0; i < count; i++) {
    const pass = encoder.beginComputePass();
    encodePlan(pass, plan);
    pass.end();
  }
  state.gpu.queue.submit([encoder.finish()]);
  counts.passes += count;
  await orLost(state, state.gpu.queue.onSubmittedWorkDone());
  raiseUncaptured(state);
  return performance.now() - started;
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

export function stats(device) {
  // What a lost device holds has to be freed too.
  const state = maybeState(device) ?? stateOf(device);
  let nbytes = 0;
  for (const buffer of state.buffers.values()) nbytes += buffer.size;
  for (const plan of state.plans.values()) nbytes += plan.nbytes;
  return {
    buffers: state.buffers.size, buffer_nbytes: nbytes, plans: state.plans.size,
    pipelines: state.pipelines.size, runs: counts.runs, passes: counts.passes,
  };
}
