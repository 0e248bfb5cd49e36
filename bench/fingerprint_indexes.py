# SPDX-License-Identifier: MIT
"""Recall against speed of indexes of molecular fingerprints, one query at a time.

    PYTHONPATH=build/python PYTHON bench/fingerprint_indexes.py [--keep FOLDER] [--png FILE]

The fingerprints are those of bench/fingerprints.py, which needs RDKit unless
they are kept in FOLDER. A vector as near as the tenth nearest counts as found.

All searches run on one thread, in turns. Times are processor time, and the
fastest turn counts. Prints Markdown, with the settings that no other setting of
the same index beats in recall and speed.
"""

import argparse
import functools
import itertools
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import faiss  # noqa: E402
import faiss_ext  # noqa: E402
import fingerprints  # noqa: E402
import numpy as np  # noqa: E402
import pareto  # noqa: E402

EXACT = "BKFlat(jaccard)"
INDEXES = {  # the values of search parameters to try
    EXACT: {},
    f"BHNSW32,{EXACT}": {"efSearch": (10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512)},
    f"CWS512,BIVF1024,Refine({EXACT})": {"nprobe": (4, 8, 16, 32, 64, 128, 256), "k_factor": (4, 8, 16)},
    f"BIVF1024,Refine({EXACT})": {"nprobe": (2, 4, 8, 16, 32, 64, 128), "k_factor": (4, 16)},
    f"CWS256,BFlat,Refine({EXACT})": {"k_factor": (2, 4, 8, 16, 32, 64)},
}
LOOKS = ("black", "*"), ("#009E73", "X"), ("#D55E00", "^"), ("#E69F00", "s"), ("#0072B2", "o")  # colour, marker
K = 10


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=int, default=249_850)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--keep", metavar="FOLDER", help="folder for the fingerprints")
    parser.add_argument("--png", metavar="FILE", help="file for a plot")
    return parser.parse_args()


class Recall:
    """The share of the K nearest that are found."""

    def __init__(self, x, queries):
        self.values = fingerprints.tanimoto(queries, x)
        self.least = -np.partition(-self.values, K - 1, axis=1)[:, K - 1]

    def __call__(self, ids):
        near = np.take_along_axis(self.values, np.maximum(ids, 0), axis=1) >= self.least[:, None] - 1e-6
        return (near & (ids >= 0)).mean()


def built(string, x):
    """An index, and the seconds that it takes to build it."""
    start = time.process_time()
    index = faiss.index_binary_factory(8 * x.shape[1], string)
    index.train(x)
    index.add(x)
    return index, time.process_time() - start


def searched(index, parameters, queries):
    for name, value in parameters.items():
        faiss_ext.set_index_parameter(index, name, value)
    return np.array(fingerprints.one_by_one(lambda q, k: index.search(q, k)[1], queries, K))


def points_of(index, choices, queries, recall, turns):
    """(parameters, recall, queries per second) of each setting."""
    settings = [dict(zip(choices, values)) for values in itertools.product(*choices.values())]
    calls = {i: functools.partial(searched, index, setting, queries) for i, setting in enumerate(settings)}
    times = fingerprints.fastest(calls, turns)
    return [(setting, recall(calls[i]()), len(queries) / times[i]) for i, setting in enumerate(settings)]


def table(fronts):
    lines = ["| index | parameters | recall@10 | queries/s |", "|---|---|---|---|"]
    for string, front in fronts.items():
        for parameters, found, speed in front:
            said = " ".join(f"{name}={value}" for name, value in parameters.items())
            lines.append(f"| `{string}` | {f'`{said}`' if said else ''} | {found:.3f} | {speed:,.0f} |")
    return "\n".join(lines)


def plot(fronts, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure, axes = pyplot.subplots(figsize=(8, 4.2))
    for (string, front), (color, marker) in zip(fronts.items(), LOOKS, strict=True):
        _, recalls, speeds = zip(*front)
        axes.plot(recalls, speeds, marker + "-", color=color, label=string, markersize=12 if marker == "*" else 6)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("recall of the ten nearest")
    axes.set_ylabel("queries a second, one at a time")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8, loc="lower left")
    figure.savefig(path, dpi=110, bbox_inches="tight")


def main():
    args = parse_args()
    kept = fingerprints.kept_fingerprints("morgan", args.n + args.queries, args.keep)
    x, queries = kept[: args.n], kept[args.n :]
    recall, fronts = Recall(x, queries), {}
    faiss.omp_set_num_threads(1)
    for string, choices in INDEXES.items():
        index, seconds = built(string, x)
        print(f"{string}: built in {seconds:.0f} s", file=sys.stderr, flush=True)
        points = points_of(index, choices, queries, recall, args.turns)
        fronts[string] = pareto.front(points, lambda p: p[1], lambda p: p[2])
    print(table(fronts))
    if args.png:
        plot(fronts, args.png)


if __name__ == "__main__":
    main()
