# SPDX-License-Identifier: MIT
"""Exact search under kernels beside FAISS's flat indexes with the same order of neighbours, on one thread.

    PYTHONPATH=build/python /usr/bin/python3 bench/faiss_metrics.py [--newest-faiss PYTHON]

Prints a table in Markdown: milliseconds of processor time for a query, and how many times as long FAISS takes: the median
over rounds, in each of which all are timed one after the other, with the least and the largest. PYTHON is an interpreter
with another FAISS, the newest faiss-cpu say, which runs in a process of its own.
"""

import argparse
import subprocess
import sys
import time

import faiss
import numpy as np

# on histograms of mass 1 the two of each pair order neighbours alike
PAIRS = (("js", "JensenShannon"), ("laplacian(gamma=1)", "L1"), ("intersection", "BrayCurtis"), ("jaccard", "Jaccard"))
N, D, QUERIES, K, ROUNDS = 20000, 128, 64, 10, 9


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--newest-faiss", metavar="PYTHON", help="an interpreter with another FAISS")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def histograms():
    x = np.random.default_rng(1).exponential(size=(N + QUERIES, D))
    x = (x / x.sum(axis=1, keepdims=True)).astype("float32")
    return x[:N], x[N:]


class Timed:
    """An index, with vectors."""

    def __init__(self, index, base):
        self.index = index
        index.add(base)

    def seconds(self, queries):
        start = time.process_time()
        self.index.search(queries, K)
        return time.process_time() - start

    def nearest(self, queries):
        return self.index.search(queries, 1)[1][:, 0]


def of_faiss(metric, base):
    """FAISS's index with a metric; None if it does not have that."""
    metric = getattr(faiss, f"METRIC_{metric}", None)
    return None if metric is None else Timed(faiss.IndexFlat(D, metric), base)


def serve():
    """Answers names of metrics by seconds, for another process."""
    base, queries = histograms()
    indexes = {metric: of_faiss(metric, base) for _, metric in PAIRS}
    print(faiss.__version__, flush=True)
    for line in sys.stdin:
        index = indexes[line.strip()]
        print("nan" if index is None else index.seconds(queries), flush=True)


class Newest:
    """FAISS in another process."""

    def __init__(self, python):
        self.process = subprocess.Popen(
            [python, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.version = self.process.stdout.readline().strip()

    def seconds(self, metric):
        print(metric, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


def main():
    import faiss_ext

    args = parse_args()
    base, queries = histograms()
    newest = args.newest_faiss and Newest(args.newest_faiss)
    versions = [faiss.__version__] + ([newest.version] if newest else [])
    print(f"{N:,} histograms of {D} components, {QUERIES} queries in a batch, k = {K}, "
          f"{faiss_ext.versions()['instruction set']}\n")
    print("| KFlat | ms/query | IndexFlat |" + "".join(f" ms/query, {v} | ratio |" for v in versions))
    print("|---" * (3 + 2 * len(versions)) + "|")
    for kernel, metric in PAIRS:
        ours, theirs = Timed(faiss.index_factory(D, f"KFlat({kernel})"), base), of_faiss(metric, base)
        if theirs is not None and (ours.nearest(queries) == theirs.nearest(queries)).mean() < 0.9:
            raise SystemExit(f"{kernel} and METRIC_{metric} find other neighbours")
        times = np.array([[
            ours.seconds(queries), np.nan if theirs is None else theirs.seconds(queries),
            *([newest.seconds(metric)] if newest else [])] for _ in range(ROUNDS)])
        ratios = times[:, 1:] / times[:, :1]
        milliseconds = 1000 * np.median(times, axis=0) / QUERIES
        cells = "".join(
            " | |" if np.isnan(of_one).any() else
            f" {ms:.2f} | {np.median(of_one):.1f} ({of_one.min():.1f} to {of_one.max():.1f}) |"
            for ms, of_one in zip(milliseconds[1:], ratios.T))
        print(f"| `{kernel}` | {milliseconds[0]:.3f} | `METRIC_{metric}` |{cells}", flush=True)


if __name__ == "__main__":
    faiss.omp_set_num_threads(1)
    serve() if parse_args().serve else main()
