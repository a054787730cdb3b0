// Reports and comparisons of GPU runs that are inserted into the database of a real daemon.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { before, test } from 'node:test';
import {
  browserErrors, daemon, findInaccessible, waitForEnd, fitsWidth, ignoreBrowserErrors, openPage, scratch, submit, takeScreenshot,
} from './harness.mjs';

const fixture = path.join(process.env.ROOFLINED_SOURCE, 'tests/api/profiled_runs.py');
let runs; // {a, b, library, spills, hostile}: the ids of four runs, and the name of a kernel of run a, which contains HTML

before(() => { runs = JSON.parse(execFileSync('python3', [fixture, path.join(scratch, 'state')])); });

const api = async (where) => (await fetch(`${daemon.url}${where}`)).json();
async function openReport(kernel = 0, options = {}, hash = '') {
  const page = await openPage(`${daemon.url}/report.html?run=${runs.a}&kernel=${kernel}${hash}`, options);
  await page.locator(`body[data-loaded="${kernel}"]`).waitFor();
  return page;
}
async function openJob(id) {
  const page = await openPage(`${daemon.url}/job.html?id=${id}`);
  await page.locator('body[data-loaded="completed"]').waitFor();
  return page;
}
async function openComparison(options = {}) {
  const page = await openPage(`${daemon.url}/compare.html?a=${runs.a}&b=${runs.b}`, options);
  await page.locator('body[data-loaded]').waitFor();
  return page;
}

test('the header shows the properties of the kernel with units', async () => {
  const page = await openReport();
  assert.equal(await page.locator('h1').innerText(), 'relu');
  const properties = await page.locator('#kernel-properties').innerText();
  for (const property of ['22.34 µs', '32768×1×1', '128×1×1', '17.85 %', '9.87 %']) {
    assert.ok(properties.includes(property), `${property} is not in ${properties}`);
  }
  assert.equal(await page.locator('#kernel option').count(), 2);
  await takeScreenshot(page, 'report-light');
  await page.close();
});

test('a kernel of a library has advice for its caller', async () => {
  const page = await openPage(`${daemon.url}/report.html?run=${runs.library}`);
  await page.locator('body[data-loaded="0"]').waitFor();
  const { library } = (await api(`/runs/${runs.library}/report?kernel=0`)).kernels[0];
  assert.equal(await page.locator('#verdict-advice').innerText(), library.advice);
  assert.doesNotMatch(await page.locator('#finding-list').innerText(), /neighbouring threads/, 'advice to the author');
  await page.close();
});

test('every finding is listed and opens its section', async () => {
  const page = await openReport();
  const { findings, verdict } = (await api(`/runs/${runs.a}/report?kernel=0`)).kernels[0];
  assert.equal(await page.locator('#verdict').innerText(), verdict.message);
  assert.equal(await page.locator('#verdict-advice').innerText(), verdict.advice);
  const items = page.locator('#finding-list > li');
  assert.equal(await items.count(), findings.length);
  for (const finding of findings) {
    const item = items.filter({ has: page.locator('.finding-head', { hasText: finding.title }) });
    const text = await item.innerText();
    const words = finding.scope === 'local' ? 'Local estimate' : 'Est. time saved ≤';
    const speedup = finding.speedup_pct === null ? '' : `${words} ${finding.speedup_pct.toFixed(0)} %`;
    assert.ok(text.includes(finding.message) && text.includes(speedup), text);
    for (const part of finding.parts) assert.ok(text.includes(part.title) && text.includes(part.message), text);
    await item.locator('> a').click();
    await page.locator(`#section-${finding.section}[open] tbody tr`).first().waitFor();
  }
  await page.close();
});

test('every section shows its rows; a missing value is a dash with a reason', async () => {
  const page = await openReport();
  const [{ sections }] = (await api(`/runs/${runs.a}/report?kernel=0`)).kernels;
  assert.deepEqual(await page.locator('#sections > details > summary > strong').allInnerTexts(),
    sections.map((section) => section.name));
  const checkedSections = ['SpeedOfLight', 'MemoryWorkloadAnalysis_Tables', 'InstructionStats'];
  for (const section of sections.filter(({ id }) => checkedSections.includes(id))) {
    const block = page.locator(`#section-${section.id}`);
    if (await block.getAttribute('open') === null) await block.locator('> summary').click();
    await block.locator('> .scroll').first().waitFor();
    for (const summary of await block.locator('details > summary').all()) await summary.click();
    const rows = section.tables.flatMap((table) => table.rows);
    await page.waitForFunction(([id, count]) =>
      document.querySelectorAll(`#${id} :not(.accesses) > table > tbody tr`).length === count,
    [`section-${section.id}`, rows.length]);
    const missing = rows.filter((row) => row.value === null && row.text === undefined);
    assert.deepEqual(await block.locator('td.null').evaluateAll((cells) => cells.map((cell) => [cell.innerText, cell.title])),
      missing.map((row) => ['—', row.reason]));
  }
  await page.close();
});

test('memory tables list kinds of access with sectors per request', async () => {
  const page = await openPage(`${daemon.url}/report.html?run=${runs.b}`);
  await page.locator('body[data-loaded="0"]').waitFor();
  await page.locator('#section-MemoryWorkloadAnalysis_Tables > summary').click();
  const table = page.getByRole('group', { name: 'L1/TEX Cache by kind of access' });
  assert.deepEqual(await table.locator('th[scope="row"]').allInnerTexts(), ['Global load', 'Global store']);
  const load = await table.locator('tbody tr').first().locator('td').allInnerTexts();
  assert.deepEqual(load.map((text) => text.replaceAll('\u202f', '')),
    ['131072', '131072', '4194304', '32.00', '1461445', '22.38 %', '0.35 %', '4179607']);
  assert.equal(await page.getByRole('group', { name: 'Shared Memory by kind of access' }).count(), 0,
    'a table with only a total is omitted');
  await takeScreenshot(page, 'memory-light');
  await page.close();
});

test('the parts of a row have bars, the longest first', async () => {
  const page = await openReport();
  await page.locator('#section-WarpStateStats > summary').click();
  await page.locator('#section-WarpStateStats details > summary').click();
  const bars = await page.locator('#section-WarpStateStats details .share i').evaluateAll((all) =>
    all.map((one) => parseFloat(one.style.width)));
  assert.ok(bars.length > 10 && bars[0] === 100, bars.join());
  assert.deepEqual(bars, [...bars].sort((a, b) => b - a));
  await page.close();
});

test('the keyboard shows the reason of a dash', async () => {
  const page = await openReport();
  const dash = page.locator('#roof-table td.null').first();
  await dash.focus();
  const why = page.locator('.why');
  assert.equal(await why.innerText(), await dash.getAttribute('title'));
  const [below, cell] = [await why.boundingBox(), await dash.boundingBox()];
  assert.ok(Math.abs(below.y - cell.y - cell.height) < 2 && below.x + below.width <= 1280, 'the reason is below its dash');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.matches('td.null')), true,
    'the next dash is reached by keyboard');
  await page.locator('#kernel').focus();
  assert.equal(await why.isVisible(), false);
  await page.close();
});

test('a URL fragment opens a section', async () => {
  const page = await openReport(0, {}, '#section-Occupancy');
  await page.locator('#section-Occupancy[open] tbody tr').first().waitFor();
  await page.close();
});

test('a kernel name with HTML is shown as text', async () => {
  const page = await openReport(1);
  assert.equal(await page.locator('h1').innerText(), 'scale');
  assert.equal(await page.locator('#kernel-name').innerText(), runs.hostile);
  assert.equal(await page.locator('main img').count(), 0);
  await page.close();
});

test('the roofline chart matches the API', async () => {
  const page = await openReport(1);
  const [{ roofline }] = (await api(`/runs/${runs.a}/report?kernel=1`)).kernels;
  const unit = await page.locator('#roofline-unit').inputValue();
  assert.equal(unit, roofline.classification.unit);
  const points = roofline.points.filter((point) => point.unit === unit && point.intensity > 0);
  assert.equal(await page.locator('#roofline-chart circle').count(), points.length);
  await page.locator('#roofline-unit').selectOption('fp32');
  const roofs = await page.locator('#roofline-chart polyline').evaluateAll((lines) =>
    lines.map((line) => line.getAttribute('class')));
  assert.equal(roofs.filter((name) => name.includes('theoretical')).length, 3);
  assert.equal(roofs.filter((name) => name.includes('measured')).length, 2, 'L1 has no measured roof in the fixture');
  const across = await page.locator('#roofline-chart circle').evaluateAll((marks) =>
    marks.map((mark) => Number(mark.getAttribute('cx'))));
  const intensities = roofline.points.filter((point) => point.unit === 'fp32').map((point) => point.intensity);
  const order = (values) => values.map((_, index) => index).sort((i, j) => values[i] - values[j]);
  assert.deepEqual(order(across), order(intensities));
  const gapRatio = (across[0] - across[1]) / (across[1] - across[2]);
  assert.ok(Math.abs(gapRatio - Math.log(intensities[0] / intensities[1]) / Math.log(intensities[1] / intensities[2])) < 1e-3,
    'the axis is logarithmic');
  const labels = await page.locator('#roofline-chart .roof-label').allTextContents();
  assert.deepEqual(labels.slice(0, 3).map((text) => text.split(' ')[0]).sort(), ['DRAM', 'L1', 'L2']);
  assert.match(labels[3], /^FP32 [\d.]+ TFLOP\/s$/);
  const clipped = await page.locator('#roofline-chart svg').evaluate((svg) => {
    const frame = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text')].filter((text) => {
      const box = text.getBoundingClientRect();
      return box.left < frame.left || box.right > frame.right || box.top < frame.top || box.bottom > frame.bottom;
    }).map((text) => text.textContent);
  });
  assert.deepEqual(clipped, [], 'no text is clipped');
  assert.match(await page.locator('#roof-clocks').innerText(),
    /^Measured above theoretical \(FP32\): theoretical roofs use the SM clock of the counters pass \(1\.\d+ GHz\)/,
    'the fixture measured 60 TFLOP/s in FP32, more than its clocks allow');
  await page.locator('#roofline-unit').selectOption('fp64');
  assert.match(await page.locator('#roofline-legend').innerText(), /No FP64 operations were counted/);
  await page.locator('#roofline-unit').selectOption(unit);
  assert.equal(await page.locator('#roofline-chart circle').count(), points.length, 'the chart comes back');
  await takeScreenshot(page, 'report-scale');
  await page.close();
});

test('series and instructions are shown', async () => {
  const page = await openReport();
  assert.equal(await page.locator('#series-charts canvas').count(), 2);
  const captions = await page.locator('#series-charts figcaption').allInnerTexts();
  assert.ok(captions.includes('Occupancy by registers, resident warps per SM · dot: this kernel, 64 at 16'),
    captions.join('; '));
  await page.locator('#instruction-table summary', { hasText: '3 instructions' }).click();
  await page.locator('#instruction-table tbody tr').first().waitFor();
  assert.deepEqual(await page.locator('#instruction-table thead th').allInnerTexts(),
    ['Offset', 'Instruction', 'Samples', 'Stalls', 'Source', 'Executed']);
  assert.deepEqual(await page.locator('#instruction-table tbody th').allInnerTexts(), ['0x0000', '0x0010', '0x0020']);
  assert.match(await page.locator('#instruction-table > p').innerText(), /^The hardware dropped 1\D?250 samples of this launch/);
  const rows = await page.locator('#instruction-table tbody tr').allInnerTexts();
  assert.match(rows[0], /LDG\.E\.128 R4.*40.*long scoreboard 36 · wait 3 · lg throttle 1.*relu\.cu:12.*131.072$/s);
  assert.match(rows[2], /EXIT ;.*—/s);
  await page.locator('#kernel').selectOption('1');
  await page.locator('body[data-loaded="1"]').waitFor();
  assert.equal(await page.locator('#series').isVisible() || await page.locator('#instructions').isVisible(), false);
  assert.match(page.url(), /kernel=1$/);
  await page.close();
});

test('the report opens on the kernel that takes the most time', async () => {
  const page = await openPage(`${daemon.url}/report.html?run=${runs.a}`);
  await page.locator('body[data-loaded="1"]').waitFor();
  assert.equal(await page.locator('#kernel').inputValue(), '1', 'kernel 0 takes 22.3 µs, kernel 1 takes 33.0 µs');
  await page.close();
});

test('the memory chart shows the traffic of each link and the hit rates', async () => {
  const page = await openReport(1);
  const texts = await page.locator('#memory-chart text').allTextContents();
  for (const expected of ['Kernel', 'Global', '262K inst', 'L1/TEX', '0.3 %', 'L2', '88.1 %', 'Device memory', '3.0 MiB', '2.0 %',
    '16.0 MiB', '11 %']) {
    assert.ok(texts.includes(expected), `${expected} is not in ${texts}`);
  }
  assert.ok(!texts.includes('Texture'), 'a memory space without traffic is omitted');
  const link = page.locator('#memory-chart .link', { has: page.locator('title', { hasText: 'Device memory to L2' }) });
  assert.equal(await link.locator('title').textContent(), 'Device memory to L2: 16.0 MiB, 11 % of peak');
  assert.equal(await page.locator('#memory-chart .link.idle', { hasText: 'Local' }).count(), 2);
  await page.close();
});

test('warp states are bars, the longest first', async () => {
  const page = await openReport(1);
  const names = await page.locator('#mix-charts li .bar-name').evaluateAll((all) => all.map((one) => one.firstChild.textContent));
  assert.deepEqual(names.slice(0, 3), ['long scoreboard', 'drain', 'wait']);
  assert.equal(await page.locator('#mix-charts li').first().locator('.bar-value').first().innerText(), '38 cycles');
  await page.close();
});

test('every value has its difference to a pinned baseline', async () => {
  const page = await openReport(1);
  await page.getByRole('button', { name: 'Pin as baseline' }).click();
  await page.locator('#baseline', { hasText: 'This kernel is the baseline' }).waitFor();
  await page.locator('#kernel').selectOption('0');
  await page.locator('body[data-loaded="0"]').waitFor();
  const words = await page.locator('#baseline').innerText();
  assert.ok(words.startsWith(`Every value with its difference to run ${runs.a}: scale `), words);
  const [fast, slow] = await Promise.all([0, 1].map(async (kernel) =>
    (await api(`/runs/${runs.a}/report?kernel=${kernel}`)).kernels[0].roofline.duration_s));
  const change = `−${Math.abs(100 * (fast - slow) / slow).toFixed(1)} %`;
  assert.ok((await page.locator('#kernel-properties').innerText()).includes(change), change);
  const row = page.locator('#section-SpeedOfLight tbody tr', { hasText: 'Duration' });
  assert.equal(await row.locator('.difference').innerText(), change);
  assert.ok(await page.locator('#memory-chart .change').count() > 3);
  await takeScreenshot(page, 'baseline-light');
  await page.getByRole('button', { name: 'Unpin' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.difference').length === 0);
  await page.close();
});

test('the contents list the sections, stay on the screen, and lead to them', async () => {
  const page = await openReport(1);
  assert.deepEqual(await page.locator('#contents a').allInnerTexts(),
    ['Summary', 'Kernels of the run', 'Findings', 'Roofline', 'Memory chart', 'Stalls and instructions', 'Sections']);
  await page.locator('#contents a', { hasText: 'Sections' }).focus();
  await page.keyboard.press('Enter');
  await page.locator('#contents a[aria-current]', { hasText: 'Sections' }).waitFor();
  const box = await page.locator('#contents').boundingBox();
  assert.ok(box.y >= 0 && box.y < 100, 'the contents stay in view');
  await page.close();
});

test('a finding leads to its lines, and instructions are sorted by samples', async () => {
  const page = await openPage(`${daemon.url}/report.html?run=${runs.spills}`);
  await page.locator('body[data-loaded="0"]').waitFor();
  const rows = () => page.locator('#instruction-table tbody tr').evaluateAll((all) =>
    all.map((row) => [row.cells[0].innerText, row.cells[1].innerText]));
  const line = page.locator('#finding-list a.line', { hasText: 'spill.cu:7' });
  await line.focus();
  await page.keyboard.press('Enter');
  assert.deepEqual(await rows(), [['0x0000', 'STL.64 R1 ;'], ['0x0020', 'LDL.LU R1 ;']]);
  assert.equal(await page.locator('#instruction-table [role="status"]').innerText(), '2 instructions of spill.cu:7 · wait 6');
  await page.getByRole('button', { name: 'Show all instructions' }).click();
  assert.equal((await rows()).length, 4);
  await page.locator('#instruction-table th button', { hasText: 'Stalls' }).focus();
  await page.keyboard.press('Enter');
  assert.deepEqual((await rows()).map(([offset]) => offset), ['0x0030', '0x0020', '0x0010', '0x0000']);
  const heat = await page.locator('#instruction-table tbody th').evaluateAll((cells) =>
    cells.map((cell) => Number(cell.style.getPropertyValue('--heat'))));
  assert.deepEqual(heat, [1, 0.222, 0.167, 0.111], 'heat is the share of the most samples');
  await page.close();
});

test('the report is accessible in both themes', async () => {
  for (const colorScheme of ['light', 'dark']) {
    const page = await openPage(`${daemon.url}/report.html?run=${runs.spills}`, { colorScheme });
    await page.locator('body[data-loaded="0"]').waitFor();
    await page.locator('#instruction-table summary').click();
    assert.deepEqual(await findInaccessible(page, 'main'), []);
    await page.close();
  }
});

test('a comparison shows pairs of kernels, findings and differences', async () => {
  const page = await openComparison();
  const { kernels } = await api(`/compare?a=${runs.a}&b=${runs.b}`);
  assert.equal(await page.locator('#pair option').count(), kernels.length);
  const pair = kernels.findIndex((one) => one.a && one.b);
  await page.locator('#pair').selectOption(String(pair));
  assert.equal(await page.locator('#same-code').innerText(), 'The machine code differs.');
  const changes = ['new', 'resolved', 'unchanged', 'unknown'];
  for (const change of changes) {
    const wanted = kernels[pair].findings.filter((finding) => finding.change === change).length;
    assert.equal(await page.locator(`#finding-list [data-change="${change}"]`).count(), wanted);
  }
  const tags = await page.locator('#finding-list > li > .finding-head .tag').allInnerTexts();
  assert.ok(tags.length > 0 && tags.every((tag) => changes.includes(tag)), tags.join());
  const duration = page.locator('#section-SpeedOfLight tbody tr', { hasText: 'Duration' });
  const row = kernels[pair].sections.find((section) => section.id === 'SpeedOfLight')
    .tables[0].rows.find((one) => one.name === 'Duration');
  const cells = await duration.locator('td').allInnerTexts();
  assert.equal(cells[0], '22.34 µs');
  assert.equal(cells[3], `+${(row.relative * 100).toFixed(1)} %\nworse`);
  assert.match(await page.locator('#pair-verdict').innerText(),
    /^B takes 1\.48× as long as A: 22\.34 µs → 32\.99 µs · \d+ values better, \d+ worse$/);
  await takeScreenshot(page, 'compare-light');
  const before = await page.locator('#sections > details').count();
  await page.locator('#changed').check();
  assert.ok(await page.locator('#sections > details').count() < before);
  await page.locator('#section-SpeedOfLight tbody tr').first().waitFor();
  assert.ok((await page.locator('#section-SpeedOfLight tbody tr').allInnerTexts()).every((text) => !text.includes('+0.0 %')));
  await page.locator('#pair').selectOption(String(kernels.findIndex((one) => one.b === null)));
  await page.getByText('Only A has this kernel.').waitFor();
  assert.equal(await page.locator('#finding-list [data-change]').count(), 0, 'a kernel of one run has no changed finding');
  await page.close();
});

test('a faster run has no red cards', async () => {
  const page = await openPage(`${daemon.url}/compare.html?a=${runs.b}&b=${runs.a}&kernel=0&kernel_b=0`);
  await page.locator('body[data-loaded]').waitFor();
  assert.match(await page.locator('#pair-verdict').innerText(), /^B is 1\.48× as fast as A: 32\.99 µs → 22\.34 µs/);
  assert.equal(await page.locator('#pair-verdict').getAttribute('data-judgement'), 'better');
  const bad = await page.evaluate(() => {
    const probe = document.body.appendChild(document.createElement('i'));
    probe.style.color = 'var(--bad)';
    return getComputedStyle(probe).color;
  });
  const borders = await page.locator('#finding-list > li').evaluateAll((items) =>
    items.map((item) => getComputedStyle(item).borderLeftColor));
  assert.ok(borders.length > 0 && !borders.includes(bad), borders.join());
  assert.deepEqual(await findInaccessible(page, 'main'), []);
  await page.close();
});

test('any two kernels can be selected for comparison', async () => {
  const page = await openComparison();
  const { kernels } = await api(`/compare?a=${runs.a}&b=${runs.b}`);
  const alone = kernels.find((one) => one.b === null).a.ordinal;
  const wanted = (await api(`/compare?a=${runs.a}&b=${runs.b}&kernel=${alone}&kernel_b=0`)).kernels[0];
  assert.deepEqual(await page.locator('#pair optgroup').evaluateAll((groups) => groups.map((group) => group.label)),
    ['In both runs', 'Only in A']);
  await page.locator('#pair').selectOption(String(kernels.findIndex((one) => one.b === null)));
  await page.getByText('Only A has this kernel.').waitFor();
  assert.equal(await page.locator('#kernel-b').inputValue(), '');
  await page.locator('#kernel-b').selectOption('0');
  await page.waitForFunction((number) => location.search.endsWith(`&kernel=${number}&kernel_b=0`), alone);
  const row = wanted.sections.find((section) => section.id === 'SpeedOfLight')
    .tables[0].rows.find((one) => one.name === 'Duration');
  const relative = () => page.locator('#section-SpeedOfLight tbody tr', { hasText: 'Duration' }).locator('td').nth(3).innerText();
  const text = `${row.relative < 0 ? '−' : '+'}${Math.abs(row.relative * 100).toFixed(1)} %`;
  assert.equal((await relative()).split('\n')[0], text);
  await page.reload();
  await page.locator('body[data-loaded]').waitFor();
  assert.equal((await relative()).split('\n')[0], text, 'the address keeps the choice');
  assert.equal(await page.locator('#kernel-b').inputValue(), '0');
  await page.close();
});

test('the job page links to its reports', async () => {
  const { job } = await api(`/runs/${runs.a}/report?kernel=0`);
  const page = await openJob(job);
  assert.ok(await page.locator('#kernel-table th').count() < 10, 'the table leaves the metrics to the report');
  await page.locator('#kernel-table tbody a', { hasText: 'scale' }).click();
  await page.locator('body[data-loaded="1"]').waitFor();
  await page.locator('#job-link').click();
  await page.locator('body[data-loaded="completed"]').waitFor();
  await page.locator('#job-reports a').first().click();
  await page.locator('body[data-loaded="1"]').waitFor();
  for (const link of await page.locator('#links a').all()) {
    assert.equal((await fetch(`${daemon.url}${await link.getAttribute('href')}`)).status, 200);
  }
  await page.close();
});

test('the report of a run without counters says why it has no sections, and has a roofline point of its model', async () => {
  const job = await waitForEnd(await submit({ kind: 'kernel', kernel: 'relu', dtype: 'fp32', shape: { n: 4096 }, samples: 2,
    device: 'cpu' }));
  const page = await openJob(job.id);
  assert.deepEqual(await page.locator('#job-reports a').allInnerTexts(),
    ['Report scalar', 'Report vector', 'Compare', 'History']);
  await page.locator('#job-reports a').first().click();
  await page.locator('body[data-loaded="0"]').waitFor();
  assert.equal(await page.locator('#no-sections').innerText(), 'No sections: the job did not ask for the counters pass');
  assert.equal(await page.locator('#roofline-chart circle').count(), 1);
  assert.match(await page.locator('#roofline-legend').innerText(), /Model at 0\.125 FLOP\/byte/);
  await page.locator('#links a', { hasText: 'Compare' }).click();
  await page.locator('body[data-loaded="true"]').waitFor();
  assert.match(await page.locator('#nothing').innerText(), /Neither run has a counters pass/);
  await page.close();
});

test('unknown runs and kernels show an error', async () => {
  const wrong = [['report.html?run=999999', /999999/], [`report.html?run=${runs.a}&kernel=77`, /no kernel 77/],
    ['report.html', /run/],
    ['compare.html?a=1', /two runs/], [`compare.html?a=${runs.a}&b=999999`, /999999/],
    [`compare.html?a=${runs.a}&b=${runs.b}&kernel=55`, /no kernel 55/]];
  for (const [where, message] of wrong) {
    const page = await openPage(`${daemon.url}/${where}`);
    await page.locator('#problem').waitFor();
    assert.match(await page.locator('#problem').innerText(), message);
    await page.close();
  }
  ignoreBrowserErrors('status of 404');
});

test('the pages fit a phone in dark mode', async () => {
  for (const [name, start] of [['report', () => openReport(1, { viewport: { width: 360, height: 740 }, colorScheme: 'dark' })],
    ['compare', () => openComparison({ viewport: { width: 360, height: 740 }, colorScheme: 'dark' })]]) {
    const page = await start();
    assert.ok(await fitsWidth(page), `${name} scrolls horizontally`);
    await takeScreenshot(page, `${name}-360`);
    await page.close();
  }
  const page = await openReport(0, { colorScheme: 'dark' });
  await takeScreenshot(page, 'report-dark');
  await page.close();
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
