#!/usr/bin/env bash
# tests/bench/api.sh [OPTIONS]: measures the speed of the API on a large database, and its latency while other clients attack it;
# prints tables in Markdown. Installs missing packages. --help lists the options; docs/measurements/api-speed.md has results.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/lib/install.sh
. scripts/lib/install.sh
rl_install bench
exec /usr/bin/python3 tests/bench/api.py "$@"
