// The inputs of a method as a form: per tensor a shape within its bounds and what to fill it with.
import { el } from '../lib/dom.js';
import { shape, shortType } from '../lib/format.js';

/**
 * @typedef {object} InputForm
 * @property {HTMLElement} element
 * @property {() => any} read  the recipe for webgpu_py/page_program.py; throws with words for the user
 */

const MAX_TYPED = 4096;

/** @param {any} port @param {number} index @returns {InputForm} */
export function inputForm(port, index) {
  return port.scalar ? scalarForm(port) : tensorForm(port, index);
}

/** @param {any} port @returns {InputForm} */
function scalarForm(port) {
  const value = el('input', { value: '1', inputmode: 'decimal', size: 8 });
  return {
    element: el('label', { class: 'input-form' }, el('span', { class: 'mono' }, port.name), ` ${port.dtype} `, value),
    read: () => parsed(value.value, port.name)[0],
  };
}

/** @param {any} port @param {number} index @returns {InputForm} */
function tensorForm(port, index) {
  const whole = /^(u?int|bool)/.test(port.dtype);
  const dims = port.dims.map((/** @type {number} */ max, /** @type {number} */ axis) =>
    el('input', { type: 'number', min: 1, max, value: max, readonly: !port.live, 'aria-label': `${port.name}, size of dimension ${axis}, at most ${max}` }));
  const fill = el('select', { 'aria-label': `${port.name}, filled with` },
    el('option', { value: 'random' }, 'random'), el('option', { value: 'zeros' }, 'zeros'), el('option', { value: 'values' }, 'typed values'));
  const seed = el('input', { type: 'number', value: index, min: 0 });
  const below = el('input', { type: 'number', value: 2, min: 1 });
  const values = el('textarea', { rows: 2, class: 'mono', placeholder: '1 2 3 …  or one for all', 'aria-label': `${port.name}, values` });
  const randomRow = el('span', { class: 'row small' }, el('label', {}, 'seed ', seed), whole && port.dtype !== 'bool' && el('label', {}, 'below ', below));
  const update = () => {
    randomRow.hidden = fill.value !== 'random';
    values.hidden = fill.value !== 'values';
  };
  fill.addEventListener('change', update);
  update();
  const element = el('fieldset', { class: 'input-form' },
    el('legend', {}, el('span', { class: 'mono' }, port.name), ` ${shortType(port.dtype)}`, el('span', { class: 'soft' }, port.live ? ` up to ${shape(port.dims)}` : ` ${shape(port.dims)}`)),
    port.live && dims.length > 0 && el('span', { class: 'row dims' }, dims.flatMap((/** @type {any} */ d, /** @type {number} */ i) => (i ? ['×', d] : [d]))),
    el('span', { class: 'row' }, fill, randomRow), values);
  return {
    element,
    read: () => ({
      fill: fill.value,
      shape: dims.map((/** @type {any} */ d) => sized(d, port.name)),
      seed: Number(seed.value) || 0,
      below: Number(below.value) || 2,
      values: fill.value === 'values' ? parsed(values.value, port.name) : undefined,
    }),
  };
}

/** @param {HTMLInputElement} input @param {string} name */
function sized(input, name) {
  const size = Number(input.value);
  if (!Number.isInteger(size) || size < 1 || size > Number(input.max)) {
    input.focus();
    throw new Error(`${name}: size ${input.value || 'missing'}; whole numbers from 1 to ${input.max} are allowed.`);
  }
  return size;
}

/** @param {string} text @param {string} name @returns {number[]} */
function parsed(text, name) {
  const words = text.split(/[\s,;[\]]+/).filter(Boolean);
  const values = words.map(Number);
  const wrong = values.findIndex(Number.isNaN);
  if (wrong >= 0) throw new Error(`${name}: “${words[wrong]}” is not a number.`);
  if (!values.length) throw new Error(`${name}: no values; type numbers with spaces between them.`);
  if (values.length > MAX_TYPED) throw new Error(`${name}: ${values.length} values, at most ${MAX_TYPED} can be typed.`);
  return values;
}
