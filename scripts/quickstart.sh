#!/usr/bin/env bash
# scripts/quickstart.sh [--stop-after] [--state DIR] [--port N]: installs what is missing, builds, starts the daemon (in the place
# of one that an earlier run left), trains the MNIST CNN in FP32 and FP16 on the best device that is there, prints the comparison
# and where its page is. The daemon goes on running unless --stop-after is given. Real MNIST is used when ROOFLINED_MNIST_DIR
# names it or ../shared/mnist has it (scripts/fetch-mnist.sh downloads it), else synthetic digits.
set -euo pipefail
cd "$(dirname "$0")/.."
trap 'exit 130' INT # also where the program that was at work takes it for itself, as apt-get does

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

cuda=OFF # without a GPU, compiling for one is only waiting
if [ -e /dev/nvidiactl ]; then cuda=AUTO; fi
echo "Building ..."
log=build/quickstart-build.log
mkdir -p build
build() {
  cmake --preset release -DRL_CUDA=$cuda && cmake --build --preset release --parallel "$(nproc)" --target installed
}
if ! build >"$log" 2>&1 </dev/null; then
  tail -n 40 "$log" >&2
  echo "The build failed; all of it is in $log." >&2
  exit 1
fi
if [ $cuda = AUTO ] && grep -q 'CUDA worker: OFF' "$log"; then
  echo "Going on without the GPU: nvcc or cudnn.h was not found. Install CUDA 13 with cuDNN 9, then start again." >&2
fi

mkdir -p "$state"
output=$state/daemon.out
# The daemon that an earlier run left here makes way for the one just built, which takes up the jobs that it was at.
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

# A CPU needs about half a minute an epoch on two cores; a GPU less than half a second.
job=(--precisions "fp32,fp16" --epochs 1 --warmup-epochs 0)
if build/release/bin/rooflinectl devices --json | grep -E '"kind": ?"cuda","state": ?"(idle|busy|starting)"' >/dev/null; then
  job=(--precisions "fp32,fp16" --epochs 5 --passes "timing,activity,counters")
fi
status=0
build/release/bin/rooflinectl run --kind ceilings || status=$? # so that the times have a floor to be held against
build/release/bin/rooflinectl run "${job[@]}" || status=$?
id=$(build/release/bin/rooflinectl list --json | sed -n 's/^{"items":\[{"id":\([0-9]*\).*/\1/p')

echo
if $stop_after; then
  echo "The daemon is stopped again. Its database: $state/rooflined.db"
else
  trap - EXIT
  disown "$daemon"
  echo "The page:         $url/job.html?id=$id"
  echo "The same as JSON: curl $url/jobs/$id/comparison"
  echo "Another job:      ROOFLINED_URL=$url build/release/bin/rooflinectl run --help"
  echo "Stop the daemon:  kill $daemon"
fi
exit "$status"
