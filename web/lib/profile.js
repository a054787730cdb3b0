// The form that asks for the profile of a kernel: kernels, types, sizes, variants and sets are those that the API lists.
import { get } from '/lib/api.js';
import { find, make } from '/lib/dom.js';
import { submitting } from '/lib/submit.js';

const form = find('profile-form');
const field = (name) => form.elements[name];
const sizes = new Map(); // what was said of a size, by its name: kernels share names
let kernels = [];

const chosen = () => kernels.find((one) => one.kernel === field('kernel').value);

function choices(select, entries) {
  const before = select.value;
  select.replaceChildren(...entries.map(([value, label]) => make('option', { value }, label)));
  if (entries.some(([value]) => value === before)) select.value = before;
}

/** A size of the shape, as its schema says. */
function sizeField([name, schema]) {
  const input = schema.type === 'boolean' ? make('input', { type: 'checkbox', name: `shape/${name}` })
    : make('input', { type: 'number', name: `shape/${name}`, min: schema.minimum, max: schema.maximum, value: sizes.get(name),
      placeholder: schema.description, input: (event) => sizes.set(name, event.target.value) });
  return make('label', { 'data-field': `shape/${name}`, title: schema.description }, `${name} `, input);
}

function drawKernel() {
  const { summary, dtypes, variants, shape } = chosen();
  find('profile-summary').textContent = summary;
  choices(field('dtype'), dtypes.map((name) => [name, name]));
  choices(field('variant'), [['', 'all'],
    ...variants.map((one) => [one.name, one.gpu_only ? `${one.name} (GPU)` : one.name])]);
  find('profile-shape').replaceChildren(...Object.entries(shape.properties).map(sizeField));
}

/** What is left empty is not sent: the daemon says what it needs. */
function shapeOf() {
  const valueOf = (input) => (input.type === 'checkbox' ? input.checked : Number(input.value));
  return Object.fromEntries([...find('profile-shape').querySelectorAll('input')].filter(({ value }) => value !== '')
    .map((input) => [input.name.slice('shape/'.length), valueOf(input)]));
}

const given = (...names) =>
  Object.fromEntries(names.map((name) => [name, field(name).value]).filter(([, value]) => value !== ''));
const requestOf = () => ({ kind: 'kernel', ...given('kernel', 'dtype', 'variant', 'set', 'device'), shape: shapeOf(),
  samples: Number(field('samples').value), passes: ['timing', 'activity'] });

async function begin() {
  const [workloads, description] = await Promise.all([get('/workloads'), get('/openapi.json')]);
  kernels = workloads.items;
  const { set } = description.components.schemas.KernelJob.properties;
  choices(field('kernel'), kernels.map(({ kernel }) => [kernel, kernel]));
  choices(field('set'), [['', 'times alone'],
    ...set.enum.filter((name) => name !== 'auto').map((name) => [name, name])]);
  drawKernel();
}

field('kernel').addEventListener('change', drawKernel);
find('profile').addEventListener('toggle', () => {
  if (kernels.length === 0) begin().catch((problem) => { find('profile-summary').textContent = problem.message; });
});
submitting(form, requestOf);
