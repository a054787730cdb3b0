// The main page: the devices, the form that submits jobs, and the list of jobs with live states.
import { finalStates, get, listenToJob, doneFraction } from '/lib/api.js';
import { byId, createElement, stateBadge } from '/lib/dom.js';
import { JobTable } from '/lib/job_list.js';

const JOBS_PER_PAGE = 50;
const MAX_LISTENERS = 3; // event streams; browsers allow six connections to a host, and requests need the others
const FILTER_DELAY_MS = 150; // from the last change of a filter to the request for the list
let olderCursor = null; // cursor of the next page of older jobs; null: there is none
let olderJobs = []; // items of the pages of older jobs that the user has loaded
let filterChanges = 0; // number of changes of the filters
const stopFunctions = new Map(); // job id -> function that stops listening
const progressTexts = new Map();  // job id -> text

const filters = [...byId('filters').querySelectorAll('select, input')];
/** Returns the value of an untouched filter: a select's first option, or no text. */
const initialValue = (filter) => filter.options?.[0].value ?? '';
const isChanged = (filter) => filter.value !== initialValue(filter);
const queryOf = (selected) => new URLSearchParams(selected.map(({ name, value }) => [name, value]));
/** Returns the filters that are set as query parameters of the API. */
const filterQuery = () => queryOf(filters.filter(({ value }) => value !== ''));
/** Returns the filters that the user has changed as the query of the page's URL. */
const pageQuery = () => queryOf(filters.filter(isChanged));
const fetchPage = (cursor) => get(`/jobs?${new URLSearchParams([...filterQuery(), ['limit', JOBS_PER_PAGE],
  ...(cursor === null ? [] : [['cursor', cursor]])])}`);

const table = new JobTable(byId('jobs'), (id) => progressTexts.get(id));
let drawnJobs = ''; // as JSON
/** Draws the list, unless it has not changed and all its jobs have ended. The durations of unfinished jobs change with time, so a
 * list with such jobs is always drawn. */
function drawJobs(jobs) {
  const isFinal = jobs.every((job) => finalStates.includes(job.state));
  if (isFinal && drawnJobs === JSON.stringify(jobs)) return;
  drawnJobs = JSON.stringify(jobs);
  table.show(jobs);
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

function drawDevices({ items: devices, job_devices: jobDevices }) {
  byId('devices').replaceChildren(...devices.map((device) => createElement('li', {},
    createElement('div', { class: 'row' }, createElement('span', {}, device.id), stateBadge(device.state)),
    device.properties?.name ? createElement('p', {}, device.properties.name) : null,
    device.reason ? createElement('p', { class: 'quiet' }, device.reason) : null)));
  const filter = byId('filters').querySelector('[name="device"]');
  // Includes the selected device, because neither the daemon nor a stored job may have it any more.
  fillDeviceSelect(filter, [...new Set([...devices.map(({ id }) => id), ...jobDevices ?? [], filter.value].filter(Boolean))]);
}

let timer = 0;
function refreshSoon(delay = 0) {
  clearTimeout(timer);
  timer = setTimeout(refresh, delay);
}

async function refresh() {
  let unfinished = false;
  try {
    const changes = filterChanges;
    const [page, devices] = await Promise.all([fetchPage(null), get('/devices')]);
    if (changes !== filterChanges) return; // the filters have changed since the request
    if (olderJobs.length === 0) olderCursor = page.next_cursor;
    const newest = new Set(page.items.map((job) => job.id));
    const jobs = [...page.items, ...olderJobs.filter((job) => !newest.has(job.id))];
    unfinished = jobs.some((job) => !finalStates.includes(job.state));
    followRunningJobs(jobs);
    drawJobs(jobs);
    byId('empty').hidden = jobs.length > 0 || pageQuery().size > 0;
    byId('none').hidden = jobs.length > 0 || pageQuery().size === 0;
    byId('older').hidden = olderCursor === null;
    drawDevices(devices);
    byId('daemon').textContent = '';
  } catch (problem) {
    byId('daemon').textContent = problem.message;
  }
  document.body.dataset.loaded = 'jobs';
  refreshSoon(document.hidden ? 30000 : unfinished ? 1500 : 6000);
}

byId('older').addEventListener('click', async () => {
  const changes = filterChanges;
  const page = await fetchPage(olderCursor);
  if (changes !== filterChanges) return;
  olderJobs.push(...page.items);
  olderCursor = page.next_cursor;
  refreshSoon();
});

/** Stores the filters in the page's URL and refreshes the list. */
function applyFilters() {
  olderJobs = [];
  filterChanges += 1;
  history.replaceState(null, '', pageQuery().size > 0 ? `?${pageQuery()}` : location.pathname);
  refreshSoon(FILTER_DELAY_MS);
}
for (const filter of filters) {
  const requested = new URLSearchParams(location.search).get(filter.name);
  const isListed = [...filter.options ?? []].some(({ value }) => value === requested);
  if (requested && filter.options && !isListed) filter.append(createElement('option', {}, requested));
  filter.value = requested ?? initialValue(filter);
  filter.addEventListener(filter.options ? 'change' : 'input', applyFilters);
}

document.addEventListener('visibilitychange', () => { if (!document.hidden) refreshSoon(); });
refresh().finally(() => import('/lib/job_form.js')); // after the list, because the form is folded at first
