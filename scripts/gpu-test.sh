#!/usr/bin/env bash
# scripts/gpu-test.sh --out DIR [--steps A,B,...] [--budget-s N] [--keep FILE] [--device gpu0|cpu] [--build DIR]: runs
# the measurement steps on a device; --help lists them. On a GPU host it uses the build of scripts/gpu-pack.sh: .gpu/, which it
# unpacks from .gpu.tar.xz when that is newer.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ .gpu.tar.xz -nt .gpu ]; then
  rm -rf .gpu
  python3 -c 'import tarfile; tarfile.open(".gpu.tar.xz").extractall()'
  touch .gpu
fi
PYTHONPATH=scripts/lib PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 exec python3 -m measure "$@"
