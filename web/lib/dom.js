// The few things that every page does with the document. Text is always set as text: nothing from the API becomes markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Make an element: make('td', {class: 'n', title: 'why'}, 'text', child, …); null attributes and children are left out. */
export const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

/** The same of what a drawing consists of: shape('rect', {x: 1, y: 2}). */
export const shape = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

export const find = (id) => document.getElementById(id);

/** A state as a dot and a word. */
export const stateBadge = (state) => make('span', { class: 'state', 'data-state': state }, state);

/** Attributes of what stands for a number that was not measured: a dash that says why when it is pointed at, tapped or
 * focused. */
export const unmeasured = (reason) =>
  ({ title: reason || 'not measured', 'aria-label': `not measured: ${reason || 'no reason given'}`, tabindex: 0 });

/** A cell for a number that may not have been measured. */
export const numberCell = (text, reason) => (text !== null ? make('td', { class: 'n' }, text)
  : make('td', { class: 'n null', ...unmeasured(reason) }, '—'));

// A title is for those who point with a mouse: the reason is also shown below the dash that has the focus.
const why = make('div', { class: 'why', 'aria-hidden': 'true', hidden: '' });
document.body.append(why);

function showWhy() {
  const cell = document.activeElement;
  why.hidden = !cell.matches('.null[title]');
  if (why.hidden) return;
  why.textContent = cell.title;
  const { left, bottom } = cell.getBoundingClientRect();
  why.style.top = `${Math.min(bottom, innerHeight - why.offsetHeight - 4)}px`;
  why.style.left = `${Math.max(8, Math.min(left, innerWidth - why.offsetWidth - 8))}px`;
}
document.addEventListener('focusin', showWhy);
document.addEventListener('focusout', () => { why.hidden = true; });
addEventListener('scroll', showWhy, { capture: true, passive: true });

/** A length as a share of its parent; set through the object model, which a strict content policy allows. */
export function bar(className, share) {
  const element = make('i', { class: className });
  element.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return element;
}
