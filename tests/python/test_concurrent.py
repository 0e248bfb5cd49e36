# SPDX-License-Identifier: MIT
"""Python threads that share an IndexConcurrent."""

import threading

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import X

WAIT = 60  # seconds after which a lock counts as never given back


def run(*functions):
    """Calls functions at the same time; the first error is raised."""
    errors = []

    def work(function):
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(f,), daemon=True) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("string", ["Concurrent,KFlat(chi2)", "Concurrent,AHK64(chi2),BFlat,Refine(KFlat(chi2))",
                                    "BConcurrent,AHK64(chi2),BFlat"])
def test_threads_search_while_one_changes(string):
    """A vector that was removed before a search is not found, and the others keep their ids."""
    make = faiss.index_binary_factory if string[0] == "B" else faiss.index_factory
    index, added, removed, stop = make(64, string), set(), set(), threading.Event()
    index.train(X[:500])

    def add(ids):
        added.update(ids)
        index.add_with_ids(X[ids], ids)

    def change():
        try:
            for i in range(300, 1500, 10):
                add(np.arange(i, i + 10))
                old = np.arange(i - 300, i - 290)
                assert index.remove_ids(old) == 10
                removed.update(old)
                index.upsert(X[i : i + 2], [i, i + 1])
        finally:
            stop.set()

    def search():
        while not stop.is_set():
            gone = set(removed)
            labels = index.search(X[::200], 5)[1]
            assert labels.min() >= 0 and not gone & set(labels.ravel()) and set(labels.ravel()) <= added

    def look():
        while not stop.is_set():
            ids = index.ids()
            assert 300 <= len(ids) <= 310 and np.ptp(ids) == len(ids) - 1
            mask = lambda ids: ids % 2 == 0
            found = index.search(X[:2], 3, filter=mask)[1]
            # all ids that the mask allowed may be gone when the search begins
            assert (found[found >= 0] % 2 == 0).all()
            assert repr(index).startswith("Index")
            assert 300 <= faiss_ext.clone_index(index).ntotal <= 310 if string[0] == "C" else True

    add(np.arange(300))
    run(change, search, search, look)
    assert index.ntotal == 300 and sorted(index.ids()) == list(range(1200, 1500))


def callback_index(function):
    """An index whose kernel calls function() first."""

    def kernel(a, b):
        function()
        return a @ b.T

    inside = faiss_ext.IndexFlatKernel(64, faiss_ext.CallbackKernel(kernel), faiss.METRIC_INNER_PRODUCT)
    inside.add(X[:20])
    return faiss_ext.IndexConcurrent(inside)


def test_two_threads_search_at_the_same_time():
    """One search is inside until the other one is inside, too."""
    both = threading.Barrier(2)
    index = callback_index(lambda: both.wait(WAIT))
    faiss.omp_set_num_threads(1)
    run(*[lambda: index.search(X[:1], 3)] * 2)


def test_callbacks_and_changes_do_not_wait_for_each_other():
    """Kernels in Python need the interpreter's lock while other threads wait for the index."""
    index = callback_index(lambda: None)

    def change():
        for i in range(50):
            index.add(X[20:22])
            index.remove_ids([20, 21])

    def search():
        for i in range(50):
            assert (index.search(X[:3], 2)[1] >= 0).all()

    run(change, change, search, search)
    assert index.ntotal == 20


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_give_the_lock_back(error):
    fails = [True]

    def fail():
        if fails.pop() if fails else False:
            raise error("in the kernel")

    index = callback_index(fail)
    with pytest.raises(error, match="in the kernel"):
        index.search(X[:1], 3)
    run(lambda: index.add(X[:5]))
    assert index.ntotal == 25


def test_around_an_index_of_faiss():
    flat = faiss.IndexFlatL2(64)
    flat.add(X[:100])
    index = faiss_ext.IndexConcurrent(flat)
    del flat
    assert np.array_equal(index.search(X[:3], 1)[1].ravel(), [0, 1, 2])
    assert "others add and remove vectors" in faiss_ext.describe("Concurrent").summary
    assert "others add and remove vectors" in faiss_ext.describe("BConcurrent").summary
    with pytest.raises(AttributeError, match="read-only"):
        index.index = faiss.IndexFlatL2(64)
