#!/usr/bin/env bash
# scripts/gpu-pack.sh [BUILD]: packs the files that scripts/gpu-test.sh needs into .gpu/ and .gpu.tar.xz, for a GPU host that has
# neither compilers nor root access: programs and GPU tests of BUILD (default build/cuda), the list of tests, the page, MNIST and
# the shared libraries that the host lacks. The host must have CUDA, cuDNN, the driver, glibc, libstdc++, SQLite and zlib. Copy
# .gpu.tar.xz into the root of the source tree there.
# If build/ptx80 exists, its programs are packed too; they test that code compiled from PTX for compute capability 8.0 works:
#   cmake -S . -B build/ptx80 -G Ninja -DRL_CUDA=ON -DRL_CUDA_ARCHITECTURES= -DRL_CUDA_PTX=80
#   cmake --build build/ptx80 --target bench_train test_gpu_conv2
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/cuda}
mnist=${ROOFLINED_MNIST_DIR:-../shared/mnist}
if [ ! -x "$build/bin/rooflined-worker-cuda" ]; then
  echo "$build has no rooflined-worker-cuda: cmake --preset cuda && cmake --build --preset cuda" >&2
  exit 2
fi
cmake -DRL_CUDA_COMPRESSION=size "$build" >/dev/null # as it is shipped; scripts/test.sh does not compress machine code
cmake --build "$build" >/dev/null # the packed programs must report this source tree's commit
rm -rf .gpu
mkdir -p .gpu/bin .gpu/lib .gpu/tests .gpu/share

cp "$build"/bin/{rooflined,rooflinectl,rooflined-worker-cuda,rooflined-nvrtc,rooflined-import,rooflined-cupti.so} .gpu/bin/
cp -R "$build/share/rooflined" .gpu/share/
ls "$mnist"/*.gz >/dev/null 2>&1 && mkdir .gpu/mnist && cp "$mnist"/*.gz .gpu/mnist/

# .gpu/tests.tsv: the GPU tests of CTest, one a line: name, then the arguments of the command with relative paths.
ctest --test-dir "$build" --show-only=json-v1 | python3 -c '
import json, os, shutil, sys
build, source_root = os.path.abspath(sys.argv[1]), os.getcwd()
with open(".gpu/tests.tsv", "w") as out:
    for test in json.load(sys.stdin)["tests"]:
        labels = [entry["value"] for entry in test.get("properties", []) if entry["name"] == "LABELS"]
        if not labels or "gpu" not in labels[0] or "command" not in test:
            continue
        for argument in test["command"]:
            if argument.startswith(build + "/") and os.access(argument, os.X_OK):
                shutil.copy(argument, ".gpu/tests/")
        arguments = [argument.replace(build, ".gpu").replace(source_root + "/", "") for argument in test["command"]]
        print(test["name"], *arguments, sep="\t", file=out)
' "$build"
# Workers and tests run the rooflined-nvrtc in their own folder.
cp "$build"/tests/{bench_*,measure_kernels,cupti_probe_*} "$build"/bin/rooflined-nvrtc .gpu/tests/
if [ -x build/ptx80/tests/bench_train ]; then
  cmake --build build/ptx80 --target bench_train test_gpu_conv2 >/dev/null # so that build/ptx80 has the current kernels
  mkdir .gpu/ptx80
  cp build/ptx80/tests/{bench_train,test_gpu_conv2} .gpu/ptx80/
fi

# Packs the shared libraries, except those of the base system (first filter), and of CUDA and the CPU worker (second filter).
for program in .gpu/{bin,tests}/*; do
  ldd "$program" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}'
done | sort -u |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*|libgcc_s|libstdc\+\+|libsqlite3|libz)\.so' |
  grep -vE '/cuda|libnvidia|libcuda\.so|libcudnn|libcublas|libcupti|libnvperf|libopenblas' |
  while read -r library; do cp -L "$library" .gpu/lib/; done
strip --strip-unneeded .gpu/{bin,tests,ptx80}/* 2>/dev/null || true
.gpu/bin/rooflined --version | sed 's/.*(\(.*\))/\1/' >.gpu/commit
grep -q dirty .gpu/commit && echo "gpu-pack.sh: the build has uncommitted changes: $(cat .gpu/commit)" >&2
# The tests contain the same kernels, so that xz with a dictionary of 32 MiB makes an archive a third as large as gzip's.
tar -c .gpu | xz -T0 --lzma2=preset=1,dict=32MiB >.gpu.tar.xz
echo ".gpu holds $(wc -l <.gpu/tests.tsv) GPU tests, $(du -sm .gpu | cut -f 1) MiB," \
  "compressed $(du -m .gpu.tar.xz | cut -f 1) MiB, commit $(cat .gpu/commit)"
