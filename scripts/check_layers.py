#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that every folder of faiss_ext/ and src/ includes only itself and the
folders before it in LAYERS, and that public headers include no private ones.
faiss_ext/faiss_ext.h, which includes all public headers, is in no layer.

    python3 scripts/check_layers.py

Prints each offending include as "file → file". The exit status is 1 if there
are any.
"""

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


def main():
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
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
