// The few things that every page does with the document. Text is always set as text: nothing from the API becomes markup.

/** Make an element: make('td', {class: 'n', title: 'why'}, 'text', child, …); null attributes and children are left out. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const find = (id) => document.getElementById(id);

/** A state as a dot and a word. */
export const stateBadge = (state) => make('span', { class: 'state', 'data-state': state }, state);

/** A cell for a number that may not have been measured: then a dash, with the reason as its title. */
export function numberCell(text, reason) {
  if (text !== null) return make('td', { class: 'n' }, text);
  return make('td', { class: 'n null', title: reason || 'not measured', 'aria-label': `not measured: ${reason || 'no reason given'}` }, '—');
}

/** A length as a share of its parent; set through the object model, which a strict content policy allows. */
export function bar(className, share) {
  const element = make('i', { class: className });
  element.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return element;
}
