# SPDX-License-Identifier: MIT
"""Recall of kernelised LSH: Table 1 and Figures 1 to 3 of Jiang, Que and Kulis 2015, on data of your own.

    PYTHONPATH=build/python /usr/bin/python3 bench/papers/klsh_recall.py --data FOLDER --dataset NAME

recall@R is the share of queries whose true nearest neighbour under the kernel is among the first R by Hamming distance.
Vectors are L1-normalised. Every variant is trained on the same sample, with the same landmarks. Prints Markdown.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import datasets  # noqa: E402

import faiss  # noqa: E402
from faiss_ext import index_factory  # noqa: E402

VARIANTS = [
    ("plain, as in the papers", "center=0"),
    ("low rank (64), as in the papers", "rank=64,center=0"),
    ("low rank (64) and scale 5, as in the papers", "rank=64,scale=5,center=0"),
    ("plain, centred query", ""),
    ("low rank (64), centred query", "rank=64"),
    ("low rank (64) and scale 5, centred query", "rank=64,scale=5"),
    ("rank=auto, centred query", "rank=auto"),
    ("rank=auto, scale=auto, centred query", "rank=auto,scale=auto"),
    ("Gaussian draw (KPCA+LSH), rank 64, centred query", "draw=gauss,rank=64"),
    ("Nyström, Gaussian draw, as in the papers", "nystrom=1,draw=gauss,center=0"),
    ("Nyström, Gaussian draw, centred query", "nystrom=1,draw=gauss"),
    ("Nyström, Gaussian draw, rank 64, as in the papers", "nystrom=1,draw=gauss,rank=64,center=0"),
    ("Nyström, Gaussian draw, rank 64, centred query", "nystrom=1,draw=gauss,rank=64"),
    ("Nyström, CLT draw, as in the papers", "nystrom=1,center=0"),
]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with vectors, see scripts/datasets.py")
    parser.add_argument("--dataset", help="which of the datasets in it")
    parser.add_argument("--kernels", default="chi2,intersection")
    parser.add_argument("--bits", type=int, default=256)
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--t", type=int, default=50)
    parser.add_argument("--limit", type=int, help="base vectors (default: all)")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3, help="repeats with other landmarks")
    return parser.parse_args()


def normalise(x):
    return x / np.maximum(x.sum(axis=1, keepdims=True), 1e-30)


def main():
    args = parse_arguments()
    data = datasets.load(args.data, args.dataset, queries=args.queries, limit=args.limit)
    base, queries = normalise(data.base), normalise(data.queries)
    print(f"{data.name}: {len(base):,} base vectors, {len(queries):,} queries, d = {data.d}; {args.bits} bits, "
          f"p = {args.landmarks}, t = {args.t}; mean of {args.seeds} seeds\n")
    for kernel in args.kernels.split(","):
        exact = index_factory(data.d, f"KFlat({kernel})", faiss.METRIC_INNER_PRODUCT)
        exact.add(base)
        truth = exact.search(queries, 1)[1]
        print(f"| {kernel} | recall@1 | recall@10 | recall@100 | chosen |")
        print("|---|---|---|---|---|")
        for label, options in VARIANTS:
            recalls, chosen = [], []
            for seed in range(1, args.seeds + 1):
                t = "" if "draw=gauss" in options else f"t={args.t},"  # clt draws only
                string = (f"KLSH{args.bits}({kernel},p={args.landmarks},{t}seed={seed}"
                          f"{',' if options else ''}{options}),BFlat")
                index = index_factory(data.d, string)
                index.train(base)
                index.add(base)
                found = index.search(queries, 100)[1] == truth
                recalls.append([found[:, :r].any(axis=1).mean() for r in (1, 10, 100)])
                chosen.append((index.hash.map.rank, index.hash.map.scale))
            mean = np.mean(recalls, axis=0)
            note = ", ".join(f"{r}/{s:g}" for r, s in chosen) if "auto" in options else ""
            print(f"| {label} | " + " | ".join(f"{v:.3f}" for v in mean) + f" | {note} |", flush=True)
        print()


if __name__ == "__main__":
    main()
