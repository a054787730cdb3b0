#!/usr/bin/env bash
# scripts/screenshots.sh [BUILD]: makes the screenshots of docs/screenshots in both themes, from tests/data/h200.sqlite.xz and
# with the programs of BUILD (default build/dev), and tests the pages. CTest's test web_playwright, which installs the browser
# driver, must have run in BUILD.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build/dev}")
ROOFLINED_BUILD=$build ROOFLINED_SOURCE=$PWD ROOFLINED_SCREENSHOTS=$PWD/docs/screenshots \
  node --test --test-reporter=spec tests/web/gpu_pages.test.mjs
du -ch docs/screenshots/*.webp | tail -n 1
