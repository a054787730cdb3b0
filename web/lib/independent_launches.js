// Groups of successive launches that are independent and fill neither the device's blocks nor the DRAM read bandwidth.
import { byId, createElement, headOf, numberCell } from '/lib/dom.js';
import { shareCell } from '/lib/share_cell.js';
import * as format from '/lib/format.js';

const columns = [['Independent launches'], ['Time in all steps', 'n'], ['Blocks', 'n'], ['Blocks that fit', 'n'],
  ['Of the DRAM read bandwidth', 'n']];

const launchRow = (item) => createElement('tr', {},
  createElement('th', { scope: 'row', class: 'name', title: item.kernel }, item.launch),
  numberCell(format.us(item.time_ns / 1000)), numberCell(format.count(item.blocks)),
  numberCell(format.count(item.resident_blocks)), shareCell({ share_ratio: item.memory_ratio }));

/** Creates the rows of a group: its launches, then their sum. */
function groupRows(group) {
  const sum = `in sequence; about ${format.us(group.concurrent_ns / 1000)} concurrently`;
  return [...group.launches.map(launchRow), createElement('tr', {}, createElement('th', { scope: 'row' }, 'Together'),
    numberCell(format.us(group.time_ns / 1000)), createElement('td', { class: 'words', colspan: 3 }, sum))];
}

/** Draws the groups {reason, groups}. Without a group and a reason, nothing is shown. */
export function drawIndependentLaunches({ reason, groups }) {
  byId('independent').hidden = !reason && groups.length === 0;
  byId('independent-note').textContent = reason ? `Unknown: ${reason}.` : '';
  byId('independent-table').parentElement.hidden = !groups?.length;
  byId('independent-table').replaceChildren(...(groups?.length ? [headOf(columns), createElement('tbody', {},
    ...groups.flatMap(groupRows))] : []));
}
