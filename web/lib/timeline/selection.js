// Shows the statistics of the selected interval. The API computes them over all events of the interval.
import { get } from '/lib/api.js';
import { byId, createElement, headOf, numberCell } from '/lib/dom.js';
import { shareCell } from '/lib/share_cell.js';
import * as format from '/lib/format.js';
import { laneTitle } from '/lib/timeline/lanes.js';
import { shortName } from '/lib/timeline/names.js';

const LISTED_NAMES = 12;
const DELAY_MS = 120; // after the last change of the interval

const busyShareCell = (ratio) => shareCell({ share_ratio: ratio, reason: 'the selected interval is empty' });

const laneRow = (lane) => createElement('tr', {}, createElement('th', { scope: 'row' }, laneTitle(lane)),
  numberCell(format.us(lane.busy_ns / 1e3)), busyShareCell(lane.ratio), numberCell(format.count(lane.events)));

const nameRow = (item) => createElement('tr', {},
  createElement('th', { scope: 'row', class: 'name', title: item.name }, shortName(item.name)),
  createElement('td', {}, laneTitle(item)), numberCell(format.count(item.events)), numberCell(format.us(item.total_ns / 1e3)),
  numberCell(format.percent(item.ratio)), numberCell(format.us(item.longest_ns / 1e3)));

function fill(reply) {
  byId('selection-lanes').replaceChildren(headOf([['Lane'], ['Busy', 'n'], ['Share', 'n'], ['Events', 'n']]),
    createElement('tbody', {}, ...reply.lanes.map(laneRow)));
  byId('selection-names').replaceChildren(
    headOf([['Event'], ['Lane'], ['Count', 'n'], ['Total', 'n'], ['Share', 'n'], ['Longest', 'n']]),
    createElement('tbody', {}, ...reply.names.slice(0, LISTED_NAMES).map(nameRow)));
  const more = reply.names.length - LISTED_NAMES;
  byId('selection-more').textContent = more > 0
    ? `The ${LISTED_NAMES} names with the most time, of ${reply.names_truncated ? 'more than ' : ''}${reply.names.length}.` : '';
}

export class Selection {
  #timer = 0;
  #latestRequestNumber = 0;

  /** Shows the statistics of an interval {from, to} of a run, in ns; null: hides them. */
  show(run, interval) {
    clearTimeout(this.#timer);
    const requestNumber = ++this.#latestRequestNumber;
    byId('timeline-selection').hidden = interval === null;
    if (interval === null) return;
    const [from, to] = [Math.max(0, Math.floor(interval.from)), Math.max(1, Math.ceil(interval.to))];
    byId('selection-window').textContent = format.interval(from, to);
    this.#timer = setTimeout(async () => {
      byId('timeline-selection').setAttribute('aria-busy', 'true');
      const reply = await get(`/runs/${run}/timeline/statistics?from=${from}&to=${Math.max(to, from + 1)}`)
        .catch((problem) => problem);
      if (requestNumber !== this.#latestRequestNumber) return;
      byId('timeline-selection').removeAttribute('aria-busy');
      byId('selection-more').textContent = reply.lanes ? '' : reply.message ?? reply.reason;
      if (reply.lanes) fill(reply);
    }, DELAY_MS);
  }
}
