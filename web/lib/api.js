// Requests to the API. A status of 400 or more becomes an ApiProblem, and so does a request without a response, with status 0. A
// 401 shows the login dialog and repeats the request.
import { createElement } from '/lib/dom.js';

export class ApiProblem extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `The daemon answered with status ${status}.`);
    this.status = status;
    this.title = problem.title || `Status ${status}`;
    this.pointer = problem.pointer || '';
  }
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: 'same-origin', ...options,
      headers: { accept: 'application/json', ...options.headers } });
  } catch {
    throw new ApiProblem(0, { title: 'No response', detail: 'The daemon does not answer.' });
  }
  const text = await response.text();
  let reply = {};
  try {
    reply = text ? JSON.parse(text) : {};
  } catch {
    reply = { title: 'Not JSON', detail: `${path} did not answer with JSON.` };
  }
  if (!response.ok) throw new ApiProblem(response.status, reply);
  return reply;
}

let loggingIn = null;

/** Shows the login dialog, unless it is already open. Resolves when the daemon has accepted the token and set its cookie. */
function logIn() {
  loggingIn ??= new Promise((resolve) => {
    const token = createElement('input', { type: 'password', name: 'token', autocomplete: 'current-password', required: '',
      'aria-label': 'Access token' });
    const errorLine = createElement('p', { class: 'problem-line', role: 'alert' });
    const form = createElement(
      'form',
      {},
      createElement('h2', {}, 'This daemon requires a token'),
      createElement(
        'p',
        { class: 'quiet' },
        'Create one on the daemon’s machine with ',
        createElement('code', {}, 'rooflinectl token'),
        '.',
      ),
      token,
      errorLine,
      createElement('button', { type: 'submit' }, 'Log in'),
    );
    const dialog = createElement('dialog', {}, form);
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      try {
        await request('/login', { method: 'POST', headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ token: token.value }) });
        dialog.close();
        dialog.remove();
        loggingIn = null;
        resolve();
      } catch (problem) {
        errorLine.textContent = problem.message;
        token.select();
      }
    });
    dialog.addEventListener('cancel', (event) => event.preventDefault());
    document.body.append(dialog);
    dialog.showModal();
  });
  return loggingIn;
}

async function requestWithLogin(path, options = {}) {
  for (;;) {
    try {
      return await request(path, options);
    } catch (problem) {
      if (problem.status !== 401) throw problem;
      await logIn();
    }
  }
}

export const get = (path) => requestWithLogin(path);
export const httpDelete = (path) => requestWithLogin(path, { method: 'DELETE' });
const sendJson = (method) => (path, body) => requestWithLogin(path, { method, headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body) });
export const post = sendJson('POST');
export const patch = sendJson('PATCH');

/** Posts a file as the request body. */
export const postFile = (path, file) => requestWithLogin(path, { method: 'POST',
  headers: { 'content-type': 'application/octet-stream' }, body: file });

/** Returns the items of all pages of a list. */
export async function getAllPages(path) {
  const items = [];
  let cursor = null;
  do {
    const page = await get(cursor === null ? path
      : `${path}${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`);
    items.push(...page.items);
    cursor = page.next_cursor ?? null;
  } while (cursor !== null);
  return items;
}

export const finalStates = ['completed', 'failed', 'cancelled'];

const RECONNECT_DELAY_MS = 2000;

/** Calls onEvent(type, data) for each event of a job until the job ends. If the connection ends, the browser reconnects with
 * Last-Event-ID, except after an error status. In that case this function fetches the job, which may show the login dialog, and
 * connects again. If the job has ended meanwhile, it calls onEvent('state', job) instead. Returns a function that stops
 * listening. */
export function listenToJob(id, onEvent) {
  let source;
  let stopped = false;
  const stop = () => {
    stopped = true;
    source.close();
  };
  const reconnect = async () => {
    const job = await get(`/jobs/${id}`).catch(() => null);
    if (stopped) return;
    if (finalStates.includes(job?.state)) onEvent('state', job);
    else start();
  };
  function start() {
    source = new EventSource(`/jobs/${id}/events`);
    for (const type of ['state', 'pass', 'progress']) {
      source.addEventListener(type, (event) => {
        const data = JSON.parse(event.data);
        onEvent(type, data);
        if (type === 'state' && finalStates.includes(data.state)) stop();
      });
    }
    source.addEventListener('error', () => {
      if (source.readyState === EventSource.CLOSED) setTimeout(reconnect, RECONNECT_DELAY_MS);
    });
  }
  start();
  return stop;
}

/** Returns the completed fraction of the running pass; null if unknown. epoch and step are the numbers of completed epochs and of
 * completed steps of the next epoch; a negative number is unknown. */
export function doneFraction({ epoch, epochs, step, steps }) {
  const part = steps > 0 && step >= 0 ? step / steps : 0;
  if (epochs > 0 && epoch >= 0) return Math.min(1, (epoch + part) / epochs);
  return steps > 0 ? part : null;
}
