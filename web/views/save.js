// A model that came as safetensors as one file, which loads to the same bits without quantizing again.
import { el } from '../lib/dom.js';
import { bytes, fileName } from '../lib/format.js';
import { errorRecord } from '../protocol.js';

const TITLE = 'One file with everything in it, which loads without quantizing again';
const REVOKE_MS = 60_000;

/** @param {any} llm the client's model @returns {HTMLElement | null} nothing for a model that is ready as it is */
export function saveButton(llm) {
  if (llm.info.format !== 'safetensors') return null;
  let saving = false;
  // Its text tells how far it is, so it stays in reach of the keyboard: never disabled.
  const button = el('button', {
    type: 'button', class: 'quiet', id: 'save-model', title: TITLE, 'aria-live': 'polite',
    onclick: async () => {
      if (saving) return;
      saving = true;
      button.textContent = await saved(llm, (text) => (button.textContent = text));
      saving = false;
    },
  }, 'Save model');
  return button;
}

/** @param {any} llm @param {(text: string) => void} tell @returns {Promise<string>} how it ended */
async function saved(llm, tell) {
  try {
    tell('Saving…');
    const file = await llm.save({ onProgress: (/** @type {any} */ { loaded }) => tell(`Saving… ${bytes(loaded)}`) });
    const url = URL.createObjectURL(file);
    el('a', { href: url, download: nameOf(llm.name) }).click();
    setTimeout(() => URL.revokeObjectURL(url), REVOKE_MS);
    return `Saved, ${bytes(file.size)}`;
  } catch (error) {
    return `Not saved: ${errorRecord(error).message}`;
  }
}

/** @param {string} name the model's: the address of a folder or of one file in it, or the names of dropped files */
function nameOf(name) {
  const folder = URL.canParse(name) ? fileName(new URL('.', name).href) : '';
  return `${folder || 'model'}.safetensors`;
}
