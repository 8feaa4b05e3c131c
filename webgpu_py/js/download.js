// A URL as a source: its chunks come by ranges, several connections at a time, each goes to whoever
// waits for it and into the cache. A server without ranges, or without a readable version of the file,
// is read as one stream.

import {Entry, addressOf} from './cache.js';
import {WebGPUPyError} from './errors.js';
import {tell, withoutQuery} from './events.js';
import {checkNotHtml, pause, pieces, request, transient} from './http.js';
import {checkRange} from './sources.js';

const CONNECTIONS = 4;
/** Chunks that one request asks for while the whole file is fetched. */
const RUN = 4;
/** Waits between attempts that bring nothing; a server that answers at all starts them anew. */
const RETRY_MS = [250, 500, 1000, 2000, 4000];

/** Downloads of this worker that are not whole, by address. */
const unfinished = new Map();

/**
 * Open a URL as a source that is kept in the browser: {name, nbytes, read, fetchAll, close, ...}.
 *
 * Options: `signal` ends everything with its reason; `onProgress({loaded, total})` hears of bytes
 * that are here; `onWarning(text)` hears, once, that the file can't be kept.
 *
 * With `resumable` it is refused where another could not go on from what has arrived.
 *
 * `restart` is true once the file's version changed while it was read: opening it again works.
 */
export async function cachedSource(url, options = {}) {
  const {signal, onProgress = () => {}, onWarning = console.warn, chunkNbytes, retryMs = RETRY_MS, resumable = false} = options;
  signal?.throwIfAborted();
  const address = addressOf(url);
  const warn = (message) => {
    tell('download.warned', {message: message.replaceAll(address, withoutQuery(address))}, 'warning');
    onWarning(message);
  };
  // Whoever waits for a download of this very worker must not wait for a reader that has stopped reading.
  unfinished.get(address)?.fetchAll();
  const entry = await Entry.open(address, {signal, warn, chunkNbytes});
  const download = new Download(address, entry, {signal, onProgress, retryMs, resumable});
  try {
    if (entry.complete) download.tellStart();
    else {
      unfinished.set(address, download);
      await download.open();
    }
  } catch (error) {
    const {aborted} = download.signal;
    await download.close();
    if (!aborted) tell('download.failed', {url: download.told, code: error.code ?? error.name}, 'warning');
    throw signal?.aborted ? signal.reason : error;
  }
  return {
    name: address,
    nbytes: entry.manifest.nbytes,
    sha256: entry.manifest.sha256,
    get restart() {
      return Boolean(download.signal.reason?.restart);
    },
    read: (offset, nbytes) => download.read(offset, nbytes),
    readInto: (target, offset) => download.readInto(target, offset),
    fetchAll: () => download.fetchAll(),
    verified: (sha256) => entry.verified(sha256),
    discard: () => download.discard(),
    close: () => download.close(),
  };
}

/**
 * Bring an address into the cache until `signal` ends it, as far as whoever opens it then can go on.
 * What fails here fails there again, and is said there.
 */
export async function fetchAhead(url, {signal, ...options}) {
  const stopping = new AbortController();
  signal.addEventListener('abort', () => stopping.abort());
  const ended = new Promise((resolve) => stopping.signal.addEventListener('abort', resolve));
  // It warns where another page is downloading this file, or where there is no room for it.
  const onWarning = () => stopping.abort();
  const source = await cachedSource(url, {...options, signal: stopping.signal, onWarning, resumable: true}).catch(() => null);
  source?.fetchAll();
  if (source) await ended;
  await source?.close();
}

class Download {
  constructor(url, entry, {signal, onProgress, retryMs, resumable}) {
    Object.assign(this, {url, entry, onProgress, retryMs, resumable});
    this.stopping = new AbortController();
    this.signal = signal ? AbortSignal.any([signal, this.stopping.signal]) : this.stopping.signal;
    this.signal.addEventListener('abort', () => this.#fail(this.signal.reason));
    /** Chunks that are on their way, and the readers that wait for them. */
    this.pending = new Map();
    this.ranged = true;
    this.all = false;
    this.furthest = 0;
    this.arrived = 0;
    this.wake = () => {};
    this.started = performance.now();
    this.told = withoutQuery(url);
  }

  /** Before the first byte is kept: how much is there already. */
  tellStart() {
    const {manifest, have, nbytes} = this.entry;
    tell('download.started', {url: this.told, nbytes: manifest.nbytes, kept: have.size ? nbytes : 0});
  }

  /** First contact: the server's facts decide whether what is kept goes on, and how. */
  async open() {
    const {entry} = this;
    if (this.resumable && !entry.store.persistent) throw new WebGPUPyError('NetworkError', `${this.url}: this browser keeps no files.`);
    for (;;) {
      const size = entry.chunkNbytes;
      let first = 0;
      while (entry.have.has(first)) first++;
      if (first === entry.count) return await this.#finish(entry.manifest.nbytes);
      const answer = await this.#first({start: first * size, end: (first + 1) * size});
      if (answer.status === 206 && answer.start === first * size && answer.total && answer.validator) {
        if (entry.manifest && !entry.matches(answer)) {
          this.#leave(answer);
          await entry.remove();
          continue;
        }
        if (!entry.manifest) await entry.begin(answer);
        this.tellStart();
        this.#run(first, first + 1, answer);
        return;
      }
      if (!this.resumable) return await this.#openStream(answer);
      this.#leave(answer);
      throw new WebGPUPyError('NetworkError', `${this.url}: its server sends no ranges of a version it names.`);
    }
  }

  /** No ranges, or none that can be put together safely: the file from its beginning. */
  async #openStream(answer) {
    const {entry} = this;
    this.ranged = false;
    if (answer.status !== 200) {
      this.#leave(answer);
      answer = await this.#first({});
      if (answer.status !== 200) throw new WebGPUPyError('NetworkError', `${this.url}: asked for the whole file, the server answered ${answer.status}. Download it and open the file.`);
    }
    if (!entry.matches(answer)) await entry.begin(answer);
    this.all = entry.count === Infinity;
    this.tellStart();
    const ended = this.#run(0, entry.count, answer);
    if (this.all) await ended;
    this.signal.throwIfAborted();
  }

  // Retried once only: an address that is wrong must say so soon.
  async #first(range) {
    try {
      return await request(this.url, {...range, signal: this.signal});
    } catch (error) {
      if (!error.transient) throw error;
      this.#tellRetry(error);
      await pause(this.retryMs[0] ?? 0, this.signal);
    }
    return await request(this.url, {...range, signal: this.signal}).catch((error) => {
      throw this.entry.manifest ? this.#explained(error) : error;
    });
  }

  #tellRetry({message}) {
    tell('download.retried', {url: this.told, why: message.replaceAll(this.url, this.told)}, 'warning');
  }

  #leave(answer) {
    answer.response.body?.cancel().catch(() => {});
  }

  /** Fetch chunks `first` to `end`, with `answer` or a request of its own; failures go to the readers. */
  async #run(first, end, answer) {
    const {entry} = this;
    const size = entry.chunkNbytes;
    if (end !== Infinity) for (let i = first; i < end; i++) if (!entry.have.has(i)) this.pending.set(i, []);
    let at = first;
    try {
      for (let failures = 0; at < end; ) {
        try {
          answer ??= await this.#ask(at * size, Math.min(end * size, entry.manifest.nbytes ?? Infinity));
          for await (const bytes of pieces(answer.response, size, at * size - answer.start)) {
            if (end !== Infinity && bytes.length < entry.sizeOf(at)) break;
            await this.#arrive(at, bytes);
            failures = 0;
            if (++at === end) break;
            if (this.#idle(at)) await new Promise((resolve) => (this.wake = resolve));
            this.signal.throwIfAborted();
          }
          if (end === Infinity) return await this.#finish(this.arrived);
          if (at < end) throw transient(`${this.url}: the connection ended early.`);
        } catch (error) {
          this.signal.throwIfAborted();
          const cut = error instanceof TypeError ? transient(`${this.url}: the connection was lost (${error.message}).`) : error;
          if (!cut.transient || failures >= this.retryMs.length) throw cut;
          this.#tellRetry(cut);
          await pause(this.retryMs[failures++], this.signal);
        }
        answer = undefined;
      }
    } catch (error) {
      const failure = this.signal.aborted ? this.signal.reason : this.#explained(error);
      if (!this.signal.aborted) tell('download.failed', {url: this.told, code: failure.code}, 'warning');
      this.#fail(failure);
    }
  }

  /** Ask again in the middle of a file: only the same version of it may go on. */
  async #ask(start, end) {
    const {entry} = this;
    if (!entry.manifest.validator && this.arrived) {
      throw this.#changed('its server does not say which version of the file it sends, so a cut download starts over');
    }
    const answer = await request(this.url, this.ranged ? {start, end, signal: this.signal} : {signal: this.signal});
    if (answer.status === 416 || (answer.status === 206 && answer.start !== start)) {
      this.#leave(answer);
      // The whole file has no wrong place to begin at.
      this.ranged = false;
      throw transient(`${this.url}: asked for bytes from ${start}, the server answered ${answer.status} ${answer.response.headers.get('Content-Range') ?? 'without a readable Content-Range'}.`);
    }
    if (!entry.matches(answer)) {
      this.#leave(answer);
      throw this.#changed('it changed on the server while it was read');
    }
    return answer;
  }

  #changed(why) {
    const error = new WebGPUPyError('NetworkError', `${this.url}: ${why}. Load it again.`);
    return Object.assign(error, {restart: true});
  }

  #explained(error) {
    if (!error.transient) return error;
    const {nbytes, manifest} = this.entry;
    const kept = this.entry.overflow ? '' : ' What has arrived is kept; load it again to go on from there.';
    return new WebGPUPyError('NetworkError', `${error.message} ${nbytes} of ${manifest.nbytes ?? 'an unknown number of'} bytes are here.${kept}`);
  }

  async #arrive(i, bytes) {
    const {entry, pending} = this;
    if (i === 0) await this.#checkStart(bytes);
    this.arrived += bytes.length;
    if (!entry.have.has(i)) await entry.put(i, bytes);
    for (const {target, from, resolve} of pending.get(i) ?? []) {
      target.set(bytes.subarray(from, from + target.length));
      resolve();
    }
    pending.delete(i);
    const {nbytes} = entry.manifest;
    this.onProgress({loaded: nbytes === null ? this.arrived : entry.nbytes, total: nbytes ?? 0});
    if (entry.have.size === entry.count) await this.#finish(nbytes);
  }

  async #finish(nbytes) {
    await this.entry.finish(nbytes);
    tell('download.ended', {url: this.told, nbytes, fetched: this.arrived, ms: Math.round(performance.now() - this.started)});
  }

  async #checkStart(bytes) {
    try {
      checkNotHtml(this.url, bytes);
    } catch (error) {
      await this.entry.remove();
      throw error;
    }
  }

  /** Whether a stream should wait: nobody wants what comes next, the header may refuse the file. */
  #idle(next) {
    return !this.ranged && !this.all && next > this.furthest;
  }

  async read(offset, nbytes) {
    const found = new Uint8Array(nbytes);
    await this.readInto(found, offset);
    return found;
  }

  /** Fill `target` with the bytes from `offset`. */
  async readInto(target, offset) {
    checkRange({name: this.url, nbytes: this.entry.manifest?.nbytes ?? 0}, offset, target.length);
    const size = this.entry.chunkNbytes;
    for (let at = 0; at < target.length; ) {
      const i = Math.floor((offset + at) / size);
      const from = offset + at - i * size;
      const part = target.subarray(at, at + size - from);
      await this.#fill(part, i, from);
      at += part.length;
    }
  }

  async #fill(target, i, from) {
    if (this.entry.have.has(i)) return await this.entry.read(i, from, target);
    this.signal.throwIfAborted();
    if (i > this.furthest) this.furthest = i;
    this.wake();
    if (!this.pending.has(i)) this.#run(i, i + 1);
    await new Promise((resolve, reject) => this.pending.get(i).push({target, from, resolve, reject}));
  }

  /** Bring the whole file, from now on whether it is read or not. */
  fetchAll() {
    if (this.all || this.entry.complete) return;
    this.all = true;
    this.wake();
    if (this.ranged) for (let k = 0; k < CONNECTIONS; k++) this.#connection();
  }

  async #connection() {
    const missing = (i) => i < this.entry.count && !this.entry.have.has(i) && !this.pending.has(i);
    for (let first = 0; first < this.entry.count && !this.signal.aborted; ) {
      let end = first;
      while (end - first < (this.ranged ? RUN : Infinity) && missing(end)) end++;
      if (end > first) await this.#run(first, end);
      first = Math.max(end, first + 1);
    }
  }

  #fail(error) {
    if (!this.stopping.signal.aborted) this.stopping.abort(error);
    for (const readers of this.pending.values()) for (const {reject} of readers) reject(error);
    this.pending.clear();
    this.wake();
    if (unfinished.get(this.url) === this) unfinished.delete(this.url);
    this.entry.leave();
  }

  /** The content is not what it should be: nothing of it is kept. */
  async discard() {
    const gone = this.entry.discard();
    this.close();
    await gone;
  }

  /** Ends what is under way, and is done when another may go on; what has arrived is kept. */
  close() {
    this.#fail(new WebGPUPyError('Cancelled', `${this.url} was closed.`));
    return this.entry.leave();
  }
}
