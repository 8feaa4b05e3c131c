// A worker that answers requests one after the other: bytes come in by GET, results go out by POST.
// Speaks with remote-page.js.

/**
 * @param {() => Promise<{info: object}>} start  prepares the worker; `info` goes to the page
 * @param {(context: any, request: any, payload: Uint8Array, emit: (json: string) => void)
 *   => Promise<Uint8Array>} handle
 */
export function answerRequests(start, handle) {
  const started = start((progress) => self.postMessage({ kind: 'progress', progress }));
  started.then(
    ({ info }) => self.postMessage({ kind: 'ready', info }),
    (error) => self.postMessage({ kind: 'failed', code: error?.code, message: String(error?.message ?? error) }),
  );

  const answer = async ({ id, request, input, output }) => {
    const emit = (json) => self.postMessage({ kind: 'event', id, json });
    try {
      const payload = new Uint8Array(await checked(await fetch(input)).arrayBuffer());
      const body = await handle(await started, request, payload, emit);
      checked(await fetch(output, { method: 'POST', body }));
      self.postMessage({ kind: 'done', id });
    } catch (error) {
      const told = { type: error?.name ?? 'Error', message: String(error?.message ?? error) };
      self.postMessage({ kind: 'done', id, error: told });
    }
  };
  // Requests share the device and its queue, so they run in turn.
  let last = started;
  self.onmessage = ({ data }) => {
    last = last.catch(() => {}).then(() => answer(data));
  };
}

/** Python's bytes as a Uint8Array of their own. */
export function bytesOf(proxy) {
  const bytes = proxy.toJs();
  proxy.destroy();
  return bytes;
}

function checked(response) {
  if (!response.ok) throw new Error(`${response.url}: HTTP ${response.status}`);
  return response;
}
