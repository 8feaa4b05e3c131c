// GPU time of another library's compute passes: every device asked for on this page gets
// timestamp queries, and passes that bring none of their own are timed while someone listens.

const MOST_PASSES = 2048;
const recorders = new WeakMap();
const deviceOf = new WeakMap();
let listening = null;

function patch(type, name, wrap) {
  const original = type.prototype[name];
  type.prototype[name] = wrap(original);
}

/** Must run before the library asks for its device. */
export function watchPasses() {
  patch(GPUAdapter, 'requestDevice', (original) => function (descriptor = {}) {
    const features = new Set(descriptor.requiredFeatures ?? []).add('timestamp-query');
    return original.call(this, { ...descriptor, requiredFeatures: [...features] });
  });
  patch(GPUDevice, 'createCommandEncoder', (original) => function (...args) {
    const encoder = original.apply(this, args);
    deviceOf.set(encoder, this);
    return encoder;
  });
  patch(GPUCommandEncoder, 'beginComputePass', (original) => function (descriptor = {}) {
    const device = deviceOf.get(this);
    const timed = listening === device && device !== undefined && !descriptor.timestampWrites;
    return original.call(this, timed ? { ...descriptor, timestampWrites: recorderOf(device).next() } : descriptor);
  });
}

class Recorder {
  constructor(gpu) {
    this.gpu = gpu;
    this.count = 0;
    this.queries = gpu.createQuerySet({ type: 'timestamp', count: 2 * MOST_PASSES });
    this.resolved = gpu.createBuffer({ size: 16 * MOST_PASSES, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
    this.staging = gpu.createBuffer({ size: 16 * MOST_PASSES, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  }

  next() {
    const at = 2 * this.count++;
    if (this.count > MOST_PASSES) throw new Error(`More than ${MOST_PASSES} passes were recorded at once.`);
    return { querySet: this.queries, beginningOfPassWriteIndex: at, endOfPassWriteIndex: at + 1 };
  }

  /** Milliseconds of each pass recorded since the last call. */
  async collect() {
    const { gpu, count } = this;
    this.count = 0;
    if (!count) return [];
    const encoder = gpu.createCommandEncoder();
    encoder.resolveQuerySet(this.queries, 0, 2 * count, this.resolved, 0);
    encoder.copyBufferToBuffer(this.resolved, 0, this.staging, 0, 16 * count);
    gpu.queue.submit([encoder.finish()]);
    await this.staging.mapAsync(GPUMapMode.READ, 0, 16 * count);
    const ticks = new BigUint64Array(this.staging.getMappedRange(0, 16 * count).slice(0));
    this.staging.unmap();
    return Array.from({ length: count }, (_, i) => Number(ticks[2 * i + 1] - ticks[2 * i]) / 1e6);
  }
}

function recorderOf(gpu) {
  if (!recorders.has(gpu)) recorders.set(gpu, new Recorder(gpu));
  return recorders.get(gpu);
}

const total = (parts) => parts.reduce((a, b) => a + b, 0);

/**
 * Milliseconds of GPU time of runs of `run`, each the sum of its passes: gaps between them, while
 * the GPU waits for the host, do not count. As PassTimer.samples otherwise.
 * @param {GPUDevice} gpu @param {() => Promise<unknown>} run
 * @param {{budgetMs: number, warmMs: number, least: number, most: number}} how
 */
export async function timeRuns(gpu, run, { budgetMs, warmMs, least, most }) {
  const recorder = recorderOf(gpu);
  const some = async (count) => {
    const ends = [];
    listening = gpu;
    try {
      for (let i = 0; i < count; i++) {
        await run();
        ends.push(recorder.count);
      }
    } finally {
      listening = null;
    }
    const passes = await recorder.collect();
    return ends.map((end, i) => total(passes.slice(ends[i - 1] ?? 0, end)));
  };
  const started = performance.now();
  let passes, first;
  do {
    listening = gpu;
    await run();
    listening = null;
    const found = await recorder.collect();
    passes = found.length;
    first = total(found);
  } while (performance.now() - started < warmMs);
  if (first > budgetMs) return [first];
  const wanted = Math.min(most, Math.max(least, Math.floor(budgetMs / Math.max(first, 0.001))));
  return some(Math.min(wanted, Math.floor(MOST_PASSES / Math.max(passes, 1))));
}
