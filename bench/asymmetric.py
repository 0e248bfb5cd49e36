# SPDX-License-Identifier: MIT
"""Codes scanned by Hamming distance (BFlat) and by asymmetric distance (AFlat), on data of your own.

    PYTHONPATH=build/python /usr/bin/python3 bench/asymmetric.py --data FOLDER --dataset NAME

Prints a table in Markdown: for each scheme the share of the true 10 nearest neighbours, under its kernel or by L2 distance,
that are among the first 100, mean of the seeds, the time of the scan in ns for each query and code, on one thread, for all
queries in one batch and for one at a time (least of several runs, encoding included), and the time of training. Histograms
(of schemes for chi2) are L1-normalised. The last row for chi2, in the columns of AFlat, is a product quantiser of the
kernel's map, with codes of as many bits.
"""

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
import datasets  # noqa: E402

import faiss  # noqa: E402
from faiss_ext import index_factory, timing  # noqa: E402

SCHEMES = [
    ("chi2", "AHK{bits}(chi2,proj=dense,seed={seed})"),
    ("chi2", "AHK{bits}(chi2,seed={seed})"),
    ("chi2", "AHK{bits}(chi2,center=1,seed={seed})"),
    ("chi2", "AHK{bits}(chi2,rot=pca,seed={seed})"),
    ("chi2", "AHK{bits}(chi2,rot=itq,seed={seed})"),
    ("chi2", "KLSH{bits}(chi2,seed={seed})"),
    ("chi2", "SCR{bits}(seed={seed})"),
    ("jaccard", "CWS{bits}(seed={seed})"),
    ("jaccard", "KLSH{bits}(jaccard,seed={seed})"),
    ("gaussian", "SIK{bits}(gaussian,seed={seed})"),
    ("laplacian", "SIK{bits}(laplacian,seed={seed})"),
    ("gaussian", "BSIK{bits}(seed={seed})"),
    ("l2", "SH{bits}(seed={seed})"),
    ("l2", "RHBE{bits}(center=1,seed={seed})"),
    ("l2", "RHBE{bits}(rot=itq,seed={seed})"),
]
KERNELS = list(dict.fromkeys(kernel for kernel, _ in SCHEMES))
QUANTISER = "HKM1(chi2),PCAR128,KIVF1(M={parts},seed={seed})"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with vectors, see scripts/datasets.py")
    parser.add_argument("--dataset", help="which of the datasets in it")
    parser.add_argument("--kernel", action="append", choices=KERNELS, help="only schemes for it (repeatable)")
    parser.add_argument("--bits", type=int, default=256)
    parser.add_argument("--limit", type=int, help="base vectors (default: all)")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    return parser.parse_args()


def filled(string, base):
    """An index, and the seconds that its training took."""
    index = index_factory(base.shape[1], string)
    seconds, _ = timing.timed(lambda: index.train(base), faiss.omp_get_max_threads())
    index.add(base)
    return index, seconds


def scan_times(indexes, queries):
    """ns for each query and code, in a batch and one at a time, the indexes taking turns."""
    faiss.omp_set_num_threads(1)
    few = queries[:50]

    def single(index):
        for i in range(len(few)):
            index.search(few[i:i + 1], 10)

    batches = [timing.Timer(lambda index=index: index.search(queries, 10), 1) for index in indexes]
    singles = [timing.Timer(lambda index=index: single(index), 1) for index in indexes]
    for timers in (batches, singles):
        timing.take_turns(timers)
    faiss.omp_set_num_threads(os.cpu_count())
    return [(1e9 * batch.least / len(queries) / index.ntotal, 1e9 * alone.least / len(few) / index.ntotal)
            for index, batch, alone in zip(indexes, batches, singles)]


def share_found(index, queries, truth):
    """The share of the true 10 nearest neighbours that are among the first 100."""
    found = index.search(queries, 100)[1]
    return np.mean([np.isin(t, f).mean() for t, f in zip(truth, found)])


def without_seed(string):
    return string.replace(",seed=", "").replace("(seed=)", "")


def print_row(name, shares, times, seconds):
    """shares and times: of BFlat, where there is one, and of AFlat or the quantiser."""
    cells = [f"{share:.3f}" for share in np.mean(shares, axis=0)]
    durations = [f"{batch:.2f} ({single:.2f})" for batch, single in times]
    missing = ["–"] * (2 - len(cells))
    print("| " + " | ".join([f"`{name}`", *missing, *cells, *missing, *durations, f"{seconds:.1f}"]) + " |", flush=True)


def main():
    args = parse_arguments()
    data = datasets.load(args.data, args.dataset, queries=args.queries, limit=args.limit)
    histograms = [x / np.maximum(x.sum(axis=1, keepdims=True), 1e-30) for x in (data.base, data.queries)]
    print(f"{data.name}: {len(data.base):,} base vectors, {len(data.queries):,} queries, d = {data.d}, {args.bits} bits; "
          f"mean of {args.seeds} seeds\n")
    print("| | `BFlat` | `AFlat` | `BFlat`, ns: batch (single) | `AFlat`, ns: batch (single) | training, s |")
    print("|---|---|---|---|---|---|")
    for kernel in args.kernel or KERNELS:
        base, queries = histograms if kernel == "chi2" else (data.base, data.queries)
        truth = nearest(kernel, base, queries)
        for scheme in (scheme for of, scheme in SCHEMES if of == kernel):
            of_scheme(args, scheme, ("BFlat", "AFlat"), base, queries, truth)
        if kernel == "chi2":
            of_scheme(args, QUANTISER, (), base, queries, truth)


def nearest(kernel, base, queries):
    """Ids of the true 10."""
    exact, _ = filled("Flat" if kernel == "l2" else f"KFlat({kernel})", base)
    return exact.search(queries, 10)[1]


def of_scheme(args, scheme, storages, base, queries, truth):
    """A row of the table: of the codes in these storages, or of what the string itself stores."""
    shares = []
    for seed in range(1, args.seeds + 1):
        string = scheme.format(bits=args.bits, parts=args.bits // 4, seed=seed)
        made = [filled(f"{string},{storage}", base) for storage in storages] or [filled(string, base)]
        indexes = [index for index, _ in made]
        shares.append([share_found(index, queries, truth) for index in indexes])
    times = scan_times(indexes, queries)
    print_row(without_seed(scheme.format(bits=args.bits, parts=args.bits // 4, seed="")), shares, times, made[0][1])


if __name__ == "__main__":
    main()
