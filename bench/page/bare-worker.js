// Pyodide and NumPy alone, as anybody would start them: what our start is compared with.
import { loadedBytes } from './loaded-bytes.js';
import { loadPyodide } from './pyodide/pyodide.mjs';

const py = await loadPyodide({ indexURL: new URL('pyodide/', self.location.href).href });
await py.loadPackage('numpy', { messageCallback: () => {} });
py.runPython('import numpy');
self.postMessage(loadedBytes());
