import type { Completions, Progress } from './client.js';

/** OpenAI's client over models in this page: `model` is the address of a GGUF file. */
export default class OpenAI {
  /** Keys and base URLs of a real client are ignored. */
  constructor(options?: { model?: string; onProgress?: (progress: Progress) => void; device?: 'browser' | 'cpu'; [ignored: string]: unknown });
  chat: { completions: Completions };
  /** Frees every model. */
  close(): Promise<void>;
}
