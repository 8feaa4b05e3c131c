// A worker of a test: runs the JavaScript it is sent with the JavaScript half at hand.
import * as half from '/js/bridge.js';

const AsyncFunction = (async () => {}).constructor;

self.onmessage = async ({ data: { id, code, argument } }) => {
  try {
    self.postMessage({ id, value: await new AsyncFunction('half', 'argument', code)(half, argument) });
  } catch (error) {
    const { code, restart, message } = Object(error);
    self.postMessage({ id, error: { code, restart, message: message ?? String(error) } });
  }
};
