// Cards of bars: one number of several runs, one bar each.
import { bar, createElement, missingAttributes } from '/lib/dom.js';

export const card = (title, note, rows) =>
  createElement('div', { class: 'panel' }, createElement('h3', {}, title, createElement('span', {}, note)), ...rows);

/** A mark on a bar's track, between two shares of its width. */
export function mark(name, from, to) {
  const element = createElement('i', { class: name });
  element.style.left = `${100 * from}%`;
  element.style.width = `${100 * (to - from)}%`;
  return element;
}

const textOf = (text, reason) =>
  text === null
    ? createElement('span', { class: 'value null', ...missingAttributes(reason) }, '—')
    : createElement('span', { class: 'value' }, text);

/** run: index of the run, for its colour; share: filled share of the track; texts: [text or null, reason] behind the track;
 * marks: further elements on the track. */
export const barRow = (run, name, share, texts, marks = [], title = null) => createElement('div', { class: `bar run-${run % 4}` },
  createElement('span', { class: 'of', title: name }, name),
  createElement('span', { class: 'track', title }, share === null ? null : bar('fill', share), ...marks),
  ...texts.map(([text, reason]) => textOf(text, reason)));
