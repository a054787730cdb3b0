#!/usr/bin/env bash
# scripts/quickstart.sh [--stop-after] [--state DIR] [--port N]: installs missing packages, builds, starts the daemon, trains the
# MNIST CNN in FP32 and FP16 on the GPU (without a GPU on the CPU), and prints the comparison and its URL. Stops a daemon of an
# earlier run first. The new daemon keeps running unless --stop-after is given. MNIST is read from ROOFLINED_MNIST_DIR or
# ../shared/mnist (scripts/fetch-mnist.sh downloads it); without it the training uses synthetic digits.
set -euo pipefail
cd "$(dirname "$0")/.."
trap 'exit 130' INT # ends the script also when Ctrl-C reaches a program that handles SIGINT itself, as apt-get does

stop_after=false
state=${ROOFLINED_STATE:-$PWD/build/quickstart-state}
port=${ROOFLINED_PORT:-8731}
usage() { sed -n '2,5s/^# \{0,1\}//p' "$0"; }
while [ $# -gt 0 ]; do
  case $1 in
    --stop-after) stop_after=true ;;
    --state) state=${2:?--state needs a folder}; shift ;;
    --port) port=${2:?--port needs a number}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

if [ -z "${ROOFLINED_MNIST_DIR:-}" ] && [ -e ../shared/mnist/train-images-idx3-ubyte.gz ]; then
  ROOFLINED_MNIST_DIR=$(cd ../shared/mnist && pwd)
fi
export ROOFLINED_MNIST_DIR=${ROOFLINED_MNIST_DIR:-}

# shellcheck source=scripts/lib/install.sh
. scripts/lib/install.sh
rl_install build

cuda=OFF # without a GPU, CUDA code is not compiled, because that takes long
if [ -e /dev/nvidiactl ]; then cuda=AUTO; fi
echo "Building ..."
log=build/quickstart-build.log
mkdir -p build
build() {
  cmake --preset release -DRL_CUDA=$cuda && cmake --build --preset release --parallel "$(nproc)" --target installed
}
if ! build >"$log" 2>&1 </dev/null; then
  tail -n 40 "$log" >&2
  echo "The build failed; the whole log is $log." >&2
  exit 1
fi
if [ $cuda = AUTO ] && grep -q 'CUDA worker: OFF' "$log"; then
  echo "Continuing without the GPU: nvcc or cudnn.h was not found. Install CUDA 13 with cuDNN 9, then run this again." >&2
fi

mkdir -p "$state"
output=$state/daemon.out
# Stop the daemon of an earlier run; the new one resumes its jobs.
earlier=$(cat "$state/lock" 2>/dev/null || true)
case $(readlink "/proc/${earlier:-none}/exe" || true) in
  "$PWD"/build/release/bin/rooflined*) kill "$earlier" && tail --pid="$earlier" -f /dev/null ;;
esac
: >"$output"
setsid build/release/bin/rooflined --state "$state" --port "$port" >"$output" 2>"$state/daemon.log" </dev/null &
daemon=$!
stop_daemon() { kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null || true; }
trap stop_daemon EXIT
until grep -q '^listening on ' "$output"; do
  if ! kill -0 "$daemon" 2>/dev/null; then
    cat "$state/daemon.log" >&2
    echo "The daemon did not start." >&2
    exit 1
  fi
  sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$output")
export ROOFLINED_URL=$url
build/release/bin/rooflinectl devices

# An epoch takes about half a minute on two CPU cores, and less than half a second on a GPU.
job=(--precisions "fp32,fp16" --epochs 1 --warmup-epochs 0)
if build/release/bin/rooflinectl devices --json | grep -E '"kind": ?"cuda","state": ?"(idle|busy|starting)"' >/dev/null; then
  job=(--precisions "fp32,fp16" --epochs 5 --passes "timing,activity,counters")
fi
status=0
build/release/bin/rooflinectl run --kind ceilings || status=$? # the floors of the training run are computed from the ceilings
build/release/bin/rooflinectl run "${job[@]}" || status=$?
id=$(build/release/bin/rooflinectl list --json | sed -n 's/^{"items":\[{"id":\([0-9]*\).*/\1/p')

echo
if $stop_after; then
  echo "The daemon has been stopped. Its database: $state/rooflined.db"
else
  trap - EXIT
  disown "$daemon"
  echo "The page:         $url/job.html?id=$id"
  echo "The same as JSON: curl $url/jobs/$id/comparison"
  echo "Another job:      ROOFLINED_URL=$url build/release/bin/rooflinectl run --help"
  echo "Stop the daemon:  kill $daemon"
fi
exit "$status"
