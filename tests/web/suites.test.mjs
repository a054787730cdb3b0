// The pages of suites in headless Chromium: a suite is run twice from the page, followed to its verdict, and promoted.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import {
  assertAccessible, assertLightweight, browserErrors, ENDLESS, fitsWidth, ignoreBrowserErrors, MAX_PAGE_BYTES, openPage, scratch,
  startDaemon, takeScreenshot,
} from './harness.mjs';

const METRIC = 'relu/vector/time_cold_us_median';
const definition = { name: 'tiny', summary: 'One small kernel', blocks: 5, profile: false,
  jobs: [{ name: 'relu', request: { kind: 'kernel', kernel: 'relu', shape: { n: 4096 }, variant: 'vector', samples: 3 } }],
  metrics: [{ job: 'relu', metric: 'time_cold_us_median', threshold_ratio: 10 }] };
let server;

before(async () => {
  const folder = path.join(scratch, 'suites.d');
  mkdirSync(folder);
  writeFileSync(path.join(folder, 'tiny.json'), JSON.stringify(definition));
  writeFileSync(path.join(folder, 'broken.json'), '{"name":"broken",\n"blocks":"many"}');
  server = await startDaemon(path.join(scratch, 'suites'), '--suites', folder);
});
after(() => server?.stop());

const texts = (locator) => locator.evaluateAll((elements) => elements.map((element) => element.innerText));

const request = async (method, where, body) => (await fetch(server.url + where, { method, body: JSON.stringify(body),
  headers: { 'content-type': 'application/json' } })).json();

/** Starts a run from the suite's page and follows it to its end. Returns the page of the run. Another job occupies the device
 * until the page has shown the waiting run. */
async function runFromPage() {
  const { id } = await request('POST', '/jobs', ENDLESS);
  const page = await openPage(`${server.url}/suite.html?name=tiny`);
  await page.locator('body[data-loaded]').waitFor();
  await page.getByRole('button', { name: 'Run suite' }).click();
  await page.waitForURL(/suite-run\.html\?id=\d+/);
  await page.locator('body[data-loaded="queued"], body[data-loaded="running"]').waitFor();
  assert.match(await page.locator('#live-what').innerText(), /^waits for the device$|^\d of 5 jobs/);
  assert.ok(await page.locator('#cancel').isVisible());
  await request('DELETE', `/jobs/${id}`);
  await page.locator('#promotion').waitFor({ timeout: 400_000 }); // the run has completed
  return page;
}

test('the list shows suites, and why a file is not one', async () => {
  const page = await openPage(`${server.url}/suites.html`);
  await page.locator('body[data-loaded]').waitFor();
  const [broken, tiny] = await texts(page.locator('#suites tbody tr'));
  assert.match(broken, /^broken\s+.*broken\.json:2: .*blocks.*\(at \/blocks\)/);
  assert.match(tiny, /^tiny\s+One small kernel\s+no runs/);
  assert.equal(await page.locator('nav a[aria-current]').innerText(), 'Suites');
  await page.getByRole('link', { name: 'tiny' }).click();
  await page.locator('#no-runs').waitFor();
  await page.close();
});

test('the first run has no baseline, and is promoted to one', async () => {
  const page = await runFromPage();
  assert.equal(await page.locator('#run-state').innerText(), 'incomparable');
  assert.equal(await page.locator('#live').isVisible(), false);
  const [cells] = await page.locator('#verdicts tbody tr').evaluateAll((rows) =>
    rows.map((row) => [...row.cells].map((cell) => cell.innerText)));
  assert.match(await page.locator('#verdict').innerText(), new RegExp(`${METRIC}: There is no baseline`));
  assert.equal(cells[0], METRIC, 'the reason is said once');
  assert.equal(cells[2], '—', 'a missing baseline is a dash');
  assert.match(cells[3], /^[\d.]+ [µm]s$/);
  assert.equal(await page.locator('#jobs tbody tr').count(), 5);
  await page.locator('[name="name"]').fill('v1');
  await page.getByRole('button', { name: 'Promote' }).click();
  await page.locator('#promoted', { hasText: '--against v1' }).waitFor();
  await page.getByRole('button', { name: 'Promote' }).click();
  await page.locator('#promoted', { hasText: 'already has a baseline v1' }).waitFor();
  ignoreBrowserErrors('status of 409');
  await takeScreenshot(page, 'suite-run-light');
  await page.close();
});

test('the second run is compared with the first, and the suite shows both', async () => {
  const run = await runFromPage();
  const api = await (await fetch(`${server.url}/suite-runs/2`)).json();
  assert.deepEqual(api.baseline.runs, [1]);
  assert.equal(await run.locator('#run-state').innerText(), api.verdict);
  assert.equal(await run.locator('#verdict').innerText(), api.reason);
  await run.getByRole('link', { name: METRIC }).click();
  await run.locator(`body[data-loaded="${METRIC}"]`).waitFor();
  assert.deepEqual((await texts(run.locator('#runs tbody th'))), ['2', '1']);
  assert.deepEqual((await texts(run.locator('#points tbody th'))), ['2', '1']);
  assert.equal(await run.locator('#chart canvas').count(), 1);
  assert.match((await texts(run.locator('#baselines tbody tr')))[0], /^v1\s+1\s/);
  assert.match(await run.locator('#summary').innerText(), /^One small kernel · 5 blocks of 1 job · 1 metric · a run takes /);
  await takeScreenshot(run, 'suite-light');
  await run.close();
});

test('the list of jobs has the jobs of suites on request', async () => {
  const page = await openPage(server.url);
  await page.locator('body[data-loaded]').waitFor();
  assert.equal(await page.locator('#jobs tbody tr', { hasText: 'suite tiny' }).count(), 0);
  await page.locator('#filters [name="in_suite"]').selectOption('true');
  await page.locator('#jobs tbody tr', { hasText: 'suite tiny · block 1' }).first().waitFor();
  assert.match(page.url(), /\?in_suite=true$/);
  await page.reload();
  await page.locator('#jobs tbody tr', { hasText: 'suite tiny · block 1' }).first().waitFor();
  await page.locator('#filters [name="in_suite"]').selectOption('false');
  await page.locator('#jobs tbody tr', { hasText: 'suite tiny' }).first().waitFor({ state: 'detached' });
  assert.equal(new URL(page.url()).search, '');
  await page.close();
});

test('unknown suites and runs show an error, and where to go on', async () => {
  for (const where of ['/suite.html?name=none', '/suite-run.html?id=999']) {
    const page = await openPage(server.url + where);
    await page.locator('#problem').waitFor();
    assert.equal(await page.locator('#problem').getByRole('link', { name: 'suites' }).getAttribute('href'), '/suites.html');
    ignoreBrowserErrors('status of 404');
    await page.close();
  }
});

const pages = ['/suites.html', `/suite.html?${new URLSearchParams({ name: 'tiny', metric: METRIC })}`, '/suite-run.html?id=2'];

test('every page is accessible and fits a phone in both themes', async () => {
  for (const where of pages) await assertAccessible(server.url + where);
});

test('the first visit of each page is small, and its content does not shift', async (t) => {
  for (const where of pages) await assertLightweight(t, server.url + where, MAX_PAGE_BYTES);
});

test('the pages fit a narrow phone in dark mode', async () => {
  for (const [where, name] of [[pages[0], 'suites-360'], [pages[1], 'suite-360'], [pages[2], 'suite-run-360']]) {
    const page = await openPage(server.url + where, { viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
    await page.locator('body[data-loaded]').waitFor();
    assert.ok(await fitsWidth(page), `${name} scrolls horizontally`);
    await takeScreenshot(page, name);
    await page.close();
  }
});

test('the browser reported no errors', () => assert.deepEqual(browserErrors, []));
