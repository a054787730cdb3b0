#!/usr/bin/env python3
"""dataset.py FOLDER: writes a small data set in MNIST's file format, because the emulator is slow: images of two
blurred spots and noise, the same in every run."""
import random
import struct
import sys
from pathlib import Path

SIDE, COUNTS = 28, {"train": 128, "t10k": 8}


def image(generator):
    centre = [generator.uniform(6, 22) for _ in range(4)]
    return bytes(
        min(255, int(255 * sum(2.7 ** (-((x - centre[i]) ** 2 + (y - centre[i + 1]) ** 2) / 12) for i in (0, 2))
                     + generator.randrange(20)))
        for y in range(SIDE) for x in range(SIDE))


folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
generator = random.Random(1)
for name, count in COUNTS.items():
    images = b"".join(image(generator) for _ in range(count))
    labels = bytes(generator.randrange(10) for _ in range(count))
    (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, count, SIDE, SIDE) + images)
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + labels)
