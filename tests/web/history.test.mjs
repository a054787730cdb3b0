// The history page of a measurement: jobs of several commits, inserted into the database of a real daemon.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { before, test } from 'node:test';
import { browserErrors, daemon, findInaccessible, fitsWidth, openPage, scratch, takeScreenshot } from './harness.mjs';

const fixture = path.join(process.env.ROOFLINED_SOURCE, 'tests/api/history_runs.py');
let inserted; // {jobs, run}, as described in history_runs.py

before(() => { inserted = JSON.parse(execFileSync('python3', [fixture, path.join(scratch, 'state')])); });

async function openHistory(metric, options) {
  const page = await openPage(`${daemon.url}/history.html?job=${inserted.jobs.at(-1)}&run=${inserted.run}`, options);
  await page.locator(`body[data-loaded="${metric}"]`).waitFor();
  return page;
}
const readRows = (page) => page.locator('#points tbody tr').evaluateAll((rows) => rows.map((row) =>
  [...row.cells].map((cell) => cell.innerText)));

test('the job page links to the history from its header and from each measurement', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=${inserted.jobs.at(-1)}`);
  await page.locator('body[data-loaded]').waitFor();
  assert.ok(await page.getByRole('link', { name: 'History' }).isVisible());
  await page.locator('#measurement-table').getByRole('link', { name: 'Largest relative error' }).click();
  await page.locator('body[data-loaded="relative_error"]').waitFor();
  assert.equal(await page.locator('#metric').inputValue(), 'relative_error');
  await page.close();
});

test('the history lists all runs of the same parameters, and no others', async () => {
  const page = await openHistory('time_cold_us_median');
  const rows = await readRows(page);
  assert.deepEqual(rows.map(([job, , value, change, commit, note]) => [Number(job), value, change, commit, note]), [
    [inserted.jobs[4], '21.00 µs', '−14.6 %', '5a5c0ffee5a5', 'better, outside the noise\ndriver 580.65 → 590.48'],
    [inserted.jobs[3], '12.00 µs', '−51.2 %', '4a5c0ffee4a5', 'suspect\noutside the noise'],
    [inserted.jobs[2], '24.60 µs', '+2.5 %', '3a5c0ffee3a5', ''],
    [inserted.jobs[1], '24.00 µs', '−20.0 %', '2a5c0ffee2a5', ''],
    [inserted.jobs[0], '30.00 µs', '—', '1a5c0ffee1a5', '']]);
  assert.equal(await page.locator('#what').innerText(),
    'softmax · vector · fp16 rows=4096 columns=1024 · on NVIDIA H200 · 5 runs of the same parameters');
  await page.close();
});

test('each run links to a comparison with the current run', async () => {
  const page = await openHistory('time_cold_us_median');
  assert.deepEqual((await readRows(page)).map((cells) => cells[6]), ['this run', ...Array(4).fill(`with run ${inserted.run}`)]);
  await page.locator('#points tbody tr').nth(3).getByRole('link', { name: /^Compare run \d+ with run/ }).click();
  await page.waitForURL('**/compare.html*');
  await page.locator('body[data-loaded]').waitFor();
  assert.equal(await page.locator('#verdict').innerText(), 'vector B is 1.14× as fast as vector A (cold cache)');
  await page.close();
});

test('a point shows its commit and links to its job', async () => {
  const page = await openHistory('time_cold_us_median');
  const box = await page.locator('#chart .u-over').boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + box.height / 2); // the second of five
  const near = page.locator('#chart .near');
  await near.waitFor();
  assert.match(await near.innerText(), new RegExp(`^24\\.00 µs\ncommit 2a5c0ffee2a5\njob ${inserted.jobs[1]}\n`));
  const words = await near.boundingBox();
  assert.ok(words.x >= box.x && words.x + words.width <= box.x + box.width, 'inside the chart');
  await takeScreenshot(page, 'history-light');
  await page.mouse.click(box.x + box.width * 0.3, box.y + box.height / 2);
  await page.waitForURL(`**/job.html?id=${inserted.jobs[1]}`);
  await page.locator('body[data-loaded]').waitFor();
  await page.close();
});

test('the selected metric is kept in the URL', async () => {
  const page = await openHistory('time_cold_us_median');
  await page.locator('#metric').selectOption('relative_error');
  await page.locator('body[data-loaded="relative_error"]').waitFor();
  assert.equal(new URL(page.url()).searchParams.get('metric'), 'relative_error');
  assert.deepEqual((await readRows(page)).map(([, , value]) => value), Array(5).fill('1.00e-4'));
  await page.close();
});

test('the y axis starts at zero on request', async () => {
  const page = await openHistory('time_cold_us_median');
  const drawnFrom = (text) => page.locator(`#chart[aria-label^="5 points, y from ${text}"]`).waitFor();
  await drawnFrom('10.56 µs');
  await page.getByLabel('y from zero').focus();
  await page.keyboard.press('Space');
  await drawnFrom('0 µs');
  assert.match(await page.locator('#caption').innerText(), /^Median time, cold cache · band: median ± 3 × 1\.4826 × MAD/);
  assert.deepEqual(await findInaccessible(page, 'main'), []);
  await page.close();
});

test('the page without a job shows an error', async () => {
  const page = await openPage(`${daemon.url}/history.html`);
  assert.match(await page.locator('#problem').innerText(), /needs the number of a job/);
  await page.close();
});

test('the page fits a phone in dark mode', async () => {
  const page = await openHistory('time_cold_us_median', { viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
  await page.locator('#chart canvas').waitFor();
  assert.ok(await fitsWidth(page), 'the page scrolls horizontally');
  await takeScreenshot(page, 'history-360');
  await page.close();
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
