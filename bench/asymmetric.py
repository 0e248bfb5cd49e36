"""Codes scanned by Hamming distance (BFlat) and with the query's margins (AFlat), on data of your own.

    PYTHONPATH=build/python /usr/bin/python3 bench/asymmetric.py --data FOLDER --dataset NAME

Prints a table in Markdown: for each scheme the share of the true 10 nearest neighbours under its kernel that are among the
first 100, mean of the seeds, the time of the scan in ns for each query and code, on one thread, for all queries in one
batch and for one at a time (least of several runs, encoding included), and the time of training. Histograms (of schemes
for chi2) are L1-normalised.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
import datasets  # noqa: E402

import faiss  # noqa: E402
from faiss_ext import index_factory  # noqa: E402

SCHEMES = [
    ("chi2", "AHK{bits}(chi2,proj=dense,seed={seed})"),
    ("chi2", "AHK{bits}(chi2,seed={seed})"),
    ("chi2", "AHK{bits}(chi2,center=1,seed={seed})"),
    ("chi2", "AHK{bits}(chi2,rot=pca,seed={seed})"),
    ("chi2", "AHK{bits}(chi2,rot=itq,seed={seed})"),
    ("chi2", "KLSH{bits}(chi2,seed={seed})"),
    ("chi2", "SCR{bits}(seed={seed})"),
    ("gaussian", "SIK{bits}(gaussian,seed={seed})"),
    ("laplacian", "SIK{bits}(laplacian,seed={seed})"),
    ("gaussian", "BSIK{bits}(seed={seed})"),
]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with vectors, see scripts/datasets.py")
    parser.add_argument("--dataset", help="which of the datasets in it")
    parser.add_argument("--bits", type=int, default=256)
    parser.add_argument("--limit", type=int, help="base vectors (default: all)")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=5)
    return parser.parse_args()


def filled(string, base):
    """An index, and the seconds that its training took."""
    index = index_factory(base.shape[1], string)
    start = time.perf_counter()
    index.train(base)
    seconds = time.perf_counter() - start
    index.add(base)
    return index, seconds


def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def scan_times(indexes, queries, repeat):
    """ns for each query and code, in a batch and one at a time, the indexes taking turns."""
    faiss.omp_set_num_threads(1)
    few = queries[:50]

    def single(index):
        for i in range(len(few)):
            index.search(few[i:i + 1], 10)

    best = np.full((len(indexes), 2), np.inf)
    for _ in range(repeat):
        for times, index in zip(best, indexes):
            pairs = index.ntotal * 1e-9
            times[0] = min(times[0], seconds_of(lambda: index.search(queries, 10)) / len(queries) / pairs)
            times[1] = min(times[1], seconds_of(lambda: single(index)) / len(few) / pairs)
    faiss.omp_set_num_threads(os.cpu_count())
    return best


def main():
    args = parse_arguments()
    data = datasets.load(args.data, args.dataset, queries=args.queries, limit=args.limit)
    histograms = [x / np.maximum(x.sum(axis=1, keepdims=True), 1e-30) for x in (data.base, data.queries)]
    truths = {}
    print(f"{data.name}: {len(data.base):,} base vectors, {len(data.queries):,} queries, d = {data.d}, {args.bits} bits; "
          f"mean of {args.seeds} seeds\n")
    print("| | `BFlat` | `AFlat` | `BFlat`, ns: batch (single) | `AFlat`, ns: batch (single) | training, s |")
    print("|---|---|---|---|---|---|")
    for kernel, scheme in SCHEMES:
        base, queries = histograms if kernel == "chi2" else (data.base, data.queries)
        if kernel not in truths:
            truths[kernel] = filled(f"KFlat({kernel})", base)[0].search(queries, 10)[1]
        shares = []
        for seed in range(1, args.seeds + 1):
            string = scheme.format(bits=args.bits, seed=seed)
            made = [filled(f"{string},{storage}", base) for storage in ("BFlat", "AFlat")]
            indexes = [index for index, _ in made]
            found = [index.search(queries, 100)[1] for index in indexes]
            shares.append([np.mean([np.isin(t, f).mean() for t, f in zip(truths[kernel], ids)]) for ids in found])
        times = scan_times(indexes, queries, args.repeat)
        hamming, asymmetric = np.mean(shares, axis=0)
        name = scheme.format(bits=args.bits, seed="").replace(",seed=", "").replace("(seed=)", "")
        columns = " | ".join(f"{batch:.2f} ({single:.2f})" for batch, single in times)
        print(f"| `{name}` | {hamming:.3f} | {asymmetric:.3f} | {columns} | {made[0][1]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
