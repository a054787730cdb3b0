// The timeline of a job: a run whose epoch is one launch with phases, inserted into the database of a real daemon, and a run on
// the CPU.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';
import { browserErrors, daemon, finish, fitsWidth, openPage, scratch, submit, takeScreenshot } from './harness.mjs';

const fixture = path.join(process.env.ROOFLINED_SOURCE, 'tests/api/traced_run.py');
const PHASES = ['conv1_forward', 'conv2_forward', 'head', 'conv2_input_gradient', 'conv1_backward', 'adam', 'update_barrier'];
const FIRST_NS = 12000; // as in traced_run.py, like STEP_NS
const STEP_NS = 16600;
let inserted, ranged;

const insert = (script) => JSON.parse(execFileSync('python3', [script, path.join(scratch, 'state')]));
before(() => {
  inserted = insert(fixture);
  ranged = insert(path.join(path.dirname(fixture), 'ranged_run.py'));
});

const train = (passes) => submit({ kind: 'train', dataset: 'synthetic', epochs: 1, warmup_epochs: 0, max_images: 640,
  precisions: ['fp32'], passes });
async function openJob(id, options) {
  const page = await openPage(`${daemon.url}/job.html?id=${id}`, options);
  await page.locator('body[data-loaded="completed"]').waitFor();
  return page;
}
const bars = (page, name) => page.locator(`#timeline-chart .span[data-name="${name}"]`);
const titles = (page, name) => bars(page, name).evaluateAll((all) => all.map((one) => one.querySelector('title').textContent));

test('every number fits its cell', async () => {
  const page = await openJob(inserted.job);
  const cells = await page.locator('#kernel-table td, #phase-table td').evaluateAll((all) => all.filter((one) =>
    one.scrollWidth > one.clientWidth && !one.matches('.name')).map((one) => one.innerText));
  assert.deepEqual(cells, []);
  await page.close();
});

test('phases of the first two steps are inside their launch', async () => {
  const page = await openJob(inserted.job);
  assert.match((await titles(page, 'conv2_input_gradient'))[1], /^conv2_input_gradient, step 1 \(backward\): 6\.00 µs from /);
  const launch = await bars(page, 'persistent_epoch').locator('rect').boundingBox();
  const boxes = await page.locator('#timeline-chart .span rect').evaluateAll((all) => all.map((one) => {
    const { x, width, y } = one.getBoundingClientRect();
    return { x, width, y, name: one.parentElement.dataset.name, title: one.previousSibling.textContent };
  }));
  const phases = boxes.filter((box) => /, step [01] /.test(box.title)).sort((a, b) => a.x - b.x);
  assert.deepEqual(phases.map((box) => box.name), [...PHASES, ...PHASES]);
  for (const [index, box] of phases.entries()) {
    assert.ok(box.x >= launch.x - 1 && box.x + box.width <= launch.x + launch.width + 1, box.name);
    assert.equal(box.y, phases[0].y, 'one after another on one line');
    if (index > 0) assert.ok(Math.abs(box.x - phases[index - 1].x - phases[index - 1].width) < 2, box.name);
  }
  const width = (name) => phases.find((box) => box.name === name).width;
  assert.ok(Math.abs(width('conv2_input_gradient') / width('conv1_forward') - 2) < 0.05, 'as long as they took');
  assert.deepEqual(await page.locator('#timeline-legend li').allInnerTexts(), ['forward', 'backward', 'optimizer']);
  await takeScreenshot(page, 'timeline-light');
  await page.close();
});

test('classes of time add up, and show their longest interval', async () => {
  const page = await openJob(inserted.job);
  await page.locator('#time-class-table tbody tr').first().waitFor();
  const rows = await page.locator('#time-class-table tbody tr').evaluateAll((all) =>
    all.map((row) => [...row.cells].map((cell) => cell.innerText)));
  assert.deepEqual(rows.map(([name, time, , intervals]) => [name, time, intervals]), [['Kernels', '402.0 µs', ''],
    ['Copies alone', '0.500 µs', ''], ['Idle: a copy starts', '1.50 µs', '2']]);
  assert.equal(await page.locator('#timeline-findings li').count(), 0, 'an idle share below 5 % is no finding');
  const before = await page.locator('#timeline-window').innerText();
  await page.getByRole('button', { name: /^1\.00 µs before/ }).click();
  await page.locator('#timeline-window', { hasNotText: before }).waitFor();
  assert.equal(await bars(page, 'memset').count(), 1);
  await page.close();
});

test('the time of ranges is nested, with their idle time', async () => {
  const page = await openJob(ranged.job);
  const rows = await page.locator('#range-table tbody tr').evaluateAll((all) =>
    all.map((row) => [...row.cells].map((cell) => cell.innerText)));
  assert.deepEqual(rows, [
    ['epoch', '90.00 µs', '100.00 %', '30.00 µs', '25.00 µs: Idle: the host works between launches'],
    ['forward', '60.00 µs', '66.67 %', '30.00 µs', '25.00 µs: Idle: the host works between launches']]);
  await takeScreenshot(page, 'timeline-ranges');
  await page.close();
  const other = await openJob(inserted.job);
  await other.locator('#time-class-table tbody tr').first().waitFor();
  assert.ok(await other.locator('#range-times').isHidden(), 'a trace without ranges');
  await other.close();
});

test('the table has all phases and their sum, the step', async () => {
  const page = await openJob(inserted.job);
  const textOf = (rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText));
  const cells = await page.locator('#phase-table tbody tr').evaluateAll(textOf);
  assert.deepEqual(cells.slice(0, -1).map(([name]) => name), PHASES);
  assert.deepEqual(cells[0], ['conv1_forward', 'forward', '18.07 %', '3.00 µs', '1.50 µs', '6.00 µs']);
  assert.deepEqual(cells.at(-1).filter(Boolean), ['step', '16.60 µs']);
  const note = await page.locator('#phase-note').innerText();
  assert.match(note, /128 blocks and the first 4 steps .* has 2 microbatches\. .* block 0, aligned within ±1\.25 µs\./);
  await page.close();
});

test('buttons, keys and bars move and zoom the timeline', async () => {
  const page = await openJob(inserted.job);
  const shown = async () => {
    const [, span, from] = /([\d.]+) µs from ([\d.]+) µs/.exec(await page.locator('#timeline-window').innerText());
    return { span: Number(span), from: Number(from) };
  };
  const changed = async (act) => {
    const old = await page.locator('#timeline-window').innerText();
    await act();
    await page.waitForFunction((text) => document.getElementById('timeline-window').textContent !== text, old);
    return shown();
  };
  const first = await shown();
  assert.ok(Math.abs(first.span - 2 * STEP_NS / 1e3 * 1.08) < 0.2 && first.from < FIRST_NS / 1e3, JSON.stringify(first));
  const later = await changed(() => page.getByRole('button', { name: 'Later' }).click());
  assert.ok(Math.abs(later.from - first.from - first.span / 2) < 0.2 && await bars(page, 'adam').count() > 0);
  const closer = await changed(() => page.getByRole('button', { name: 'Zoom in' }).click());
  assert.ok(Math.abs(closer.span - first.span / 2) < 0.2);
  await page.locator('#timeline-chart').focus();
  const wider = await changed(() => page.keyboard.press('-'));
  assert.ok(Math.abs(wider.span - first.span) < 0.2);
  const back = await changed(() => page.keyboard.press('ArrowLeft'));
  assert.ok(Math.abs(back.from - first.from) < 0.2);
  const one = await changed(() => bars(page, 'conv2_forward').first().click());
  assert.ok(Math.abs(one.span - 2.5 * 1.08) < 0.01);
  for (let i = 0; i < 12; i += 1) await page.getByRole('button', { name: 'Zoom out' }).click();
  await page.waitForFunction(() => document.querySelector('#timeline-chart .span[data-name="shuffle"]'));
  assert.equal(await bars(page, 'adam').count(), 4);
  await page.close();
});

test('the selected run can be downloaded as a trace for Perfetto', async () => {
  const page = await openJob(inserted.job);
  const downloading = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Trace for Perfetto' }).click();
  const download = await downloading;
  assert.equal(download.suggestedFilename(), `job-${inserted.job}-run-${inserted.run}.perfetto-trace`);
  assert.ok(readFileSync(await download.path()).includes('adam')); // tests/api/test_exports.py reads the whole format
  await page.close();
});

test('a run of launches has a timeline without phases', async () => {
  const id = await train(['timing', 'activity']);
  await finish(id);
  const page = await openJob(id);
  await bars(page, 'gather').first().waitFor();
  assert.equal(await page.locator('#phases').isVisible(), false);
  assert.deepEqual(await page.locator('#timeline-legend li').allInnerTexts(), ['forward', 'backward', 'optimizer', 'data']);
  await takeScreenshot(page, 'timeline-cpu');
  await page.close();
});

test('without a trace there is no timeline', async () => {
  const id = await train(['timing']);
  await finish(id);
  const page = await openJob(id);
  assert.equal(await page.locator('#timeline').isVisible(), false);
  await page.close();
});

test('the page fits a phone in dark mode', async () => {
  const page = await openJob(inserted.job, { viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
  await bars(page, 'adam').first().waitFor();
  assert.ok(await fitsWidth(page), 'the page scrolls horizontally');
  await takeScreenshot(page, 'timeline-360');
  await page.close();
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
