// Counts listeners on targets that are alive: import it before what is watched.

const byTarget = new WeakMap(); // EventTarget -> Map of type -> Set of listeners
const targets = new Set(); // WeakRef of EventTarget

const { addEventListener, removeEventListener } = EventTarget.prototype;

function listenersOf(target, type) {
  if (!byTarget.has(target)) {
    byTarget.set(target, new Map());
    targets.add(new WeakRef(target));
  }
  const types = byTarget.get(target);
  if (!types.has(type)) types.set(type, new Set());
  return types.get(type);
}

EventTarget.prototype.addEventListener = function (type, listener, options) {
  const target = this ?? self;
  if (listener) {
    const { once = false, signal } = Object(options);
    const forget = () => listenersOf(target, type).delete(listener);
    listenersOf(target, type).add(listener);
    if (once) addEventListener.call(target, type, forget, { once });
    if (signal) addEventListener.call(signal, 'abort', forget, { once: true });
  }
  return addEventListener.call(target, type, listener, options);
};

EventTarget.prototype.removeEventListener = function (type, listener, options) {
  const target = this ?? self;
  byTarget.get(target)?.get(type)?.delete(listener);
  return removeEventListener.call(target, type, listener, options);
};

/** How many there are; collect garbage before. */
export function listeners() {
  let total = 0;
  for (const ref of targets) {
    const types = byTarget.get(ref.deref());
    if (!types) targets.delete(ref);
    else for (const found of types.values()) total += found.size;
  }
  return total;
}
