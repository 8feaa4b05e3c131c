// Numbers for people.

/** @param {number} n */
export function bytes(n) {
  if (n < 1000) return `${n} B`;
  const step = Math.min(Math.floor(Math.log10(n) / 3), 4);
  const value = n / 1000 ** step;
  return `${value.toFixed(value < 100 ? 1 : 0)} ${['B', 'kB', 'MB', 'GB', 'TB'][step]}`;
}

/** @param {number} ms */
export function duration(ms) {
  if (ms < 1) return `${(1000 * ms).toFixed(0)} µs`;
  if (ms < 1000) return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** @param {number} n */
export function count(n) {
  return n.toLocaleString('en');
}

/** @param {number} n a short form for a cell, a scale or a table */
export function number(n) {
  if (!Number.isFinite(n)) return String(n);
  if (Number.isInteger(n) && Math.abs(n) < 1e6) return String(n);
  const size = Math.abs(n);
  return size >= 1e-3 && size < 1e5 ? n.toPrecision(4).replace(/\.?0+$/, '') : n.toExponential(2);
}

/** @param {number[]} dims */
export function shape(dims) {
  return dims.length ? dims.join(' × ') : 'scalar';
}

const SHORT = { float32: 'f32', float16: 'f16', int32: 'i32', int64: 'i64', uint8: 'u8', int8: 'i8', uint32: 'u32' };

/** @param {string} dtype */
export function shortType(dtype) {
  return SHORT[/** @type {keyof typeof SHORT} */ (dtype)] ?? dtype;
}

/** @param {string} path a URL or a file name @returns {string} its last part, readable */
export function fileName(path) {
  // A folder's address ends with a slash, on a hub with the revision, too.
  const last = path.replace(/[?#].*/, '').replace(/(\/resolve\/[^/]+)?\/$/, '').split('/').pop() ?? path;
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}
