// The box for an error at the head of a page, with what to do next.
import { byId, createElement } from '/lib/dom.js';

const link = (href, text) => createElement('a', { href }, text);

/** By status of the API: a function that returns nodes, which tell what the user can do. Status 0: the daemon did not respond. */
const nextSteps = {
  0: (isRetried) => (isRetried ? ['The page asks again until it does.']
    : ['Start it with ', createElement('code', {}, 'rooflined'), ', then reload the page.']),
  404: () => ['Choose from the ', link('/', 'jobs'), ' and their runs, or from the ', link('/suites.html', 'suites'), '.'],
  429: () => ['Wait until a job ends, or cancel one in the ', link('/?state=queued', 'queue'), '.'],
};

/** Shows an ApiProblem, or {title, message, detail}; null: hides the box. detail: a line in small print; isRetried: the page
 * repeats the request. */
export function drawProblem(problem, isRetried = false) {
  byId('problem').hidden = problem === null;
  if (problem === null) return;
  const steps = nextSteps[problem.status]?.(isRetried);
  byId('problem').replaceChildren(createElement('strong', {}, problem.title || 'The page failed'),
    createElement('p', {}, problem.message), ...(steps ? [createElement('p', {}, ...steps)] : []),
    ...(problem.detail ? [createElement('p', { class: 'quiet mono' }, problem.detail)] : []));
}

/** Runs an action, and shows its error. */
export const showErrors = (action) => action().catch((problem) => {
  drawProblem(problem);
  if (problem.status === undefined) throw problem;
});
