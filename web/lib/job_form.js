// The form that submits a job of any kind. Its fields come from the schemas in /openapi.json. /workloads has the kernels, and the
// types, variants, builds and shape fields of each kernel.
import { ApiProblem, get, post, postFile } from '/lib/api.js';
import { curlImportLine, curlLine, importPath, rooflinectlImportLine, rooflinectlLine } from '/lib/commands.js';
import { byId, createElement } from '/lib/dom.js';
import { itemField, objectFields } from '/lib/schema_form.js';
import { submitOnPost } from '/lib/submit.js';

const SOURCE = `extern "C" __global__ void scale(float *y, const float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
`;
const buffer = (members) => ({ buffer: { dtype: 'fp32', count: 1048576, ...members } });

// The tabs of the form. Each is a kind of job, except sequence, which posts a job of the kind kernel. A tab has the schema of the
// request, the fields that are always visible, and an example to begin with.
const TABS = {
  train: { title: 'Train', schema: 'TrainJob', button: 'Start training',
    visible: ['precisions', 'passes', 'epochs', 'batch_size', 'max_images', 'engine', 'device'],
    example: { passes: ['timing', 'activity'] } },
  kernel: { title: 'Kernel', schema: 'KernelJob', button: 'Measure kernel',
    visible: ['kernel', 'dtype', 'variant', 'build', 'shape', 'set', 'samples', 'device'],
    example: { kernel: 'softmax', shape: { rows: 4096, columns: 1024 }, passes: ['timing', 'activity'] } },
  sequence: { title: 'Sequence', schema: 'SequenceJob', button: 'Measure sequence',
    visible: ['kernels', 'set', 'samples', 'device'],
    example: { kernels: [{ kernel: 'rmsnorm', shape: { rows: 4096, columns: 1024 } },
      { kernel: 'gemm', shape: { m: 1024, n: 1024, k: 1024 } }], passes: ['timing', 'activity'] } },
  layer: { title: 'Layer', schema: 'LayerJob', button: 'Measure layer',
    visible: ['variants', 'dtype', 'batch', 'tokens', 'cached_tokens', 'hidden', 'heads', 'ffn', 'set', 'device'] },
  source: { title: 'Source', schema: 'SourceJob', button: 'Measure source',
    visible: ['code', 'entry', 'grid', 'block', 'arguments', 'set', 'samples', 'device'],
    example: { code: SOURCE, entry: 'scale', grid: [4096], block: [256],
      arguments: [buffer({ access: 'out' }), buffer({ init: 'uniform', access: 'in' }),
        { scalar: { dtype: 'fp32', value: 2 } }, { scalar: { dtype: 'int32', value: 1048576 } }] } },
  ceilings: { title: 'Ceilings', schema: 'CeilingsJob', button: 'Measure ceilings', visible: ['samples', 'device'] },
  import: { title: 'Import', button: 'Import trace' },
};

const form = byId('job-form');
const fieldsHolder = byId('job-fields');
const entered = {}; // kind -> values that were entered before another kind was selected
let api = null; // the API's description, /openapi.json
let workloads = []; // items of /workloads
let usableDevices = []; // ids
let current = null; // {kind, read, file} of the drawn form. read(): returns the entered request; file(): the file of an import

/* --- schemas of kernels ------------------------------------------------------------------------------------------------ */

const firstSentence = (text) => text.split('. ')[0];

/** Returns the schema of a request, or of an item of a sequence, with the choices that the API lists for its kernel. */
function schemaForKernel(schema, name, emptyMeansAll) {
  const { summary, dtypes, variants, builds, shape } = workloads.find((item) => item.kernel === name);
  const { build, shape: _, ...properties } = schema.properties;
  const labels = Object.fromEntries(variants.filter((item) => item.gpu_only).map((item) => [item.name, `${item.name} (GPU)`]));
  return { ...schema, properties: { ...properties,
    kernel: { enum: workloads.map((item) => item.kernel), description: summary },
    dtype: { ...properties.dtype, enum: dtypes, description: firstSentence(properties.dtype.description) },
    variant: { enum: variants.map((item) => item.name), labels, emptyLabel: emptyMeansAll ? 'All' : variants[0].name,
      description: firstSentence(properties.variant.description) },
    ...(builds.length > 0
      ? { build: { enum: builds, emptyLabel: builds[0], description: firstSentence(build.description) } } : {}),
    shape: { ...shape, hidesDescription: true, keepsNames: true } } };
}

/** An item of a sequence: its fields are built again when its kernel changes. */
function kernelItem(schema, pointer, initial) {
  const holder = createElement('div', { class: 'form' });
  let fields;
  const draw = (values) => {
    fields = objectFields(schemaForKernel(schema, values.kernel, false), pointer, values, formCallbacks);
    holder.replaceChildren(...fields.elements);
  };
  holder.addEventListener('change', ({ target }) => {
    if (target.name !== `${pointer}/kernel`) return;
    draw(fields.read());
    holder.querySelector('select').focus();
  });
  draw(initial ?? { kernel: workloads[0].kernel });
  return { element: holder, read: () => fields.read() };
}

const formCallbacks = {
  changed: () => drawCommands(),
  item: (schema, pointer, initial) =>
    (schema.properties?.kernel ? kernelItem : itemField)(schema, pointer, initial, formCallbacks),
};

/* --- the fields of a kind ---------------------------------------------------------------------------------------------- */

function schemaOf(kind, values) {
  const schema = api.components.schemas[TABS[kind].schema];
  const { kind: _, ...properties } = schema.properties;
  const device = { enum: usableDevices, emptyLabel: 'Auto', description: properties.device.description };
  const set = properties.set && { ...properties.set, enum: properties.set.enum.filter((name) => name !== 'auto'),
    emptyLabel: 'Timing only' };
  const request = { ...schema, properties: { ...properties, device, ...(set ? { set } : {}) } };
  return kind === 'kernel' ? schemaForKernel(request, values.kernel, true) : request;
}

function drawFields(kind, values) {
  const { schema } = TABS[kind];
  const visible = [...TABS[kind].visible, 'name', 'tags'];
  const { fields, read } = objectFields(schemaOf(kind, values), '', values, formCallbacks);
  const elementOf = (name) => fields.find((field) => field.name === name)?.element;
  const isOpen = fieldsHolder.querySelector('details')?.open ?? false;
  const more = createElement('details', { class: 'wide' }, createElement('summary', {}, 'More options'),
    createElement('div', { class: 'form' },
      ...fields.filter(({ name }) => !visible.includes(name)).map(({ element }) => element)));
  more.open = isOpen;
  byId('job-description').textContent = api.components.schemas[schema].description;
  fieldsHolder.replaceChildren(...visible.map(elementOf).filter(Boolean), more);
  current = { kind, read: () => ({ kind: kind === 'sequence' ? 'kernel' : kind, ...read() }) };
}

function drawImport() {
  const parameters = api.paths['/imports'].post.parameters.filter(({ name }) => name === 'format');
  const { elements, read } = objectFields({ properties: Object.fromEntries(parameters.map((parameter) =>
    [parameter.name, { ...parameter.schema, description: parameter.description }])) }, '', {}, formCallbacks);
  const file = createElement('input', { type: 'file', name: 'trace', accept: '.json,.gz,.sqlite,.db' });
  byId('job-description').textContent = 'A trace of PyTorch’s profiler (export_chrome_trace, JSON or gzip), or of Nsight '
    + 'Systems (nsys export --type sqlite), becomes a job with the findings of its timeline.';
  fieldsHolder.replaceChildren(createElement('div', { class: 'field', 'data-field': 'file' },
    createElement('label', {}, createElement('span', {}, 'File'), file)), ...elements);
  const fields = () => ({ ...read(), ...(file.files.length > 0 ? { file_name: file.files[0].name } : {}) });
  current = { kind: 'import', read: fields, file: () => file.files[0] };
}

function drawCommands() {
  const request = current.read();
  const isImport = current.kind === 'import';
  byId('curl-line').textContent = (isImport ? curlImportLine : curlLine)(location.origin, request);
  byId('rooflinectl-line').textContent = (isImport ? rooflinectlImportLine : rooflinectlLine)(location.origin, request);
}

function selectKind(kind) {
  if (current) entered[current.kind] = current.read();
  if (kind === 'import') drawImport();
  else drawFields(kind, entered[kind] ?? TABS[kind].example ?? {});
  byId('job-submit').textContent = TABS[kind].button;
  for (const line of form.querySelectorAll('.problem-line')) line.remove();
  drawCommands();
}

form.addEventListener('change', ({ target }) => {
  if (target.name === 'job-kind') selectKind(target.value);
  else if (target.name === 'kernel' && current.kind === 'kernel') {
    drawFields('kernel', current.read());
    form.elements.kernel.focus();
  }
});
for (const type of ['input', 'change']) form.addEventListener(type, () => { if (current) drawCommands(); });

submitOnPost(form, () => {
  if (current.kind !== 'import') return post('/jobs', current.read());
  const file = current.file();
  if (!file) throw new ApiProblem(0, { detail: 'Choose a file.', pointer: '/file' });
  return postFile(importPath(current.read()), file);
});

/* --- copying ----------------------------------------------------------------------------------------------------------- */

/** Copies the text of an element to the clipboard. If the browser refuses (a page without TLS), selects the text. */
async function copyText(element, button) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    button.textContent = 'Copied';
  } catch {
    getSelection().selectAllChildren(element);
    button.textContent = 'Selected';
  }
  setTimeout(() => { button.textContent = 'Copy'; }, 2000);
}
for (const button of form.querySelectorAll('[data-copies]')) {
  button.addEventListener('click', () => copyText(byId(button.dataset.copies), button));
}

/* --- opening ----------------------------------------------------------------------------------------------------------- */

async function load() {
  const [description, kernels, devices] = await Promise.all(['/openapi.json', '/workloads', '/devices'].map(get));
  api = description;
  workloads = kernels.items;
  usableDevices = devices.items.filter(({ state }) => state !== 'unusable').map(({ id }) => id);
  byId('job-kinds').append(...Object.entries(TABS).map(([kind, { title }], index) => createElement('label', {},
    createElement('input', { type: 'radio', name: 'job-kind', value: kind, class: 'unseen', checked: index === 0 ? '' : null }),
    title)));
  selectKind('train');
  form.hidden = false;
}

let loading = null;
/** Builds the form when it is opened for the first time. */
const loadOnce = () => {
  loading ??= load().catch((problem) => {
    loading = null;
    byId('job-form-problem').textContent = problem.message;
  });
  return loading;
};
const loadIfOpen = () => { if (byId('new').open) loadOnce(); };
byId('new').addEventListener('toggle', loadIfOpen);
loadIfOpen(); // the form can be opened before this module is loaded
