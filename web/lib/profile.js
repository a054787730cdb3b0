// The form that profiles a kernel. The API provides kernels, types, sizes, variants and sets.
import { get } from '/lib/api.js';
import { byId, createElement } from '/lib/dom.js';
import { submitOnPost } from '/lib/submit.js';

const form = byId('profile-form');
const field = (name) => form.elements[name];
const sizes = new Map(); // entered sizes by name, kept when the kernel changes
let kernels = [];

const chosen = () => kernels.find((one) => one.kernel === field('kernel').value);

function choices(select, entries) {
  const before = select.value;
  select.replaceChildren(...entries.map(([value, label]) => createElement('option', { value }, label)));
  if (entries.some(([value]) => value === before)) select.value = before;
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
          value: sizes.get(name),
          placeholder: schema.description,
          input: (event) => sizes.set(name, event.target.value),
        });
  return createElement('label', { 'data-field': `shape/${name}`, title: schema.description }, `${name} `, input);
}

function drawKernel() {
  const { summary, dtypes, variants, shape } = chosen();
  byId('profile-summary').textContent = summary;
  choices(field('dtype'), dtypes.map((name) => [name, name]));
  choices(field('variant'), [['', 'all'],
    ...variants.map((one) => [one.name, one.gpu_only ? `${one.name} (GPU)` : one.name])]);
  byId('profile-shape').replaceChildren(...Object.entries(shape.properties).map(sizeField));
}

/** Returns the entered sizes. The daemon reports missing ones. */
function shapeOf() {
  const valueOf = (input) => (input.type === 'checkbox' ? input.checked : Number(input.value));
  return Object.fromEntries([...byId('profile-shape').querySelectorAll('input')].filter(({ value }) => value !== '')
    .map((input) => [input.name.slice('shape/'.length), valueOf(input)]));
}

const given = (...names) =>
  Object.fromEntries(names.map((name) => [name, field(name).value]).filter(([, value]) => value !== ''));
const buildRequest = () => ({ kind: 'kernel', ...given('kernel', 'dtype', 'variant', 'set', 'device'), shape: shapeOf(),
  samples: Number(field('samples').value), passes: ['timing', 'activity'] });

async function begin() {
  const [workloads, description] = await Promise.all([get('/workloads'), get('/openapi.json')]);
  kernels = workloads.items;
  const { set } = description.components.schemas.KernelJob.properties;
  choices(field('kernel'), kernels.map(({ kernel }) => [kernel, kernel]));
  choices(field('set'), [['', 'timing only'],
    ...set.enum.filter((name) => name !== 'auto').map((name) => [name, name])]);
  drawKernel();
}

field('kernel').addEventListener('change', drawKernel);
byId('profile').addEventListener('toggle', () => {
  if (kernels.length === 0) begin().catch((problem) => { byId('profile-summary').textContent = problem.message; });
});
submitOnPost(form, buildRequest);
