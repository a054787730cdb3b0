// Job and report pages of posted code, inserted into the database of a real daemon.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { before, test } from 'node:test';
import { browserErrors, daemon, findInaccessible, fitsWidth, openPage, scratch, takeScreenshot } from './harness.mjs';

const fixture = path.join(process.env.ROOFLINED_SOURCE, 'tests/api/posted_runs.py');
let inserted; // {failed, job, binary, run}, as described in posted_runs.py

before(() => { inserted = JSON.parse(execFileSync('python3', [fixture, path.join(scratch, 'state')])); });

async function openJob(id, state, options) {
  const page = await openPage(`${daemon.url}/job.html?id=${id}`, options);
  await page.locator(`body[data-loaded="${state}"]`).waitFor();
  return page;
}
async function openReport(options) {
  const page = await openPage(`${daemon.url}/report.html?run=${inserted.run}`, options);
  await page.locator('body[data-loaded="0"]').waitFor();
  return page;
}
const readRows = (table) => table.locator('tbody tr').evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) =>
  cell.innerText.trim())));
const sass = async (page) => (await readRows(page.locator('#instruction-table .rows'))).map((cells) => cells[1]);

test('a compile error shows its log once for all variants that have it', async () => {
  const page = await openJob(inserted.failed, 'failed');
  assert.match(await page.locator('#problem').innerText(), /code\.cu\(4\): error: expected an expression/);
  assert.deepEqual(await page.locator('#logs figcaption').allInnerTexts(), ['Compiler log (default, fast_math)']);
  const log = await page.locator('#logs pre').innerText();
  assert.ok(log.startsWith(['code.cu(4): error: expected an expression', '      x[i] += <b>1</b>;', '              ^', '',
    'code.cu(2): warning'].join('\n')), log);
  assert.deepEqual(await page.locator('#logs a').allInnerTexts(), ['code.cu(4)', 'code.cu(2)']);
  await takeScreenshot(page, 'source-failed-light');
  await page.close();
});

test('the source has line numbers and the messages of the compiler at its lines', async () => {
  const page = await openJob(inserted.failed, 'failed');
  const rows = await readRows(page.locator('#code'));
  assert.deepEqual(rows.map(([line]) => line), ['1', '2', '3', '4', '5']);
  assert.match(rows[3][1], /^x\[i\] \+= <b>1<\/b>;\s*error: expected an expression$/);
  const linesWithMessages = page.locator('#code tr.has-message');
  assert.deepEqual(await linesWithMessages.evaluateAll((all) => all.map((row) => row.id)), ['line-2', 'line-4']);
  await page.locator('#logs a').first().click();
  assert.equal(await page.locator('#code tr:target th').innerText(), '4');
  await page.close();
});

test('a posted binary has no source', async () => {
  const page = await openJob(inserted.binary, 'completed');
  assert.equal(await page.locator('#code').innerText(), 'Source unavailable (submitted as binary)');
  await page.close();
});

test('the head and the headline name the posted kernel and its source', async () => {
  const page = await openJob(inserted.job, 'completed');
  assert.equal(await page.locator('h1').innerText(), `Job ${inserted.job} · adds.cu`);
  assert.equal(await page.locator('#job-tags').innerText(), 'night');
  assert.match(await page.locator('#job-properties').innerText(), /^kernel add · grid 4×1×1 · block 64×1×1 · on gpu0 · /);
  assert.match(await page.locator('#verdict').innerText(), /^add \(adds\.cu\), default: 22\.50 µs/);
  await takeScreenshot(page, 'source-job-light');
  await page.close();
  const unnamed = await openJob(inserted.binary, 'completed');
  assert.equal(await unnamed.locator('h1').innerText(), `Job ${inserted.binary} · add`);
  await unnamed.close();
});

test('the report sums samples and instructions by source line', async () => {
  const page = await openReport();
  const rows = await readRows(page.locator('#instruction-table .code'));
  assert.deepEqual(rows.map(([line, samples, executed]) => [line, samples, executed]),
    [['1', '', ''], ['2', '7', '128'], ['3', '', ''], ['4', '95', '96'], ['5', '', '']], 'line 4 of a header is not counted');
  assert.equal((await sass(page)).length, 6);
  const [left, right] = await Promise.all(['.code', '.rows'].map((name) => page.locator(`.halves ${name}`).boundingBox()));
  assert.ok(left.x + left.width <= right.x && Math.abs(left.y - right.y) < 2, 'side by side');
  await takeScreenshot(page, 'source-light');
  await page.close();
});

test('a selected line shows its instructions, by mouse and keyboard', async () => {
  const page = await openReport();
  const line = (number) => page.locator(`.code [data-line="${number}"]`);
  await line(4).locator('td').last().click();
  assert.deepEqual(await sass(page), ['LDG.E R5, desc[UR4][R2.64] ;', 'STG.E desc[UR4][R2.64], R5 ;']);
  const said = page.locator('#instruction-table [role="status"]');
  assert.equal(await said.innerText(), '2 instructions of line 4 · long scoreboard 95 · wait 5');
  await page.getByRole('button', { name: 'Line 2' }).focus();
  await page.keyboard.press('Enter');
  assert.equal((await sass(page)).length, 2);
  assert.equal(await page.locator('.code [aria-selected="true"]').getAttribute('data-line'), '2');
  await page.keyboard.press('Enter');
  assert.equal((await sass(page)).length, 6, 'all again');
  await page.close();
});

test('of 10,000 instructions only those in view are in the document', async () => {
  const page = await openPage(`${daemon.url}/report.html?run=${inserted.long_run}`);
  await page.locator('body[data-loaded="0"]').waitFor();
  const holder = page.locator('.instructions');
  const widths = () => holder.locator('thead th').evaluateAll((heads) => heads.map((head) => head.offsetWidth));
  const rows = holder.locator('tbody tr[aria-rowindex]');
  const lastShown = () => rows.last().innerText();
  await rows.first().waitFor();
  assert.ok(await rows.count() < 150);
  assert.equal(await holder.locator('table').getAttribute('aria-rowcount'), '10001');
  const first = await widths();
  await holder.evaluate((element) => { element.scrollTop = element.scrollHeight; });
  await page.locator('.instructions tr[aria-rowindex="10001"]').waitFor();
  assert.match(await lastShown(), /^0x270f0\s+FADD R54, R5, 9999 ;/);
  assert.deepEqual(await widths(), first, 'columns keep their widths');
  assert.ok(await rows.count() < 150);
  await holder.focus();
  await page.keyboard.press('Control+Home');
  await page.locator('.instructions tr[aria-rowindex="2"]').waitFor();
  await holder.getByRole('button', { name: 'Offset' }).click(); // the last instruction first
  await page.locator('.instructions tr[aria-rowindex="2"]', { hasText: '0x270f0' }).waitFor();
  await page.getByLabel('Find instructions').fill('bar.sync');
  await page.locator('#instruction-table [role="status"]', { hasText: /^1 instruction;/ }).waitFor();
  assert.deepEqual(await sass(page), ['BAR.SYNC 0x0 ;']);
  await page.getByLabel('Find instructions').fill('');
  await rows.first().waitFor();
  assert.deepEqual(await findInaccessible(page, '#instructions'), []);
  await page.close();
});

test('the pages fit a phone in dark mode', async () => {
  const options = { viewport: { width: 360, height: 740 }, colorScheme: 'dark' };
  for (const [page, name] of [[await openJob(inserted.failed, 'failed', options), 'source-failed-360'],
    [await openReport(options), 'source-360']]) {
    assert.ok(await fitsWidth(page), `${name} scrolls horizontally`);
    await takeScreenshot(page, name);
    await page.close();
  }
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
