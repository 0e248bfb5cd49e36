# SPDX-License-Identifier: MIT
"""Tanimoto search in fingerprints of molecules, exactly and by codes.

    PYTHONPATH=build/python /usr/bin/python3 scripts/example_fingerprints.py [FILE]

FILE is a .npy file of packed fingerprints, uint8 of shape (n, bytes), as chemistry toolkits export them. Without one,
100,000 fingerprints of 2,048 bits are made up: series of compounds that share a scaffold and differ in side chains, with 30
to 80 ones each. `BKFlat(jaccard)` searches all of them exactly. `CWS256` makes codes of 32 bytes in place of 256, and the
exact kernel of the unpacked bits, a byte each, ranks the candidates again: codes pay where memory is for them alone.
"""

import argparse
import sys
import time

import faiss
import faiss_ext
import numpy as np
from faiss_ext.vector_files import VectorFileError, read_vectors

QUERIES, NEIGHBOURS = 100, 10


def made_up(n=100_000, bits=2048, series=2000, seed=1):
    """Packed fingerprints in series: each has most of the bits of its scaffold, and some of its own."""
    rng = np.random.default_rng(seed)
    common = rng.dirichlet(np.full(bits, 0.1))  # some bits are set in many molecules
    scaffolds = [rng.choice(bits, rng.integers(20, 60), replace=False, p=common) for _ in range(series)]
    x = np.zeros((n, bits), dtype=bool)
    for row, which in zip(x, rng.integers(0, series, n)):
        scaffold = scaffolds[which]
        row[scaffold[rng.random(len(scaffold)) < 0.9]] = True
        row[rng.choice(bits, rng.integers(5, 25), p=common)] = True
    return np.packbits(x, axis=1)


def exact(x, queries, k):
    index = faiss_ext.index_binary_factory(8 * x.shape[1], "BKFlat(jaccard)")
    index.add(x)
    start = time.perf_counter()
    D, I = index.search(queries, k)
    return faiss_ext.kernel_values(index, D), I, time.perf_counter() - start, x.shape[1] + 8


def by_codes(x, queries, k, k_factor=10, batch=10_000):
    bits = 8 * x.shape[1]
    index = faiss.index_factory(bits, "CWS256,BFlat,Refine(KFlat(jaccard,store=u8))")
    for i in range(0, len(x), batch):
        index.add(np.unpackbits(x[i : i + batch], axis=1).astype("float32"))
    index.k_factor = k_factor
    floats = np.unpackbits(queries, axis=1).astype("float32")
    start = time.perf_counter()
    D, I = index.search(floats, k)
    return faiss_ext.kernel_values(index, D), I, time.perf_counter() - start, 32 + bits + 4


def read(path):
    """Packed fingerprints of a file, or a ValueError."""
    x = read_vectors(path)
    if x.dtype != np.uint8:
        raise VectorFileError(f"{path}: expected packed bits, uint8, got {x.dtype}")
    if len(x) < QUERIES + NEIGHBOURS:
        raise VectorFileError(
            f"{path}: {len(x)} fingerprints, expected at least {QUERIES + NEIGHBOURS}, {QUERIES} of them as queries"
        )
    return x


def main(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", metavar="FILE", nargs="?", help=".npy file of packed bits (default: made up)")
    arguments = parser.parse_args(words)
    try:
        x = read(arguments.file) if arguments.file else made_up()
    except VectorFileError as error:
        parser.error(str(error))
    queries, x, k = x[:QUERIES], x[QUERIES:], NEIGHBOURS
    values, ids, seconds, size = exact(x, queries, k)
    print(f"{len(x):,} fingerprints of {8 * x.shape[1]:,} bits, {len(queries)} queries, the {k} most alike each\n")
    print(f"exact:    {len(queries) / seconds:9,.0f} queries/s, {size} bytes a fingerprint")
    _, found, seconds, size = by_codes(x, queries, k)
    recall = np.mean([len(set(a) & set(b)) / k for a, b in zip(ids, found)])
    print(f"by codes: {len(queries) / seconds:9,.0f} queries/s, {size:,} bytes a fingerprint, 32 of them for the code; {recall:.3f} of the exact ones found")
    print(f"\nthe first query, by Tanimoto similarity: {', '.join(f'{i}: {v:.3f}' for i, v in zip(ids[0], values[0]))}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
