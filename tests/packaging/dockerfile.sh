#!/usr/bin/env bash
# dockerfile.sh: checks the Dockerfile without building the image, also with hadolint if that is installed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
failed=0
report() {
  echo "Dockerfile: $*"
  failed=1
}

# The base image of each stage is an argument whose default names a full version. The last stage is based on a runtime image.
image_of() { sed -n "s/^ARG $1=//p" Dockerfile; } # ARGUMENT
while read -r argument; do
  image=$(image_of "$argument")
  [[ $image =~ ^nvidia/cuda:[0-9]+\.[0-9]+\.[0-9]+-cudnn-(devel|runtime)-ubuntu[0-9.]+$ ]] ||
    report "base image '$image' of $argument is not a pinned CUDA + cuDNN image"
done < <(awk '$1 == "FROM" {gsub(/[${}]/, "", $2); print $2}' Dockerfile)
[[ $(image_of "$(awk '$1 == "FROM" {gsub(/[${}]/, "", $2); last = $2} END {print last}' Dockerfile)") == *-runtime-* ]] ||
  report "the last stage is not a runtime image"

last_stage=$(awk '$1 == "FROM" {text = ""} {text = text "\n" $0} END {print text}' Dockerfile)
user=$(awk '$1 == "USER" {last = $2} END {print last}' <<<"$last_stage")
[ -n "$user" ] && [[ ! $user =~ ^(root|0)(:|$) ]] || report "the daemon runs as root"
grep -q '^HEALTHCHECK ' <<<"$last_stage" || report "there is no HEALTHCHECK"
grep -qE '^ENTRYPOINT \["' <<<"$last_stage" || report "ENTRYPOINT is not in exec form"
grep -qE '^(ADD|MAINTAINER) ' Dockerfile && report "ADD and MAINTAINER are not used here"

# Each apt-get install omits recommended packages and removes the package lists in the same layer.
joined=$(sed -e ':again' -e '/\\$/N; s/\\\n//; t again' Dockerfile)
while read -r line; do
  [[ $line == *--no-install-recommends* && $line == *'rm -rf /var/lib/apt/lists'* ]] ||
    report "an apt-get install keeps recommended packages or package lists: $line"
done < <(grep 'apt-get install' <<<"$joined")

# The sources of each COPY exist, and .dockerignore does not exclude them.
while read -r sources; do
  for source in $sources; do
    [ -e "$source" ] || report "COPY $source: there is no such file"
    grep -qxF "$source" .dockerignore && report ".dockerignore excludes the source of COPY $source"
  done
done < <(awk '$1 == "COPY" && $2 !~ /^--from/ {for (i = 2; i < NF; i++) printf "%s ", $i; print ""}' Dockerfile)

if command -v hadolint >/dev/null; then
  hadolint Dockerfile || failed=1
fi
[ "$failed" = 0 ] && echo "the Dockerfile passes its checks; the test image builds its second stage"
exit "$failed"
