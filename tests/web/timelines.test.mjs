// The launch queue and the critical path of a trace, and the comparison of two traces.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { before, test } from 'node:test';

import { browserErrors, daemon, findDeadLinks, openPage, scratch, takeScreenshot } from './harness.mjs';

const fixtures = path.join(import.meta.dirname, '../api');
let a, b;

/** Runs Python code with module ranged_run, and returns what it prints as JSON. */
const insert = (code) => JSON.parse(execFileSync('python3', ['-c', `import json, ranged_run; print(json.dumps(${code}))`],
  { cwd: fixtures }));
before(() => {
  const state = path.join(scratch, 'state');
  a = insert(`ranged_run.insert('${state}', 30)`);
  b = insert(`ranged_run.insert('${state}', 20)`);
});

const textOf = (page, table) => page.locator(`${table} tbody tr`).evaluateAll((all) =>
  all.map((row) => [...row.cells].map((cell) => cell.innerText)));

test('the launch queue and the critical path of a trace', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=${a.job}`);
  await page.locator('#path-table tbody tr').first().waitFor();
  assert.deepEqual(await textOf(page, '#path-table'), [
    ['Kernels', '30.00 µs', '33.33 %', ''], ['gemm', '30.00 µs', '33.33 %', '1'],
    ['Launch calls', '5.00 µs', '5.56 %', ''], ['Host work between launches', '55.00 µs', '61.11 %', '']]);
  await page.locator('#queue-chart canvas').waitFor();
  assert.match(await page.locator('#queue-note').innerText(), /at most 1 at any time\. None waits during 96\.67 % of the window/);
  await takeScreenshot(page, 'launch-queue');
  await page.close();
});


test('the report lists the findings of the timeline', async () => {
  const page = await openPage(`${daemon.url}/report.html?run=${a.run}&kernel=0`);
  await page.locator('body[data-loaded="0"]').waitFor();
  const titles = await page.locator('#run-finding-list strong').allInnerTexts();
  assert.deepEqual(titles, ['The device waits for host code', 'The device waits for launch calls',
    'No launch is queued while the device is idle', 'The host determines the critical path']);
  await page.locator('#run-finding-list a').first().click();
  await page.waitForURL(`${daemon.url}/job.html?id=${a.job}#**`);
  await page.locator('body[data-loaded="completed"]').waitFor();
  assert.equal(await page.locator('#timeline-run').inputValue(), String(a.run));
  const { y } = await page.locator('#timeline').boundingBox();
  assert.ok(y >= -1 && y < 900, `the timeline begins at ${y} px of the screen`);
  assert.deepEqual(await findDeadLinks(page), []);
  await page.close();
});

test('two timelines are compared by class and by operation', async () => {
  const page = await openPage(`${daemon.url}/compare.html?a=${a.run}&b=${b.run}`);
  await page.locator('body[data-loaded="true"]').waitFor();
  assert.deepEqual((await textOf(page, '#time-class-differences')).at(-1), ['Window', '90.00 µs', '80.00 µs', '−10.00 µs']);
  assert.deepEqual(await textOf(page, '#time-differences'), [
    ['gemm', '60.00 µs', '40.00 µs', '−20.00 µs', 'shorter'],
    ['Idle: the host works between launches, before gemm', '25.00 µs', '35.00 µs', '+10.00 µs', 'longer'],
    ['all others', '5.00 µs', '5.00 µs', '0 µs', '']]);
  await takeScreenshot(page, 'timelines');
  await page.close();
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
