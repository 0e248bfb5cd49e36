# SPDX-License-Identifier: MIT
"""Tanimoto search in fingerprints of molecules, exactly and by codes.

    PYTHONPATH=build/python /usr/bin/python3 scripts/example_fingerprints.py [FILE]

FILE is a .npy file of packed fingerprints, uint8 of shape (n, bytes), as chemistry toolkits export them. Without FILE, the
example makes 100,000 fingerprints of 2,048 bits: series of compounds that share a scaffold and differ in side chains. Each
fingerprint has 30 to 80 ones.

`BKFlat(jaccard)` searches all of them exactly and needs 264 bytes of memory for each. `CWS256` keeps codes of 32 bytes in
memory. The exact similarity then ranks the candidates, and reads only their fingerprints, which can stay in a mapped file.
With the made-up fingerprints and one thread, this is about twice as fast as the exact search (7,700 to 11,900 queries/s
against 4,100) and finds 0.99 of the exact neighbours. Use the exact search if it fits into memory and is fast enough.
"""

import argparse
import sys

import faiss
import faiss_ext
import numpy as np
from faiss_ext import timing
from faiss_ext.vector_files import VectorFileError, read_vectors

QUERIES, NEIGHBOURS = 100, 10
ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1)  # in each byte


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


def fastest(function):
    """The result of a function, and the seconds that its fastest call takes."""
    return function(), timing.least(function, faiss.omp_get_max_threads())


def exact(x, queries, k):
    index = faiss_ext.index_binary_factory(8 * x.shape[1], "BKFlat(jaccard)")
    index.add(x)
    (D, I), seconds = fastest(lambda: index.search(queries, k))
    return faiss_ext.kernel_values(index, D), I, seconds, x.shape[1] + 8


def ranked(x, query, ids, k):
    """The k of the ids that are most alike to a query, by exact Tanimoto similarity."""
    ids = np.sort(ids[ids >= 0])
    rows = x[ids]
    shared = ONES[rows & query].sum(axis=1)
    values = shared / np.maximum(ONES[rows | query].sum(axis=1), 1)
    best = np.argsort(-values, kind="stable")[:k]
    return values[best], ids[best]


def by_codes(x, queries, k, k_factor=5, batch=10_000):
    index = faiss.index_factory(8 * x.shape[1], "CWS256,BFlat")
    for i in range(0, len(x), batch):
        index.add(np.unpackbits(x[i : i + batch], axis=1).astype("float32"))
    floats = np.unpackbits(queries, axis=1).astype("float32")

    def search():
        candidates = index.search(floats, k_factor * k)[1]
        found = [ranked(x, query, ids, k) for query, ids in zip(queries, candidates)]
        return [np.array(part) for part in zip(*found)]

    (values, I), seconds = fastest(search)
    return values, I, seconds, 32


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
    print(f"exact:    {len(queries) / seconds:9,.0f} queries/s, {size} bytes a fingerprint in memory")
    _, found, seconds, size = by_codes(x, queries, k)
    recall = np.mean([len(set(a) & set(b)) / k for a, b in zip(ids, found)])
    print(f"by codes: {len(queries) / seconds:9,.0f} queries/s, {size} bytes a fingerprint in memory; {recall:.3f} of the exact ones found")
    print(f"\nthe first query, by Tanimoto similarity: {', '.join(f'{i}: {v:.3f}' for i, v in zip(ids[0], values[0]))}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
