# SPDX-License-Identifier: MIT
"""Find all pairs of near-duplicates at a stated error rate: which functions of Python's own library are nearly the same?

    PYTHONPATH=build/python /usr/bin/python3 scripts/example_duplicates.py

A function is represented by the bag of its words. Two functions are compared by the generalised Jaccard kernel: the number of
words that they share, divided by the number of words that they have together. Codes of consistent weighted sampling
(`CWS512`) have independent bits, each of which differs with probability (1 - k) / 2. The number of bits that differ is
therefore binomial. This determines the radius at which a range search of the codes misses a pair of kernel value 0.8 or more
with less than the chosen probability. The pairs found are compared exactly: all printed pairs are right, and pairs are
missing only at that rate.

Codes suit vectors of any kind. For sparse vectors whose near-duplicates share rare columns, as these do,
faiss_ext.near_duplicates finds all pairs, and faster.
"""

import ast
import re
import sys
from math import comb
from pathlib import Path

import faiss
import faiss_ext
import numpy as np
from word_counts import word_counts

DIMENSION = 1024  # of the bags: words are hashed
BITS = 512
LEAST = 0.8  # kernel value of a near-duplicate
MISSED = 1e-3  # probability of missing one


def functions(folder=Path(ast.__file__).parent, least_words=30):
    """The functions below a folder that are not short: (module.name, words)."""
    found = []
    for path in sorted(folder.glob("*.py")):
        source = path.read_text(encoding="utf-8", errors="replace")
        lines = source.splitlines()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                words = re.findall(r"\w+", "\n".join(lines[node.lineno - 1 : node.end_lineno]))
                if len(words) >= least_words:
                    found.append((f"{path.stem}.{node.name}, line {node.lineno}", words))
    return found


def radius_for(bits, kernel_value, missed):
    """The smallest radius (bits that differ < radius) that misses a pair of that kernel value with a probability of at most
    `missed`: a quantile of the binomial distribution. More alike pairs are missed less often."""
    p, tail = (1 - kernel_value) / 2, 1.0
    for differ in range(bits + 1):
        tail -= comb(bits, differ) * p**differ * (1 - p) ** (bits - differ)
        if tail <= missed:
            return differ + 1
    return bits + 1


def near_duplicates(x, least=LEAST, missed=MISSED, bits=BITS, seed=1234):
    """(i, j, k) of all pairs i < j with a kernel value k of at least that; and how many pairs were compared exactly."""
    scheme = f"CWS{bits}(seed={seed})"
    index = faiss_ext.index_binary_factory(x.shape[1], f"{scheme},BFlat")
    index.add(x)
    lims, _, ids = index.range_search(x, radius_for(bits, least, missed))
    first = np.repeat(np.arange(len(x)), np.diff(lims.astype(np.int64)))
    first, second = first[first < ids], ids[first < ids]
    exact = faiss.index_factory(x.shape[1], "KFlat(jaccard)", faiss.METRIC_INNER_PRODUCT)
    exact.add(x)
    found = []
    for i in np.unique(first):
        others = second[first == i]
        values = exact.compute_distance_subset(x[i : i + 1], others[None])[0]
        found += [(int(i), int(j), float(k)) for j, k in zip(others, values) if k >= least]
    return found, len(first)


def main():
    texts = functions()
    x = word_counts([words for _, words in texts], DIMENSION)
    found, compared = near_duplicates(x)
    pairs = len(x) * (len(x) - 1) // 2
    print(f"{len(x):,} functions, {pairs:,} pairs, of which {compared:,} were compared exactly: {len(found):,} are alike")
    print(f"by {LEAST} or more. Each such pair had a chance of at most {MISSED:g} to be missed.\n")
    for i, j, k in sorted(found, key=lambda pair: -pair[2])[:15]:
        print(f"  {k:.3f}  {texts[i][0]} -- {texts[j][0]}")


if __name__ == "__main__":
    sys.exit(main())
