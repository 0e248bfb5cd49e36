# SPDX-License-Identifier: MIT
"""A collection that changes: removals, updates and filtered searches of our indexes beside other libraries.

    PYTHONPATH=build/python /usr/bin/python3 bench/living.py [--data FOLDER --dataset NAME] [--peers PYTHON]

All indexes hold the same vectors under the same ids. Times are of one thread, the least of several passes. Ours search
under chi2, and recall is that of the 10 nearest allowed vectors under chi2. Peers search under L2, which costs less, and
their recall is that under L2.

PYTHON is an interpreter with the newest faiss-cpu, hnswlib and usearch, or some of them, such as that of a virtual
environment. Prints Markdown.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import faiss
import numpy as np

import faiss_ext
from living_peers import BREADTHS, K, NPROBES, PASSES, TARGET, fastest, seconds

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
import datasets  # noqa: E402

OURS = ["KFlat(chi2)", "AHK512(chi2),BFlat,Refine(KFlat(chi2))",
        "AHK512(chi2),BIVF256,Refine(KFlat(chi2))",
        "HKM1(chi2),PCAR96,KIVF256(nprobe=12),Refine(KFlat(chi2))", "HNSW32,KFlat(chi2)"]
THEIRS = ["IDMap,Flat", "IVF256,Flat"]  # of the FAISS that ours are linked with
PARTS = (0.001, 0.01, 0.1, 0.5, 1)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with a dataset (see scripts/datasets.py); else histograms are drawn")
    parser.add_argument("--dataset", help="which, if there are several")
    parser.add_argument("--n", type=int, default=50_000, help="vectors")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter with other libraries")
    return parser.parse_args()


def drawn(n, d, rng):
    """Histograms around common centres."""
    centres = rng.gamma(0.3, size=(n // 50 + 1, d))
    x = rng.poisson(200 * centres[rng.integers(len(centres), size=n)] / d) + rng.gamma(0.05, size=(n, d))
    return (x / x.sum(1, keepdims=True)).astype("float32")


def load(args, rng):
    if not args.data:
        x = drawn(args.n + args.queries, 128, rng)
    else:
        found = datasets.load(args.data, args.dataset, queries=args.queries, limit=args.n)
        x = np.vstack([found.queries, found.base]).astype("float32")
        x /= np.maximum(x.sum(1, keepdims=True), 1e-6)
        return x[len(found.queries):], x[:len(found.queries)]
    order = rng.permutation(len(x))
    return x[order[args.queries:]], x[order[:args.queries]]


def build(string, x, ids):
    index = faiss.index_factory(x.shape[1], string)
    index.train(x[:20_000])
    index.add_with_ids(x, ids)
    return index


def changes(name, index, x, ids, rng):
    """Prints microseconds for one removal of one vector, of one of 1,000, and for one of 1,000 updates."""
    order = rng.permutation(len(ids))
    cells = []
    try:
        index.remove_ids(ids[order[:1]])  # what the first one prepares is not counted
        cells.append(min(seconds(lambda i=i: index.remove_ids(ids[order[i:i + 1]])) for i in range(1, 21)))
        cells.append(seconds(lambda: index.remove_ids(ids[order[100:1100]])) / 1000)
        if hasattr(index, "upsert"):
            cells.append(seconds(lambda: index.update_vectors(ids[order[2000:3000]], x[order[3000:4000]])) / 1000)
    except RuntimeError:
        pass
    print(f"| `{name}` | " + " | ".join([f"{1e6 * t:.1f}" for t in cells] + ["–"] * (3 - len(cells))) + " |")


def filtered(indexes, x, queries, ids, rng):
    exact = faiss_ext.index_factory(x.shape[1], "KFlat(chi2)")
    exact.add(x)
    for part in PARTS:
        allowed = np.sort(rng.choice(len(ids), int(part * len(ids)), replace=False))
        truth = ids[exact.search(queries, K, filter=allowed)[1]]
        sel = faiss.IDSelectorBatch(ids[allowed])
        best = {name: np.inf for name in indexes}
        found = {}
        for _ in range(PASSES):
            for name, index in indexes.items():
                params = faiss.SearchParameters(sel=sel)
                best[name] = min(best[name], seconds(
                    lambda: found.__setitem__(name, index.search(queries, K, params=params)[1])))
        cells = []
        for name in found:
            recall = np.mean([len(set(a) & set(b)) for a, b in zip(found[name], truth)]) / K
            cells.append(f"{len(queries) / best[name]:,.0f} ({recall:.3f})")
        print(f"| {100 * part:g} % | " + " | ".join(cells) + " |")


def effort_of(name):
    """The parameter that says how much a search examines, and its values."""
    if "IVF" in name:
        return "nprobe", NPROBES
    if "HNSW" in name:
        return "efSearch", BREADTHS
    return ("k_factor", [1, 2, 4, 8, 16, 32]) if "Refine" in name else (None, [0])


def at_equal_recall(index, name, queries, subsets):
    parameter, efforts = effort_of(name)

    def search(effort, allowed):
        if parameter:
            faiss_ext.set_index_parameter(index, parameter, effort)
        return index.search(queries, K, filter=allowed)[1]

    return [fastest(lambda effort: search(effort, allowed), efforts, truth) for allowed, truth in subsets]


def neighbours(index, x, queries, ids, subsets):
    """The truth of each subset, for an index that compares all vectors."""
    for allowed in subsets:
        rows = np.arange(len(x)) if allowed is None else np.flatnonzero(np.isin(ids, allowed))
        index.reset()
        index.add(np.ascontiguousarray(x[rows]))
        yield allowed, ids[rows[index.search(queries, K)[1]]]


def row_of(name, replaced, rates):
    cells = ["–" if replaced is None else f"{replaced:,.0f}"]
    for cell in rates:
        rate, recall = cell or (None, None)
        cells.append("–" if recall is None else f"{rate:,.0f}" if rate else f"– ({recall:.3f})")
    print(f"| {name} | " + " | ".join(cells) + " |")


def beside_peers(python, indexes, x, queries, ids, rng):
    """Prints replaced vectors and queries a second, of ours and of the libraries that an interpreter has."""
    subsets = [np.sort(rng.choice(ids, int(part * len(ids)), replace=False)) for part in PARTS[:-1]] + [None]
    print(f"\nVectors replaced a second, 1,000 in one call, and queries a second with recall@{K} of at least {TARGET} by the "
          "part of the vectors that is allowed (otherwise the highest recall)\n")
    print("| index | replaced | " + " | ".join("all" if part == 1 else f"{100 * part:g} %" for part in PARTS) + " |")
    print("|---" * (len(PARTS) + 2) + "|")
    order = rng.permutation(len(x))
    old, of_new = ids[order[:1000]], x[order[1000:2000]]
    ours = list(neighbours(faiss_ext.index_factory(x.shape[1], "KFlat(chi2)"), x, queries, ids, subsets))
    for name, index in indexes.items():
        rates = at_equal_recall(index, name, queries, ours)
        index.update_vectors(old[:1], of_new[:1])  # what the first call prepares is not counted
        row_of(f"`{name}`", 1000 / seconds(lambda: index.update_vectors(old, of_new)), rates)
    if not python:
        print("\nPeers were left out: --peers PYTHON names an interpreter that has them.")
        return
    theirs = list(neighbours(faiss.IndexFlatL2(x.shape[1]), x, queries, ids, subsets))
    data = {"x": x, "ids": ids, "queries": queries, "parts": len(PARTS), "old": old, "of_new": of_new,
            "new": np.arange(1000) + ids.max() + 1}
    for i, (allowed, truth) in enumerate(theirs):
        data[f"truth{i}"] = truth
        if allowed is not None:
            data[f"allowed{i}"] = allowed
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        np.savez(file, **data)
        file.flush()
        script = Path(__file__).with_name("living_peers.py")
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run([python, script, file.name], env=env, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    for name, row in found["rows"].items():
        row_of(name, row["replaced"], row["rates"])
    if found["missing"]:
        print(f"\nNot installed: {', '.join(found['missing'])}.")


def replaced_graph(string, x, queries, rng):
    """Prints the recall of a graph after half of its vectors were replaced, a twentieth at a time, beside that of a new
    graph of the same vectors, and the longest of many changes of one vector."""
    n = len(x) * 3 // 5
    step = n // 20
    ids = np.arange(n)
    changed = faiss_ext.index_factory(x.shape[1], string)
    build_time = seconds(lambda: changed.add(x[:n]))

    def replace(old, new):
        changed.remove_ids(old)
        changed.add_with_ids(x[new], new)

    change_time = 0
    for i in range(10):
        old, new = rng.choice(ids, step, replace=False), np.arange(n + i * step, n + (i + 1) * step)
        change_time += seconds(lambda: replace(old, new))
        ids = np.concatenate([np.setdiff1d(ids, old), new])
    fresh = faiss_ext.index_factory(x.shape[1], string)
    fresh.add(x[ids])
    exact = faiss_ext.index_factory(x.shape[1], "KFlat(chi2)")
    exact.add(x[ids])
    truth = exact.search(queries, K)[1]
    print(f"\n`{string}` of {n:,} vectors, half of which were replaced, a twentieth at a time. One replaced vector took "
          f"{change_time / (10 * step) / (build_time / n):.1f} times as long as one of the first.\n")
    print("| efSearch | recall@10 | of a new graph | time, new graph = 1 |\n|---|---|---|---|")
    found = {}
    for breadth in (10, 16, 32, 64, 128):
        best = {"changed": np.inf, "fresh": np.inf}
        for _ in range(PASSES):
            for name, index in (("changed", changed), ("fresh", fresh)):
                index.hnsw.efSearch = breadth
                best[name] = min(best[name], seconds(
                    lambda: found.__setitem__(name, index.search(queries, K)[1])))
        found["changed"] = np.searchsorted(ids, found["changed"])
        recalls = [np.mean([len(set(a) & set(b)) for a, b in zip(found[name], truth)]) / K for name in best]
        print(f"| {breadth} | {recalls[0]:.4f} | {recalls[1]:.4f} | {best['changed'] / best['fresh']:.2f} |")
    first = n + 10 * step
    times = [seconds(lambda i=i: replace(ids[i:i + 1], np.arange(first + i, first + i + 1))) for i in range(len(x) - first)]
    print(f"\nLongest of {len(times):,} replacements of one vector: {1e3 * max(times):.1f} ms; median {1e3 * np.median(times):.2f} ms.")


def main():
    args = parse_args()
    faiss.omp_set_num_threads(1)
    rng = np.random.default_rng(1)
    x, queries = load(args, rng)
    ids = rng.permutation(10 * len(x))[:len(x)].astype("int64")
    indexes = {name: build(name, x, ids) for name in OURS + THEIRS}
    for name in OURS:
        if "Refine" in name:
            faiss_ext.set_index_parameter(indexes[name], "k_factor", 8)
        if "BIVF" in name:
            faiss_ext.set_index_parameter(indexes[name], "nprobe", 16)
    print(f"{len(x):,} vectors of {x.shape[1]} dimensions\n")
    print("Queries a second (recall@10) by the part of the vectors that is allowed\n")
    print("| allowed | " + " | ".join(f"`{name}`" for name in OURS) + " |\n" + "|---" * (len(OURS) + 1) + "|")
    ours = {name: indexes[name] for name in OURS}
    filtered(ours, x, queries, ids, rng)
    beside_peers(args.peers, ours, x, queries, ids, rng)
    print("\nMicroseconds for each vector\n")
    print("| index | remove one | remove 1,000 | update 1,000 |\n|---|---|---|---|")
    indexes["AHK512(chi2),BPerm(M=10,B=10)"] = build("AHK512(chi2),BPerm(M=10,B=10)", x, ids)
    for name, index in indexes.items():
        changes(name, index, x, ids, rng)
    sets, codes = faiss.index_binary_factory(x.shape[1], "BKFlat(jaccard)"), np.packbits(x > np.median(x, axis=0), axis=1)
    sets.add_with_ids(codes, ids)
    changes("BKFlat(jaccard)", sets, codes, ids, rng)
    replaced_graph("HNSW32,KFlat(chi2)", x, queries, rng)


if __name__ == "__main__":
    main()
