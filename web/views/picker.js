// Which file to open: the site's own model, an address, a file from this machine.
import { byId, el } from '../lib/dom.js';
import { fileName } from '../lib/format.js';
import { Kept } from './kept.js';

const FILES = '.gguf,.pte,.safetensors,.json,.jinja';

/** @typedef {{url?: string, file?: File, files?: File[]}} Chosen */

/** @param {(source: Chosen) => void} choose @param {string} [own] address of this site's model */
export function setUpPicker(choose, own) {
  const dialog = byId('picker');
  const take = (/** @type {Chosen} */ source) => {
    dialog.close();
    choose(source);
  };
  const url = el('input', { id: 'model-url', type: 'url', name: 'url', required: true, placeholder: 'https://…/model.gguf', title: 'A folder’s address ends with a slash', 'aria-describedby': 'model-url-note' });
  const file = el('input', {
    type: 'file', id: 'model-file', accept: FILES, multiple: true, class: 'hidden', tabindex: -1, 'aria-label': 'Model file',
    onchange: () => file.files.length && take(chosen(file.files)),
  });
  const kept = new Kept((address) => take({ url: address }));
  dialog.append(
    el('header', {}, el('h2', { id: 'picker-title' }, 'Choose a model'), closeButton(dialog)),
    el('div', { class: 'stack' },
      own && el('div', { class: 'field' },
        el('span', {}, "This site's model"),
        el('button', { type: 'button', class: 'primary', id: 'model-demo', onclick: () => take({ url: own }) }, fileName(own))),
      el('div', { class: 'field' },
        el('span', {}, 'A file on this machine'),
        el('button', { type: 'button', onclick: () => file.click() }, 'Choose a file…'),
        file,
        el('span', { class: 'small soft' }, 'A GGUF model, an ExecuTorch .pte program, or all files of a Hugging Face model at once. You can also drop them anywhere on the page. They are read here and go nowhere.')),
      el('form', { class: 'field', onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); take({ url: url.value }); } },
        el('label', { for: 'model-url' }, 'An address'),
        el('span', { class: 'inline' }, url, el('button', { type: 'submit' }, 'Load')),
        el('span', { class: 'small soft', id: 'model-url-note' }, "Its server must allow this page to read it (CORS), and this page's policy must allow the server.")),
      kept.root),
  );
  byId('model-button').addEventListener('click', () => {
    kept.show();
    dialog.showModal();
  });
  setUpDrop(take);
}

/** @param {any} dialog */
export function closeButton(dialog) {
  return el('button', { type: 'button', class: 'quiet', 'aria-label': 'Close', onclick: () => dialog.close() }, '✕');
}

/** @param {FileList} list @returns {Chosen} */
const chosen = (list) => (list.length > 1 ? { files: [...list] } : { file: list[0] });

/** @param {(source: Chosen) => void} take */
function setUpDrop(take) {
  const veil = byId('drop');
  const hasFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes('Files');
  document.addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    veil.hidden = false;
  });
  document.addEventListener('dragleave', (event) => {
    if (!event.relatedTarget) veil.hidden = true;
  });
  document.addEventListener('drop', (event) => {
    veil.hidden = true;
    const files = event.dataTransfer?.files;
    if (!files?.length) return;
    event.preventDefault();
    take(chosen(files));
  });
}
