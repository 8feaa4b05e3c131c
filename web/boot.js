// Start Pyodide with this package in a module worker: strict CSP, no eval, no blob, no COOP/COEP.

/**
 * @typedef {object} Progress
 * @property {'python'|'packages'|'webgpu_py'|'ready'} stage
 * @property {number} loaded  bytes that have arrived in this stage
 * @property {number} total   bytes the stage is known to need so far; 0 when no size is known
 * @property {string} [file]  the file that moved last
 */

/**
 * @param {object} options
 * @param {string} options.pyodideURL    folder of pyodide.mjs, its wheels and pyodide-lock.json
 * @param {object} options.jsHalf        the namespace of js/bridge.js
 * @param {string[]} [options.packages]  names in the lock, beyond numpy and flatbuffers
 * @param {string} [options.wheelURL]    this package's wheel; without it the lock must name it
 * @param {(progress: Progress) => void} [options.onProgress]
 * @returns {Promise<any>} Pyodide's interface, with webgpu_py importable
 */
export async function bootPyodide({ pyodideURL, jsHalf, packages = [], wheelURL, onProgress }) {
  const folder = new URL(pyodideURL.replace(/\/?$/, '/'), self.location.href).href;
  const meter = new Meter(onProgress ?? (() => {}));
  try {
    meter.enter('python');
    const { loadPyodide } = await import(folder + 'pyodide.mjs');
    const py = await loadPyodide({ indexURL: folder });

    meter.enter('packages');
    const wanted = ['numpy', 'flatbuffers', ...packages, ...(wheelURL ? [] : ['webgpu-py'])];
    await py.loadPackage(wanted, { messageCallback: () => {} });
    const missing = wanted.filter((name) => !(name in py.loadedPackages));
    if (missing.length) {
      throw bootError(`${folder}: could not load ${missing.join(', ')}`);
    }

    meter.enter('webgpu_py');
    if (wheelURL) {
      const response = await fetch(new URL(wheelURL, self.location.href));
      if (!response.ok) {
        throw bootError(`${wheelURL}: HTTP ${response.status} instead of a wheel`);
      }
      py.unpackArchive(await response.arrayBuffer(), 'wheel');
    }
    py.registerJsModule('_webgpu_py_js', jsHalf);
    meter.enter('ready');
    return py;
  } finally {
    meter.close();
  }
}

function bootError(message) {
  return Object.assign(new Error(message), { code: 'NetworkError' });
}

// Pyodide fetches its files itself and reports no bytes, so fetch is counted while it starts.
class Meter {
  constructor(report) {
    this.report = report;
    this.fetch = self.fetch;
    self.fetch = async (resource, options) => this.count(resource, await this.fetch.call(self, resource, options));
  }

  enter(stage) {
    Object.assign(this, { stage, loaded: 0, total: 0 });
    this.tell();
  }

  count(resource, response) {
    if (!response.body || !response.ok) return response;
    const file = String(resource.url ?? resource).replace(/[?#].*/, '').replace(/.*\//, '');
    // A compressed body's length is not the length that arrives here.
    if (!response.headers.get('Content-Encoding')) {
      this.total += Number(response.headers.get('Content-Length')) || 0;
    }
    const counter = new TransformStream({
      transform: (chunk, controller) => {
        this.loaded += chunk.byteLength;
        this.tell(file);
        controller.enqueue(chunk);
      },
    });
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(counter), { status, statusText, headers });
  }

  tell(file) {
    const { stage, loaded, total } = this;
    this.report({ stage, loaded, total: Math.max(loaded, total) || 0, ...(file && { file }) });
  }

  close() {
    self.fetch = this.fetch;
  }
}
