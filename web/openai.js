// The shape of OpenAI's client over a model in this page: `import OpenAI from './openai.js'`, and the
// rest of an app stays as it is. `model` is the address of a GGUF file; keys and base URLs are ignored.
import { load } from './client.js';
import { WebGPUPyError } from './protocol.js';

export default class OpenAI {
  #models = new Map();

  /** @param {{model?: string, baseURL?: string, [option: string]: any}} [options] `load`'s options among them */
  constructor({ model, baseURL, ...options } = {}) {
    const ready = (/** @type {string} */ address) => {
      if (!address) throw new WebGPUPyError('UnsupportedModel', 'model: give the address of a GGUF file.');
      const loading = this.#models.get(address) ?? load(address, options);
      this.#models.set(address, loading);
      loading.catch(() => this.#models.delete(address));
      return loading;
    };
    this.chat = {
      completions: {
        create: async (/** @type {any} */ request, /** @type {any} */ options) =>
          (await ready(request.model ?? model)).chat.completions.create(request, options),
      },
    };
  }

  /** Frees every model. */
  async close() {
    for (const loading of this.#models.values()) (await loading.catch(() => null))?.close();
    this.#models.clear();
  }
}
