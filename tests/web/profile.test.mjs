// The form for profiles of kernels, from its fields to the result of the job.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { browserErrors, daemon, fitsWidth, ignoreBrowserErrors, openPage, takeScreenshot } from './harness.mjs';

const api = async (where) => (await fetch(`${daemon.url}${where}`)).json();

async function openForm(options) {
  const page = await openPage(daemon.url, options);
  await page.getByText('Profile a kernel').click();
  await page.locator('#profile-shape input').first().waitFor();
  return page;
}
const select = (page, name, value) => page.locator(`#profile [name="${name}"]`).selectOption(value);
const sizeField = (page, name) => page.locator(`#profile [name="shape/${name}"]`);
const texts = (page, name) => page.locator(`#profile [name="${name}"] option`).allInnerTexts();
const invalidFields = (page) => page.locator('#profile [data-bad]').evaluateAll((all) => all.map((one) => one.dataset.field));

async function submitInvalid(page) {
  const badRequest = page.waitForResponse((response) => response.status() === 400);
  await page.getByRole('button', { name: 'Profile it' }).click();
  await badRequest;
  await page.locator('#profile .problem-line').waitFor();
}

test('the form offers the choices that the API lists', async () => {
  const page = await openForm();
  const { items } = await api('/workloads');
  const { set } = (await api('/openapi.json')).components.schemas.KernelJob.properties;
  assert.deepEqual(await texts(page, 'kernel'), items.map((item) => item.kernel));
  assert.deepEqual((await texts(page, 'set')).slice(1), set.enum.filter((name) => name !== 'auto'));
  assert.equal(await page.locator('#profile [name="dtype"]').inputValue(), 'fp32');
  for (const name of ['transpose', 'gemm', 'attention']) {
    const item = items.find((one) => one.kernel === name);
    await select(page, 'kernel', name);
    assert.deepEqual(await texts(page, 'dtype'), item.dtypes);
    assert.deepEqual(await page.locator('#profile-shape label').evaluateAll((all) => all.map((one) => one.dataset.field)),
      Object.keys(item.shape.properties).map((field) => `shape/${field}`));
    assert.deepEqual(await page.locator('#profile-shape [type="number"]').evaluateAll((all) => all.map((one) => one.placeholder)),
      Object.values(item.shape.properties).filter(({ type }) => type === 'integer').map(({ description }) => description));
    assert.equal(await page.locator('#profile-summary').innerText(), item.summary);
  }
  assert.equal(await sizeField(page, 'causal').getAttribute('type'), 'checkbox');
  await select(page, 'kernel', 'transpose');
  assert.deepEqual(await texts(page, 'variant'), ['all', 'naive', 'shared', 'padded (GPU)']);
  await takeScreenshot(page, 'profile-light');
  await page.close();
});

test('fields that two kernels share keep their values', async () => {
  const page = await openForm();
  await select(page, 'kernel', 'softmax');
  await select(page, 'dtype', 'fp16');
  await sizeField(page, 'rows').fill('7');
  await select(page, 'kernel', 'layernorm');
  assert.deepEqual([await sizeField(page, 'rows').inputValue(), await sizeField(page, 'columns').inputValue()], ['7', '']);
  assert.equal(await page.locator('#profile [name="dtype"]').inputValue(), 'fp16');
  await page.close();
});

test('an error is shown at its field until the field is valid', async () => {
  const page = await openForm();
  await select(page, 'kernel', 'bias_gelu');
  await sizeField(page, 'rows').fill('100000');
  await submitInvalid(page);
  assert.deepEqual(await invalidFields(page), ['shape/columns']);
  assert.match(await page.locator('[data-field="shape/columns"] .problem-line').innerText(), /columns is required/);
  assert.equal(await page.evaluate(() => document.activeElement.name), 'shape/columns');
  await sizeField(page, 'columns').fill('100000');
  await submitInvalid(page);
  assert.deepEqual(await invalidFields(page), ['shape'], 'each size is within its bounds, both together are not');
  await sizeField(page, 'rows').fill('3');
  await sizeField(page, 'columns').fill('77');
  await select(page, 'variant', 'vector');
  await page.getByRole('button', { name: 'Profile it' }).click();
  await page.waitForURL(/job\.html\?id=\d+/);
  await page.locator('body[data-loaded="completed"]').waitFor({ timeout: 60000 });
  assert.match(await page.locator('#verdict').innerText(), /^With a cold cache vector takes/);
  const { request } = await api(`/jobs/${new URL(page.url()).searchParams.get('id')}`);
  assert.deepEqual([request.kernel, request.shape, request.variant], ['bias_gelu', { rows: 3, columns: 77 }, 'vector']);
  ignoreBrowserErrors('status of 400');
  await page.close();
});

test('the page fits a phone in dark mode', async () => {
  const page = await openForm({ viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
  await select(page, 'kernel', 'conv');
  await submitInvalid(page);
  assert.ok(await fitsWidth(page), 'the page scrolls horizontally');
  await takeScreenshot(page, 'profile-360');
  ignoreBrowserErrors('status of 400');
  await page.close();
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
