// Forms that send a request to the API. An error appears at the field that it concerns.
import { ApiProblem } from '/lib/api.js';
import { createElement } from '/lib/dom.js';

/** Returns the innermost field whose data-field is a prefix of the JSON pointer, or null. */
function fieldOf(form, pointer) {
  const path = `${pointer.slice(1)}/`;
  return [...form.querySelectorAll('[data-field]')].filter((field) => path.startsWith(`${field.dataset.field}/`))
    .sort((a, b) => b.dataset.field.length - a.dataset.field.length)[0] ?? null;
}

function clearProblems(form) {
  for (const field of form.querySelectorAll('[data-bad]')) field.removeAttribute('data-bad');
  for (const line of form.querySelectorAll('.problem-line')) line.remove();
}

function showProblem(form, problem) {
  const field = fieldOf(form, problem.pointer);
  field?.setAttribute('data-bad', '');
  field?.closest('#job-fields details')?.setAttribute('open', '');
  (field ?? form.querySelector('.actions')).append(
    createElement('span', { class: 'problem-line', role: 'alert' }, problem.message),
  );
  field?.querySelector('input, select, textarea')?.focus();
}

/** When the form is submitted: calls send(form), which returns a promise of the API's reply, and then done(reply). */
export function sendOnSubmit(form, send, done) {
  const button = form.querySelector('button[type="submit"]');
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    clearProblems(form);
    button.disabled = true;
    try {
      done(await send(form));
    } catch (problem) {
      if (!(problem instanceof ApiProblem)) throw problem;
      showProblem(form, problem);
    } finally {
      button.disabled = false;
    }
  });
}

/** When the form is submitted: calls send(form), which returns a promise of the new job, and then opens the job's page. */
export const submitOnPost = (form, send) => sendOnSubmit(form, send, (job) => location.assign(`/job.html?id=${job.id}`));
