// Medians with spread, and GPU time by timestamp query: whole passes, several to a submit.

/** @param {number[]} samples @returns {number} */
export function median(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** (largest - smallest) / median: what the median hides. */
export function spread(samples) {
  return (Math.max(...samples) - Math.min(...samples)) / median(samples);
}

const round = (value) => Number(value.toPrecision(5));

/** {ms, spread, n} of some milliseconds. */
export function summary(samples) {
  return { ms: round(median(samples)), spread: round(spread(samples)), n: samples.length };
}

const PASSES_A_SUBMIT = 8;

/** Times passes on one device; keep one a device, for its query set. */
export class PassTimer {
  constructor(gpu) {
    if (!gpu.features.has('timestamp-query')) throw new Error('This device has no timestamp-query.');
    this.gpu = gpu;
    this.queries = gpu.createQuerySet({ type: 'timestamp', count: 2 * PASSES_A_SUBMIT });
    this.resolved = gpu.createBuffer({ size: 16 * PASSES_A_SUBMIT, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
    this.staging = gpu.createBuffer({ size: 16 * PASSES_A_SUBMIT, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  }

  destroy() {
    for (const held of [this.queries, this.resolved, this.staging]) held.destroy();
  }

  async batch(encode, count) {
    const encoder = this.gpu.createCommandEncoder();
    for (let i = 0; i < count; i++) {
      const pass = encoder.beginComputePass({
        timestampWrites: { querySet: this.queries, beginningOfPassWriteIndex: 2 * i, endOfPassWriteIndex: 2 * i + 1 },
      });
      encode(pass);
      pass.end();
    }
    encoder.resolveQuerySet(this.queries, 0, 2 * count, this.resolved, 0);
    encoder.copyBufferToBuffer(this.resolved, 0, this.staging, 0, 16 * count);
    this.gpu.queue.submit([encoder.finish()]);
    await this.staging.mapAsync(GPUMapMode.READ, 0, 16 * count);
    const ticks = new BigUint64Array(this.staging.getMappedRange(0, 16 * count).slice(0));
    this.staging.unmap();
    return Array.from({ length: count }, (_, i) => Number(ticks[2 * i + 1] - ticks[2 * i]) / 1e6);
  }

  /**
   * Milliseconds of passes. The first warms caches and clocks and says how many fit `budgetMs`; one
   * that takes longer than that is all there is.
   * @param {(pass: GPUComputePassEncoder) => void} encode
   * @param {{budgetMs: number, warmMs: number, least: number, most: number}} how
   */
  async samples(encode, { budgetMs, warmMs, least, most }) {
    const started = performance.now();
    let [first] = await this.batch(encode, 1);
    while (performance.now() - started < warmMs) [first] = await this.batch(encode, 1);
    if (first > budgetMs) return [first];
    const wanted = Math.min(most, Math.max(least, Math.floor(budgetMs / Math.max(first, 0.001))));
    const found = [];
    while (found.length < wanted) {
      const few = first > 50 ? 1 : PASSES_A_SUBMIT;
      found.push(...(await this.batch(encode, Math.min(few, wanted - found.length))));
    }
    return found;
  }
}
