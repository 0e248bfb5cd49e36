"""Average precision of bilinear projections: Figure 5 of Kim and Choi 2015, on images of your own.

    PYTHONPATH=build/python /usr/bin/python3 bench/papers/bsik_precision.py --data FOLDER --dataset NAME

The papers' protocol: 300 random queries; the mean distance from a query to its 50th nearest neighbour is the radius,
all vectors within it are a query's true neighbours, queries with more than 5,000 of them are left out, and gamma is 1
in units of the radius. Codes of one dense projection (SIK) beside bilinear ones with m = 1, 5 and 10, in the default form and the papers';
mean and standard deviation over repeats with other queries and other random numbers. Prints Markdown.

`--vlad K` first makes VLAD vectors of K centres (see scripts/datasets.py) from local descriptors.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import datasets  # noqa: E402

import faiss  # noqa: E402
from faiss_ext import kernel_hash_factory  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with vectors, see scripts/datasets.py")
    parser.add_argument("--dataset", help="which of the datasets in it")
    parser.add_argument("--shape", default="auto")
    parser.add_argument("--bits", default="400,904,1600,2504")
    parser.add_argument("--limit", type=int, help="base vectors (default: all)")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--vlad", type=int, metavar="K", help="VLAD vectors of K centres")
    parser.add_argument("--group", type=int, default=100, help="descriptors in one VLAD vector")
    parser.add_argument("--no-single", action="store_true", help="leave out the dense projection")
    return parser.parse_args()


def truth_by_radius(base, queries):
    """Which base vectors are true neighbours (queries x base), the radius, and which queries count."""
    index = faiss.IndexFlatL2(base.shape[1])
    index.add(base)
    # squared distances to all, in parts
    k = min(50, len(base))
    nearest = np.sqrt(np.maximum(index.search(queries, k)[0][:, -1], 0))
    radius = nearest.mean()
    lims, _, ids = index.range_search(queries, float(radius**2))
    true = np.zeros((len(queries), len(base)), bool)
    for i in range(len(queries)):
        true[i, ids[lims[i]:lims[i + 1]]] = True
    count = true.sum(axis=1)
    return true, float(radius), (count > 0) & (count <= 5000)


def average_precision(base_codes, query_codes, true):
    nbits = base_codes.shape[1] * 8

    def signs(codes):
        return np.unpackbits(codes, axis=1).astype("float32") * 2 - 1

    q = signs(query_codes)
    hamming = np.concatenate(
        [(nbits - q @ signs(part).T) / 2 for part in np.array_split(base_codes, max(1, len(base_codes) // 10000))], axis=1)
    scores = []
    for d, t in zip(hamming, true):
        order = np.argsort(d, kind="stable")
        hits = t[order]
        ranks = np.flatnonzero(hits) + 1
        scores.append((np.arange(1, len(ranks) + 1) / ranks).mean())
    return np.mean(scores)


def main():
    args = parse_arguments()
    data = datasets.load(args.data, args.dataset, queries=10**9, limit=args.limit)
    base, pool = data.base, data.queries
    if args.vlad:
        centres = datasets.vlad_centres(base, args.vlad, seed=1)
        base, pool = (datasets.vlad(x, centres, args.group) for x in (base, pool))
    d = base.shape[1]
    methods = [] if args.no_single else [("one dense projection (SIK)", "SIK{bits}(gaussian,gamma={gamma},seed={seed},proj=dense)")]
    for label, form in (("bilinear (default form)", "structured,shuffle=1"),
                        ("bilinear, no shuffle", "structured,shuffle=0"),
                        ("bilinear, dense, no shuffle (as in the paper)", "dense,shuffle=0")):
        for m in (1, 5, 10):
            methods.append((f"{label}, m = {m}",
                            f"BSIK{{bits}}({args.shape},m={m},gamma={{gamma}},w={form},seed={{seed}})"))
    all_bits = [int(b) for b in args.bits.split(",")]
    scores = {(label, bits): [] for label, _ in methods for bits in all_bits}
    left = []
    for repeat in range(1, args.repeats + 1):
        rng = np.random.default_rng(repeat)
        queries = pool[rng.permutation(len(pool))[:args.queries]]
        true, radius, counts = truth_by_radius(base, queries)
        left.append(counts.sum())
        for label, string in methods:
            for bits in all_bits:
                h = kernel_hash_factory(d, string.format(bits=bits, gamma=1 / radius**2, seed=repeat))
                scores[label, bits].append(average_precision(h.encode(base), h.encode(queries[counts]), true[counts]))
    print(f"{data.name}{f', VLAD of {args.vlad} centres' if args.vlad else ''}: {len(base):,} base vectors, d = {d}, "
          f"shape {args.shape}; {np.mean(left):.0f} queries; average precision, mean ± standard deviation of "
          f"{args.repeats} repeats\n")
    print("| | " + " | ".join(f"{b:,} bits" for b in all_bits) + " |")
    print("|---|" + "---|" * len(all_bits))
    for label, _ in methods:
        row = [scores[label, bits] for bits in all_bits]
        print(f"| {label} | " + " | ".join(f"{np.mean(v):.3f} ± {np.std(v, ddof=1) if len(v) > 1 else 0:.3f}" for v in row) + " |")


if __name__ == "__main__":
    main()
