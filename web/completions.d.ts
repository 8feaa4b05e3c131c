// The shape of OpenAI's client: `llm.chat.completions` and openai.js.
import type { Message } from './client.js';

export interface CompletionRequest {
  model?: string;
  messages: Message[];
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean };
  max_tokens?: number;
  max_completion_tokens?: number;
  /** Greedy unless it is given. */
  temperature?: number;
  top_p?: number;
  top_k?: number;
  min_p?: number;
  repetition_penalty?: number;
  presence_penalty?: number;
  frequency_penalty?: number;
  /** Another one each time unless it is given. */
  seed?: number;
  stop?: string | string[] | null;
  logit_bias?: Record<number, number>;
  logprobs?: boolean;
  top_logprobs?: number;
  n?: 1;
  /** What the model calls comes as text. */
  tools?: object[];
  chat_template_kwargs?: Record<string, unknown>;
}

export interface Logprob {
  token: string;
  token_id: number;
  logprob: number;
  /** UTF-8 of the token; null for a part of a character. */
  bytes: number[] | null;
}

export interface Logprobs {
  content: (Logprob & { top_logprobs: Logprob[] })[];
}

export interface Completion {
  id: string;
  object: 'chat.completion';
  created: number;
  model: string;
  choices: { index: number; message: { role: 'assistant'; content: string }; finish_reason: 'stop' | 'length'; logprobs: Logprobs | null }[];
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

export interface CompletionChunk {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  choices: { index: number; delta: { role?: 'assistant'; content?: string }; finish_reason: 'stop' | 'length' | null; logprobs: Logprobs | null }[];
  usage?: Completion['usage'];
}

export interface Completions {
  create(request: CompletionRequest & { stream: true }, options?: { signal?: AbortSignal }): Promise<AsyncIterable<CompletionChunk> & { controller: AbortController }>;
  create(request: CompletionRequest, options?: { signal?: AbortSignal }): Promise<Completion>;
}
