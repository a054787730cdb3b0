// Posted code with the compiler's messages and the counts of each line.
import { get } from '/lib/api.js';
import { byId, createElement } from '/lib/dom.js';
import * as format from '/lib/format.js';

export const CODE_FILE = 'code.cu'; // the compiler's name for posted code
const MESSAGE = /^code\.cu\((\d+)\): (?:error|warning|remark)/;

/** Returns the text of a source job, or null if a binary was posted. */
export const postedCode = async (job) => (await get(`/jobs/${job}/source`)).code ?? null;

/** Returns the line of the posted code of an instruction, or null. */
export const lineOf = ({ file, line }) => (file?.split('/').pop() === CODE_FILE ? line : null);

const lineId = (line) => `line-${line}`;

/** Creates the cell of a line in a column of sums. isHeat: the colour of the cell shows its share of the largest sum. */
function sumCell({ sums, isHeat }, line) {
  const sum = sums.get(line);
  if (sum === undefined) return createElement('td', {});
  const cell = createElement('td', { class: isHeat ? 'n heat' : 'n', title: format.number(sum) }, format.compact(sum));
  if (isHeat) cell.style.setProperty('--heat', (sum / Math.max(...sums.values())).toFixed(3));
  return cell;
}

/** Creates a table of code lines. columns: [{label, title, sums: Map of line -> number, isHeat}]; messages: Map of line ->
 * compiler messages; selectLine(line): called when the user selects a line; null: lines cannot be selected. */
export function codeTable(code, { columns = [], messages = new Map(), selectLine = null }) {
  const number = (line) => (selectLine === null ? String(line)
    : createElement('button', { type: 'button', 'aria-label': `Line ${line}`, click: () => selectLine(line) }, String(line)));
  const selectOnClick = (line) => (event) => { if (!event.target.closest('button')) selectLine(line); };
  const row = (text, line) =>
    createElement(
      'tr',
      { id: lineId(line), 'data-line': line, class: messages.has(line) ? 'has-message' : null,
        click: selectLine && selectOnClick(line) },
      createElement('th', { scope: 'row', class: 'n' }, number(line)),
      ...columns.map((column) => sumCell(column, line)),
      createElement(
        'td',
        {},
        createElement('code', {}, text),
        ...(messages.get(line) ?? []).map((note) => createElement('span', { class: 'note' }, note)),
      ),
    );
  return createElement(
    'div',
    { class: 'scroll code', tabindex: 0, role: 'group', 'aria-label': 'Source' },
    createElement(
      'table',
      {},
      createElement(
        'thead',
        {},
        createElement(
          'tr',
          {},
          createElement('th', { scope: 'col', class: 'n' }, 'Line'),
          ...columns.map(({ label, title }) => createElement('th', { scope: 'col', class: 'n', title }, label)),
          createElement('th', { scope: 'col' }, CODE_FILE),
        ),
      ),
      createElement(
        'tbody',
        {},
        ...code
          .replace(/\n$/, '')
          .split('\n')
          .map((text, index) => row(text, index + 1)),
      ),
    ),
  );
}

/* --- the section of the job page -------------------------------------------------------------------------------------------- */

/** Groups runs by equal compiler logs. */
function logsOf(runs) {
  const logs = new Map();
  for (const run of runs.filter(({ log }) => log)) logs.set(run.log, [...(logs.get(run.log) ?? []), run.variant]);
  return logs;
}

function messagesOf(logs) {
  const messages = new Map();
  for (const text of new Set([...logs].flatMap((log) => log.split('\n')))) {
    const line = Number(MESSAGE.exec(text)?.[1]);
    if (line > 0) messages.set(line, [...(messages.get(line) ?? []), text.replace(/^[^:]*: /, '')]);
  }
  return messages;
}

/** Creates a line of a log, with a link to the source line that it names. */
function logLine(text) {
  const line = MESSAGE.exec(text)?.[1];
  if (line === undefined) return `${text}\n`;
  const [position] = text.split(':');
  return createElement('span', {}, createElement('a', { href: `#${lineId(line)}` }, position),
    `${text.slice(position.length)}\n`);
}

const logFigure = ([log, variants]) => createElement('figure', { class: 'panel log' },
  createElement('figcaption', {}, `Compiler log (${variants.join(', ')})`),
  createElement('pre', { tabindex: 0 }, ...log.trimEnd().split('\n').map(logLine)));

let drawnLogs = null; // as JSON

/** Draws the posted code of a job and its compiler logs, if the logs changed. */
export async function drawSource(job) {
  if (job.kind !== 'source') return;
  const logs = logsOf(job.runs);
  if (drawnLogs === JSON.stringify([...logs])) return;
  const code = await postedCode(job.id);
  drawnLogs = JSON.stringify([...logs]);
  byId('source').hidden = false;
  byId('logs').replaceChildren(...[...logs].map(logFigure));
  byId('code').replaceChildren(
    code === null
      ? createElement('p', { class: 'quiet' }, 'Source unavailable (submitted as binary)')
      : codeTable(code, { messages: messagesOf(logs.keys()) }),
  );
}
