// DOM helpers. Text from the API is always set as text, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

function configure(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Creates an element: createElement('td', {class: 'n', title: 'why'}, 'text', child, …). Skips null attributes and children. */
export const createElement = (tag, attributes = {}, ...children) => configure(document.createElement(tag), attributes, children);

/** Creates an SVG element: createSvgElement('rect', {x: 1, y: 2}). */
export const createSvgElement = (tag, attributes = {}, ...children) =>
  configure(document.createElementNS(SVG, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

/** Creates a coloured dot with the name of a state. */
export const stateBadge = (state) => createElement('span', { class: 'state', 'data-state': state }, state);

/** Returns the attributes of an element that replaces a missing number: the reason as title and label. */
export const attributesOfMissingValue = (reason) =>
  ({ title: reason || 'not measured', 'aria-label': `not measured: ${reason || 'no reason given'}`, tabindex: 0 });

/** Creates a cell with a number, or with a dash and the reason why the number is missing. */
export const numberCell = (text, reason) => (text !== null ? createElement('td', { class: 'n' }, text)
  : createElement('td', { class: 'n null', ...attributesOfMissingValue(reason) }, '—'));

/** Creates the head of a table. columns: [label, class]. */
export const headOf = (columns) => createElement('thead', {}, createElement('tr', {}, ...columns.map(([label, name]) =>
  createElement('th', { scope: 'col', class: name }, label))));

// Only a mouse can show a title, so the reason also appears below a dash that has the focus.
const reasonBox = createElement('div', { class: 'why', 'aria-hidden': 'true', hidden: '' });
document.body.append(reasonBox);

function showReason() {
  const cell = document.activeElement;
  reasonBox.hidden = !cell.matches('.null[title]');
  if (reasonBox.hidden) return;
  reasonBox.textContent = cell.title;
  const { left, bottom } = cell.getBoundingClientRect();
  reasonBox.style.top = `${Math.min(bottom, innerHeight - reasonBox.offsetHeight - 4)}px`;
  reasonBox.style.left = `${Math.max(8, Math.min(left, innerWidth - reasonBox.offsetWidth - 8))}px`;
}
document.addEventListener('focusin', showReason);
document.addEventListener('focusout', () => { reasonBox.hidden = true; });
addEventListener('scroll', showReason, { capture: true, passive: true });

/** Creates a bar whose width is a share of its parent. Sets the style by script, because the content security policy forbids
 * style attributes. */
export function bar(className, share) {
  const element = createElement('i', { class: className });
  element.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return element;
}
