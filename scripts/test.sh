#!/usr/bin/env bash
# scripts/test.sh [STEP...]: tests everything that needs no GPU, from a fresh clone: installs missing packages, builds, tests,
# fuzzes and checks packaging. STEP selects steps of the list `all` below. Every step runs even after another failed; only a
# failed installation ends the script. The exit status is 1 when a step failed. FUZZ_SECONDS sets the time of each fuzz target.
# MNIST is read from ROOFLINED_MNIST_DIR or ../shared/mnist; without it the suites train on synthetic digits.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
trap 'exit 130' INT # ends the script also when Ctrl-C reaches a program that handles SIGINT itself, as pytest does
shm_folder='' ahead_pid=''
clean_up() {
  [ -z "$shm_folder" ] || rm -rf "$shm_folder"
  [ -z "$ahead_pid" ] || kill -- "-$ahead_pid" 2>/dev/null
}
trap clean_up EXIT
export PYTEST_ADDOPTS="-rfEs --tb=short ${PYTEST_ADDOPTS:-}" COLUMNS=180
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=1}" UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}"
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 # presets with equal options share objects
if [ -z "${ROOFLINED_MNIST_DIR:-}" ] && [ -d ../shared/mnist ]; then
  ROOFLINED_MNIST_DIR=$(cd ../shared/mnist && pwd)
  export ROOFLINED_MNIST_DIR
fi
# shellcheck source=scripts/lib/install.sh
. scripts/lib/install.sh

logs=build/test-logs
jobs=$(nproc)
export CTEST_PARALLEL_LEVEL=$((jobs + 1))
mkdir -p "$logs"
rm -f "$logs"/*.log "$logs"/*.xml "$logs"/*.tsv
failed_steps=()

# Prints the lines of a log that name failures, as pytest, cmocka, node, CTest, sanitizers, compilers and fuzz targets print them.
failure_lines() { # LOG
  local test_lines='^(FAILED|ERROR) |^\[  (ERROR|FAILED)|^\[   LINE|^ *(not ok|✖) '
  local ctest_lines='\((Failed|Timeout|Not Run|SEGFAULT|Subprocess aborted)\)$'
  local other_lines='Sanitizer: |runtime error: |[: ]error: |^CMake Error|^fuzz .*fail'
  grep -aE "$test_lines|$ctest_lines|$other_lines" "$1" | cut -c 1-240 | awk '!seen[$0]++' | head -n 30 | sed 's/^/    ! /'
}

step() { # NAME COMMAND...: runs and times the command; prints the end of its log when it fails
  local name=$1 started=$SECONDS status
  shift
  "$@" >"$logs/$name.log" 2>&1 </dev/null
  status=$?
  if [ "$status" = 0 ]; then
    printf '  ok      %-16s %4d s  %s\n' "$name" $((SECONDS - started)) "$(tail -n 1 "$logs/$name.log" | cut -c 1-70)"
    # A step without CTest results counts as one test.
    if [ -e "$logs/$name.xml" ]; then
      failure_lines "$logs/$name.log" # of tests that passed only at the second attempt
    else
      printf '%s\tpassed\n' "$name" >>"$logs/steps.tsv"
    fi
  elif [ "$status" = 77 ]; then
    printf '  skipped %-16s %4d s  %s\n' "$name" $((SECONDS - started)) "$(tail -n 1 "$logs/$name.log")"
    printf '%s\tskipped\t%s\n' "$name" "$(tail -n 1 "$logs/$name.log")" >>"$logs/steps.tsv"
  else
    printf '  FAILED  %-16s %4d s  exit status %d\n' "$name" $((SECONDS - started)) "$status"
    failure_lines "$logs/$name.log"
    tail -n 120 "$logs/$name.log" | sed 's/^/    | /'
    failed_steps+=("$name")
    [ -e "$logs/$name.xml" ] || printf '%s\tfailed\n' "$name" >>"$logs/steps.tsv"
  fi
}

build() { # PRESET [BUILD-OPTIONS...]
  cmake --preset "$1" && cmake --build --preset "$1" --parallel "$jobs" "${@:2}"
}

# State folders are in memory if /dev/shm has 2 GiB free: on a disk that is still writing the outputs of the build, each commit of
# the database would wait.
shm_free_mib=$(df --output=avail -m /dev/shm 2>/dev/null | tail -n 1)
if [ -z "${TMPDIR:-}" ] && [ "${shm_free_mib:-0}" -ge 2048 ]; then
  shm_folder=$(mktemp -d /dev/shm/rooflined-test-XXXXXX)
fi

suite() { # STEP PRESET CTEST-OPTIONS...
  local name=$1 preset=$2
  shift 2
  TMPDIR=${shm_folder:-${TMPDIR:-/tmp}} ctest --preset "$preset" --output-on-failure --output-junit "$PWD/$logs/$name.xml" \
    --test-output-size-passed 65536 --test-output-truncation head "$@"
}

# The tests of whole programs share the processors with each other and with other programs, so a test can fail because it is too
# slow. Each therefore has a second attempt; the summary names the tests that needed it. A sanitizer's report fails the step in
# any case.
suite_with_second_attempts() { # STEP PRESET CTEST-OPTIONS...
  suite "$@" --repeat until-pass:2 && ! grep -qaE 'Sanitizer: |runtime error: ' "$logs/$1.log" >/dev/null
}

install_all() { rl_install build tests && rl_install_headless_browser; }
unit() { suite unit dev -L unit --no-tests=error; }
worker() { suite worker dev -L worker; }
api() { suite api dev -L 'api|contract'; }
simt() { suite simt dev --no-tests=ignore -L simt; }
crash() { suite crash dev -L crash; }
client() { suite client dev -L client; }
web() { suite web dev -L web; }
packaging() { suite packaging dev -L packaging; }
rest() { suite rest dev --no-tests=ignore -LE 'unit|worker|api|contract|crash|client|web|packaging|simt|boot'; }
# Runs all tests of whole programs (worker, api, crash, client, web, packaging and rest) concurrently. Most of them wait for two
# thirds of their time.
programs() { CTEST_PARALLEL_LEVEL=$((2 * jobs)) suite_with_second_attempts programs dev -LE 'unit|simt|boot|source'; }
boot() { suite_with_second_attempts boot dev -L boot; } # alone, because its tests check durations
asan() { suite_with_second_attempts asan asan -L 'unit|api|simt' -E '^simt_overflow'; } # simt_numerics covers the same kernels
tsan_units=(queue store supervisor wire) # the unit tests in which several threads interact
tsan() { # most are tests of the API, which wait for half of their time
  CTEST_PARALLEL_LEVEL=$((2 * jobs)) suite_with_second_attempts tsan tsan -R "^(api_.*|$(IFS='|' && echo "${tsan_units[*]}"))\$"
}
fuzz() { scripts/fuzz.sh; }

# Code for compute capability 8.0 also runs on 8.6 and 8.9. Compiling for these two as well would take 50 % longer and test
# nothing more. Compressing the code would take 15 % longer.
cuda_build() {
  if ! command -v nvcc >/dev/null && ! [ -x /usr/local/cuda/bin/nvcc ]; then
    echo "no nvcc: the CUDA worker was not compiled"; return 77
  fi
  cmake --preset cuda -DRL_CUDA_ARCHITECTURES="80;90a" -DRL_CUDA_COMPRESSION=none && build cuda
}
# Without a GPU each test is skipped with its reason.
gpu() {
  [ -d build/cuda/tests/gpu ] || { echo "the CUDA worker was not compiled"; return 77; }
  CTEST_PARALLEL_LEVEL=1 suite gpu cuda -L gpu
}

# What needs no build: the tests with the CTest label `source`, and the generated files that the source tree determines.
source() {
  local check status=0
  for check in columns.sh format.sh includes.py shellcheck.sh; do
    echo "$check:"
    "tests/packaging/$check"
    case $? in 0 | 77) ;; *) status=1 ;; esac
  done
  scripts/generated.sh --check source || status=1
  return "$status"
}
# The other generated files that are kept in the tree must equal what their generators print now.
generated() { scripts/generated.sh --check build; }

# Starts the builds of the steps after `programs` at the lowest priority, so that they use the processor time for which the tests
# of whole programs wait.
ahead=()
build_ahead() {
  ahead=(build_tsan build_asan build_fuzz cuda_build)
  rm -f "$logs"/*.ahead "$logs"/*.status
  set -m # the builds get a process group, which clean_up ends
  (
    renice -n 19 "$BASHPID"
    for name in "${ahead[@]}"; do
      "$name" >"$logs/$name.ahead" 2>&1
      echo $? >"$logs/$name.status"
    done
  ) &
  ahead_pid=$!
  set +m
}

# Runs the function of a step. If build_ahead runs it, waits for its end, prints its output and returns its status.
run_or_await() { # STEP
  [[ " ${ahead[*]} " == *" $1 "* ]] || { "$1"; return; }
  while [ ! -s "$logs/$1.status" ] && kill -0 "$ahead_pid" 2>/dev/null; do sleep 0.5; done
  cat "$logs/$1.ahead"
  return "$(cat "$logs/$1.status" 2>/dev/null || echo 1)"
}

# boot is before build_ahead, because its tests check durations. tsan is before asan, because its tests wait for half of their
# time, in which the other builds continue.
all=(install_all source build_dev generated boot build_ahead unit simt programs
  build_tsan tsan build_asan asan build_fuzz fuzz cuda_build gpu)
build_dev() { build dev; }
build_asan() { build asan; }
build_tsan() { build tsan --target installed "${tsan_units[@]/#/test_}"; } # without the tests that `tsan` does not run
build_fuzz() { # builds the fuzz targets only, because clang does not build the rest of the tree
  local targets
  cmake --preset fuzz || return
  mapfile -t targets < <(ninja -C build/fuzz -t targets all | sed -n 's/^\(fuzz_[a-z_]*\): phony$/\1/p')
  cmake --build --preset fuzz --parallel "$jobs" --target "${targets[@]}"
}

[ $# -gt 0 ] && all=("$@")
echo "rooflined: $(git describe --always --dirty 2>/dev/null), $(nproc) cores," \
  "MNIST: ${ROOFLINED_MNIST_DIR:-none, synthetic digits}"
for name in "${all[@]}"; do
  step "$name" run_or_await "$name"
  if [ "$name" = install_all ] && [ ${#failed_steps[@]} -gt 0 ]; then break; fi # every other step needs the packages
done
python3 scripts/lib/summary.py "$logs"
if [ ${#failed_steps[@]} -gt 0 ]; then
  for name in "${failed_steps[@]}"; do
    echo "failed: $name"
    failure_lines "$logs/$name.log"
  done
  echo "failed steps: ${failed_steps[*]}" >&2
  exit 1
fi
