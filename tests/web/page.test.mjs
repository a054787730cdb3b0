// The main page and the job page in headless Chromium with a real daemon: from the form to the result, at three widths, in both
// colour schemes, by keyboard, and with a token. No page may cause a console error or violate its Content Security Policy.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import {
  browserErrors, build, daemon, ENDLESS, findInaccessible, waitForEnd, fitsWidth, ignoreBrowserErrors, openJobForm, openPage,
  scratch, startDaemon, submit, takeScreenshot,
} from './harness.mjs';

const train = (request) => submit({ kind: 'train', ...request });

test('without jobs the page explains how to start', async () => {
  const page = await openPage(daemon.url);
  await page.locator('#devices li').first().waitFor();
  assert.match(await page.locator('#empty').innerText(), /No jobs yet/);
  assert.match(await page.locator('#devices').innerText(), /cpu/);
  await page.close();
});

let job;
test('the form starts a comparison, and the page follows it to its result', async () => {
  const page = await openJobForm(daemon.url);
  await page.locator('[name="max_images"]').fill('1024');
  await page.locator('[name="epochs"]').fill('3');
  await page.locator('[name="passes"][value="counters"]').check();
  await page.getByRole('button', { name: 'Start training' }).click();
  await page.waitForURL(/job\.html\?id=\d+/);
  job = Number(new URL(page.url()).searchParams.get('id'));
  await page.locator('body[data-loaded="completed"]').waitFor();
  assert.match(await page.locator('#verdict').innerText(), /^FP16 is (\d+\.\d\d times as fast as|slower than) FP32/);
  const results = await (await fetch(`${daemon.url}/jobs/${job}/results`)).json();
  for (const run of results.runs) {
    const bars = page.locator('.bar', { hasText: run.variant });
    assert.ok(await bars.count() >= 6);
  }
  assert.equal(await page.locator('#chart-time canvas').count(), 1);
  assert.equal(await page.locator('#problem').isVisible(), false);
  assert.equal(await page.locator('#cancel').isVisible(), false);
  await takeScreenshot(page, 'job-light');
  await page.close();
});

test('the comparison is explained in the sentences of the API', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=${job}`);
  await page.locator('body[data-loaded="completed"]').waitFor();
  const { items } = await (await fetch(`${daemon.url}/jobs/${job}/comparison`)).json();
  const sentences = items[0].explanation;
  assert.ok(sentences.length >= 6);
  assert.deepEqual(await page.locator('#explanation li').evaluateAll((all) => all.map((one) => one.dataset.topic)),
    sentences.map(({ topic }) => topic));
  const shown = await page.locator('#explanation').innerText();
  for (const { text, reason } of sentences) assert.ok(shown.includes(text ?? reason), `${text ?? reason} is not in ${shown}`);
  assert.equal(await page.locator('#explanation .shown-by').count(), 0, 'references without a report are not shown');
  await page.close();
});

test('a missing value is a dash with a reason', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=${job}`);
  await page.locator('body[data-loaded]').waitFor();
  assert.match(await page.locator('#reasons').innerText(), /counters pass: /);
  const empty = page.locator('td.null').first();
  await page.locator('#epochs summary').click();
  assert.equal(await empty.innerText(), '—');
  assert.ok((await empty.getAttribute('title')).length > 3);
  await page.close();
});

test('bars are aligned', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=${job}`);
  await page.locator('body[data-loaded]').waitFor();
  const begins = await page.locator('#kernel-table .share').evaluateAll((bars) =>
    bars.map((bar) => bar.getBoundingClientRect().left));
  assert.ok(begins.length > 3 && new Set(begins).size === 1, `bars begin at ${begins}`);
  assert.match(await page.locator('#provenance-table').innerText(), /Requested max images/);
  await page.close();
});

const tableRows = (page, selector) => page.locator(`${selector} tbody tr`).evaluateAll((rows) => rows.map((row) =>
  [...row.cells].map((cell) => cell.innerText.trim())));

test('memory by purpose and the time of a step are pictures with their numbers', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=${job}`);
  await page.locator('body[data-loaded]').waitFor();
  const [run] = (await (await fetch(`${daemon.url}/jobs/${job}/results`)).json()).runs;
  const bytes = (name) => run.measurements.find((one) => one.name === `memory_${name}_bytes`).value;
  const total = ['weights', 'activations', 'workspace', 'dataset'].reduce((sum, name) => sum + bytes(name), 0);
  const rows = await tableRows(page, '#memory-bars');
  assert.deepEqual(rows.map(([name]) => name), ['Weights', 'Activations', 'Workspace', 'Dataset']);
  assert.equal(rows[0][2], `${(100 * bytes('weights') / total).toFixed(2)} %`);
  const [first, track] = await page.locator('#memory-bars .stack').first().evaluate((stack) =>
    [stack.querySelector('.part'), stack.querySelector('.stack-track')].map((one) => one.getBoundingClientRect().width));
  const largest = Math.max(...await page.locator('#memory-bars .stack').evaluateAll((stacks) => stacks.map((stack) =>
    [...stack.querySelectorAll('.part')].reduce((sum, part) => sum + parseFloat(part.style.width), 0))));
  assert.ok(Math.abs(largest - 100) < 0.1, 'the run with the most memory fills its track');
  assert.ok(first / track <= bytes('weights') / total + 0.01, 'all bars have one scale');
  const parts = (await tableRows(page, '#step-time-bars')).map(([name]) => name);
  for (const phase of ['forward', 'backward', 'optimizer']) assert.ok(parts.includes(phase), `${phase} is not in ${parts}`);
  await page.close();
});

test('measurements are in words by subject, and the names of the API one click away', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=${job}`);
  await page.locator('body[data-loaded]').waitFor();
  const names = (await tableRows(page, '#measurement-table')).map(([name]) => name);
  assert.ok(names.indexOf('Memory') < names.indexOf('Peak memory') && names.indexOf('Peak memory') < names.indexOf('Launches'));
  assert.ok(names.every((name) => !name.includes('_')), names.filter((name) => name.includes('_')).join());
  assert.equal(await page.locator('#raw-measurement-table').isVisible(), false);
  await page.locator('#raw-measurements summary').focus();
  await page.keyboard.press('Enter');
  const raw = (await tableRows(page, '#raw-measurement-table')).map(([name]) => name);
  assert.ok(raw.includes('peak_memory_bytes timing'), raw.join());
  const groups = await page.locator('#measurement-table tr.group').count();
  assert.equal(raw.length, names.length - groups, 'both tables have every measurement');
  await page.close();
});

test('the job page is accessible', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=${job}`);
  await page.locator('body[data-loaded]').waitFor();
  assert.deepEqual(await findInaccessible(page, 'main'), []);
  await page.close();
});

test('the kernel table sorts by keyboard and filters by name', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=${job}`);
  await page.locator('#kernel-table tbody tr').first().waitFor();
  const totals = () => page.locator('#kernel-table tbody tr').evaluateAll((rows) => rows.map((row) => row.cells[0].innerText));
  const before = await totals();
  await page.locator('#kernel-table th button', { hasText: 'Kernel' }).focus();
  await page.keyboard.press('Enter');
  assert.deepEqual(await totals(), [...before].sort((a, b) => a.localeCompare(b)));
  assert.equal(await page.locator('#kernel-table th[aria-sort="ascending"]').innerText(), 'Kernel');
  await page.locator('#kernel-find').fill('conv2');
  assert.ok((await totals()).length < before.length && (await totals()).every((name) => name.includes('conv2')));
  await page.close();
});

test('runs of two jobs are compared by engine', async () => {
  const engines = ['reference', 'blas'];
  const ids = await Promise.all(engines.map((engine) => train({ engine, precisions: ['fp32'], epochs: 2, max_images: 256 })));
  const runs = (await Promise.all(ids.map(waitForEnd))).map((done) => done.runs[0].id);
  const page = await openPage(`${daemon.url}/compare.html?a=${runs[0]}&b=${runs[1]}`);
  await page.locator('body[data-loaded]').waitFor();
  const [before, after] = await Promise.all(ids.map(async (id) =>
    (await (await fetch(`${daemon.url}/jobs/${id}/results`)).json()).runs[0].summary.epoch_ms_median));
  const expected = before >= after ? `FP32 by blas is ${(before / after).toFixed(2)} times as fast as FP32 by reference`
    : `FP32 by blas is slower than FP32 by reference: it takes ${(after / before).toFixed(2)} times as long`;
  assert.ok((await page.locator('#verdict').innerText()).startsWith(expected), expected);
  for (const engine of engines) assert.equal(await page.locator('.bar', { hasText: `fp32 by ${engine}` }).count(), 6);
  assert.match(await page.locator('#reasons').innerText(), /engine reference, blas/);
  assert.ok(await page.locator('#nothing').isVisible() && !await page.locator('#reports').isVisible());
  await takeScreenshot(page, 'engines-light');
  await page.close();
});

test('a running job shows its progress and can be cancelled', async () => {
  const id = await submit(ENDLESS);
  const page = await openPage(`${daemon.url}/job.html?id=${id}`);
  await page.locator('#live-numbers dd').first().waitFor();
  assert.match(await page.locator('#live-what').innerText(), /fp32 · timing pass/);
  await takeScreenshot(page, 'job-running');
  await page.locator('#cancel').click();
  await page.locator('#job-state .state[data-state="cancelled"]').waitFor();
  assert.equal(await page.locator('#job-reports a').count(), 0, 'a job without results has no report');
  assert.match(await page.locator('#job-passes').innerText(), /^fp32\s+timing\s+(not run|running|unavailable)/);
  await page.getByRole('button', { name: 'Run again' }).click();
  await page.waitForURL((url) => url.searchParams.get('id') > id);
  const again = new URL(page.url()).searchParams.get('id');
  const [{ request: first }, { request: second }] = await Promise.all([id, again].map(async (one) =>
    (await fetch(`${daemon.url}/jobs/${one}`)).json()));
  assert.deepEqual(second, { ...first, device: 'cpu' });
  await fetch(`${daemon.url}/jobs/${again}`, { method: 'DELETE' });
  await page.close();
});

test('a job gets another name and other tags on its page', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=${job}`);
  await page.locator('#label').click();
  const dialog = page.getByRole('dialog', { name: 'Name and tags' });
  await dialog.getByLabel('Name').fill('before the change');
  await dialog.getByLabel('Tags').fill('a b, mnist, übung');
  await dialog.getByRole('button', { name: 'Save' }).click();
  assert.match(await dialog.locator('[data-field="tags"] .problem-line').innerText(), /letters, digits/);
  ignoreBrowserErrors('400 (Bad Request)');
  assert.deepEqual(await findInaccessible(page, 'dialog'), []);
  await dialog.getByLabel('Tags').fill('mnist, fp32-only');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  assert.equal(await page.locator('#job-title').innerText(), `Job ${job} · before the change`);
  assert.deepEqual(await page.locator('#job-tags .tag').allInnerTexts(), ['mnist', 'fp32-only']);
  await page.goto(`${daemon.url}/?search=fp32-only`);
  await page.locator('#jobs tbody tr').waitFor();
  assert.match(await page.locator('#jobs tbody tr').innerText(), /before the change\s*mnist\s*fp32-only/);
  await page.close();
  await fetch(`${daemon.url}/jobs/${job}`, { method: 'PATCH', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: null, tags: null }) });
});

test('the list of jobs follows their states', async () => {
  const page = await openPage(daemon.url, { colorScheme: 'dark' });
  const id = await train({ epochs: 1, warmup_epochs: 0, max_images: 256, precisions: ['fp32'] });
  const row = page.locator('#jobs tbody tr', { has: page.locator(`a[href="/job.html?id=${id}"]`) });
  await row.locator('.state[data-state="completed"]').waitFor();
  assert.match(await row.innerText(), /completed\s+mnist_cnn\s+batch 64 · .*max_images=256.*\s+fp32 [\d.]+ m?s\s+cpu/);
  await takeScreenshot(page, 'list-dark');
  await page.close();
});

test('steps that were skipped without a loss scale are named', async () => {
  const page = await openPage(daemon.url);
  const epochs = (scale, ...skipped) => skipped.map((steps, epoch) => ({ epoch, loss_scale: scale, skipped_steps: steps }));
  const runs = Object.entries({ fp16: epochs(32768, 1), tf32: epochs(null, 5, 938), fp32: epochs(null, 0) })
    .map(([variant, list]) => ({ variant, epochs: list, params: {}, summary: { epochs: 1, unavailable: {} } }));
  const notes = await page.evaluate(async (all) => (await import('/lib/training.js')).trainingOf(all, []).notes, runs);
  assert.deepEqual(notes.map(({ text }) => text), ['tf32: steps skipped, because a gradient was not finite or too large: 943']);
  await page.close();
});

test('filters of the list are kept in the URL', async () => {
  const page = await openPage(daemon.url);
  await page.locator('#jobs tbody tr').first().waitFor();
  const total = await page.locator('#jobs tbody tr').count();
  await page.getByLabel('State').selectOption('cancelled');
  await page.waitForFunction((count) => document.querySelectorAll('#jobs tbody tr').length < count, total);
  assert.deepEqual(new Set(await page.locator('#jobs tbody .state').allInnerTexts()), new Set(['cancelled']));
  assert.equal(new URL(page.url()).search, '?state=cancelled');
  await page.getByLabel('Kind').selectOption('ceilings');
  await page.locator('#none').waitFor();
  await page.reload();
  await page.locator('#none').waitFor();
  assert.equal(await page.getByLabel('Kind').inputValue(), 'ceilings');
  assert.equal(await page.locator('#empty').isVisible(), false);
  await page.close();
});

test('an unknown job shows an error', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=999999`);
  await page.locator('#problem').waitFor();
  ignoreBrowserErrors('status of 404');
  await page.close();
});

test('the pages fit a phone', async () => {
  for (const [where, name] of [[daemon.url, 'list-360'], [`${daemon.url}/job.html?id=${job}`, 'job-360']]) {
    const page = await openPage(where, { viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
    await page.locator(name.startsWith('job') ? 'body[data-loaded]' : '#jobs tbody tr').first().waitFor();
    assert.ok(await fitsWidth(page), `${name} scrolls horizontally`);
    const clipped = await page.locator('#measurement-table td').evaluateAll((cells) => cells.filter((cell) =>
      cell.getBoundingClientRect().right > innerWidth).length);
    assert.equal(clipped, 0, 'both runs fit beside each other');
    await takeScreenshot(page, name);
    await page.close();
  }
});

test('the job page in dark mode', async () => {
  const page = await openPage(`${daemon.url}/job.html?id=${job}`, { colorScheme: 'dark' });
  await page.locator('body[data-loaded]').waitFor();
  await takeScreenshot(page, 'job-dark');
  await page.close();
});

const rooflinectl = path.join(build, 'bin/rooflinectl');
const runTokenCommand = (state, ...more) =>
  execFileSync(rooflinectl, ['token', '--state', state, ...more], { stdio: ['ignore', 'pipe', 'ignore'] }).toString().trim();

async function logIn(page, token) {
  await page.getByLabel('Access token').fill(token);
  await page.getByRole('button', { name: 'Log in' }).click();
}

test('a daemon with a token asks for it once', async (t) => {
  const state = path.join(scratch, 'guarded');
  const token = runTokenCommand(state);
  const guarded = await startDaemon(state, '--require-token');
  t.after(guarded.stop);
  const page = await openPage(guarded.url);
  await logIn(page, 'wrong');
  await page.locator('dialog .problem-line', { hasText: /\S/ }).waitFor();
  await logIn(page, token);
  await page.locator('#devices li').first().waitFor();
  assert.equal(await page.evaluate(() => document.cookie), '', 'scripts must not be able to read the cookie');
  await page.reload();
  await page.locator('#devices li').first().waitFor();
  assert.equal(await page.locator('dialog').count(), 0);
  ignoreBrowserErrors('status of 401');
  await page.close();
});

test('a page whose token is revoked asks for another and reconnects', async (t) => {
  const state = path.join(scratch, 'revoked');
  const [first, second] = [runTokenCommand(state, 'first'), runTokenCommand(state, 'second')];
  const guarded = await startDaemon(state, '--require-token');
  t.after(guarded.stop);
  const request = async (method, where, body) => (await fetch(guarded.url + where, { method, body: JSON.stringify(body),
    headers: { authorization: `Bearer ${second}`, 'content-type': 'application/json' } })).json();
  const { id } = await request('POST', '/jobs', ENDLESS);
  const page = await openPage(`${guarded.url}/job.html?id=${id}`);
  await logIn(page, first);
  await page.locator('#live-numbers dd').first().waitFor();
  runTokenCommand(state, 'revoke', 'first');
  await logIn(page, second);
  await page.locator('dialog').waitFor({ state: 'detached' });
  await request('DELETE', `/jobs/${id}`);
  await page.locator('#job-state .state[data-state="cancelled"]').waitFor();
  ignoreBrowserErrors('status of 401');
  await page.close();
});

test('a page that was disconnected while its job ended shows the end', async () => {
  const id = await submit(ENDLESS);
  const page = await openPage(`${daemon.url}/job.html?id=${id}`, { refuse: `/jobs/${id}/events` });
  await page.waitForResponse((response) => response.url().endsWith('/events'));
  await fetch(`${daemon.url}/jobs/${id}`, { method: 'DELETE' });
  await waitForEnd(id);
  await page.locator('#job-state .state[data-state="cancelled"]').waitFor();
  ignoreBrowserErrors('status of 503');
  await page.close();
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
