// The comparison of runs: a sentence, cards of bars, and missing numbers.
import { byId, createElement } from '/lib/dom.js';
import { drawExplanation } from '/lib/explanation.js';
import { timingsOf } from '/lib/timings.js';
import { trainingOf } from '/lib/training.js';

const unavailablePassNotes = (runs) => runs.flatMap((run) => run.passes.filter((pass) => pass.state === 'unavailable')
  .map((pass) => ({ text: `${run.variant}, ${pass.pass} pass: ${pass.reason}` })));

/** Draws the comparison of a job's runs. pairs: the API's comparisons of two runs each; subject: what the headline names besides
 * the variant; null: nothing. */
export function drawComparison(runs, pairs, subject = null) {
  const content = trainingOf(runs, pairs) ?? timingsOf(runs, pairs[0], subject);
  byId('comparison').hidden = content === null;
  if (content === null) return;
  byId('verdict').textContent = content.verdict;
  byId('bars').classList.toggle('timings', content.table !== null);
  byId('bars').classList.toggle('named', runs.some((run) => run.variant.length > 4));
  byId('bars').replaceChildren(...content.cards);
  drawExplanation(pairs);
  byId('times').hidden = content.table === null;
  byId('time-table').replaceChildren(content.table ?? '');
  const notes = [...content.notes, ...unavailablePassNotes(runs)];
  byId('reasons').replaceChildren(createElement('li', {}, content.properties.join(' · ')),
    ...notes.map(({ text, bad }) => createElement('li', { class: bad ? 'bad' : null }, text)));
}
