// The event or mark under the pointer, and the tooltip that describes it.
import { byId, createElement } from '/lib/dom.js';
import * as format from '/lib/format.js';
import { laneTitle, MARKS_HEIGHT, visitBars } from '/lib/timeline/lanes.js';

/** Returns the event of a reply at a point of the picture, or null. */
export function eventAt(layout, window, reply, x, y) {
  const box = layout.boxAt(y);
  const lane = box && reply.lanes.find((one) => one.key === box.key);
  if (!lane || x < layout.gutter) return null;
  const depth = Math.floor((y - box.top) / box.barHeight);
  let found = null, nearest = 3; // px; a point may miss a thin bar by less than this
  visitBars(lane, window, layout.toX(window), (i, left, right) => {
    const missed = Math.max(left - x, x - right, 0);
    if (lane.depth[i] === depth && missed < nearest) [found, nearest] = [i, missed];
  });
  return found === null ? null : eventOf(reply, lane, found);
}

/** Converts an item of a lane to an event of the picture. */
export const eventOf = (reply, lane, i) => ({ key: lane.key, lane, from: lane.start[i], to: lane.end[i], depth: lane.depth[i],
  events: lane.events[i], busy: lane.busy[i], name: reply.names[lane.name[i]] });

/** Returns the mark at a point of the picture, or null. */
export function markAt(layout, window, marks, x, y) {
  if (!layout.hasMarks || y < layout.marksTop || y >= layout.marksTop + MARKS_HEIGHT) return null;
  const toX = layout.toX(window);
  return marks.find((mark) => toX(mark.from) - 2 <= x && Math.max(toX(mark.to), toX(mark.from) + 2) + 2 >= x) ?? null;
}

/** Describes an event. details(name): further text about its name, or ''. */
export function describeEvent(event, details = () => '') {
  const interval = format.interval(event.from, event.to);
  if (event.events > 1)
    return [`${format.count(event.events)} events`, `the longest: ${event.name}`, laneTitle(event.lane),
      `${interval}, busy ${format.us(event.busy / 1e3)}`];
  return [event.name, details(event.name), laneTitle(event.lane), interval].filter(Boolean);
}

export function describeMark({ title, from, to, interval }) {
  return [title, format.interval(from, to),
    `between ${interval.before} and ${interval.after}`, interval.call ?? ''].filter(Boolean);
}

/** Shows lines next to a point of the picture; no lines: hides the tooltip. */
export function showTooltip(lines, x, y, width) {
  const tooltip = byId('timeline-tooltip');
  tooltip.hidden = lines.length === 0;
  if (tooltip.hidden) return;
  const [first, ...others] = lines;
  tooltip.replaceChildren(createElement('strong', {}, first), ...others.map((line) => createElement('span', {}, line)));
  const left = Math.min(x + 14, width - tooltip.offsetWidth - 4);
  tooltip.style.left = `${Math.max(4, left)}px`;
  tooltip.style.top = `${y + 18}px`;
}
