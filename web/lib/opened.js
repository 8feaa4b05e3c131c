// In the worker: what a page points at (a URL, a dropped file) as a source for Python and the GPU.
import { cachedSource } from '../js/download.js';
import { blobSource } from '../js/sources.js';
import { WebGPUPyError, isProgram, LANGUAGE_PACKAGES } from '../protocol.js';

let blocked = '';
self.addEventListener('securitypolicyviolation', (event) => (blocked = event.blockedURI));

/**
 * @typedef {object} DownloadOptions
 * @property {AbortSignal} signal
 * @property {(progress: {loaded: number, total: number}) => void} onProgress
 * @property {(message: string) => void} onWarning
 *
 * @param {{url?: string, file?: File}} given
 * @param {DownloadOptions} options
 * @returns {Promise<any>} a source; a URL's is kept in this browser
 */
export async function openGiven(given, options) {
  return given.file ? blobSource(given.file) : await openURL(String(given.url), options);
}

/** @param {{name: string}} source @returns {readonly string[]} packages that reading it needs */
export const packagesFor = (source) => (isProgram(source.name) ? [] : LANGUAGE_PACKAGES);

/** @param {string} url @param {DownloadOptions} options */
async function openURL(url, options) {
  try {
    return await cachedSource(url, options);
  } catch (error) {
    throw await explained(url, error);
  }
}

/**
 * What kept an address from being fetched, where it was this page's own policy.
 * @param {string} url @param {any} error
 */
export async function explained(url, error) {
  // The report of a violation comes a little after the failure it explains.
  await new Promise((resolve) => setTimeout(resolve, 50));
  const byPolicy = blocked;
  blocked = '';
  if (error.code === 'NetworkError' && byPolicy && new URL(url).origin !== self.location.origin) {
    return new WebGPUPyError('NetworkError', `${url}: this page's Content-Security-Policy lets it fetch from its own server only. Download the file and drop it on the page, or add ${new URL(url).origin} to connect-src where the page is served.`);
  }
  return error;
}
