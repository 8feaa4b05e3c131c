// Random-access bytes in the browser: a Blob or File, memory, or a URL that is not kept.
// A source is {name, nbytes, read(offset, nbytes) -> Promise<Uint8Array>}; one that can fill memory of
// the caller's has readInto(target, offset) as well.

import {WebGPUPyError} from './errors.js';
import {checkNotHtml, request} from './http.js';

/** FormatError unless bytes `offset` to `offset + nbytes` lie inside a source. */
export function checkRange(source, offset, nbytes) {
  if (offset < 0 || nbytes < 0 || offset + nbytes > source.nbytes) {
    throw new WebGPUPyError('FormatError', `${source.name}: bytes ${offset} to ${offset + nbytes} were asked for, it holds ${source.nbytes}. The file is truncated or its header is wrong; download it again.`);
  }
}

/** A Blob or a dropped File. */
export function blobSource(blob, name = blob.name ?? 'blob') {
  const source = {
    name, nbytes: blob.size,
    async read(offset, nbytes) {
      checkRange(source, offset, nbytes);
      return new Uint8Array(await blob.slice(offset, offset + nbytes).arrayBuffer());
    },
  };
  return source;
}

/** Bytes that are in memory already. */
export function bytesSource(bytes, name = 'memory') {
  const source = {
    name, nbytes: bytes.byteLength,
    async read(offset, nbytes) {
      checkRange(source, offset, nbytes);
      return bytes.slice(offset, offset + nbytes);
    },
  };
  return source;
}

/** A URL of which ranges are read as they are asked for and nothing is kept; whole where the server has none. */
export async function urlSource(url, {signal} = {}) {
  const first = await request(url, {start: 0, end: 1, signal});
  if (first.status !== 206 || !first.total) {
    const whole = first.status === 200 ? first : await request(url, {signal});
    const blob = await whole.response.blob();
    if (blob.size) checkNotHtml(url, new Uint8Array(await blob.slice(0, 64).arrayBuffer()));
    return blobSource(blob, url);
  }
  await first.response.arrayBuffer();
  const source = {
    name: url, nbytes: first.total,
    async read(offset, nbytes) {
      checkRange(source, offset, nbytes);
      if (!nbytes) return new Uint8Array(0);
      const {status, start, validator, response} = await request(url, {start: offset, end: offset + nbytes, signal});
      if (status !== 206 || (start !== null && start !== offset)) {
        throw new WebGPUPyError('NetworkError', `${url}: asked for bytes from ${offset}, the server answered ${status} ${response.headers.get('Content-Range') ?? ''}.`);
      }
      if (validator !== first.validator) {
        throw new WebGPUPyError('NetworkError', `${url}: the file changed on the server while it was read. Load it again.`);
      }
      const bytes = new Uint8Array(await response.arrayBuffer());
      if (bytes.byteLength !== nbytes) throw new WebGPUPyError('NetworkError', `${url}: got ${bytes.byteLength} of ${nbytes} bytes from ${offset}. Load it again.`);
      return bytes;
    },
  };
  return source;
}
