#!/usr/bin/env python3
"""tests/baselines/nsys_traces.py FOLDER: records traces with Nsight Systems on a GPU for the tests of imports.

Writes FOLDER/NAME.sqlite, which `nsys export` made, and the reports of `nsys stats` for it: FOLDER/NAME_REPORT.csv. Traces the
programs of torch_traces.py, in which PyTorch's operators are NVTX ranges. In the trace "graph", each node of the CUDA graph is an
operation; in "graph_whole", the graph as a whole is one operation.

Finds nsys on the PATH, or beside Nsight Compute in /opt/nvidia. To execute a program, nsys starts this script with
"--work NAME"."""
import glob
import pathlib
import shutil
import subprocess
import sys

TRACES = {"training": ("training", "node"), "graph": ("graph", "node"), "graph_whole": ("graph", "graph"),
          "streams": ("streams", "node"), "copies": ("copies", "node")}
REPORTS = ("cuda_gpu_kern_sum", "cuda_gpu_trace", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum", "cuda_api_sum", "nvtx_sum",
           "nvtx_gpu_proj_sum")


def execute(name):
    """Executes a program of torch_traces.py between cudaProfilerStart and cudaProfilerStop, with PyTorch's operators as NVTX
    ranges."""
    import torch  # the process that starts nsys needs no PyTorch

    import torch_traces
    torch.manual_seed(1)
    work = getattr(torch_traces, name)()
    for _ in range(2):
        work()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    with torch.autograd.profiler.emit_nvtx():
        work()
        torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def find_nsys():
    found = shutil.which("nsys") or max(glob.glob("/opt/nvidia/*/*/host/target-linux-x64/nsys"), default=None)
    if found is None:
        sys.exit("nsys_traces.py: nsys is neither on the PATH nor in /opt/nvidia")
    return found


def record(nsys, name, folder):
    work, graph_trace = TRACES[name]
    report, database = folder / f"{name}.nsys-rep", folder / f"{name}.sqlite"
    subprocess.run([nsys, "profile", "--output", report, "--force-overwrite", "true", "--trace", "cuda,nvtx", "--sample", "none",
                    "--cpuctxsw", "none", "--cuda-graph-trace", graph_trace, "--capture-range", "cudaProfilerApi",
                    "--capture-range-end", "stop", sys.executable, __file__, "--work", work], check=True)
    subprocess.run([nsys, "export", "--type", "sqlite", "--force-overwrite", "true", "--output", database, report], check=True)
    summarize(nsys, database)


def summarize(nsys, database):
    """Writes the reports of `nsys stats` for a database beside it."""
    subprocess.run([nsys, "stats", *(f"--report={report}" for report in REPORTS), "--format=csv", "--force-overwrite=true",
                    "--output", database.with_suffix(""), database], check=True)


def main():
    if sys.argv[1] == "--work":
        return execute(sys.argv[2])
    folder, nsys = pathlib.Path(sys.argv[1]).resolve(), find_nsys()
    folder.mkdir(parents=True, exist_ok=True)
    for name in TRACES:
        record(nsys, name, folder)


if __name__ == "__main__":
    main()
