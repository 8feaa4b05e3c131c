// Stands in for worker.js where only the page is tested: speaks its protocol, answers by the script
// in the prompt ("say: ...", "slow", "fail CODE"), and needs neither Python nor a GPU.
const MODEL = {
  kind: 'model', nbytes: 98e6, format: 'gguf', architecture: 'llama', layers: 30, hidden: 48, heads: 3, kv_heads: 1, head_dim: 16,
  vocabulary: 49152, context: 256, load_ms: 900, memory: { weights: 90e6, total: 131e6 },
};
const DEVICE = {
  kind: 'browser', features: ['timestamp-query'], limits: { max_buffer_size: 1 << 28, max_storage_buffers_per_shader_stage: 8 },
  info: { vendor: 'acme', architecture: 'one', device: '', description: '', software: false },
};
const running = new Map();
let saved = 0;
const levels = [];
let begin;
const started = new Promise((resolve) => (begin = resolve));
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const fail = (code, message) => Object.assign(new Error(message), { code });

self.onmessage = async ({ data }) => {
  if (data.kind === 'start') {
    await new Promise((held) => navigator.locks.request(data.lock, () => (held(), new Promise(() => {}))));
    for (const loaded of [2e6, 9e6, 12e6]) self.postMessage({ kind: 'progress', id: 0, progress: { stage: 'python', loaded, total: 12e6 } });
    begin();
    self.postMessage({ kind: 'ready', info: { pyodide: 'none', version: 'fake' } });
  } else if (data.kind === 'listen') {
    await started;
    levels.push(data.level);
    if (data.level) self.postMessage({ kind: 'happened', record: { event: 'session.built', level: 'info', facts: { levels }, time: 1 } });
  } else if (data.kind === 'cancel') {
    running.set(data.id, true);
  } else {
    try {
      self.postMessage({ kind: 'result', id: data.id, value: await answer[data.method](data.args, data.id) });
    } catch ({ code, message }) {
      self.postMessage({ kind: 'error', id: data.id, error: { code: code ?? 'WebGPUPyError', message } });
    }
  }
};

const answer = {
  device: async () => DEVICE,
  async memory() {
    await wait(100);
    return { gpu: MODEL.memory, wasm_nbytes: 62e6 };
  },
  async open({ source }, id) {
    const name = source.url ?? source.file.name;
    if (name.includes('broken')) throw fail('FormatError', `${name}: begins with b'<!doctype'`);
    for (let loaded = 0; loaded <= 98e6; loaded += 14e6) {
      if (name.includes('large')) self.postMessage({ kind: 'progress', id, progress: { stage: 'download', loaded: Math.min(1.4 * loaded + 10e6, 98e6), total: 98e6 } });
      self.postMessage({ kind: 'progress', id, progress: { stage: 'weights', loaded, total: 98e6 } });
      await wait(name.includes('large') ? 300 : 5);
      if (running.get(id)) throw fail('Cancelled', 'cancelled');
    }
    return { ...MODEL, name, ...(name.endsWith('/') && { format: 'safetensors' }) };
  },
  async chat({ messages, options }, id) {
    const asked = messages.at(-1).content;
    if (asked.startsWith('fail ')) throw fail(asked.slice(5), 'as it was asked to');
    const text = asked.startsWith('say: ') ? asked.slice(5) : `You said “${asked}”, seed ${options.seed}, message ${messages.length}.`;
    const words = text.match(/\s*\S+/g) ?? [text];
    self.postMessage({ kind: 'event', id, event: { prompt_tokens: 10 * messages.length } });
    for (let i = 0; i < words.length || asked.includes('slow'); i++) {
      await wait(asked.includes('slow') ? 30 : 1);
      if (running.get(id)) throw fail('Cancelled', 'cancelled');
      self.postMessage({ kind: 'event', id, event: { text: words[i % words.length], tokens: [i], token_texts: [words[i % words.length]], logprobs: [-0.5], top_logprobs: options.top_logprobs ? [[i, -0.5, 'x'], [99, -1.5, '\ufffd']] : [] } });
    }
    return { finish_reason: asked.includes('long') ? 'length' : 'stop', timings: { first_token_ms: 40, prefill_tps: 200, decode_tps: 30 } };
  },
  async autotune() {
    return { tuned: [{ case: 'linear', way: 'packed_gemv lanes=8', ratio: 1.25 }] };
  },
  async save({ first }) {
    saved = first ? 0 : saved + 1;
    await wait(200);
    const words = ['one ', 'file'].slice(saved, saved + 1).join('');
    return { piece: { dtype: 'uint8', shape: [words.length], data: new TextEncoder().encode(words) } };
  },
  async look({ prompt }) {
    await wait(200);
    const texts = prompt.split(/(?=\s)/).slice(0, 12);
    const array = (...shape) => {
      const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
      return { dtype: 'float32', shape, data: data.map((_, i) => Math.sin(i * 0.37) * Math.cos(i * 0.011)) };
    };
    const { hidden, heads, kv_heads: kv, head_dim: dim } = MODEL;
    return {
      tokens: { ids: texts.map((_, i) => 40 + 97 * i), texts }, looked_at: texts.length, types: { Q4_1: 210, F32: 61 },
      embedding: array(texts.length, hidden), q: array(texts.length, heads, dim), k: array(texts.length, kv, dim),
      run_ms: 3.2, check: ['layer 0 is right', 'requantized it is less so'],
      dispatches: 5, memory: { weights: 31e6, activations: 2e5, total: 31.2e6 },
      kernels: [['webgpu_py.embedding_q8 packed_rows', 12.5], ['et_vk.rms_norm.default rms_norm', 4.1], ['webgpu_py.linear_q4 packed_gemm', 55.0], ['webgpu_py.linear_q4 packed_gemm', 31.5]],
    };
  },
};
