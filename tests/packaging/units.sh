#!/usr/bin/env bash
# units.sh FOLDER: checks that `systemd-analyze verify` has no warnings about the units in FOLDER, and that `systemd-analyze
# security` rates the exposure of each service at most 2.0.
set -uo pipefail
cd "$1" || exit 2
command -v systemd-analyze >/dev/null || { echo "no systemd-analyze"; exit 77; }
failed=0
units=(*.service *.timer)
# verify exits with 0 after unknown settings, so its output counts. Templates are checked as instances.
messages=$(systemd-analyze verify --man=no --recursive-errors=no "${units[@]/#/./}" 2>&1) || failed=1
if [ -n "$messages" ]; then
  echo "$messages"
  failed=1
fi
for unit in *.service; do
  systemd-analyze security --offline=true --no-pager --threshold=20 "./$unit" >security.txt 2>&1 || {
    cat security.txt
    failed=1
  }
  tail -n 1 security.txt
done
exit "$failed"
