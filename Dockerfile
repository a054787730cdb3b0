# rooflined with its CPU and CUDA workers. Build: docker build --build-arg COMMIT=$(git rev-parse --short=12 HEAD) -t rooflined .
# Run on a GPU host, behind a proxy that terminates TLS (see README, "Beyond this machine"). The daemon listens on all addresses of
# the container, so it starts only when a token exists. Create one first:
#   docker run --rm -v rooflined:/var/lib/rooflined --entrypoint rooflinectl rooflined token
#   docker run --gpus all -p 127.0.0.1:8731:8731 -v rooflined:/var/lib/rooflined rooflined
# Training uses MNIST instead of synthetic digits with: -v /path/to/mnist:/mnist:ro -e ROOFLINED_MNIST_DIR=/mnist
# Hardware counters need NVreg_RestrictProfilingToAdminUsers=0 in the host's driver or --cap-add SYS_ADMIN. Without either, the
# counters pass is `unavailable` and everything else works.
# CI lints this file and runs the same installation steps, but does not build the image.

FROM nvidia/cuda:13.0.1-cudnn-devel-ubuntu24.04 AS build
RUN apt-get update \
  && apt-get install -y --no-install-recommends gcc g++ cmake ninja-build pkg-config python3 git ca-certificates nodejs npm \
    libmicrohttpd-dev libcjson-dev libsqlite3-dev zlib1g-dev libcurl4-openssl-dev libsystemd-dev libsodium-dev libopenblas-dev \
    libcmocka-dev \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
ARG COMMIT=unknown
ENV ROOFLINED_COMMIT=$COMMIT
RUN cmake --preset release -DRL_CUDA=ON -DCMAKE_INSTALL_PREFIX=/usr/local \
  && cmake --build --preset release --target installed \
  && DESTDIR=/stage cmake --install build/release

# Besides the libraries: CUPTI (profiling), nvdisasm (machine code) and the headers that posted code may include.
FROM nvidia/cuda:13.0.1-cudnn-runtime-ubuntu24.04
RUN apt-get update \
  && apt-get install -y --no-install-recommends libmicrohttpd12t64 libcjson1 libsqlite3-0 zlib1g libcurl4t64 libsystemd0 libsodium23 \
    libopenblas0-pthread curl cuda-cupti-13-0 cuda-nvdisasm-13-0 cuda-cudart-dev-13-0 cuda-crt-13-0 cuda-cccl-13-0 \
  && rm -rf /var/lib/apt/lists/* \
  && useradd --system --uid 8731 --home-dir /var/lib/rooflined --create-home rooflined
COPY --from=build /stage/usr/local/ /usr/local/
ENV ROOFLINED_STATE=/var/lib/rooflined ROOFLINED_ADDRESS=0.0.0.0 ROOFLINED_PORT=8731 ROOFLINED_BEHIND_PROXY=true
VOLUME /var/lib/rooflined
EXPOSE 8731
USER rooflined
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s CMD ["curl", "-fsS", "-o", "/dev/null", "http://127.0.0.1:8731/healthz"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["rooflined"]
