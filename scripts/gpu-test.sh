#!/usr/bin/env bash
# scripts/gpu-test.sh --out DIR [STEP...]: what needs a GPU, from a carried build (scripts/gpu-pack.sh), without a network:
#   device     what the GPU is                        -> device.csv
#   tests      the GPU tests of CTest (numerics, CUPTI, ncu)  -> tests/NAME.log, tests.tsv
#   job        the device's ceilings, then the main job over HTTP, all passes -> ceilings.txt, job.json, job.txt, kernels.json
#   baselines  PyTorch's loops by the same definition -> baselines.jsonl
# and summary.md. What can't run is skipped with its reason. The exit status says whether anything failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
out=
if [ "${1:-}" = --out ]; then out=${2:-}; shift 2; fi
[ -n "$out" ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ -x .gpu/bin/rooflined ] || { echo "no carried build in .gpu: run scripts/gpu-pack.sh where the tree was built" >&2; exit 2; }
mkdir -p "$out/tests"
steps=("$@")
[ ${#steps[@]} -gt 0 ] || steps=(device tests job baselines)
export LD_LIBRARY_PATH=$PWD/.gpu/lib:/usr/local/cuda/lib64:/usr/local/cuda/extras/CUPTI/lib64:${LD_LIBRARY_PATH:-}
[ -d .gpu/mnist ] && export ROOFLINED_MNIST_DIR=$PWD/.gpu/mnist
export ROOFLINED_BUILD=$PWD/.gpu ROOFLINED_SOURCE=$PWD
passed=0 failed=0 skipped=0
: >"$out/steps.tsv"

note() { # NAME STATUS REASON
  case $2 in
    0) passed=$((passed + 1)); word=passed ;;
    77) skipped=$((skipped + 1)); word=skipped ;;
    *) failed=$((failed + 1)); word=FAILED ;;
  esac
  printf '%s\t%s\t%s\n' "$1" "$word" "$3" | tee -a "$out/steps.tsv"
}

device() {
  command -v nvidia-smi >/dev/null || { note device 77 "no nvidia-smi"; return; }
  nvidia-smi --query-gpu=name,uuid,driver_version,memory.total,clocks.max.sm,clocks.max.memory,power.limit,compute_cap --format=csv >"$out/device.csv"
  note device $? "$(tail -n 1 "$out/device.csv")"
}

tests() {
  while IFS=$'\t' read -r name command; do
    IFS=$'\t' read -ra words <<<"$command"
    if [[ $command == *pytest* ]]; then # by whichever Python of this host has it
      for python in "${words[0]}" python3 ""; do
        [ -n "$python" ] && "$python" -c 'import pytest' 2>/dev/null && break
      done
      [ -n "$python" ] || { note "$name" 77 "no pytest here"; continue; }
      words[0]=$python
    fi
    timeout 300 "${words[@]}" >"$out/tests/$name.log" 2>&1 </dev/null
    note "$name" $? "$(tail -n 1 "$out/tests/$name.log")"
  done <.gpu/tests.tsv
}

ctl() { .gpu/bin/rooflinectl "$@"; }

job() {
  local state log=$out/daemon.log url daemon
  state=$(mktemp -d)
  .gpu/bin/rooflined --state "$state" --port 0 >"$state/out" 2>"$log" </dev/null &
  daemon=$!
  for _ in $(seq 200); do
    grep -q '^listening on ' "$state/out" && break
    sleep 0.1
  done
  url=$(sed -n 's/^listening on //p' "$state/out")
  export ROOFLINED_URL=$url
  ctl devices --json >"$out/devices.json"
  ctl run --kind ceilings --device gpu0 | tee "$out/ceilings.txt" # first: the job's floors follow from them
  note ceilings "${PIPESTATUS[0]}" "what the device can do at best"
  ctl --json run --epochs 5 --precisions "fp32,fp16" --passes "timing,activity,counters" --device gpu0 >"$out/job.json"
  note job $? "fp32 and fp16, 5 epochs, all passes, over HTTP"
  local id
  id=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["job"]["id"])' "$out/job.json" 2>/dev/null) || id=1
  ctl show "$id" | tee "$out/job.txt"
  ctl kernels --json "$id" >"$out/kernels.json"
  python3 scripts/lib/check_gpu_job.py "$out/job.json" | tee "$out/job-checks.txt"
  note job-checks "${PIPESTATUS[0]}" "times against the bars, complete activity, counters"
  kill "$daemon"
  wait "$daemon"
  note daemon-stop $? "SIGTERM"
  rm -rf "$state"
}

baselines() {
  python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || { note baselines 77 "no PyTorch with CUDA"; return; }
  timeout 480 python3 tests/baselines/torch_mnist.py --mnist "${ROOFLINED_MNIST_DIR:-.}" >"$out/baselines.jsonl" 2>"$out/baselines.log"
  note baselines $? "PyTorch: eager, CUDA graph, torch.compile + CUDA graph"
}

for one in "${steps[@]}"; do
  "$one"
done
{
  echo "# GPU test of $(cat .gpu/commit)"
  echo
  [ -e "$out/device.csv" ] && tail -n 1 "$out/device.csv"
  echo
  echo '| step | outcome | |'
  echo '| --- | --- | --- |'
  awk -F '\t' '{printf "| %s | %s | %s |\n", $1, $2, $3}' "$out/steps.tsv"
  [ -e "$out/job.txt" ] && printf '\n```\n%s\n```\n' "$(cat "$out/job.txt")"
} >"$out/summary.md"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
