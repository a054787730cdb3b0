// Sorting of tables by the buttons in their heads.
import { createElement } from '/lib/dom.js';

/** Returns the rows sorted by a column. columns: [{label, value(row), number, isText}]. number: value() returns numbers; isText:
 * the cells are text even so. sorting: {column: index, down: whether descending}. A column without value() keeps the order.
 * Missing values come last in both directions. */
export function sortRows(columns, rows, { column: index, down }) {
  const column = columns[index];
  if (!column?.value) return rows;
  return [...rows].sort((a, b) => {
    const [x, y] = [column.value(a) ?? null, column.value(b) ?? null];
    if (x === null || y === null) return (x === null) - (y === null);
    return (column.number ? x - y : String(x).localeCompare(String(y))) * (down ? -1 : 1);
  });
}

/** Returns the sorting after a click on a column. The first click sorts numbers descending, other values ascending. */
export const nextSorting = (columns, sorting, index) =>
  ({ column: index, down: index === sorting.column ? !sorting.down : Boolean(columns[index].number) });

function headCell(column, index, sorting, onSort) {
  const isSorted = index === sorting.column && column.value;
  return createElement('th', { scope: 'col', class: column.number && !column.isText ? 'n' : null, title: column.title,
    'aria-sort': isSorted ? (sorting.down ? 'descending' : 'ascending') : null },
  column.value ? createElement('button', { type: 'button', click: () => onSort(index) }, column.label) : column.label);
}

/** Creates the head of a table, with a button for each column that has value(). A click calls onSort(index). */
export const sortableHead = (columns, sorting, onSort) => createElement('thead', {}, createElement('tr', {},
  ...columns.map((column, index) => headCell(column, index, sorting, onSort))));
