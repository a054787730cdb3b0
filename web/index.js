// The list of jobs with live state, the devices, and the forms that start a comparison and a profile.
import { finalStates, get, listen, shareDone } from '/lib/api.js';
import { find, make, numberCell, stateBadge } from '/lib/dom.js';
import * as show from '/lib/format.js';
import '/lib/profile.js';
import { submitting } from '/lib/submit.js';

const PAGE = 50;
const LISTENERS = 3; // browsers allow six connections to a host
let olderCursor = null;
let older = [];
const listening = new Map(); // job id -> function that stops
const progress = new Map();  // job id -> text

const jobState = (job) => {
  const text = job.state === 'running' ? progress.get(job.id) : undefined;
  return make('td', {}, stateBadge(job.state), text ? make('span', { class: 'quiet' }, ` ${text}`) : null);
};

function jobRow(job) {
  const done = job.passes.completed + job.passes.unavailable;
  const until = job.finished_at || (finalStates.includes(job.state) ? null : new Date().toISOString());
  const took = show.duration(show.between(job.started_at, until));
  return make('tr', {},
    make('th', { scope: 'row', class: 'n' }, make('a', { href: `/job.html?id=${job.id}` }, String(job.id))),
    jobState(job),
    make('td', {}, job.workload),
    make('td', {}, (job.variants || []).join(' · '),
      job.origin === 'daemon' ? make('span', { class: 'tag', title: `${job.kind}, asked for by the daemon itself` },
        'by the daemon') : null),
    make('td', { class: 'mono' }, job.device),
    make('td', { class: 'n' }, `${done}/${job.passes.total}`),
    make('td', {}, make('time', { datetime: job.created_at }, show.instant(job.created_at))),
    numberCell(took, 'it has not started'));
}

function follow(jobs) {
  const running = jobs.filter((job) => job.state === 'running').slice(0, LISTENERS).map((job) => job.id);
  for (const [id, stop] of listening) {
    if (running.includes(id)) continue;
    stop();
    listening.delete(id);
    progress.delete(id);
  }
  for (const id of running) {
    if (listening.has(id)) continue;
    listening.set(id, listen(id, (type, data) => {
      if (type === 'state') refreshSoon();
      if (type !== 'progress') return;
      const share = shareDone(data);
      progress.set(id, `${data.pass}${share === null ? '' : ` ${Math.round(share * 100)} %`}`);
    }));
  }
}

function drawChoice(select, usable) {
  if (usable.join() === select.dataset.ids) return;
  select.dataset.ids = usable.join();
  const chosen = select.value;
  select.replaceChildren(make('option', { value: '' }, 'first usable'), ...usable.map((id) => make('option', { value: id }, id)));
  select.value = usable.includes(chosen) ? chosen : '';
}

function drawDevices(devices) {
  find('devices').replaceChildren(...devices.map((device) => make('li', {},
    make('div', { class: 'row' }, make('span', {}, device.id), stateBadge(device.state)),
    device.facts?.name ? make('p', {}, device.facts.name) : null,
    device.reason ? make('p', { class: 'quiet' }, device.reason) : null)));
  const usable = devices.filter((device) => device.state !== 'unusable').map((device) => device.id);
  for (const select of document.querySelectorAll('[name="device"]')) drawChoice(select, usable);
}

let timer = 0;
function refreshSoon(delay = 0) {
  clearTimeout(timer);
  timer = setTimeout(refresh, delay);
}

async function refresh() {
  let active = false;
  try {
    const [page, devices] = await Promise.all([get(`/jobs?limit=${PAGE}`), get('/devices')]);
    if (older.length === 0) olderCursor = page.next_cursor;
    const newest = new Set(page.items.map((job) => job.id));
    const jobs = [...page.items, ...older.filter((job) => !newest.has(job.id))];
    active = jobs.some((job) => !finalStates.includes(job.state));
    follow(jobs);
    document.querySelector('#jobs tbody').replaceChildren(...jobs.map(jobRow));
    find('empty').hidden = jobs.length > 0;
    find('older').hidden = olderCursor === null;
    drawDevices(devices.items);
    find('daemon').textContent = '';
  } catch (problem) {
    find('daemon').textContent = problem.message;
  }
  refreshSoon(document.hidden ? 30000 : active ? 1500 : 6000);
}

find('older').addEventListener('click', async () => {
  const page = await get(`/jobs?limit=${PAGE}&cursor=${encodeURIComponent(olderCursor)}`);
  older.push(...page.items);
  olderCursor = page.next_cursor;
  refreshSoon();
});

submitting(find('submit'), (form) => {
  const fields = new FormData(form);
  const numbers = ['epochs', 'batch_size', 'max_images'].map((name) => [name, Number(fields.get(name))]);
  return { kind: 'train', precisions: fields.getAll('precisions'), passes: fields.getAll('passes'),
    ...Object.fromEntries(numbers), ...(fields.get('device') ? { device: fields.get('device') } : {}) };
});

document.addEventListener('visibilitychange', () => { if (!document.hidden) refreshSoon(); });
refresh();
