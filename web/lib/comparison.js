// The comparison of runs, whatever they are: a sentence, cards of bars, and what is missing.
import { find, make } from '/lib/dom.js';
import { timingsOf } from '/lib/timings.js';
import { trainingOf } from '/lib/training.js';

const withoutPass = (runs) => runs.flatMap((run) => run.passes.filter((pass) => pass.state === 'unavailable')
  .map((pass) => ({ text: `${run.variant}, ${pass.pass} pass: ${pass.reason}` })));

/** pairs: as the API compares two of the runs. */
export function drawComparison(runs, pairs) {
  const found = trainingOf(runs, pairs) ?? timingsOf(runs, pairs[0]);
  find('comparison').hidden = found === null;
  if (found === null) return;
  find('verdict').textContent = found.verdict;
  find('bars').classList.toggle('timings', found.table !== null);
  find('bars').classList.toggle('named', runs.some((run) => run.variant.length > 4));
  find('bars').replaceChildren(...found.cards);
  find('times').hidden = found.table === null;
  find('time-table').replaceChildren(found.table ?? '');
  find('reasons').replaceChildren(make('li', {}, found.facts.join(' · ')), ...[...found.notes, ...withoutPass(runs)]
    .map(({ text, bad }) => make('li', { class: bad ? 'bad' : null }, text)));
}
