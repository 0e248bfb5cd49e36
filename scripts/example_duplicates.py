# SPDX-License-Identifier: MIT
"""Find all pairs of near-duplicates: which functions of Python's own library are nearly the same?

    PYTHONPATH=build/python /usr/bin/python3 scripts/example_duplicates.py

A function is represented by the bag of its words. Two functions are compared by the generalised Jaccard kernel: the number of
words that they share, divided by the number of words that they have together. Near-duplicates share rare words, so that
faiss_ext.near_duplicates finds all pairs exactly in little time. In vectors of which no component is rare, it would miss a pair
with a probability of at most MISSED.
"""

import ast
import re
import sys
from pathlib import Path

import faiss_ext
import numpy as np
from word_counts import word_counts

DIMENSION = 1024  # of the bags: words are hashed
LEAST = 0.8  # kernel value of a near-duplicate
MISSED = 1e-3  # largest probability of missing one


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


def main():
    texts = functions()
    x = word_counts([words for _, words in texts], DIMENSION)
    pairs, values = faiss_ext.near_duplicates(x, LEAST, "jaccard", missed=MISSED)
    print(f"{len(x):,} functions, {len(x) * (len(x) - 1) // 2:,} pairs: {len(pairs):,} are alike by {LEAST} or more.\n")
    for at in np.argsort(-values, kind="stable")[:15]:
        i, j = pairs[at]
        print(f"  {values[at]:.3f}  {texts[i][0]} -- {texts[j][0]}")


if __name__ == "__main__":
    sys.exit(main())
