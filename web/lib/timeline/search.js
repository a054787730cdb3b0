// The search for events by name: their number, and the next and previous event.
import { get } from '/lib/api.js';
import { byId } from '/lib/dom.js';
import * as format from '/lib/format.js';

const DELAY_MS = 200; // after the last key

export class Search {
  #timer = 0;
  #request = 0;

  /** onText(text): called when the searched text changes, '' for none; onFound(event): called with an event of the API; from():
   * returns the time in ns at which a search starts. */
  constructor({ onText, onFound, from }) {
    this.onText = onText;
    this.onFound = onFound;
    this.from = from;
    this.at = null; // start of the last found event in ns
    this.input = byId('timeline-find');
    this.input.addEventListener('input', () => this.#changed());
    this.input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') { event.preventDefault(); this.go(event.shiftKey ? -1 : 1); }
      if (event.key === 'Escape') { event.preventDefault(); this.clear(); byId('timeline-canvas').focus(); }
    });
    byId('timeline-find-previous').addEventListener('click', () => this.go(-1));
    byId('timeline-find-next').addEventListener('click', () => this.go(1));
    this.#showCount('');
  }

  get text() { return this.input.value.trim(); }

  focus() { this.input.focus(); this.input.select(); }

  clear() {
    this.input.value = '';
    this.#changed();
  }

  setRun(run) {
    this.run = run;
    this.at = null;
    this.#showCount('');
  }

  #showCount(text, steps = false) {
    byId('timeline-found').textContent = text;
    for (const name of ['previous', 'next']) byId(`timeline-find-${name}`).disabled = !steps;
  }

  #changed() {
    clearTimeout(this.#timer);
    this.at = null;
    this.onText(this.text.toLowerCase());
    this.#request += 1;
    this.#showCount('');
    if (this.text !== '') this.#timer = setTimeout(() => this.#count(), DELAY_MS);
  }

  async #ask(from) {
    const request = ++this.#request;
    const query = `name=${encodeURIComponent(this.text)}&from=${Math.max(0, Math.floor(from))}`;
    const reply = await get(`/runs/${this.run}/timeline/search?${query}`)
      .catch((problem) => ({ events: null, reason: problem.message }));
    return request === this.#request ? reply : null;
  }

  async #count() {
    const reply = await this.#ask(this.from());
    if (reply) this.#showCount(reply.events === null ? reply.reason : `${format.count(reply.events)} found`, reply.events > 0);
  }

  /** Goes to the next (1) or the previous (-1) event; after the last, to the first. */
  async go(direction) {
    if (this.text === '') return;
    const reply = await this.#ask(this.at === null ? this.from() : direction > 0 ? this.at + 1 : this.at);
    if (!reply) return;
    const event = direction > 0 ? reply.next ?? reply.first : reply.previous ?? reply.last;
    if (!event) { this.#showCount(reply.events === null ? reply.reason : '0 found'); return; }
    const isFirst = direction > 0 && reply.next === null, isLast = direction < 0 && reply.previous === null;
    const number = direction > 0 ? (isFirst ? 1 : reply.earlier_events + 1) : isLast ? reply.events : reply.earlier_events;
    this.at = event.start_ns;
    this.#showCount(`${format.count(number)} of ${format.count(reply.events)}`, true);
    this.onFound(event);
  }
}
