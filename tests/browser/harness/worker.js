// The worker side of the harness: boots Pyodide as a page would, then runs the Python it is given.
import { bootPyodide } from '/boot.js';

const query = new URLSearchParams(self.location.search);

async function adapterInfo() {
  if (!navigator.gpu) throw new Error('NoWebGPU: navigator.gpu is missing in the worker');
  // The first request after the GPU process starts can answer null.
  const adapter = (await navigator.gpu.requestAdapter()) ?? (await navigator.gpu.requestAdapter());
  if (!adapter) throw new Error('NoAdapter: navigator.gpu offers no adapter; check the flags');
  const { vendor, architecture, device, description } = adapter.info;
  const limits = {};
  for (const name in adapter.limits) limits[name] = adapter.limits[name];
  return { vendor, architecture, device, description, limits, features: [...adapter.features] };
}

async function start() {
  const adapter = await adapterInfo();
  const jsHalf = await import(query.get('half'));
  const py = await bootPyodide({
    pyodideURL: '/pyodide/',
    wheelURL: '/wheel/webgpu_py.whl',
    packages: (query.get('packages') ?? '').split(',').filter(Boolean),
    jsHalf,
    onProgress: (progress) => self.postMessage({ kind: 'progress', progress }),
  });
  for (const file of ['transfer.py', 'inside.py']) {
    py.FS.writeFile(`/home/pyodide/${file}`, await (await fetch(`/harness/${file}`)).text());
  }
  return { inside: py.pyimport('inside'), adapter, version: py.version };
}

const started = start();
started.then(
  ({ adapter, version }) => self.postMessage({ kind: 'ready', info: { adapter, pyodide: version } }),
  (error) => self.postMessage({ kind: 'failed', message: String(error?.message ?? error) }),
);

// Requests run one after the other: they share the device and its queue.
let last = started;
self.onmessage = ({ data }) => {
  last = last.catch(() => {}).then(() => answer(data));
};

async function answer({ id, code, input, output }) {
  try {
    const { inside } = await started;
    const payload = new Uint8Array(await (await fetch(input)).arrayBuffer());
    const result = (await inside.run(code, payload)).toJs();
    const body = result.subarray ? result : new Uint8Array(result);
    const response = await fetch(output, { method: 'POST', body });
    if (!response.ok) throw new Error(`POST ${output}: HTTP ${response.status}`);
    self.postMessage({ id, nbytes: body.byteLength });
  } catch (error) {
    self.postMessage({ id, error: { type: error.name, message: error.message } });
  }
}
