# SPDX-License-Identifier: MIT
"""Who keeps what alive, and threads.

Nothing here measures time, so that the file also runs under AddressSanitizer.
"""

import copy
import gc
import itertools
import os
import pickle
import resource
from concurrent.futures import ThreadPoolExecutor

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import assert_equal, fill, made, made_binary

HASH = "SIK64(gaussian,gamma=0.001)"
CODES = f"{HASH},BFlat"
KFLAT = "KFlat(gaussian,gamma=0.001)"
NESTED = f"IDMap2,{CODES},Refine({KFLAT})"


def collect():
    """Frees what nobody holds, and writes over what was freed."""
    gc.collect()
    junk = [np.full(size, 255, "uint8") for size in range(16, 4000, 48)]
    junk += [np.full(1 << bits, 255, "uint8") for bits in range(12, 22)]
    del junk


def results(thing, queries):
    """What a hash, a kernel, or an index gives for queries."""
    if isinstance(thing, faiss_ext.KernelHash):
        return [thing.encode(queries)]
    if isinstance(thing, faiss_ext.Kernel):
        return [thing.gram(queries)]
    if isinstance(thing, faiss.IndexBinary) and not hasattr(thing, "hash"):
        codes = faiss_ext.kernel_hash_factory(64, HASH).encode(queries)
        return thing.search(codes, 5)
    if isinstance(thing, faiss.Index):
        queries = np.ascontiguousarray(queries[:, : thing.d])
    return thing.search(queries, 5)


@pytest.fixture(scope="module", autouse=True)
def quick_collections():
    """Leaves out what other tests have imported and made."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def check_parts(names, order, queries):
    """Each of some objects, which are dropped from the list one by one in the
    order given, gives the same as before, whatever of the others is gone."""
    expected = [results(thing, queries) for thing in names]
    for position in order:
        names[position] = None
        collect()
        for thing, right in zip(names, expected):
            if thing is not None:
                assert_equal(results(thing, queries), right)


# ------------------------------------------------------------- parts taken

OF_HASH_INDEXES = itertools.product(
    [made, made_binary],
    [CODES, f"{HASH},BHash4x8", "SIK64(laplacian),BIVF8"],
    ["hash", "storage", "hash.kernel"])
PARTS = [
    *OF_HASH_INDEXES,
    (made, "KFlat(matern)", "kernel"),
    *((made, f"{front},{KFLAT}", "index") for front in ("IDMap", "PCA16")),
    (made, f"HNSW8,{KFLAT}", "storage"),
    *((made, NESTED, f"index{path}") for path in (
        "", ".base_index", ".base_index.storage", ".refine_index.kernel")),
    *((made_binary, f"IDMap2,{CODES}", path) for path in ("index", "index.hash"))]


@pytest.mark.parametrize("make, string, path", PARTS)
def test_parts_outlive_what_they_are_of(digits, make, string, path):
    index = make(string, digits.base)
    part = eval(f"index.{path}")
    expected = results(part, digits.queries)
    del index
    collect()
    assert_equal(results(part, digits.queries), expected)


# ------------------------------------------------------------- parts given

@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_names_can_be_dropped_in_any_order(digits, order):
    # put together by hand
    hash = faiss_ext.kernel_hash_factory(64, HASH)
    storage = faiss.IndexBinaryFlat(64)
    index = faiss_ext.IndexKernelHash(hash, storage)
    names = [hash, storage, index, fill(faiss.IndexIDMap2(index), digits.base)]
    del hash, storage, index
    check_parts(names, order, digits.queries)
    # and by the factory
    index = made(NESTED, digits.base)
    codes = index.index.base_index
    names = [index, index.index, codes, codes.hash]
    del index, codes
    check_parts(names, order, digits.queries)


def test_faiss_wrappers_keep_our_indexes(digits):
    expected = made(KFLAT, digits.base).search(digits.queries, 5)

    def ours(string=KFLAT):
        return faiss.index_factory(64, string)

    shards = faiss.IndexShards(64, True, True)
    shards.add_shard(ours())
    replicas = faiss.IndexReplicas(64)
    replicas.addIndex(ours())
    exact = [faiss.IndexRefine(ours(), ours()), faiss.IndexPreTransform(ours())]
    exact += [shards, replicas]
    hash = faiss_ext.kernel_hash_factory(64, HASH)
    others = [
        faiss.IndexRefineFlat(ours(CODES)), faiss.IndexHNSW(ours(), 8),
        faiss.IndexPreTransform(hash, faiss.IndexFlatL2(64))]
    del hash
    collect()
    for index in exact:
        assert_equal(fill(index, digits.base).search(digits.queries, 5), expected)
    others += [faiss.IndexIDMap(ours()), faiss.IndexIDMap2(ours())]
    for index in others:
        assert fill(index, digits.base).search(digits.queries, 5)[1].min() >= 0


def test_copies_do_not_need_the_original(digits):
    index = made(f"{CODES},Refine({KFLAT})", digits.base)
    expected = index.search(digits.queries, 5)
    copies = [faiss.clone_index(index), copy.deepcopy(index), pickle.loads(pickle.dumps(index))]
    base = copies[0].base_index
    del index
    collect()
    for twin in copies:
        assert_equal(twin.search(digits.queries, 5), expected)
    codes = base.search(digits.queries, 5)
    del copies, twin
    collect()
    assert_equal(base.search(digits.queries, 5), codes)


def test_objects_left_at_exit_are_no_trouble(run_python):
    program = """
import faiss, faiss_ext, numpy as np
x = np.random.default_rng(1).normal(size=(100, 8)).astype("float32")
string = "IDMap2,SIK64(gaussian),BFlat,Refine(KFlat(gaussian))"
index = faiss.index_factory(8, string)
index.train(x)
hash, kernel = index.index.base_index.hash, index.index.refine_index.kernel
storage = index.index.base_index.storage
binary = faiss.index_binary_factory(8, "SIK64(gaussian,gamma=1),BFlat")
by_hand = faiss_ext.IndexKernelHash(hash, storage)
class Holder: pass
cycle = Holder()
cycle.itself, cycle.index = cycle, by_hand
print("end")
"""
    assert run_python(program) == "end\n"


# ------------------------------------------------------------------ memory

def resident():
    """Bytes of memory in use."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def address_sanitizer():
    with open("/proc/self/maps") as f:
        return "libasan" in f.read()


def kernel_index(x):
    index = faiss_ext.IndexFlatKernel(64, faiss_ext.GaussianKernel(0.001))
    index.add(x)
    index.search(x[:3], 5)
    return index


def taken_apart(x):
    index = faiss.index_factory(64, NESTED)
    index.add_with_ids(x, np.arange(len(x)))
    parts = [index.index, index.index.base_index, index.index.refine_index]
    parts += [parts[1].hash, parts[1].storage, parts[1].hash.kernel]
    parts.append(faiss.downcast_index(parts[2]))


def hashed(x):
    bits = len(x) // 8 * 8
    hash = faiss_ext.kernel_hash_factory(64, f"SIK{bits}(gaussian,gamma=1)")
    hash.encode(x[:3])
    copy.copy(hash)


def failed(x):
    index = kernel_index(x)
    data = faiss.serialize_index(index)
    for function in (
        lambda: faiss.deserialize_index(data[:-1]),
        lambda: index.add(np.full((1, 64), np.nan)),
        lambda: faiss.index_factory(64, f"SIK{len(x)}(gaussian,gamma=1),BFlat,Refine(BFoo)"),
    ):
        with pytest.raises(RuntimeError):
            function()


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc/self/statm")
@pytest.mark.parametrize(
    "use, megabytes",
    [(kernel_index, 8), (taken_apart, 8), (hashed, 2), (failed, 2)],  # which takes its time
)
def test_dropped_objects_give_their_memory_back(use, megabytes):
    if address_sanitizer():
        pytest.skip("AddressSanitizer keeps freed memory; it looks for leaks")
    size = megabytes << 20  # of the index or hash that is made each time
    x = np.random.default_rng(1).random((size // 256, 64), dtype="float32")
    for _ in range(4):
        use(x)
    gc.collect()
    before = resident()
    for _ in range(25):
        use(x)
    gc.collect()
    assert resident() - before < 5 * size


# ----------------------------------------------------------------- threads

def test_other_functions_in_several_threads(digits):
    hash = faiss_ext.kernel_hash_factory(64, "SIK512(gaussian,gamma=0.001)")
    kernel = faiss_ext.LaplacianKernel(0.01)
    binary = made_binary(CODES, digits.base)
    index = made(KFLAT, digits.base)

    def job(i):
        x = digits.queries[10 * (i % 20) : 10 * (i % 20) + 10]
        string = f"SIK64(gaussian,gamma=0.001,seed={i % 3}),BFlat"
        fresh = faiss.index_factory(64, string)
        fresh.add(digits.base[:200])
        part = binary.hash  # taken and dropped by all threads at once
        found = [hash.encode(x), kernel.gram(x, digits.base), part.encode(x)]
        found += [*binary.search(x, 4), *index.range_search(x, 0.3), *fresh.search(x, 4)]
        return [*found, *faiss.clone_index(fresh).search(x, 2)]

    expected = [job(i) for i in range(20)]
    with ThreadPoolExecutor(4) as pool:
        for found, right in zip(pool.map(job, range(20)), expected):
            assert_equal(found, right)


def test_parts_keep_their_owners_alive(digits):
    x = digits.base[:300]

    codes = faiss_ext.kernel_hash_factory(64, HASH).encode(x)

    def codes_in(string):
        def make():
            index = faiss_ext.index_binary_factory(64, string)
            index.train(codes)
            if string.startswith("IDMap"):
                index.add_with_ids(codes, np.arange(len(codes)))
            else:
                index.add(codes)
            return index
        return make

    def search_codes(index):
        assert type(index).__module__.startswith("faiss_ext")
        return np.hstack(index.search(codes[:5], 2))

    def behind_a_map():
        return made("HKM1(chi2),PCAR8,KIVF4", x)

    def array(get):
        return lambda index: (lambda vector: faiss.vector_to_array(vector).copy(), get(index))

    def codes_of(index):
        return np.array([index.ntotal, *index.search(codes[:1], 1)[1][0]])

    def lists_of(lists):
        return np.array([lists.list_size(i) for i in range(4)])

    def codes_of_floats(index):
        return np.array([index.ntotal, index.d, index.is_trained])

    def refused(part):
        for downcast in (faiss.downcast_index, faiss.downcast_IndexBinary, faiss.downcast_VectorTransform):
            with pytest.raises(TypeError):
                downcast(part)
        return part

    def centroid_of(quantizer):
        return np.array([quantizer.ntotal, *quantizer.reconstruct(0)])

    def computer_of(index):
        computer = index.get_distance_computer()
        computer.set_query(faiss.swig_ptr(x))
        return computer

    looks = [
        (codes_in("BIVF4"), lambda index: (centroid_of, index.quantizer)),
        (codes_in("BIVF4"), lambda index: (lists_of, index.invlists)),
        (codes_in("BIVF4"), lambda index: (search_codes, index.quantizer)),
        (codes_in("BIVF4"), lambda index: (search_codes, faiss.downcast_IndexBinary(index).quantizer)),
        (codes_in("IDMap2,BFlat"), lambda index: (search_codes, index.index)),
        (codes_in("IDMap2,BFlat"), lambda index: (search_codes, faiss.downcast_IndexBinary(index.index))),
        (codes_in("IDMap,BKFlat(jaccard)"), lambda index: (search_codes, index.index)),
        (lambda: faiss_ext.clone_binary_index(codes_in("IDMap2,BFlat")()), lambda index: (search_codes, index.index)),
        # parts of FAISS's classes
        (codes_in("IDMap2,BHNSW8"), lambda index: (codes_of, index.index)),
        (lambda: made("IDMap2,KFlat(chi2)", x), array(lambda index: index.id_map)),
        (lambda: made("HKM1(chi2),IVF4,Flat", x), lambda index: (codes_of_floats, index.index)),
        (lambda: made("HKM1(chi2),IVF4,Flat", x), lambda index: (codes_of_floats, faiss.downcast_index(index.index))),
        (lambda: made("HKM1(chi2),IVF4,Flat", x), lambda index: (codes_of_floats, faiss.extract_index_ivf(index))),
        (codes_in("BFlat"), array(lambda index: refused(index.xb))),
        (lambda: made("HNSW8,KFlat(chi2)", x), lambda index: (
            lambda hnsw: faiss.vector_to_array(hnsw.levels).copy(), refused(index.hnsw))),
        (lambda: faiss_ext.kernel_hash_factory(64, HASH), array(lambda hash: hash.threshold)),
        (lambda: made("KFlat(chi2)", x), lambda index: (lambda computer: np.array([computer(0)]), computer_of(index))),
        (behind_a_map, lambda index: (
            lambda part: np.array([part.d_in, part.d_out]), index.chain.at(0))),
        (behind_a_map, lambda index: (
            lambda part: np.array([part.d_in, part.d_out]), faiss.downcast_VectorTransform(index.chain.at(1)))),
        (lambda: made("KFlat(chi2)", x), array(lambda index: index.codes)),
        (lambda: made(f"{HASH},BPerm(M=2,B=10)", x), array(lambda index: index.storage.xb)),
        (lambda: made(f"{HASH},BIVF4", x), lambda index: (
            lambda q: np.array([q.ntotal]), index.storage.quantizer))]
    for make, look in looks:
        see, part = look(make())
        expected = see(part)
        collect()
        np.testing.assert_array_equal(see(part), expected)
        kept = look(make())[1]
        collect()
        np.testing.assert_array_equal(see(kept), expected)


def test_copies_of_local_subclasses_of_faiss():
    class Local(faiss.IndexFlatL2):
        pass

    index = Local(3)
    index.add(np.eye(3, dtype="float32"))
    for make in (copy.copy, copy.deepcopy):
        twin = make(index)
        assert type(twin) is Local
        assert twin.ntotal == 3


@pytest.mark.parametrize("call", [
    "faiss_ext.index_factory(32, 'IDMap2,KFlat(chi2)').add_with_ids(x[:2], [1., 2.])",
    "faiss_ext.index_factory(32, 'IDMap2,KFlat(chi2)').search(x[:, :3], 2)",
    "faiss_ext.index_factory(32, 'IDMap2,RR8,KFlat(linear)').search(x[:, :3], 2)",
    "faiss_ext.index_factory(32, 'KFlat(chi2)').search(x, 0)"])
def test_refused_arguments_of_an_index_without_a_name(call, run_python):
    code = f"""if True:
        import gc, faiss, faiss_ext, numpy as np
        x = np.ones((3, 32), "float32")
        for _ in range(20):
            try:
                {call}
            except (TypeError, ValueError):
                pass
            gc.collect()
        print("done")"""
    assert "done" in run_python(code)
