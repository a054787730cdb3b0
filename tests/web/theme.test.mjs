// The theme: the system's by default, chosen with the switch, stored, and set before the first module runs. Every page has no
// violation that axe-core finds, and fits a phone, in both themes.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { assertAccessible, browserErrors, daemon, waitForEnd, openPage, scratch, submit } from './harness.mjs';

const fixture = path.join(process.env.ROOFLINED_SOURCE, 'tests/api/profiled_runs.py');
let training, runs; // a job's id; {a, b}: the ids of two profiled runs

/** Fills the database. A test calls this, because a `before` hook would not wait for the harness's hook. */
async function insertJobs() {
  runs = JSON.parse(execFileSync('python3', [fixture, path.join(scratch, 'state')]));
  training = await submit({ kind: 'train', epochs: 2, max_images: 256, passes: ['timing', 'activity'] });
  await waitForEnd(training);
}

const themeOf = (page) => page.evaluate(() => document.documentElement.dataset.theme);
const backgroundOf = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

test('without a choice the page follows the system', async () => {
  const page = await openPage(`${daemon.url}/suites.html`, { colorScheme: 'dark' });
  assert.equal(await themeOf(page), 'dark');
  const dark = await backgroundOf(page);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.locator('html[data-theme="light"]').waitFor({ state: 'attached' });
  assert.notEqual(await backgroundOf(page), dark);
  assert.ok(await page.getByRole('radio', { name: 'System' }).isChecked());
  await page.close();
});

test('a theme is chosen by keyboard, kept, and set before the page is shown', async () => {
  const page = await openPage(`${daemon.url}/suites.html`, { colorScheme: 'light' });
  await page.getByRole('radio', { name: 'System' }).focus();
  await page.keyboard.press('ArrowRight');
  assert.equal(await themeOf(page), 'light');
  await page.keyboard.press('ArrowRight');
  assert.equal(await themeOf(page), 'dark');
  // Modules run after the document is interactive, so a theme that is set by then is set by the script in the head.
  await page.addInitScript(() => document.addEventListener('readystatechange', () => {
    globalThis.firstTheme ??= document.documentElement.dataset.theme ?? 'none';
  }));
  await page.goto(`${daemon.url}/`);
  assert.equal(await page.evaluate(() => globalThis.firstTheme), 'dark');
  assert.ok(await page.getByRole('radio', { name: 'Dark' }).isChecked());
  const [other] = await Promise.all([page.waitForEvent('popup'), page.evaluate(() => { open('/suites.html'); })]);
  await other.locator('body[data-loaded]').waitFor();
  assert.equal(await themeOf(other), 'dark');
  await other.locator('#theme [value="system"]').check({ force: true });
  await page.locator('html[data-theme="light"]').waitFor({ state: 'attached' });
  assert.ok(await page.getByRole('radio', { name: 'System' }).isChecked(), 'a choice in another tab applies here too');
  assert.equal(await other.evaluate(() => localStorage.getItem('theme')), null);
  await page.close();
});

test('charts are drawn again in the colours of the chosen theme', async () => {
  await insertJobs();
  const page = await openPage(`${daemon.url}/job.html?id=${training}`, { colorScheme: 'light' });
  await page.locator('body[data-loaded="completed"]').waitFor();
  const picture = () => page.locator('#chart-time canvas').evaluate((canvas) => canvas.toDataURL());
  const light = await picture();
  await page.locator('#theme [value="dark"]').check({ force: true });
  assert.equal(await themeOf(page), 'dark');
  await page.waitForFunction((old) => document.querySelector('#chart-time canvas').toDataURL() !== old, light);
  await page.close();
});

test('every page is accessible and fits a phone in both themes', async () => {
  const second = await submit({ kind: 'train', epochs: 1, max_images: 256, engine: 'blas' });
  const [first, other] = (await Promise.all([training, second].map(waitForEnd))).map((job) => job.runs[0].id);
  const { job: profiled } = await (await fetch(`${daemon.url}/runs/${runs.a}/report`)).json();
  const pages = [
    ['/', '#jobs tbody tr'], [`/job.html?id=${training}`], [`/job.html?id=${profiled}`], [`/report.html?run=${runs.a}`],
    [`/compare.html?a=${runs.a}&b=${runs.b}`], [`/compare.html?a=${first}&b=${other}`],
    [`/history.html?job=${training}&run=${first}`], ['/suites.html'],
  ];
  for (const [where, loaded] of pages) await assertAccessible(daemon.url + where, loaded);
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
