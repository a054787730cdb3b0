// The form that profiles a kernel. The API provides kernels, types, sizes, variants and sets.
import { get, post } from '/lib/api.js';
import { byId, createElement } from '/lib/dom.js';
import { submitOnPost } from '/lib/submit.js';

const form = byId('profile-form');
const field = (name) => form.elements[name];
const enteredSizes = new Map(); // by name; kept when the kernel changes
let kernels = [];

const selectedKernel = () => kernels.find((item) => item.kernel === field('kernel').value);

function fillOptions(select, entries) {
  const selected = select.value;
  select.replaceChildren(...entries.map(([value, label]) => createElement('option', { value }, label)));
  if (entries.some(([value]) => value === selected)) select.value = selected;
}

/** The input field of a size, from its schema. */
function sizeField([name, schema]) {
  const input =
    schema.type === 'boolean'
      ? createElement('input', { type: 'checkbox', name: `shape/${name}` })
      : createElement('input', {
          type: 'number',
          name: `shape/${name}`,
          min: schema.minimum,
          max: schema.maximum,
          value: enteredSizes.get(name),
          placeholder: schema.description,
          input: (event) => enteredSizes.set(name, event.target.value),
        });
  return createElement('label', { 'data-field': `shape/${name}`, title: schema.description }, `${name} `, input);
}

function drawKernel() {
  const { summary, dtypes, variants, shape } = selectedKernel();
  byId('profile-summary').textContent = summary;
  fillOptions(field('dtype'), dtypes.map((name) => [name, name]));
  fillOptions(field('variant'), [['', 'all'],
    ...variants.map((item) => [item.name, item.gpu_only ? `${item.name} (GPU)` : item.name])]);
  byId('profile-shape').replaceChildren(...Object.entries(shape.properties).map(sizeField));
}

/** Returns the entered sizes. The daemon reports missing ones. */
function enteredShape() {
  const valueOf = (input) => (input.type === 'checkbox' ? input.checked : Number(input.value));
  return Object.fromEntries([...byId('profile-shape').querySelectorAll('input')].filter(({ value }) => value !== '')
    .map((input) => [input.name.slice('shape/'.length), valueOf(input)]));
}

const enteredFields = (...names) =>
  Object.fromEntries(names.map((name) => [name, field(name).value]).filter(([, value]) => value !== ''));
const buildRequest = () => ({ kind: 'kernel', ...enteredFields('kernel', 'dtype', 'variant', 'set', 'device'),
  shape: enteredShape(), samples: Number(field('samples').value), passes: ['timing', 'activity'] });

async function loadChoices() {
  const [workloads, description] = await Promise.all([get('/workloads'), get('/openapi.json')]);
  kernels = workloads.items;
  const { set } = description.components.schemas.KernelJob.properties;
  fillOptions(field('kernel'), kernels.map(({ kernel }) => [kernel, kernel]));
  fillOptions(field('set'), [['', 'timing only'],
    ...set.enum.filter((name) => name !== 'auto').map((name) => [name, name])]);
  drawKernel();
}

field('kernel').addEventListener('change', drawKernel);
byId('profile').addEventListener('toggle', () => {
  if (kernels.length === 0) loadChoices().catch((problem) => { byId('profile-summary').textContent = problem.message; });
});
submitOnPost(form, () => post('/jobs', buildRequest(form)));
