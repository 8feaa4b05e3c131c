// ONNX models as bytes: the little of protocol buffers and of onnx.proto that graphs of a few
// operators need. Field numbers are onnx.proto's.

export const ELEMENT = Object.freeze({ float32: 1, uint8: 2, int32: 6, int64: 7, float16: 10 });

const text = new TextEncoder();

function varint(value) {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes = [];
  do {
    bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0));
    rest >>= 7n;
  } while (rest);
  return Uint8Array.from(bytes);
}

const size = (parts) => parts.reduce((sum, part) => sum + part.length, 0);
const integer = (field, value) => [varint(field << 3), varint(value)];
const bytes = (field, parts) => [varint((field << 3) | 2), varint(size(parts)), ...parts];
const string = (field, value) => bytes(field, [text.encode(value)]);
const float = (field, value) => [varint((field << 3) | 5), new Uint8Array(Float32Array.of(value).buffer)];

function attribute([name, value]) {
  const typed = value instanceof Real ? [...float(2, value.number), ...integer(20, 1)] : [...integer(3, value), ...integer(20, 2)];
  return bytes(5, [...string(1, name), ...typed]);
}

class Real {
  constructor(number) {
    this.number = number;
  }
}

/** A float attribute; plain numbers are integers. */
export const real = (number) => new Real(number);

/** One node; names of absent optional inputs and outputs are ''. */
export function node(op, inputs, outputs, attributes = {}, domain = '') {
  return bytes(1, [
    ...inputs.flatMap((name) => string(1, name)),
    ...outputs.flatMap((name) => string(2, name)),
    ...string(4, op),
    ...Object.entries(attributes).flatMap(attribute),
    ...string(7, domain),
  ]);
}

/** A weight. @param {ArrayBufferView} data */
export function initializer(name, type, dims, data) {
  const raw = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return bytes(5, [...dims.flatMap((d) => integer(1, d)), ...integer(2, ELEMENT[type]), ...string(8, name), ...bytes(9, [raw])]);
}

/** A weight whose bytes are `length` from `offset` on of the file `location`. */
export function external(name, type, dims, location, offset, length) {
  const entry = (key, value) => bytes(13, [...string(1, key), ...string(2, String(value))]);
  return bytes(5, [
    ...dims.flatMap((d) => integer(1, d)), ...integer(2, ELEMENT[type]), ...string(8, name),
    ...entry('location', location), ...entry('offset', offset), ...entry('length', length), ...integer(14, 1),
  ]);
}

function port(field, name, type, dims) {
  const shape = dims.flatMap((d) => bytes(1, typeof d === 'number' ? integer(1, d) : string(2, d)));
  return bytes(field, [...string(1, name), ...bytes(2, bytes(1, [...integer(1, ELEMENT[type]), ...bytes(2, shape)]))]);
}

/** A graph input or output; a dim may be a name. */
export const input = (name, type, dims) => port(11, name, type, dims);
export const output = (name, type, dims) => port(12, name, type, dims);

/** The file of a model from nodes, initializers, inputs and outputs in any order. */
export function model(parts) {
  const opset = (domain, version) => bytes(8, [...string(1, domain), ...integer(2, version)]);
  const all = [...integer(1, 10), ...opset('', 21), ...opset('com.microsoft', 1), ...bytes(7, [...string(2, 'bench'), ...parts.flat()])];
  const file = new Uint8Array(size(all));
  let at = 0;
  for (const part of all) {
    file.set(part, at);
    at += part.length;
  }
  return file;
}
