// Tests pages with the numbers of a GPU: tests/data/h200.sqlite.xz is the database of a daemon that measured on an H200. With
// ROOFLINED_SCREENSHOTS=FOLDER, also writes screenshots of the pages in both themes (scripts/screenshots.sh).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { assertAccessible, browserErrors, findDeadLinks, fitsWidth, openPage, scratch, startDaemon } from './harness.mjs';

const fixture = path.join(process.env.ROOFLINED_SOURCE, 'tests/data/h200.sqlite.xz');
const folder = process.env.ROOFLINED_SCREENSHOTS;
const HEIGHT = 1000; // of a screenshot at most, in pixels
const GEMM = 1; // ordinal of the matrix product in the sequence of ten kernels
let daemon;
let ids; // of recorded jobs, runs and a suite run, as findIds returns them

const api = async (where) => (await fetch(daemon.url + where)).json();

/** Returns {jobs, runs, slower}: the ids of jobs by their names, the ids of runs by the names of their jobs and their variants,
 * as in runs['MNIST, main job'].fp32, and the id of the suite run with verdict `slower`. */
async function findIds() {
  const { items } = await api('/jobs?limit=500');
  const named = items.filter(({ name }) => name !== null);
  const { items: suiteRuns } = await api('/suites/transpose/runs');
  const byVariant = (runs) => Object.fromEntries(runs.map(({ id, variant }) => [variant, id]));
  return { jobs: Object.fromEntries(named.map(({ id, name }) => [name, id])),
    runs: Object.fromEntries(named.map(({ name, runs }) => [name, byVariant(runs)])),
    slower: suiteRuns.find(({ verdict }) => verdict === 'slower').id };
}

/** Writes the definition of each recorded suite into a file of the folder `suites`. */
function writeSuites(database, suites) {
  mkdirSync(suites);
  const rows = execFileSync('python3', ['-c', `import json, sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute("SELECT suite, definition FROM suite_runs GROUP BY suite")
print(json.dumps(dict(rows.fetchall())))`, database]);
  for (const [name, definition] of Object.entries(JSON.parse(rows))) writeFileSync(path.join(suites, `${name}.json`), definition);
}

before(async () => {
  const state = path.join(scratch, 'h200');
  mkdirSync(state);
  const unpack = 'import lzma, sys; sys.stdout.buffer.write(lzma.open(sys.argv[1]).read())';
  const database = path.join(state, 'rooflined.db');
  writeFileSync(database, execFileSync('python3', ['-c', unpack, fixture], { maxBuffer: 1 << 28 }));
  writeSuites(database, path.join(state, 'suites.d'));
  daemon = await startDaemon(state, '--allow-source', '--suites', path.join(state, 'suites.d'));
  ids = await findIds();
});
after(() => daemon?.stop());

/** The pages: [name, address, selector of the part that a screenshot begins with (null: the whole page)]. */
const pages = () => [
  ['jobs', '/', null],
  ['training', `/job.html?id=${ids.jobs['MNIST, main job']}`, null],
  ['timeline', `/job.html?id=${ids.jobs['Layer, prefill of 2048 tokens']}`, '#timeline'],
  ['report', `/report.html?run=${ids.runs['Ten kernels of our model'].sequence}`, null],
  ['roofline', `/report.html?run=${ids.runs['Ten kernels of our model'].sequence}&kernel=${GEMM}`, '#roofline'],
  ['memory', `/report.html?run=${ids.runs['transpose.cu: padding of the tile'].conflicts}`, '#memory'],
  ['source', `/report.html?run=${ids.runs['transpose.cu: padding of the tile'].conflicts}`, '#instructions'],
  ['compare', `/compare.html?a=${ids.runs['transpose.cu: padding of the tile'].conflicts}&b=${
    ids.runs['transpose.cu: padding of the tile'].padded}`, null],
  ['suites', '/suites.html', null],
  ['history', '/suite.html?name=transpose', null],
  ['regression', `/suite-run.html?id=${ids.slower}`, null],
];

test('the pages of a GPU are complete, accessible and fit a phone', async () => {
  const checked = pages().filter(([name]) => ['training', 'report', 'source', 'regression'].includes(name));
  for (const [, where] of checked) await assertAccessible(daemon.url + where);
});

test('every link to a part of its page has a target', async () => {
  const page = await openPage('about:blank');
  for (const [name, where] of pages()) {
    await page.goto(daemon.url + where);
    await page.locator('body[data-loaded]').waitFor();
    assert.deepEqual(await findDeadLinks(page), [], name);
  }
  await page.close();
});

test('the pages of all jobs fit a phone and a tablet, and their links lead somewhere', async () => {
  const page = await openPage('about:blank');
  for (const id of Object.values(ids.jobs)) {
    await page.goto(`${daemon.url}/job.html?id=${id}`);
    await page.locator('body[data-loaded]').waitFor();
    assert.deepEqual(await findDeadLinks(page), [], `job ${id}`);
    for (const width of [320, 390, 820]) {
      await page.setViewportSize({ width, height: 900 });
      assert.ok(await fitsWidth(page), `job ${id} scrolls horizontally at ${width} pixels`);
    }
  }
  await page.close();
});

test('a job begins with the verdict on the longest kernel of each run', async () => {
  const verdictsOf = async (name) => {
    const page = await openPage(`${daemon.url}/job.html?id=${ids.jobs[name]}`);
    await page.locator('body[data-loaded]').waitFor();
    const items = await page.locator('#bounds:not([hidden]) li').allInnerTexts();
    await page.close();
    return items;
  };
  const [conflicts, padded] = await verdictsOf('transpose.cu: padding of the tile');
  assert.match(conflicts, /^conflicts transpose Bound by L1 and shared memory/);
  assert.match(padded, /^padded transpose Bound by DRAM/);
  const [sequence] = await verdictsOf('Ten kernels of our model');
  assert.match(sequence, /^sequence reduction \(\d+\.\d+ % of the kernels’ time\) Bound by its launch/);
  const [fp32] = await verdictsOf('MNIST, main job');
  assert.match(fp32, /Longest stall: .*, \d+ % of a warp's time\./);
  assert.deepEqual(await verdictsOf('transpose.cu, second try'), [], 'nothing was counted');
});

test('a run with several kernels begins with the verdict of each', async () => {
  const page = await openPage(`${daemon.url}/report.html?run=${ids.runs['Ten kernels of our model'].sequence}`);
  await page.locator('body[data-loaded]').waitFor();
  const names = await page.locator('#kernel-verdicts tbody th').allInnerTexts();
  assert.equal(names.length, 10);
  const hidden = await page.locator('.scroll.kernels').evaluate((table) => table.scrollHeight - table.clientHeight);
  assert.equal(hidden, 0, 'all kernels are visible');
  assert.deepEqual(names.slice(0, 3), ['reduction', 'transpose', 'gemm'], 'the longest first');
  assert.equal(await page.locator('#kernel-title').innerText(), 'reduction');
  const texts = await page.locator('#kernel-verdicts tbody tr').allInnerTexts();
  assert.match(texts.find((text) => text.includes('gemm')), /Bound by the tensor pipeline/);
  await page.locator('#kernel-verdicts th button', { hasText: 'Kernel' }).click();
  assert.equal(await page.locator('#kernel-verdicts tbody th').first().innerText(), 'attention');
  await page.close();
});

test('a slower run says once by how much, and what differs', async () => {
  const { verdicts: [{ reason, causes: [{ evidence }] }] } = await api(`/suite-runs/${ids.slower}`);
  const page = await openPage(`${daemon.url}/suite-run.html?id=${ids.slower}`);
  await page.locator('body[data-loaded]').waitFor();
  const text = await page.locator('main').innerText();
  assert.equal(text.split(reason).length, 2, text);
  const { baseline, current } = evidence.find(({ property }) => property === 'static_shared_bytes');
  assert.ok(text.includes(`posted code differs · static shared bytes ${baseline} → ${current}`), text);
  await page.close();
});

test('labels of links in the memory chart do not overlap', async () => {
  const page = await openPage(`${daemon.url}/report.html?run=${ids.runs['MNIST, main job'].fp32}`);
  await page.locator('body[data-loaded]').waitFor();
  const overlapping = await page.locator('#memory-chart svg').evaluate((svg) => {
    const boxes = [...svg.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
    const overlap = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
    return boxes.flatMap(([text, a], index) => boxes.slice(index + 1).filter(([, b]) => overlap(a, b))
      .map(([other]) => `${text} and ${other}`));
  });
  assert.deepEqual(overlapping, []);
  await page.close();
});

/* Returns the first lines of the tables in a part of the page that are wider than what is visible of them. */
const cutTables = (page, part) => page.locator(`${part} .scroll`).evaluateAll((tables) => tables
  .filter((table) => table.scrollWidth > table.clientWidth).map((table) => table.innerText.split('\n')[0]));

test('long names of kernels hide no numbers of the timeline', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=${ids.jobs['Layer, decode']}`);
  await page.locator('body[data-loaded]').waitFor();
  await page.locator('#path-table tbody tr').first().waitFor();
  assert.deepEqual(await cutTables(page, '#time-classes'), []);
  await page.close();
});

test('the table of kernels fits a window of 1280 pixels, also with long names', async () => {
  const page = await openPage('about:blank');
  for (const name of ['MNIST with cuDNN, one launch a layer', 'Layer, decode', 'Ten kernels of our model']) {
    await page.goto(`${daemon.url}/job.html?id=${ids.jobs[name]}`);
    await page.locator('body[data-loaded]').waitFor();
    const [content, visible] = await page.locator('#kernels .scroll').evaluate((part) => [part.scrollWidth, part.clientWidth]);
    assert.ok(content <= visible, `${name}: ${content} of ${visible} pixels`);
  }
  await page.close();
});

test('a roofline without counted operations says so', async () => {
  const page = await openPage(`${daemon.url}/report.html?run=${ids.runs['MNIST with cuDNN, one launch a layer'].fp32}`);
  await page.locator('body[data-loaded]').waitFor();
  assert.match(await page.locator('#roofline').innerText(), /FP64 operations were not counted; the set full counts/);
  await page.close();
});

test('no scrollable part of a job is empty', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=${ids.jobs['MNIST, main job']}`);
  await page.locator('body[data-loaded]').waitFor();
  await page.locator('#path-table tbody tr').first().waitFor();
  const empty = await page.locator('.scroll').evaluateAll((parts) => parts
    .filter((part) => part.checkVisibility() && !part.innerText.trim() && !part.querySelector('svg, canvas'))
    .map((part) => part.innerHTML));
  assert.deepEqual(empty, []);
  await page.close();
});

test('long names of kernels hide no times in the comparison of two traces', async () => {
  const page = await openPage(`${daemon.url}/compare.html?a=${ids.runs['MNIST, main job'].fp32}&b=${
    ids.runs['Ten kernels of our model'].sequence}`);
  await page.locator('#time-differences tbody tr').first().waitFor();
  for (const width of [1280, 1000]) {
    await page.setViewportSize({ width, height: 900 });
    assert.deepEqual(await cutTables(page, '#timelines'), [], `${width} pixels`);
  }
  await page.close();
});

test('names in the legend of a layer’s timeline have distinct colours', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=${ids.jobs['Layer, prefill of 2048 tokens']}`);
  await page.locator('#timeline-canvas[data-settled="true"]').waitFor();
  const colours = await page.locator('#timeline-legend .key').evaluateAll((keys) => keys.map((key) => key.style.background));
  assert.ok(colours.length >= 6);
  assert.equal(new Set(colours).size, colours.length, colours.join(' '));
  await page.close();
});

test('independent launches are listed with their blocks', async () => {
  const { 'Layer, decode': decode, 'Layer, prefill of 2048 tokens': prefill } = ids.jobs;
  const { baseline } = ids.runs['Layer, decode'];
  const [group] = (await api(`/runs/${baseline}/timeline/findings`)).independent_launches.groups;
  const page = await openPage(`${daemon.url}/job.html?id=${decode}#run=${baseline}`);
  await page.locator('#independent-table tbody tr').first().waitFor();
  const rows = await page.locator('#independent-table tbody tr').evaluateAll((all) =>
    all.map((row) => [...row.cells].map((cell) => cell.innerText)));
  assert.deepEqual(rows.map(([name, , blocks, resident]) => [name, blocks, resident]), [
    ['q', '96', '132'], ['k', '96', '132'], ['v', '96', '132'],
    ['Together', `in sequence; about ${(group.concurrent_ns / 1000).toFixed(1)} µs concurrently`, undefined]]);
  assert.ok((await page.locator('#timeline-findings').innerText()).includes('Successive launches are independent'));
  await page.close();
  const filled = await openPage(`${daemon.url}/job.html?id=${prefill}`);
  await filled.locator('#time-class-table tbody tr').first().waitFor();
  assert.ok(await filled.locator('#independent').isHidden(), 'each product fills the device');
  await filled.close();
});

test('source and SASS are side by side, with the samples of each line', async () => {
  const page = await openPage(`${daemon.url}/report.html?run=${ids.runs['transpose.cu: padding of the tile'].conflicts}`);
  await page.locator('body[data-loaded]').waitFor();
  assert.match(await page.locator('#verdict').innerText(), /^Bound by L1 and shared memory/);
  const hottest = await page.locator('#instruction-table .code tbody tr').evaluateAll((rows) => rows
    .map((row) => [Number(row.cells[1].innerText.replace(/\D/g, '')), row.innerText])
    .reduce((most, row) => (row[0] > most[0] ? row : most)));
  assert.match(hottest[1], /tile\[threadIdx\.x\]/, 'the load with bank conflicts has the most samples');
  await page.close();
});

test('the labels of the history’s axis are not clipped', async () => {
  const { 'Ceilings after the driver update': job } = ids.jobs, { best } = ids.runs['Ceilings after the driver update'];
  const page = await openPage(`${daemon.url}/history.html?job=${job}&run=${best}`);
  await page.locator('body[data-loaded]').waitFor();
  const space = await page.locator('.u-over').evaluate((area) => area.offsetLeft);
  const label = await page.evaluate(() => {
    const context = document.createElement('canvas').getContext('2d');
    context.font = '12px system-ui';
    return context.measureText('129.6 TFLOP/s').width;
  });
  assert.ok(space > label, `${space} pixels for a label of ${label}`);
  await page.close();
});

/* --- screenshots ------------------------------------------------------------------------------------------------------- */

/** Encodes a PNG as WebP in the browser. */
const toWebp = (page, png) => page.evaluate(async (bytes) => {
  const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${bytes}`)).blob());
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  canvas.getContext('2d').drawImage(picture, 0, 0);
  const blob = await canvas.convertToBlob({ type: 'image/webp', quality: 0.9 });
  return btoa([...new Uint8Array(await blob.arrayBuffer())].map((byte) => String.fromCharCode(byte)).join(''));
}, png.toString('base64'));

const lastDurationOf = async ({ last_run: { id } }) => (await api(`/suite-runs/${id}`)).elapsed_s;

/** Answers /devices and /suites as the daemon that recorded the database did, so that the pages show the GPU on a machine without
 * one. */
async function withRecordedDevice(page) {
  await page.route((url) => url.pathname === '/devices', (route) => route.fulfill({ json: {
    items: [{ id: 'gpu0', state: 'idle', reason: null, properties: { name: 'NVIDIA H200' } }], job_devices: ['gpu0'] } }));
  await page.route((url) => url.pathname === '/suites', async (route) => {
    const { items, ...rest } = await api('/suites');
    const onDevice = async (suite) => ({ ...suite, device: 'gpu0', estimated_s: await lastDurationOf(suite),
      estimate_basis: 'runs' });
    await route.fulfill({ json: { items: await Promise.all(items.map(onDevice)), ...rest } });
  });
}

/** Returns the height of a page, at most HEIGHT. */
const heightOf = (page) => page.locator('main').evaluate((main, most) =>
  Math.min(most, Math.ceil(main.getBoundingClientRect().bottom + scrollY) + 20), HEIGHT);

async function writeScreenshot(name, where, selector, colorScheme, encoder) {
  const page = await openPage('about:blank', { colorScheme, viewport: { width: 1280, height: HEIGHT } });
  await withRecordedDevice(page);
  await page.goto(daemon.url + where);
  await page.locator('body[data-loaded]').waitFor();
  if (selector !== null) await page.locator(selector).evaluate((element) => element.scrollIntoView());
  if (selector === '#timeline') await page.locator('#timeline-canvas[data-settled="true"]').waitFor();
  if (selector === null) await page.setViewportSize({ width: 1280, height: await heightOf(page) });
  const webp = await toWebp(encoder, await page.screenshot());
  writeFileSync(path.join(folder, `${name}-${colorScheme}.webp`), Buffer.from(webp, 'base64'));
  await page.close();
}

test('screenshots', { skip: !folder }, async () => {
  mkdirSync(folder, { recursive: true });
  const encoder = await openPage('about:blank');
  for (const [name, where, selector] of pages()) {
    for (const colorScheme of ['light', 'dark']) await writeScreenshot(name, where, selector, colorScheme, encoder);
  }
  await encoder.close();
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
