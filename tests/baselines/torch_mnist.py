#!/usr/bin/env python3
"""Trains rooflined's MNIST CNN in PyTorch, as the baseline of its engines; run it in the same measurement session.

An epoch is timed as in rooflined: shuffle, gathering and normalising, every step of every image including the last short
batch, until the device is idle. Evaluation is not included. The data set is resident on the GPU in every variant.

  eager    each kernel is launched from Python
  graph    the whole step (gather to optimizer) is a CUDA graph; the cursor is stored on the device
  compile  the same with forward and backward from torch.compile(max-autotune); the short batch runs uncompiled, also in a graph

fp32 is IEEE single (TF32 off), tf32 allows TF32, fp16 is autocast + GradScaler with a dynamic scale. Prints one JSON object per
line.

With --accuracy-of-seeds 1,2,3 it trains from each of these seeds instead and prints the test accuracy after each epoch. The
trainings run concurrently, because a step leaves most of the GPU idle; nothing is timed.
"""
import argparse
import gzip
import json
import os
import statistics
import struct
import time

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(64 * 6 * 6, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def read_idx(folder, name):
    with gzip.open(os.path.join(folder, name + ".gz"), "rb") as file:
        data = file.read()
    dimensions = data[3]
    shape = struct.unpack(f">{dimensions}I", data[4:4 + 4 * dimensions])
    return torch.frombuffer(bytearray(data[4 + 4 * dimensions:]), dtype=torch.uint8).reshape(shape).cuda()


class Training:
    """Model, optimizer and data. step() trains `size` images from the cursor on without synchronising with the host."""

    def __init__(self, arguments, precision, seed):
        torch.manual_seed(seed)
        self.stream = torch.cuda.Stream()
        self.generator = torch.Generator("cuda").manual_seed(seed)
        self.half = precision == "fp16"
        self.images = read_idx(arguments.mnist, "train-images-idx3-ubyte").unsqueeze(1)
        self.labels = read_idx(arguments.mnist, "train-labels-idx1-ubyte").long()
        self.count = len(self.images)
        self.model = Net().cuda()
        if arguments.channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True, capturable=True)
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.half)
        self.initial_scale = self.scaler.state_dict()
        self.order = torch.arange(self.count, device="cuda")
        self.cursor = torch.zeros((), dtype=torch.long, device="cuda")
        self.losses = torch.zeros((), device="cuda")

    @torch.no_grad()
    def restart(self, seed):
        """Starts again from another seed. All tensors stay in place, so that captured graphs remain valid."""
        torch.manual_seed(seed)
        self.generator.manual_seed(seed)
        for parameter, initial in zip(self.model.parameters(), Net().parameters()):
            parameter.copy_(initial)
        for moments in self.optimizer.state.values():
            for tensor in moments.values():
                tensor.zero_()
        if self.half:
            self.scaler.load_state_dict(self.initial_scale)

    def shuffle(self):
        self.order.copy_(torch.randperm(self.count, device="cuda", generator=self.generator))
        self.cursor.zero_()
        self.losses.zero_()

    def step(self, model, size):
        chosen = self.order[self.cursor + torch.arange(size, device="cuda")]
        x = self.images[chosen].float().div_(255).sub_(0.1307).div_(0.3081)
        y = self.labels[chosen]
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16, enabled=self.half):
            logits = model(x)
        loss = F.cross_entropy(logits.float(), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.losses += loss.detach()
        self.cursor += size

    def capture(self, model, size):
        """Captures a step on a stream of its own, because libraries keep a workspace per stream that concurrent graphs must not
        share. Returns the function that replays it."""
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                self.cursor.zero_()
                self.step(model, size)
        torch.cuda.current_stream().wait_stream(self.stream)
        self.cursor.zero_()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            self.step(model, size)
        return graph.replay

    @torch.no_grad()
    def accuracy(self, images, labels):
        correct = 0
        for first in range(0, len(images), 1000):
            x = images[first:first + 1000].float().div_(255).sub_(0.1307).div_(0.3081)
            correct += (self.model(x).argmax(1) == labels[first:first + 1000]).sum().item()
        return correct / len(images)


def prepare(arguments, precision, variant, seed):
    """Returns (training, function that trains a whole batch, function that trains the short last batch)."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.cuda.reset_peak_memory_stats()
    training = Training(arguments, precision, seed)
    tail = training.count % arguments.batch
    if variant == "eager":
        return training, lambda: training.step(training.model, arguments.batch), lambda: training.step(training.model, tail)
    model = training.model
    if variant == "compile":
        model = torch.compile(model, mode="max-autotune-no-cudagraphs", dynamic=False)
    step = training.capture(model, arguments.batch)
    last = training.capture(training.model, tail) if tail else None
    training.restart(seed)
    return training, step, last


def steps_of_epoch(arguments, training, step, last):
    """Yields the functions of an epoch in order."""
    yield training.shuffle
    yield from [step] * (training.count // arguments.batch)
    if training.count % arguments.batch:
        yield last


def run_epoch(arguments, *prepared):
    for step in steps_of_epoch(arguments, *prepared):
        step()


def run_epochs_concurrently(arguments, trainings):
    """Runs an epoch of each training on its own stream."""
    for steps in zip(*(steps_of_epoch(arguments, *prepared) for prepared in trainings)):
        for (training, *_), step in zip(trainings, steps):
            with torch.cuda.stream(training.stream):
                step()
    torch.cuda.synchronize()


def read_test(arguments):
    return (read_idx(arguments.mnist, "t10k-images-idx3-ubyte").unsqueeze(1),
            read_idx(arguments.mnist, "t10k-labels-idx1-ubyte").long())


def run_accuracy(arguments, precision, variant):
    """Prints the test accuracy after each epoch for each seed."""
    seeds = [int(seed) for seed in arguments.accuracy_of_seeds.split(",")]
    trainings, test = [prepare(arguments, precision, variant, seed) for seed in seeds], read_test(arguments)
    accuracy = {seed: [] for seed in seeds}
    torch.cuda.synchronize()
    for _ in range(arguments.epochs):
        run_epochs_concurrently(arguments, trainings)
        for seed, (training, *_) in zip(seeds, trainings):
            accuracy[seed].append(training.accuracy(*test))
    for seed in seeds:
        print(json.dumps({"framework": "pytorch", "variant": variant, "precision": precision, "batch": arguments.batch,
                          "seed": seed, "accuracy": accuracy[seed]}), flush=True)


def run_timing(arguments, precision, variant):
    begin = time.perf_counter()
    training, step, last = prepare(arguments, precision, variant, arguments.seed)
    prepare_s = time.perf_counter() - begin
    test = read_test(arguments)
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    device_ms, host_ms, accuracy = [], [], 0.0
    for epoch in range(-arguments.warmup, arguments.epochs):
        torch.cuda.synchronize()
        host_begin = time.perf_counter()
        start.record()
        run_epoch(arguments, training, step, last)
        stop.record()
        torch.cuda.synchronize()
        if epoch >= 0:
            host_ms.append((time.perf_counter() - host_begin) * 1e3)
            device_ms.append(start.elapsed_time(stop))
        accuracy = training.accuracy(*test)
    steps = -(-training.count // arguments.batch)
    print(json.dumps({
        "framework": "pytorch", "version": torch.__version__, "cudnn": torch.backends.cudnn.version(),
        "device": torch.cuda.get_device_name(), "variant": variant, "precision": precision, "batch": arguments.batch,
        "channels_last": arguments.channels_last, "epochs": arguments.epochs, "warmup_epochs": arguments.warmup, "steps": steps,
        "epoch_device_ms_median": round(statistics.median(device_ms), 3), "epoch_device_ms_min": round(min(device_ms), 3),
        "epoch_host_ms_median": round(statistics.median(host_ms), 3), "epoch_device_ms": [round(ms, 3) for ms in device_ms],
        "train_loss": round(training.losses.item() / steps, 6), "test_accuracy_ratio": accuracy,
        "loss_scale": training.scaler.get_scale() if training.half else None, "dynamic_scale": training.half,
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(), "prepare_ms": round(prepare_s * 1e3, 1)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precisions", default="fp32,fp16")
    parser.add_argument("--variants", default="eager,graph,compile")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--accuracy-of-seeds", default="")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--mnist", default=os.environ.get("ROOFLINED_MNIST_DIR", "."))
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit(77)
    for precision in arguments.precisions.split(","):
        for variant in arguments.variants.split(","):
            if variant == "compile":
                torch._dynamo.reset()
            (run_accuracy if arguments.accuracy_of_seeds else run_timing)(arguments, precision, variant)


if __name__ == "__main__":
    main()
