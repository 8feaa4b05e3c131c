// Values with arrays in them, as JSON beside a list of buffers: what Python and the worker exchange.
// An array is {dtype, shape, data} with a typed array in `data`; in JSON it is {"$array": index, dtype, shape}.

/**
 * @typedef {{dtype: string, shape: number[], data: any}} NdArray
 */

/** @type {Record<string, any>} */
const TYPES = {
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  float16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
};

/** @param {any} value @returns {{json: string, buffers: Uint8Array[]}} */
export function encode(value) {
  /** @type {Uint8Array[]} */
  const buffers = [];
  const json = JSON.stringify(value, (_key, v) => {
    if (!ArrayBuffer.isView(v?.data)) return v;
    const { dtype, shape, data } = v;
    buffers.push(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    return { $array: buffers.length - 1, dtype, shape };
  });
  return { json, buffers };
}

/** @param {string} json @param {Uint8Array[]} buffers @returns {any} */
export function decode(json, buffers) {
  return JSON.parse(json, (_key, v) => {
    if (v === null || typeof v !== 'object' || !('$array' in v)) return v;
    const { dtype, shape, $array } = v;
    const type = TYPES[dtype];
    const bytes = buffers[$array];
    return { dtype, shape, data: new type(bytes.buffer, bytes.byteOffset, bytes.byteLength / type.BYTES_PER_ELEMENT) };
  });
}

/** @param {Uint8Array[]} buffers @returns {ArrayBufferLike[]} what postMessage may move instead of copying */
export const transferable = (buffers) => buffers.map((b) => b.buffer);
