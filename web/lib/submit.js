// Forms that post a job; what the daemon refuses is told at the field that it is about.
import { ApiProblem, post } from '/lib/api.js';
import { make } from '/lib/dom.js';

/** The innermost field whose data-field, a path, the pointer begins with; null where there is none. */
function fieldOf(form, pointer) {
  const path = `${pointer.slice(1)}/`;
  return [...form.querySelectorAll('[data-field]')].filter((field) => path.startsWith(`${field.dataset.field}/`))
    .sort((a, b) => b.dataset.field.length - a.dataset.field.length)[0] ?? null;
}

function forget(form) {
  for (const field of form.querySelectorAll('[data-bad]')) field.removeAttribute('data-bad');
  for (const line of form.querySelectorAll('.problem-line')) line.remove();
}

function tell(form, problem) {
  const field = fieldOf(form, problem.pointer);
  field?.setAttribute('data-bad', '');
  (field ?? form.querySelector('.actions')).append(make('span', { class: 'problem-line', role: 'alert' }, problem.message));
  field?.querySelector('input, select')?.focus();
}

/** requestOf(form): the job that its fields ask for. */
export function submitting(form, requestOf) {
  const button = form.querySelector('button[type="submit"]');
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    forget(form);
    button.disabled = true;
    try {
      const job = await post('/jobs', requestOf(form));
      location.assign(`/job.html?id=${job.id}`);
    } catch (problem) {
      if (!(problem instanceof ApiProblem)) throw problem;
      tell(form, problem);
    } finally {
      button.disabled = false;
    }
  });
}
