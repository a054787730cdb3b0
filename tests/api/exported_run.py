"""Inserts a traced run that has a row of each kind, two streams, two threads, kernels that overlap by a few nanoseconds, copies
of several kinds of memory, and names that formats must quote."""

from report_fixture import Rows

KERNEL = 'void our::(anonymous namespace)::gemm<float, ns::tile<8> >(float *, "é")'
HOST = {"process": 4000, "thread": 4001}
DEVICE = {"device": 1, "context": 1, "stream": 7}  # device: 1 + the number


def shape(blocks):
    return {"grid_x": blocks, "grid_y": 2, "grid_z": 1, "block_x": 128, "block_y": 1, "block_z": 1, "registers": 40,
            "static_shared_bytes": 1024, "dynamic_shared_bytes": 16}


def kernel(name, start, end, correlation, **columns):
    return {"kind": "kernel", "name": name, "start_ns": start, "end_ns": end, "correlation": correlation, **DEVICE, **shape(4),
            **columns}


def call(name, start, end, correlation, **columns):
    return {"kind": "runtime", "name": name, "start_ns": start, "end_ns": end, "correlation": correlation, **HOST, **columns}


def rows():
    copies = [{"kind": "memcpy", "name": f"memcpy {name}", "start_ns": start, "end_ns": start + 777, "correlation": number,
               "bytes": 50_176, "source_memory": source, "destination_memory": destination, **DEVICE}
              for number, (name, start, source, destination) in enumerate((("HtoD", 2_000, 1, 3), ("DtoH", 40_000, 3, 2)), 11)]
    return [{"kind": "range", "name": "epoch", "start_ns": 0, "end_ns": 90_000, **HOST},
            {"kind": "range", "name": "forward", "start_ns": 1_000, "end_ns": 50_001, **HOST},
            call("cudaMemcpyAsync_v3020", 1_500, 1_900, 11), call("cudaLaunchKernel_v7000", 3_000, 3_456, 1),
            {"kind": "driver", "name": "cuLaunchKernel", "start_ns": 3_100, "end_ns": 3_200, "correlation": 90, **HOST},
            call("cudaGraphLaunch_v10000", 3_500, 3_900, 2, thread=4002), call("cudaMemcpyAsync_v3020", 39_000, 39_100, 12),
            *copies, kernel(KERNEL, 5_000, 15_001, 1), kernel(KERNEL, 14_990, 20_000, 2, graph_node=3),
            kernel("simple", 14_995, 19_000, 2, graph_node=4, stream=13), kernel("simple", 20_000, 20_000, 77),
            {"kind": "memset", "name": "memset", "start_ns": 21_000, "end_ns": 21_500, "bytes": 64, "destination_memory": 3,
             **DEVICE},
            {"kind": "memory", "name": "allocate device", "start_ns": 500, "end_ns": 500, "bytes": 1 << 40, "process": 4000,
             "destination_memory": 3},
            {"kind": "overhead", "name": "CUPTI flushes buffers", "start_ns": 30_000, "end_ns": 31_000, **HOST},
            {"kind": "phase", "name": "conv1", "start_ns": 6_000, "end_ns": 7_000, "step": 2, "device": 1, "stream": 7},
            {"kind": "span", "name": "adam", "start_ns": 60_000, "end_ns": 61_000, **HOST}]


def insert(daemon, activities=None):
    """Inserts the run and returns the ids of its job and of the run."""
    fixture = Rows(daemon)
    activities = rows() if activities is None else activities
    run = fixture.run([], workload="mnist_cnn", variant="fp16", trace=([], activities))
    job = fixture.job_of(run)
    fixture.db.close()
    return job, run
