// The time classes of a trace with their longest idle intervals, and the findings of the timeline.
import { get } from '/lib/api.js';
import { drawCriticalPath } from '/lib/critical_path.js';
import { byId, createElement, headOf, numberCell } from '/lib/dom.js';
import { drawIndependentLaunches } from '/lib/independent_launches.js';
import { shareCell } from '/lib/share_cell.js';
import { drawLaunchQueue } from '/lib/launch_queue.js';
import * as format from '/lib/format.js';
import { findingItem } from '/lib/sections.js';
import { classNames } from '/lib/time_class_names.js';

const columns = [['Class'], ['Time', 'n'], ['Share', 'n'], ['Intervals', 'n'], ['Longest']];

const us = ({ start_ns: start, end_ns: end }) => format.us((end - start) / 1000);
const describeInterval = (interval) =>
  `${us(interval)} between ${interval.before} and ${interval.after}${interval.call ? `, ${interval.call}` : ''}`;

/** Creates a button that shows the longest interval of a class in the timeline. */
function longestCell([interval], show) {
  if (!interval) return createElement('td');
  const attributes = { class: 'plain', title: describeInterval(interval), click: () => show(interval) };
  return createElement('td', { class: 'words' }, createElement('button', attributes, `${us(interval)} before ${interval.after}`));
}

const classRow = (item, show) => createElement('tr', { 'data-class': item.class },
  createElement('th', { scope: 'row' }, classNames[item.class]), numberCell(format.us(item.time_ns / 1000)),
  shareCell({ share_ratio: item.ratio, reason: 'the window is empty' }),
  item.intervals === null ? createElement('td') : numberCell(format.count(item.intervals)),
  longestCell(item.longest ?? [], show));

/** Returns the columns of a table of phases or ranges. hasRanges: its rows add up ranges. */
const partColumns = (title, hasRanges) => [[title], ...(hasRanges ? [['Ranges', 'n']] : []), ['Time', 'n'], ['Share', 'n'],
  ['Idle', 'n'], ['Critical path', 'n'], ['Most idle time']];

/** Returns the idle classes with a time above zero in a part of the window, the longest first. */
const idleClasses = (part) => Object.entries(part.classes).filter(([name, time]) => name.startsWith('idle_') && time > 0)
  .sort(([, a], [, b]) => b - a);

/** Creates the row of a phase or range. */
function partRow(title, part) {
  const idle = idleClasses(part), [longest] = idle;
  return createElement('tr', {}, createElement('th', { scope: 'row', class: 'name', title }, title),
    ...(part.ranges === undefined ? [] : [part.name === null ? createElement('td') : numberCell(format.count(part.ranges))]),
    numberCell(format.us(part.time_ns / 1000)),
    shareCell({ share_ratio: part.ratio, reason: 'the window is empty' }),
    numberCell(format.us(idle.reduce((sum, [, time]) => sum + time, 0) / 1000)),
    part.critical_path_ns === null ? numberCell(null, 'the critical path is unknown')
      : numberCell(format.us(part.critical_path_ns / 1000)),
    createElement('td', { class: 'words' }, longest ? `${format.us(longest[1] / 1000)}: ${classNames[longest[0]]}` : ''));
}

/** Draws the parts of the window into the table of the element id. titleOf(part): its name. */
function drawParts(id, title, parts, titleOf) {
  byId(id).hidden = parts.length === 0;
  byId(id).querySelector('table').replaceChildren(headOf(partColumns(title, parts[0]?.ranges !== undefined)),
    createElement('tbody', {}, ...parts.filter((part) => part.time_ns > 0).map((part) => partRow(titleOf(part), part))));
}

const note = ({ window, incomplete_reason: incomplete }) => `From the first to the last operation of the device, ${us(window)}.\
${incomplete ? ` Causes of idle time are unknown: ${incomplete}.` : ''}`;

/** Creates a finding with the names that it is about, and a button that shows its longest interval. */
function timelineFinding(finding, show) {
  const item = findingItem(finding), [interval] = finding.intervals;
  if (finding.names.length > 0) item.append(createElement('p', { class: 'quiet' }, finding.names.join(' · ')));
  if (!interval) return item;
  item.append(createElement('button', { class: 'plain', title: describeInterval(interval), click: () => show(interval) },
    `Show the longest interval, ${us(interval)}`));
  return item;
}

/** Draws the classes of a run's trace and returns them with the findings, as the API does. show(interval): shows an interval
 * {start_ns, end_ns, before, after, call} in the timeline. */
export async function drawTimeClasses(run, show) {
  const response = await get(`/runs/${run}/timeline/findings`);
  byId('time-classes').hidden = response.classes === null;
  if (response.classes === null) return response;
  byId('time-classes-note').textContent = note(response);
  byId('time-class-table').replaceChildren(
    headOf(columns),
    createElement('tbody', {}, ...response.classes.filter((item) => item.time_ns > 0).map((item) => classRow(item, show))),
  );
  drawParts('phase-times', 'Phase', response.phases, ({ phase }) => phase ?? 'without a phase');
  drawParts('range-times', 'NVTX range', response.ranges, ({ name }) => name ?? 'outside of ranges');
  drawLaunchQueue(response.queue, response.window);
  drawCriticalPath(response.critical_path, response.window);
  drawIndependentLaunches(response.independent_launches);
  byId('timeline-findings').replaceChildren(
    ...response.findings.map((finding) => timelineFinding(finding, show)));
  return response;
}
