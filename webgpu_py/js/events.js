// What happens on this side, told to Python's logger: see webgpu_py/events.py, which lists the events.

const listeners = new Set();

/** `listener(event, level, facts)` hears of everything from now on; facts are JSON. */
export function hearEvents(listener) {
  listeners.add(listener);
}

/** Tell of an event: plain `facts` by name, `level` as Python's logging has them. */
export function tell(event, facts, level = 'info') {
  for (const listener of listeners) listener(event, level, JSON.stringify(facts));
}

/** An address without what may be secret in it. */
export function withoutQuery(url) {
  const {origin, pathname, href} = new URL(url);
  return origin === 'null' ? href : origin + pathname;
}
