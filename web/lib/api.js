// The API as the pages use it. An answer of 400 or more becomes an ApiProblem; a 401 asks for the token once and tries again.
import { make } from '/lib/dom.js';

export class ApiProblem extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `The daemon answered with status ${status}.`);
    this.status = status;
    this.title = document.title || `Status ${status}`;
    this.pointer = document.pointer || '';
  }
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: 'same-origin', headers: { accept: 'application/json', ...options.headers },
      ...options });
  } catch {
    throw new ApiProblem(0, { title: 'No answer', detail: 'The daemon does not answer. The page tries again by itself.' });
  }
  const text = await response.text();
  let document = {};
  try {
    document = text ? JSON.parse(text) : {};
  } catch {
    document = { title: 'Not JSON', detail: `${path} did not answer with JSON.` };
  }
  if (!response.ok) throw new ApiProblem(response.status, document);
  return document;
}

let loggingIn = null;

/** Ask for the token; resolves once the daemon has taken it and set its cookie. Only one dialog at a time. */
function logIn() {
  loggingIn ??= new Promise((resolve) => {
    const token = make('input', { type: 'password', name: 'token', autocomplete: 'current-password', required: '',
      'aria-label': 'Access token' });
    const wrong = make('p', { class: 'problem-line', role: 'alert' });
    const form = make('form', {}, make('h2', {}, 'This daemon asks for a token'),
      make('p', { class: 'quiet' }, 'Make one on its machine with ', make('code', {}, 'rooflinectl token'), '.'),
      token, wrong, make('button', { type: 'submit' }, 'Log in'));
    const dialog = make('dialog', {}, form);
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
        wrong.textContent = problem.message;
        token.select();
      }
    });
    dialog.addEventListener('cancel', (event) => event.preventDefault());
    document.body.append(dialog);
    dialog.showModal();
  });
  return loggingIn;
}

async function call(path, options = {}) {
  for (;;) {
    try {
      return await request(path, options);
    } catch (problem) {
      if (problem.status !== 401) throw problem;
      await logIn();
    }
  }
}

export const get = (path) => call(path);
export const remove = (path) => call(path, { method: 'DELETE' });
export const post = (path, body) => call(path, { method: 'POST', headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body) });

/** Every item of a paged list. */
export async function all(path) {
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

const REFUSED_MS = 2000;

/** Listen to a job until it ends. The browser reconnects by itself with Last-Event-ID, but gives up when it is refused: then the
 * job is asked for, which asks for a token where one has gone, before it listens again. Returns a function that stops it. */
export function listen(id, heard) {
  let source;
  let stopped = false;
  const stop = () => {
    stopped = true;
    source.close();
  };
  const again = async () => {
    const job = await get(`/jobs/${id}`).catch(() => null);
    if (!stopped && !finalStates.includes(job?.state)) start();
  };
  function start() {
    source = new EventSource(`/jobs/${id}/events`);
    for (const type of ['state', 'pass', 'progress']) {
      source.addEventListener(type, (event) => {
        const data = JSON.parse(event.data);
        heard(type, data);
        if (type === 'state' && finalStates.includes(data.state)) stop();
      });
    }
    source.addEventListener('error', () => {
      if (source.readyState === EventSource.CLOSED) setTimeout(again, REFUSED_MS);
    });
  }
  start();
  return stop;
}

/** Share of the running pass that is done, or null: whole epochs and the part of this one. */
export function shareDone({ epoch, epochs, step, steps }) {
  const part = steps > 0 && step >= 0 ? step / steps : 0;
  if (epochs > 0 && epoch >= 0) return Math.min(1, (epoch + part) / epochs);
  return steps > 0 ? part : null;
}
