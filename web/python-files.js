// Where the worker finds Python, as the development server has it. `webgpu-py build` and the npm
// package put a module of their own in this place, with a lock file and hashes in it.

/**
 * @typedef {object} PythonFiles
 * @property {string} pyodideURL  folder of Pyodide's files
 * @property {string} [wheelURL]  this package's wheel; without it the lock must name it
 * @property {any} [lock]         Pyodide's lock; by default pyodide-lock.json of the folder
 * @property {Record<string, string>} [wheels]  address of each wheel of the lock that is not in the folder
 * @property {Record<string, string>} [core]    SHA-256 of Pyodide's own files
 */

/** @type {PythonFiles} */
export const pythonFiles = {
  pyodideURL: new URL('./pyodide/', import.meta.url).href,
  wheelURL: new URL('./wheel/webgpu_py.whl', import.meta.url).href,
};
