// What a browser transfers for the first visit of each page, and how far its content shifts while it loads. Bytes are as on the
// wire: headers and compressed bodies.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { browserErrors, daemon, finish, openPage, scratch, submit } from './harness.mjs';

const MAX_MAIN_PAGE_BYTES = 60 * 1024;
const MAX_PAGE_BYTES = 120 * 1024;
const MAX_LAYOUT_SHIFT = 0.02; // of 0.1, which Web Vitals calls good
const fixture = path.join(process.env.ROOFLINED_SOURCE, 'tests/api/profiled_runs.py');

/** Opens a page without a cache. Returns {bytes, shift}: the bytes transferred until the page is loaded, and its cumulative
    layout shift. */
async function measure(where, loaded) {
  const page = await openPage('about:blank');
  const session = await page.context().newCDPSession(page);
  let bytes = 0;
  session.on('Network.loadingFinished', ({ encodedDataLength }) => { bytes += encodedDataLength; });
  await session.send('Network.enable');
  await page.addInitScript(() => {
    globalThis.layoutShift = 0;
    new PerformanceObserver((list) => {
      for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) globalThis.layoutShift += value;
    }).observe({ type: 'layout-shift', buffered: true });
  });
  await page.goto(daemon.url + where);
  await page.locator(loaded).first().waitFor();
  await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
  const shift = await page.evaluate(() => globalThis.layoutShift);
  await page.close();
  return { bytes, shift };
}

test('the first visit of each page is small, and its content does not shift', async (t) => {
  const runs = JSON.parse(execFileSync('python3', [fixture, path.join(scratch, 'state')]));
  const jobs = await Promise.all(['blas', 'fused'].map((engine) => submit({ kind: 'train', dataset: 'synthetic', engine,
    epochs: 1, warmup_epochs: 0, max_images: 64, passes: ['timing', 'activity'] })));
  const [first, second] = (await Promise.all(jobs.map(finish))).map((job) => job.runs[0].id);
  for (const [where, loaded = 'body[data-loaded]'] of [
    ['/', '#jobs tbody tr'], [`/job.html?id=${jobs[0]}`, 'body[data-loaded="completed"]'], [`/report.html?run=${runs.a}`],
    [`/compare.html?a=${first}&b=${second}`], [`/compare.html?a=${runs.a}&b=${runs.b}`],
    [`/history.html?job=${jobs[0]}&run=${first}`], ['/suites.html'],
  ]) {
    const { bytes, shift } = await measure(where, loaded);
    t.diagnostic(`${where}: ${bytes} bytes, layout shift ${shift.toFixed(3)}`);
    assert.ok(bytes <= (where === '/' ? MAX_MAIN_PAGE_BYTES : MAX_PAGE_BYTES), `${where} transfers ${bytes} bytes`);
    assert.ok(bytes > 1024, `${where}: no bytes were counted`);
    assert.ok(shift <= MAX_LAYOUT_SHIFT, `${where} shifts by ${shift.toFixed(3)}`);
  }
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
