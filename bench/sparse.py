#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exact search of sparse vectors, beside a plain loop over inverted lists and
beside other libraries.

    PYTHONPATH=build/python /usr/bin/python3 bench/sparse.py [--n 100000]
    PYTHONPATH=build/python /usr/bin/python3 bench/sparse.py --densities 0.1 0.5

The vectors are the words of Python functions or man pages on this machine, or
the 8-mers of random sequences, with their counts, or without them (--sets). The
plain loop is 30 lines of C, compiled by `cc -O3 -march=native`: for each column
of the query it adds the terms of all vectors in the column's list. Peers are
used if they can be imported: scikit-learn, sparse_dot_topn, pynndescent, nmslib.

With --densities, KFlat is compared with KFlat(store=sparse) instead, on random
vectors of which these shares of the components are not 0; with --file, on the
vectors of a file. The file has all formats that faiss_ext.vector_files reads.

Everything runs on one thread, in turns. Times are processor time, and the
fastest turn counts.
"""

import argparse
import ast
import ctypes
import functools
import glob
import gzip
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import faiss
import faiss_ext.vector_files
import numpy as np
import scipy.sparse

FOLDERS = ("/usr/lib/python3*", "/usr/lib/python3/dist-packages",
           f"{sys.prefix}/lib/python3*")
LOOP = r"""
#include <math.h>
#include <stdint.h>
#include <string.h>
// kernel: 0 jaccard, 1 chi2, 2 js, 3 intersection, 4 linear
void search(long n, const int64_t *starts, const int32_t *rows, const float *values,
            const float *masses, long nq, const int64_t *indptr, const int32_t *columns,
            const float *x, int kernel, long k, float *sums, float *best, int64_t *ids) {
    for (long q = 0; q < nq; q++) {
        memset(sums, 0, n * sizeof(float));
        float mass = 0;
        for (int64_t j = indptr[q]; j < indptr[q + 1]; j++) {
            const float a = x[j];
            const int64_t begin = starts[columns[j]], end = starts[columns[j] + 1];
            mass += a;
            switch (kernel) {
            case 0: case 3: for (int64_t p = begin; p < end; p++) sums[rows[p]] += a < values[p] ? a : values[p]; break;
            case 1: for (int64_t p = begin; p < end; p++) sums[rows[p]] += 2 * a * values[p] / (a + values[p]); break;
            case 2: for (int64_t p = begin; p < end; p++) { float b = values[p], s = a + b;
                        sums[rows[p]] += a / 2 * log2f(s / a) + b / 2 * log2f(s / b); } break;
            case 4: for (int64_t p = begin; p < end; p++) sums[rows[p]] += a * values[p]; break;
            }
        }
        float *top = best + q * k; int64_t *id = ids + q * k;
        long m = 0;
        for (long r = 0; r < n; r++) {
            const float s = kernel == 0 ? sums[r] / (mass + masses[r] - sums[r]) : sums[r];
            if (m == k && s <= top[k - 1]) continue;
            long at = m < k ? m++ : k - 1;
            for (; at > 0 && top[at - 1] < s; at--) { top[at] = top[at - 1]; id[at] = id[at - 1]; }
            top[at] = s; id[at] = r;
        }
    }
}
"""
# kernel of the loop, string, whether vectors are divided by their sum or norm
KERNELS = {
    "jaccard": (0, "jaccard", None), "chi2": (1, "chi2", "l1"),
    "js": (2, "js", "l1"), "intersection": (3, "intersection", "l1"),
    "cosine": (4, "cosine", "l2")}
UNSCALED = ("cosine",)  # KFlat divides by the norms itself


def words_of_functions():
    """The words of each Python function on this machine, once for each text."""
    seen = set()
    files = sorted({file for folder in FOLDERS
                    for file in glob.glob(f"{folder}/**/*.py", recursive=True)})
    for file in files:
        try:
            text = Path(file).read_text()
            tree = ast.parse(text)
        except (SyntaxError, ValueError, OSError, RecursionError):
            continue
        lines = text.splitlines()
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                body = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                if body not in seen:
                    seen.add(body)
                    yield re.findall(r"[A-Za-z_]\w*", body)


def words_of_pages():
    """The words of each man page on this machine."""
    for file in sorted(glob.glob("/usr/share/man/man*/*.gz")):
        text = gzip.open(file).read().decode("utf-8", "replace").lower()
        yield re.findall(r"[a-z]{2,}", text)


def mers_of_sequences(length=8):
    """The parts of eight letters of each sequence. Sequences are copies of
    others in which 1 to 20 % of the letters are replaced."""
    rng = np.random.default_rng(0)
    while True:
        letters = rng.integers(0, 4, 1000)
        for share in rng.uniform(0.01, 0.2, 20):
            copy = np.where(rng.random(1000) < share, rng.integers(0, 4, 1000), letters)
            numbers = np.convolve(copy, 4 ** np.arange(length))[length - 1 : 1 - length]
            yield numbers.tolist()


DATA = {"functions": words_of_functions, "pages": words_of_pages,
        "sequences": mers_of_sequences}


def bags(name, n):
    """Up to n bags of words with their counts, in random order, as CSR."""
    vocabulary, rows = {}, []
    for words in DATA[name]():
        counts = {}
        for word in words:
            at = vocabulary.setdefault(word, len(vocabulary))
            counts[at] = counts.get(at, 0) + 1
        if len(counts) >= 5:
            rows.append(counts)
        if len(rows) >= 1.5 * n:
            break
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.fromiter((c for row in rows for c in row), "int32", indptr[-1])
    data = np.fromiter((v for row in rows for v in row.values()), "float32", indptr[-1])
    x = scipy.sparse.csr_matrix((data, indices, indptr), (len(rows), len(vocabulary)))
    x.sort_indices()
    return x[np.random.default_rng(0).permutation(len(rows))[:n]]


def scaled(x, how):
    if how is None:
        return x
    sizes = abs(x).sum(axis=1) if how == "l1" else np.sqrt(x.multiply(x).sum(axis=1))
    sizes = np.asarray(sizes, dtype="float32").ravel()
    x = x.copy()
    x.data /= np.repeat(sizes, np.diff(x.indptr))
    return x


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


class PlainLoop:
    def __init__(self, x, kernel):
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder, "loop.c"), Path(folder, "loop.so")
            source.write_text(LOOP)
            subprocess.run(["cc", "-O3", "-march=native", "-ffast-math", "-shared", "-fPIC",
                            "-o", library, source, "-lm"], check=True)
            self.function = ctypes.CDLL(str(library)).search
        lists = x.tocsc()
        self.starts = lists.indptr.astype("int64")
        self.rows, self.values = lists.indices.astype("int32"), lists.data
        self.masses = np.asarray(x.sum(axis=1), dtype="float32").ravel()
        self.sums = np.empty(x.shape[0], "float32")
        self.kernel = kernel

    def __call__(self, q, k):
        best = np.empty((q.shape[0], k), "float32")
        ids = np.empty((q.shape[0], k), "int64")
        indptr = q.indptr.astype("int64")
        self.function(
            ctypes.c_long(len(self.masses)), *map(pointer, (
                self.starts, self.rows, self.values, self.masses)),
            ctypes.c_long(q.shape[0]), pointer(indptr), pointer(q.indices), pointer(q.data),
            self.kernel, ctypes.c_long(k), *map(pointer, (self.sums, best, ids)))
        return best, ids


def peers(x, k, kernel):
    """Searches of other libraries, as functions of queries that return ids."""
    if kernel == "cosine":
        try:
            from sklearn.neighbors import NearestNeighbors
            exact = NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute",
                                     n_jobs=1).fit(x)
            yield "scikit-learn", lambda q: exact.kneighbors(q)[1]
        except ImportError:
            pass
        try:
            from sparse_dot_topn import sp_matmul_topn
            columns = x.T.tocsr()

            def topn(q):
                found = sp_matmul_topn(q, columns, top_n=k, sort=True)
                ids = np.full((q.shape[0], k), -1)
                for i in range(q.shape[0]):
                    row = found.indices[found.indptr[i] : found.indptr[i + 1]]
                    ids[i, : len(row)] = row
                return ids
            yield "sparse_dot_topn", topn
        except ImportError:
            pass
    if kernel in ("jaccard", "cosine"):
        try:
            import pynndescent
            graph = pynndescent.NNDescent(x, metric=kernel, n_jobs=1, random_state=0)
            graph.prepare()
            yield "pynndescent", lambda q: graph.query(q, k=k)[0]
        except ImportError:
            pass
        yield from nmslib_graph(x, k, kernel)


def nmslib_graph(x, k, kernel):
    """Searches of a graph of nmslib, with some values of efSearch."""
    try:
        import nmslib
    except ImportError:
        return
    if kernel == "jaccard":  # of sets
        space, kind = "jaccard_sparse", nmslib.DataType.OBJECT_AS_STRING
    else:
        space, kind = "cosinesimil_sparse_fast", nmslib.DataType.SPARSE_VECTOR

    def given(x):
        if kernel != "jaccard":
            return x
        return [" ".join(map(str, x.indices[begin:end]))
                for begin, end in zip(x.indptr[:-1], x.indptr[1:], strict=True)]
    graph = nmslib.init(method="hnsw", space=space, data_type=kind)
    graph.addDataPointBatch(given(x))
    graph.createIndex({"M": 16, "efConstruction": 200, "indexThreadQty": 1, "post": 0})

    def search(q, ef):
        graph.setQueryTimeParams({"efSearch": ef})
        found = graph.knnQueryBatch(given(q), k=k, num_threads=1)
        return [ids for ids, _ in found]
    for ef in (50, 100, 200, 400):
        yield f"nmslib ef={ef}", functools.partial(search, ef=ef)


def recall(index, queries, found, nearest):
    """The share of found vectors that are as near as the k nearest."""
    k = nearest.shape[1]
    ids = np.full(nearest.shape, -1)
    for row, some in zip(ids, found, strict=True):
        row[: len(some)] = some[:k]
    values = index.compute_distance_subset(queries, ids)
    return np.mean((ids >= 0) & (values >= nearest[:, -1:] - 1e-5))


def fastest(searches, turns):
    """The least processor time of each search, in turns."""
    times = dict.fromkeys(searches, np.inf)
    for _ in range(turns):
        for name, search in searches.items():
            start = time.process_time()
            search()
            times[name] = min(times[name], time.process_time() - start)
    return times


def random_rows(density, d, n):
    rng = np.random.default_rng(0)
    # some columns are more frequent than others
    share = (np.arange(d) + 10.0) ** -0.8
    share = np.minimum(share / share.mean() * density, 1)
    return (rng.random((n, d), dtype="float32") < share) * rng.integers(1, 20, (n, d)).astype("float32")


def compare_rows(x, args):
    """Compares KFlat and KFlat(store=sparse) for batches and for single queries."""
    x = x / np.maximum(x.sum(axis=1, keepdims=True), 1e-9)
    n = x.shape[0] - args.queries
    rows, singles = {"f32": x, "sparse": scipy.sparse.csr_matrix(x)}, 16
    for kernel in args.kernels:
        searches = {}
        for store, vectors in rows.items():
            index = faiss.index_factory(x.shape[1], f"KFlat({kernel},store={store})")
            index.add(vectors[:n])
            q = vectors[n:]
            index.search(q, args.k)
            searches[store, "batch"] = lambda index=index, q=q: index.search(q, args.k)
            searches[store, "single"] = lambda index=index, q=q: [
                index.search(q[i : i + 1], args.k) for i in range(singles)]
        times = fastest(searches, args.turns)
        line = [f"  {(x > 0).mean():6.1%} {kernel:12}"]
        for how, count in (("batch", args.queries), ("single", singles)):
            dense, sparse = (times[store, how] / count * 1e3 for store in rows)
            line.append(f"{how} {dense:7.3f} {sparse:7.3f} {dense / sparse:5.2f} x")
        print("   ".join(line), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--data", choices=DATA, default="functions")
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    parser.add_argument("--sets", action="store_true", help="without counts")
    parser.add_argument("--densities", type=float, nargs="+")
    parser.add_argument("--file")
    parser.add_argument("-d", type=int, default=784, help="columns with --densities")
    args = parser.parse_args()
    faiss.omp_set_num_threads(1)
    if args.densities or args.file:
        print(f"ms a query, k = {args.k}: KFlat, KFlat(store=sparse), KFlat / KFlat(store=sparse)")
        for density in args.densities or []:
            compare_rows(random_rows(density, args.d, args.n + args.queries), args)
        if args.file:
            compare_rows(faiss_ext.vector_files.read_vectors(args.file), args)
        return
    vectors = bags(args.data, args.n + args.queries)
    if args.sets:
        vectors.data[:] = 1
    n = vectors.shape[0] - args.queries
    print(f"{n:,} vectors of {vectors.shape[1]:,} columns, {vectors.nnz / vectors.shape[0]:.1f} "
          f"components each; ms a query, k = {args.k}")
    for kernel in args.kernels:
        number, string, how = KERNELS[kernel]
        x = scaled(vectors, how)
        x, q = x[:n], x[n:]
        given = vectors if kernel in UNSCALED else scaled(vectors, how)
        queries = given[n:]
        index = faiss.index_factory(
            x.shape[1], f"KFlat({string},store=sparse)", faiss.METRIC_INNER_PRODUCT)
        index.add(given[:n])
        plain = PlainLoop(x, number)
        searches = {"KFlat(store=sparse)": lambda q: index.search(queries, args.k)[1],
                    "plain loop": lambda q: plain(q, args.k)[1],
                    **dict(peers(x, args.k, kernel))}
        exact = index.search(queries, args.k)
        times = fastest({name: functools.partial(search, q)
                         for name, search in searches.items()}, args.turns)
        np.testing.assert_allclose(np.sort(plain(q, args.k)[0]), np.sort(exact[0]),
                                   rtol=1e-3, atol=1e-5)
        ours = times["KFlat(store=sparse)"]
        for name, search in searches.items():
            share = recall(index, queries, search(q), exact[0])
            print(f"  {kernel:12} {name:20} {times[name] / q.shape[0] * 1e3:8.3f}"
                  f"   {times[name] / ours:6.2f} x   recall {share:.3f}", flush=True)


if __name__ == "__main__":
    main()
