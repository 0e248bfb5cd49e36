#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that layers use only themselves and the layers before them.

In C++, every folder of faiss_ext/ and src/ includes only itself and the folders
before it in LAYERS, and public headers include no private ones.
faiss_ext/faiss_ext.h, which includes all public headers, is in no layer. In the
Python package, every module imports only modules of its own layer and of the
layers before it in PYTHON_LAYERS, and there is no circle of imports. Imports
inside functions count too.

    python3 scripts/check_layers.py

Prints each offending include or import as "file → file", and each circle. The
exit status is 1 if there are any.
"""

import ast
import re
import sys
from pathlib import Path

LAYERS = [
    "core",         # errors, checks, threads, random streams, strings' grammar
    "simd",         # inner loops, compiled for each instruction set
    "kernels",      # blocks of k(x, y)
    "projections",  # random linear maps
    "maps",         # explicit feature maps of kernels
    "hashes",       # vectors to margins to codes
    "indexes",      # exact search, hashes in front of binary indexes
    "io",           # factories, files, copies
]

PYTHON_LAYERS = [
    # use nothing of the package
    "_version _layouts check_interpreter check_layouts timing sparse_arrays "
    "vector_files id_files molecules standard_input",
    # the extension module, and what its wrappers need
    "check_faiss swigfaiss_ext errors arguments documentation progress",
    # what an index consists of
    "index_tree parameters showing strings distances filters sparse_vectors",
    # FAISS's classes and functions, extended
    "class_wrappers description extend_faiss index_protocols",
    # files of indexes, with names of vectors
    "files names name_files",
    # more vectors than fit into memory, or into one machine
    "sources build_folder out_of_core shard_folder shards cluster "
    "shard_building",
    # tools
    "environment advice calibration retraining packed_rows duplicates graphs clusters picks sklearn "
    "name_lists fingerprint_files fingerprint_builds file_builds named_vectors result_files "
    "result_tables command_files command_changes command_search command_sets command_line",
    # the package
    "__init__ __main__",
]
GENERATED = {"_version", "_layouts", "swigfaiss_ext"}  # have no file here

ROOT = Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:<(faiss_ext/[^>]+)>|"([^"]+)")',
                     re.MULTILINE)


def layer(path):
    """The place of a file's layer; None for one in no layer."""
    parts = path.relative_to(ROOT).parts
    return LAYERS.index(parts[1]) if parts[1] in LAYERS else None


def offending_includes(path):
    for public, private in INCLUDE.findall(path.read_text()):
        target = ROOT / (public or f"src/{private}")
        if not target.is_file():
            yield f"{public or private} (there is no such file)"
        elif layer(target) is None or layer(target) > layer(path):
            yield target.relative_to(ROOT)
        elif private and path.is_relative_to(ROOT / "faiss_ext"):
            yield f"{target.relative_to(ROOT)} (private)"


def check_includes():
    """Prints the offending includes; returns their number."""
    problems = 0
    files = sorted(p for base in ("faiss_ext", "src")
                   for p in (ROOT / base).rglob("*")
                   if p.suffix in (".h", ".cpp") and p.name != "faiss_ext.h")
    for path in files:
        name = path.relative_to(ROOT)
        if layer(path) is None:
            print(f"{name} is in none of the layers {', '.join(LAYERS)}")
            problems += 1
            continue
        for target in offending_includes(path):
            print(f"{name} → {target}")
            problems += 1
    print(f"{len(files)} files in {len(LAYERS)} layers, "
          f"{problems} includes against their order.")
    return problems if files else 1


def imports(path, modules):
    """The modules of the package that one of them imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "faiss_ext." * node.level + (node.module or "")
            names = [f"{base.rstrip('.')}.{alias.name}" for alias in node.names]
        else:
            continue
        for package, _, rest in (name.partition(".") for name in names):
            if package == "faiss_ext":
                module = rest.split(".")[0]
                found.add(module if module in modules else "__init__")
    return found


def circles(graph):
    """Yields the modules of each circle that a depth-first search meets."""
    done, at = set(), []

    def visit(module):
        if module in at:
            yield at[at.index(module):]
        elif module not in done:
            at.append(module)
            for target in sorted(graph[module]):
                yield from visit(target)
            done.add(at.pop())

    for module in graph:
        yield from visit(module)


def check_imports():
    """Prints the offending imports and the circles; returns their number."""
    folder = ROOT / "python_bindings" / "faiss_ext"
    layers = {module: number for number, names in enumerate(PYTHON_LAYERS)
              for module in names.split()}
    files = {path.stem: path for path in sorted(folder.glob("*.py"))}
    problems = [f"{module} is in one of PYTHON_LAYERS or in {folder.name}/, "
                "and not in both"
                for module in sorted(files.keys() ^ layers.keys() - GENERATED)]
    graph = {module: imports(path, layers.keys() | files.keys())
             for module, path in files.items()} | {
                 module: set() for module in layers if module not in files}
    problems += [f"{module} → {target}" for module in graph
                 for target in sorted(graph[module])
                 if layers.get(target, 0) > layers.get(module, 0)]
    problems += ["circle: " + " → ".join([*circle, circle[0]])
                 for circle in circles(graph)]
    for problem in problems:
        print(problem)
    print(f"{len(files)} modules in {len(PYTHON_LAYERS)} layers, "
          f"{len(problems)} imports against their order or in circles.")
    return len(problems) if files else 1


def main():
    return 1 if check_includes() + check_imports() else 0


if __name__ == "__main__":
    sys.exit(main())
