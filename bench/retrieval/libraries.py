# SPDX-License-Identifier: MIT
"""One class for each library: it builds an index, keeps it in a file, and searches it.

    library = LIBRARIES[contender["library"]](contender, threads)
    library.build(base); library.save(path)
    library.load(path, base); library.configure(effort, factor); library.search(queries, k)   # labels, -1 for none

Only NumPy is needed to import this; each library is imported by its class. Peers' interpreters import it too.
"""

import os
import pickle

import numpy as np

OPQ_ITERATIONS, OPQ_POINTS = 20, 20_000  # FAISS's are 50 and 65,536
EF_CONSTRUCTION = 100  # of hnswlib, usearch and nmslib; of graphs by factory strings, FAISS's default is 40
LONG_CONSTRUCTION = 200  # of rabitqlib and glass: the default of rabitqlib's graph
LEARN = 100_000  # vectors that train ScaNN, at most


def padded(rows, k):
    """Labels of queries that got fewer than k results, as an array padded by -1."""
    out = np.full((len(rows), k), -1, np.int64)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row[:k]
    return out


class Library:
    def __init__(self, contender, threads):
        self.contender, self.threads = contender, threads

    def configure(self, effort, factor):
        """Sets how much of the index a search visits, and candidates for each result where the index re-ranks."""


class Faiss(Library):
    """Whatever FAISS this interpreter has, by factory strings."""

    def __init__(self, contender, threads):
        super().__init__(contender, threads)
        import faiss

        self.faiss = faiss
        faiss.omp_set_num_threads(threads)

    def build(self, base):
        base = np.ascontiguousarray(base)
        self.index = self.faiss.index_factory(base.shape[1], self.contender["string"])
        if "efConstruction" in self.contender["options"]:
            self.index.hnsw.efConstruction = self.contender["options"]["efConstruction"]
        quantizers = self._quicker_opq()  # must live while training lasts
        self.index.train(base)
        del quantizers
        self.index.add(base)

    def save(self, path):
        self.faiss.write_index(self.index, path)

    def load(self, path, base):
        self.index = self.faiss.read_index(path)

    def configure(self, effort, factor):
        inner = self._refined()
        if hasattr(self.index, "k_factor") and factor:
            self.index.k_factor = factor
        while hasattr(inner, "chain"):
            inner = self.faiss.downcast_index(inner.index)
        if self.contender["parameter"] == "nprobe":
            inner.nprobe = effort
        elif self.contender["parameter"] == "efSearch":
            inner.hnsw.efSearch = effort

    def search(self, queries, k):
        return self.index.search(queries, k)[1]

    def _quicker_opq(self):
        """Has OPQ learn its rotation for codes of 4 bits, as they are used, on fewer vectors: minutes less."""
        chain = getattr(self.index, "chain", None)
        found = []
        for i in range(chain.size() if chain else 0):
            transform = self.faiss.downcast_VectorTransform(chain.at(i))
            if isinstance(transform, self.faiss.OPQMatrix):
                found.append(self.faiss.ProductQuantizer(transform.d_out, transform.M, 4))
                transform.pq, transform.niter, transform.max_train_points = found[-1], OPQ_ITERATIONS, OPQ_POINTS
        return found

    def _refined(self):
        """The index in front of Refine, or the index itself."""
        is_refined = hasattr(self.index, "refine_index")
        return self.faiss.downcast_index(self.index.base_index) if is_refined else self.index


class FaissExt(Faiss):
    def __init__(self, contender, threads):
        import faiss_ext  # (extends FAISS's factory and readers)

        self.set_parameter = faiss_ext.set_index_parameter
        super().__init__(contender, threads)

    def configure(self, effort, factor):
        """Without `chain`, which would have each search compare the matrices behind it with their packed copies."""
        if hasattr(self.index, "k_factor") and factor:
            self.index.k_factor = factor
        if self.contender["parameter"]:
            self.set_parameter(self.index, self.contender["parameter"], effort)


class Hnswlib(Library):
    def build(self, base):
        self._new(base)
        self.index.init_index(len(base), M=self.contender["M"], ef_construction=EF_CONSTRUCTION, random_seed=1)
        self.index.add_items(base, np.arange(len(base)))

    def save(self, path):
        self.index.save_index(path)

    def load(self, path, base):
        self._new(base)
        self.index.load_index(path)

    def configure(self, effort, factor):
        self.index.set_ef(effort)

    def search(self, queries, k):
        return self.index.knn_query(queries, k, num_threads=self.threads)[0].astype(np.int64)

    def _new(self, base):
        import hnswlib

        self.index = hnswlib.Index("l2", base.shape[1])
        self.index.set_num_threads(self.threads)


class Usearch(Library):
    def build(self, base):
        self._new(base)
        self.index.add(np.arange(len(base)), np.ascontiguousarray(base), threads=self.threads)

    def save(self, path):
        self.index.save(path)

    def load(self, path, base):
        self._new(base)
        self.index.load(path)
        self.index.metric = self.metric  # which a file does not hold

    def configure(self, effort, factor):
        self.index.expansion_search = effort

    def search(self, queries, k):
        found = self.index.search(queries[0] if len(queries) == 1 else queries, k, threads=self.threads)
        return np.asarray(found.keys, np.int64).reshape(len(queries), -1)

    def _new(self, base):
        from usearch.index import CompiledMetric, Index, MetricKind, MetricSignature

        self.metric = {"l2": MetricKind.L2sq, "js": MetricKind.Divergence}.get(self.contender["metric"])
        if self.metric is None:
            from numba_metrics import chi2_function

            self.compiled = chi2_function(base.shape[1])  # must outlive the index
            self.metric = CompiledMetric(self.compiled.address, MetricKind.Unknown, MetricSignature.ArrayArray)
        self.index = Index(
            ndim=base.shape[1], metric=self.metric, dtype="f32", connectivity=self.contender["M"],
            expansion_add=EF_CONSTRUCTION)


class Pynndescent(Library):
    def build(self, base):
        self._set_threads()
        import pynndescent

        metric = self.contender["metric"]
        if metric == "chi2":
            from numba_metrics import chi2 as metric
        metric = {"l2": "euclidean", "l1": "manhattan", "js": "jensen_shannon"}.get(metric, metric)
        self.index = pynndescent.NNDescent(np.array(base), metric=metric, random_state=1, n_jobs=self.threads)
        self.index.prepare()

    def save(self, path):
        with open(path, "wb") as file:
            pickle.dump(self.index, file)

    def load(self, path, base):
        self._set_threads()
        with open(path, "rb") as file:
            self.index = pickle.load(file)

    def configure(self, effort, factor):
        self.epsilon = effort

    def search(self, queries, k):
        return self.index.query(queries, k, epsilon=self.epsilon)[0].astype(np.int64)

    def _set_threads(self):
        import numba

        numba.set_num_threads(self.threads)


class Nmslib(Library):
    def build(self, base):
        self._new()
        self.index.addDataPointBatch(np.ascontiguousarray(base))
        self.index.createIndex(
            {"M": self.contender["M"], "efConstruction": EF_CONSTRUCTION, "indexThreadQty": self.threads})

    def save(self, path):
        self.index.saveIndex(path, save_data=True)

    def load(self, path, base):
        self._new()
        self.index.loadIndex(path, load_data=True)

    def configure(self, effort, factor):
        self.index.setQueryTimeParams({"efSearch": effort})

    def search(self, queries, k):
        if len(queries) == 1:
            return padded([self.index.knnQuery(queries[0], k)[0]], k)
        return padded([labels for labels, _ in self.index.knnQueryBatch(queries, k, num_threads=self.threads)], k)

    def _new(self):
        import nmslib

        space = {"l2": "l2", "l1": "l1", "js": "jsdivfast"}[self.contender["metric"]]
        self.index = nmslib.init(method="hnsw", space=space)


class Flann(Library):
    def build(self, base):
        self._new(base)
        self.tree.build()

    def save(self, path):
        self.tree.save(path)
        np.save(f"{path}_vectors", self.tree.base)  # which are not in FLANN's file

    def load(self, path, base):
        self._new(np.load(f"{path}_vectors.npy"))
        self.tree.load(path)

    def configure(self, effort, factor):
        self.checks = effort

    def search(self, queries, k):
        return self.tree.search(queries, k, self.checks)

    def _new(self, base):
        from flann import Tree

        self.tree = Tree(np.array(base), self.threads)


class RabitqIvf(Library):
    """Inverted lists of RaBitQ codes."""

    def build(self, base):
        import rabitqlib

        options, (n, d) = self.contender["options"], base.shape
        self._new(rabitqlib.IvfIndex(d, n, options["lists"], options["bits"]), base, options["lists"])

    def save(self, path):
        self.index.save(path)

    def load(self, path, base):
        import rabitqlib

        self.index = rabitqlib.IvfIndex.load(path)

    def configure(self, effort, factor):
        self.effort = effort

    def search(self, queries, k):
        return self._labels(self.index.search(queries, k, self.effort, num_threads=self.threads))

    def _new(self, index, base, clusters):
        """Fills an index that needs clusters."""
        import rabitqlib

        means = rabitqlib.RaBitQKMeans(base.shape[1], clusters, num_threads=self.threads)
        means.train(np.ascontiguousarray(base))
        self.index = index
        self.index.build(np.ascontiguousarray(base), means.centroids, means.assignments, num_threads=self.threads)

    @staticmethod
    def _labels(found):
        return np.asarray(found[0]).astype(np.int32).astype(np.int64)  # uint32, the largest for none


class RabitqHnsw(RabitqIvf):
    """A graph of RaBitQ codes."""

    def build(self, base):
        import rabitqlib

        options, (n, d) = self.contender["options"], base.shape
        index = rabitqlib.HnswIndex(d, n, self.contender["M"], LONG_CONSTRUCTION, options["bits"])
        self._new(index, base, options["lists"])

    def load(self, path, base):
        import rabitqlib

        self.index = rabitqlib.HnswIndex.load(path)

    def search(self, queries, k):
        return self._labels(self.index.search(queries, k, self.effort, num_threads=self.threads))


class Symqg(RabitqIvf):
    """SymphonyQG: a graph whose nodes hold the codes of their neighbours."""

    def build(self, base):
        import rabitqlib

        self.index = rabitqlib.SymqgIndex(base.shape[1], self.contender["M"])
        self.index.build(np.ascontiguousarray(base), LONG_CONSTRUCTION, num_threads=self.threads)

    def load(self, path, base):
        import rabitqlib

        self.index = rabitqlib.SymqgIndex.load(path)

    def search(self, queries, k):
        search = self.index.search if len(queries) == 1 else self.index.search_batch
        return self._labels(search(queries, k, self.effort, num_threads=self.threads))


class Scann(Library):
    """ScaNN's lists of 4-bit codes; ids of a query with too few results are padded by NaN distances."""

    def build(self, base):
        from scann.scann_ops.py import scann_ops_pybind

        options = self.contender["options"]
        builder = scann_ops_pybind.builder(np.ascontiguousarray(base), 10, "squared_l2")
        builder.set_n_training_threads(self.threads)
        builder.tree(options["lists"], 1, training_sample_size=LEARN)
        builder.score_ah(options["block"], anisotropic_quantization_threshold=options["threshold"])
        self.index = builder.build()

    def save(self, path):
        self.index.serialize(os.path.dirname(path))  # many files

    def load(self, path, base):
        from scann.scann_ops.py import scann_ops_pybind

        self.index = scann_ops_pybind.load_searcher(os.path.dirname(path))
        self.index.set_num_threads(self.threads)

    def configure(self, effort, factor):
        self.effort = effort

    def search(self, queries, k):
        if len(queries) == 1:
            labels, distances = (found[None] for found in self.index.search(queries[0], k, k, self.effort))
        else:
            search = self.index.search_batched if self.threads == 1 else self.index.search_batched_parallel
            labels, distances = search(queries, k, k, self.effort)
        return padded([row[~np.isnan(d)] for row, d in zip(labels, distances)] if np.isnan(distances).any() else labels, k)


class Glass(Library):
    def build(self, base):
        import glass

        glass.set_num_threads(self.threads)
        self.base = np.array(base)
        self.graph = glass.Index("HNSW", "L2", R=self.contender["M"], L=LONG_CONSTRUCTION).build(self.base)

    def save(self, path):
        self.graph.save(path)
        np.save(f"{path}_vectors", self.base)  # which are not in glass's file

    def load(self, path, base):
        import glass

        glass.set_num_threads(self.threads)
        self.index = glass.Searcher(glass.Graph(path), np.load(f"{path}_vectors.npy"), "L2", "SQ8U")
        self.index.optimize(self.threads)

    def configure(self, effort, factor):
        self.index.set_ef(effort)

    def search(self, queries, k):
        if len(queries) == 1:
            found = self.index.search(queries[0], k)
        else:
            found = self.index.batch_search(queries, k, self.threads)
        return np.asarray(found[0], np.int64).reshape(len(queries), k)


LIBRARIES = {  # the first word is the module
    "faiss_ext": FaissExt,
    "faiss": Faiss,
    "hnswlib": Hnswlib,
    "usearch": Usearch,
    "pynndescent": Pynndescent,
    "nmslib": Nmslib,
    "flann": Flann,
    "rabitqlib IVF": RabitqIvf,
    "rabitqlib HNSW": RabitqHnsw,
    "rabitqlib SymQG": Symqg,
    "scann": Scann,
    "glass": Glass,
}
