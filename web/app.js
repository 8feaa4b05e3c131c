// The page: checks for WebGPU before anything is downloaded, starts the worker, opens a file and
// shows the views that fit it.
import { Connection } from './connection.js';
import { diagnose } from './js/bridge.js';
import { byId, el } from './lib/dom.js';
import { fileName } from './lib/format.js';
import { WebGPUPyError, errorRecord } from './protocol.js';
import { showDevice } from './views/device.js';
import { ProgramView } from './views/program.js';
import { DEMO_URL, setUpPicker } from './views/picker.js';
import { Stages } from './views/stages.js';

/**
 * @typedef {{url?: string, file?: File}} FileSource
 */

const root = document.documentElement;
const query = new URLSearchParams(location.search);
const deviceKind = query.get('device') ?? 'browser';
const stages = new Stages(byId('progress'));
const views = { program: new ProgramView(byId('program')) };

const TITLES = {
  InsecureContext: 'This page needs a secure address',
  NoWebGPU: 'This browser has no WebGPU',
  NoAdapter: 'No graphics adapter is available',
  DeviceLost: 'The GPU was lost',
  NetworkError: 'The download failed',
  FormatError: 'This file cannot be opened',
  UnsupportedModel: 'This model is not supported',
  UnsupportedOperator: 'This program needs operators that are missing',
  OutOfMemory: 'The GPU has not enough memory',
  LimitExceeded: 'The model is too large for this GPU',
};

/** @type {Connection | undefined} */
let connection;
/** @type {AbortController | undefined} */
let opening;

/** @param {'loading' | 'ready' | 'error'} state @param {string} [code] */
function setState(state, code) {
  root.dataset.state = state;
  if (code) root.dataset.error = code;
  else delete root.dataset.error;
  byId('loading').hidden = state !== 'loading';
}

/** @returns {HTMLElement} the way without WebGPU */
function slowWay() {
  const cpu = new URL(location.href);
  cpu.searchParams.set('device', 'cpu');
  byId('model-button').hidden = true;
  return el('p', {}, el('a', { href: cpu.href }, 'Go on without a GPU'), ' (NumPy on the processor: right, and very slow).');
}

/** @param {any} error @param {FileSource} [source] what to offer again @param {HTMLElement} [advice] */
function fail(error, source, advice) {
  const { code, message } = errorRecord(error);
  const title = TITLES[/** @type {keyof typeof TITLES} */ (code)] ?? 'Something went wrong';
  const again = source && el('button', { type: 'button', onclick: () => openSource(source) }, 'Try again');
  const other = source && el('button', { type: 'button', onclick: () => byId('model-button').click() }, 'Choose another model');
  byId('error').replaceChildren(el('h2', {}, title), el('p', {}, message), advice ?? el('p', { class: 'row' }, again, other), el('p', { class: 'small soft mono' }, code));
  byId('error').hidden = false;
  setState('error', code);
}

/** @returns {Promise<Connection>} */
async function connect() {
  if (connection && !connection.gone) return connection;
  connection = new Connection({ onProgress: (p) => stages.show(p) });
  await connection.ready;
  stages.show({ stage: 'device', loaded: 0, total: 0 });
  showDevice(await connection.call('device', { kind: deviceKind }));
  return connection;
}

/** @param {FileSource} source */
async function openSource(source) {
  opening?.abort(new WebGPUPyError('Cancelled', 'Another file was chosen.'));
  const { signal } = (opening = new AbortController());
  const name = source.file?.name ?? fileName(source.url ?? '');
  const given = source.file ? { file: source.file } : { url: new URL(source.url ?? '', document.baseURI).href };
  byId('error').hidden = true;
  byId('model-name').textContent = name;
  showView('');
  stages.reset();
  setState('loading');
  try {
    const to = await connect();
    const opened = await to.call('open', { source: given, device: deviceKind }, { signal, onProgress: (p) => stages.show(p) });
    stages.finish();
    setState('ready');
    document.title = `${name} · webgpu_py`;
    views.program.open(opened, to);
    showTabs(opened.kind);
  } catch (error) {
    if (signal.aborted) return;
    fail(error, source);
  }
}

/** @param {string} kind of file that is open */
function showTabs(kind) {
  const tabs = [...document.querySelectorAll('#tabs button')];
  const fitting = tabs.filter((tab) => {
    const fits = /** @type {any} */ (tab).dataset.for === kind;
    /** @type {any} */ (tab).hidden = !fits;
    return fits;
  });
  showView(/** @type {any} */ (fitting[0]).dataset.view);
}

/** @param {string} view its name, or nothing */
function showView(view) {
  root.dataset.view = view;
  for (const name of ['chat', 'inside', 'program']) byId(name).hidden = name !== view;
  byId('composer').hidden = view !== 'chat' && view !== 'inside';
  for (const tab of document.querySelectorAll('#tabs button')) {
    if (/** @type {any} */ (tab).dataset.view === view) tab.setAttribute('aria-current', 'page');
    else tab.removeAttribute('aria-current');
  }
}

async function main() {
  for (const tab of document.querySelectorAll('#tabs button')) {
    tab.addEventListener('click', () => showView(/** @type {any} */ (tab).dataset.view));
    /** @type {any} */ (tab).hidden = true;
  }
  const problem = deviceKind === 'cpu' ? null : await diagnose();
  if (problem) return fail(problem, undefined, slowWay());
  setUpPicker(openSource);
  await openSource({ url: query.get('model') ?? DEMO_URL });
}

main();
