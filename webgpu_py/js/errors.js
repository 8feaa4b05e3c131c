// The package's errors on the JavaScript side: `code` is the same string as in Python.

export class WebGPUPyError extends Error {
  constructor(code, message) {
    super(message);
    this.name = code;
    this.code = code;
  }
}
