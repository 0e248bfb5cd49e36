# SPDX-License-Identifier: MIT
"""Codes from additive kernels: recall by bits, order of the map, and centring, on data of your own.

    PYTHONPATH=build/python /usr/bin/python3 bench/papers/ahk_recall.py --data FOLDER --dataset NAME

Prints two tables in Markdown for each kernel, means over seeds. The first: the share of the true 10 nearest neighbours
under the kernel that are among the first 100 by Hamming distance, by bits, for AHK in the paper's form, of other orders,
with and without centring, and for hyperplanes (RHBE), sign Cauchy projections (SCR) and KLSH. The second, drift: the same
at one number of bits when only the vectors of one k-means cluster are there for training, and the queries come from the
others.
Vectors are L1-normalised. `--edges` replaces images by histograms of their edges' directions.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import datasets  # noqa: E402

import faiss  # noqa: E402
from faiss_ext import index_binary_factory, index_factory, kernel_hash_factory  # noqa: E402

PAPER_ORDERS = {"chi2": 3, "intersection": 10}

METHODS = [
    ("AHK, order {order}, dense (as in the paper)", "AHK{bits}({kernel},order={order},proj=dense,seed={seed})"),
    ("AHK, order 1, dense", "AHK{bits}({kernel},order=1,proj=dense,seed={seed})"),
    ("AHK, order 1", "AHK{bits}({kernel},order=1,seed={seed})"),
    ("AHK, order 2", "AHK{bits}({kernel},order=2,seed={seed})"),
    ("AHK, order 3", "AHK{bits}({kernel},order=3,seed={seed})"),
    ("AHK, order 10", "AHK{bits}({kernel},order=10,seed={seed})"),
    ("AHK, order 1, centred", "AHK{bits}({kernel},order=1,center=1,seed={seed})"),
    ("AHK, order 3, centred", "AHK{bits}({kernel},order=3,center=1,seed={seed})"),
    ("AHK, order 1, `rot=pca`", "AHK{bits}({kernel},order=1,rot=pca,seed={seed})"),
    ("AHK, order 1, `rot=itq`", "AHK{bits}({kernel},order=1,rot=itq,seed={seed})"),
    ("RHBE", "RHBE{bits}(seed={seed})"),
    ("RHBE, centred", "RHBE{bits}(center=1,seed={seed})"),
    ("SCR", "SCR{bits}(seed={seed})"),
    ("KLSH, p = 300, t = 30", "KLSH{bits}({kernel},p=300,t=30,seed={seed})"),
    ("KLSH, p = 300, uncentred query (2012)", "KLSH{bits}({kernel},p=300,t=30,center=0,seed={seed})"),
]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with vectors, see scripts/datasets.py")
    parser.add_argument("--dataset", help="which of the datasets in it")
    parser.add_argument("--kernels", default="chi2,intersection")
    parser.add_argument("--bits", default="64,128,256,512,1024")
    parser.add_argument("--methods", default="", help="only those whose names contain this")
    parser.add_argument("--drift-bits", type=int, default=256)
    parser.add_argument("--limit", type=int, help="base vectors (default: all)")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--edges", action="store_true", help="edge histograms of square images")
    return parser.parse_args()


def normalise(x):
    return x / np.maximum(x.sum(axis=1, keepdims=True), 1e-30)


def edge_histograms(x):
    """Histograms of gradient directions (8) in 4 x 4 cells, weighted by the gradients' lengths."""
    side = int(round(x.shape[1] ** 0.5))
    out = []
    for block in np.array_split(x, max(1, len(x) // 2000)):
        images = block.reshape(-1, side, side)
        gy, gx = np.gradient(images, axis=(1, 2))
        length = np.hypot(gx, gy)
        direction = ((np.arctan2(gy, gx) / (2 * np.pi)) % 1 * 8).astype(int) % 8
        cell = np.minimum(np.arange(side) * 4 // side, 3)
        place = (cell[:, None] * 4 + cell[None, :])[None] * 8 + direction
        histograms = np.zeros((len(images), 128), "float32")
        for i in range(len(images)):
            histograms[i] = np.bincount(place[i].ravel(), length[i].ravel(), minlength=128)
        out.append(histograms)
    return np.concatenate(out)


def share_found(string, base, queries, truth, train):
    """The share of the true neighbours that are among the first 100 by Hamming distance."""
    hash = kernel_hash_factory(base.shape[1], string)
    hash.train(train)
    index = index_binary_factory(hash.nbits, "BFlat")
    index.add(hash.encode(base))
    found = index.search(hash.encode(queries), 100)[1]
    return np.mean([np.isin(t, f).mean() for t, f in zip(truth, found)])


def exact(kernel, base, queries):
    index = index_factory(base.shape[1], f"KFlat({kernel})")
    index.add(base)
    return index.search(queries, 10)[1]


def chosen(args, kernel):
    """Labels and strings; those of a kernel that the paper does not have get the order of its other smooth kernel."""
    order = PAPER_ORDERS.get(kernel, PAPER_ORDERS["chi2"])
    named = [(label.format(order=order), string.replace("{order}", str(order))) for label, string in METHODS]
    return [(label, string) for label, string in named if args.methods in label]


def bits_table(args, kernel, base, queries, truth):
    all_bits = [int(b) for b in args.bits.split(",")]
    print(f"| {kernel} | " + " | ".join(f"{b} bits" for b in all_bits) + " |")
    print("|---|" + "---|" * len(all_bits))
    for label, string in chosen(args, kernel):
        row = [
            np.mean([
                share_found(string.format(bits=bits, kernel=kernel, seed=seed), base, queries, truth, base)
                for seed in range(1, args.seeds + 1)
            ])
            for bits in all_bits
        ]
        print(f"| {label} | " + " | ".join(f"{v:.3f}" for v in row) + " |", flush=True)
    print()


def drift_table(args, kernel, base, queries, truth):
    kmeans = faiss.Kmeans(base.shape[1], 10, niter=10, seed=1)
    kmeans.train(np.ascontiguousarray(base))
    base_cluster = kmeans.index.search(base, 1)[1][:, 0]
    query_cluster = kmeans.index.search(queries, 1)[1][:, 0]
    print(f"| {kernel}, {args.drift_bits} bits | trained on all | trained on one of ten clusters, queries from the others |")
    print("|---|---|---|")
    for label, string in chosen(args, kernel):
        whole, drifted = [], []
        for seed in range(1, args.seeds + 1):
            text = string.format(bits=args.drift_bits, kernel=kernel, seed=seed)
            cluster = seed - 1
            others = query_cluster != cluster
            for where, train in ((whole, base), (drifted, base[base_cluster == cluster])):
                where.append(share_found(text, base, queries[others], truth[others], train))
        print(f"| {label} | {np.mean(whole):.3f} | {np.mean(drifted):.3f} |", flush=True)
    print()


def main():
    args = parse_arguments()
    data = datasets.load(args.data, args.dataset, queries=args.queries, limit=args.limit)
    base, queries = data.base, data.queries
    if args.edges:
        base, queries = edge_histograms(base), edge_histograms(queries)
    base, queries = normalise(base), normalise(queries)
    print(f"{data.name}{', edge histograms' if args.edges else ''}: {len(base):,} base vectors, {len(queries):,} "
          f"queries, d = {base.shape[1]}; mean of {args.seeds} seeds\n")
    for kernel in args.kernels.split(","):
        truth = exact(kernel, base, queries)
        bits_table(args, kernel, base, queries, truth)
        drift_table(args, kernel, base, queries, truth)


if __name__ == "__main__":
    main()
