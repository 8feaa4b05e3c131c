// A graph written in JavaScript: steps are noted here and replayed by Python's builder, which checks
// them, when `build` of client.js is called.
import { WebGPUPyError } from './protocol.js';

/** @type {Record<string, string>} */
const DTYPES = {
  Float32Array: 'float32', Float64Array: 'float64', Int8Array: 'int8', Uint8Array: 'uint8', Uint8ClampedArray: 'uint8', Int16Array: 'int16',
  Uint16Array: 'uint16', Int32Array: 'int32', Uint32Array: 'uint32', BigInt64Array: 'int64', BigUint64Array: 'uint64',
};

/** A typed array with a shape; `dtype` where the array's own type does not say it (bool, float16). */
export function array(data, shape = [data.length], dtype = DTYPES[data.constructor.name]) {
  return checked({ dtype, shape: [...shape], data });
}

/** An array whose data fills its shape, as it should; a buffer that was moved away is empty. */
export function checked(given) {
  const { shape, data } = given;
  const numel = shape.reduce((product, n) => product * n, 1);
  if (numel === data.length) return given;
  const hint = data.buffer.detached ? ' Its buffer was moved by an earlier run with `transfer`.' : '';
  throw new WebGPUPyError('ShapeError', `${data.length} elements for the shape [${shape}], which holds ${numel}.${hint}`);
}

/** A dimension that may change from run to run, up to `max`. */
export function dim(name, max) {
  return { $dim: name, max };
}

/** The result of a step; of a step with several results, the list of them. */
class Value {
  constructor(graph, step, index = null) {
    Object.assign(this, { graph, step, index });
  }

  /** One of a step's several results. */
  at(index) {
    return new Value(this.graph, this.step, index);
  }
}

/** Builds a graph: inputs, constants, operator calls by ExecuTorch's names, outputs. */
export class Graph {
  /** What Python replays. */
  steps = [];

  input(name, shape, dtype = 'float32') {
    return this.#note({ input: name, shape, dtype });
  }

  /** An input integer that kernels and shapes read live. */
  symint(name) {
    return this.#note({ symint: name });
  }

  constant(values) {
    return this.#note({ constant: values });
  }

  /** Arguments in ExecuTorch's order: values, numbers, texts, null, lists. */
  call(operator, ...given) {
    return this.#note({ call: operator, args: given.map((argument) => this.#plain(argument)) });
  }

  output(name, value) {
    this.#note({ output: name, value: this.#plain(value) });
  }

  #note(step) {
    this.steps.push(step);
    return new Value(this, this.steps.length - 1);
  }

  #plain(argument) {
    if (Array.isArray(argument)) return argument.map((part) => this.#plain(part));
    if (!(argument instanceof Value)) return argument;
    if (argument.graph !== this) throw new WebGPUPyError('ShapeError', 'A value belongs to another graph.');
    return { $value: argument.step, at: argument.index };
  }
}
