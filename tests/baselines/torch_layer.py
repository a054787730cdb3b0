#!/usr/bin/env python3
"""Times the layer of the workload transformer_layer in PyTorch, with the same arithmetic.

Each line of the standard input is a request, a JSON object such as {"tokens": 2048, "dtype": "fp16"}. Its members are those of
LAYER, which has their defaults. The member "compile" lists the compiled layers to time; each is a text "BACKEND,PRODUCTS": the
backend of attention, and `separate` or `joined`, that is, gate and up as two products or as one.

For each variant, the script prints a JSON object with its times, and an empty object after the last variant. The variants are
"eager", and "compile ..." for each compiled layer: torch.compile(mode="max-autotune"), whose step is a CUDA graph. A request that
equals the previous request times the same compiled layers again, without eager.

Times are medians of samples. A sample is the time between two events, taken as rooflined does with the same pause_ms. cold_us is
the time of one call after reading other memory. warm_us is the time of back-to-back calls that take about 1 ms, divided by their
number. Before each sample, the device waits until the host has queued the sample's calls."""
import json
import statistics
import sys
import time
import types

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

LAYER = {"batch": 1, "tokens": 2048, "cached_tokens": 0, "hidden": 4096, "heads": 32, "ffn": 11008, "dtype": "fp16",
         "samples": 20, "pause_ms": 0, "compile": ["cudnn,separate"]}
WARMUP = 32  # cold samples before the measured ones
# Length of a kernel that keeps the device waiting while the host queues a call: 5 ms. After a pause, the host takes more than
# 0.5 ms to queue a call.
QUEUEING_CYCLES = 10000000
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}


class Layer(nn.Module):
    """joined: gate and up are one product."""

    def __init__(self, args, joined):
        super().__init__()
        self.args, self.joined, self.head_size = args, joined, args.hidden // args.heads
        hidden, ffn, context = args.hidden, args.ffn, args.cached_tokens + args.tokens
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.o = nn.Linear(hidden, 3 * hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        if joined:
            self.gate_up = nn.Linear(hidden, 2 * ffn, bias=False)
        else:
            self.gate, self.up = nn.Linear(hidden, ffn, bias=False), nn.Linear(hidden, ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)
        frequencies = 10000.0 ** (-torch.arange(0, self.head_size, 2, dtype=torch.float64) / self.head_size)
        angles = torch.outer(torch.arange(args.cached_tokens, context, dtype=torch.float64), frequencies)
        self.register_buffer("cosine", angles.cos().float()[:, None, :])
        self.register_buffer("sine", angles.sin().float()[:, None, :])
        if args.cached_tokens:
            for name in ("cached_k", "cached_v"):
                self.register_buffer(name, torch.randn(args.batch, context, args.heads, self.head_size))

    def rope(self, x):
        first, second = x.float().chunk(2, dim=-1)
        rotated = torch.cat((first * self.cosine - second * self.sine, second * self.cosine + first * self.sine), dim=-1)
        return rotated.to(x.dtype)

    def forward(self, x):
        args = self.args
        heads = (args.batch, args.tokens, args.heads, self.head_size)
        q, k, v = (part.view(heads) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        q, k = self.rope(q), self.rope(k)
        if args.cached_tokens:
            self.cached_k[:, args.cached_tokens:] = k
            self.cached_v[:, args.cached_tokens:] = v
            k, v = self.cached_k, self.cached_v
        attention = functional.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
                                                            is_causal=args.tokens > 1)
        hidden = x + self.o(attention.transpose(1, 2).reshape(x.shape))
        normed = self.norm2(hidden)
        gate, up = self.gate_up(normed).chunk(2, dim=-1) if self.joined else (self.gate(normed), self.up(normed))
        return hidden + self.down(functional.silu(gate) * up), k, v


def between_events(call, count):
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        call()
    stop.record()
    return start, stop


def median_us(events, count):
    torch.cuda.synchronize()
    return statistics.median(1e3 * start.elapsed_time(stop) / count for start, stop in events)


def evicting_memory():
    """Returns memory of three times the size of L2."""
    return torch.zeros(3 * torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.int8, device="cuda")


def sample(call, args, count, is_cold):
    """Takes WARMUP cold samples, which do not count, and then args.samples samples of `count` calls. Returns the median time of a
    call in µs."""
    evicting, events = evicting_memory(), []
    for number in range(WARMUP + args.samples):
        torch.cuda.synchronize()
        time.sleep(1e-3 * args.pause_ms)
        torch.cuda._sleep(QUEUEING_CYCLES)
        if number < WARMUP or is_cold:
            evicting.view(torch.int32).sum()
        events.append(between_events(call, count))
    return median_us(events[WARMUP:], count)


def measure(call, args):
    for _ in range(5):
        call()
    once_us = median_us([between_events(call, 3)], 3)
    return {"cold_us": sample(call, args, 1, True), "warm_us": sample(call, args, max(1, int(1000 / once_us)), False)}


def relative_error(layer, x, args):
    """Returns the relative error of the layer's output against the same layer in fp32."""
    exact = Layer(args, layer.joined).cuda().float()
    exact.load_state_dict({name: value.float() for name, value in layer.state_dict().items()})
    difference = layer(x)[0].float() - exact(x.float())[0]
    return (difference.norm() / exact(x.float())[0].norm()).item()


def make_layer(args, joined):
    layer = Layer(args, joined).cuda().to({"fp16": torch.float16, "bf16": torch.bfloat16}[args.dtype])
    layer.cosine, layer.sine = layer.cosine.float(), layer.sine.float()
    return layer


class Requested:
    """The layers of one request. `times` yields a row for each."""

    def __init__(self, args):
        self.args = args
        self.x = torch.empty(args.batch, args.tokens, args.hidden, device="cuda").uniform_(-2, 2)
        self.x = self.x.to({"fp16": torch.float16, "bf16": torch.bfloat16}[args.dtype])
        self.compiled = {}  # compiled layers by their element of args.compile; without those that a backend refused

    def first_times(self):
        eager = make_layer(self.args, False)
        yield {"variant": "eager", **measure(lambda: eager(self.x), self.args),
               "relative_error": relative_error(eager, self.x, self.args)}
        for option in self.args.compile:
            torch.compiler.reset()
            layer = make_layer(self.args, option.endswith("joined"))
            self.compiled[option] = torch.compile(layer, mode="max-autotune", fullgraph=True, dynamic=False)
            yield self.time_compiled(option)

    def time_compiled(self, option):
        backend = BACKENDS[option.partition(",")[0]]
        try:
            with sdpa_kernel([backend, SDPBackend.MATH], set_priority=True):
                return {"variant": f"compile {option}", **measure(lambda: self.compiled[option](self.x), self.args)}
        except Exception as error:  # a backend that refuses the shape
            del self.compiled[option]
            return {"variant": f"compile {option}", "refused": str(error)[:200]}

    def times(self):
        if not self.compiled:
            yield from self.first_times()
        else:
            yield from map(self.time_compiled, list(self.compiled))


def main():
    torch.manual_seed(1)
    torch.backends.fp32_precision = "ieee"
    subject = {"framework": f"pytorch {torch.__version__}", "device": torch.cuda.get_device_name()}
    requested = {}
    with torch.inference_mode():
        for line in sys.stdin:
            args = types.SimpleNamespace(**{**LAYER, **json.loads(line)})
            key = json.dumps(vars(args), sort_keys=True)
            if key not in requested:
                requested = {key: Requested(args)}  # the memory of other layers is free again
            for row in requested[key].times():
                given = {name: getattr(args, name) for name in ("dtype", "batch", "tokens", "cached_tokens")}
                print(json.dumps({**subject, **given, **row}), flush=True)
            print("{}", flush=True)


if __name__ == "__main__":
    main()
