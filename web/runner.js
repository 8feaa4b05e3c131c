// The command line's worker: calls named functions of the package, never code.
// `?packages=a,b` names what the lock should load beyond the core.
import { bootPyodide } from './boot.js';
import * as jsHalf from './js/bridge.js';
import { pythonFiles } from './python-files.js';
import { answerRequests, bytesOf } from './remote.js';

const packages = new URLSearchParams(self.location.search).get('packages') ?? '';

async function start(onProgress) {
  const py = await bootPyodide({
    ...pythonFiles,
    packages: packages.split(',').filter(Boolean),
    jsHalf,
    onProgress,
  });
  return { py, entry: py.pyimport('webgpu_py.entry'), info: { pyodide: py.version } };
}

answerRequests(start, async ({ py, entry }, { name }, payload, emit) =>
  bytesOf(await entry.call(name, py.toPy(payload), emit)),
);
