// The list of jobs with live state, the devices, and the forms that submit jobs.
import { finalStates, get, listenToJob, doneFraction } from '/lib/api.js';
import { byId, createElement, numberCell, stateBadge } from '/lib/dom.js';
import * as format from '/lib/format.js';
import '/lib/job_form.js';

const JOBS_PER_PAGE = 50;
const MAX_LISTENERS = 3; // of the six connections to a host that browsers allow
let olderCursor = null;
let older = [];
const stopFunctions = new Map(); // job id -> function that stops listening
const progressTexts = new Map();  // job id -> text

const filters = [...byId('filters').querySelectorAll('select')];
/** Returns the selected filters as query parameters of the API. */
const filterQuery = () =>
  new URLSearchParams(filters.filter(({ value }) => value !== '').map(({ name, value }) => [name, value]));
const fetchPage = (cursor) => get(`/jobs?${new URLSearchParams([...filterQuery(), ['limit', JOBS_PER_PAGE],
  ...(cursor === null ? [] : [['cursor', cursor]])])}`);

const stateCell = (job) => {
  const text = job.state === 'running' ? progressTexts.get(job.id) : undefined;
  return createElement('td', {}, stateBadge(job.state), text ? createElement('span', { class: 'quiet' }, ` ${text}`) : null);
};

/** Returns text and elements: the job's variants, with the time of the fastest. */
function variantNodes({ variants, fastest }) {
  const time = fastest && (format.ms(fastest.epoch_ms_median) ?? format.us(fastest.time_cold_us_median));
  const title = fastest?.epoch_ms_median === null ? 'The fastest: median with a cold cache' : 'The fastest: median epoch';
  const nameOf = (variant) => (fastest?.variant === variant ? createElement('strong', { title }, `${variant} ${time}`) : variant);
  return variants.flatMap((variant, index) => (index === 0 ? [nameOf(variant)] : [' · ', nameOf(variant)]));
}

function jobRow(job) {
  const done = job.passes.completed + job.passes.unavailable;
  const until = job.finished_at || (finalStates.includes(job.state) ? null : new Date().toISOString());
  const duration = format.duration(format.secondsBetween(job.started_at, until));
  return createElement('tr', {},
    createElement('th', { scope: 'row', class: 'n' }, createElement('a', { href: `/job.html?id=${job.id}` }, String(job.id))),
    stateCell(job),
    createElement('td', { class: 'words' }, job.workload, ' ', createElement('span', { class: 'quiet' }, format.parameters(job))),
    createElement('td', { class: 'words' }, ...variantNodes(job),
      job.origin === 'daemon' ? createElement('span', { class: 'tag', title: `${job.kind}, submitted by the daemon` },
        'by the daemon') : null),
    createElement('td', { class: 'mono' }, job.device),
    createElement('td', { class: 'n' }, `${done}/${job.passes.total}`),
    createElement('td', {}, createElement('time', { datetime: job.created_at }, format.dateTime(job.created_at))),
    numberCell(duration, 'the job has not started'));
}

/** Draws the list and keeps the focus on the same link. If all jobs have ended, draws it only when it has changed; durations of
    unfinished jobs change with time. */
let drawnJobs = '';
function drawJobs(jobs) {
  const body = document.querySelector('#jobs tbody');
  const unfinished = jobs.some((job) => !finalStates.includes(job.state)); // queued or running
  if (!unfinished && drawnJobs === JSON.stringify(jobs)) return;
  drawnJobs = JSON.stringify(jobs);
  const focused = body.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null;
  body.replaceChildren(...jobs.map(jobRow));
  if (focused) body.querySelector(`a[href="${focused}"]`)?.focus({ preventScroll: true });
}

function followRunningJobs(jobs) {
  const running = jobs.filter((job) => job.state === 'running').slice(0, MAX_LISTENERS).map((job) => job.id);
  for (const [id, stop] of stopFunctions) {
    if (running.includes(id)) continue;
    stop();
    stopFunctions.delete(id);
    progressTexts.delete(id);
  }
  for (const id of running) {
    if (stopFunctions.has(id)) continue;
    stopFunctions.set(id, listenToJob(id, (type, data) => {
      if (type === 'state') refreshSoon();
      if (type !== 'progress') return;
      const share = doneFraction(data);
      progressTexts.set(id, `${data.pass}${share === null ? '' : ` ${Math.round(share * 100)} %`}`);
    }));
  }
}

function fillDeviceSelect(select, ids) {
  if (ids.join() === select.dataset.ids) return;
  select.dataset.ids = ids.join();
  const selected = select.value;
  select.replaceChildren(select.options[0], ...ids.map((id) => createElement('option', { value: id }, id)));
  select.value = ids.includes(selected) ? selected : '';
}

function drawDevices(devices) {
  byId('devices').replaceChildren(...devices.map((device) => createElement('li', {},
    createElement('div', { class: 'row' }, createElement('span', {}, device.id), stateBadge(device.state)),
    device.properties?.name ? createElement('p', {}, device.properties.name) : null,
    device.reason ? createElement('p', { class: 'quiet' }, device.reason) : null)));
  const usable = devices.filter((device) => device.state !== 'unusable').map((device) => device.id);
  for (const select of document.querySelectorAll('form [name="device"]')) fillDeviceSelect(select, usable);
  const filter = byId('filters').querySelector('[name="device"]'); // the selected device may have been removed
  fillDeviceSelect(filter, [...new Set([...devices.map(({ id }) => id), filter.value].filter(Boolean))]);
}

let timer = 0;
function refreshSoon(delay = 0) {
  clearTimeout(timer);
  timer = setTimeout(refresh, delay);
}

async function refresh() {
  let unfinished = false;
  try {
    const [page, devices] = await Promise.all([fetchPage(null), get('/devices')]);
    if (older.length === 0) olderCursor = page.next_cursor;
    const newest = new Set(page.items.map((job) => job.id));
    const jobs = [...page.items, ...older.filter((job) => !newest.has(job.id))];
    unfinished = jobs.some((job) => !finalStates.includes(job.state));
    followRunningJobs(jobs);
    drawJobs(jobs);
    byId('empty').hidden = jobs.length > 0 || filterQuery().size > 0;
    byId('none').hidden = jobs.length > 0 || filterQuery().size === 0;
    byId('older').hidden = olderCursor === null;
    drawDevices(devices.items);
    byId('daemon').textContent = '';
  } catch (problem) {
    byId('daemon').textContent = problem.message;
  }
  refreshSoon(document.hidden ? 30000 : unfinished ? 1500 : 6000);
}

byId('older').addEventListener('click', async () => {
  const page = await fetchPage(olderCursor);
  older.push(...page.items);
  olderCursor = page.next_cursor;
  refreshSoon();
});

/** Stores the filters in the page's URL and refreshes the list. */
function applyFilters() {
  older = [];
  history.replaceState(null, '', filterQuery().size > 0 ? `?${filterQuery()}` : location.pathname);
  refreshSoon();
}
for (const select of filters) {
  const requested = new URLSearchParams(location.search).get(select.name);
  const isListed = [...select.options].some(({ value }) => value === requested);
  if (requested && !isListed) select.append(createElement('option', {}, requested));
  select.value = requested ?? '';
  select.addEventListener('change', applyFilters);
}

document.addEventListener('visibilitychange', () => { if (!document.hidden) refreshSoon(); });
refresh();
