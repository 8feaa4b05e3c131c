// Storage buffers: allocation, writing, reading, and uploads from sources past Python's heap.

import {maybeState, newHandle, orLost, raiseUncaptured, scoped, stateOf} from './device.js';
import {WebGPUPyError} from './errors.js';
import {cachedSource} from './download.js';
import {urlSource} from './sources.js';

const STORAGE = 0x80 | 0x8 | 0x4; // STORAGE | COPY_DST | COPY_SRC

export async function createBuffers(device, sizes, labels) {
  const state = stateOf(device);
  const made = [];
  try {
    await scoped(state, `allocating ${sizes.length} buffers (${sizes.reduce((a, b) => a + b, 0)} bytes)`, () => {
      sizes.forEach((size, i) => made.push(state.gpu.createBuffer({size, usage: STORAGE, label: labels[i]})));
    });
  } catch (error) {
    for (const buffer of made) buffer.destroy();
    if (error instanceof RangeError) throw new WebGPUPyError('OutOfMemory', error.message);
    throw error;
  }
  return made.map((buffer) => {
    const handle = newHandle();
    state.buffers.set(handle, buffer);
    return handle;
  });
}

export function destroyBuffers(device, handles) {
  const state = maybeState(device);
  for (const handle of handles) {
    state?.buffers.get(handle)?.destroy();
    state?.buffers.delete(handle);
  }
}

// `data` is a Python array: its memory is viewed, used and released without an await in between,
// because growing the heap detaches the view.
export function withBytes(data, use) {
  if (data instanceof Uint8Array) return use(data);
  const view = data.getBuffer('u8');
  try {
    if (!view.c_contiguous) throw new WebGPUPyError('DtypeError', 'An array for the device must be contiguous.');
    return use(view.data);
  } finally {
    view.release();
  }
}

export function writeBytes(state, buffer, offset, bytes) {
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
  const handle = newHandle();
  sources.set(handle, source);
  return handle;
}

/** Open a URL as a source, kept in the browser for the next time or not: {handle, name, nbytes, sha256}. */
export async function openUrl(url, keep) {
  const source = await (keep ? cachedSource(url) : urlSource(url));
  return {handle: addSource(source), name: source.name, nbytes: source.nbytes, sha256: source.sha256 ?? null};
}

function sourceOf(handle) {
  const source = sources.get(handle);
  if (!source) throw new WebGPUPyError('WebGPUPyError', `source ${handle} was dropped`);
  return source;
}

export async function readSource(handle, offset, nbytes) {
  return await sourceOf(handle).read(offset, nbytes);
}

/** The file was decided to be loaded: bring all of it, where it is a download. */
export function fetchSource(handle) {
  sourceOf(handle).fetchAll?.();
}

/** Note in the cache that the whole content has this hash. */
export async function verifiedSource(handle, sha256) {
  await sourceOf(handle).verified?.(sha256);
}

/** Forget a source and end its download; what has arrived stays in the cache. */
export function dropSource(handle) {
  sources.get(handle)?.close?.();
  sources.delete(handle);
}

/** Forget a source whose content is wrong; nothing of it stays in the cache. */
export async function discardSource(handle) {
  const source = sources.get(handle);
  sources.delete(handle);
  await source?.discard?.();
}

const UPLOAD_STEP = 4 << 20;
const spare = [];

export async function upload(device, handle, offset, source, sourceOffset, nbytes) {
  const state = stateOf(device);
  fetchSource(source);
  // One piece of memory for all uploads: what is thrown away is collected too late.
  const memory = spare.pop() ?? new Uint8Array(UPLOAD_STEP);
  for (let done = 0; done < nbytes; done += UPLOAD_STEP) {
    const part = memory.subarray(0, Math.min(UPLOAD_STEP, nbytes - done));
    const bytes = await orLost(state, readPart(sourceOf(source), sourceOffset + done, part));
    if (state.lost) throw state.lost;
    writeBytes(state, state.buffers.get(handle), offset + done, bytes);
  }
  // Not after a failure: a read that goes on would write into it.
  spare.push(memory);
}

async function readPart(source, offset, part) {
  if (!source.readInto) return await source.read(offset, part.length);
  await source.readInto(part, offset);
  return part;
}
