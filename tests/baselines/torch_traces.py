#!/usr/bin/env python3
"""tests/baselines/torch_traces.py FOLDER: records traces of torch.profiler on a GPU for the tests of imports.

Writes FOLDER/NAME.json.gz, and FOLDER/NAME.totals.json: the device time and the number of calls of each kernel according to the
profiler's own table. The traces have known properties:

training  5 steps of a small CNN; each copies its images from pageable memory and reads the loss, for which the host waits
graph     a decode step of the transformer layer: 3 eager calls, then 20 replays of its CUDA graph
streams   products on one stream, and at the same time copies from pinned memory on another stream
copies    copies of 16 MiB from pageable and from pinned memory, and back"""
import json
import pathlib
import sys
import types

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

from torch_layer import Layer

STEPS, BATCH, EAGER_CALLS, REPLAYS, ROUNDS = 5, 64, 3, 20, 4


def training():
    """Returns a function that trains STEPS steps."""
    model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images, labels = torch.randn(STEPS, BATCH, 1, 28, 28), torch.randint(10, (STEPS, BATCH))

    def train():
        for step in range(STEPS):
            with record_function(f"step {step}"):
                with record_function("load"):
                    x, y = images[step].cuda(), labels[step].cuda()
                with record_function("forward"):
                    loss = nn.functional.cross_entropy(model(x), y)
                with record_function("backward"):
                    optimizer.zero_grad(set_to_none=True)
                    loss.backward()
                with record_function("optimizer"):
                    optimizer.step()
                loss.item()

    return train


def graph():
    """Returns a function that calls the layer, and replays a graph of it."""
    shape = types.SimpleNamespace(batch=1, tokens=1, cached_tokens=255, hidden=1024, heads=8, ffn=2752)
    layer = Layer(shape, False).cuda().half()
    layer.cosine, layer.sine = layer.cosine.float(), layer.sine.float()
    x = torch.randn(1, 1, shape.hidden, device="cuda").half()
    captured, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.inference_mode():
        with torch.cuda.stream(stream):
            for _ in range(3):
                layer(x)
        torch.cuda.synchronize()
        with torch.cuda.graph(captured):
            layer(x)

    def decode():
        with torch.inference_mode():
            with record_function("eager"):
                for _ in range(EAGER_CALLS):
                    layer(x)
                torch.cuda.synchronize()
            with record_function("replays"):
                for _ in range(REPLAYS):
                    captured.replay()
                torch.cuda.synchronize()

    return decode


def streams():
    """Returns a function that multiplies matrices on one stream and copies on another."""
    a, b = (torch.randn(2048, 2048, device="cuda") for _ in range(2))
    host, device = torch.randn(16 << 20).pin_memory(), torch.empty(16 << 20, device="cuda")
    copy_stream = torch.cuda.Stream()

    def overlap():
        for _ in range(ROUNDS):
            with torch.cuda.stream(copy_stream):
                device.copy_(host, non_blocking=True)
            for _ in range(4):
                torch.mm(a, b)
            torch.cuda.synchronize()

    return overlap


def copies():
    """Returns a function that copies a tensor of pageable and one of pinned memory to the device and back."""
    pageable, device = torch.randn(4 << 20), torch.empty(4 << 20, device="cuda")
    pinned = pageable.pin_memory()

    def copy():
        for _ in range(ROUNDS):
            for host in (pageable, pinned):
                device.copy_(host)
                host.copy_(device)

    return copy


def record(name, work, folder):
    for _ in range(2):
        work()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        work()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(str(folder / f"{name}.json.gz"))
    totals = {item.key: {"calls": item.count, "device_us": item.self_device_time_total} for item in profiler.key_averages()
              if item.self_device_time_total > 0 and item.device_type == torch.autograd.DeviceType.CUDA}
    (folder / f"{name}.totals.json").write_text(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name(),
                                                            "kernels": totals}, indent=1))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    for work in (training, graph, streams, copies):
        record(work.__name__, work(), folder)


if __name__ == "__main__":
    main()
