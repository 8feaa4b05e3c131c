// What happens in this page's workers, for whoever wants to know. Workers tell of nothing that nobody
// hears: a connection is told the lowest level that is listened to, whenever that changes.

/** @typedef {'debug' | 'info' | 'warning'} Level */

export const LEVELS = Object.freeze(['debug', 'info', 'warning']);

/** @type {Set<{listener: (event: any) => void, rank: number}>} */
const listeners = new Set();
/** @type {Set<{listen: (level: Level | null) => void}>} */
const connections = new Set();
/** @type {Level | null} */
let told = null;

/**
 * Hears of everything that happens: {event, level, facts, time}. The function that comes back ends it, as
 * does `signal`; nothing of it is left then.
 * @param {(event: any) => void} listener
 * @param {{level?: Level, signal?: AbortSignal}} [options]
 * @returns {() => void}
 */
export function subscribe(listener, { level = 'info', signal } = {}) {
  const rank = LEVELS.indexOf(level);
  if (rank < 0) throw new RangeError(`level is ${JSON.stringify(level)}, must be one of ${LEVELS.join(', ')}`);
  if (signal?.aborted) return () => {};
  const entry = { listener, rank };
  const end = () => {
    listeners.delete(entry);
    signal?.removeEventListener('abort', end);
    agree();
  };
  listeners.add(entry);
  signal?.addEventListener('abort', end);
  agree();
  return end;
}

/** Tells the workers what is listened to, where that has changed. */
function agree() {
  const lowest = Math.min(...[...listeners].map(({ rank }) => rank));
  const level = /** @type {Level | undefined} */ (LEVELS[lowest]) ?? null;
  if (level === told) return;
  told = level;
  for (const connection of connections) connection.listen(level);
}

/** @param {{listen: (level: Level | null) => void}} connection whose worker has started */
export function attach(connection) {
  connections.add(connection);
  if (told) connection.listen(told);
}

/** @param {{listen: (level: Level | null) => void}} connection whose worker has ended */
export function detach(connection) {
  connections.delete(connection);
}

/** @param {{event: string, level: string, facts: any, time: number}} record */
export function happened(record) {
  const rank = LEVELS.indexOf(record.level);
  for (const entry of [...listeners]) {
    // One that fails must not keep the others from hearing.
    if (rank >= entry.rank) queueMicrotask(() => listeners.has(entry) && entry.listener(record));
  }
}
