// The worker of the `gpu` fixture: boots Pyodide as a page would, then runs the Python it is given.
// `?half=` names the JavaScript half, `?packages=a,b` what the lock should load beyond the core.
import { bootPyodide } from '/boot.js';
import { answerRequests, bytesOf } from '/remote.js';

const query = new URLSearchParams(self.location.search);

async function adapterInfo() {
  if (!navigator.gpu) throw new Error('navigator.gpu is missing in the worker');
  // The first request after the GPU process starts can answer null.
  const adapter = (await navigator.gpu.requestAdapter()) ?? (await navigator.gpu.requestAdapter());
  if (!adapter) throw new Error('navigator.gpu offers no adapter; check the browser flags');
  const { vendor, architecture, device, description } = adapter.info;
  const limits = {};
  for (const name in adapter.limits) limits[name] = adapter.limits[name];
  return { vendor, architecture, device, description, limits, features: [...adapter.features] };
}

async function start(onProgress) {
  const adapter = await adapterInfo();
  const py = await bootPyodide({
    pyodideURL: '/pyodide/',
    wheelURL: '/wheel/webgpu_py.whl',
    packages: (query.get('packages') ?? '').split(',').filter(Boolean),
    jsHalf: await import(query.get('half')),
    onProgress,
  });
  py.FS.writeFile('/home/pyodide/inside.py', await (await fetch('inside.py')).text());
  return { py, inside: py.pyimport('inside'), info: { adapter, pyodide: py.version } };
}

answerRequests(start, async ({ py, inside }, { code }, payload) =>
  bytesOf(await inside.run(code, py.toPy(payload))),
);
