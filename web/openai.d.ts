import type { Completions, LoadOptions } from './client.js';

/** OpenAI's client over models in this page: `model` is the address of a GGUF file. */
export default class OpenAI {
  /** Options of `load` among them; keys and base URLs of a real client are ignored. */
  constructor(options?: Omit<LoadOptions, 'baseURL'> & { model?: string; baseURL?: string | null; [ignored: string]: unknown });
  chat: { completions: Completions };
  /** Frees every model. */
  close(): Promise<void>;
}
