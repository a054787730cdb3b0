// Posted code on the pages of its job and its report, put into the database of a real daemon.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { before, test } from 'node:test';
import { complaints, daemon, noSidewaysScroll, open, scratch, shoot } from './harness.mjs';

const fixture = path.join(process.env.ROOFLINED_SOURCE, 'tests/api/posted_runs.py');
let made; // {failed, job, binary, run}: posted_runs.py says what they are

before(() => { made = JSON.parse(execFileSync('python3', [fixture, path.join(scratch, 'state')])); });

async function openJob(id, state, options) {
  const page = await open(`${daemon.url}/job.html?id=${id}`, options);
  await page.locator(`body[data-loaded="${state}"]`).waitFor();
  return page;
}
async function openReport(options) {
  const page = await open(`${daemon.url}/report.html?run=${made.run}`, options);
  await page.locator('body[data-loaded="0"]').waitFor();
  return page;
}
const rowsOf = (table) => table.locator('tbody tr').evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) =>
  cell.innerText.trim())));
const sass = async (page) => (await rowsOf(page.locator('#instruction-table .rows'))).map((cells) => cells[1]);

test('what does not compile shows its log, once for all variants that had it', async () => {
  const page = await openJob(made.failed, 'failed');
  assert.match(await page.locator('#problem').innerText(), /code\.cu\(4\): error: expected an expression/);
  assert.deepEqual(await page.locator('#logs figcaption').allInnerTexts(), ['Compiler log, default, fast_math']);
  const log = await page.locator('#logs pre').innerText();
  assert.ok(log.startsWith(['code.cu(4): error: expected an expression', '      x[i] += <b>1</b>;', '              ^', '',
    'code.cu(2): warning'].join('\n')), log);
  assert.deepEqual(await page.locator('#logs a').allInnerTexts(), ['code.cu(4)', 'code.cu(2)']);
  await shoot(page, 'source-failed-light');
  await page.close();
});

test('the source has line numbers, and says what the compiler said at its lines', async () => {
  const page = await openJob(made.failed, 'failed');
  const rows = await rowsOf(page.locator('#code'));
  assert.deepEqual(rows.map(([line]) => line), ['1', '2', '3', '4', '5']);
  assert.match(rows[3][1], /^x\[i\] \+= <b>1<\/b>;\s*error: expected an expression$/);
  assert.deepEqual(await page.locator('#code tr.said').evaluateAll((all) => all.map((row) => row.id)), ['line-2', 'line-4']);
  await page.locator('#logs a').first().click();
  assert.equal(await page.locator('#code tr:target th').innerText(), '4');
  await page.close();
});

test('of a binary there is no text', async () => {
  const page = await openJob(made.binary, 'completed');
  assert.equal(await page.locator('#code').innerText(), 'A binary was posted, so there is no source text.');
  await page.close();
});

test('the report sums samples and instructions by line', async () => {
  const page = await openReport();
  const rows = await rowsOf(page.locator('#instruction-table .code'));
  assert.deepEqual(rows.map(([line, samples, executed]) => [line, samples, executed]),
    [['1', '', ''], ['2', '7', '128'], ['3', '', ''], ['4', '95', '96'], ['5', '', '']], 'a header’s line 4 is not ours');
  assert.equal((await sass(page)).length, 6);
  const [left, right] = await Promise.all(['.code', '.rows'].map((name) => page.locator(`.halves ${name}`).boundingBox()));
  assert.ok(left.x + left.width <= right.x && Math.abs(left.y - right.y) < 2, 'side by side');
  await shoot(page, 'source-light');
  await page.close();
});

test('a line shows its own instructions, by pointer and by keyboard', async () => {
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

test('a phone is wide enough, in the dark', async () => {
  const options = { viewport: { width: 360, height: 740 }, colorScheme: 'dark' };
  for (const [page, name] of [[await openJob(made.failed, 'failed', options), 'source-failed-360'],
    [await openReport(options), 'source-360']]) {
    assert.ok(await noSidewaysScroll(page), `${name} scrolls sideways`);
    await shoot(page, name);
    await page.close();
  }
});

test('no page complained', () => assert.deepEqual(complaints, []));
