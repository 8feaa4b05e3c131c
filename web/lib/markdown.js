// Markdown as DOM nodes. Text only ever becomes text nodes: there is no markup in a model's answer
// that could run, load or submit anything. Images are shown as links, links are http(s) or mail.
import { el } from './dom.js';

const FENCE = /^\s{0,3}(```+|~~~+)\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^\s{0,3}>\s?(.*)$/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const MAX_DEPTH = 8;

/** @param {string} text @returns {Node[]} */
export function markdown(text) {
  return blocks(text.split('\n'), 0);
}

/** @param {string[]} lines @param {number} depth @returns {Node[]} */
function blocks(lines, depth) {
  if (depth > MAX_DEPTH) return [el('p', {}, lines.join('\n'))];
  /** @type {Node[]} */
  const out = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at++;
      continue;
    }
    const kind = [fence, heading, rule, quote, list, table].find((k) => k.starts(lines, at)) ?? paragraph;
    const { node, end } = kind.read(lines, at, depth);
    out.push(node);
    at = end;
  }
  return out;
}

const fence = {
  /** @param {string[]} lines @param {number} at */
  starts: (lines, at) => FENCE.test(lines[at]),
  /** @param {string[]} lines @param {number} at */
  read(lines, at) {
    const [, mark, language] = /** @type {RegExpExecArray} */ (FENCE.exec(lines[at]));
    let end = at + 1;
    while (end < lines.length && !lines[end].trim().startsWith(mark)) end++;
    const code = lines.slice(at + 1, end).join('\n');
    const node = el('pre', { tabindex: 0, 'data-language': language || null }, el('code', {}, code));
    return { node, end: end + 1 };
  },
};

const heading = {
  /** @param {string[]} lines @param {number} at */
  starts: (lines, at) => HEADING.test(lines[at]),
  /** @param {string[]} lines @param {number} at */
  read(lines, at) {
    const [, marks, words] = /** @type {RegExpExecArray} */ (HEADING.exec(lines[at]));
    // The page has its own h1 and h2: an answer's headings come below them.
    return { node: el(`h${Math.min(marks.length + 2, 6)}`, {}, inline(words)), end: at + 1 };
  },
};

const rule = {
  /** @param {string[]} lines @param {number} at */
  starts: (lines, at) => RULE.test(lines[at]),
  /** @param {string[]} _lines @param {number} at */
  read: (_lines, at) => ({ node: el('hr'), end: at + 1 }),
};

const quote = {
  /** @param {string[]} lines @param {number} at */
  starts: (lines, at) => QUOTE.test(lines[at]),
  /** @param {string[]} lines @param {number} at @param {number} depth */
  read(lines, at, depth) {
    const inner = [];
    let end = at;
    for (; end < lines.length && QUOTE.test(lines[end]); end++) inner.push(/** @type {any} */ (QUOTE.exec(lines[end]))[1]);
    return { node: el('blockquote', {}, blocks(inner, depth + 1)), end };
  },
};

const list = {
  /** @param {string[]} lines @param {number} at */
  starts: (lines, at) => ITEM.test(lines[at]),
  /** @param {string[]} lines @param {number} at @param {number} depth */
  read(lines, at, depth) {
    const first = /** @type {RegExpExecArray} */ (ITEM.exec(lines[at]));
    const indent = first[1].length;
    const ordered = /\d/.test(first[2]);
    const items = [];
    let end = at;
    while (end < lines.length) {
      const item = ITEM.exec(lines[end]);
      if (!item || item[1].length > indent + 1 || /\d/.test(item[2]) !== ordered) break;
      const inner = [item[3]];
      for (end++; end < lines.length && continues(lines, end, indent); end++) inner.push(lines[end].slice(indent + 2));
      items.push(el('li', {}, tight(blocks(inner, depth + 1))));
    }
    return { node: el(ordered ? 'ol' : 'ul', { start: ordered ? parseInt(first[2], 10) : null }, items), end };
  },
};

/** @param {string[]} lines @param {number} at @param {number} indent whether the line belongs to the item before it */
function continues(lines, at, indent) {
  const line = lines[at];
  if (!line.trim()) return /^\s{2,}\S/.test(lines[at + 1] ?? '') && (lines[at + 1].match(/^\s*/)?.[0].length ?? 0) > indent + 1;
  return (line.match(/^\s*/)?.[0].length ?? 0) > indent + 1;
}

/** An item of one paragraph stands without its margins. @param {Node[]} nodes @returns {Node[]} */
function tight(nodes) {
  return nodes.flatMap((node, i) => (i === 0 && node.nodeName === 'P' ? [...node.childNodes] : [node]));
}

const table = {
  /** @param {string[]} lines @param {number} at */
  starts: (lines, at) => lines[at].includes('|') && at + 1 < lines.length && lines[at + 1].includes('-') && TABLE_RULE.test(lines[at + 1]),
  /** @param {string[]} lines @param {number} at */
  read(lines, at) {
    const row = (/** @type {string} */ line, /** @type {string} */ cell) =>
      el('tr', {}, line.trim().replace(/^\||\|$/g, '').split('|').map((words) => el(cell, {}, inline(words.trim()))));
    let end = at + 2;
    while (end < lines.length && lines[end].includes('|')) end++;
    const body = lines.slice(at + 2, end).map((line) => row(line, 'td'));
    return { node: el('div', { class: 'scroll', tabindex: 0 }, el('table', {}, el('thead', {}, row(lines[at], 'th')), el('tbody', {}, body))), end };
  },
};

const paragraph = {
  /** @param {string[]} lines @param {number} at */
  read(lines, at) {
    let end = at + 1;
    const others = [fence, heading, rule, quote, list];
    while (end < lines.length && lines[end].trim() && !others.some((kind) => kind.starts(lines, end))) end++;
    return { node: el('p', {}, inline(lines.slice(at, end).join('\n'))), end };
  },
};

/** @type {[RegExp, (match: RegExpExecArray, depth: number) => any][]} the earliest match in the text wins */
const SPANS = [
  [/(`+)(.+?)\1(?!`)/s, (m) => el('code', {}, m[2].trim() || m[2])],
  [/!?\[([^\]\n]*)\]\(\s*([^\s)]+)[^)\n]*\)/, (m, depth) => link(m[2], inline(m[1], depth))],
  [/\*\*(?=\S)(.+?)(?<=\S)\*\*/s, (m, depth) => el('strong', {}, inline(m[1], depth))],
  [/(?<![\w*])\*(?=[^\s*])(.+?)(?<=[^\s*])\*(?!\*)/s, (m, depth) => el('em', {}, inline(m[1], depth))],
  [/(?<!\w)_(?=[^\s_])(.+?)(?<=[^\s_])_(?!\w)/s, (m, depth) => el('em', {}, inline(m[1], depth))],
  [/~~(?=\S)(.+?)(?<=\S)~~/s, (m, depth) => el('del', {}, inline(m[1], depth))],
  [/https?:\/\/[^\s<>"')\]]+[^\s<>"')\].,;:!?]/, (m) => link(m[0], [m[0]])],
  [/\\([\\`*_{}[\]()#+.!~|-])/, (m) => m[1]],
  [/(?: {2,}|\\)\n/, () => el('br')],
];

/** @param {string} text @param {number} [depth] @returns {(Node | string)[]} */
function inline(text, depth = 0) {
  if (depth > MAX_DEPTH) return [text];
  const out = [];
  let rest = text;
  while (rest) {
    let best = null;
    for (const [pattern, make] of SPANS) {
      const match = pattern.exec(rest);
      if (match && (!best || match.index < best.match.index)) best = { match, make };
    }
    if (!best) break;
    if (best.match.index) out.push(rest.slice(0, best.match.index));
    out.push(best.make(best.match, depth + 1));
    rest = rest.slice(best.match.index + best.match[0].length);
  }
  if (rest) out.push(rest);
  return out;
}

/** @param {string} address @param {(Node | string)[]} words */
function link(address, words) {
  const safe = /^(https?:|mailto:)/i.test(address);
  return safe ? el('a', { href: address, target: '_blank', rel: 'noopener noreferrer nofollow' }, words) : el('span', {}, words);
}
