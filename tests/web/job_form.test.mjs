// The form that submits jobs: its fields follow the API's schemas, an error appears at its field, and the command lines that it
// shows submit the same job.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import {
  browserErrors, build, daemon, findInaccessible, waitForEnd, fitsWidth, ignoreBrowserErrors, openJobForm, openPage,
  takeScreenshot,
} from './harness.mjs';

const KINDS = ['train', 'kernel', 'sequence', 'layer', 'source', 'ceilings', 'import'];
const SCHEMAS = { train: 'TrainJob', kernel: 'KernelJob', sequence: 'SequenceJob', layer: 'LayerJob', source: 'SourceJob',
  ceilings: 'CeilingsJob' };

const api = async (where) => (await fetch(`${daemon.url}${where}`)).json();
const openForm = async (kind, options) => {
  const page = await openJobForm(daemon.url, options);
  await page.locator(`[name="job-kind"][value="${kind}"]`).check({ force: true });
  return page;
};
const field = (page, pointer) => page.locator(`#job-form [name="${pointer}"]`);
const options = (page, pointer) => field(page, pointer).locator('option').allInnerTexts();
const pointers = (page, selector) => page.locator(selector).evaluateAll((all) => all.map((one) => one.dataset.field));
const invalidFields = (page) => pointers(page, '#job-form [data-bad]');
const shownRequest = async (page) => JSON.parse(/-d '(.*)'$/s.exec(await page.locator('#curl-line').textContent())[1]);

const openMoreOptions = (page) => page.locator('#job-fields details').evaluate((details) => { details.open = true; });

async function submitInvalid(page) {
  const badRequest = page.waitForResponse((response) => response.status() === 400);
  await page.locator('#job-submit').click();
  await badRequest;
  await page.locator('#job-form .problem-line').filter({ hasText: /\S/ }).waitFor();
}

test('the form appears if it is opened before its script is loaded', async () => {
  const page = await openPage('about:blank');
  let release;
  const released = new Promise((resolve) => { release = resolve; });
  await page.route('**/lib/job_form.js', async (route) => { await released; await route.continue(); });
  await page.goto(daemon.url);
  await page.locator('#new > summary').click();
  release();
  await page.locator('#job-fields input').first().waitFor();
  await page.close();
});

test('every kind has a field for each member of its schema, with bounds, choices and description', async () => {
  const { components: { schemas } } = await api('/openapi.json');
  const page = await openForm('train');
  for (const [kind, name] of Object.entries(SCHEMAS)) {
    await page.locator(`[name="job-kind"][value="${kind}"]`).check({ force: true });
    const { properties: { kind: _, build: builds, ...properties } } = schemas[name]; // build: of the kernels that have several
    const shown = await pointers(page, '#job-fields [data-field]');
    assert.deepEqual(new Set(shown.filter((one) => !one.includes('/'))), new Set(Object.keys(properties)), kind);
    assert.equal(await page.locator('#job-description').innerText(), schemas[name].description);
    for (const [member, schema] of Object.entries(properties)) {
      if (schema.type !== 'integer') continue;
      assert.equal(await field(page, member).getAttribute('min'), String(schema.minimum), `${kind} ${member}`);
      assert.equal(await field(page, member).getAttribute('max'), String(schema.maximum), `${kind} ${member}`);
      assert.equal(await page.locator(`[data-field="${member}"] .help`).textContent(), schema.description);
    }
  }
  await page.close();
});

test('the defaults that the form shows are those that the daemon applies', async () => {
  const page = await openForm('train');
  const compared = [];
  for (const [kind, more] of [['train', { max_images: 64 }], ['kernel', { kernel: 'copy', shape: { n: 64 } }],
    ['layer', { tokens: 2, hidden: 64, heads: 2, ffn: 64 }]]) {
    const { id } = await (await fetch(`${daemon.url}/jobs`, { method: 'POST', headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ kind, ...more }) })).json();
    const { request } = await api(`/jobs/${id}`);
    const { properties } = (await api('/openapi.json')).components.schemas[SCHEMAS[kind]];
    const defaults = await page.evaluate(async (schema) => {
      const { defaultOf } = await import('/lib/schema_form.js');
      return Object.entries(schema).map(([name, property]) => [name, defaultOf(property)]);
    }, properties);
    for (const [name, value] of defaults) {
      if (value === undefined || name in more || name === 'dataset' || request[name] === undefined) continue;
      assert.deepEqual(request[name], value, `${kind} ${name}`);
      compared.push(name);
    }
    await fetch(`${daemon.url}/jobs/${id}`, { method: 'DELETE' });
  }
  for (const name of ['epochs', 'batch_size', 'learning_rate', 'precisions', 'samples', 'dtype', 'causal', 'batch']) {
    assert.ok(compared.includes(name), `no default of ${name} was found`);
  }
  await page.close();
});

test('a kernel has the types, variants and sizes that the API lists', async () => {
  const page = await openForm('kernel');
  const { items } = await api('/workloads');
  assert.deepEqual(await options(page, 'kernel'), items.map((item) => item.kernel));
  for (const name of ['transpose', 'gemm', 'attention']) {
    const item = items.find((one) => one.kernel === name);
    await field(page, 'kernel').selectOption(name);
    assert.deepEqual(new Set((await options(page, 'dtype')).map((text) => text.split(' ')[0])), new Set(item.dtypes));
    const sizes = await pointers(page, '[data-field="shape"] [data-field]');
    assert.deepEqual(sizes, Object.keys(item.shape.properties).map((size) => `shape/${size}`));
  }
  assert.equal(await field(page, 'shape/causal').getAttribute('type'), 'checkbox');
  await field(page, 'kernel').selectOption('transpose');
  assert.deepEqual(await options(page, 'variant'), ['All', 'naive', 'shared', 'padded (GPU)']);
  assert.equal((await options(page, 'set'))[0], 'Timing only');
  await field(page, 'shape/rows').fill('7');
  await field(page, 'dtype').selectOption('fp16');
  await field(page, 'kernel').selectOption('layernorm');
  assert.equal(await field(page, 'shape/rows').inputValue(), '7', 'a size that two kernels have keeps its value');
  assert.equal(await field(page, 'dtype').inputValue(), 'fp16');
  await page.close();
});

test('an error is shown at its field until the field is valid', async () => {
  const page = await openForm('kernel');
  await field(page, 'kernel').selectOption('bias_gelu');
  await field(page, 'shape/rows').fill('100000');
  await field(page, 'shape/columns').fill('');
  await submitInvalid(page);
  assert.deepEqual(await invalidFields(page), ['shape/columns']);
  assert.match(await page.locator('[data-field="shape/columns"] .problem-line').innerText(), /columns is required/);
  assert.equal(await page.evaluate(() => document.activeElement.name), 'shape/columns');
  await field(page, 'shape/columns').fill('100000');
  await submitInvalid(page);
  assert.deepEqual(await invalidFields(page), ['shape'], 'each size is within its bounds, both together are not');
  await field(page, 'shape/rows').fill('3');
  await field(page, 'shape/columns').fill('77');
  await field(page, 'variant').selectOption('vector');
  await page.locator('#job-submit').click();
  await page.waitForURL(/job\.html\?id=\d+/);
  await page.locator('body[data-loaded="completed"]').waitFor();
  const { request } = await api(`/jobs/${new URL(page.url()).searchParams.get('id')}`);
  assert.deepEqual([request.kernel, request.shape, request.variant], ['bias_gelu', { rows: 3, columns: 77 }, 'vector']);
  ignoreBrowserErrors('status of 400');
  await page.close();
});

test('an error in a hidden option opens the options, and one in an item is shown at the item', async () => {
  const page = await openForm('train');
  await page.locator('#job-fields summary').click();
  await field(page, 'warmup_epochs').fill('101');
  await page.locator('#job-fields summary').click();
  await submitInvalid(page);
  assert.deepEqual(await invalidFields(page), ['warmup_epochs']);
  assert.ok(await field(page, 'warmup_epochs').isVisible());
  await page.locator('[name="job-kind"][value="sequence"]').check({ force: true });
  await page.getByRole('button', { name: 'Add to Kernels' }).click();
  await field(page, 'kernels/2/kernel').selectOption('transpose');
  await field(page, 'kernels/2/shape/rows').fill('5');
  await submitInvalid(page);
  assert.deepEqual(await invalidFields(page), ['kernels/2/shape/columns']);
  await page.getByRole('button', { name: 'Remove Kernels 1' }).click();
  assert.deepEqual((await shownRequest(page)).kernels.map(({ kernel }) => kernel), ['gemm', 'transpose']);
  ignoreBrowserErrors('status of 400');
  await page.close();
});

const PATH = `${path.join(build, 'bin')}:${process.env.PATH}`;
/** Runs a command line of the page in a shell, and returns the request of the job that it submitted. */
async function runLine(line) {
  const before = (await api('/jobs?limit=1')).items[0]?.id ?? 0;
  try {
    execFileSync('sh', ['-c', line], { env: { ...process.env, PATH }, stdio: 'pipe' });
  } catch (problem) {
    assert.fail(`${line}: ${problem.stderr}`);
  }
  const { id } = (await api('/jobs?limit=1')).items[0];
  assert.ok(id > before, `${line} submitted no job`);
  await waitForEnd(id);
  return (await api(`/jobs/${id}`)).request;
}

test('the command lines submit the job that is filled in', async () => {
  const page = await openForm('kernel');
  const setups = {
    train: async () => {
      await field(page, 'max_images').fill('64');
      await field(page, 'epochs').fill('1');
      await field(page, 'precisions').and(page.locator('[value="fp16"]')).uncheck();
      await openMoreOptions(page);
      await field(page, 'dataset').selectOption('files');
      await field(page, 'kernels').fill("it's *\"$HOME\"`x`");
    },
    kernel: async () => {
      await field(page, 'kernel').selectOption('attention');
      for (const [size, value] of Object.entries({ batch: 1, heads: 1, kv_heads: 1, sequence: 8, head_size: 8 })) {
        await field(page, `shape/${size}`).fill(String(value));
      }
      await field(page, 'shape/causal').check();
      await field(page, 'samples').fill('2');
    },
    sequence: async () => {
      for (const [index, size, value] of [[0, 'rows', 4], [1, 'm', 4], [1, 'n', 4], [1, 'k', 4]]) {
        await field(page, `kernels/${index}/shape/${size}`).fill(String(value));
      }
      await field(page, 'samples').fill('2');
    },
    layer: async () => {
      for (const [name, value] of Object.entries({ tokens: 2, hidden: 64, heads: 2, ffn: 64 })) {
        await field(page, name).fill(String(value));
      }
      await field(page, 'variants').and(page.locator('[value="baseline"]')).check();
      await openMoreOptions(page);
      await field(page, 'causal').uncheck();
      await field(page, 'samples').fill('2');
    },
  };
  for (const [kind, setUp] of Object.entries(setups)) {
    await page.locator(`[name="job-kind"][value="${kind}"]`).check({ force: true });
    await setUp();
    const byCurl = await runLine(await page.locator('#curl-line').textContent());
    const rooflinectl = await page.locator('#rooflinectl-line').textContent();
    assert.deepEqual(await runLine(rooflinectl), byCurl, rooflinectl);
    const { epochs, precisions, kernels, variants, causal } = byCurl;
    if (kind === 'train') assert.deepEqual([epochs, precisions, kernels], [1, ['fp32'], "it's *\"$HOME\"`x`"]);
    if (kind === 'layer') assert.deepEqual([variants, causal], [['baseline'], false]);
  }
  await page.close();
});

test('a command is copied', async () => {
  const page = await openForm('ceilings', { permissions: ['clipboard-read', 'clipboard-write'] });
  await page.getByRole('button', { name: 'Copy the rooflinectl command' }).click();
  await page.getByText('Copied').waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await page.locator('#rooflinectl-line').textContent());
  await page.close();
});

test('the form of every kind is accessible and fits a phone', async () => {
  const page = await openForm('train', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' });
  for (const kind of KINDS) {
    await page.locator(`[name="job-kind"][value="${kind}"]`).check({ force: true });
    if (kind !== 'import') await openMoreOptions(page);
    assert.ok(await fitsWidth(page), `${kind} scrolls horizontally`);
    assert.deepEqual(await findInaccessible(page, '#new'), [], kind);
    await takeScreenshot(page, `form-${kind}-390`);
  }
  await page.close();
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
