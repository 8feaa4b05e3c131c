// The adapter: a badge at the top, its limits and features in a dialog, advice where it is software.
import { byId, el, withFlags } from '../lib/dom.js';
import { bytes, count } from '../lib/format.js';
import { closeButton } from './picker.js';

const SOFTWARE_ADVICE =
  'Your browser computes in software: answers are right but slow. Turn on hardware acceleration in its settings, ' +
  'or on Linux start Chromium with --enable-unsafe-webgpu --enable-features=Vulkan.';

/** @param {any} device what the worker says of it */
export function showDevice(device) {
  const name = adapterName(device);
  const badge = byId('adapter-button');
  const software = device.info.software || device.kind === 'cpu';
  badge.replaceChildren(el('span', { class: 'label' }, software ? 'Software' : 'GPU'), ' ', el('span', {}, name));
  badge.classList.toggle('warn', software);
  badge.title = software ? 'A software adapter: slow' : name;
  badge.hidden = false;
  badge.onclick = () => byId('device').showModal();
  byId('device').replaceChildren(
    el('header', {}, el('h2', { id: 'device-title' }, name), closeButton(byId('device'))),
    el('div', { class: 'stack' },
      software && el('p', { class: 'notice' }, device.kind === 'cpu' ? 'NumPy on the processor, without WebGPU.' : withFlags(SOFTWARE_ADVICE)),
      el('table', { class: 'facts-table' }, el('tbody', {}, [...rows(device)]))),
  );
  showSoftwareNotice(software && device.kind !== 'cpu');
}

/** @param {any} device */
export function adapterName({ info, kind }) {
  if (kind === 'cpu') return 'NumPy';
  return info.description || [info.vendor, info.architecture].filter(Boolean).join(' ') || 'unnamed adapter';
}

/** @param {boolean} needed */
function showSoftwareNotice(needed) {
  const notice = byId('software');
  notice.replaceChildren(
    el('span', {}, 'No GPU in use: answers are right but slow. ', el('button', { type: 'button', class: 'link', onclick: () => byId('device').showModal() }, 'What to do')),
    el('button', { type: 'button', class: 'quiet', 'aria-label': 'Hide this notice', onclick: () => (notice.hidden = true) }, '✕'),
  );
  notice.hidden = !needed;
}

/** @param {any} device */
function* rows({ info, limits, features }) {
  const row = (/** @type {string} */ name, /** @type {any} */ value) => el('tr', {}, el('th', { scope: 'row' }, name), el('td', {}, value));
  for (const name of ['vendor', 'architecture', 'device', 'description']) {
    if (info[name]) yield row(name, info[name]);
  }
  yield row('features in use', features.join(', ') || 'none');
  for (const [name, value] of Object.entries(limits)) {
    if (typeof value !== 'number') continue;
    yield row(name.replaceAll('_', ' '), /size/.test(name) && value >= 1024 ? bytes(value) : count(value));
  }
}
