// A graph on the GPU: sigmoid of sixteen numbers. `VITE_PYODIDE` names a folder of Pyodide's files to
// use instead of the public CDN.
import { Graph, array, build, dim } from 'webgpu-py';

const status = document.querySelector('[role=status]');

const g = new Graph();
const x = g.input('x', [dim('n', 16), 8]);
g.output('y', g.call('aten.sigmoid.default', x));

try {
  const session = await build(g, {
    pyodideURL: import.meta.env.VITE_PYODIDE,
    onProgress: ({ stage }) => (status.textContent = stage),
  });
  const { y } = await session.run({ x: array(Float32Array.from({ length: 16 }, (_, i) => i - 8), [2, 8]) });
  document.querySelector('[data-testid=output]').textContent = JSON.stringify([...y.data]);
  status.textContent = 'Done';
} catch (error) {
  status.textContent = `${error.code}: ${error.message}`;
}
