// Short names of kernels, and a colour for each name. Colour is never the only cue: a label, a tooltip or a table also shows the
// name.

/** Removes balanced brackets with their content: "f<a<b>>(c)" without <> is "f(c)". */
function withoutBrackets(text, open, close) {
  let depth = 0, kept = '';
  for (const character of text) {
    if (character === open) depth += 1;
    if (depth === 0) kept += character;
    if (character === close && depth > 0) depth -= 1;
  }
  return kept;
}

/** Returns a demangled function's name without return type, namespaces, template arguments and parameters. Removes the version
 * from the name of a call of the CUDA API, such as "cudaStreamSynchronize_v3020". */
export function shortName(name) {
  if (!/[(<]/.test(name)) return name.replace(/_v\d{4,5}(_pt[ds]z?)?$/, '');
  const named = name.replaceAll('(anonymous namespace)::', '').replace(/operator[<>()=+\-*/[\]&|!~^%]+/, 'operator');
  const plain = withoutBrackets(named, '<', '>');
  const symbol = withoutBrackets(plain, '(', ')').trim().split(/\s+/).at(-1).split('::').at(-1);
  return symbol || name;
}

/** Returns a label for a kernel that differs from those of the others in the list. This is the name of its launch; if a kernel
 * with another symbol has the same launch, with the short symbol. A kernel without a launch name gets its short symbol, or the
 * whole symbol if another kernel has the same short symbol. Executions of one kernel in one launch are told apart by the grid,
 * those with equal grids by the block. */
export function distinctLabel({ launch, name, grid, block }, kernels) {
  const sizeOf = (extents) => extents?.join(' × ');
  const parts = [labelOf(name, launch ? [launch] : [], kernels)];
  const executions = kernels.filter((other) => other.name === name && other.launch === launch);
  const withGrid = executions.filter((other) => sizeOf(other.grid) === sizeOf(grid));
  if (grid && withGrid.length < executions.length) parts.push(sizeOf(grid));
  if (block && withGrid.some((other) => sizeOf(other.block) !== sizeOf(block))) parts.push(`block ${sizeOf(block)}`);
  return parts.join(' · ');
}

/** Like distinctLabel, for a symbol: its label names the launches of all its kernels, because an event of a trace has a symbol
 * but no launch. */
export const symbolLabel = (name, kernels) =>
  labelOf(name, distinct(kernels.filter((kernel) => kernel.name === name).map(({ launch }) => launch)), kernels);

/** Returns the values that are neither empty nor repeated. */
export const distinct = (values) => [...new Set(values)].filter(Boolean);

function labelOf(name, launches, kernels) {
  const sharesWithOther = (test) => kernels.some((other) => other.name !== name && test(other));
  const symbol = sharesWithOther((other) => shortName(other.name) === shortName(name)) ? name : shortName(name);
  if (launches.length === 0) return symbol;
  const text = launches.join(', ');
  return sharesWithOther(({ launch }) => launches.includes(launch)) ? `${text} · ${symbol}` : text;
}

// Distinguishable with colour vision deficiency (after Paul Tol's "muted" scheme); contrast with the panel at least 3:1.
const lightColours = ['#332288', '#117733', '#aa4499', '#88600b', '#1f7fa8', '#882255', '#2a8577', '#c0505f', '#6f6f1e',
  '#5a6773', '#b5460f', '#3f3f46'];
const darkColours = ['#9d95f0', '#5fc27e', '#d884c9', '#ddcc77', '#88ccee', '#d97fa9', '#5fc9b8', '#ee8b98', '#bcbc5c',
  '#94a3af', '#ff9a4d', '#e8eef4'];

/** Gives each name the next colour when it first occurs. */
export class NameColours {
  #numbers = new Map();

  number(name) {
    let number = this.#numbers.get(name);
    if (number === undefined) {
      number = this.#numbers.size % lightColours.length;
      this.#numbers.set(name, number);
    }
    return number;
  }

  colour(name, isDark) { return (isDark ? darkColours : lightColours)[this.number(name)]; }
}
