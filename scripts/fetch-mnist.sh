#!/bin/sh
# scripts/fetch-mnist.sh [FOLDER]: downloads the four MNIST files into a folder (default: ./mnist) and verifies the SHA-256 of
# their decompressed contents. Valid files in the folder are kept.
set -eu
folder=${1:-mnist}
mirrors="https://ossci-datasets.s3.amazonaws.com/mnist https://storage.googleapis.com/cvdf-datasets/mnist"
mkdir -p "$folder"

fetch() { # NAME SHA256-OF-DECOMPRESSED-FILE
  target=$folder/$1.gz
  for mirror in local $mirrors; do # local: a file that the folder already has, which is only verified
    [ "$mirror" = local ] || curl -fsSL --retry 2 --max-time 120 -o "$target.part" "$mirror/$1.gz" || continue
    [ "$mirror" = local ] || mv "$target.part" "$target"
    [ -f "$target" ] || continue
    if gzip -dc "$target" 2>/dev/null | sha256sum | grep -q "^$2 "; then
      echo "$target"
      return 0
    fi
    echo "$target: checksum does not match${mirror:+ ($mirror)}" >&2
  done
  rm -f "$target.part"
  echo "fetch-mnist: $1 could not be fetched from any mirror" >&2
  return 1
}

fetch train-images-idx3-ubyte ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db
fetch train-labels-idx1-ubyte 65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5
fetch t10k-images-idx3-ubyte 0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7
fetch t10k-labels-idx1-ubyte ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2
