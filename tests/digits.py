"""Writes small valid MNIST files with meaningless images. Tests use them because every new worker needs seconds to draw the
synthetic digits."""


def idx(dimensions, items):
    """Returns the contents of an IDX file: a header with the dimensions, then the items, which are bytes."""
    return bytes([0, 0, 8, len(dimensions)]) + b"".join(size.to_bytes(4, "big") for size in dimensions) + items


def mnist(folder, train=2048, test=64):
    """Writes the four files of a data set with `train` and `test` images to the folder. Returns the folder."""
    folder.mkdir(exist_ok=True)
    for name, count in (("train", train), ("t10k", test)):
        pixels = (bytes(range(251)) * (count * 784 // 251 + 1))[: count * 784]
        (folder / f"{name}-images-idx3-ubyte").write_bytes(idx((count, 28, 28), pixels))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(idx((count,), bytes(i % 10 for i in range(count))))
    return folder
