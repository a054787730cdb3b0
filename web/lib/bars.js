// Cards of bars: one number of several runs, one bar each.
import { bar, createElement, attributesOfMissingValue } from '/lib/dom.js';

export const card = (title, note, rows) =>
  createElement('div', { class: 'panel' }, createElement('h3', {}, title, createElement('span', {}, note)), ...rows);

/** Creates a mark on the track of a bar. from, to: its ends, as fractions of the track's width. */
export function trackMark(className, from, to) {
  const element = createElement('i', { class: className });
  element.style.left = `${100 * from}%`;
  element.style.width = `${100 * (to - from)}%`;
  return element;
}

/** Returns the quantile of sorted values at a share from 0 to 1, interpolated between the two nearest values. */
export function quantile(sorted, share) {
  const position = share * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(position)], sorted[Math.ceil(position)]];
  return below + (above - below) * (position - Math.floor(position));
}

const valueText = (text, reason) =>
  text === null
    ? createElement('span', { class: 'value null', ...attributesOfMissingValue(reason) }, '—')
    : createElement('span', { class: 'value' }, text);

/** Creates a row with a bar. run: index of the run, which chooses the colour; share: filled share of the track; texts: [text or
 * null, reason] after the track; marks: further elements on the track. */
export const barRow = (run, name, share, texts, marks = [], title = null) => createElement('div', { class: `bar run-${run % 4}` },
  createElement('span', { class: 'of', title: name }, name),
  createElement('span', { class: 'track', title }, share === null ? null : bar('fill', share), ...marks),
  ...texts.map(([text, reason]) => valueText(text, reason)));
