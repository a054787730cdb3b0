#!/usr/bin/env bash
# installed.sh BUILD: installs BUILD into an empty folder, starts the daemon from it and runs a job.
set -euo pipefail
build=$1
stage=$(mktemp -d)
daemon=
cleanup() {
  [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
  rm -rf "$stage"
}
trap cleanup EXIT
DESTDIR=$stage cmake --install "$build" --prefix /usr/local >/dev/null
root=$stage/usr/local
for file in bin/{rooflined,rooflinectl,rooflined-worker-cpu,rooflined-nvrtc,rooflined-import} \
  lib/systemd/system/rooflined.service share/rooflined/rooflined.conf \
  share/man/man1/rooflinectl.1.gz share/man/man8/rooflined.8.gz share/bash-completion/completions/rooflinectl \
  share/zsh/vendor-completions/_rooflinectl share/fish/vendor_completions.d/rooflinectl.fish \
  share/rooflined/web/{index.html,vendor/uPlot.esm.js}; do
  [ -e "$root/$file" ] || { echo "cmake --install left out $file"; exit 1; }
done
"$root/bin/rooflined" --state "$stage/state" --port 0 >"$stage/out" 2>"$stage/log" </dev/null &
daemon=$!
for _ in $(seq 1200); do
  grep -q '^listening on ' "$stage/out" && break
  sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$stage/out")
[ -n "$url" ] || { cat "$stage/log"; echo "the installed daemon did not start"; exit 1; }
# The daemon must be ready, serve the page, and run a job on the installed worker.
curl -fsS "$url/readyz" >/dev/null
curl -fsS "$url/" | grep '<title>' >/dev/null # reads to the end, because curl fails on a closed pipe
ROOFLINED_URL=$url "$root/bin/rooflinectl" run --device cpu --dataset synthetic --max-images 256 --epochs 1 --warmup-epochs 0 \
  --precisions fp32
kill "$daemon"
wait "$daemon"
daemon=
echo "the installed daemon answers, serves its page, runs a job and stops with status 0"
