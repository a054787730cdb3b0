// Posted code line by line, with what the compiler said of a line or the counters counted there.
import { get } from '/lib/api.js';
import { bar, find, make } from '/lib/dom.js';
import * as show from '/lib/format.js';

const FILE = 'code.cu'; // as the compiler is told
const SAID = /^code\.cu\((\d+)\): (?:error|warning|remark)/;

/** The text of a job of the kind source; null where a binary was posted. */
export const postedCode = async (job) => (await get(`/jobs/${job}/source`)).code ?? null;

/** The line of the posted code that an instruction is of; null where it is of another file or of none. */
export const lineOf = ({ file, line }) => (file?.split('/').pop() === FILE ? line : null);

const lineId = (line) => `line-${line}`;

/** A number with a bar: its share of the largest. */
function sumCell(sums, line) {
  const sum = sums.get(line);
  if (sum === undefined) return make('td', {});
  const share = bar('', sum / Math.max(...sums.values()));
  return make('td', { class: 'n' }, make('span', { class: 'share', 'aria-hidden': 'true' }, share), show.plain(sum));
}

/** columns: [{label, title, sums: Map of line -> number}]; said: Map of line -> what the compiler said; pick: called with a line
 * that was chosen, where lines can be. */
export function codeTable(code, { columns = [], said = new Map(), pick = null }) {
  const number = (line) => (pick === null ? String(line)
    : make('button', { type: 'button', 'aria-label': `Line ${line}`, click: () => pick(line) }, String(line)));
  const picked = (line) => (event) => { if (!event.target.closest('button')) pick(line); };
  const row = (text, line) => make('tr', { id: lineId(line), 'data-line': line, class: said.has(line) ? 'said' : null,
    click: pick && picked(line) },
  make('th', { scope: 'row', class: 'n' }, number(line)), ...columns.map(({ sums }) => sumCell(sums, line)),
  make('td', {}, make('code', {}, text), ...(said.get(line) ?? []).map((note) => make('span', { class: 'note' }, note))));
  return make('div', { class: 'scroll code', tabindex: 0, role: 'group', 'aria-label': 'Source' }, make('table', {},
    make('thead', {}, make('tr', {}, make('th', { scope: 'col', class: 'n' }, 'Line'),
      ...columns.map(({ label, title }) => make('th', { scope: 'col', class: 'n', title }, label)),
      make('th', { scope: 'col' }, FILE))),
    make('tbody', {}, ...code.replace(/\n$/, '').split('\n').map((text, index) => row(text, index + 1)))));
}

/* --- on the page of a job -------------------------------------------------------------------------------------------- */

/** Runs by what their compiler said: the same words once. */
function logsOf(runs) {
  const logs = new Map();
  for (const run of runs.filter(({ log }) => log)) logs.set(run.log, [...(logs.get(run.log) ?? []), run.variant]);
  return logs;
}

function saidOf(logs) {
  const said = new Map();
  for (const text of new Set([...logs].flatMap((log) => log.split('\n')))) {
    const line = Number(SAID.exec(text)?.[1]);
    if (line > 0) said.set(line, [...(said.get(line) ?? []), text.replace(/^[^:]*: /, '')]);
  }
  return said;
}

/** A line of a log; where it names one of the code it leads there. */
function logLine(text) {
  const line = SAID.exec(text)?.[1];
  if (line === undefined) return `${text}\n`;
  const [place] = text.split(':');
  return make('span', {}, make('a', { href: `#${lineId(line)}` }, place), `${text.slice(place.length)}\n`);
}

const logFigure = ([log, variants]) => make('figure', { class: 'panel log' },
  make('figcaption', {}, `What the compiler said, ${variants.join(', ')}`),
  make('pre', { tabindex: 0 }, ...log.trimEnd().split('\n').map(logLine)));

let drawn = null; // what is seen, by the job's runs

/** The posted code of a job and its compiler's logs; drawn again only when there are others. */
export async function drawSource(job) {
  if (job.kind !== 'source') return;
  const logs = logsOf(job.runs);
  if (drawn === JSON.stringify([...logs])) return;
  const code = await postedCode(job.id);
  drawn = JSON.stringify([...logs]);
  find('source').hidden = false;
  find('logs').replaceChildren(...[...logs].map(logFigure));
  find('code').replaceChildren(code === null ? make('p', { class: 'quiet' }, 'A binary was posted: there is no text.')
    : codeTable(code, { said: saidOf(logs.keys()) }));
}
