// A GPU lowers its clock while a case is prepared, and takes its time to raise it again: an H200 went
// between 0.3 and 1.9 GHz by itself within a run. Before a measurement it is kept busy until a chain
// of multiply-adds takes as long as it did at best.

import { PassTimer } from './measure.js';

const TURNS = 20000; // of the chain, some 50 us
const BURST = 16384; // workgroups, some 10 ms
const FIRST_BURSTS = 50;
const MOST_BURSTS = 40;

const CHAIN = `
override turns: u32;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  var a = y[id.x % 64u];
  for (var i = 0u; i < turns; i++) { a = fma(a, 0.999, 0.5); }
  if (a == 12345.678) { y[0] = a; }
}`;

export class Warmth {
  /** @param {GPUDevice} gpu */
  static async of(gpu) {
    const module = gpu.createShaderModule({ code: CHAIN });
    const pipeline = await gpu.createComputePipelineAsync({ layout: 'auto', compute: { module, constants: { turns: TURNS } } });
    const made = new Warmth(gpu, pipeline);
    for (let burst = 0; burst < FIRST_BURSTS; burst++) await made.run(BURST);
    made.best = await made.run(1);
    return made;
  }

  constructor(gpu, pipeline) {
    this.timer = new PassTimer(gpu);
    this.pipeline = pipeline;
    const entries = [{ binding: 0, resource: { buffer: gpu.createBuffer({ size: 256, usage: GPUBufferUsage.STORAGE }) } }];
    this.group = gpu.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
  }

  /** Milliseconds of the chain in so many workgroups, right after the same. */
  async run(workgroups) {
    const encode = (pass) => {
      pass.setPipeline(this.pipeline);
      pass.setBindGroup(0, this.group);
      pass.dispatchWorkgroups(workgroups);
    };
    return (await this.timer.batch(encode, 2))[1];
  }

  /** Until the clock is within a tenth of the best that was seen, or does not come up. */
  async raise() {
    for (let burst = 0; burst < MOST_BURSTS; burst++) {
      const ms = await this.run(1);
      this.best = Math.min(this.best, ms);
      if (ms < 1.1 * this.best) return;
      await this.run(BURST);
    }
  }
}
