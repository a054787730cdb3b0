#!/usr/bin/env bash
# dockerfile.sh: what can be said about the Dockerfile without building it. hadolint is used too where it is installed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
wrong=0
say() {
  echo "Dockerfile: $*"
  wrong=1
}

# Every base image has a full version, and the last stage is a runtime one.
while read -r image; do
  [[ $image =~ ^nvidia/cuda:[0-9]+\.[0-9]+\.[0-9]+-cudnn-(devel|runtime)-ubuntu[0-9.]+$ ]] ||
    say "base image $image is not a pinned CUDA + cuDNN image"
done < <(awk '$1 == "FROM" {print $2}' Dockerfile)
[[ $(awk '$1 == "FROM" {last = $2} END {print last}' Dockerfile) == *-runtime-* ]] || say "the last stage is not a runtime image"

last_stage=$(awk '$1 == "FROM" {text = ""} {text = text "\n" $0} END {print text}' Dockerfile)
user=$(awk '$1 == "USER" {last = $2} END {print last}' <<<"$last_stage")
[ -n "$user" ] && [[ ! $user =~ ^(root|0)(:|$) ]] || say "the daemon runs as root"
grep -q '^HEALTHCHECK ' <<<"$last_stage" || say "there is no HEALTHCHECK"
grep -qE '^ENTRYPOINT \["' <<<"$last_stage" || say "ENTRYPOINT is not in exec form"
grep -qE '^(ADD|MAINTAINER) ' Dockerfile && say "ADD and MAINTAINER are not used here"

# Each apt-get install is lean and cleans up in its own layer.
joined=$(sed -e ':again' -e '/\\$/N; s/\\\n//; t again' Dockerfile)
while read -r line; do
  [[ $line == *--no-install-recommends* && $line == *'rm -rf /var/lib/apt/lists'* ]] ||
    say "an apt-get install keeps recommends or lists: $line"
done < <(grep 'apt-get install' <<<"$joined")

# What is copied from the tree exists, and .dockerignore does not hide it.
while read -r sources; do
  for source in $sources; do
    [ -e "$source" ] || say "COPY $source: there is no such file"
    grep -qxF "$source" .dockerignore && say "COPY $source is hidden by .dockerignore"
  done
done < <(awk '$1 == "COPY" && $2 !~ /^--from/ {for (i = 2; i < NF; i++) printf "%s ", $i; print ""}' Dockerfile)

if command -v hadolint >/dev/null; then
  hadolint Dockerfile || wrong=1
fi
[ "$wrong" = 0 ] && echo "the Dockerfile keeps its rules; building the image needs a container engine"
exit "$wrong"
