// Tokens to text: UTF-8 that may be cut anywhere, and stop strings that may span tokens.

export class TextAssembler {
  constructor(stops = []) {
    this.stops = stops.filter(Boolean);
    this.decoder = new TextDecoder('utf-8');
    this.held = '';
    this.stopped = false;
  }

  /** Text that is certain after these bytes; a stop string and all behind it is cut off. */
  push(bytes) {
    return this.settle(this.decoder.decode(bytes, {stream: true}), false);
  }

  /** What is still held back when the answer ends for another reason. */
  flush() {
    return this.settle(this.decoder.decode(), true);
  }

  settle(more, last) {
    if (this.stopped) return '';
    this.held += more;
    const at = Math.min(...this.stops.map((s) => this.held.indexOf(s)).filter((i) => i >= 0));
    if (at !== Infinity) {
      this.stopped = true;
      const text = this.held.slice(0, at);
      this.held = '';
      return text;
    }
    const keep = last ? 0 : Math.max(0, ...this.stops.map((s) => overlap(this.held, s)));
    const text = this.held.slice(0, this.held.length - keep);
    this.held = this.held.slice(this.held.length - keep);
    return text;
  }
}

/** Length of the longest end of `text` that begins `stop`. */
function overlap(text, stop) {
  for (let n = Math.min(text.length, stop.length - 1); n > 0; n--) {
    if (text.endsWith(stop.slice(0, n))) return n;
  }
  return 0;
}

/** The `count` most likely tokens and their log probabilities. */
export function topLogprobs(logits, count) {
  let most = -Infinity;
  for (const x of logits) most = Math.max(most, x);
  let sum = 0;
  for (const x of logits) sum += Math.exp(x - most);
  const total = most + Math.log(sum);
  const order = Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a] || a - b);
  return order.slice(0, count).map((token) => [token, logits[token] - total]);
}
