# SPDX-License-Identifier: MIT
"""Find neighbours of the rows of a pandas DataFrame, as another DataFrame, in five lines.

    PYTHONPATH=build/python /usr/bin/python3 scripts/example_pandas.py

Each row is a module of Python's own library. The columns count its kinds of syntax (`If`, `For`, `Lambda`, ...), so the
neighbours of a module are modules written in a similar way. The example needs pandas (Debian's python3-pandas).
"""

import ast
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
from faiss_ext.sklearn import KernelNeighbors

SHOWN = ["bz2", "colorsys", "heapq", "posixpath", "token"]


def neighbours(counts, k=3, string="KFlat(chi2)"):
    """The k other rows most like each row, as histograms: a table of row, neighbour and distance, the nearest first."""
    shares = counts.div(counts.sum(axis=1), axis=0)
    distances, places = KernelNeighbors(string, n_neighbors=k).fit(shares).kneighbors()  # of each row but itself
    rows, found = counts.index.repeat(k), counts.index[places.ravel()]
    return pd.DataFrame({"row": rows, "neighbour": found, "distance": distances.ravel()})


def python_modules(folder=Path(ast.__file__).parent, least_nodes=300):
    """How often each kind of syntax node occurs in the modules of a folder that are not short."""
    trees = {path.stem: ast.parse(path.read_bytes()) for path in sorted(folder.glob("*.py"))}
    counts = {name: Counter(type(node).__name__ for node in ast.walk(tree)) for name, tree in trees.items()}
    table = pd.DataFrame.from_dict(counts, orient="index").fillna(0).astype(int)
    return table[table.sum(axis=1) >= least_nodes]


def main():
    counts = python_modules()
    print(f"{len(counts)} modules, {counts.shape[1]} kinds of nodes. The first columns:\n")
    print(counts.iloc[:5, :8], "\n")
    table = neighbours(counts)
    print(table[table["row"].isin(SHOWN)].to_string(index=False, float_format="{:.3f}".format))


if __name__ == "__main__":
    sys.exit(main())
