// The critical path of a trace: its parts, and the operations on it.
import { byId, createElement, headOf, numberCell } from '/lib/dom.js';
import { shareCell } from '/lib/share_cell.js';
import * as format from '/lib/format.js';

const partNames = { kernels: 'Kernels', copies: 'Copies', launches: 'Launch calls', host_work: 'Host work between launches',
  synchronization: 'Return from a synchronising call', device_latency: 'The device starts queued work',
  unknown: 'Cause unknown' };
const columns = [['On the critical path'], ['Time', 'n'], ['Share', 'n'], ['Operations', 'n']];
const MAX_NAMES = 8;

function row(name, time, ratio, count, isInner) {
  const head = createElement('th', { scope: 'row', class: 'name', title: name }, name);
  if (isInner) head.style.paddingInlineStart = 'calc(14px + 1em)';
  return createElement('tr', {}, head, numberCell(format.us(time / 1000)),
    shareCell({ share_ratio: ratio, reason: 'the window is empty' }),
    count === null ? createElement('td') : numberCell(format.count(count)));
}

const nameRows = (names) => names.slice(0, MAX_NAMES).map((item) => row(item.name, item.time_ns, item.ratio, item.count, true));

function describe(path) {
  if (path.reason) return `Unknown: ${path.reason}.`;
  const inferred = path.inferred_operations;
  return `The chain of operations and waits that determines when the last operation ends. ${inferred === 0 ? ''
    : `${format.count(inferred)} of ${format.count(path.operations)} operations are ordered by time alone, because a trace \
has no edges of graphs.`}`;
}

/** Returns the part of the path to which an operation belongs. Only names of copies and memsets match the pattern. */
const partOf = ({ name }) => (/^(memcpy|memset)\b/i.test(name) ? 'copies' : 'kernels');

/** Draws the critical path of a window {start_ns, end_ns}. The operations are listed below their parts. */
export function drawCriticalPath(path, window) {
  const duration = window.end_ns - window.start_ns;
  const parts = Object.entries(path.parts ?? {}).filter(([, time]) => time > 0);
  const rowsOf = ([name, time]) => [row(partNames[name], time, time / duration, null),
    ...nameRows(path.names.filter((item) => partOf(item) === name))];
  byId('path').hidden = duration === 0;
  byId('path-note').textContent = describe(path);
  byId('path-table').replaceChildren(...(parts.length === 0 ? [] : [headOf(columns), createElement('tbody', {},
    ...parts.flatMap(rowsOf))]));
}
