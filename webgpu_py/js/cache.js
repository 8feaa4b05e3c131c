// Downloads kept in the browser: a manifest and equal chunks for every address, whole or in part.
//
// A chunk is there or it is not, so a download can stop anywhere and go on; the manifest says of
// which version of the file the chunks are. One worker at a time writes an entry (a Web Lock), and
// whole entries are read by any number of them without asking the network.

import {WebGPUPyError} from './errors.js';
import {memoryStore, persistentStores, readBlob, writableStore} from './stores.js';

/** Bytes of a chunk: what a cut connection loses at most. */
export const CHUNK_NBYTES = 2 << 20;
const MANIFEST = 'manifest';
const LOCK = 'webgpu_py download of ';
const realm = Math.random();

/** A whole address, under which a file is kept. */
export function addressOf(url) {
  const address = new URL(url, globalThis.location?.href);
  address.hash = '';
  return address.href;
}

async function keyOf(url) {
  // Insecure pages have no digest; they have no store to keep anything in either.
  if (!globalThis.crypto?.subtle) return url;
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(url));
  return [...new Uint8Array(digest.slice(0, 16))].map((b) => b.toString(16).padStart(2, '0')).join('');
}

async function readManifest(store, key) {
  try {
    return JSON.parse(await (await store.get(key, MANIFEST)).text());
  } catch {
    // None, or one whose writing was cut: chunks without it are of no known version.
    return null;
  }
}

/** What is kept of one address; the caller that opened it incomplete is its only writer until `leave`. */
export class Entry {
  /** @type {() => void} lets the next worker write */
  #release = () => {};
  /** Reads and writes that are under way: a file that is open can neither be removed nor opened by another. */
  #uses = new Set();
  #discarded = null;
  manifest = null;
  have = new Set();
  overflow = null;

  /** `warn` hears once if the file can't be kept. */
  static async open(url, {signal, warn, chunkNbytes = CHUNK_NBYTES}) {
    const store = await writableStore();
    const entry = new Entry(url, await keyOf(url), store, warn, chunkNbytes);
    await entry.#load();
    if (entry.complete) return entry;
    await entry.#lock(signal);
    try {
      // Another worker may have brought it while this one waited.
      await entry.#load();
      if (entry.complete) await entry.leave();
      return entry;
    } catch (error) {
      await entry.leave();
      throw error;
    }
  }

  constructor(url, key, store, warn, chunkNbytes) {
    Object.assign(this, {url, key, store, warn, chunkNbytes});
  }

  get complete() {
    return Boolean(this.manifest?.complete);
  }

  /** Number of chunks; Infinity while the file's size is not known. */
  get count() {
    return this.manifest?.nbytes == null ? Infinity : Math.ceil(this.manifest.nbytes / this.chunkNbytes);
  }

  /** Bytes that are kept. */
  get nbytes() {
    let total = 0;
    for (const i of this.have) total += this.sizeOf(i);
    return total;
  }

  sizeOf(i) {
    return Math.min(this.chunkNbytes, this.manifest.nbytes - i * this.chunkNbytes);
  }

  async #load() {
    const manifest = await readManifest(this.store, this.key);
    const usable = manifest?.url === this.url && manifest.chunkNbytes === this.chunkNbytes && manifest.nbytes != null;
    this.manifest = usable ? manifest : null;
    this.have.clear();
    for (const name of usable ? await this.store.names(this.key) : []) {
      if (name === MANIFEST) continue;
      // A worker may have died while it wrote a chunk.
      const blob = await this.store.get(this.key, name);
      if (blob?.size === this.sizeOf(Number(name))) this.have.add(Number(name));
    }
    // A browser short of space may have dropped some of it.
    if (this.complete && this.have.size < this.count) this.manifest.complete = false;
  }

  async #lock(signal) {
    if (!navigator.locks) return;
    const name = LOCK + this.key + (this.store.persistent ? '' : ` in ${realm}`);
    const take = (options) => new Promise((settle, failed) => {
      const hold = (lock) => lock && new Promise((release) => {
        this.#release = release;
        settle(true);
      });
      navigator.locks.request(name, options, hold).then(() => settle(false), failed);
    });
    if (await take({ifAvailable: true})) return;
    this.warn(`${this.url}: another page or worker is downloading this file; waiting for it.`);
    await take({signal});
  }

  async #using(use) {
    this.#uses.add(use);
    try {
      return await use;
    } finally {
      this.#uses.delete(use);
    }
  }

  async #idle() {
    while (this.#uses.size) await Promise.allSettled(this.#uses);
  }

  /** Let the next worker write, once what is under way has ended. */
  async leave() {
    await this.#discarded?.catch(() => {});
    await this.#idle();
    this.#release();
  }

  /** Keep nothing, neither what is there nor what is still under way. */
  discard() {
    return (this.#discarded = this.remove());
  }

  /** Whether chunks that are kept and what a server answers now are of one version of the file. */
  matches({total, validator}) {
    const kept = this.manifest;
    return Boolean(kept?.validator) && kept.validator === validator && (total === null || kept.nbytes === total);
  }

  /** Start over, with nothing kept. */
  async begin({total, validator}) {
    await this.remove();
    this.manifest = {url: this.url, nbytes: total, validator, chunkNbytes: this.chunkNbytes, complete: false, sha256: null};
    const {quota = Infinity, usage = 0} = await Promise.resolve(navigator.storage?.estimate?.()).then((e) => e ?? {}, () => ({}));
    if (this.store.persistent && total > quota - usage) {
      return this.#giveUp(`it has ${total} bytes, this browser has room for ${Math.max(quota - usage, 0)}`);
    }
    await this.#saveManifest().catch((error) => this.#giveUp(error.message));
  }

  #giveUp(why) {
    if (this.overflow) return;
    this.overflow = new Map();
    this.warn(`${this.url}: not kept for the next time (${why}). Free some space in this browser, or remove other models.`);
  }

  async #saveManifest() {
    if (this.overflow || this.#discarded) return;
    await this.#using(this.store.put(this.key, MANIFEST, new TextEncoder().encode(JSON.stringify(this.manifest))));
  }

  /** Keep a chunk: in the store, or where that fails in memory for this load alone. */
  async put(i, bytes) {
    if (this.#discarded) return;
    if (!this.overflow) {
      try {
        await this.#using(this.store.put(this.key, String(i), bytes));
      } catch (error) {
        this.#giveUp(error.message);
      }
    }
    this.overflow?.set(i, new Blob([bytes]));
    this.have.add(i);
  }

  /** Fill `target` with bytes from `from` of a chunk that is there. */
  async read(i, from, target) {
    const kept = this.overflow?.get(i);
    const reading = kept ? readBlob(kept, from, target) : this.store.read(this.key, String(i), from, target);
    if (await this.#using(reading)) return;
    throw new WebGPUPyError('NetworkError', `${this.url}: part ${i} of it is gone from the browser's storage, which was cleared while it was read. Load it again.`);
  }

  /** All chunks are there: from now on no network is needed. */
  async finish(nbytes) {
    this.manifest = {...this.manifest, nbytes, complete: !this.overflow, saved: Date.now()};
    await this.#saveManifest().catch((error) => this.#giveUp(error.message));
    await this.leave();
  }

  /** Note that the whole content had this hash. */
  async verified(sha256) {
    this.manifest = {...this.manifest, sha256};
    // Another worker may be writing the same; a note that is lost costs another look only.
    await this.#saveManifest().catch(() => {});
  }

  async remove() {
    this.manifest = null;
    this.have.clear();
    this.overflow?.clear();
    await this.#idle();
    await this.store.remove(this.key);
  }
}

/** Files kept in this browser: [{url, nbytes, stored, complete, saved}], the latest first. */
export async function cached() {
  const found = [];
  for (const store of [...(await persistentStores()), memoryStore()]) {
    for (const key of await store.keys()) {
      const manifest = await readManifest(store, key);
      if (!manifest) continue;
      const {url, nbytes, chunkNbytes, complete, saved = null} = manifest;
      const chunks = (await store.names(key)).filter((name) => name !== MANIFEST).length;
      found.push({url, nbytes, stored: complete ? nbytes : Math.min(chunks * chunkNbytes, nbytes ?? Infinity), complete, saved});
    }
  }
  return found.sort((a, b) => (b.saved ?? 0) - (a.saved ?? 0));
}

/** Remove what is kept of an address; refused while another page or worker downloads it. */
export async function forget(url) {
  const address = addressOf(url);
  const key = await keyOf(address);
  const remove = async (lock) => {
    if (!lock) throw new WebGPUPyError('WebGPUPyError', `${address} is being downloaded, perhaps by another page. Stop that first.`);
    for (const store of [...(await persistentStores()), memoryStore()]) await store.remove(key);
  };
  await (navigator.locks ? navigator.locks.request(LOCK + key, {ifAvailable: true}, remove) : remove(true));
}
