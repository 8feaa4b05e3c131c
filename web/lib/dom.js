// Elements by function calls: text is always text, so nothing from a model or a file becomes markup.

/**
 * @param {string} tag
 * @param {Record<string, any>} [attributes] `on...` are listeners, `class` and the rest attributes; null and false are left out
 * @param {...any} children nodes, strings, numbers; null and false are left out
 * @returns {any}
 */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

const SVG = 'http://www.w3.org/2000/svg';

/** @param {string} tag @param {Record<string, any>} [attributes] @param {...any} children @returns {any} */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** @param {any} element @param {Record<string, any>} attributes @param {any[]} children */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

/**
 * Text whose command-line flags are code that no line breaks: they are there to be copied.
 * @param {string} text
 */
export function withFlags(text) {
  return text.split(/(--[\w=-]*\w)/).map((part, at) => (at % 2 ? el('code', { class: 'flag' }, part) : part));
}

/** @param {string} id @returns {any} */
export function byId(id) {
  return document.getElementById(id);
}
