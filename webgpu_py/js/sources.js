// Random-access bytes in the browser: a URL read in ranges, a Blob or File, or memory.
// A source is {name, nbytes, read(offset, nbytes) -> Promise<Uint8Array>}.

import {WebGPUPyError} from './errors.js';

function checkRange(source, offset, nbytes) {
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

async function get(url, options) {
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (options.signal?.aborted) throw options.signal.reason;
    throw new WebGPUPyError('NetworkError', `${url}: the download failed (${error.message}). Check the address, the network, and that the server allows this page's origin (CORS).`);
  }
  if (!response.ok) throw new WebGPUPyError('NetworkError', `${url}: the server answered ${response.status}. Check the address.`);
  if (/^text\/html/.test(response.headers.get('Content-Type') ?? '')) {
    const start = (await response.text()).slice(0, 40);
    throw new WebGPUPyError('FormatError', `${url}: got an HTML page instead of a file, starting with ${JSON.stringify(start)}. Check the address.`);
  }
  return response;
}

/** A URL: read in ranges where the server has them, else downloaded whole once. */
export async function urlSource(url, options = {}) {
  const {signal} = options;
  const first = await get(url, {signal, headers: {Range: 'bytes=0-0'}});
  const total = /\/(\d+)$/.exec(first.headers.get('Content-Range') ?? '');
  if (first.status !== 206 || !total) {
    const whole = first.status === 206 ? await get(url, {signal}) : first;
    return blobSource(await whole.blob(), url);
  }
  await first.arrayBuffer();
  const validator = first.headers.get('ETag');
  const source = {
    name: url, nbytes: Number(total[1]),
    async read(offset, nbytes) {
      checkRange(source, offset, nbytes);
      if (!nbytes) return new Uint8Array(0);
      const response = await get(url, {signal, headers: {Range: `bytes=${offset}-${offset + nbytes - 1}`}});
      const range = response.headers.get('Content-Range');
      if (response.status !== 206 || (range && !range.startsWith(`bytes ${offset}-`))) {
        throw new WebGPUPyError('NetworkError', `${url}: asked for bytes from ${offset}, the server answered ${response.status} ${range ?? ''}.`);
      }
      if (validator && response.headers.get('ETag') !== validator) {
        throw new WebGPUPyError('NetworkError', `${url}: the file changed on the server while it was read. Load it again.`);
      }
      const bytes = new Uint8Array(await response.arrayBuffer());
      if (bytes.byteLength !== nbytes) throw new WebGPUPyError('NetworkError', `${url}: got ${bytes.byteLength} of ${nbytes} bytes from ${offset}. Load it again.`);
      return bytes;
    },
  };
  return source;
}
