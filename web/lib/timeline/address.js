// The shown window and the selection in the hash of the page's address, so that a link shows the same picture.

const intervalText = ({ from, to }) => `${Math.round(from)}-${Math.round(to)}`;

function parseInterval(text) {
  const match = /^(\d{1,16})-(\d{1,16})$/.exec(text ?? '');
  const [from, to] = match ? [Number(match[1]), Number(match[2])] : [0, 0];
  return to > from ? { from, to } : null;
}

/** Returns {run, window, selection} of the address; null where it has none. */
export function readAddress() {
  const values = new URLSearchParams(location.hash.slice(1));
  const run = Number(values.get('run'));
  return { run: Number.isSafeInteger(run) && run > 0 ? run : null, window: parseInterval(values.get('window')),
    selection: parseInterval(values.get('selection')) };
}

/** Replaces the hash; adds no entry to the browser's history. */
export function writeAddress(run, window, selection) {
  const values = [`run=${run}`, `window=${intervalText(window)}`, ...(selection ? [`selection=${intervalText(selection)}`] : [])];
  history.replaceState(history.state, '', `${location.pathname}${location.search}#${values.join('&')}`);
}
