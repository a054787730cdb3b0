#!/usr/bin/env bash
# tests/measure/false_alarms.sh [TRIALS [SEED]]: writes the tables of false_alarms and recorded_trials into
# docs/measurements/regression-verdicts.md. With TRIALS 0, writes only the table of the recorded values. $ROOFLINED_BUILD is the
# build folder, by default build/dev.
set -euo pipefail
cd "$(dirname "$0")/../.."
page=docs/measurements/regression-verdicts.md
programs=${ROOFLINED_BUILD:-build/dev}/tests
tables=$(mktemp)
filled=$(mktemp)
trap 'rm -f "$tables" "$filled"' EXIT

fill() { # NAME: puts $tables between <!-- NAME --> and <!-- /NAME -->
  awk -v tables="$tables" -v name="$1" '
    $0 == "<!-- " name " -->" { print; while ((getline line < tables) > 0) print line; skip = 1; next }
    $0 == "<!-- /" name " -->" { skip = 0 }
    !skip' "$page" >"$filled"
  cat "$filled" >"$page"
}

"$programs/recorded_trials" tests/data/recorded/*.csv >"$tables"
fill recorded
[ "${1:-}" = 0 ] && exit
"$programs/false_alarms" tests/data/recorded/h200.csv "$@" >"$tables"
fill false_alarms
