// In the worker: what a page points at (a URL, a dropped file) as a source that reports its bytes.
import { blobSource, urlSource } from '../js/sources.js';
import { WebGPUPyError, isProgram, LANGUAGE_PACKAGES } from '../protocol.js';

let blocked = '';
self.addEventListener('securitypolicyviolation', (event) => (blocked = event.blockedURI));

/**
 * @param {{url?: string, file?: File}} given
 * @param {{addSource: (source: any) => number}} half
 * @param {AbortSignal} signal
 * @param {(progress: Omit<import('../protocol.js').Progress, 'stage'>) => void} report
 */
export async function openCounted(given, half, signal, report) {
  const source = given.file ? blobSource(given.file) : await openURL(String(given.url), signal);
  let loaded = 0;
  const counted = {
    name: source.name,
    nbytes: source.nbytes,
    async read(offset, nbytes) {
      signal.throwIfAborted();
      const bytes = await source.read(offset, nbytes);
      loaded += nbytes;
      report({ loaded: Math.min(loaded, source.nbytes), total: source.nbytes, unit: 'bytes', file: source.name });
      return bytes;
    },
  };
  const packages = isProgram(source.name) ? [] : LANGUAGE_PACKAGES;
  return { handle: half.addSource(counted), name: source.name, nbytes: source.nbytes, packages };
}

async function openURL(url, signal) {
  blocked = '';
  try {
    return await urlSource(url, { signal });
  } catch (/** @type {any} */ error) {
    // The report of a violation comes a little after the failure it explains.
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (error.code === 'NetworkError' && blocked && new URL(url).origin !== self.location.origin) {
      throw new WebGPUPyError('NetworkError', `${url}: this page's Content-Security-Policy lets it fetch from its own server only. Download the file and drop it on the page, or add ${new URL(url).origin} to connect-src where the page is served.`);
    }
    throw error;
  }
}
