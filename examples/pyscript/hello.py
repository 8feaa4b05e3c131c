"""A graph on the browser's GPU; `await` stands at top level, as everywhere in PyScript."""

import numpy as np
from pyscript import display

import webgpu_py as wg

g = wg.Graph()
x = g.input("x", (wg.dim("n", max=16), 64), "float32")
g.output("y", g.sigmoid(x))
display(g, target="out")

device = await wg.request_device("browser")
session = await g.build(device)
out = await session.run(x=np.linspace(-4, 4, 4 * 64, dtype=np.float32).reshape(4, 64))
display(wg.Heatmap(out["y"], "y"), target="out")
display(f"mean {out['y'].mean():.6f} on {device.info['vendor']}", target="out")
