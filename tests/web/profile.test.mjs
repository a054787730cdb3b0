// The form that asks for the profile of a kernel, up to its result.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints, daemon, noSidewaysScroll, open, shoot } from './harness.mjs';

const api = async (where) => (await fetch(`${daemon.url}${where}`)).json();

async function openForm(options) {
  const page = await open(daemon.url, options);
  await page.getByText('Profile a kernel').click();
  await page.locator('#profile-shape input').first().waitFor();
  return page;
}
const select = (page, name, value) => page.locator(`#profile [name="${name}"]`).selectOption(value);
const size = (page, name) => page.locator(`#profile [name="shape/${name}"]`);
const texts = (page, name) => page.locator(`#profile [name="${name}"] option`).allInnerTexts();
const marked = (page) => page.locator('#profile [data-bad]').evaluateAll((all) => all.map((one) => one.dataset.field));

async function refuse(page) {
  const refused = page.waitForResponse((response) => response.status() === 400);
  await page.getByRole('button', { name: 'Profile it' }).click();
  await refused;
  await page.locator('#profile .problem-line').waitFor();
}

test('its choices are what the API lists', async () => {
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
  assert.equal(await size(page, 'causal').getAttribute('type'), 'checkbox');
  await select(page, 'kernel', 'transpose');
  assert.deepEqual(await texts(page, 'variant'), ['all', 'naive', 'shared', 'padded (GPU)']);
  await shoot(page, 'profile-light');
  await page.close();
});

test('what the kernels share stays when another is chosen', async () => {
  const page = await openForm();
  await select(page, 'kernel', 'softmax');
  await select(page, 'dtype', 'fp16');
  await size(page, 'rows').fill('7');
  await select(page, 'kernel', 'layernorm');
  assert.deepEqual([await size(page, 'rows').inputValue(), await size(page, 'columns').inputValue()], ['7', '']);
  assert.equal(await page.locator('#profile [name="dtype"]').inputValue(), 'fp16');
  await page.close();
});

test('what is refused is told at its field, until it is right', async () => {
  const page = await openForm();
  await select(page, 'kernel', 'bias_gelu');
  await size(page, 'rows').fill('100000');
  await refuse(page);
  assert.deepEqual(await marked(page), ['shape/columns']);
  assert.match(await page.locator('[data-field="shape/columns"] .problem-line').innerText(), /columns is required/);
  assert.equal(await page.evaluate(() => document.activeElement.name), 'shape/columns');
  await size(page, 'columns').fill('100000');
  await refuse(page);
  assert.deepEqual(await marked(page), ['shape'], 'each size is within its bounds, both together are not');
  await size(page, 'rows').fill('3');
  await size(page, 'columns').fill('77');
  await select(page, 'variant', 'vector');
  await page.getByRole('button', { name: 'Profile it' }).click();
  await page.waitForURL(/job\.html\?id=\d+/);
  await page.locator('body[data-loaded="completed"]').waitFor({ timeout: 60000 });
  assert.match(await page.locator('#verdict').innerText(), /^With a cold cache vector takes/);
  const { request } = await api(`/jobs/${new URL(page.url()).searchParams.get('id')}`);
  assert.deepEqual([request.kernel, request.shape, request.variant], ['bias_gelu', { rows: 3, columns: 77 }, 'vector']);
  complaints.splice(0, complaints.length, ...complaints.filter((text) => !text.includes('status of 400')));
  await page.close();
});

test('a phone is wide enough, in the dark', async () => {
  const page = await openForm({ viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
  await select(page, 'kernel', 'conv');
  await refuse(page);
  assert.ok(await noSidewaysScroll(page), 'it scrolls sideways');
  await shoot(page, 'profile-360');
  complaints.splice(0, complaints.length, ...complaints.filter((text) => !text.includes('status of 400')));
  await page.close();
});

test('no page complained', () => assert.deepEqual(complaints, []));
