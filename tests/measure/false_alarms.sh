#!/usr/bin/env bash
# tests/measure/false_alarms.sh [TRIALS [SEED]]: writes the tables of false_alarms into docs/measurements/regression-verdicts.md.
# $ROOFLINED_BUILD is the build folder, by default build/dev.
set -euo pipefail
cd "$(dirname "$0")/../.."
page=docs/measurements/regression-verdicts.md
tables=$(mktemp)
filled=$(mktemp)
trap 'rm -f "$tables" "$filled"' EXIT
"${ROOFLINED_BUILD:-build/dev}/tests/false_alarms" "$@" >"$tables"
awk -v tables="$tables" '
  /^<!-- false_alarms -->$/ { print; while ((getline line < tables) > 0) print line; skip = 1 }
  /^<!-- \/false_alarms -->$/ { skip = 0 }
  !skip && !/^<!-- false_alarms -->$/' "$page" >"$filled"
cat "$filled" >"$page"
