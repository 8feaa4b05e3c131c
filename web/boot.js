// Start Pyodide with this package in a module worker: strict CSP, no eval, no blob, no COOP/COEP.

/**
 * @typedef {object} Progress
 * @property {'python'|'packages'|'webgpu_py'|'ready'} stage
 * @property {number} loaded  bytes that have arrived in this stage
 * @property {number} total   bytes the stage is known to need so far; 0 when no size is known
 * @property {string} [file]  the file that moved last
 */

/**
 * @typedef {object} Options
 * @property {object} jsHalf        the namespace of js/bridge.js
 * @property {string[]} [packages]  names in the lock, beyond numpy and flatbuffers
 * @property {(progress: Progress) => void} [onProgress]
 */

/**
 * @param {import('./python-files.js').PythonFiles & Options} options
 * @returns {Promise<any>} Pyodide's interface, with webgpu_py importable
 */
export async function bootPyodide({ pyodideURL, wheelURL, lock, wheels = {}, core = {}, jsHalf, packages = [], onProgress }) {
  const folder = new URL(pyodideURL.replace(/\/?$/, '/'), self.location.href).href;
  const wheel = wheelURL && new URL(wheelURL, self.location.href).href;
  const wanted = ['numpy', 'flatbuffers', ...packages, ...(wheel ? [] : ['webgpu-py'])];
  const own = lock && addressed(lock, wheels);
  const meter = new Meter(folder, onProgress ?? (() => {}));
  try {
    meter.enter('python');
    for (const name of ['pyodide.asm.wasm', 'python_stdlib.zip']) {
      meter.ahead([folder + name], name in core ? { integrity: integrityOf(core[name]) } : {});
    }
    if (wheel) meter.ahead([wheel]);
    const locked = fetchPackagesAhead(meter, folder, wanted, own);
    // A bundler has to leave this address alone.
    const { loadPyodide } = await import(/* @vite-ignore */ /* webpackIgnore: true */ folder + 'pyodide.mjs');
    const py = await loadPyodide({ indexURL: folder, packageBaseUrl: folder, ...(own && { lockFileContents: JSON.stringify(own) }) });

    meter.enter('packages');
    await locked;
    await py.loadPackage(wanted, { messageCallback: () => {} });
    const missing = wanted.filter((name) => !(name in py.loadedPackages));
    if (missing.length) {
      throw bootError(`${folder}: could not load ${missing.join(', ')}`);
    }

    meter.enter('webgpu_py');
    if (wheel) {
      const response = await fetch(wheel);
      if (!response.ok) {
        throw bootError(`${wheel}: HTTP ${response.status} instead of a wheel`);
      }
      py.unpackArchive(await response.arrayBuffer(), 'wheel');
    }
    py.registerJsModule('_webgpu_py_js', jsHalf);
    meter.enter('ready');
    return py;
  } catch (error) {
    throw meter.failure ?? error;
  } finally {
    meter.close();
  }
}

function bootError(message) {
  return Object.assign(new Error(message), { code: 'NetworkError' });
}

// Wheels may lie elsewhere than Pyodide's own files: their addresses go into the lock.
function addressed(lock, wheels) {
  const packages = Object.entries(lock.packages).map(([name, entry]) => [name, { ...entry, file_name: wheels[entry.file_name] ?? entry.file_name }]);
  return { ...lock, packages: Object.fromEntries(packages) };
}

// Pyodide asks for its packages only after it has started; the lock says earlier which they are.
async function fetchPackagesAhead(meter, folder, wanted, lock) {
  try {
    const { packages } = lock ?? (await (await meter.fetch.call(self, folder + 'pyodide-lock.json')).json());
    const names = new Set();
    const add = (name) => {
      const entry = packages[name.toLowerCase().replaceAll('_', '-')];
      if (!entry || names.has(name)) return;
      names.add(name);
      entry.depends.forEach(add);
      meter.ahead([new URL(entry.file_name, folder).href], { integrity: integrityOf(entry.sha256) });
    };
    wanted.forEach(add);
  } catch {
    // A head start only: what is wrong with the lock, Pyodide says better.
  }
}

function integrityOf(hex) {
  const bytes = hex.match(/../g).map((pair) => parseInt(pair, 16));
  return 'sha256-' + btoa(String.fromCharCode(...bytes));
}

// Pyodide fetches its files itself and reports no bytes, so fetch is counted while it starts, and
// what was asked for ahead of it is handed over when it comes to ask.
class Meter {
  constructor(folder, report) {
    Object.assign(this, { folder, report });
    this.fetch = self.fetch;
    this.early = new Map();
    self.fetch = async (resource, options) => {
      const url = String(resource.url ?? resource);
      const early = this.early.get(url);
      this.early.delete(url);
      if (early) return early;
      const response = await this.fetch.call(self, resource, options);
      // On a page's own thread others fetch too.
      return url.startsWith(this.folder) ? this.count(resource, response) : response;
    };
  }

  ahead(urls, options) {
    for (const url of urls) {
      const response = this.fetch.call(self, url, options).then((found) => this.count(url, found));
      // Whoever asks for it sees the failure; nobody has to ask. Pyodide's words for it name no file.
      response.catch(({ message }) => {
        const unlike = options?.integrity ? ', or the file is not the one that was pinned' : '';
        this.failure ??= bootError(`${url}: the download failed (${message})${unlike}.`);
      });
      this.early.set(url, response);
    }
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
    this.follow(file, response.clone().body.getReader());
    // As it came: of a response that a script made, Chromium (156) keeps no compiled code for the next visit.
    return response;
  }

  async follow(file, reader) {
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        this.loaded += next.value.byteLength;
        this.tell(file);
      }
    } catch {
      // Whoever reads the response itself says what is wrong.
    }
  }

  tell(file) {
    const { stage, loaded, total } = this;
    this.report({ stage, loaded, total: Math.max(loaded, total) || 0, ...(file && { file }) });
  }

  close() {
    self.fetch = this.fetch;
    this.report = () => {};
  }
}
