#!/usr/bin/env python3
"""Times the layer of the workload transformer_layer in PyTorch, with the same arithmetic. Prints one JSON object a line.

Variants: eager, and compile: torch.compile(mode="max-autotune"), whose step is a CUDA graph, with each backend of attention and
with gate and up as two products or as one. Times are medians of samples, each between two events, taken as rooflined takes them:
cold_us of one call after reading other memory, warm_us of back-to-back calls that take about 1 ms, divided by their number. The
host queues calls faster than the device executes them."""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

WARMUP, IDLE_S, EVICTION_BYTES = 32, 1, 150 << 20  # cold samples before the measured ones; three times L2
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}


class Layer(nn.Module):
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


def sample(call, samples, count, evicting_memory):
    """Takes samples as the device of rooflined does: WARMUP cold ones first, all queued without waiting for the device, from a
    device that was idle. evicting_memory: memory that is read before each sample; None: no memory is read."""
    torch.cuda.synchronize()
    time.sleep(IDLE_S)
    eviction = torch.zeros(EVICTION_BYTES, dtype=torch.int8, device="cuda")
    for _ in range(WARMUP):
        eviction.view(torch.int32).sum()
        call()
    events = []
    for _ in range(samples):
        if evicting_memory is not None:
            evicting_memory.view(torch.int32).sum()
        events.append(between_events(call, count))
    return median_us(events, count)


def measure(call, samples):
    for _ in range(5):
        call()
    once_us = median_us([between_events(call, 3)], 3)
    other = torch.zeros(EVICTION_BYTES, dtype=torch.int8, device="cuda")
    return {"cold_us": sample(call, samples, 1, other), "warm_us": sample(call, samples, max(1, int(1000 / once_us)), None)}


def relative_error(layer, x, args):
    """The output's error against the same layer in fp32."""
    exact = Layer(args, layer.joined).cuda().float()
    exact.load_state_dict({name: value.float() for name, value in layer.state_dict().items()})
    difference = layer(x)[0].float() - exact(x.float())[0]
    return (difference.norm() / exact(x.float())[0].norm()).item()


def main():
    parser = argparse.ArgumentParser()
    for name, value in (("batch", 1), ("tokens", 2048), ("cached-tokens", 0), ("hidden", 4096), ("heads", 32), ("ffn", 11008),
                        ("samples", 20)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--dtype", choices=("fp16", "bf16"), default="fp16")
    parser.add_argument("--compile", default="cudnn,separate",
                        help="backend of attention,gate and up: separate or joined …")
    args = parser.parse_args()
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[args.dtype]
    subject = {"framework": f"pytorch {torch.__version__}", "device": torch.cuda.get_device_name(), "dtype": args.dtype,
               "batch": args.batch, "tokens": args.tokens, "cached_tokens": args.cached_tokens}
    torch.manual_seed(1)
    x = torch.empty(args.batch, args.tokens, args.hidden, device="cuda").uniform_(-2, 2).to(dtype)
    torch.backends.fp32_precision = "ieee"
    with torch.inference_mode():
        layer = Layer(args, False).cuda().to(dtype)
        layer.cosine, layer.sine = layer.cosine.float(), layer.sine.float()
        row = measure(lambda: layer(x), args.samples)
        print(json.dumps({**subject, "variant": "eager", **row, "relative_error": relative_error(layer, x, args)}), flush=True)
        for option in args.compile.split():
            backend, products = option.split(",")
            layer = Layer(args, products == "joined").cuda().to(dtype)
            layer.cosine, layer.sine = layer.cosine.float(), layer.sine.float()
            torch.compiler.reset()
            compiled = torch.compile(layer, mode="max-autotune", fullgraph=True, dynamic=False)
            try:
                with sdpa_kernel([BACKENDS[backend], SDPBackend.MATH], set_priority=True):
                    row = measure(lambda: compiled(x), args.samples)
            except Exception as error:  # a backend that refuses the shape
                print(json.dumps({**subject, "variant": f"compile {option}", "refused": str(error)[:200]}), flush=True)
                continue
            print(json.dumps({**subject, "variant": f"compile {option}", **row}), flush=True)


if __name__ == "__main__":
    main()
