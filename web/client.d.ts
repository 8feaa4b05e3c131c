// Types of client.js. GPUDevice is @webgpu/types', or TypeScript's own.
import type { Completions } from './completions.js';

export type * from './completions.js';

export type ErrorCode =
  | 'WebGPUPyError' | 'NoWebGPU' | 'InsecureContext' | 'NoAdapter' | 'DeviceLost' | 'OutOfMemory' | 'LimitExceeded'
  | 'FeatureMissing' | 'FormatError' | 'UnsupportedOperator' | 'UnsupportedModel' | 'ShapeError' | 'DtypeError'
  | 'IndexOutOfRange' | 'ContextLength' | 'Cancelled' | 'NetworkError' | 'VersionMismatch' | 'WrongNumbers';

/** Every call rejects with one of these, or with `signal.reason` when it was aborted. */
export class WebGPUPyError extends Error {
  constructor(code: ErrorCode, message: string);
  code: ErrorCode;
}

export interface Progress {
  /** python, packages, webgpu_py, download, header, tokenizer, weights, kernels, … */
  stage: string;
  /** Bytes (or items) done in this stage. */
  loaded: number;
  /** 0 while it is not known. */
  total: number;
  unit?: 'bytes' | 'items';
  file?: string;
}

export type EventName =
  | 'answer.ended' | 'answer.failed' | 'autotune.chose' | 'device.lost' | 'device.opened' | 'device.restarted' | 'download.ended' | 'download.failed'
  | 'download.retried' | 'download.started' | 'download.warned' | 'model.loaded' | 'pipelines.compiled' | 'self_test.passed'
  | 'self_test.without_integer_dots' | 'self_test.without_matrices' | 'session.built' | 'session.ran' | 'weights.prepacked';

export type EventLevel = 'debug' | 'info' | 'warning';

/** Something that happened in a worker: Python's record of the logger `webgpu_py`. No word of a prompt or an answer. */
export interface AppEvent {
  event: EventName;
  level: EventLevel;
  facts: Record<string, string | number | boolean | null>;
  /** Milliseconds since 1970. */
  time: number;
}

/**
 * Hears of what happens in all workers, from `level` (by default `info`) up; runs are told at `debug`. The function
 * that comes back ends it, as does `signal`.
 */
export function subscribe(listener: (event: AppEvent) => void, options?: { level?: EventLevel; signal?: AbortSignal }): () => void;

export interface ConnectionOptions {
  onProgress?: (progress: Progress) => void;
  /** Folder of worker.js on the page's own origin; by default beside this module. */
  baseURL?: string | URL;
  /** Folder of Pyodide's files; by default the one this package was packed for. */
  pyodideURL?: string | URL;
}

export interface OpenOptions extends ConnectionOptions {
  /** Hears what does not keep the model from loading, such as a full browser; else the console does. */
  onWarning?: (message: string) => void;
  /** Ends the download or the load; the call rejects with its reason. What has arrived is kept. */
  signal?: AbortSignal;
  /** `cpu` computes with NumPy: right, very slow, and without WebGPU. */
  device?: 'browser' | 'cpu';
  /** A worker to re-use; what was open in it is closed. */
  connection?: Connection;
  /**
   * A device of the app's own. No browser lets a GPUDevice cross to a worker, so Python then runs on the thread of this
   * call, which long work holds up. Features and limits are those the device was requested with.
   */
  gpuDevice?: GPUDevice;
}

export interface LoadOptions extends OpenOptions {
  /** SHA-256 of the file: another content is refused and not kept. */
  sha256?: string;
  /** Tokens that prompt and answer share. */
  context?: number;
  /** Matrices of safetensors: 4 bits (`q4`, the default; embedding and output 8), 8 bits, or as they are stored (null). */
  quantize?: 'q4' | 'q8' | null;
  /** What keys and values of the context are kept in: `float16` takes half the memory of `float32`, the default. */
  kvCacheDtype?: 'float32' | 'float16';
}

/** A file kept in this browser, `stored` bytes of it; `saved` is when it was complete (ms since 1970). */
export interface CachedFile {
  url: string;
  nbytes: number | null;
  stored: number;
  complete: boolean;
  saved: number | null;
}

/** Files that `load` keeps in this browser, the latest first. */
export function cached(): Promise<CachedFile[]>;

/** Removes what is kept of an address, whole or in part. */
export function forget(url: string | URL): Promise<void>;

/**
 * Loads a GGUF model, a Hugging Face model or an ExecuTorch program (.pte) from an address, a File or a Blob.
 * A Hugging Face model is the address of its folder, with a slash at the end, or an array of the folder's Files.
 */
export function load(source: string | URL | Blob | File[], options?: LoadOptions): Promise<LanguageModel | Program>;

export interface Memory {
  /** Device bytes by kind, `total` among them. */
  gpu: Record<string, number>;
  /** Size of the Python heap. */
  wasm_nbytes: number;
}

export interface DeviceInfo {
  kind: 'browser' | 'cpu';
  info: { vendor: string; architecture: string; device: string; description: string; software: boolean };
  limits: Record<string, number>;
  features: string[];
}

interface Opened {
  readonly name: string;
  memory(): Promise<Memory>;
  device(): Promise<DeviceInfo>;
  /** Opens the same again, in place, after DeviceLost: on a new device, and in a new worker where that is gone. */
  restart(options?: { signal?: AbortSignal; onProgress?: (progress: Progress) => void }): Promise<void>;
  /** Frees the model, the device and the worker. */
  close(): void;
}

export interface Message {
  role: 'system' | 'user' | 'assistant' | (string & {});
  /** Text, or parts that are all text; null beside `tool_calls`. */
  content: string | { type: 'text'; text: string }[] | null;
  tool_calls?: object[];
}

export interface ChatOptions extends GenerationOptions {
  /** JSON schemas of functions that the template shows to the model; what it calls comes as text. */
  tools?: object[];
  /** More names for the template, such as `{enable_thinking: false}`. */
  chat_template_kwargs?: Record<string, unknown>;
}

export interface GenerationOptions {
  signal?: AbortSignal;
  max_tokens?: number;
  /** 0, the default, is greedy. */
  temperature?: number;
  top_k?: number;
  top_p?: number;
  min_p?: number;
  repetition_penalty?: number;
  presence_penalty?: number;
  frequency_penalty?: number;
  /** 0 by default: the same prompt and settings give the same answer. */
  seed?: number;
  stop?: string | string[];
  logit_bias?: Record<number, number>;
  top_logprobs?: number;
}

export interface Piece {
  text: string;
  tokens: number[];
  /** What each token stands for by itself; `text` is what has become certain. */
  token_texts: string[];
  logprobs: number[];
  /** Empty unless it was asked for. */
  top_logprobs: [token: number, logprob: number, text: string][];
}

/** An answer. It starts with the iteration and is cancelled when the iteration is left. */
export interface Stream extends AsyncIterable<string> {
  pieces(): AsyncIterableIterator<Piece>;
  text(): Promise<string>;
  readonly finishReason: 'stop' | 'length' | 'cancelled' | null;
  readonly timings: { first_token_ms: number; prefill_tps: number; decode_tps: number } | null;
  readonly promptTokens: number;
  readonly tokens: number[];
}

export interface ModelInfo {
  kind: 'model';
  name: string;
  /** Bytes of the file, where the model is one. */
  nbytes?: number;
  /** What it came as; `packed` is what `save` wrote. */
  format: 'gguf' | 'safetensors' | 'packed';
  architecture: string;
  layers: number;
  hidden: number;
  heads: number;
  kv_heads: number;
  head_dim: number;
  vocabulary: number;
  context: number;
  load_ms: number;
  /** Matrices that were quantized: the error's root mean square over the weights'. */
  quantization: Record<string, number>;
  memory: Record<string, number>;
}

export class LanguageModel implements Opened {
  private constructor();
  readonly name: string;
  readonly info: ModelInfo;
  chat: ((messages: Message[], options?: ChatOptions) => Stream) & { completions: Completions };
  generate(prompt: string | number[], options?: GenerationOptions): Stream;
  tokenize(text: string): Promise<number[]>;
  /** A model that came as safetensors as one file, which loads to the same bits without quantizing. */
  save(options?: { signal?: AbortSignal; onProgress?: (progress: Progress) => void }): Promise<Blob>;
  /**
   * Finds the fastest kernels for this model on this GPU by trying them, and remembers them for later visits.
   * Takes up to a minute; an answer under way is cancelled. `ratio` is the step's time before over its time now.
   */
  autotune(): Promise<{ case: string; way: string; ratio: number }[]>;
  /** Tokens of a prompt, and embedding, rotated queries and keys of the first layer. */
  look(prompt: string): Promise<Look>;
  memory(): Promise<Memory>;
  device(): Promise<DeviceInfo>;
  restart(options?: { signal?: AbortSignal; onProgress?: (progress: Progress) => void }): Promise<void>;
  close(): void;
}

export type TypedArray =
  | Float32Array | Float64Array | Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array
  | BigInt64Array | BigUint64Array;

export interface NdArray {
  dtype: string;
  shape: number[];
  data: TypedArray;
}

export interface Look {
  tokens: { ids: number[]; texts: string[] };
  looked_at: number;
  embedding: NdArray;
  q: NdArray;
  k: NdArray;
  run_ms: number;
  dispatches: number;
  /** Label and microseconds of every dispatch; null without timestamp-query. */
  kernels: [label: string, micros: number][] | null;
  memory: Record<string, number>;
  types: Record<string, number>;
}

export interface RunOptions {
  signal?: AbortSignal;
  /** Moves the inputs' buffers to the worker instead of copying them; they are empty afterwards. */
  transfer?: boolean;
}

/** The first wrong value of a run, and what computed it; see `Fault` in Python. */
export interface Fault {
  node: number;
  operator: string;
  /** The node's dispatches with their overrides. */
  kernels: string[];
  output: string;
  index: number[];
  found: number | 'nan' | 'inf' | '-inf';
  /** Null for a user's kernel that has no reference. */
  expected: number | 'nan' | 'inf' | '-inf' | null;
  tolerance: number;
  /** Values like this one, of `numel`. */
  wrong: number;
  numel: number;
  why: 'nan' | 'inf' | 'mismatch';
  place: string;
}

export interface DebugReport {
  /** Nodes that were examined. */
  nodes: number;
  fault: Fault | null;
  /** Kernels without a reference. */
  unchecked: string[];
  /** All of it as one sentence. */
  text: string;
}

export class Program implements Opened {
  private constructor();
  readonly name: string;
  readonly info: { kind: 'program'; name: string; nbytes: number; methods: any[]; memory: Record<string, number> };
  run(inputs: (NdArray | number | boolean)[], options?: RunOptions & { method?: string }): Promise<(NdArray | number | boolean | string | null)[]>;
  /** Runs node by node, every result beside NumPy's: slow. State changes as in a run, up to a fault. */
  debug(inputs: (NdArray | number | boolean)[], options?: { method?: string; signal?: AbortSignal }): Promise<DebugReport>;
  /** Caches and mutable buffers as at first. */
  reset(): Promise<void>;
  memory(): Promise<Memory>;
  device(): Promise<DeviceInfo>;
  restart(options?: { signal?: AbortSignal; onProgress?: (progress: Progress) => void }): Promise<void>;
  close(): void;
}

// ---- graphs

/** A typed array with a shape, by default one dimension; `dtype` for bool (Uint8Array) and float16 (Uint16Array). */
export function array(data: TypedArray, shape?: number[], dtype?: string): NdArray;

export interface Dim {
  $dim: string;
  max: number;
}

/** A dimension that may change from run to run, up to `max`. */
export function dim(name: string, max: number): Dim;

/** The result of a step of a graph; `at` gives one of several results. */
export interface Value {
  at(index: number): Value;
}

export type Argument = Value | number | boolean | string | null | Argument[];

/** Operator calls by ExecuTorch's names. Python checks them when the graph is built. */
export class Graph {
  input(name: string, shape: (number | Dim)[], dtype?: string): Value;
  /** An input integer that kernels and shapes read live. */
  symint(name: string): Value;
  constant(values: NdArray): Value;
  call(operator: string, ...args: Argument[]): Value;
  output(name: string, value: Value): void;
}

/** Puts a graph onto a device. */
export function build(graph: Graph, options?: OpenOptions): Promise<Session>;

export interface Port {
  name: string;
  dtype: string;
  dims: number[];
}

export class Session implements Opened {
  private constructor();
  readonly name: string;
  readonly info: { kind: 'graph'; inputs: Port[]; outputs: Port[]; dispatches: number; memory: Record<string, number> };
  run(inputs: Record<string, NdArray | number>, options?: RunOptions): Promise<Record<string, NdArray>>;
  /** Runs node by node, every result beside NumPy's: slow. State changes as in a run, up to a fault. */
  debug(inputs: Record<string, NdArray | number>, options?: { signal?: AbortSignal }): Promise<DebugReport>;
  timings(): Promise<{ build_ms: number; run_ms: number }>;
  /** Caches and mutable tensors as at first. */
  reset(): Promise<void>;
  memory(): Promise<Memory>;
  device(): Promise<DeviceInfo>;
  restart(options?: { signal?: AbortSignal; onProgress?: (progress: Progress) => void }): Promise<void>;
  close(): void;
}

/** One worker; `load` and `build` make one unless they are given one. */
export class Connection {
  /** `ahead` is the address of a file that will be opened: it downloads while Python starts. */
  constructor(options?: ConnectionOptions & { packages?: string[]; ahead?: string });
  readonly ready: Promise<{ pyodide: string; version: string }>;
  close(): void;
}
