# SPDX-License-Identifier: MIT
"""Exact search under kernels beside FAISS's own metrics other than L2 and inner product, on one thread.

    PYTHONPATH=build/python /usr/bin/python3 bench/faiss_metrics.py

Prints a table in Markdown: milliseconds of the processor's time for one query, and the median ratio over rounds, in each of
which both are timed one after the other. With --data FOLDER --dataset NAME the vectors are those of a dataset (see
scripts/datasets.py), normalised to sums of 1; without, random histograms.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
import datasets  # noqa: E402

import faiss  # noqa: E402
import faiss_ext  # noqa: E402

# pairs that order histograms alike
PAIRS = (("js", "JensenShannon"), ("laplacian(gamma=1)", "L1"), ("intersection", "BrayCurtis"), ("jaccard", "Jaccard"))
K, ROUNDS = 10, 9


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with a dataset of vectors >= 0")
    parser.add_argument("--dataset", help="which, if there are several")
    parser.add_argument("--n", type=int, default=20000, help="vectors")
    parser.add_argument("--d", type=int, default=128, help="dimensions of random histograms")
    parser.add_argument("--queries", type=int, default=64, help="in a batch")
    return parser.parse_args()


def histograms(args):
    if args.data:
        data = datasets.load(args.data, args.dataset, queries=args.queries)
        base, queries = data.base[:args.n], data.queries
    else:
        x = np.random.default_rng(1).exponential(size=(args.n + args.queries, args.d))
        base, queries = x[:args.n], x[args.n:]
    return [(x / x.sum(axis=1, keepdims=True)).astype("float32") for x in (base, queries)]


def seconds_of(index, queries):
    start = time.process_time()
    index.search(queries, K)
    return time.process_time() - start


def main():
    args = parse_args()
    faiss.omp_set_num_threads(1)
    base, queries = histograms(args)
    d = base.shape[1]
    print(f"{len(base):,} histograms of {d} components, {len(queries)} queries in a batch, k = {K}, FAISS {faiss.__version__}, "
          f"{faiss_ext.versions()['instruction set']}\n")
    print("| KFlat | ms/query | IndexFlat | ms/query | ratio | rounds |\n|---|---|---|---|---|---|")
    for kernel, metric in PAIRS:
        if not hasattr(faiss, f"METRIC_{metric}"):  # an older FAISS
            continue
        ours = faiss.index_factory(d, f"KFlat({kernel})")
        faiss_own = faiss.IndexFlat(d, getattr(faiss, f"METRIC_{metric}"))
        for index in (ours, faiss_own):
            index.add(base)
        agree = (ours.search(queries[:8], 1)[1] == faiss_own.search(queries[:8], 1)[1]).mean()
        assert agree > 0.8, f"{kernel} and METRIC_{metric} find other neighbours"
        times = np.array([[seconds_of(index, queries) for index in (ours, faiss_own)] for _ in range(ROUNDS)])
        ratios = times[:, 1] / times[:, 0]
        a, b = 1000 * np.median(times, axis=0) / len(queries)
        print(f"| `{kernel}` | {a:.2f} | `METRIC_{metric}` | {b:.2f} | {np.median(ratios):.1f} "
              f"| {ratios.min():.1f} to {ratios.max():.1f} |", flush=True)


if __name__ == "__main__":
    main()
