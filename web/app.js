// The page: checks for WebGPU before anything is downloaded, starts the worker, opens a file and
// shows the views that fit it.
import { load } from './client.js';
import { Connection } from './connection.js';
import { diagnose } from './js/bridge.js';
import { byId, el, withFlags } from './lib/dom.js';
import { fileName } from './lib/format.js';
import { LANGUAGE_PACKAGES, WebGPUPyError, errorRecord, isProgram } from './protocol.js';
import { ChatView } from './views/chat.js';
import { Composer } from './views/composer.js';
import { showDevice } from './views/device.js';
import { FIRST_PROMPT, InsideView } from './views/inside.js';
import { setUpPicker } from './views/picker.js';
import { ProgramView } from './views/program.js';
import { Stages } from './views/stages.js';

/**
 * @typedef {import('./views/picker.js').Chosen} FileSource
 */

const root = document.documentElement;
const query = new URLSearchParams(location.search);
let deviceKind = query.get('device') === 'cpu' ? 'cpu' : 'browser';
const stages = new Stages(byId('progress'));
const composer = new Composer({ submit, stop: () => chat.stop() });
const chat = new ChatView(byId('chat'), { onBusy: showComposer, onLost: (error) => fail(error, current) });
const inside = new InsideView(byId('inside'));
const program = new ProgramView(byId('program'));

const TITLES = {
  InsecureContext: 'This page needs a secure address',
  NoWebGPU: 'This browser has no WebGPU',
  NoAdapter: 'No graphics adapter is available',
  Cancelled: 'Loading was stopped',
  DeviceLost: 'The model has to be loaded again',
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
/** @type {FileSource | undefined} */
let current;

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
  byId('error').replaceChildren(el('h2', {}, title), el('p', {}, withFlags(message)), advice ?? el('p', { class: 'row' }, again, other), el('p', { class: 'small soft mono' }, code));
  byId('error').hidden = false;
  setState('error', code);
}

/** @param {string} name of the file that will be opened @param {string} [ahead] its address @returns {Promise<Connection>} */
async function connect(name, ahead) {
  if (connection && !connection.gone) return connection;
  const packages = isProgram(name) ? [] : [...LANGUAGE_PACKAGES];
  connection = new Connection({ packages, ahead, onProgress: (p) => stages.show(p) });
  await connection.ready;
  stages.show({ stage: 'device', loaded: 0, total: 0 });
  try {
    showDevice(await trustedDevice(connection));
  } catch (error) {
    // Nothing will be opened: what downloads for it ends, too.
    connection.close();
    throw error;
  }
  return connection;
}

/** @param {Connection} to @returns {Promise<any>} the GPU, or the processor where that GPU computes wrong numbers */
async function trustedDevice(to) {
  try {
    return await to.call('device', { kind: deviceKind });
  } catch (error) {
    const { code, message } = errorRecord(error);
    if (code !== 'WrongNumbers') throw error;
    deviceKind = 'cpu';
    warn(`This GPU is not used, because it computes wrong numbers (${message}). The page goes on with NumPy on the processor: right, and very slow.`);
    return await to.call('device', { kind: 'cpu' });
  }
}

/** @param {string} message of what does not keep the model from running */
function warn(message) {
  const close = () => (byId('warning').hidden = true);
  byId('warning').replaceChildren(el('span', {}, message), el('button', { type: 'button', class: 'quiet', 'aria-label': 'Hide this notice', onclick: close }, '✕'));
  byId('warning').hidden = false;
}

/** @param {FileSource} source */
async function openSource(source) {
  opening?.abort(new WebGPUPyError('Cancelled', 'Another file was chosen.'));
  const { signal } = (opening = new AbortController());
  const name = source.files ? `${source.files.length} files` : source.file?.name ?? fileName(source.url ?? '');
  current = source;
  chat.stop();
  byId('error').hidden = byId('warning').hidden = true;
  byId('model-name').textContent = name;
  showView('');
  hideTabs();
  stages.reset();
  setState('loading');
  try {
    const to = await connect(name, source.url);
    const opened = await load(source.files ?? source.file ?? source.url ?? '', { connection: to, device: deviceKind, signal, onWarning: warn, onProgress: (/** @type {any} */ p) => stages.show(p) });
    stages.finish();
    document.title = `${name} · webgpu_py`;
    if (opened.info.kind === 'program') program.open(opened);
    else for (const view of [chat, inside]) view.open(opened);
    showTabs(opened.info.kind);
    setState('ready');
  } catch (error) {
    if (!signal.aborted) fail(error, source);
  }
}

/** @param {string} text */
function submit(text) {
  composer.box.value = '';
  if (root.dataset.view === 'chat') chat.send(text);
  else inside.look(text);
}

const COMPOSER = {
  chat: { placeholder: 'Ask something', verb: 'Send' },
  inside: { placeholder: 'Type words to look at', verb: 'Look' },
};

function showComposer() {
  const { view = '' } = root.dataset;
  byId('composer').hidden = !(view in COMPOSER);
  if (view in COMPOSER) composer.show(COMPOSER[/** @type {keyof typeof COMPOSER} */ (view)], view === 'chat' && chat.answering !== null);
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

// Without an open model there is nothing behind them.
function hideTabs() {
  for (const tab of document.querySelectorAll('#tabs button')) /** @type {any} */ (tab).hidden = true;
}

/** @param {string} view its name, or nothing */
function showView(view) {
  root.dataset.view = view;
  for (const name of ['chat', 'inside', 'program']) byId(name).hidden = name !== view;
  showComposer();
  for (const tab of document.querySelectorAll('#tabs button')) {
    if (/** @type {any} */ (tab).dataset.view === view) tab.setAttribute('aria-current', 'page');
    else tab.removeAttribute('aria-current');
  }
}

async function main() {
  for (const tab of document.querySelectorAll('#tabs button')) {
    tab.addEventListener('click', () => {
      const { view } = /** @type {any} */ (tab).dataset;
      showView(view);
      if (view === 'inside' && inside.empty) inside.look(FIRST_PROMPT);
    });
  }
  hideTabs();
  const problem = deviceKind === 'cpu' ? null : await diagnose();
  if (problem) return fail(problem, undefined, slowWay());
  setUpPicker(openSource, root.dataset.model);
  byId('cancel-load').addEventListener('click', () => {
    opening?.abort();
    fail(new WebGPUPyError('Cancelled', 'Nothing of the model is kept on the GPU. What was downloaded is: loading it again goes on from there.'), current);
  });
  const url = query.get('model') ?? root.dataset.model;
  if (url) return openSource({ url });
  showView('');
  setState('ready');
  byId('model-button').click();
}

main();
