// The list of suites with their last verdicts.
import { get } from '/lib/api.js';
import { byId, createElement, numberCell } from '/lib/dom.js';
import * as format from '/lib/format.js';
import { showErrors } from '/lib/problem.js';
import { tableOf } from '/lib/sections.js';
import { describeDuration, verdictBadge } from '/lib/suites.js';

const suiteUrl = (name) => `/suite.html?name=${encodeURIComponent(name)}`;
const lastVerdict = (run) => (run
  ? createElement('a', { class: 'plain', href: `/suite-run.html?id=${run.id}` }, verdictBadge(run))
  : createElement('span', { class: 'quiet' }, 'no runs'));
const describeProblem = ({ file, line, pointer, message }) =>
  `${file}${line ? `:${line}` : ''}: ${message}${pointer ? ` (at ${pointer})` : ''}`;

const columns = [
  { label: 'Suite', cell: (suite) => createElement('th', { scope: 'row' },
    suite.problem ? suite.name : createElement('a', { href: suiteUrl(suite.name) }, suite.name)) },
  { label: 'Summary', cell: (suite) => createElement('td', { class: 'words' },
    suite.problem ? createElement('span', { class: 'problem-line' }, describeProblem(suite.problem)) : suite.summary) },
  { label: 'Last verdict', cell: (suite) => createElement('td', {}, suite.problem ? null : lastVerdict(suite.last_run)) },
  { label: 'When', cell: (suite) => createElement('td', {}, format.dateTime(suite.last_run?.finished_at) ?? '') },
  { label: 'Device', cell: (suite) => createElement('td', { class: 'mono' }, suite.device ?? '') },
  { label: 'Blocks', number: true, cell: (suite) => numberCell(format.count(suite.blocks), 'the file is not valid') },
  { label: 'Duration', number: true, cell: (suite) => numberCell(describeDuration(suite), 'no device can run it') },
];

await showErrors(async () => {
  const { items } = await get('/suites');
  byId('empty').hidden = items.length > 0;
  if (items.length > 0) byId('suites').replaceChildren(tableOf('Suites', columns, items));
  document.body.dataset.loaded = 'suites';
});
