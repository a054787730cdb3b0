// The explanation of a training comparison: a sentence for each topic, with links to the kernels and phases that it is about.
import { byId, createElement } from '/lib/dom.js';
import * as format from '/lib/format.js';

const titles = { epoch: 'Epoch', speedup: 'Speed-up', limit: 'Limit', arithmetic: 'Arithmetic', memory: 'Memory',
  weights: 'Weights', conversions: 'Conversions', scaling: 'Loss scaling' };

/** Creates the name of a kernel or phase with its time. It is a link to the kernel's report if its counters were collected. */
function kernelReference({ run, launch, phase, kernel, note, time_ms: time }) {
  const text = `${phase ?? launch}${time === null ? '' : ` ${format.ms(time)}`}`;
  const title = note === null ? {} : { title: note };
  return kernel === null ? createElement('span', title, text)
    : createElement('a', { href: `/report.html?run=${run}&kernel=${kernel}`, ...title }, text);
}

const sentenceItem = ({ topic, text, reason, links }) => createElement('li', { 'data-topic': topic },
  createElement('strong', {}, titles[topic]), ` ${text ?? `— ${reason}`}`,
  ...links.some(({ kernel }) => kernel !== null) ? [createElement('span', { class: 'quiet shown-by' }, 'See ',
    ...links.flatMap((link, i) => (i > 0 ? [', ', kernelReference(link)] : [kernelReference(link)])))] : []);

/** Draws the explanations. pairs: the API's comparisons of two runs each; only those of training jobs have explanations. The
 * epoch of the first pair's baseline is explained only once. */
export function drawExplanation(pairs) {
  const sentences = pairs.flatMap((pair, i) => (pair.explanation ?? [])
    .filter(({ topic, run }) => i === 0 || topic !== 'epoch' || run !== pairs[0].baseline?.run));
  byId('explanation').hidden = sentences.length === 0;
  byId('explanation').querySelector('ul').replaceChildren(...sentences.map(sentenceItem));
}
