# SPDX-License-Identifier: MIT
"""Random sequences of what an index can do, beside brute force in NumPy."""

import copy
import os

import faiss
import faiss_ext
import numpy as np
import pytest
from faiss_ext.index_tree import parts_of
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

D = 8
POOL = np.random.default_rng(3).integers(1, 100, (50, D)).astype("float32")
POOL[45:] = POOL[:5]
rows = st.lists(st.integers(0, len(POOL) - 1), max_size=6)


def chi2(q, x):
    return ((q - x) ** 2 / (q + x)).sum(axis=1)


def intersection(q, x):
    return q.sum() + x.sum(axis=1) - 2 * np.minimum(q, x).sum(axis=1)


def graphs_in(index):
    found = [part for each in parts_of(index) if each.index for part in graphs_in(each.index)]
    return [index, *found] if isinstance(index, (faiss_ext.IndexHNSWKernel, faiss_ext.IndexBinaryHNSWSIMD)) else found


def hamming_by(index):
    hash = index.hash

    def distance(q, x):
        codes = np.unpackbits(hash.encode(np.vstack([q[None], x])), axis=1).astype(int)
        return np.abs(codes[1:] - codes[0]).sum(axis=1).astype(float)

    return distance


class Machine(RuleBasedStateMachine):
    """An index of `string`, and the same as lists of ids and rows of POOL."""

    string, k_factor = "KFlat(chi2)", None
    removes = replaces = merges = ranges = filters = True
    reconstructs = property(lambda self: "Refine" in self.string or "KFlat" in self.string)
    make_distance = staticmethod(lambda index: chi2)
    exact = True

    def make(self):
        index = faiss.index_factory(D, self.string)
        index.train(POOL)
        if self.k_factor:
            faiss_ext.set_index_parameter(index, "k_factor", self.k_factor)
        return index

    @initialize()
    def begin(self):
        self.index = self.make()
        self.model = []  # (id, row of POOL)
        self.next_id = 0  # above all that were given
        inner = self.index
        while isinstance(inner, faiss.IndexIDMap):
            inner = inner.index
        self.distance = self.make_distance(faiss.downcast_index(inner) if inner is not self.index else inner)

    def fill(self, index, which, first, gap):
        """Adds rows, with ids of their own if gap is not 0."""
        ids = [first + i * max(gap, 1) for i in range(len(which))]
        if gap:
            index.add_with_ids(POOL[which], np.array(ids, dtype="int64"))
        else:
            index.add(POOL[which])
        return list(zip(ids, which))

    def next_of(self, model, least):
        return max([least, *(id + 1 for id, _ in model)])

    @rule(which=rows, gap=st.integers(0, 3))
    def add(self, which, gap):
        self.model += self.fill(self.index, which, self.next_id, gap)
        self.next_id = self.next_of(self.model, self.next_id)

    @rule(which=rows, at=st.integers(0, 5), bad=st.sampled_from([np.nan, np.inf, -1.0]))
    def add_what_is_refused(self, which, at, bad):
        x = POOL[which]
        if not len(x) or (bad == -1 and self.make_distance is hamming_by):
            return
        x[at % len(x), 3] = bad
        with pytest.raises(RuntimeError):
            self.index.add_with_ids(x, self.next_id + np.arange(len(x)))
        with pytest.raises(RuntimeError):
            self.index.add(x)

    @precondition(lambda self: self.removes)
    @rule(low=st.integers(0, 60), size=st.integers(0, 8), as_array=st.booleans())
    def remove(self, low, size, as_array):
        ids = np.arange(low, low + size)
        left = [(id, row) for id, row in self.model if id not in ids]
        selector = faiss.IDSelectorBatch(ids) if as_array else faiss.IDSelectorRange(low, low + size)
        assert self.index.remove_ids(selector) == len(self.model) - len(left)
        self.model = left

    @precondition(lambda self: self.replaces and self.model)
    @rule(which=rows, at=st.integers(0, 1000), adds=st.booleans())
    def replace(self, which, at, adds):
        """Replaces vectors; with `adds`, the last one is new."""
        count = min(len(which), len(self.model) + adds)
        if count == 0:
            return
        places = [(at + i) % len(self.model) for i in range(count - adds)]
        ids = [self.model[place][0] for place in places]
        for place, row in zip(places, which):
            self.model[place] = (self.model[place][0], row)
        if adds:
            ids.append(self.next_id)
            self.model.append((self.next_id, which[count - 1]))
            self.next_id += 1
            assert self.index.upsert(POOL[which[:count]], ids) == count - 1
        else:
            self.index.update_vectors(ids, POOL[which[:count]])

    @precondition(lambda self: self.replaces and self.model)
    @rule(which=rows, unknown=st.booleans())
    def update_what_is_refused(self, which, unknown):
        if not which:
            return
        ids = [id for id, _ in self.model[:len(which)]]
        x = POOL[which[:len(ids)]]
        if unknown:
            ids[0] = self.next_id
        else:
            x[0, 3] = np.nan
        with pytest.raises(RuntimeError):
            self.index.update_vectors(ids, x)

    @rule()
    def ids_are_known(self):
        ids = [id for id, _ in self.model]
        assert sorted(self.index.ids()) == sorted(ids)
        assert self.index.contains([*ids, -3, self.next_id]).tolist() == [True] * len(ids) + [False] * 2

    @precondition(lambda self: self.model)
    @rule(at=st.lists(st.integers(0, 1000), min_size=1, max_size=5), unknown=st.booleans())
    def vectors_come_back(self, at, unknown):
        ids, which = zip(*(self.model[i % len(self.model)] for i in at))
        if not self.reconstructs:
            for call in (lambda: self.index.reconstruct(ids[0]), lambda: self.index.reconstruct_batch(ids)):
                with pytest.raises(RuntimeError, match="cannot be reconstructed") as caught:
                    call()
                assert caught.value.unsupported
            return
        found = self.index.reconstruct_batch(ids)
        assert np.array_equal(found, [self.index.reconstruct(id) for id in ids])
        if "KFlat" in self.string:
            np.testing.assert_allclose(found, POOL[list(which)], rtol=1e-5)
        if unknown:
            with pytest.raises(RuntimeError, match=f"id {self.next_id}\\b"):
                self.index.reconstruct_batch([*ids, self.next_id, self.next_id + 7])

    @rule()
    def lists_hold_all_vectors(self):
        if "IVF2" in self.string:
            sizes = self.index.list_sizes()
            assert sizes.shape == (2,) and sizes.sum() == len(self.model) and sizes.min() >= 0
        else:
            with pytest.raises(RuntimeError, match="no inverted lists") as caught:
                self.index.list_sizes()
            assert caught.value.unsupported

    @rule()
    def compact(self):
        self.index.compact()
        assert not any(graph.num_removed() for graph in graphs_in(self.index))

    @precondition(lambda self: self.model)
    @rule(which=rows, at=st.integers(0, 1000))
    def add_an_id_in_use(self, which, at):
        if which:
            ids = self.next_id + np.arange(len(which))
            ids[-1] = self.model[at % len(self.model)][0]
            with pytest.raises(RuntimeError, match="already in use"):
                self.index.add_with_ids(POOL[which], ids)

    @precondition(lambda self: self.merges)
    @rule(which=rows, gap=st.integers(0, 3))
    def merge(self, which, gap):
        other = self.make()
        added = self.fill(other, which, 0, gap)
        self.index.merge_from(other, self.next_id)
        self.model += [(self.next_id + id, row) for id, row in added]
        self.next_id = self.next_of(self.model, self.next_id)

    @rule(how=st.sampled_from(["file", "clone", "copy"]))
    def renew(self, how):
        if how == "file":
            self.index = faiss.deserialize_index(faiss.serialize_index(self.index))
        else:
            self.index = faiss.clone_index(self.index) if how == "clone" else copy.deepcopy(self.index)

    @rule()
    def reset(self):
        self.index.reset()
        self.model, self.next_id = [], 0

    def truth(self, q):
        if not self.model:
            return np.zeros(0)
        return self.distance(q, POOL[[row for _, row in self.model]])

    def check_labels(self, labels, distances, truth):
        left = {}
        for (id, _), distance in zip(self.model, truth):
            left.setdefault(id, []).append(distance)
        for label, distance in zip(labels, distances):
            close = [i for i, d in enumerate(left.get(label, [])) if abs(d - distance) <= 1e-3 * max(1, abs(d))]
            assert close, (label, distance)
            left[label].pop(close[0])

    @rule(row=st.integers(0, len(POOL) - 1), k=st.integers(1, 30))
    def search(self, row, k):
        distances, labels = self.index.search(POOL[row : row + 1], k)
        truth = self.truth(POOL[row])
        there = labels[0] >= 0
        count = there.sum()
        assert there[:count].all() and (labels[0, count:] == -1).all()
        self.check_labels(labels[0, :count], distances[0, :count], truth)
        if self.exact:
            assert count == min(k, len(self.model))
            np.testing.assert_allclose(distances[0, :count], np.sort(truth)[:count], rtol=1e-3, atol=1e-3)

    @precondition(lambda self: self.filters)
    @rule(row=st.integers(0, len(POOL) - 1), k=st.integers(1, 30), low=st.integers(0, 60), size=st.integers(0, 60),
          kind=st.sampled_from(["ids", "mask", "range", "function", "selector"]))
    def search_filtered(self, row, k, low, size, kind):
        allowed = range(low, low + size)
        filter = {"ids": np.array([*allowed, 5], "int64"), "mask": np.isin(np.arange(2000), allowed), "range": allowed,
                  "function": lambda ids: np.isin(ids, allowed),
                  "selector": faiss.IDSelectorRange(low, low + size)}[kind]
        taken = [(id, distance) for (id, _), distance in zip(self.model, self.truth(POOL[row]))
                 if id in allowed or (kind == "ids" and id == 5)]
        distances, labels = self.index.search(POOL[row : row + 1], k, filter=filter)
        count = (labels[0] >= 0).sum()
        assert count == min(k, len(taken)) and (labels[0, count:] == -1).all()
        if count:
            truth = dict(taken)
            np.testing.assert_allclose(distances[0, :count], [truth[id] for id in labels[0, :count]], rtol=1e-3, atol=1e-3)
            if self.exact:
                expected = np.sort([distance for _, distance in taken])[:count]
                np.testing.assert_allclose(distances[0, :count], expected, rtol=1e-3, atol=1e-3)

    @precondition(lambda self: self.ranges)
    @rule(row=st.integers(0, len(POOL) - 1), quantile=st.floats(0, 1))
    def range_search(self, row, quantile):
        truth = self.truth(POOL[row])
        radius = float(np.quantile(truth, quantile)) + 0.5 if len(truth) else 3.0
        if (np.abs(truth - radius) < 1e-2 * (1 + radius)).any():
            return
        limits, distances, labels = self.index.range_search(POOL[row : row + 1], radius)
        assert limits[1] == len(labels) == (truth < radius).sum()
        self.check_labels(labels, distances, truth)

    @invariant()
    def count(self):
        if hasattr(self, "model"):
            assert self.index.ntotal == len(self.index) == len(self.model)
            assert self.index  # also without vectors


CASES = {
    "KFlat": {},
    "KFlatBytes": {"string": "KFlat(intersection,store=u8)", "make_distance": staticmethod(lambda index: intersection)},
    "KFlatSparse": {"string": "KFlat(chi2,store=sparse)"},
    "IDMap2": {"string": "IDMap2,KFlat(chi2)"},
    "Hash": {"string": "SIK64(gaussian,gamma=0.001),BFlat", "make_distance": staticmethod(hamming_by)},
    "HashIDMap": {"string": "IDMap2,SIK64(gaussian,gamma=0.001),BFlat", "make_distance": staticmethod(hamming_by)},
    "Refine": {"string": "IDMap,SIK64(gaussian,gamma=0.001),BFlat,Refine(KFlat(chi2))",
               "k_factor": 100},
    "RefinedLists": {"string": "IDMap,KIVF2(nprobe=2),Refine(KFlat(chi2))", "k_factor": 100},
    "RefinedCodeLists": {"string": "IDMap,SIK64(gaussian,gamma=0.001),BIVF2,Refine(KFlat(chi2))",
                         "k_factor": 100, "exact": False, "ranges": False, "filters": False},
    "Refined": {"string": "KIVF2(nprobe=2),Refine(KFlat(chi2))", "k_factor": 100},
    "CodeLists": {"string": "SIK64(gaussian,gamma=0.001),BIVF2", "make_distance": staticmethod(hamming_by),
                  "exact": False, "ranges": False, "filters": False},
    "Permuted": {"string": "SIK64(gaussian,gamma=0.001),BPerm(M=2,B=500)", "make_distance": staticmethod(hamming_by),
                 "filters": False},
    "Graph": {"string": "HNSW4,KFlat(chi2)", "ranges": False, "exact": False},
}
# more strings, with the parts that the README names
CASES |= {
    "Concurrent": {"string": "Concurrent,KFlat(chi2)"},
    "ConcurrentGraph": {"string": "Concurrent,IDMap,HNSW4,KFlat(chi2)", "ranges": False, "exact": False},
    "ConcurrentRefine": {"string": "Concurrent,AHK64(chi2),BFlat,Refine(KFlat(chi2))", "k_factor": 100},
    "Asymmetric": {"string": "AHK64(chi2),AFlat,Refine(KFlat(chi2,store=u8))", "k_factor": 100},
    "MappedLists": {"string": "HKM1(chi2),PCAR8,KIVF2(nprobe=2),Refine(KFlat(chi2))", "k_factor": 100},
    "MappedFlat": {"string": "HKM1(chi2),Flat,Refine(KFlat(chi2))", "k_factor": 100},
    "MappedFaissLists": {"string": "HKM1(chi2),IVF2,Flat,Refine(KFlat(chi2))", "k_factor": 100, "exact": False, "ranges": False},
    "Table": {"string": "SIK64(gaussian,gamma=0.001),BHash8,Refine(KFlat(chi2))", "exact": False, "merges": False, "ranges": False,
              "filters": False},
    "Tables": {"string": "SIK64(gaussian,gamma=0.001),BHash2x8", "make_distance": staticmethod(hamming_by), "exact": False,
               "merges": False, "ranges": False, "filters": False},
    "CodeGraph": {"string": "SIK64(gaussian,gamma=0.001),BHNSW4", "make_distance": staticmethod(hamming_by), "exact": False,
                  "ranges": False},
    "RefinedCodeGraph": {"string": "IDMap,AHK64(chi2),BHNSW4,Refine(KFlat(chi2))", "k_factor": 100, "exact": False, "ranges": False},
    "RefinedGraph": {"string": "IDMap,HNSW4,KFlat(chi2,store=u8),Refine(KFlat(chi2))", "exact": False, "ranges": False},
    "Samples": {"string": "CWS64,BFlat,Refine(KFlat(chi2))", "k_factor": 100},
    "RefinedPermuted": {"string": "AHK64(chi2),BPerm(M=2,B=10),Refine(KFlat(chi2))", "k_factor": 100, "exact": False, "ranges": False},
}
for name, attributes in CASES.items():
    case = type(name, (Machine,), attributes).TestCase
    case.settings = settings(max_examples=int(os.environ.get("FAISS_EXT_EXAMPLES", 20)), stateful_step_count=50, deadline=None,
                             suppress_health_check=list(HealthCheck), derandomize=True)
    globals()[f"Test{name}"] = case
del case  # which pytest would take for one more
