// The job page of kernel jobs: a GPU job that is inserted into the database, and a job that runs on the CPU.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { before, test } from 'node:test';
import { browserErrors, daemon, waitForEnd, fitsWidth, openPage, scratch, submit, takeScreenshot } from './harness.mjs';

const fixture = path.join(process.env.ROOFLINED_SOURCE, 'tests/api/timed_runs.py');
// SCALE_US: end of the scale of bars, which is 2 % above the upper quartile of the slowest variant. FLOOR_US: as in
// timed_runs.py.
const [SCALE_US, FLOOR_US] = [27 * 1.02, 19.38];
let inserted;

before(() => { inserted = Number(execFileSync('python3', [fixture, path.join(scratch, 'state')])); });

async function openJob(id, options) {
  const page = await openPage(`${daemon.url}/job.html?id=${id}`, options);
  await page.locator('body[data-loaded="completed"]').waitFor();
  return page;
}
const card = (page, title) => page.locator('#bars > .panel').filter({ has: page.locator('h3', { hasText: title }) });
const values = (page, title) => card(page, title).locator('.bar').evaluateAll((rows) => rows.map((row) =>
  [row.querySelector('.of'), ...row.querySelectorAll('.value')].map((one) => one.textContent)));

test('every variant has cold and warm times, rates, and percentages of its bound', async () => {
  const page = await openJob(inserted);
  assert.deepEqual(await values(page, 'Time, cold cache'),
    [['scalar', '26.00 µs', '74.54 %'], ['vector', '20.40 µs', '95.00 %'], ['capped_registers', '9.00 µs', '215.33 %']]);
  assert.deepEqual((await values(page, 'Time, warm cache'))[0], ['scalar', '12.00 µs', '66.67 %']);
  assert.deepEqual((await values(page, 'Bandwidth, cold cache'))[1], ['vector', '822.4 GB/s', '95.00 %']);
  assert.deepEqual((await values(page, 'Rate, cold cache'))[1], ['vector', '205.6 GFLOP/s', '95.00 %']);
  const properties = await page.locator('#reasons li').first().innerText();
  assert.match(properties, /^fp16 n=4194304 · engine cuda · 5 samples in each cache mode · SM clock 1.965 to 1.980 MHz · /);
  assert.doesNotMatch(await page.locator('#provenance-table').innerText(), /dataset|epoch/, 'only training jobs have these');
  await takeScreenshot(page, 'timings-light');
  await page.close();
});

test('bars, spread and bound match the measurements', async () => {
  const page = await openJob(inserted);
  const rows = await card(page, 'Time, cold cache').locator('.bar').evaluateAll((all) => all.map((row) => {
    const track = row.querySelector('.track').getBoundingClientRect();
    const fraction = (x) => (x - track.left) / track.width;
    const [fill, spread, bound] = ['.fill', '.spread', '.bound'].map((name) => row.querySelector(name).getBoundingClientRect());
    return {
      median: fraction(fill.right), low: fraction(spread.left), high: fraction(spread.right), bound: fraction(bound.left),
    };
  }));
  const expected = [{ median: 26, low: 25, high: 27, bound: FLOOR_US }, { median: 20.4, low: 20.2, high: 20.6, bound: FLOOR_US }];
  for (const [index, us] of expected.entries()) {
    for (const [name, value] of Object.entries(us)) {
      assert.ok(Math.abs(rows[index][name] - value / SCALE_US) < 0.005, `${name} of ${index}: ${rows[index][name]}`);
    }
  }
  await page.close();
});

test('a comparison of two runs matches the API', async () => {
  const runs = (await waitForEnd(inserted)).runs.map((run) => run.id);
  const compare = async (one, other) => {
    const page = await openPage(`${daemon.url}/compare.html?a=${one}&b=${other}`);
    await page.locator('body[data-loaded]').waitFor();
    return page;
  };
  const page = await compare(runs[0], runs[1]);
  assert.equal(await page.locator('#verdict').innerText(),
    'vector is 1.27× as fast as scalar (cold cache), 1.00× (warm cache)');
  assert.equal(await card(page, 'Time, cold cache').locator('h3 span').innerText(), '1.27×');
  await takeScreenshot(page, 'two-kernels-light');
  await page.close();
  const suspect = await compare(runs[1], runs[2]);
  assert.match(await suspect.locator('#verdict').innerText(),
    /^capped_registers can’t be compared with vector: capped_registers is suspect\.$/);
  assert.match(await suspect.locator('#reasons').innerText(), /9 us is less than the floor/);
  await suspect.close();
});

test('the summary ignores suspect variants', async () => {
  const page = await openJob(inserted);
  assert.equal(await page.locator('#verdict').innerText(), 'vector: 20.40 µs, 822.4 GB/s, 95.00 % of the measured DRAM copy '
    + 'bandwidth (cold cache). Fastest of 2, 1 suspect not counted; scalar takes 1.27× as long.');
  assert.deepEqual(await page.locator('#reasons .bad').allInnerTexts(),
    ['capped_registers, 5 of 5 cold samples are suspect: 9 us is less than the floor of 19.38 us',
      'Likely cause: the ceilings.']);
  await page.close();
});

test('the table has the spread of the samples', async () => {
  const page = await openJob(inserted);
  await page.locator('#times summary').click();
  const [scalar] = await page.locator('#time-table tbody tr').evaluateAll((rows) =>
    rows.map((row) => [...row.cells].map((cell) => cell.innerText)));
  assert.deepEqual(scalar, ['scalar', 'cold', '26.00 µs', '24.00 µs', '25.00 µs', '27.00 µs', '80.00 µs', '5.70 %',
    '19.38 µs', '74.54 %', 'measured DRAM copy bandwidth']);
  await page.close();
});

test('without ceilings there is no bound, and the page gives the reason', async () => {
  const id = await submit({ kind: 'kernel', kernel: 'copy', dtype: 'fp32', shape: { n: 4096 }, variant: 'vector', samples: 3,
    device: 'cpu' });
  await waitForEnd(id);
  const page = await openJob(id);
  assert.match(await page.locator('#verdict').innerText(), /^vector: [\d.]+ (µs|ms) \(cold cache\)$/);
  const [[name, time, share]] = await values(page, 'Time, cold cache');
  assert.deepEqual([name, /^[\d.]+ (µs|ms)$/.test(time), share], ['vector', true, '—']);
  assert.equal(await page.locator('#bars .bound').count(), 0);
  assert.equal(await card(page, 'Rate').count(), 0, 'a copy computes nothing');
  assert.match(await page.locator('#reasons').innerText(), /vector: % of bound: no ceilings of this device/);
  await page.close();
});

test('a ceilings job says whether other processes disturbed it', async () => {
  const id = await submit({ kind: 'ceilings', samples: 1, device: 'cpu' });
  await waitForEnd(id);
  for (const [ratio, processors, shown] of [[0.05, 0.5, false], [0.87, 1.74, true]]) {
    execFileSync('python3', ['-c', `import sqlite3
with sqlite3.connect(${JSON.stringify(path.join(scratch, 'state', 'rooflined.db'))}, timeout=60) as database:
    database.execute("UPDATE measurements SET value = ${ratio} WHERE name = 'other_processes_cpu_time_ratio'")
    database.execute("UPDATE measurements SET value = ${processors} WHERE name = 'other_processes_busy_processors'")`]);
    await new Promise((resolve) => { setTimeout(resolve, 1100); }); // equal requests within a second get the same body
    const page = await openJob(id);
    assert.equal(await page.locator('#disturbed').isVisible(), shown);
    const use = /^other processes, interrupts or the hypervisor used 87\.0 % of the processors' time \(1\.74 processors\)/;
    if (shown) assert.match(await page.locator('#disturbed').innerText(), use);
    assert.match(await page.locator('#measurement-table').innerText(), /Processor time of other processes/);
    await page.close();
  }
});

test('the page fits a phone in dark mode', async () => {
  const page = await openJob(inserted, { viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
  assert.ok(await fitsWidth(page), 'the page scrolls horizontally');
  await takeScreenshot(page, 'timings-360');
  await page.close();
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
