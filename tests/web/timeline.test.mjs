// The timeline of a job: a run whose epoch is one launch with phases, inserted into the database of a real daemon, and a run on
// the CPU.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { browserErrors, daemon, findInaccessible, waitForEnd, fitsWidth, openPage, scratch, submit, takeScreenshot }
  from './harness.mjs';

const fixture = path.join(process.env.ROOFLINED_SOURCE, 'tests/api/traced_run.py');
const PHASES = ['conv1_forward', 'conv2_forward', 'head', 'conv2_input_gradient', 'conv1_backward', 'adam', 'update_barrier'];
// Start of the first step, and duration of a step, as in traced_run.py.
const FIRST_NS = 12000;
const STEP_NS = 16600;
let inserted, ranged;

const state = path.join(scratch, 'state');
const insert = (script) => JSON.parse(execFileSync('python3', [script, state]));
/** Inserts a run with the kernels that Python code returns as a list. */
const insertKernels = (code) => JSON.parse(execFileSync('python3', ['-c', `import json, ranged_run
from traced_run import kernel
print(json.dumps(ranged_run.insert("${state}", kernels=${code})))`], { cwd: path.dirname(fixture) }));
before(() => {
  inserted = insert(fixture);
  ranged = insert(path.join(path.dirname(fixture), 'ranged_run.py'));
});

const train = (passes) => submit({ kind: 'train', epochs: 1, warmup_epochs: 0, max_images: 640, precisions: ['fp32'], passes });
async function openJob(id, { hash = '', ...options } = {}) {
  const page = await openPage(`${daemon.url}/job.html?id=${id}${hash}`, options);
  await page.locator('body[data-loaded="completed"]').waitFor();
  return page;
}
/** Scrolls the timeline to the top of the viewport, because mouse events have viewport coordinates. */
const showTimeline = (page) =>
  page.locator('#timeline-minimap').evaluate((element) => element.scrollIntoView({ block: 'start' }));
/** Waits until the window is drawn, loaded at its resolution and no longer changing. */
const waitUntilSettled = (page) => page.locator('#timeline-canvas[data-loaded="true"][data-settled="true"]').waitFor();
async function showSettledTimeline(page) {
  await waitUntilSettled(page);
  await showTimeline(page);
}

/** Returns the shown window in µs. */
async function shownWindow(page) {
  const [, span, from] = /([\d.]+) µs, starting at ([\d.]+) µs/.exec(await page.locator('#timeline-window').innerText());
  return { span: Number(span), from: Number(from) };
}

/** Calls `act`, and returns the window in µs after it has changed and settled. */
async function windowAfter(page, act) {
  const old = await page.locator('#timeline-window').innerText();
  await act();
  await page.waitForFunction((text) => document.getElementById('timeline-window').textContent !== text, old);
  await waitUntilSettled(page);
  return shownWindow(page);
}
const assertNear = (value, expected, tolerance = 0.2) =>
  assert.ok(Math.abs(value - expected) <= tolerance, `${value} is not ${expected}`);

/** Returns the rows of the table of events: [event, lane, start, duration, busy]. */
async function eventRows(page) {
  await showSettledTimeline(page);
  await page.locator('#timeline-events').evaluate((details) => { details.open = true; });
  await page.locator('#timeline-event-table tbody tr').first().waitFor();
  await waitUntilSettled(page);
  return page.locator('#timeline-event-table tbody tr').evaluateAll((all) =>
    all.map((row) => [...row.cells].map((cell) => cell.innerText)));
}

const TITLE_PX = 128; // width of the lanes' titles
/** Returns the place of a time on the screen, in the lane with this number from the top. */
async function placeOf(page, us, lane) {
  const { x, y, width } = await page.locator('#timeline-canvas').boundingBox(), { span, from } = await shownWindow(page);
  return { x: x + TITLE_PX + ((us - from) / span) * (width - TITLE_PX), y: y + 26 + 26 + 28 * lane + 9 };
}

test('every number fits its cell', async () => {
  const page = await openJob(inserted.job);
  const cells = await page.locator('#kernel-table td, #phase-table td').evaluateAll((all) => all.filter((one) =>
    one.scrollWidth > one.clientWidth && !one.matches('.name')).map((one) => one.innerText));
  assert.deepEqual(cells, []);
  await page.close();
});

test('phases of the first two steps are inside their launch', async () => {
  const page = await openJob(inserted.job);
  const rows = await eventRows(page);
  assert.deepEqual(rows.filter(([, lane]) => lane === 'Kernels, stream 7').map(([name]) => name), ['persistent_epoch']);
  const phases = rows.filter(([, lane]) => lane === 'Phases, stream 7');
  assert.deepEqual(phases.slice(0, 2 * PHASES.length).map(([name]) => name), [...PHASES, ...PHASES]);
  assert.deepEqual(phases[3], ['conv2_input_gradient', 'Phases, stream 7', '18.40 µs', '6.00 µs', '6.00 µs']);
  const legend = await page.locator('#timeline-legend li').allInnerTexts();
  assert.ok(legend[0] === 'persistent_epoch' && legend.includes('conv2_input_gradient'), legend.join());
  await takeScreenshot(page, 'timeline-light');
  await page.close();
});

test('bars are drawn at their times, each name in its colour', async () => {
  const page = await openJob(inserted.job);
  await showSettledTimeline(page);
  const [calls, kernels, phases] = [0, 1, 2], secondStep = STEP_NS / 1e3;
  const places = [[23, phases], [23 + secondStep, phases], [25, phases], [23, kernels], [23, calls], [11, phases]];
  const box = await page.locator('#timeline-canvas').boundingBox(), points = [];
  for (const [us, lane] of places) {
    const { x, y } = await placeOf(page, us, lane);
    points.push([Math.round(x - box.x), Math.round(y - box.y) + 7]);
  }
  const [gradient, nextStep, nextPhase, launch, call, before] = await page.locator('#timeline-canvas').evaluate((canvas, all) => {
    const { data, width } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return all.map(([x, y]) => [...data.slice(4 * (y * width + x), 4 * (y * width + x) + 4)].join());
  }, points);
  assert.equal(nextStep, gradient, 'conv2_input_gradient, from 18.4 to 24.4 µs, and in the next step');
  assert.notEqual(nextPhase, gradient);
  assert.notEqual(launch, gradient);
  assert.equal(call, '0,0,0,0', 'no call is in progress');
  assert.equal(before, '0,0,0,0', 'before the first phase');
  await page.close();
});

test('ticks are 1, 2 or 5 times a power of ten apart', async () => {
  const page = await openJob(inserted.job);
  const distances = await page.evaluate(async () => {
    const { tickDistance } = await import('/lib/timeline/draw.js');
    return [[100, 2], [35_860, 8], [400_000, 8], [900e6, 8], [3600e9, 4]].map(([ns, count]) => tickDistance(ns, count));
  });
  assert.deepEqual(distances, [50, 5_000, 50_000, 200e6, 1000e9]);
  await page.close();
});

test('kernels of a stream are never drawn as if they were concurrent', async () => {
  const page = await openJob(inserted.job);
  const bars = await page.evaluate(async () => {
    const { decodeLane, visitBars } = await import('/lib/timeline/lanes.js');
    const count = 2000, start = [], duration = [];
    for (let i = 0, at = 0; i < count; i += 1) {
      start.push(at);
      duration.push(Math.floor(Math.random() * 900));
      at += Math.floor(Math.random() * 600);
    }
    const same = (value) => Array(count).fill(value);
    const lane = decodeLane({ kind: 'kernels', device: 0, stream: 7, thread: null, depths: 1, start_ns: start,
      duration_ns: duration, events: same(1), busy_ns: duration, depth: same(0), name: same(0) });
    const drawn = [];
    for (const pixels of [5, 300, 20000]) {
      let last = -Infinity;
      visitBars(lane, { from: 0, to: start.at(-1) }, (ns) => (ns / start.at(-1)) * pixels, (i, left, right) => {
        drawn.push({ overlaps: left < last - 1e-9, isEmpty: right <= left });
        last = right;
      });
    }
    return drawn;
  });
  assert.ok(bars.length > 500, `${bars.length} bars`);
  assert.deepEqual(bars.filter((bar) => bar.overlaps || bar.isEmpty), []);
  await page.close();
});

test('classes of time add up, and show their longest interval', async () => {
  const page = await openJob(inserted.job);
  await page.locator('#time-class-table tbody tr').first().waitFor();
  const rows = await page.locator('#time-class-table tbody tr').evaluateAll((all) =>
    all.map((row) => [...row.cells].map((cell) => cell.innerText)));
  assert.deepEqual(rows.map(([name, time, , intervals]) => [name, time, intervals]), [['Kernels', '402.0 µs', ''],
    ['Copies alone', '500.0 ns', ''], ['Idle: the device starts queued work', '1.50 µs', '2']]);
  assert.equal(await page.locator('#timeline-findings li').count(), 0, 'an idle share below 5 % is no finding');
  const shown = await windowAfter(page, () => page.getByRole('button', { name: /^1\.00 µs before/ }).click());
  assert.ok(shown.from < 9 && shown.from + shown.span > 10, 'the interval from 9 to 10 µs');
  assert.match(await page.locator('#selection-window').innerText(), /^1\.00 µs, starting at 9\.00 µs$/);
  await page.close();
});

test('an idle interval is marked at its place, and a click zooms to it', async () => {
  const page = await openJob(ranged.job);
  await showSettledTimeline(page);
  const row = page.locator('#time-class-table tbody tr', { hasText: 'the host works' });
  const [, from, to] = /\d/.test(await row.innerText()) ? [0, 35, 60] : [];
  const box = await page.locator('#timeline-canvas').boundingBox(), { x } = await placeOf(page, (from + to) / 2, 0);
  await page.mouse.move(x, box.y + 26 + 8);
  assert.match(await page.locator('#timeline-tooltip').innerText(), /host works\s+25\.00 µs, starting at 35\.00 µs/);
  const shown = await windowAfter(page, () => page.mouse.click(x, box.y + 26 + 8));
  assert.ok(shown.from < 35 && shown.from + shown.span > 60 && shown.span < 60, JSON.stringify(shown));
  const finding = page.locator('#timeline-findings li', { hasText: 'The device waits for host code' });
  await windowAfter(page, () => page.getByRole('button', { name: 'All', exact: true }).click());
  const found = await windowAfter(page, () => finding.getByRole('button').click());
  assertNear(found.from, shown.from);
  await page.close();
});

test('the time of ranges is listed by name, with their number and idle time', async () => {
  const page = await openJob(ranged.job);
  const rows = await page.locator('#range-times tbody tr').evaluateAll((all) =>
    all.map((row) => [...row.cells].map((cell) => cell.innerText)));
  assert.deepEqual(rows, [
    ['epoch', '1', '90.00 µs', '100.00 %', '30.00 µs', '30.00 µs', '25.00 µs: Idle: the host works between launches'],
    ['forward', '1', '60.00 µs', '66.67 %', '30.00 µs', '30.00 µs', '25.00 µs: Idle: the host works between launches']]);
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

test('a kernel whose symbol several launches share has the name of each', async () => {
  const page = await openJob(insertKernels(
    '[kernel("q", "attention", "gemm", 30, 1 / 3), kernel("down", "feed_forward", "gemm", 30, 1 / 3)]').job);
  await showSettledTimeline(page);
  assert.deepEqual((await page.locator('#timeline-legend li').allInnerTexts()).sort(), ['cudaLaunchKernel', 'q, down']);
  await page.locator('#timeline-canvas').focus();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', '.']) await page.keyboard.press(key);
  assert.match(await page.locator('#timeline-spoken').textContent(),
    /^gemm, q or down; attention or feed_forward, Kernels, stream 7, 30\.00 µs, starting at 5\.00 µs$/);
  await page.close();
});

test('the parts of a step have different colours, and a long name leaves its share in view', async () => {
  const page = await openJob(insertKernels('[kernel(None, None, str(i) * 300, 9, 0.09 + i / 1000) for i in range(9)]').job);
  const rows = await page.locator('#step-time-bars tbody tr').evaluateAll((all) => all.map((row) => ({
    name: row.cells[0].innerText, title: row.cells[0].title,
    colour: getComputedStyle(row.querySelector('.key')).backgroundColor })));
  assert.deepEqual(rows.map(({ name }) => (/^\d/.test(name) ? name[0] : name)),
    ['8', '7', '6', '5', '4', '3', 'others', 'no kernel']);
  assert.equal(new Set(rows.map(({ colour }) => colour)).size, rows.length);
  assert.equal(rows[0].title, '8'.repeat(300));
  for (const viewportWidth of [1280, 390]) {
    await page.setViewportSize({ width: viewportWidth, height: 900 });
    const { x, width } = await page.locator('#step-time-bars .scroll').boundingBox();
    const share = await page.locator('#step-time-bars tbody td').first().boundingBox();
    assert.ok(share.x + share.width <= x + width, `the share ends at ${share.x + share.width} of ${x + width} pixels`);
  }
  await page.close();
});

test('labels of different symbols differ', async () => {
  const page = await openJob(ranged.job);
  const labels = await page.evaluate(async () => {
    const { symbolLabel } = await import('/lib/timeline/names.js');
    const kernels = [{ launch: 'q', name: 'gemm<1>(int)' }, { launch: 'down', name: 'gemm<1>(int)' },
      { launch: 'down', name: 'split_k(int)' }, { launch: 'norm', name: 'rows(int)' }, { name: 'f<1>(int)' },
      { name: 'f<2>(int)' }];
    return [...new Set(kernels.map(({ name }) => name))].map((name) => symbolLabel(name, kernels));
  });
  assert.deepEqual(labels, ['q, down · gemm', 'down · split_k', 'norm', 'f<1>(int)', 'f<2>(int)']);
  await page.close();
});

test('buttons and keys move and zoom the timeline', async () => {
  const page = await openJob(inserted.job);
  await showSettledTimeline(page);
  const first = await shownWindow(page);
  assertNear(first.span, 2 * STEP_NS / 1e3 * 1.08);
  assert.ok(first.from < FIRST_NS / 1e3);
  const press = (key) => windowAfter(page, () => page.keyboard.press(key));
  const later = await windowAfter(page, () => page.getByRole('button', { name: 'Later' }).click());
  assertNear(later.from, first.from + first.span / 2);
  const closer = await windowAfter(page, () => page.getByRole('button', { name: 'Zoom in' }).click());
  assertNear(closer.span, first.span / 2);
  await page.locator('#timeline-canvas').focus();
  for (const [zoomIn, zoomOut] of [['w', 's'], ['+', '-']]) {
    assertNear((await press(zoomIn)).span, closer.span * 0.6);
    assertNear((await press(zoomOut)).span, closer.span);
  }
  for (const [right, left] of [['d', 'a'], ['ArrowRight', 'ArrowLeft']]) {
    assertNear((await press(right)).from, closer.from + 0.2 * closer.span);
    assertNear((await press(left)).from, closer.from);
  }
  assertNear((await press('0')).span, 410);
  await page.close();
});

test('wheel, drag and pinch move and zoom the timeline', async () => {
  const page = await openJob(inserted.job);
  await showSettledTimeline(page);
  const canvas = page.locator('#timeline-canvas');
  const first = await shownWindow(page), at = await placeOf(page, 20, 1), box = await canvas.boundingBox();
  await page.mouse.move(at.x, at.y);
  const scrolled = await page.evaluate(() => scrollY - 300);
  await page.mouse.wheel(0, -300);
  await page.waitForFunction((y) => Math.abs(scrollY - y) < 1, scrolled);
  assert.deepEqual(await shownWindow(page), first, 'without focus the wheel scrolls the page');
  await showTimeline(page);
  const here = await placeOf(page, 20, 1);
  await canvas.focus();
  await page.mouse.move(here.x, here.y);
  const closer = await windowAfter(page, () => page.mouse.wheel(0, -300));
  assertNear(closer.span, first.span * 1.0015 ** -300, 0.5);
  assertNear((20 - closer.from) / closer.span, (20 - first.from) / first.span, 0.02);
  const aside = await windowAfter(page, () => page.mouse.wheel(100, 0));
  assertNear(aside.from, closer.from + (100 / (box.width - TITLE_PX)) * closer.span, 0.1);
  await page.mouse.down();
  const dragged = await windowAfter(page, () => page.mouse.move(here.x + 100, here.y, { steps: 5 }));
  await page.mouse.up();
  assertNear(dragged.from, closer.from, 0.1);
  assert.ok(await page.locator('#timeline-selection').isHidden(), 'a drag selects nothing');
  const pinched = await windowAfter(page, () => canvas.evaluate((element) => {
    const { left, top } = element.getBoundingClientRect();
    element.setPointerCapture = () => {};
    const send = (type, id, x) => element.dispatchEvent(new PointerEvent(type, { pointerId: id, pointerType: 'touch',
      clientX: left + x, clientY: top + 60, bubbles: true, button: type === 'pointermove' ? -1 : 0 }));
    send('pointerdown', 11, 400);
    send('pointerdown', 12, 500);
    send('pointermove', 11, 350);
    send('pointermove', 12, 550);
    send('pointerup', 11, 350);
    send('pointerup', 12, 550);
  }));
  assertNear(pinched.span, dragged.span / 2, 0.1);
  await page.close();
});

test('the minimap moves the window', async () => {
  const page = await openJob(inserted.job);
  await showSettledTimeline(page);
  const first = await shownWindow(page), { x, y, width } = await page.locator('#timeline-minimap').boundingBox();
  const moved = await windowAfter(page, () => page.mouse.click(x + width / 2, y + 20));
  assertNear(moved.span, first.span);
  assertNear(moved.from + moved.span / 2, 205, 1);
  await page.close();
});

test('a search finds events by name', async () => {
  const page = await openJob(inserted.job);
  await showSettledTimeline(page);
  await page.locator('#timeline-canvas').focus();
  await page.keyboard.press('/');
  await page.keyboard.type('ADAM');
  await page.locator('#timeline-found', { hasText: '4 found' }).waitFor();
  const first = await windowAfter(page, () => page.keyboard.press('Enter'));
  assert.equal(await page.locator('#timeline-found').innerText(), '1 of 4');
  const adam = (step) => (FIRST_NS + step * STEP_NS + 13_800) / 1e3;
  assert.ok(first.from < adam(0) && first.from + first.span > adam(0) + 1.6 && first.span < 2, JSON.stringify(first));
  const second = await windowAfter(page, () => page.getByRole('button', { name: 'Next event' }).click());
  assert.ok(second.from < adam(1) && second.from + second.span > adam(1), JSON.stringify(second));
  await windowAfter(page, () => page.getByRole('button', { name: 'Previous event' }).click());
  await windowAfter(page, () => page.getByRole('button', { name: 'Previous event' }).click());
  assert.equal(await page.locator('#timeline-found').innerText(), '4 of 4', 'the event before the first one is the last one');
  await page.getByLabel('Find').last().fill('no such kernel');
  await page.locator('#timeline-found', { hasText: '0 found' }).waitFor();
  await page.close();
});

test('the numbers of a selection are those of the API', async () => {
  const page = await openJob(inserted.job);
  await showSettledTimeline(page);
  const begin = await placeOf(page, 15, 1), end = await placeOf(page, 36, 1);
  await page.keyboard.down('Shift');
  await page.mouse.move(begin.x, begin.y);
  await page.mouse.down();
  await page.mouse.move(end.x, end.y, { steps: 4 });
  const replied = page.waitForResponse((response) => response.url().includes('/timeline/statistics'));
  await page.mouse.up();
  await page.keyboard.up('Shift');
  const reply = await (await replied).json();
  assertNear(reply.window.from_ns / 1e3, 15, 0.1);
  assertNear(reply.window.to_ns / 1e3, 36, 0.1);
  await page.locator('#selection-lanes tbody tr').first().waitFor();
  const cells = (id) => page.locator(`#${id} tbody tr`).evaluateAll((all) =>
    all.map((row) => [...row.cells].map((cell) => cell.innerText.trim())));
  const { us, percent } = await import(pathToFileURL(path.join(process.env.ROOFLINED_SOURCE, 'web/lib/format.js')));
  assert.deepEqual(await cells('selection-lanes'), reply.lanes.map((lane) => [
    { kernels: 'Kernels, stream 7', phases: 'Phases, stream 7' }[lane.kind], us(lane.busy_ns / 1e3), percent(lane.ratio),
    String(lane.events)]));
  const names = await cells('selection-names');
  assert.equal(names.length, reply.names.length);
  assert.deepEqual(names.map(([, , count, total]) => [count, total]), reply.names.map((item) =>
    [String(item.events), us(item.total_ns / 1e3)]));
  assert.deepEqual(names[0].slice(0, 2), ['persistent_epoch', 'Kernels, stream 7']);
  assert.deepEqual(await findInaccessible(page, '#timeline'), []);
  await takeScreenshot(page, 'timeline-selection');
  await page.close();
});

test('a link shows the same window and selection', async () => {
  const page = await openJob(inserted.job);
  await showSettledTimeline(page);
  await page.locator('#timeline-canvas').focus();
  const shown = await windowAfter(page, () => page.keyboard.press('w'));
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.includes('selection='));
  const { hash } = new URL(page.url());
  await page.close();
  const linked = await openJob(inserted.job, { hash });
  await showSettledTimeline(linked);
  assert.deepEqual(await shownWindow(linked), shown);
  await linked.locator('#selection-lanes tbody tr').first().waitFor();
  assert.ok((await linked.locator('#selection-window').innerText()).startsWith(`${shown.span.toFixed(2)} µs`));
  await linked.close();
  const wrong = await openJob(inserted.job, { hash: '#run=x&window=9-3&selection=-1-99999999999999999999' });
  await showSettledTimeline(wrong);
  assertNear((await shownWindow(wrong)).span, 2 * STEP_NS / 1e3 * 1.08);
  await wrong.close();
});

test('every event can be reached and selected by keys', async () => {
  const page = await openJob(inserted.job);
  await showSettledTimeline(page);
  const spoken = page.locator('#timeline-spoken');
  await page.locator('#timeline-canvas').focus();
  await page.keyboard.press('ArrowDown');
  assert.equal(await spoken.textContent(), 'API calls');
  for (const lane of ['Kernels, stream 7', 'Phases, stream 7']) {
    await page.keyboard.press('ArrowDown');
    assert.equal(await spoken.textContent(), lane);
  }
  for (let i = 0; i < 4; i += 1) await page.keyboard.press('.');
  assert.match(await spoken.textContent(), /^conv2_input_gradient, backward, Phases, stream 7, 6\.00 µs, starting at 18\.40 µs$/);
  await page.keyboard.press(',');
  assert.match(await spoken.textContent(), /^head, /);
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('#selection-window').innerText(), '900.0 ns, starting at 17.50 µs');
  const closer = await windowAfter(page, () => page.keyboard.press('f'));
  assertNear(closer.span, 0.9 * 1.08, 0.1);
  await page.keyboard.press('Escape');
  assert.ok(await page.locator('#timeline-selection').isHidden());
  await page.keyboard.press('?');
  assert.ok(await page.locator('#timeline-keys').isVisible());
  await page.close();
});

test('a click selects an event, a double click zooms to it', async () => {
  const page = await openJob(inserted.job);
  await showSettledTimeline(page);
  const { x, y } = await placeOf(page, 22, 2);
  await page.mouse.move(x, y);
  assert.match(await page.locator('#timeline-tooltip').innerText(), /conv2_input_gradient\s+backward\s+Phases, stream 7/);
  await page.mouse.click(x, y);
  assert.equal(await page.locator('#selection-window').innerText(), '6.00 µs, starting at 18.40 µs');
  const shown = await windowAfter(page, () => page.mouse.dblclick(x, y));
  assertNear(shown.span, 6 * 1.08, 0.05);
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
  await waitForEnd(id);
  const page = await openJob(id);
  const rows = await eventRows(page);
  assert.ok(rows.some(([name]) => name === 'gather') && rows.every(([, lane]) => /^(Launches|NVTX), thread \d+$/.test(lane)),
    JSON.stringify(rows[0]));
  assert.equal(await page.locator('#phases').isVisible(), false);
  await takeScreenshot(page, 'timeline-cpu');
  await page.close();
});

test('without a trace there is no timeline', async () => {
  const id = await train(['timing']);
  await waitForEnd(id);
  const page = await openJob(id);
  assert.equal(await page.locator('#timeline').isVisible(), false);
  await page.close();
});

test('the page fits a phone in dark mode', async () => {
  const page = await openJob(inserted.job, { viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
  await showSettledTimeline(page);
  assert.ok(await fitsWidth(page), 'the page scrolls horizontally');
  assert.deepEqual(await findInaccessible(page, '#timeline'), []);
  await takeScreenshot(page, 'timeline-360');
  await page.close();
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
