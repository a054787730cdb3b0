// Measures the first visit of the main page in headless Chromium on a database of many jobs: the times from the navigation until
// the first content is painted and until the list of jobs is filled. Each load has a new browser context, so nothing is cached.
// usage: node tests/bench/job_list.mjs BUILD STATE [LOADS]. STATE is a state folder that tests/bench/grow_database made.
// `ctest -R web_playwright`, which installs the browser driver, must have run in BUILD.
import { execFileSync, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';

const [build, state, loads = '21'] = process.argv.slice(2);
if (!state || !(Number(loads) > 0)) {
  console.error('usage: node tests/bench/job_list.mjs BUILD STATE [LOADS]');
  process.exit(2);
}
const { chromium } = createRequire(path.resolve(build, 'tests/web/package.json'))('playwright-core');
const ROWS = 50; // of a page of the list
const WARM_UP_LOADS = 2;
const quantile = (values, share) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))];

const daemon = spawn(path.join(build, 'bin/rooflined'), ['--port', '0', '--state', state, '--devices', 'cpu',
  '--refresh-ceilings=false'], { stdio: ['ignore', 'pipe', 'ignore'] });
const url = await new Promise((resolve, reject) => {
  daemon.stdout.on('data', (bytes) => {
    const match = /listening on (http:\S+)/.exec(bytes);
    if (match) resolve(match[1]);
  });
  daemon.on('exit', (code) => reject(new Error(`the daemon ended with ${code}`)));
});

/** Runs in the page. Stores the time at which the list has `rows` rows and the frame with them has been drawn, which is before
 * the first task after the frame's callbacks. */
function watchList(rows) {
  new MutationObserver((_, observer) => {
    if (document.querySelectorAll('#jobs tbody tr').length < rows) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => { globalThis.filledMs = performance.now(); }));
  }).observe(document, { childList: true, subtree: true });
}

/** Loads the page. Returns ms from the navigation: {response, paint, filled}. */
async function load(browser) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await page.addInitScript(watchList, ROWS);
  await page.goto(url);
  await page.waitForFunction(() => globalThis.filledMs !== undefined);
  const times = await page.evaluate(() => ({ filled: globalThis.filledMs,
    response: performance.getEntriesByType('navigation')[0].responseEnd,
    paint: performance.getEntriesByName('first-contentful-paint')[0].startTime }));
  await context.close();
  return times;
}

try {
  const { items: [newest] } = await (await fetch(`${url}/jobs?limit=1`)).json();
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu'] });
  const loadBefore = os.loadavg()[0], times = [];
  for (let i = 0; i < WARM_UP_LOADS; i += 1) await load(browser);
  for (let i = 0; i < Number(loads); i += 1) times.push(await load(browser));
  console.log('| from the navigation until | median, ms | 95 % | max |\n| --- | ---: | ---: | ---: |');
  for (const [name, words] of [['response', 'the document is received'], ['paint', 'first contentful paint'],
    ['filled', `the list has ${ROWS} rows and is drawn`]]) {
    const values = times.map((loadTimes) => loadTimes[name]);
    console.log(`| ${words} | ${[quantile(values, 0.5), quantile(values, 0.95), Math.max(...values)]
      .map((ms) => ms.toFixed(0)).join(' | ')} |`);
  }
  const commit = execFileSync('git', ['describe', '--always', '--dirty'],
    { cwd: path.dirname(new URL(import.meta.url).pathname) });
  console.log(`\nCommit ${String(commit).trim()}, newest job ${newest.id}, ${loads} loads, ${os.cpus()[0].model}, `
    + `${os.cpus().length} cores, load average ${loadBefore.toFixed(1)} to ${os.loadavg()[0].toFixed(1)}, `
    + `Chromium ${browser.version()}.`);
  await browser.close();
} finally {
  daemon.removeAllListeners('exit');
  daemon.kill('SIGTERM');
}
