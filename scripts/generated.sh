#!/usr/bin/env bash
# scripts/generated.sh [--check] [FILE...]: writes the generated files that are kept in the tree, or with --check fails when one
# differs from what its generator prints now. Without FILE: all of them. ROOFLINED_BUILD names the build folder (build/dev).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${ROOFLINED_BUILD:-build/dev}

# Every generated file that is kept, with the command that prints it.
all=(docs/metrics.md docs/rules.md web/package-lock.json tests/web/package-lock.json)
generate() { # FILE
  case $1 in
    docs/metrics.md) python3 schema/catalogue.py docs /dev/stdout ;;
    docs/rules.md) "$build/tests/rules_page" ;;
    web/package-lock.json) package_lock web ;;
    tests/web/package-lock.json) package_lock tests/web ;;
    *) echo "$1 is not a generated file" >&2; return 2 ;;
  esac
}

# Prints the lock file of a folder with a package.json. Needs the network.
package_lock() { # FOLDER
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
[ $# -gt 0 ] || set -- "${all[@]}"
printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
stale=0
for file; do
  generate "$file" >"$printed"
  if ! "$check"; then
    cp "$printed" "$file"
  elif ! diff -u "$file" "$printed"; then
    echo "$file is stale: run scripts/generated.sh $file" >&2
    stale=1
  fi
done
[ "$stale" != 0 ] || echo "$# generated files are current"
exit "$stale"
