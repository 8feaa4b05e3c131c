// One request for bytes of a file: what the server may answer, as typed errors and plain facts.

import {WebGPUPyError} from './errors.js';

const TRANSIENT = new Set([408, 425, 429, 500, 502, 503, 504]);
const HTML = /^\s*<(!doctype|html)/i;

/** An error that another attempt may mend. */
export function transient(message) {
  return Object.assign(new WebGPUPyError('NetworkError', message), {transient: true});
}

/** `text/html` was served, or bytes that begin like it: a login, an error or a single-page app. */
function htmlError(url, start) {
  return new WebGPUPyError('FormatError', `${url}: got an HTML page instead of a file, starting with ${JSON.stringify(start.slice(0, 40))}. Check the address, and whether it needs a login.`);
}

/** Refuse a web page that came under another content type; nothing of it is kept. */
export function checkNotHtml(url, bytes) {
  const start = new TextDecoder().decode(bytes.subarray(0, 64));
  if (HTML.test(start)) throw htmlError(url, start);
}

/**
 * Ask for bytes `start` to `end` (exclusive), or without them for the whole file.
 *
 * Gives {status, start, total, validator, response}: `total` is null where the server hides it,
 * `validator` where nothing readable says which version of the file this is.
 */
export async function request(url, {start, end, signal}) {
  const {protocol} = new URL(url, globalThis.location?.href);
  // An extension's pages have a protocol of their own, and files beside them.
  if (!['http:', 'https:', 'blob:', globalThis.location?.protocol].includes(protocol)) {
    throw new WebGPUPyError('NetworkError', `${url.slice(0, 100)}: an address begins with http:// or https://, not ${protocol}`);
  }
  const headers = end === undefined ? {} : {Range: `bytes=${start}-${end - 1}`};
  let response;
  try {
    // The browser's own cache would keep a second copy, and answer for a server that has changed.
    response = await fetch(url, {headers, signal, cache: 'no-store'});
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw transient(`${url}: the download failed (${error.message}). Check the address, the network, and that the server allows this page's origin (CORS).`);
  }
  const {status} = response;
  if (status === 416) return {status, start: null, total: null, validator: null, response};
  if (!response.ok) {
    const make = TRANSIENT.has(status) ? transient : (message) => new WebGPUPyError('NetworkError', message);
    const error = make(`${url}: the server answered ${status}. ${status === 401 || status === 403 ? 'The file needs a login or may not be fetched from here.' : 'Check the address.'}`);
    throw Object.assign(error, {status});
  }
  if (/^text\/html/.test(response.headers.get('Content-Type') ?? '')) throw htmlError(url, await response.text());
  if (status !== 206) return {status, start: 0, total: wholeLength(response), validator: validatorOf(response), response};
  const range = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get('Content-Range') ?? '');
  return {status, start: range && Number(range[1]), total: range && Number(range[2]), validator: validatorOf(response), response};
}

function wholeLength(response) {
  const length = response.headers.get('Content-Length');
  // A compressed body's length is not the length that arrives here.
  return length === null || response.headers.get('Content-Encoding') ? null : Number(length);
}

// Only a strong ETag says that two ranges belong together. A date is taken from the page's own server,
// whose answers are all readable; another's may hide the ETag that would have told of a change.
function validatorOf(response) {
  const etag = response.headers.get('ETag');
  if (etag) return etag.startsWith('W/') ? null : etag;
  const own = new URL(response.url).origin === globalThis.location?.origin;
  return own ? response.headers.get('Last-Modified') : null;
}

/** Memory of bodies that have ended, for those that come. */
const spare = [];

// A body read into memory that is there already: garbage of a model's size is collected too late.
class Body {
  constructor(body) {
    try {
      this.reader = body.getReader({mode: 'byob'});
    } catch {
      this.reader = body.getReader();
      this.rest = new Uint8Array(0);
    }
  }

  /** What fills the beginning of `view`, over its memory under another name; empty at the end. */
  async read(view) {
    if (!this.rest) return (await this.reader.read(view)).value;
    while (!this.rest.length) {
      const {done, value} = await this.reader.read();
      if (done) break;
      this.rest = value;
    }
    const part = this.rest.subarray(0, view.length);
    this.rest = this.rest.subarray(part.length);
    view.set(part);
    return view.subarray(0, part.length);
  }

  cancel() {
    this.reader.cancel().catch(() => {});
  }
}

/**
 * A body cut into pieces of `size` bytes, the last one shorter, after `skip` bytes are dropped.
 *
 * A piece is good until the next one is asked for: all lie in the same memory.
 */
export async function* pieces(response, size, skip = 0) {
  const body = new Body(response.body);
  let memory = spare.pop();
  if (memory?.byteLength !== size) memory = new ArrayBuffer(size);
  let filled = 0;
  try {
    for (;;) {
      const part = await body.read(new Uint8Array(memory, filled));
      memory = part.buffer;
      if (!part.length) break;
      const dropped = Math.min(skip, part.length);
      skip -= dropped;
      if (dropped) part.copyWithin(0, dropped);
      filled += part.length - dropped;
      if (filled < size) continue;
      yield new Uint8Array(memory);
      filled = 0;
    }
    if (filled) yield new Uint8Array(memory, 0, filled);
  } finally {
    body.cancel();
    // A read that was cut off has taken it away.
    if (memory.byteLength) spare.push(memory);
  }
}

/** Wait, or reject with the signal's reason. */
export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, {once: true});
  });
}
