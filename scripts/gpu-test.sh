#!/usr/bin/env bash
# scripts/gpu-test.sh --out DIR [--steps A,B,...] [--budget-s N] [--keep FILE] [--device gpu0|gpu1|cpu] [--build DIR]: runs
# measurement steps on a device and writes their results to DIR. --help explains the options and lists the steps. On a GPU host,
# the script uses the build in .gpu/, which scripts/gpu-pack.sh packed into .gpu.tar.xz; it unpacks that file when it is newer.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ .gpu.tar.xz -nt .gpu ]; then
  rm -rf .gpu
  python3 -c 'import tarfile; tarfile.open(".gpu.tar.xz").extractall()'
  touch .gpu
fi
PYTHONPATH=scripts/lib PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 exec python3 -m measure "$@"
