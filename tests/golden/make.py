# SPDX-License-Identifier: MIT
"""Writes the golden files: one of every class, small, with what a search in it has to find.

    PYTHONPATH=build/python python3 tests/golden/make.py [NAME...]

They are written once for each version of the format, and read by every later build (tests/python/test_golden_files.py).
Names write those files alone: new ones, beside those that an earlier build wrote.
"""

import json
import sys
import tempfile
from pathlib import Path

import faiss
import faiss_ext
import numpy as np

FOLDER = Path(__file__).resolve().parent
D, N, K = 16, 60, 4
INDEXES = {
    "ahk_asymmetric": "AHK32(js),AFlat", "ahk_flat": "AHK32(chi2,norm=l1),BFlat",
    "bsik_flat": "BSIK32(4x4,gamma=0.01),BFlat", "bsik_dense": "BSIK32(4x4,w=dense,shuffle=1,gamma=0.01),BFlat",
    "klsh_flat": "KLSH32(expchi2,p=20),BFlat", "rhbe_permuted": "RHBE32(rot=pca,seed=3),BPerm(M=3,B=10)",
    "scr_hnsw": "SCR32,BHNSW4", "cws_flat": "CWS32,BFlat", "sh_flat": "SH16,BFlat", "sik_hash": "SIK32(laplacian,proj=dense,gamma=0.01),BHash2x8",
    "sik_ivf": "SIK32(matern,nu=2),BIVF2", "id_table": "IDMap,KFlat(chi2)",
    "kflat": "KFlat(exponential(normalized(poly(degree=2)),scale=2))", "kflat_f16": "KFlat(intersection,store=f16)",
    "kflat_sum": "KFlat(sum(0.5*chi2,product(linear,gaussian(gamma=0.001))))", "sik_bits": "SIK30(gaussian),BFlat",
    "rff_bilinear": "RFF8(gaussian,proj=bilinear),Flat", "kflat_u8": "KFlat(hellinger,store=u8)",
    "kflat_i8": "KFlat(linear,store=i8)", "kflat_sparse": "KFlat(chi2,store=sparse)",
    "ahk_generated": "AHK32(chi2,proj=generated),BFlat", "kivf": "HKM1(chi2),PCAR8,KIVF2,Refine(KFlat(chi2))",
    "kivf_m": "KIVF2(M=4,residual=0)", "kpca": "KPCA4(cosine,p=20),Flat", "rff": "RFF8(gaussian),Flat",
    "refine_flat": "SIK32(gaussian),BFlat,RFlat", "pre": "PCA4,KFlat(linear)", "hnsw": "HNSW4,KFlat(gaussian)",
    "hnsw_changed": "HNSW4,KFlat(gaussian)", "scr_hnsw_changed": "SCR32,BHNSW4"}
BINARY = {
    "binary_sik": "SIK32(gaussian),BFlat", "binary_id_table": "IDMap,SIK32(gaussian),BFlat", "binary_jaccard": "BKFlat(jaccard)",
    "binary_tversky": "BKFlat(tversky(alpha=1,beta=0.5))", "binary_graph": "BHNSW4,BKFlat(dice)",
    "binary_refine": "CWS32,BFlat,Refine(BKFlat(jaccard))"}
HASHES = {"vt_sik": "SIK32(gaussian)", "vt_klsh": "KLSH32(chi2,p=20)"}


def data():
    """Counts of 0 to 99, the same in every version of NumPy."""
    state, values = 1, []
    for _ in range((N + 5) * D):
        state = (1103515245 * state + 12345) % 2**31
        values.append(state // 65536 % 100)
    x = np.array(values, dtype="float32").reshape(N + 5, D)
    return x[:N], x[N:]


def groups():
    shards = faiss.IndexShards(D, False, True)
    replicas = faiss.IndexReplicas(D)
    for add in (shards.add_shard, replicas.addIndex):
        for _ in range(2):
            add(faiss.index_factory(D, "KFlat(chi2)"))
    refine = faiss.IndexRefine(faiss.IndexFlatL2(D), faiss_ext.IndexFlatKernel(D, faiss_ext.Chi2Kernel()))
    part = faiss.index_factory(D, "KFlat(linear)")
    pre = faiss.IndexPreTransform(faiss_ext.map_factory(D, "HKM0(chi2)"), part)
    refine_flat = faiss.IndexRefineFlat(faiss.index_factory(D, "SIK32(gaussian),BFlat"))
    hnsw = faiss.IndexHNSW(faiss.index_factory(D, "KFlat(chi2)"), 4)
    maps = {"idmap": faiss.IndexIDMap(faiss.index_factory(D, "SIK32(gaussian),BFlat")),
            "idmap2": faiss.IndexIDMap2(faiss.index_factory(D, "KFlat(chi2)"))}
    return {**maps, "shards": shards, "replicas": replicas, "refine": refine, "faiss_pre": pre, "faiss_refine_flat": refine_flat,
            "faiss_hnsw": hnsw}


def sparse_landmarks():
    """A map of landmarks that are given as sparse vectors."""
    from scipy.sparse import csr_array
    index = faiss.index_factory(D, "KPCA4(jaccard,p=20),Flat")
    x = data()[0]
    faiss.downcast_VectorTransform(index.chain.at(0)).set_landmarks(csr_array(np.where(x > 49, x, 0)[:20]))
    return {"kpca_sparse": index}


def on_file():
    """An index in the vectors of a file, which is found beside it."""
    folder = Path(tempfile.mkdtemp())
    rows = np.hstack([np.full((N, 1), D, "<i4").view("u1"), data()[0].astype("u1")])
    for path in (folder / "kfile.bvecs", FOLDER / "kfile.bvecs"):
        path.write_bytes(rows.tobytes())
    return {"kfile": faiss_ext.file_index(folder / "kfile.bvecs", "chi2", n=0)}


def binary_groups():
    shards = faiss.IndexBinaryShards(32, False, True)
    replicas = faiss.IndexBinaryReplicas(32)
    for add in (shards.add_shard, replicas.addIndex):
        for _ in range(2):
            add(faiss.index_binary_factory(D, "SIK32(gaussian,gamma=0.0001),BFlat"))
    maps = {"binary_idmap": faiss.IndexBinaryIDMap(faiss.index_binary_factory(D, "SIK32(gaussian),BFlat")),
            "binary_idmap2": faiss.IndexBinaryIDMap2(faiss.index_binary_factory(D, "AHK32(chi2),BIVF2"))}
    return {**maps, "binary_shards": shards, "binary_replicas": replicas}


def sets_of(x):
    """Packed bits."""
    return np.packbits(x > 49, axis=1)


def fill(index, x):
    ids = 10 * np.arange(len(x)) + 3
    taken = taken_by(index, x)
    index.train(taken)
    if isinstance(index, (faiss.IndexIDMap, faiss.IndexBinaryIDMap)):
        index.add_with_ids(taken, ids)
    else:
        index.add(taken)


def change(index):
    """Removes vectors, which leaves vertices in a graph."""
    index.remove_ids(np.arange(0, 15, 3))


def taken_by(index, x):
    """Packed bits for sets; codes if FAISS's binary ID maps, Shards or Replicas hold a hash."""
    if isinstance(index, (faiss_ext.IndexBinaryFlatKernel, faiss_ext.IndexBinaryHNSWKernel, faiss_ext.IndexBinaryRefineKernel)):
        return sets_of(x)
    part = index
    for i in range(index.count() if hasattr(index, "at") else 0):
        if isinstance(index.at(i), faiss.IndexBinary):
            faiss.downcast_IndexBinary(index.at(i)).train(x)
    while type(part).__module__.startswith("faiss."):
        inside = part.at(0) if hasattr(part, "at") else getattr(part, "index", None)
        if not isinstance(inside, faiss.IndexBinary):
            return x
        part = faiss.downcast_IndexBinary(inside)
    if part is index:
        return x
    part.train(x)  # which does nothing again
    return part.hash.encode(x)


def found(index, queries):
    distances, labels = index.search(taken_by(index, queries), K)
    return {"class": type(index).__name__, "ntotal": index.ntotal, "distances": distances.tolist(), "labels": labels.tolist()}


def main(names):
    x, queries = data()
    report = json.loads((FOLDER / "found.json").read_text()) if names else {}

    def write(name, kind, thing, answer):
        if not names or name in names:
            getattr(faiss, f"write_{kind}")(thing, str(FOLDER / f"{name}.index"))
            report[name] = {"kind": kind, **answer(thing, queries)}

    made = {name: faiss.index_factory(D, string) for name, string in INDEXES.items()}
    for name, index in {**made, **groups(), **sparse_landmarks(), **on_file()}.items():
        fill(index, x)
        if name.endswith("_changed"):
            change(index)
        write(name, "index", index, found)
    made = {name: faiss.index_binary_factory(D, string) for name, string in BINARY.items()}
    for name, index in {**made, **binary_groups()}.items():
        fill(index, x)
        write(name, "index_binary", index, found)
    for name, string in HASHES.items():
        hash = faiss_ext.kernel_hash_factory(D, string)
        hash.train(x)
        write(name, "VectorTransform", hash,
              lambda hash, queries: {"class": type(hash).__name__, "codes": hash.encode(queries).tolist()})
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(report.items()))
    (FOLDER / "found.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
