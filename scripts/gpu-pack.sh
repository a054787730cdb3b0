#!/usr/bin/env bash
# scripts/gpu-pack.sh [BUILD]: gathers in .gpu/ what scripts/gpu-test.sh needs on a GPU host that can neither build nor install:
# the programs and GPU tests of BUILD (default build/cuda), the page, the shared libraries that such a host lacks (it has CUDA,
# cuDNN, the driver, glibc, libstdc++, SQLite and zlib), MNIST, the list of tests, and of build/ptx80, where it is built, what
# shows that code made from PTX for 8.0 works:
#   cmake -S . -B build/ptx80 -G Ninja -DRL_CUDA=ON -DRL_CUDA_ARCHITECTURES= -DRL_CUDA_PTX=80
#   cmake --build build/ptx80 --target bench_train test_gpu_conv2
# Carry .gpu.tar.gz there beside the tree.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/cuda}
mnist=${ROOFLINED_MNIST_DIR:-../shared/mnist}
if [ ! -x "$build/bin/rooflined-worker-cuda" ]; then
  echo "$build has no rooflined-worker-cuda: cmake --preset cuda && cmake --build --preset cuda" >&2
  exit 2
fi
cmake --build "$build" >/dev/null # or numbers would be said to be of a commit that they are not of
rm -rf .gpu
mkdir -p .gpu/bin .gpu/lib .gpu/tests .gpu/share

cp "$build"/bin/{rooflined,rooflinectl,rooflined-worker-cuda,rooflined-nvrtc,rooflined-cupti.so} .gpu/bin/
cp -R "$build/share/rooflined" .gpu/share/
ls "$mnist"/*.gz >/dev/null 2>&1 && mkdir .gpu/mnist && cp "$mnist"/*.gz .gpu/mnist/

# The GPU tests, as CTest knows them, with paths that hold on any machine: name, then the command's words.
ctest --test-dir "$build" --show-only=json-v1 | python3 -c '
import json, os, shutil, sys
build, source = os.path.abspath(sys.argv[1]), os.getcwd()
with open(".gpu/tests.tsv", "w") as out:
    for test in json.load(sys.stdin)["tests"]:
        labels = [p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"]
        if not labels or "gpu" not in labels[0] or "command" not in test:
            continue
        for word in test["command"]:
            if word.startswith(build + "/") and os.access(word, os.X_OK):
                shutil.copy(word, ".gpu/tests/")
        words = [w.replace(build, ".gpu").replace(source + "/", "") for w in test["command"]]
        print(test["name"], *words, sep="\t", file=out)
' "$build"
cp "$build"/tests/{bench_*,measure_kernels,cupti_probe_*} "$build"/bin/rooflined-nvrtc .gpu/tests/
if [ -x build/ptx80/tests/bench_train ]; then
  cmake --build build/ptx80 --target bench_train test_gpu_conv2 >/dev/null # or it shows what older kernels do
  mkdir .gpu/ptx80
  cp build/ptx80/tests/{bench_train,test_gpu_conv2} .gpu/ptx80/
fi

for program in .gpu/{bin,tests}/*; do
  ldd "$program" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}'
done | sort -u |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*|libgcc_s|libstdc\+\+|libsqlite3|libz)\.so' |
  grep -vE '/cuda|libnvidia|libcuda\.so|libcudnn|libcublas|libcupti|libnvperf|libopenblas' |
  while read -r library; do cp -L "$library" .gpu/lib/; done
strip --strip-unneeded .gpu/{bin,tests,ptx80}/* 2>/dev/null || true
.gpu/bin/rooflined --version | sed 's/.*(\(.*\))/\1/' >.gpu/commit
grep -q dirty .gpu/commit && echo "gpu-pack.sh: what is packed is of no commit: $(cat .gpu/commit)" >&2
tar -czf .gpu.tar.gz .gpu
echo ".gpu holds $(wc -l <.gpu/tests.tsv) GPU tests, $(du -sm .gpu | cut -f 1) MiB," \
  "packed $(du -m .gpu.tar.gz | cut -f 1), of $(cat .gpu/commit)"
