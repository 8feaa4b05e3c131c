// Reads what to measure from the query, measures it, and posts rows as they come:
// /__log text, /__part a row, /__result all of it in the form of bench/results.
//
// ?suite=kernels,model&only=linear_q4*&quick=1&seconds=280&machine=NAME&date=YYYY-MM-DD&peers=0
//
// After so many seconds no further case is begun; the result names those in `left_out`.

import { kernelCases, matches } from './cases.js';
import { measureLimits } from './limits.js';
import { loadOrt, ortKernels } from './ort-kernels.js';
import { ortModel } from './ort-llm.js';
import { FLOAT16, FLOAT32 } from './ort-types.js';
import { startOurs } from './ours.js';
import { runKernels } from './suite-kernels.js';
import { runModels } from './suite-models.js';
import { runOverhead } from './suite-overhead.js';
import { transformersModel } from './transformers.js';
import { Warmth } from './warmth.js';
import { wllamaModel } from './wllama.js';

const query = new URLSearchParams(location.search);

const post = (path, body) => fetch(path, { method: 'POST', body });

function log(text) {
  document.getElementById('log').append(`${text}\n`);
  return post('/__log', text);
}

async function requestAdapter() {
  // Chromium's first request after its start can be null although an adapter exists.
  for (let turn = 0; turn < 20; turn++) {
    const adapter = await navigator.gpu?.requestAdapter({ powerPreference: 'high-performance' });
    if (adapter) return adapter;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error('This browser offers no WebGPU adapter.');
}

function adapterRecord(adapter) {
  const { vendor, architecture, description, device } = adapter.info;
  const software = adapter.info.isFallbackAdapter || /swiftshader|llvmpipe|lavapipe/i.test(`${architecture} ${description}`);
  return { vendor, architecture, description: description || device, software, features: [...adapter.features].sort() };
}

// A folder of peers is there where the runner fetched them or the pack took them along.
const hasPeer = async (name) => query.get('peers') !== '0' && (await fetch(`peers/${name}/version`)).ok;

const ORT = 'onnxruntime-web';
let ortLoading;

async function ortIn(context) {
  if (!(await hasPeer(ORT))) return null;
  const { ort, version } = await (ortLoading ??= loadOrt());
  context.versions[ORT] = version;
  return ort;
}

// On a software adapter only what is fast there has a chance to finish.
const floatsOf = ({ software, f16 }) => [FLOAT32, ...(f16 && !software ? [FLOAT16] : [])];
const variantOf = (name, float) => (float === FLOAT16 ? `${name} f16` : name);

async function kernelPeers(context) {
  const ort = await ortIn(context);
  if (!ort) return [];
  const peers = floatsOf(context).map((float) => ortKernels(ort, context, variantOf(ORT, float), float));
  return context.software ? peers : [...peers, ortKernels(ort, context, `${ORT} int8`, FLOAT32, 4)];
}

async function modelPeers(suite, context) {
  const ort = await ortIn(context);
  // Its flash attention is wrong on the software adapter from 32 rows on.
  const chunk = context.software ? 31 : Infinity;
  const peers = ort ? floatsOf(context).map((float) => ortModel(ort, variantOf(ORT, float), float, chunk)) : [];
  const transformers = (name) => floatsOf(context).map((float) => transformersModel(variantOf(name, float), float));
  const others = [['wllama', 'wllama', (name) => [wllamaModel(name)]], ['transformers.js', 'transformers', transformers]];
  for (const [name, folder, make] of suite === 'model' ? others : []) {
    if (!(await hasPeer(folder))) continue;
    context.versions[name] = (await (await fetch(`peers/${folder}/version`)).text()).trim();
    peers.push(...make(name));
  }
  return peers;
}

async function main() {
  const adapter = await requestAdapter();
  const found = adapterRecord(adapter);
  const gpu = await adapter.requestDevice({
    requiredFeatures: ['timestamp-query'],
    requiredLimits: {
      maxBufferSize: adapter.limits.maxBufferSize,
      maxStorageBufferBindingSize: adapter.limits.maxStorageBufferBindingSize,
    },
  });
  const limits = await measureLimits(gpu, found.software);
  const warmth = found.software ? null : await Warmth.of(gpu);
  if (!warmth) gpu.destroy();
  await log(`${JSON.stringify(found)}\n${JSON.stringify(limits)}`);

  const ours = startOurs();
  const info = await ours.call('info');
  const rows = [];
  const result = {
    machine: query.get('machine') ?? `${found.description}, ${navigator.hardwareConcurrency} cores`,
    adapter: found,
    versions: { browser: navigator.userAgent.match(/Chrom\w+\/[\d.]+/)?.[0] ?? navigator.userAgent, webgpu_py: info.webgpu_py, pyodide: info.pyodide },
    date: query.get('date') ?? new Date().toISOString().slice(0, 10),
    limits,
    rows,
    left_out: [],
  };
  const only = query.get('only') ?? '*';
  const deadline = 1000 * Number(query.get('seconds') ?? Infinity);
  const context = {
    ours, limits, software: found.software, f16: found.features.includes('shader-f16'), quick: query.has('quick'),
    raiseClock: async () => warmth?.raise(),
    versions: result.versions, log, keep: (name) => matches(name, only),
    late: () => performance.now() > deadline,
    leaveOut: (cases) => result.left_out.push(...cases),
    leftOut: (name) => result.left_out.includes(name),
    row: (row) => {
      rows.push(row);
      return post('/__part', JSON.stringify(row));
    },
  };
  for (const suite of (query.get('suite') ?? Object.keys(SUITES).join()).split(',')) {
    if (!(suite in SUITES)) throw new Error(`There is no suite ${suite}; there are ${Object.keys(SUITES).join(', ')}.`);
    await SUITES[suite](context);
  }
  // Kernels run in the order of their cost, and are told in that of their list.
  const place = new Map(kernelCases(context).map((one, i) => [one.case, i]));
  const placeOf = ({ case: name }) => place.get(name) ?? place.size;
  rows.sort((a, b) => placeOf(a) - placeOf(b));
  await post('/__result', JSON.stringify(result));
  document.documentElement.dataset.state = 'ready';
}

const SUITES = {
  kernels: async (context) => runKernels(kernelCases(context), await kernelPeers(context), context),
  model: async (context) => runModels('model', await modelPeers('model', context), context),
  llama1b: async (context) => runModels('llama1b', await modelPeers('llama1b', context), context),
  overhead: runOverhead,
};

main().catch((error) => {
  document.documentElement.dataset.state = 'error';
  return post('/__result', JSON.stringify({ error: String(error?.stack ?? error) }));
});
