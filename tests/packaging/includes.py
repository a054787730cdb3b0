#!/usr/bin/env python3
"""Checks the #include lines of api, daemon and kernels. A file may include files of its own layer and of the layers in its row of
LAYERS. Modules must not include one another in a cycle. A module consists of the files with the same name (queue.c, queue.h);
queue_internal.h belongs to the module queue."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Folder: layers whose headers its files may include, besides its own. A file belongs to the longest entry that its path begins
# with.
LAYERS = {
    "daemon/base": [],
    "kernels": ["daemon/base"],
    "daemon/model": ["daemon/base"],
    "daemon/request": ["daemon/base", "daemon/model", "kernels"],
    "daemon/wire": ["daemon/base", "daemon/model"],
    "daemon/analyze": ["daemon/base", "daemon/model", "kernels"],
    "daemon/store": ["daemon/base", "daemon/model"],
    "daemon/queue": ["daemon/base", "daemon/model", "daemon/request", "daemon/store"],
    "daemon/upload": ["daemon/base", "daemon/model", "daemon/store"],
    "daemon/suite": ["daemon/base", "daemon/model", "daemon/request", "daemon/store", "daemon/queue", "daemon/analyze"],
    "daemon/webhook": ["daemon/base", "daemon/store"],
    "daemon/config": ["daemon/base"],
    "daemon/supervisor": ["daemon/base", "daemon/config", "daemon/model", "daemon/queue", "daemon/store", "daemon/upload",
                          "daemon/wire"],
    "daemon/worker": ["daemon/base", "daemon/model", "daemon/wire", "daemon/analyze", "kernels"],
    "daemon/import": ["daemon/base", "daemon/model", "daemon/wire", "daemon/analyze"],
    "api": ["daemon/base", "daemon/config", "daemon/model", "daemon/request", "daemon/store", "daemon/queue", "daemon/supervisor",
            "daemon/analyze", "daemon/suite", "daemon/upload"],
    "api/client": ["daemon/base", "daemon/config", "daemon/store", "api"],
    "api/client/pages": ["daemon/base", "daemon/config", "daemon/model", "daemon/request", "api", "api/client"],
    "daemon": ["daemon/base", "daemon/config", "daemon/model", "daemon/store", "daemon/queue", "daemon/suite",
               "daemon/supervisor", "daemon/upload", "daemon/webhook", "daemon/request", "api"],
}
INCLUDE_ROOTS = ("daemon", "kernels", "")
GENERATED = {"base/commit.h", "embedded.h"}


def layer_of(path):
    name = path.as_posix().rsplit(".", 1)[0]
    return max((layer for layer in LAYERS if name == layer or name.startswith(layer + "/")), key=len)


def module_of(path):
    return path.with_name(path.stem.removesuffix("_internal"))


def included(path):
    """Yields (text, file) for each #include "..." of the file `path`; the included file is None if it does not exist."""
    for text in re.findall(r'^\s*#\s*include\s+"([^"]+)"', (ROOT / path).read_text(encoding="utf-8"), re.M):
        if text in GENERATED:
            continue
        found = [pathlib.Path(root, text) for root in INCLUDE_ROOTS if (ROOT / root / text).is_file()]
        yield text, found[0] if found else None


def reachable(start, graph):
    """Returns the modules that start includes directly or through other modules."""
    found, pending = set(), [start]
    while pending:
        for follower in graph.get(pending.pop(), ()):
            if follower not in found:
                found.add(follower)
                pending.append(follower)
    return found


def cycles(graph):
    """Returns the groups of modules that include one another, directly or through other modules; each group is sorted."""
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
            if module_of(target) != module_of(path):
                graph.setdefault(path.with_suffix(""), set()).add(target.with_suffix(""))
            layer, other = layer_of(path), layer_of(target)
            if layer != other and other not in LAYERS[layer]:
                errors.append(f"{path}: {layer} must not include {other} (\"{text}\")")
    errors += ["include cycle: " + " ".join(map(str, found)) for found in cycles(graph)]
    print("\n".join(errors) or f"{len(files)} files")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
