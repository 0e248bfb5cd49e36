# SPDX-License-Identifier: MIT
"""Graphs under chi2 beside each other: FAISS's loops over KFlat, ours, ours on bytes, and the newest FAISS on a map.

The peer searches the explicit map of order 1 (three times the dimensions, map and exact re-ranking not counted) in a
process of its own, with the interpreter that --newest-faiss names. All have the same M and efConstruction; for each
recall@10 the fastest efSearch is shown. A second table compares graphs of binary codes. Times are of the processor, one thread, the least of several passes in turn.

Prints Markdown.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

EF = (12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
RECALLS = (0.95, 0.99)
K, PASSES = 10, 5


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with a dataset (see scripts/datasets.py)")
    parser.add_argument("--dataset", help="which, if there are several")
    parser.add_argument("--edges", action="store_true", help="take histograms of gradients of images, 28 x 28 pixels")
    parser.add_argument("--n", type=int, default=50_000, help="vectors")
    parser.add_argument("--m", type=int, default=32, help="links of a vertex")
    parser.add_argument("--newest-faiss", help="a Python with the newest faiss-cpu")
    parser.add_argument("--peer", help=argparse.SUPPRESS)  # folder of the mapped vectors
    return parser.parse_args()


def edge_histograms(x, cells=(2, 3), bins=25):
    """Lengths of gradients by cell and direction."""
    images = x.reshape(-1, 28, 28)
    dy, dx = np.gradient(images, axis=(1, 2))
    angle = (np.arctan2(dy, dx) + np.pi) / (2 * np.pi)
    place = np.add.outer(np.arange(28) * cells[0] // 28 * cells[1], np.arange(28) * cells[1] // 28)
    column = place * bins + np.minimum((angle * bins).astype(int), bins - 1)
    out = np.zeros((len(images), cells[0] * cells[1] * bins), np.float32)
    np.add.at(out, (np.arange(len(images))[:, None], column.reshape(len(images), -1)),
              np.hypot(dx, dy).reshape(len(images), -1))
    return out


def build(index, base):
    start = time.process_time()
    index.add(base)
    return time.process_time() - start


def found_of(truth):
    """The measure of sweep: which part of the rows of `truth` is among the labels."""
    return lambda D, I: np.mean([len(set(a) & set(b)) for a, b in zip(I, truth)]) / K


def sweep(indexes, queries, recall_of, k, set_ef):
    """For each index a list of (recall, microseconds) by efSearch. All are searched in turn."""
    best = np.full((len(indexes), len(EF)), np.inf)
    recall = np.zeros_like(best)
    for _ in range(PASSES):
        for e, ef in enumerate(EF):
            for i, index in enumerate(indexes):
                set_ef(index, ef)
                start = time.process_time()
                found = index.search(queries, k)
                best[i, e] = min(best[i, e], time.process_time() - start)
                recall[i, e] = recall_of(*found)
    return [list(zip(r, b / len(queries) * 1e6)) for r, b in zip(recall.tolist(), best)]


def peer(folder, m):
    """Prints what the newest FAISS does with mapped vectors; the 20 nearest there are taken to rank again."""
    import faiss

    faiss.omp_set_num_threads(1)
    base, queries, truth = (np.load(Path(folder) / f"{name}.npy") for name in ("base", "queries", "truth"))
    index = faiss.IndexHNSWFlat(base.shape[1], m)
    seconds = build(index, base)

    def set_ef(index, ef):
        index.hnsw.efSearch = ef

    points = sweep([index], queries, found_of(truth), 2 * K, set_ef)[0]
    print(json.dumps({"version": faiss.__version__, "build": seconds, "points": points}))


def row(name, seconds, points):
    cells = []
    for wanted in RECALLS:
        times = [t for recall, t in points if recall >= wanted]
        cells.append(f"{min(times):.0f}" if times else "none")
    print(f"| {name} | {seconds:.1f} | {' | '.join(cells)} |", flush=True)


def of_codes(data, m):
    """Graphs of binary codes. The neighbours of a code are those within the tenth least distance."""
    import faiss
    import faiss_ext

    hash = faiss_ext.kernel_hash_factory(data.d, "AHK256(chi2)")
    hash.train(data.base)
    base, queries = hash.encode(data.base), hash.encode(data.queries)
    flat = faiss_ext.index_binary_factory(hash.nbits, "BFlat")
    flat.add(base)
    radius = flat.search(queries, K)[0][:, -1:]
    contenders = {"FAISS's `BHNSW`": faiss.IndexBinaryHNSW(hash.nbits, m),
                  f"`BHNSW{m}`": faiss_ext.index_binary_factory(hash.nbits, f"BHNSW{m}")}

    def set_ef(index, ef):
        if index is not flat:
            index.hnsw.efSearch = ef

    print(f"\nCodes of {hash.nbits} bits, M = {m}, FAISS {faiss.__version__}\n")
    print("| | build, s | " + " | ".join(f"µs at {r}" for r in RECALLS) + " |\n|---|---|---|---|")
    seconds = [build(index, base) for index in contenders.values()] + [0]
    for name, took, points in zip([*contenders, "`BFlat`"], seconds, sweep(
            [*contenders.values(), flat], queries, lambda D, I: np.mean(D <= radius), K, set_ef)):
        row(name, took, points)


def main():
    args = parse_args()
    if args.peer:
        return peer(args.peer, args.m)
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
    import datasets
    import faiss
    import faiss_ext

    faiss.omp_set_num_threads(1)
    data = datasets.load(args.data, args.dataset, limit=args.n)
    if args.edges:
        data = datasets.Dataset(data.name, edge_histograms(data.base), edge_histograms(data.queries))
    data = datasets.l1_normalised(data)
    exact = faiss.index_factory(data.d, "KFlat(chi2)")
    exact.add(data.base)
    truth = exact.search(data.queries, K)[1]

    storage = faiss.index_factory(data.d, "KFlat(chi2)")
    contenders = {"FAISS's loops over `KFlat(chi2)`": faiss.IndexHNSW(storage, args.m)}
    for string in ("KFlat(chi2)", "KFlat(chi2,store=u8)", "KFlat(chi2,store=u8),Refine(KFlat(chi2))"):
        contenders[f"`HNSW{args.m},{string}`"] = faiss.index_factory(data.d, f"HNSW{args.m},{string}")

    def set_ef(index, ef):
        if hasattr(index, "base_index"):
            index.k_factor = 2
            index = index.base_index
        faiss.downcast_index(index).hnsw.efSearch = ef

    print(f"{len(data.base):,} x {data.d}, M = {args.m}\n")
    print("| | build, s | " + " | ".join(f"µs at {r}" for r in RECALLS) + " |\n|---|---|---|---|")
    seconds = [build(index, data.base) for index in contenders.values()]
    for name, took, points in zip(contenders, seconds, sweep(
            list(contenders.values()), data.queries, found_of(truth), K, set_ef)):
        row(name, took, points)
    if args.newest_faiss:
        kernel_map = faiss_ext.map_factory(data.d, "HKM1(chi2)")
        with tempfile.TemporaryDirectory() as folder:
            for name, x in (("base", kernel_map.apply(data.base)), ("queries", kernel_map.apply(data.queries)),
                            ("truth", truth)):
                np.save(Path(folder) / f"{name}.npy", x)
            output = subprocess.run(
                [args.newest_faiss, __file__, "--peer", folder, "--m", str(args.m)],
                check=True, stdout=subprocess.PIPE, text=True).stdout
        found = json.loads(output)
        row(f"FAISS {found['version']}, `HNSW{args.m}` on the map, top {2 * K}", found["build"], found["points"])
    of_codes(data, args.m)


if __name__ == "__main__":
    main()
