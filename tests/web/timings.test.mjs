// The job page of kernel jobs: one as a GPU would have left it, and one that the CPU did.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { before, test } from 'node:test';
import { complaints, daemon, finish, noSidewaysScroll, open, scratch, shoot, submit } from './harness.mjs';

const fixture = path.join(process.env.ROOFLINED_SOURCE, 'tests/api/timed_runs.py');
const [SCALE_US, FLOOR_US] = [27 * 1.02, 19.38]; // the upper quartile of the slowest, and a little air; timed_runs.py's floor
let made;

before(() => { made = Number(execFileSync('python3', [fixture, path.join(scratch, 'state')])); });

async function openJob(id, options) {
  const page = await open(`${daemon.url}/job.html?id=${id}`, options);
  await page.locator('body[data-loaded="completed"]').waitFor();
  return page;
}
const card = (page, title) => page.locator('#bars > .panel').filter({ has: page.locator('h3', { hasText: title }) });
const values = (page, title) => card(page, title).locator('.bar').evaluateAll((rows) => rows.map((row) =>
  [row.querySelector('.of'), ...row.querySelectorAll('.value')].map((one) => one.textContent)));

test('every variant has its cold and warm times and its rates, beside what the model allows', async () => {
  const page = await openJob(made);
  assert.deepEqual(await values(page, 'Time, cold cache'),
    [['scalar', '26.00 µs', '74.54 %'], ['vector', '20.40 µs', '95.00 %'], ['capped_registers', '9.00 µs', '215.33 %']]);
  assert.deepEqual((await values(page, 'Time, warm cache'))[0], ['scalar', '12.00 µs', '66.67 %']);
  assert.deepEqual((await values(page, 'Bandwidth, cold cache'))[1], ['vector', '822.4 GB/s', '95.00 %']);
  assert.deepEqual((await values(page, 'Rate, cold cache'))[1], ['vector', '205.6 GFLOP/s', '95.00 %']);
  const facts = await page.locator('#reasons li').first().innerText();
  assert.match(facts, /^fp16 n=4194304 · engine cuda · 5 samples in each cache mode · SM clock 1.965 to 1.980 MHz · /);
  assert.doesNotMatch(await page.locator('#provenance-table').innerText(), /dataset|epoch/, 'these are of training');
  await shoot(page, 'timings-light');
  await page.close();
});

test('bars, spread and bound stand where the numbers say', async () => {
  const page = await openJob(made);
  const rows = await card(page, 'Time, cold cache').locator('.bar').evaluateAll((all) => all.map((row) => {
    const track = row.querySelector('.track').getBoundingClientRect();
    const at = (x) => (x - track.left) / track.width;
    const [fill, spread, bound] = ['.fill', '.spread', '.bound'].map((name) => row.querySelector(name).getBoundingClientRect());
    return { median: at(fill.right), low: at(spread.left), high: at(spread.right), bound: at(bound.left) };
  }));
  const expected = [{ median: 26, low: 25, high: 27, bound: FLOOR_US }, { median: 20.4, low: 20.2, high: 20.6, bound: FLOOR_US }];
  for (const [index, us] of expected.entries()) {
    for (const [name, value] of Object.entries(us)) {
      assert.ok(Math.abs(rows[index][name] - value / SCALE_US) < 0.005, `${name} of ${index}: ${rows[index][name]}`);
    }
  }
  await page.close();
});

test('two runs are told as the API compares them', async () => {
  const runs = (await finish(made)).runs.map((run) => run.id);
  const compare = async (one, other) => {
    const page = await open(`${daemon.url}/compare.html?a=${one}&b=${other}`);
    await page.locator('body[data-loaded]').waitFor();
    return page;
  };
  const page = await compare(runs[0], runs[1]);
  assert.equal(await page.locator('#verdict').innerText(),
    'vector is 1.27 times as fast as scalar with a cold cache, 1.00 times with a warm one.');
  assert.equal(await card(page, 'Time, cold cache').locator('h3 span').innerText(), '1.27×');
  await shoot(page, 'two-kernels-light');
  await page.close();
  const suspect = await compare(runs[1], runs[2]);
  assert.match(await suspect.locator('#verdict').innerText(),
    /^capped_registers can’t be compared with vector: .*is suspect: 9 us/);
  await suspect.close();
});

test('the sentence is of what is not suspect', async () => {
  const page = await openJob(made);
  assert.equal(await page.locator('#verdict').innerText(), 'vector is the fastest with a cold cache: 20.40 µs, 95.00 % '
    + 'of the model’s speed. The next, scalar, takes 1.27 times as long.');
  assert.equal(await page.locator('#reasons .bad').innerText(),
    'capped_registers, 5 of 5 cold samples are suspect: 9 us is less than the floor of 19.38 us');
  await page.close();
});

test('the table has the samples’ spread', async () => {
  const page = await openJob(made);
  await page.locator('#times summary').click();
  const [scalar] = await page.locator('#time-table tbody tr').evaluateAll((rows) =>
    rows.map((row) => [...row.cells].map((cell) => cell.innerText)));
  assert.deepEqual(scalar, ['scalar', 'cold', '26.00 µs', '24.00 µs', '25.00 µs', '27.00 µs', '80.00 µs', '5.70 %',
    '19.38 µs', '74.54 %']);
  await page.close();
});

test('without ceilings there is no bound, and the page says why', async () => {
  const id = await submit({ kind: 'kernel', kernel: 'copy', dtype: 'fp32', shape: { n: 4096 }, variant: 'vector', samples: 3,
    device: 'cpu' });
  await finish(id);
  const page = await openJob(id);
  assert.match(await page.locator('#verdict').innerText(), /^With a cold cache vector takes [\d.]+ (µs|ms)\.$/);
  const [[name, time, share]] = await values(page, 'Time, cold cache');
  assert.deepEqual([name, /^[\d.]+ (µs|ms)$/.test(time), share], ['vector', true, '—']);
  assert.equal(await page.locator('#bars .bound').count(), 0);
  assert.equal(await card(page, 'Rate').count(), 0, 'a copy computes nothing');
  assert.match(await page.locator('#reasons').innerText(), /vector: floor_cold_us, floor_warm_us: no ceilings of this device/);
  await page.close();
});

test('a phone is wide enough, in the dark', async () => {
  const page = await openJob(made, { viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
  assert.ok(await noSidewaysScroll(page), 'it scrolls sideways');
  await shoot(page, 'timings-360');
  await page.close();
});

test('no page complained', () => assert.deepEqual(complaints, []));
