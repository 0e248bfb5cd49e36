# SPDX-License-Identifier: MIT
"""Hash tables on codes (FAISS's BHash) beside the scan of all of them: recall against time.

Codes of one scheme are searched for each query's nearest code by the SIMD scan and by FAISS's hash tables: one table of b
bits whose buckets within nflip bits are visited, or several tables of other bits of the code. Times are for one thread
and one query at a time or for a batch; recall is the share of the exact nearest vector (by the kernel) among the k codes
found, next to that of the scan, and `dis` the codes compared for a query. Larger sets than the data are made by jitter:
copies of vectors with noise.

With `--gammas` the bandwidth of SIK is varied: the larger the bandwidth, the more neighbours share a bucket, and the less
the distances of their codes say.

Prints Markdown, and CSV with --csv.
"""

import argparse
import csv
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
import datasets  # noqa: E402

import faiss  # noqa: E402
import faiss_ext  # noqa: E402
from faiss_ext import timing  # noqa: E402


MOST_ENTRIES = 40_000_000  # of all tables together: some 100 bytes each


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with a dataset (see scripts/datasets.py)")
    parser.add_argument("--dataset", help="which, if there are several")
    parser.add_argument("--sizes", default="10000,100000,1000000", help="numbers of codes")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--k", type=int, default=100, help="codes to find")
    parser.add_argument("--hash", default="AHK256(chi2,center=1)", help="scheme of the codes")
    parser.add_argument("--kernel", default="chi2", help="kernel of the true neighbours")
    parser.add_argument("--gammas", default="", help="factors for gamma of a SIK string with {gamma}, beside auto")
    parser.add_argument("--csv", help="file for the numbers")
    parser.add_argument("--png", help="file for a plot")
    return parser.parse_args()


def jittered(x, n, seed=1, share=0.1):
    """n vectors >= 0: x as it is as long as it lasts, then copies, each component times a random factor near 1."""
    if n <= len(x):
        return x[:n]
    rng = np.random.default_rng(seed)
    out = np.empty((n, x.shape[1]), np.float32)
    out[: len(x)] = x
    for begin in range(len(x), n, 100_000):
        end = min(n, begin + 100_000)
        noise = np.exp(share * rng.standard_normal((end - begin, x.shape[1]), dtype=np.float32))
        out[begin:end] = x[rng.integers(0, len(x), end - begin)] * noise
    return out


def tables(nbits, n):
    """(string, nflip) of the hash tables worth a try: b around log2 n, so that a bucket holds a few codes."""
    log_n = int(np.log2(n))
    for b in sorted({log_n - 4, log_n, log_n + 4}):
        for nflip in (0, 1, 2, 3):
            yield f"BHash{b}", nflip
    for nhash in (4, 16):
        for b in sorted({log_n - 2, log_n + 2}):
            if nhash * b <= nbits and nhash * n <= MOST_ENTRIES:
                for nflip in (0, 1, 2):
                    yield f"BHash{nhash}x{b}", nflip


def timed_search(index, queries, k):
    """Milliseconds for a query, one at a time, and the labels."""
    def one_by_one():
        return [index.search(q[None], k)[1] for q in queries]

    labels = np.vstack(one_by_one())
    return 1e3 * timing.least(one_by_one, faiss.omp_get_max_threads()) / len(queries), labels


def compared():
    stats = faiss.cvar.indexBinaryHash_stats
    count = stats.ndis
    stats.reset()
    return count


def main():
    args = parse_args()
    data = datasets.l1_normalised(datasets.load(args.data, args.dataset, queries=args.queries))
    rows = []
    for n in map(int, args.sizes.split(",")):
        base = jittered(data.base, n)
        exact = faiss.index_factory(base.shape[1], f"KFlat({args.kernel})")
        exact.train(base[:65536])
        faiss.omp_set_num_threads(os.cpu_count())
        exact.add(base)
        nearest = exact.search(data.queries, 1)[1][:, 0]
        del exact
        coded = []
        for string in schemes(args, base):
            h = faiss_ext.kernel_hash_factory(base.shape[1], string)
            h.train(base[:65536])
            coded.append((string, h, h.encode(base), h.encode(data.queries)))
        del base
        faiss.omp_set_num_threads(1)
        for string, h, codes, queries in coded:
            flat = faiss_ext.index_binary_factory(h.nbits, "BFlat")
            flat.add(codes)
            time_of_scan, labels = timed_search(flat, queries, args.k)
            scan_recall = np.mean((labels == nearest[:, None]).any(1))
            rows.append((string, n, "BFlat", "", time_of_scan, scan_recall, n))
            report(rows[-1])
            built = {}
            for storage, nflip in tables(h.nbits, n):
                if storage not in built:
                    built = {storage: faiss.index_binary_factory(h.nbits, storage)}
                    built[storage].add(codes)
                built[storage].nflip = nflip
                compared()
                ms, labels = timed_search(built[storage], queries, args.k)
                dis = compared() / (3 * len(queries))
                recall = np.mean((labels == nearest[:, None]).any(1))
                rows.append((string, n, storage, nflip, ms, recall, dis))
                report(rows[-1])
    summary(rows)
    if args.png:
        plot(rows, args.png)
    if args.csv:
        with open(args.csv, "w", newline="") as f:
            writer = csv.writer(f)
            writer.writerow(["hash", "n", "storage", "nflip", "ms_per_query", "recall_of_nearest", "codes_compared"])
            writer.writerows(rows)


def summary(rows):
    """The fastest tables that find at least a share of what the scan finds, for each set of codes."""
    print("\n| codes | scan: ms/query, recall | share of its recall | fastest tables | ms/query | recall | scan / tables |")
    print("|---|---|---|---|---|---|---|")
    for key in dict.fromkeys(row[:2] for row in rows):
        here = [row for row in rows if row[:2] == key]
        scan = here[0]
        for share in (0.9, 0.7, 0.5, 0.3):
            good = [row for row in here[1:] if row[5] >= share * scan[5]]
            line = f"| {key[0]}, {key[1]:,} | {scan[4]:.3f}, {scan[5]:.2f} | {share:.0%} | "
            if good:
                best = min(good, key=lambda row: row[4])
                print(line + f"`{best[2]}`, nflip {best[3]} | {best[4]:.3f} | {best[5]:.2f} | {scan[4] / best[4]:.1f} |")
            else:
                print(line + "none | | | |")


def plot(rows, file):
    """Recall against time: the scan as a cross, tables as points."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8, 5))
    for i, key in enumerate(dict.fromkeys(row[:2] for row in rows)):
        here = [row for row in rows if row[:2] == key]
        axis.plot(here[0][4], here[0][5], "x", color=f"C{i}", markersize=10, markeredgewidth=2)
        axis.plot([r[4] for r in here[1:]], [r[5] for r in here[1:]], ".", color=f"C{i}", label=f"{key[0]}, {key[1]:,}")
    axis.set_xscale("log")
    axis.set_xlabel("ms for a query, one thread (x: scan, points: hash tables)")
    axis.set_ylabel("recall of the nearest vector")
    axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(file, dpi=120)


def schemes(args, base):
    if not args.gammas:
        return [args.hash]
    h = faiss_ext.kernel_hash_factory(base.shape[1], args.hash.format(gamma="auto"))
    h.train(base[:65536])
    return [args.hash.format(gamma=h.kernel.gamma * float(f)) for f in args.gammas.split(",")]


def report(row):
    if report.last != row[:2]:
        print(f"\n{row[0]}, {row[1]:,} codes\n\n| storage | nflip | ms/query | recall | codes compared |\n|---|---|---|---|---|")
        report.last = row[:2]
    print(f"| {row[2]} | {row[3]} | {row[4]:.4f} | {row[5]:.3f} | {row[6]:,.0f} |", flush=True)


report.last = None

if __name__ == "__main__":
    main()
