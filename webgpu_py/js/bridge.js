// The JavaScript half: owns the GPUDevice and replays plans that Python decided.
// Everything is addressed by integer handles; calls mirror webgpu_py/bridge.py one to one.

/** What both halves must speak; changed with every change of the calls. */
export const PROTOCOL_VERSION = 4;

export {WebGPUPyError} from './errors.js';
export {hearEvents} from './events.js';
export {remember, remembered, surroundings} from './checks.js';
export {close, diagnose, isLost, lose, open} from './device.js';
export {
  addSource, createBuffers, destroyBuffers, discardSource, dropSource, fetchSource, openUrl, read, readSource, upload, verifiedSource, write,
} from './buffers.js';
export {cached, forget} from './cache.js';
export {createPipelines, destroyPlan, loadPlan, planNbytes, profile, repeat, run, stats} from './plans.js';
export {cachedSource} from './download.js';
export {blobSource, bytesSource, urlSource} from './sources.js';
export {cachedTokens, createGenerator, destroyGenerator, startRequest} from './generate.js';
