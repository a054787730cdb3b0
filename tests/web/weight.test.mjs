// What a browser transfers for the first visit of each page, and how far its content shifts while it loads. suites.test.mjs does
// the same for the pages of suites.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { assertLightweight, browserErrors, daemon, waitForEnd, MAX_PAGE_BYTES, scratch, submit } from './harness.mjs';

const MAX_MAIN_PAGE_BYTES = 60 * 1024;
const fixture = path.join(process.env.ROOFLINED_SOURCE, 'tests/api/profiled_runs.py');

test('the first visit of each page is small, and its content does not shift', async (t) => {
  const runs = JSON.parse(execFileSync('python3', [fixture, path.join(scratch, 'state')]));
  const jobs = await Promise.all(['blas', 'fused'].map((engine) => submit({ kind: 'train', engine, epochs: 1, warmup_epochs: 0,
    max_images: 64, passes: ['timing', 'activity'] })));
  const [first, second] = (await Promise.all(jobs.map(waitForEnd))).map((job) => job.runs[0].id);
  for (const [where, loaded = 'body[data-loaded]'] of [
    ['/', '#jobs tbody tr'], [`/job.html?id=${jobs[0]}`, 'body[data-loaded="completed"]'], [`/report.html?run=${runs.a}`],
    [`/compare.html?a=${first}&b=${second}`], [`/compare.html?a=${runs.a}&b=${runs.b}`],
    [`/history.html?job=${jobs[0]}&run=${first}`], ['/suites.html'],
  ]) {
    await assertLightweight(t, daemon.url + where, where === '/' ? MAX_MAIN_PAGE_BYTES : MAX_PAGE_BYTES, loaded);
  }
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
