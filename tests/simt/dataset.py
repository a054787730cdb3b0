#!/usr/bin/env python3
"""dataset.py FOLDER: a data set as small as the machine is slow, in MNIST's files: blots that are brighter and darker, the same
each time."""
import random
import struct
import sys
from pathlib import Path

SIDE, COUNTS = 28, {"train": 128, "t10k": 8}


def image(chance):
    centre = [chance.uniform(6, 22) for _ in range(4)]
    return bytes(
        min(255, int(255 * sum(2.7 ** (-((x - centre[i]) ** 2 + (y - centre[i + 1]) ** 2) / 12) for i in (0, 2))
                     + chance.randrange(20)))
        for y in range(SIDE) for x in range(SIDE))


folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
chance = random.Random(1)
for name, count in COUNTS.items():
    images = b"".join(image(chance) for _ in range(count))
    labels = bytes(chance.randrange(10) for _ in range(count))
    (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, count, SIDE, SIDE) + images)
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + labels)
