"""Formats numbers and tables as Markdown."""

MISSING = "–"


def number(value, digits=3):
    """Formats with this many significant digits. Digits before the decimal point are never rounded away, even if there are
    more."""
    if value is None:
        return MISSING
    if isinstance(value, (bool, str)):
        return str(value)
    if value == int(value):
        return str(int(value))
    if abs(value) < 1e-3:
        return f"{value:.{digits - 1}e}"
    if abs(value) >= 10 ** digits:
        return f"{value:.0f}"
    return f"{value:#.{digits}g}".rstrip(".")


def table(header, rows):
    rows = [[cell if isinstance(cell, str) else number(cell) for cell in row] for row in rows]
    if not rows:
        return ""
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *rows])


def percent(ratio, digits=2):
    return MISSING if ratio is None else f"{100 * ratio:.{digits}f} %"


def points(ratio):
    """Formats percentage points with their sign."""
    return MISSING if ratio is None else f"{100 * ratio:+.2f}"


def scaled(value, divisor, digits=3):
    return MISSING if value is None else number(value / divisor, digits)


def pivot(rows, key, column, cell):
    """Returns (columns, {key: {column: cell}}), both in order of first appearance. key, column and cell map a row to a value."""
    columns, lines = [], {}
    for row in rows:
        if column(row) not in columns:
            columns.append(column(row))
        lines.setdefault(key(row), {})[column(row)] = cell(row)
    return columns, lines


def pivot_table(key_names, rows, key, column, cell):
    columns, lines = pivot(rows, key, column, cell)
    return table([*key_names, *map(str, columns)],
                 [[*map(str, line_key), *(line.get(c, MISSING) for c in columns)] for line_key, line in lines.items()])
