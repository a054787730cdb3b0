# rooflined with its CPU and CUDA workers. Build: docker build --build-arg COMMIT=$(git rev-parse --short=12 HEAD) -t rooflined .
# Run on a GPU host, behind a proxy that terminates TLS (see README, "Beyond this machine"). The daemon listens on all addresses of
# the container, so it starts only when a token exists. Create one first:
#   docker run --rm -v rooflined:/var/lib/rooflined --entrypoint rooflinectl rooflined token
#   docker run --gpus all -p 127.0.0.1:8731:8731 -v rooflined:/var/lib/rooflined rooflined
# Training uses MNIST instead of synthetic digits with: -v /path/to/mnist:/mnist:ro -e ROOFLINED_MNIST_DIR=/mnist
# Hardware counters need NVreg_RestrictProfilingToAdminUsers=0 in the host's driver or --cap-add SYS_ADMIN. Without either, the
# counters pass is `unavailable` and everything else works.
# Without CUDA, for CPUs only, on Debian 12 or Ubuntu 24.04: docker build --build-arg BUILD_IMAGE=debian:12
#   --build-arg RUNTIME_IMAGE=debian:12 --build-arg CUDA=OFF --build-arg CUDA_PACKAGES= -t rooflined .
# CI builds the second stage without CUDA with the package that it has built, and runs a job in it. The first stage and NVIDIA's
# base images are only checked by rules.
ARG BUILD_IMAGE=nvidia/cuda:13.0.1-cudnn-devel-ubuntu24.04
ARG RUNTIME_IMAGE=nvidia/cuda:13.0.1-cudnn-runtime-ubuntu24.04

FROM ${BUILD_IMAGE} AS build
RUN apt-get update \
  && apt-get install -y --no-install-recommends gcc g++ cmake ninja-build pkg-config python3 git ca-certificates nodejs npm dpkg-dev \
    libmicrohttpd-dev libcjson-dev libsqlite3-dev zlib1g-dev libcurl4-openssl-dev libsystemd-dev libsodium-dev libzstd-dev \
    libopenblas-dev libseccomp-dev libyajl-dev libcmocka-dev \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
ARG COMMIT=unknown
ARG CUDA=ON
ENV ROOFLINED_COMMIT=$COMMIT
RUN cmake --preset release -DRL_CUDA=$CUDA \
  && cmake --build --preset release --target installed \
  && cpack --config build/release/CPackConfig.cmake -B /packages

# The packages depend on the libraries. CUDA_PACKAGES: CUPTI (profiling), nvdisasm (machine code) and the headers that posted code may
# include.
FROM ${RUNTIME_IMAGE}
ARG CUDA_PACKAGES="cuda-cupti-13-0 cuda-nvdisasm-13-0 cuda-cudart-dev-13-0 cuda-crt-13-0 cuda-cccl-13-0"
COPY --from=build /packages/*.deb /packages/
RUN apt-get update \
  && apt-get install -y --no-install-recommends /packages/*.deb curl ca-certificates ${CUDA_PACKAGES} \
  && rm -rf /var/lib/apt/lists/* /packages \
  && useradd --system --uid 8731 --home-dir /var/lib/rooflined --create-home rooflined
ENV ROOFLINED_STATE=/var/lib/rooflined ROOFLINED_ADDRESS=0.0.0.0 ROOFLINED_PORT=8731 ROOFLINED_BEHIND_PROXY=true
VOLUME /var/lib/rooflined
EXPOSE 8731
USER rooflined
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s CMD ["curl", "-fsS", "-o", "/dev/null", "http://127.0.0.1:8731/healthz"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["rooflined"]
