// What we cost beside the arithmetic: Python, dispatches, the way to a ready page.

import { startOurs } from './ours.js';
import { summary } from './measure.js';

/** @param {any} context see main.js */
export async function runOverhead(context) {
  const { keep } = context;
  const row = async (name, mine, peer, theirs, more = {}) => {
    if (!keep(name)) return;
    await context.row({
      suite: 'overhead', case: name, ours: 'webgpu_py', ours_ms: mine.ms, peer, peer_version: peer && context.versions.pyodide, peer_ms: theirs?.ms ?? null,
      ratio: theirs ? theirs.ms / mine.ms : null, share_of_limit: null, ours_spread: mine.spread, peer_spread: theirs?.spread ?? null, ...more,
    });
    await context.log(`${name}  ${mine.ms} ms  ${peer ?? ''} ${theirs?.ms ?? ''} ${JSON.stringify(more)}`);
  };

  // The chain of overhead.py has 300 nodes.
  if (keep('run/300_dispatches') || keep('build/300_dispatches')) await chained(row, context);
  if (keep('ready')) await readiness(row, context);
}

async function chained(row, { ours, quick, software }) {
  const { dispatches, build_ms } = await ours.call('chain');
  const rounds = quick ? 3 : software ? 5 : 20;
  const mine = [], byHand = [];
  let crossings = 0;
  for (let round = 0; round <= rounds; round++) {
    const api = await ours.call('runChain', 5);
    const hand = await ours.call('runByHand', 5);
    if (!round) continue;
    mine.push(...api.ms);
    byHand.push(...hand);
    crossings = api.crossings / api.ms.length;
  }
  const chain = summary(mine);
  await row(`run/${dispatches}_dispatches`, chain, 'JavaScript by hand', summary(byHand), { crossings, us_a_dispatch: (1000 * chain.ms) / dispatches });
  await row(`build/${dispatches}_dispatches`, summary([build_ms]), null, null);
}

async function readiness(row, { quick }) {
  const ready = [], bare = [];
  let bytes, bareBytes;
  for (let round = 0; round < (quick ? 1 : 3); round++) {
    const fresh = startOurs();
    const from = performance.now();
    await fresh.call('info');
    ready.push(performance.now() - from);
    bytes = await fresh.call('bytes');
    fresh.stop();
    const found = await barePyodide();
    bare.push(found.ms);
    bareBytes = found.nbytes;
  }
  await row('ready', summary(ready), 'Pyodide with NumPy', summary(bare), { nbytes: bytes, peer_nbytes: bareBytes });
}

function barePyodide() {
  return new Promise((resolve, reject) => {
    const from = performance.now();
    const worker = new Worker('bare-worker.js', { type: 'module' });
    worker.onmessage = ({ data }) => {
      worker.terminate();
      resolve({ ms: performance.now() - from, nbytes: data });
    };
    worker.onerror = (event) => reject(new Error(event.message));
  });
}
