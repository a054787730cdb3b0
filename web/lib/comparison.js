// The comparison of runs: a sentence, cards of bars, and missing numbers.
import { byId, createElement } from '/lib/dom.js';
import { timingsOf } from '/lib/timings.js';
import { trainingOf } from '/lib/training.js';

const withoutPass = (runs) => runs.flatMap((run) => run.passes.filter((pass) => pass.state === 'unavailable')
  .map((pass) => ({ text: `${run.variant}, ${pass.pass} pass: ${pass.reason}` })));

/** pairs: the API's comparisons of two runs. */
export function drawComparison(runs, pairs) {
  const found = trainingOf(runs, pairs) ?? timingsOf(runs, pairs[0]);
  byId('comparison').hidden = found === null;
  if (found === null) return;
  byId('verdict').textContent = found.verdict;
  byId('bars').classList.toggle('timings', found.table !== null);
  byId('bars').classList.toggle('named', runs.some((run) => run.variant.length > 4));
  byId('bars').replaceChildren(...found.cards);
  byId('times').hidden = found.table === null;
  byId('time-table').replaceChildren(found.table ?? '');
  byId('reasons').replaceChildren(createElement('li', {}, found.facts.join(' · ')), ...[...found.notes, ...withoutPass(runs)]
    .map(({ text, bad }) => createElement('li', { class: bad ? 'bad' : null }, text)));
}
