// Where a browser keeps named bytes: the origin's private file system, the Cache API, or memory.
// A store has two levels, keys (a file) and names (its chunks). `get` gives a Blob or null; `read` fills
// memory with bytes from `from` and says whether they were all there.

const FOLDER = 'webgpu_py';
const notFound = (error) => {
  if (error.name === 'NotFoundError') return null;
  throw error;
};

export async function readBlob(blob, from, target) {
  const part = await blob?.slice(from, from + target.length).arrayBuffer().catch(() => null);
  if (part) target.set(new Uint8Array(part));
  return part?.byteLength === target.length;
}

/** Files whose opening is under way. */
const opening = new Set();

// Chromium forgets the promise of a file that is collected meanwhile, which then waits for ever (seen in 156: one
// in some 500, of 37,000 that were held none).
function openAccess(file, options) {
  const opened = file.createSyncAccessHandle(options);
  const forget = () => opening.delete(file);
  opening.add(file);
  opened.then(forget, forget);
  return opened;
}

class FileStore {
  persistent = true;

  static async open() {
    const root = await navigator.storage.getDirectory();
    return new FileStore(await root.getDirectoryHandle(FOLDER, {create: true}));
  }

  constructor(folder) {
    this.folder = folder;
    this.folders = new Map();
  }

  async file(key, name) {
    const folder = this.folders.get(key) ?? (await this.folder.getDirectoryHandle(key).catch(notFound));
    if (folder) this.folders.set(key, folder);
    return (await folder?.getFileHandle(name).catch(notFound)) ?? null;
  }

  async keys() {
    const found = [];
    for await (const key of this.folder.keys()) found.push(key);
    return found;
  }

  async names(key) {
    const folder = await this.folder.getDirectoryHandle(key).catch(notFound);
    const found = [];
    if (folder) for await (const name of folder.keys()) found.push(name);
    return found;
  }

  async get(key, name) {
    const file = await this.file(key, name);
    return file ? await file.getFile() : null;
  }

  async read(key, name, from, target) {
    let access;
    try {
      access = await openAccess(await this.file(key, name), {mode: 'read-only'});
    } catch {
      // Gone, or a browser that lets one reader at a time.
      return await readBlob(await this.get(key, name), from, target);
    }
    try {
      return access.read(target, {at: from}) === target.length;
    } finally {
      access.close();
    }
  }

  async put(key, name, bytes) {
    const folder = await this.folder.getDirectoryHandle(key, {create: true});
    const file = await folder.getFileHandle(name, {create: true});
    const access = await openAccess(file);
    try {
      access.truncate(0);
      access.write(bytes, {at: 0});
    } finally {
      access.close();
    }
    // Chromium at its quota cuts a file short and says that all was written (seen in 156).
    const {size} = await file.getFile();
    if (size < bytes.length) throw new DOMException(`the browser's quota ends after ${size} of ${bytes.length} bytes`, 'QuotaExceededError');
  }

  async remove(key) {
    this.folders.delete(key);
    for (let attempt = 0; ; attempt++) {
      try {
        return void (await this.folder.removeEntry(key, {recursive: true}).catch(notFound));
      } catch (error) {
        // Chromium may count a file as open for a moment after its handle was closed (seen in 156).
        if (error.name !== 'NoModificationAllowedError' || attempt === 20) throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }
}

class CacheStore {
  persistent = true;

  static async open() {
    return new CacheStore(await caches.open(FOLDER));
  }

  constructor(cache) {
    this.cache = cache;
  }

  // A cache wants addresses; this one is never asked for.
  address(key, name) {
    return `https://${FOLDER.replace('_', '-')}.invalid/${key}/${name}`;
  }

  async paths() {
    return (await this.cache.keys()).map(({url}) => new URL(url).pathname.slice(1).split('/'));
  }

  async keys() {
    return [...new Set((await this.paths()).map(([key]) => key))];
  }

  async names(key) {
    return (await this.paths()).filter(([of]) => of === key).map(([, name]) => name);
  }

  async get(key, name) {
    const response = await this.cache.match(this.address(key, name));
    return response ? await response.blob() : null;
  }

  async read(key, name, from, target) {
    return await readBlob(await this.get(key, name), from, target);
  }

  async put(key, name, bytes) {
    await this.cache.put(this.address(key, name), new Response(bytes));
  }

  async remove(key) {
    for (const name of await this.names(key)) await this.cache.delete(this.address(key, name));
  }
}

// Blobs lie outside of the JavaScript heap, and browsers move large ones to disk.
class MemoryStore {
  persistent = false;
  files = new Map();

  async keys() {
    return [...this.files.keys()];
  }

  async names(key) {
    return [...(this.files.get(key)?.keys() ?? [])];
  }

  async get(key, name) {
    return this.files.get(key)?.get(name) ?? null;
  }

  async read(key, name, from, target) {
    return await readBlob(await this.get(key, name), from, target);
  }

  async put(key, name, bytes) {
    if (!this.files.has(key)) this.files.set(key, new Map());
    this.files.get(key).set(name, new Blob([bytes]));
  }

  async remove(key) {
    this.files.delete(key);
  }
}

const memory = new MemoryStore();

/** A store of this worker alone, as long as it lives. */
export const memoryStore = () => memory;

/** Stores that outlive the page, as far as this browser has them and allows them. */
export async function persistentStores() {
  const opened = await Promise.allSettled([FileStore.open(), CacheStore.open()]);
  return opened.filter((o) => o.status === 'fulfilled').map((o) => o.value);
}

/** The best store to write to. Files are written by handles that only workers have. */
export async function writableStore() {
  const canWriteFiles = 'createSyncAccessHandle' in (globalThis.FileSystemFileHandle?.prototype ?? {});
  const stores = await persistentStores();
  return stores.find((s) => canWriteFiles || !(s instanceof FileStore)) ?? memory;
}
