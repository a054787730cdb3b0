// Measures the timeline of a job's page in headless Chromium: the processor time of script and paint for a frame while the window
// of the timeline moves and zooms, and the time until a new window is shown at its full resolution. usage: node
// tests/bench/timeline.mjs BUILD STATE JOB RUN. STATE is a state folder that tests/bench/grow_database made; JOB and RUN are the
// ids that it printed as trace_job and trace_run. `ctest -R web_playwright`, which installs the browser driver, must have run in
// BUILD.
import { execFileSync, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';

const [build, state, job, run] = process.argv.slice(2);
if (!run) {
  console.error('usage: node tests/bench/timeline.mjs BUILD STATE JOB RUN');
  process.exit(2);
}
const { chromium } = createRequire(path.resolve(build, 'tests/web/package.json'))('playwright-core');
const FRAMES = 180; // of each motion
const WINDOWS = 40; // new windows of each width
// A pause after each window, because Chromium ignores a page's changes of its address after 200 in 10 s.
const PAUSE_MS = 80;
const SPANS_MS = [0.1, 1, 10, 20, 80, 300]; // widths of new windows

const quantile = (values, share) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))];
const summary = (values) =>
  [quantile(values, 0.5), quantile(values, 0.95), Math.max(...values)].map((ms) => ms.toFixed(1)).join(' | ');

const daemon = spawn(path.join(build, 'bin/rooflined'), ['--port', '0', '--state', state, '--devices', 'cpu'],
  { stdio: ['ignore', 'pipe', 'ignore'] });
const url = await new Promise((resolve) => daemon.stdout.on('data', (bytes) => {
  const match = /listening on (http:\S+)/.exec(bytes);
  if (match) resolve(match[1]);
}));

/** Returns the time of each frame in ms. It is the processor time of all tasks on the renderer's main thread, which executes
 * scripts, lays out and paints, from a task with animation callbacks until the next such task. */
function frameTimes(events) {
  const callbacks = events.filter((event) => event.name === 'FireAnimationFrame');
  const counts = new Map();
  for (const { pid, tid } of callbacks) counts.set(`${pid} ${tid}`, (counts.get(`${pid} ${tid}`) ?? 0) + 1);
  const [[main]] = [...counts].sort(([, a], [, b]) => b - a);
  const isMain = ({ pid, tid }) => `${pid} ${tid}` === main;
  const tasks = events.filter((event) => event.name === 'RunTask' && isMain(event)).sort((a, b) => a.ts - b.ts);
  const calls = callbacks.filter(isMain).map(({ ts }) => ts).sort((a, b) => a - b);
  const frames = [];
  let call = 0;
  for (const { ts, dur, tdur } of tasks) {
    const before = call;
    while (call < calls.length && calls[call] <= ts + dur) call += 1;
    if (call > before) frames.push(0);
    if (frames.length > 0) frames[frames.length - 1] += (tdur ?? dur) / 1e3;
  }
  return frames.slice(5, -5);
}

/** Traces FRAMES animation frames; in each, the page gets a wheel event at the middle of the picture. */
async function measureMotion(page, wheel) {
  const client = await page.context().newCDPSession(page), events = [];
  client.on('Tracing.dataCollected', ({ value }) => events.push(...value));
  await client.send('Tracing.start', { transferMode: 'ReportEvents',
    traceConfig: { includedCategories: ['devtools.timeline', 'disabled-by-default-devtools.timeline'] } });
  await page.evaluate(({ frames, deltas }) => new Promise((resolve) => {
    const canvas = document.getElementById('timeline-canvas'), { left, width, top } = canvas.getBoundingClientRect();
    canvas.focus();
    let done = 0;
    const step = () => {
      const [deltaX, deltaY] = deltas[Math.floor((done / frames) * deltas.length)];
      canvas.dispatchEvent(new WheelEvent('wheel',
        { deltaX, deltaY, clientX: left + width / 2, clientY: top + 60, cancelable: true }));
      done += 1;
      if (done < frames) requestAnimationFrame(step);
      else resolve();
    };
    requestAnimationFrame(step);
  }), { frames: FRAMES, deltas: wheel });
  const ended = new Promise((resolve) => client.once('Tracing.tracingComplete', resolve));
  await client.send('Tracing.end');
  await ended;
  await client.detach();
  return frameTimes(events);
}

/** Returns the ms from a new window until it is drawn at its resolution. */
const showWindow = (page, from, to) => page.evaluate(([runId, begin, end]) => new Promise((resolve) => {
  const canvas = document.getElementById('timeline-canvas'), label = document.getElementById('timeline-window');
  const start = performance.now(), old = label.textContent;
  location.hash = `run=${runId}&window=${begin}-${end}`;
  const check = () => {
    if (label.textContent !== old && canvas.dataset.loaded === 'true') resolve(performance.now() - start);
    else requestAnimationFrame(check);
  };
  requestAnimationFrame(check);
}), [run, Math.round(from), Math.round(to)]);

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' });
await page.goto(`${url}/job.html?id=${job}#run=${run}`);
await page.locator('#timeline-canvas[data-loaded="true"]').waitFor({ timeout: 60000 });
await page.locator('#time-class-table tbody tr').first().waitFor({ timeout: 60000 });
const { trace_end_ns: endNs } = await (await fetch(`${url}/runs/${run}/timeline/lanes?pixels=1`)).json();
const loadBefore = os.loadavg()[0];

// [name, wheel deltas [x, y], window in ns at the start]
const motions = [
  ['zoom from 56 µs to the whole trace and back', [[0, 120], [0, -120]], [0, 56e3]],
  ['move a window of 1 ms', [[40, 0]], [0.3 * endNs, 0.3 * endNs + 1e6]],
  ['move a window of 20 ms', [[40, 0]], [0.3 * endNs, 0.3 * endNs + 20e6]],
  ['move a window of 300 ms', [[20, 0]], [0.1 * endNs, 0.1 * endNs + 300e6]],
  ['zoom a window of 20 ms', [[0, 40], [0, -40]], [0.5 * endNs, 0.5 * endNs + 20e6]],
];
const all = [];
console.log('| motion | median, ms a frame | 95 % | max |\n| --- | ---: | ---: | ---: |');
for (const [name, wheel, window] of motions) {
  await showWindow(page, ...window);
  const times = await measureMotion(page, wheel);
  all.push(...times);
  console.log(`| ${name} | ${summary(times)} |`);
}
console.log(`| all ${all.length} frames | ${summary(all)} |\n`);
console.log('| new window | median, ms | 95 % | max |\n| --- | ---: | ---: | ---: |');
for (const span of SPANS_MS.map((ms) => ms * 1e6)) {
  const times = [];
  for (let i = 0; i < WINDOWS; i += 1) {
    const from = Math.random() * (endNs - span);
    times.push(await showWindow(page, from, from + span));
    await page.waitForTimeout(PAUSE_MS);
  }
  console.log(`| ${span / 1e6} ms | ${summary(times)} |`);
}
const commit = execFileSync('git', ['describe', '--always', '--dirty'], { cwd: path.dirname(new URL(import.meta.url).pathname) });
const load = `load average ${loadBefore.toFixed(1)} to ${os.loadavg()[0].toFixed(1)}`;
console.log(`\nCommit ${String(commit).trim()}, ${os.cpus()[0].model}, ${os.cpus().length} cores, ${load}, `
  + `Chromium ${browser.version()}.`);
await browser.close();
daemon.kill('SIGTERM');
