# SPDX-License-Identifier: MIT
"""Filtered searches and replacements of vectors in other libraries: FAISS's IVF and HNSW, hnswlib and usearch, under L2.

    PYTHON bench/living_peers.py DATA.npz     # of living.py; prints JSON

Needs NumPy and those of the libraries that are to be measured, and nothing of this project.
"""

import json
import sys
import time
from importlib import metadata

import numpy as np

K, PASSES, TARGET = 10, 3, 0.95
LISTS, M, EF_CONSTRUCTION = 256, 16, 100
NPROBES, BREADTHS = [2**i for i in range(9)], [2**i for i in range(4, 11)]


class FaissIndex:
    def __init__(self, string, d):
        import faiss

        self.faiss, self.index = faiss, faiss.index_factory(d, string)
        faiss.omp_set_num_threads(1)

    def add(self, x, ids):
        self.index.train(x)
        self.index.add_with_ids(x, ids)

    def search(self, queries, effort, allowed):
        sel = None if allowed is None else self.faiss.IDSelectorBatch(allowed)
        return self.index.search(queries, K, params=self.params(effort, sel))[1]


class IVF(FaissIndex):
    name, package, efforts = "FAISS, IVF256,Flat", "faiss-cpu", NPROBES

    def __init__(self, d):
        super().__init__(f"IVF{LISTS},Flat", d)

    def params(self, effort, sel):
        return self.faiss.SearchParametersIVF(sel=sel, nprobe=effort)

    def replace(self, old, new, x):
        self.index.remove_ids(old)
        self.index.add_with_ids(x, new)


class HNSW(FaissIndex):
    name, package, efforts = "FAISS, HNSW32", "faiss-cpu", BREADTHS
    replace = None  # it removes nothing

    def __init__(self, d):
        super().__init__("IDMap,HNSW32", d)

    def params(self, effort, sel):
        return self.faiss.SearchParametersHNSW(sel=sel, efSearch=effort)


class Hnswlib:
    name, package, efforts = f"hnswlib, M={M}", "hnswlib", BREADTHS

    def __init__(self, d):
        import hnswlib

        self.index = hnswlib.Index("l2", d)
        self.index.set_num_threads(1)

    def add(self, x, ids):
        self.index.init_index(len(x), M=M, ef_construction=EF_CONSTRUCTION, random_seed=1, allow_replace_deleted=True)
        self.index.add_items(x, ids)

    def search(self, queries, effort, allowed):
        self.index.set_ef(effort)
        keep = None if allowed is None else set(allowed.tolist()).__contains__
        return self.index.knn_query(queries, K, num_threads=1, filter=keep)[0].astype(np.int64)

    def replace(self, old, new, x):
        for label in old.tolist():
            self.index.mark_deleted(label)
        self.index.add_items(x, new, replace_deleted=True)


class Usearch:
    name, package, efforts = f"usearch, M={M}", "usearch", BREADTHS
    filters = False  # searches of its Python package take none

    def __init__(self, d):
        from usearch.index import Index

        self.index = Index(ndim=d, metric="l2sq", dtype="f32", connectivity=M, expansion_add=EF_CONSTRUCTION)

    def add(self, x, ids):
        self.index.add(ids, x, threads=1)

    def search(self, queries, effort, allowed):
        self.index.expansion_search = effort
        return np.asarray(self.index.search(queries, K, threads=1).keys).astype(np.int64)

    def replace(self, old, new, x):
        self.index.remove(old, threads=1)
        self.index.add(new, x, threads=1)


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def fastest(search, efforts, truth):
    """Queries a second of the least effort that finds TARGET of the neighbours, and its recall; or None and the highest."""
    best = 0
    for effort in efforts:
        try:
            found = search(effort)
        except RuntimeError:  # hnswlib, if it finds fewer than k
            continue
        recall = np.mean([len(set(a) & set(b)) for a, b in zip(found, truth)]) / K
        if recall >= TARGET:
            return len(truth) / min(seconds(lambda: search(effort)) for _ in range(PASSES)), recall
        best = max(best, recall)
    return None, best


def measured(peer, data):
    x, ids, queries = data["x"], data["ids"], data["queries"]
    index = peer(x.shape[1])
    index.add(x, ids)
    rates = []
    for i in range(int(data["parts"])):
        allowed = data[f"allowed{i}"] if f"allowed{i}" in data else None
        if allowed is None or getattr(peer, "filters", True):
            rates.append(fastest(lambda effort: index.search(queries, effort, allowed), peer.efforts, data[f"truth{i}"]))
        else:
            rates.append(None)
    replaced = None
    if index.replace:
        old, new = data["old"], data["new"]
        of_new = data["of_new"]
        index.replace(old[:1], new[:1], of_new[:1])  # what the first call prepares is not counted
        replaced = (len(old) - 1) / seconds(lambda: index.replace(old[1:], new[1:], of_new[1:]))
    return {"replaced": replaced, "rates": rates}


def main():
    data = np.load(sys.argv[1])
    rows, missing = {}, []
    for peer in (IVF, HNSW, Hnswlib, Usearch):
        try:
            version = metadata.version(peer.package)
        except metadata.PackageNotFoundError:
            missing.append(peer.package)
            continue
        rows[f"{peer.name} ({version})"] = measured(peer, data)
    print(json.dumps({"rows": rows, "missing": sorted(set(missing))}))


if __name__ == "__main__":
    main()
