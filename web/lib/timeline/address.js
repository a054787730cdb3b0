// The shown window and the selection in the fragment of the page's address, so that a link opens the same picture.

const intervalText = ({ from, to }) => `${Math.round(from)}-${Math.round(to)}`;

function parseInterval(text) {
  const match = /^(\d{1,16})-(\d{1,16})$/.exec(text ?? '');
  const [from, to] = match ? [Number(match[1]), Number(match[2])] : [0, 0];
  return to > from ? { from, to } : null;
}

/** Returns {run, window, selection} from the address; missing ones are null. isTimeline: the address is that of the section, as
 * in "#timeline" and "#timeline&run=3". */
export function readAddress() {
  const values = new URLSearchParams(location.hash.slice(1));
  const run = Number(values.get('run'));
  return { run: Number.isSafeInteger(run) && run > 0 ? run : null, window: parseInterval(values.get('window')),
    selection: parseInterval(values.get('selection')), isTimeline: values.has('timeline') };
}

/** Replaces the fragment without a new entry in the browser's history. */
export function writeAddress(run, window, selection) {
  const values = [`run=${run}`, `window=${intervalText(window)}`, ...(selection ? [`selection=${intervalText(selection)}`] : [])];
  history.replaceState(history.state, '', `${location.pathname}${location.search}#${values.join('&')}`);
}
