#!/usr/bin/env bash
# scripts/gpu-test.sh --out DIR [--steps A,B,...] [--budget-s N] [--keep FILE] [--device gpu0|cpu] [--build DIR]: what has to be
# shown on a device, step by step; --help lists the steps. On a GPU host the build is carried: .gpu/, or .gpu.tar.gz, which is
# unpacked first.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ .gpu.tar.gz -nt .gpu ]; then
  rm -rf .gpu
  tar -xzf .gpu.tar.gz
  touch .gpu
fi
PYTHONPATH=scripts/lib PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 exec python3 -m measure "$@"
