#!/usr/bin/env python3
"""Includes point down only: a file of a layer includes files of its own layer and of the layers that its row names. Modules
do not include one another in a circle; a module is the files of one name (queue.c, queue.h).
queue.* and queue_internal.h may include each other: the latter holds what several files of the module share."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Folder -> layers whose headers its files may include, besides its own. A file belongs to the longest folder that matches.
LAYERS = {
    "daemon/base": [],
    "kernels": ["daemon/base"],
    "daemon/model": ["daemon/base"],
    "daemon/request": ["daemon/base", "daemon/model", "kernels"],
    "daemon/wire": ["daemon/base", "daemon/model"],
    "daemon/analyze": ["daemon/base", "daemon/model", "kernels"],
    "daemon/store": ["daemon/base", "daemon/model"],
    "daemon/queue": ["daemon/base", "daemon/model", "daemon/request", "daemon/store"],
    "daemon/config": ["daemon/base"],
    "daemon/supervisor": ["daemon/base", "daemon/config", "daemon/model", "daemon/queue", "daemon/wire"],
    "daemon/worker": ["daemon/base", "daemon/model", "daemon/wire", "daemon/analyze", "kernels"],
    "api": ["daemon/base", "daemon/config", "daemon/model", "daemon/request", "daemon/store", "daemon/queue", "daemon/supervisor",
            "daemon/analyze"],
    "api/client": ["daemon/base", "daemon/config", "daemon/store", "api"],
    "daemon": ["daemon/base", "daemon/config", "daemon/model", "daemon/store", "daemon/queue", "daemon/supervisor", "api"],
}
# The first module of each circle that is still to be opened.
CIRCLES = {
    "daemon/worker/pass",
}
INCLUDE_ROOTS = ("daemon", "kernels", "")
GENERATED = {"base/commit.h", "embedded.h"}


def layer_of(path):
    name = path.as_posix().rsplit(".", 1)[0]
    return max((layer for layer in LAYERS if name == layer or name.startswith(layer + "/")), key=len)


def family_of(path):
    return path.with_name(path.stem.removesuffix("_internal"))


def included(path):
    """(text of the include, file that it names) of each #include "..." in a file."""
    for text in re.findall(r'^\s*#\s*include\s+"([^"]+)"', (ROOT / path).read_text(encoding="utf-8"), re.M):
        if text in GENERATED:
            continue
        found = [pathlib.Path(root, text) for root in INCLUDE_ROOTS if (ROOT / root / text).is_file()]
        yield text, found[0] if found else None


def reachable(start, graph):
    found, left = set(), [start]
    while left:
        for follower in graph.get(left.pop(), ()):
            if follower not in found:
                found.add(follower)
                left.append(follower)
    return found


def circles(graph):
    """Sets of modules that reach one another, each sorted."""
    reach = {module: reachable(module, graph) for module in graph}
    return sorted({tuple(sorted(other for other in reach[module] if module in reach.get(other, ()))) for module in graph
                   if module in reach[module]})


def main():
    files = [path.relative_to(ROOT) for folder in ("api", "daemon", "kernels") for path in sorted((ROOT / folder).rglob("*"))
             if path.suffix in (".c", ".h", ".cu", ".cuh")]
    graph, errors = {}, []
    for path in files:
        for text, target in included(path):
            if target is None:
                errors.append(f"{path}: \"{text}\" is not a file of the tree")
                continue
            if family_of(target) != family_of(path):
                graph.setdefault(path.with_suffix(""), set()).add(target.with_suffix(""))
            layer, other = layer_of(path), layer_of(target)
            if layer != other and other not in LAYERS[layer]:
                errors.append(f"{path}: {layer} must not include {other} (\"{text}\")")
    errors += ["circle: " + " ".join(map(str, found)) for found in circles(graph) if str(found[0]) not in CIRCLES]
    print("\n".join(errors) or f"{len(files)} files")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
