// The body of a table with many rows of one height, inside an element that scrolls (the holder): only the rows in view are in the
// document.
import { createElement } from '/lib/dom.js';

const MAX_ROWS = 500; // a body of at most this many rows has all of them, so that the browser's search finds them
const MARGIN_ROWS = 20; // rows in the document above and below those in view
const FIRST_ROWS = 40; // number of rows that count as in view until the heights of a row and of the holder are known

function spacer(height, columns) {
  const cell = createElement('td', { colspan: columns });
  cell.style.height = `${height}px`;
  return createElement('tr', { class: 'spacer', 'aria-hidden': 'true' }, cell);
}

/** Returns a number that grows with the width of a cell: the length of a text, or a number itself. */
const extentOf = (value) => (typeof value === 'string' ? value.length : value ?? 0);
/** Returns the item with the widest cell in a column. */
const widestItem = (items, { value }) =>
  items.reduce((widest, item) => (extentOf(value(item)) > extentOf(value(widest)) ? item : widest));

export class LongRows {
  body = createElement('tbody');
  #holder;
  #columns;
  #rowOf;
  #items = [];
  #widthRows = []; // collapsed rows with the widest cells, so that columns keep their widths while the table scrolls
  #height = 0; // of a row in px; 0: not measured yet
  #from = 0; // the rows in the document are those of the items #from to #to - 1
  #to = 0;

  /** columns: with value(item), as for sorting; rowOf(item): creates a row. */
  constructor(holder, columns, rowOf) {
    [this.#holder, this.#columns, this.#rowOf] = [holder, columns, rowOf];
    holder.addEventListener('scroll', () => this.#draw(), { passive: true });
    new ResizeObserver(() => this.#draw()).observe(holder);
  }

  /** Replaces the items, and scrolls to the first. */
  show(items) {
    this.#items = items;
    this.#to = 0;
    this.#holder.scrollTop = 0;
    if (items.length <= MAX_ROWS) {
      this.body.replaceChildren(...items.map(this.#rowOf));
      return;
    }
    this.#widthRows = [...new Set(this.#columns.map((column) => widestItem(items, column)))].map(this.#rowOf);
    for (const row of this.#widthRows) row.className = 'width';
    this.body.parentElement.setAttribute('aria-rowcount', items.length + 1);
    this.#draw();
  }

  #draw() {
    if (this.#items.length <= MAX_ROWS) return;
    const { scrollTop, clientHeight } = this.#holder;
    const first = this.#height > 0 ? Math.floor(scrollTop / this.#height) : 0;
    const end = this.#height > 0 && clientHeight > 0 ? Math.ceil((scrollTop + clientHeight) / this.#height) : FIRST_ROWS;
    if (first >= this.#from && Math.min(end, this.#items.length) <= this.#to && this.#height > 0) return;
    this.#from = Math.max(0, first - MARGIN_ROWS);
    this.#to = Math.min(this.#items.length, end + MARGIN_ROWS);
    this.#fill();
    if (this.#height > 0) return;
    this.#height = this.body.querySelector('[aria-rowindex]').getBoundingClientRect().height;
    if (this.#height > 0) this.#fill();
  }

  #fill() {
    if (this.body.contains(document.activeElement)) this.#holder.focus({ preventScroll: true });
    const rows = this.#items.slice(this.#from, this.#to).map(this.#rowOf);
    rows.forEach((row, index) => row.setAttribute('aria-rowindex', this.#from + index + 2)); // the head is row 1
    this.body.replaceChildren(...this.#widthRows, spacer(this.#from * this.#height, this.#columns.length), ...rows,
      spacer((this.#items.length - this.#to) * this.#height, this.#columns.length));
  }
}
