// The JavaScript half of a GPU that computes wrong numbers; served as bridge.js, the right one as whole.js.
export * from './whole.js';
import { run as right } from './whole.js';

export async function run(...args) {
  const bytes = await right(...args);
  if (bytes.length > 3) bytes[3] ^= 0x40;
  return bytes;
}
