#!/usr/bin/env bash
# C and CUDA sources are formatted as .clang-format says. Versions of clang-format differ, so this one is pinned.
cd "$(dirname "$0")/../.." || exit 2
exceptions=(
  tests/reference/ncu_2025.3_h200.cu # its line numbers stand in ncu's recorded output
)
mapfile -t files < <(git ls-files -co --exclude-standard '*.c' '*.h' '*.cpp' '*.cu' '*.cuh' |
  grep -vxF "$(printf '%s\n' "${exceptions[@]}")")
if ! clang-format-14 --dry-run --Werror "${files[@]}"; then
  echo "run: clang-format-14 -i FILE..." >&2
  exit 1
fi
echo "${#files[@]} files"
