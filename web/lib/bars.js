// Cards of bars: one number of several runs, a bar each.
import { bar, make, unmeasured } from '/lib/dom.js';

export const card = (title, note, rows) =>
  make('div', { class: 'panel' }, make('h3', {}, title, make('span', {}, note)), ...rows);

/** On a track, from one share of it to another. */
export function mark(name, from, to) {
  const element = make('i', { class: name });
  element.style.left = `${100 * from}%`;
  element.style.width = `${100 * (to - from)}%`;
  return element;
}

const textOf = (text, reason) => (text === null ? make('span', { class: 'value null', ...unmeasured(reason) }, '—')
  : make('span', { class: 'value' }, text));

/** run: its place among the runs, for its colour; share: of the track that the bar fills; texts: [text or null, reason] behind
 * the track; marks: what else lies on it. */
export const barRow = (run, name, share, texts, marks = [], title = null) => make('div', { class: `bar run-${run % 4}` },
  make('span', { class: 'of', title: name }, name),
  make('span', { class: 'track', title }, share === null ? null : bar('fill', share), ...marks),
  ...texts.map(([text, reason]) => textOf(text, reason)));
