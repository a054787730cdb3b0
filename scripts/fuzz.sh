#!/usr/bin/env bash
# scripts/fuzz.sh [SECONDS]: runs each fuzz target of build/fuzz for SECONDS (default: $FUZZ_SECONDS or 60), two at a time, on the
# seeds in tests/fuzz/NAME and the corpus of earlier runs. Replays the inputs in tests/fuzz/regressions/NAME first. Failing inputs
# are written to build/fuzz/crashes.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
seconds=${1:-${FUZZ_SECONDS:-60}}
build=${ROOFLINED_FUZZ_BUILD:-build/fuzz}
crashes=$build/crashes
mkdir -p "$crashes"
shopt -s nullglob
targets=("$build"/fuzz/fuzz_*)
if [ ${#targets[@]} = 0 ]; then
  echo "no fuzz targets in $build/fuzz: cmake --preset fuzz && cmake --build --preset fuzz" >&2
  exit 2
fi

fuzz_one() { # PROGRAM
  local program=$1 name=${1##*/fuzz_} inputs
  local corpus=$build/corpus/$name log=$crashes/$name.log
  local seeds=(tests/fuzz/"$name"/) regressions=(tests/fuzz/regressions/"$name"/*)
  mkdir -p "$corpus"
  [ -d "${seeds[0]}" ] || seeds=()
  if [ ${#regressions[@]} -gt 0 ] && ! "$program" "${regressions[@]}" >"$log" 2>&1; then
    echo "fuzz $name: an input of tests/fuzz/regressions fails again"; tail -n 40 "$log"; return 1
  fi
  if ! "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="$crashes/$name-" "$corpus" "${seeds[@]}" >"$log" 2>&1 </dev/null; then
    echo "fuzz $name: failed"; tail -n 60 "$log"; return 1
  fi
  inputs=$(awk -F: '/number_of_executed_units/ {gsub(/ /, "", $NF); print $NF}' "$log")
  echo "fuzz $name: $inputs inputs in $seconds s, none failed"
}

failed=0
for ((i = 0; i < ${#targets[@]}; i += 2)); do
  running=()
  for program in "${targets[@]:i:2}"; do
    fuzz_one "$program" &
    running+=($!)
  done
  for process in "${running[@]}"; do
    wait "$process" || failed=$((failed + 1))
  done
done
echo "${#targets[@]} fuzz targets, $failed failed"
[ "$failed" = 0 ]
