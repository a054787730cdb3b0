// Starts what all tests of the pages share: a daemon and a browser. Lists all errors and warnings of the browser.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before } from 'node:test';

export const build = process.env.ROOFLINED_BUILD;
const { chromium } = createRequire(path.join(build, 'tests/web/'))('playwright-core');
export const scratch = mkdtempSync(path.join(tmpdir(), 'rooflined-web-'));
const screenshots = path.join(build, 'tests/web/screenshots');
const executablePath = process.env.CHROMIUM || ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome']
  .map((program) => `/usr/bin/${program}`).find(existsSync);
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

// Few images with which jobs train by default: every worker would need seconds of processor time to draw the synthetic digits.
const digits = path.join(scratch, 'digits');
execFileSync('/usr/bin/python3', ['-c', 'import digits, pathlib, sys; digits.mnist(pathlib.Path(sys.argv[1]))', digits],
  { cwd: path.join(process.env.ROOFLINED_SOURCE, 'tests') });

export async function startDaemon(state, ...options) {
  const child = spawn(path.join(build, 'bin/rooflined'),
    ['--port', '0', '--state', state, '--devices', 'cpu', '--mnist-dir', digits, ...options],
    { stdio: ['ignore', 'pipe', 'inherit'] });
  const url = await new Promise((resolve, reject) => {
    let text = '';
    child.stdout.on('data', (bytes) => {
      text += bytes;
      const match = /listening on (http:\S+)/.exec(text);
      if (match) resolve(match[1]);
    });
    child.on('exit', (code) => reject(new Error(`the daemon ended with ${code}`)));
  });
  const stop = () => new Promise((resolve) => {
    child.removeAllListeners('exit');
    child.on('exit', resolve);
    child.kill('SIGTERM');
  });
  return { child, url, stop };
}

const DEADLINE_MS = 120_000; // longest wait for a part of a page; on an idle machine a page is complete in a second

export let daemon;
let browser;
export const browserErrors = [];
export const ignoreBrowserErrors = (text) =>
  browserErrors.splice(0, browserErrors.length, ...browserErrors.filter((error) => !error.includes(text)));

/** Returns true for a request that fails without harm when the browser leaves its page: the event stream, or an icon that is
 * still being fetched. */
const isAbortedByNavigation = (request) => request.url().endsWith('/events')
  || (request.url().endsWith('/favicon.svg') && request.failure()?.errorText === 'net::ERR_ABORTED');

/** Opens a page. `refuse`: the path of requests that get status 503 instead of the daemon's answer. */
export async function openPage(where, { refuse, ...options } = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  page.setDefaultTimeout(DEADLINE_MS);
  if (refuse) await page.route((url) => url.pathname === refuse, (route) => route.fulfill({ status: 503 }));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) browserErrors.push(`${page.url()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => browserErrors.push(`${page.url()}: ${error}`));
  page.on('requestfailed', (request) => {
    if (!isAbortedByNavigation(request)) browserErrors.push(`${request.url()}: ${request.failure()?.errorText}`);
  });
  await page.addInitScript(() => document.addEventListener('securitypolicyviolation',
    (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
  await page.goto(where);
  return page;
}

/** Opens the main page with the form for a new job. */
export async function openJobForm(url, options) {
  const page = await openPage(url, options);
  await page.locator('#new > summary').click();
  await page.locator('#job-fields input').first().waitFor();
  return page;
}

export const takeScreenshot = (page, name) => page.screenshot({ path: path.join(screenshots, `${name}.png`), fullPage: true });
/** Returns whether the page does not scroll horizontally. After a change of the window, waits until the charts have been drawn
 * again. */
export const fitsWidth = (page) =>
  page
    .waitForFunction(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth, null, { timeout: 10000 })
    .then(() => true, (error) => {
      if (error.name !== 'TimeoutError') throw error;
      return false;
    });

/** Returns the violations that axe-core finds in a part of the page: ['rule: elements', …]. */
export async function findInaccessible(page, selector) {
  await page.evaluate(readFileSync(path.join(build, 'tests/web/node_modules/axe-core/axe.min.js'), 'utf8'));
  const { violations } = await page.evaluate((part) => globalThis.axe.run(part), selector);
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(', ')}`);
}

/** Returns the links to parts of the page itself that do not exist. */
export const findDeadLinks = (page) => page.locator('a[href^="#"]').evaluateAll((links) =>
  links.map((link) => link.hash).filter((hash) => !document.getElementById(decodeURIComponent(hash.slice(1)))));

/** Asserts that a page shows no error, has no dead link, fits its window and has no violation that axe-core finds, in the light
 * theme on a desktop and in the dark theme on a phone. loaded: selector of an element that appears when the page is complete. */
export async function assertAccessible(where, loaded = 'body[data-loaded]') {
  for (const options of [{ colorScheme: 'light' }, { colorScheme: 'dark', viewport: { width: 390, height: 844 } }]) {
    const page = await openPage(where, options);
    await page.locator(loaded).first().waitFor();
    assert.equal(await page.locator('#problem:not([hidden])').count(), 0, `${where} shows an error`);
    assert.deepEqual(await findDeadLinks(page), [], `${where} has dead links`);
    assert.ok(await fitsWidth(page), `${where} scrolls horizontally`);
    assert.deepEqual(await findInaccessible(page, 'html'), [], `${where}, ${options.colorScheme}`);
    await page.close();
  }
}

const MAX_LAYOUT_SHIFT = 0.02; // cumulative layout shift; Web Vitals calls up to 0.1 good

/** Opens a page without a cache. Returns {bytes, shift}: the number of bytes (headers and compressed bodies) transferred until
 * the page is loaded, and the cumulative layout shift of the page. */
async function measureFirstVisit(where, loaded) {
  const page = await openPage('about:blank');
  const session = await page.context().newCDPSession(page);
  let bytes = 0;
  session.on('Network.loadingFinished', ({ encodedDataLength }) => { bytes += encodedDataLength; });
  await session.send('Network.enable');
  await page.addInitScript(() => {
    globalThis.layoutShift = 0;
    new PerformanceObserver((list) => {
      for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) globalThis.layoutShift += value;
    }).observe({ type: 'layout-shift', buffered: true });
  });
  await page.goto(where);
  await page.locator(loaded).first().waitFor();
  await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
  const shift = await page.evaluate(() => globalThis.layoutShift);
  await page.close();
  return { bytes, shift };
}

/** Asserts that the first visit of a page transfers at most maxBytes, and that its content does not shift. t: context of the
 * test, with which the numbers are printed. */
export async function assertLightweight(t, where, maxBytes, loaded = 'body[data-loaded]') {
  const { bytes, shift } = await measureFirstVisit(where, loaded);
  t.diagnostic(`${where}: ${bytes} bytes, layout shift ${shift.toFixed(3)}`);
  assert.ok(bytes <= maxBytes, `${where} transfers ${bytes} bytes`);
  assert.ok(bytes > 1024, `${where}: no bytes were counted`);
  assert.ok(shift <= MAX_LAYOUT_SHIFT, `${where} shifts by ${shift.toFixed(3)}`);
}
export const MAX_PAGE_BYTES = 120 * 1024;

/** A training job that runs until it is cancelled. */
export const ENDLESS = { kind: 'train', engine: 'reference', epochs: 1000, warmup_epochs: 0, precisions: ['fp32'] };

/** Submits a job and returns its id. */
export const submit = async (request) => (await (await fetch(`${daemon.url}/jobs`, {
  method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(request),
})).json()).id;

/** Returns the job as soon as it has ended. */
export async function waitForEnd(id) {
  for (;;) {
    const job = await (await fetch(`${daemon.url}/jobs/${id}`)).json();
    if (['completed', 'failed', 'cancelled'].includes(job.state)) return job;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

before(async () => {
  assert.ok(executablePath, 'no Chromium: install it or name it in CHROMIUM');
  mkdirSync(screenshots, { recursive: true });
  daemon = await startDaemon(path.join(scratch, 'state'));
  browser = await chromium.launch({ executablePath, args: flags });
});

after(async () => {
  await browser?.close();
  await daemon?.stop();
  rmSync(scratch, { recursive: true, force: true });
});
