// The events of the window as a table, for users who can't see the picture.
import { byId, createElement, headOf, numberCell } from '/lib/dom.js';
import * as format from '/lib/format.js';
import { laneTitle } from '/lib/timeline/lanes.js';
import { shortName } from '/lib/timeline/names.js';
import { eventOf } from '/lib/timeline/tooltip.js';

const MAX_ROWS = 200;

/** Returns the items of a reply that overlap the window, in order of start. If there are more than MAX_ROWS, returns the
 * longest. */
export function itemsOf(reply, { from, to }) {
  const items = reply.lanes.flatMap((lane) => {
    const inside = [];
    for (let i = 0; i < lane.count && lane.start[i] < to; i += 1)
      if (lane.end[i] > from || lane.start[i] >= from) inside.push(eventOf(reply, lane, i));
    return inside;
  });
  const count = items.length;
  if (count > MAX_ROWS) items.sort((a, b) => b.to - b.from - (a.to - a.from)).length = MAX_ROWS;
  return { items: items.sort((a, b) => a.from - b.from || b.to - a.to), count };
}

function rowOf(item, show) {
  const longest = shortName(item.name);
  const name = item.events > 1 ? `${format.count(item.events)} events, the longest: ${longest}` : longest;
  return createElement('tr', {},
    createElement('th', { scope: 'row', class: 'name' },
      createElement('button', { class: 'plain', title: item.name, click: () => show(item) }, name)),
    createElement('td', {}, laneTitle(item.lane)), numberCell(format.us(item.from / 1e3)),
    numberCell(format.us((item.to - item.from) / 1e3)), numberCell(format.us(item.busy / 1e3)));
}

/** Fills the table if it is open. show(item): shows an item in the picture. */
export function drawEventTable(reply, window, show) {
  const { items, count } = itemsOf(reply, window);
  byId('timeline-events-note').textContent = count > items.length
    ? `The ${MAX_ROWS} longest of ${format.count(count)} items of the window.` : `${format.count(count)} items of the window.`;
  byId('timeline-event-table').replaceChildren(
    headOf([['Event'], ['Lane'], ['Start', 'n'], ['Duration', 'n'], ['Busy', 'n']]),
    createElement('tbody', {}, ...items.map((item) => rowOf(item, show))));
}
