// A cell with a share as a bar and a percentage.
import { bar, createElement, numberCell } from '/lib/dom.js';
import * as format from '/lib/format.js';

/** Creates the cell. If share_ratio is null, it has a dash with the reason. */
export function shareCell({ share_ratio: ratio, reason }) {
  const text = format.percent(ratio);
  if (text === null) return numberCell(null, reason);
  return createElement('td', { class: 'n' },
    createElement('span', { class: 'share', 'aria-hidden': 'true' }, bar('', ratio)), text);
}
