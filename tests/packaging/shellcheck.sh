#!/usr/bin/env bash
# Runs shellcheck over every shell script of the tree and the packages' maintainer scripts, at level warning.
cd "$(dirname "$0")/../.." || exit 2
command -v shellcheck >/dev/null || { echo "no shellcheck"; exit 77; }
mapfile -t scripts < <(git ls-files -co --exclude-standard '*.sh' .ci/run 'cmake/packages/*p*[mt]')
shellcheck -x -S warning "${scripts[@]}" && echo "${#scripts[@]} scripts"
