// The list of jobs: names and tags, search, sorting, and the rows of posted kernels, which must differ.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { browserErrors, daemon, waitForEnd, openJobForm, openPage, scratch, submit, takeScreenshot } from './harness.mjs';

const fixture = path.join(process.env.ROOFLINED_SOURCE, 'tests/api/posted_runs.py');
const rows = (page) => page.locator('#jobs tbody tr');
const ids = (page) => page.locator('#jobs tbody th').allInnerTexts();
const kernel = (name, n, more) => submit({ kind: 'kernel', kernel: name, shape: { n }, samples: 2, variant: 'vector', ...more });

test('a job that is named in the form is found by its name and its tags', async () => {
  const page = await openJobForm(daemon.url);
  await page.locator('[name="job-kind"][value="kernel"]').check({ force: true });
  await page.locator('[name="kernel"]').selectOption('copy');
  await page.locator('[name="shape/n"]').fill('4096');
  await page.locator('#job-form [name="name"]').fill('copy <b>of</b> & "all"');
  await page.locator('#job-form [name="tags"]').fill('night, v2.1');
  await page.locator('#job-submit').click();
  await page.waitForURL(/job\.html\?id=\d+/);
  const id = new URL(page.url()).searchParams.get('id');
  await page.locator('body[data-loaded="completed"]').waitFor();
  await page.waitForLoadState('networkidle'); // leaving the page aborts requests, which counts as an error
  await waitForEnd(await kernel('relu', 4096));
  await page.goto(`${daemon.url}/?search=NIGHT`);
  await page.waitForFunction(() => document.querySelectorAll('#jobs tbody tr').length === 1);
  assert.deepEqual(await ids(page), [id]);
  assert.match(await rows(page).innerText(), /copy <b>of<\/b> & "all"\s*night\s*v2\.1\s+copy · fp32 n=4096\n/);
  await page.getByLabel('Search').fill('no such text');
  await page.locator('#none').waitFor();
  assert.equal(await page.locator('#none').innerText(), 'No jobs match these filters.');
  assert.equal(new URL(page.url()).searchParams.get('search'), 'no such text');
  await page.close();
});

test('columns sort by keyboard, and the order is kept while the list is refreshed', async () => {
  const slow = await kernel('copy', 4194304, { name: 'zebra' });
  const fast = await kernel('relu', 64, { name: 'ant' });
  for (const id of [slow, fast]) await waitForEnd(id);
  const page = await openPage(daemon.url);
  await rows(page).first().waitFor();
  const newestFirst = (await ids(page)).map(Number);
  assert.deepEqual(newestFirst, [...newestFirst].sort((a, b) => b - a));
  await page.locator('#jobs th button', { hasText: 'Name and workload' }).focus();
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('#jobs th[aria-sort="ascending"]').innerText(), 'Name and workload');
  const titles = () => page.locator('#jobs .job-title').allInnerTexts();
  assert.deepEqual(await titles(), [...await titles()].sort((a, b) => a.localeCompare(b)));
  await page.keyboard.press('Enter'); // the button has kept the focus
  assert.equal((await titles())[0], 'zebra');
  for (let press = 0; press < 2; press += 1) await page.locator('#jobs th button', { hasText: 'Fastest run' }).click();
  const order = (await ids(page)).map(Number);
  assert.ok(order.indexOf(fast) < order.indexOf(slow), 'the fastest is first');
  const later = await kernel('relu', 128, { name: 'later' });
  await page.locator('.job-title', { hasText: 'later' }).waitFor();
  assert.equal(await page.locator('#jobs th[aria-sort="ascending"]').innerText(), 'Fastest run');
  await waitForEnd(later);
  await page.close();
});

test('each run of an ended job links to its report', async () => {
  const job = await waitForEnd(await submit({ kind: 'kernel', kernel: 'relu', shape: { n: 256 }, samples: 2 }));
  const page = await openPage(`${daemon.url}/?kind=kernel`);
  const links = rows(page).first().locator('a[href^="/report.html"]');
  await links.first().waitFor();
  assert.deepEqual(await links.evaluateAll((all) => all.map((link) => link.getAttribute('href'))),
    job.runs.map(({ id }) => `/report.html?run=${id}`));
  await links.first().click();
  await page.waitForURL('**/report.html*');
  await page.locator('body[data-loaded]').waitFor();
  assert.match(page.url(), new RegExp(`/report\\.html\\?run=${job.runs[0].id}$`));
  await page.close();
});

test('posted kernels differ in the list, and the filter has their device', async () => {
  execFileSync('python3', [fixture, path.join(scratch, 'state')]);
  const page = await openPage(daemon.url);
  await page.locator('#jobs td.mono', { hasText: 'gpu0' }).first().waitFor();
  assert.deepEqual(await page.locator('#filters [name="device"] option').allInnerTexts(), ['any', 'cpu', 'gpu0'],
    'gpu0 is no device of the daemon, but jobs ran on it');
  await page.locator('#filters [name="device"]').selectOption('gpu0');
  await page.waitForFunction(() => [...document.querySelectorAll('#jobs td.mono')].every((cell) => cell.textContent === 'gpu0'));
  const row = rows(page).filter({ hasText: 'failed' });
  assert.match(await row.innerText(), /failed\s+add\s+source · grid 4×1×1 · block 64×1×1/);
  assert.doesNotMatch(await row.innerText(), /pending/);
  await takeScreenshot(page, 'list-posted');
  await page.close();
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
