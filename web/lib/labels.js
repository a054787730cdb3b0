// The dialog that changes the name and the tags of a job.
import { patch } from '/lib/api.js';
import { createElement } from '/lib/dom.js';
import { sendOnSubmit } from '/lib/submit.js';

const field = (name, label, help, value, attributes = {}) => createElement('div', { class: 'field', 'data-field': name },
  createElement('label', {}, createElement('span', {}, label),
    createElement('input', { type: 'text', name, value, autocomplete: 'off', ...attributes })),
  createElement('span', { class: 'help' }, help));

/** Opens the dialog. job: as GET /jobs/{id} returns it. saved(job) gets the changed job. */
export function openLabels({ id, request }, saved) {
  const cancel = createElement('button', { type: 'button', class: 'plain', click: () => dialog.close() }, 'Cancel');
  const form = createElement('form', { novalidate: '' }, createElement('h2', {}, `Name and tags of job ${id}`),
    field('name', 'Name', 'at most 80 bytes', request.name ?? '', { autofocus: '' }),
    field('tags', 'Tags', 'letters, digits, _ . and -, separated by commas', (request.tags ?? []).join(', ')),
    createElement('div', { class: 'actions' }, createElement('button', { type: 'submit' }, 'Save'), cancel));
  const dialog = createElement('dialog', { 'aria-label': 'Name and tags', close: () => dialog.remove() }, form);
  const splitTags = (text) => text.split(/[\s,]+/).filter(Boolean);
  sendOnSubmit(form, () => patch(`/jobs/${id}`,
    { name: form.elements.name.value.trim(), tags: splitTags(form.elements.tags.value) }), (job) => {
    dialog.close();
    saved(job);
  });
  document.body.append(dialog);
  dialog.showModal();
}
