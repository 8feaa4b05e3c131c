// What an app holds of an open file or a built graph: typed arrays in, typed arrays out.
import { checked } from './graph.js';

/** Every open thing: it has a connection of its own, or the one it was given. */
export class Opened {
  #open;

  constructor(connection, info, open) {
    this.connection = connection;
    this.info = info;
    this.name = info.name;
    this.#open = open;
  }

  /**
   * Opens the same again, in place, after DeviceLost: on a new device, and in a new worker where that is gone.
   * What the browser has kept is not downloaded again.
   */
  async restart({ signal, onProgress } = {}) {
    const connection = this.connection.gone ? undefined : this.connection;
    const [to, info] = await this.#open({ signal, connection, ...(onProgress && { onProgress }) });
    Object.assign(this, { connection: to, info });
  }

  /** GPU bytes by kind, and the Python heap. */
  memory() {
    return this.connection.call('memory');
  }

  /** The adapter with its limits and features. */
  device() {
    return this.connection.call('device');
  }

  /** Frees the model, the device and the worker. */
  close() {
    this.connection.close();
  }
}

/** An ExecuTorch program; made by `load`. */
export class Program extends Opened {
  /** Runs a method on arrays `{dtype, shape, data}` and numbers; its outputs are the same. */
  async run(inputs, { method = 'forward', signal, transfer } = {}) {
    const { outputs } = await this.connection.call('run', { method, inputs, whole: true }, { signal, transfer: prepared(inputs, transfer) });
    return outputs.map((output) => output.array ?? output.value);
  }

  /** Runs node by node, every result beside NumPy's: the first NaN or wrong value. */
  debug(inputs, { method = 'forward', signal } = {}) {
    prepared(inputs);
    return this.connection.call('debug', { method, inputs }, { signal });
  }

  /** Caches and mutable buffers as at first. */
  reset() {
    return this.connection.call('reset');
  }
}

/** A graph on a device; made by `build`. */
export class Session extends Opened {
  /** Runs on arrays by input name; the outputs by name. */
  async run(inputs, { signal, transfer } = {}) {
    return this.connection.call('run', { inputs }, { signal, transfer: prepared(Object.values(inputs), transfer) });
  }

  /** Runs node by node, every result beside NumPy's: the first NaN or wrong value. */
  debug(inputs, { signal } = {}) {
    prepared(Object.values(inputs));
    return this.connection.call('debug', { inputs }, { signal });
  }

  /** Milliseconds of build and last run. */
  timings() {
    return this.connection.call('timings');
  }

  /** Caches and mutable tensors as at first. */
  reset() {
    return this.connection.call('reset');
  }
}

/** Checks the arrays among the inputs; the buffers that move with them. */
function prepared(inputs, transfer) {
  const arrays = inputs.filter((input) => ArrayBuffer.isView(input?.data)).map(checked);
  return transfer ? [...new Set(arrays.map(({ data }) => data.buffer))] : [];
}
