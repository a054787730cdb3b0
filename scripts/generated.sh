#!/usr/bin/env bash
# scripts/generated.sh [--check] [FILE...]
# Regenerates each FILE, by default all generated files that are kept in the tree. FILE `source` stands for those whose generator
# needs nothing but the source tree, `build` for those that need a build or the network. With --check only compares them, and
# exits with 1 if one is stale. $ROOFLINED_BUILD is the build folder, by default build/dev.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${ROOFLINED_BUILD:-build/dev}

# The generated files that are kept in the tree, by what their generators need: only the source tree, or a build or the network.
from_source=(docs/metrics.md)
from_build=(docs/rules.md schema/suite.schema.json web/package-lock.json tests/web/package-lock.json)

# generate FILE prints what FILE must contain.
generate() {
  case $1 in
    docs/metrics.md) python3 schema/catalogue.py docs /dev/stdout ;;
    docs/rules.md) "$build/tests/rules_page" ;;
    schema/suite.schema.json) "$build/tests/suite_schema" ;;
    web/package-lock.json) package_lock web ;;
    tests/web/package-lock.json) package_lock tests/web ;;
    *) echo "$1 is not a generated file" >&2; return 2 ;;
  esac
}

# package_lock FOLDER prints the package-lock.json for the folder's package.json. It needs the network.
package_lock() {
  local folder
  folder=$(mktemp -d)
  cp "$1/package.json" "$1/package-lock.json" "$folder"
  npm install --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts --no-audit --no-fund --loglevel=error \
    --prefix "$folder" >&2
  cat "$folder/package-lock.json"
  rm -r "$folder"
}

check=false
if [ "${1:-}" = --check ]; then
  check=true
  shift
fi
[ $# -gt 0 ] || set -- source build
files=()
for file; do
  case $file in
    source) files+=("${from_source[@]}") ;;
    build) files+=("${from_build[@]}") ;;
    *) files+=("$file") ;;
  esac
done
generated=$(mktemp)
trap 'rm -f "$generated"' EXIT
stale=0
for file in "${files[@]}"; do
  generate "$file" >"$generated"
  if ! "$check"; then
    cp "$generated" "$file"
  elif ! diff -u "$file" "$generated"; then
    echo "$file is stale: run scripts/generated.sh $file" >&2
    stale=1
  fi
done
[ "$stale" != 0 ] || echo "${#files[@]} generated files are current"
exit "$stale"
