#!/usr/bin/env bash
# Checks that C, C++ and CUDA sources match .clang-format. The version is pinned because versions format differently.
cd "$(dirname "$0")/../.." || exit 2
exceptions=(
  tests/reference/ncu_2025.3_h200.cu # ncu's recorded output contains its line numbers
)
mapfile -t files < <(git ls-files -co --exclude-standard '*.c' '*.h' '*.cpp' '*.cu' '*.cuh' |
  grep -vxF "$(printf '%s\n' "${exceptions[@]}")")
if ! clang-format-14 --dry-run --Werror "${files[@]}"; then
  echo "run: clang-format-14 -i FILE..." >&2
  exit 1
fi
echo "${#files[@]} files"
