#!/usr/bin/env bash
# Fails when a line of code is wider than the ColumnLimit of .clang-format.
cd "$(dirname "$0")/../.." || exit 2
width=$(sed -n 's/^ColumnLimit: //p' .clang-format)
exceptions=(
  tests/reference/ncu_2025.3_h200.cu # ncu's recorded output contains its line numbers
)
mapfile -t files < <(git ls-files -co --exclude-standard '*.c' '*.h' '*.cpp' '*.cu' '*.cuh' '*.py' '*.sh' '*.js' '*.mjs' \
  '*.css' '*.html' '*.cmake' '*CMakeLists.txt' .ci/run | grep -vxF "$(printf '%s\n' "${exceptions[@]}")")
if LC_ALL=C.UTF-8 grep -nHE "^.{$((width + 1)),}" "${files[@]}"; then
  echo "lines wider than $width columns" >&2
  exit 1
fi
echo "${#files[@]} files"
