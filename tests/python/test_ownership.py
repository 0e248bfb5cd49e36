"""Who keeps what alive, threads, and interrupts.

Nothing here measures time, so that the file also runs under AddressSanitizer.
"""

import copy
import gc
import itertools
import os
import pickle
import resource
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import faiss
import faiss_ext

HASH = "SIK64(gaussian,gamma=0.001)"
CODES = f"{HASH},BFlat"
KFLAT = "KFlat(gaussian,gamma=0.001)"


def made(string, x):
    index = faiss.index_factory(x.shape[1], string)
    index.train(x)
    if isinstance(index, faiss.IndexIDMap):
        index.add_with_ids(x, np.arange(len(x)))
    else:
        index.add(x)
    return index


def made_binary(string, x):
    index = faiss.index_binary_factory(x.shape[1], string)
    index.train(x)
    index.add(x)
    return index


def collect():
    """Frees what nobody holds, and writes over what was freed."""
    gc.collect()
    junk = [np.full(size, 255, "uint8") for size in range(16, 4000, 48)]
    junk += [np.full(1 << bits, 255, "uint8") for bits in range(12, 22)]
    del junk


def assert_equal(found, expected):
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module", autouse=True)
def quick_collections():
    """Leaves out what other tests have imported and made."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


# ------------------------------------------------------------- parts taken


@pytest.mark.parametrize(
    "string", [CODES, f"{HASH},BHash4x8", "SIK64(laplacian),BIVF8"]
)
@pytest.mark.parametrize("make", [made, made_binary])
def test_hash_storage_and_kernel_outlive_their_index(digits, string, make):
    index = make(string, digits.base)
    codes = index.hash.encode(digits.queries)
    expected = index.storage.search(codes, 5)
    gram = index.hash.kernel.gram(digits.queries)

    hash, storage, kernel = index.hash, index.storage, index.hash.kernel
    twin = kernel.copy()
    del index
    collect()
    np.testing.assert_array_equal(hash.encode(digits.queries), codes)
    assert_equal(storage.search(codes, 5), expected)
    del hash, storage
    collect()
    np.testing.assert_array_equal(kernel.gram(digits.queries), gram)
    np.testing.assert_array_equal(twin.gram(digits.queries), gram)


def test_the_kernel_of_an_exact_index_outlives_it(digits):
    index = made("KFlat(matern)", digits.base)
    gram = index.kernel.gram(digits.queries)
    kernel = index.kernel
    del index
    collect()
    np.testing.assert_array_equal(kernel.gram(digits.queries), gram)


@pytest.mark.parametrize(
    "string, parts",
    [
        (f"{CODES},Refine({KFLAT})", ["base_index", "refine_index"]),
        (f"IDMap2,{CODES}", ["index"]),
        (f"IDMap,{KFLAT}", ["index"]),
        (f"HNSW8,{KFLAT}", ["storage"]),
        (f"PCA16,{KFLAT}", ["index"]),
    ],
)
def test_parts_of_wrappers_outlive_them(digits, string, parts):
    for name in parts:
        index = made(string, digits.base)
        part = getattr(index, name)
        x = digits.queries[:, : part.d].copy()
        expected = part.search(x, 5)
        del index
        collect()
        assert_equal(part.search(x, 5), expected)


def test_parts_of_nested_wrappers_outlive_them(digits):
    index = made(f"IDMap2,{CODES},Refine({KFLAT})", digits.base)
    codes = index.index.base_index.hash.encode(digits.queries)
    expected = index.index.base_index.storage.search(codes, 5)
    storage = index.index.base_index.storage
    kernel = faiss.downcast_index(index.index.refine_index).kernel
    hash = faiss.downcast_index(index.index).base_index.hash
    del index
    collect()
    assert_equal(storage.search(codes, 5), expected)
    np.testing.assert_array_equal(hash.encode(digits.queries), codes)
    assert kernel.gamma == 0.001


@pytest.mark.parametrize(
    "group, add",
    [
        (lambda: faiss.IndexShards(64, False, True), "add_shard"),
        (lambda: faiss.IndexReplicas(64), "addIndex"),
    ],
)
def test_members_of_groups_outlive_them(digits, group, add):
    index = group()
    for _ in range(2):
        getattr(index, add)(faiss.index_factory(64, KFLAT))
    index.add(digits.base)
    member = index.at(1)
    expected = member.search(digits.queries, 5)
    del index
    collect()
    assert_equal(member.search(digits.queries, 5), expected)


def test_binary_parts_outlive_their_wrapper(digits):
    index = faiss.index_binary_factory(64, f"IDMap2,{CODES}")
    codes = index.index.hash.encode(digits.base)
    index.add_with_ids(codes, np.arange(len(codes)))
    part = index.index
    expected = part.search(digits.queries, 5)
    hash = index.index.hash
    del index
    collect()
    assert_equal(part.search(digits.queries, 5), expected)
    del part
    collect()
    np.testing.assert_array_equal(hash.encode(digits.base), codes)


# ------------------------------------------------------------- parts given


@pytest.mark.parametrize(
    "cls", [faiss_ext.IndexKernelHash, faiss_ext.IndexBinaryKernelHash]
)
def test_an_index_keeps_the_parts_it_was_made_of(digits, cls):
    expected = made_binary(CODES, digits.base).search(digits.queries, 5)
    kernel = faiss_ext.GaussianKernel(0.001)
    hash = faiss_ext.ShiftInvariantHash(64, 64, kernel, 1234)
    storage = faiss.IndexBinaryFlat(64)
    index = cls(hash, storage)
    del kernel, hash, storage
    collect()
    index.add(digits.base)
    assert_equal(index.search(digits.queries, 5), expected)
    storage = index.storage
    del index
    collect()
    # the part taken out again still has what was put in
    codes = faiss_ext.kernel_hash_factory(64, HASH).encode(digits.queries)
    assert_equal(storage.search(codes, 5), expected)


def test_faiss_wrappers_keep_our_indexes(digits):
    expected = made(KFLAT, digits.base).search(digits.queries, 5)

    def ours(string=KFLAT):
        return faiss.index_factory(64, string)

    shards = faiss.IndexShards(64, True, True)
    shards.add_shard(ours())
    replicas = faiss.IndexReplicas(64)
    replicas.addIndex(ours())
    wrappers = [
        faiss.IndexIDMap(ours()),
        faiss.IndexIDMap2(ours()),
        faiss.IndexRefine(ours(), ours()),
        faiss.IndexPreTransform(ours()),
        shards,
        replicas,
    ]
    collect()
    for index in wrappers:
        if isinstance(index, faiss.IndexIDMap):
            index.add_with_ids(digits.base, np.arange(len(digits.base)))
        else:
            index.add(digits.base)
        assert_equal(index.search(digits.queries, 5), expected)

    index = faiss.IndexRefineFlat(ours(CODES))
    graph = faiss.IndexHNSW(ours(), 8)
    chain = faiss.IndexPreTransform(
        faiss_ext.kernel_hash_factory(64, HASH), faiss.IndexFlatL2(64)
    )
    collect()
    for each in (index, graph, chain):
        each.add(digits.base)
        assert each.search(digits.queries, 5)[1].min() >= 0


def test_a_kernel_index_has_its_own_copy_of_the_kernel(digits):
    kernel = faiss_ext.GaussianKernel(0.001)
    index = faiss_ext.IndexFlatKernel(64, kernel)
    hash = faiss_ext.ShiftInvariantHash(64, 64, kernel)
    kernel.neighbor = 7
    assert index.kernel.neighbor == hash.kernel.neighbor == 50
    index.kernel.neighbor = 8
    assert kernel.neighbor == 7
    with pytest.raises(AttributeError):
        kernel.gamma = 1.0  # codes and graphs would no longer fit
    del kernel
    collect()
    index.add(digits.base)
    assert index.kernel.neighbor == 8


@pytest.mark.parametrize("order", itertools.permutations(range(4)))
def test_names_can_be_dropped_in_any_order(digits, order):
    hash = faiss_ext.kernel_hash_factory(64, HASH)
    storage = faiss.IndexBinaryFlat(64)
    index = faiss_ext.IndexKernelHash(hash, storage)
    outer = faiss.IndexIDMap2(index)
    outer.add_with_ids(digits.base, np.arange(len(digits.base)))
    expected = outer.search(digits.queries, 5)
    codes = hash.encode(digits.queries)
    names = [hash, storage, index, outer]
    uses = [
        lambda hash: hash.encode(digits.queries),
        lambda storage: storage.search(codes, 5),
        lambda index: index.search(digits.queries, 5),
        lambda outer: outer.search(digits.queries, 5),
    ]
    del hash, storage, index, outer
    for position in order:
        names[position] = None
        collect()
        for name, use in zip(names, uses):
            if name is not None:
                found = use(name)
                assert_equal(
                    [found] if name is names[0] else found,
                    [codes] if name is names[0] else expected,
                )


@pytest.mark.parametrize("order", itertools.permutations(range(4)))
def test_parts_of_a_factory_index_can_be_dropped_in_any_order(digits, order):
    index = made(f"IDMap2,{CODES},Refine({KFLAT})", digits.base)
    refine = index.index
    codes = refine.base_index
    names = [index, refine, codes, codes.hash]
    del index, refine, codes
    expected = [
        *(name.search(digits.queries, 5) for name in names[:3]),
        [names[3].encode(digits.queries)],
    ]
    for position in order:
        names[position] = None
        collect()
        for i, name in enumerate(names):
            if name is None:
                continue
            if i == 3:
                assert_equal([name.encode(digits.queries)], expected[3])
            else:
                assert_equal(name.search(digits.queries, 5), expected[i])


def test_copies_do_not_need_the_original(digits):
    index = made(f"{CODES},Refine({KFLAT})", digits.base)
    expected = index.search(digits.queries, 5)
    copies = [
        faiss.clone_index(index),
        copy.deepcopy(index),
        pickle.loads(pickle.dumps(index)),
    ]
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
    return index


def searched(x):
    index = kernel_index(x)
    index.search(x[:3], 5)


def taken_apart(x):
    index = faiss.index_factory(64, f"IDMap2,{CODES},Refine({KFLAT})")
    index.add_with_ids(x, np.arange(len(x)))
    parts = [index.index, index.index.base_index, index.index.refine_index]
    parts += [parts[1].hash, parts[1].storage, parts[1].hash.kernel]
    parts.append(faiss.downcast_index(parts[2]))
    index.search(x[:3], 5)


def copied(x):
    index = kernel_index(x)
    faiss.clone_index(index)
    copy.deepcopy(index)


def put_together(x):
    storage = faiss.IndexBinaryFlat(512)
    storage.add(x.view("uint8").reshape(-1, 64))
    hash = faiss_ext.kernel_hash_factory(64, "SIK512(gaussian,gamma=1)")
    index = faiss_ext.IndexKernelHash(hash, storage)
    outer = faiss.IndexPreTransform(index)
    outer.search(x[:3], 5)


def hashed(x):
    hash = faiss_ext.kernel_hash_factory(64, "SIK32768(gaussian,gamma=1)")
    hash.encode(x[:3])
    copy.copy(hash)


def failed(x):
    index = kernel_index(x)
    data = faiss.serialize_index(index)
    for function in (
        lambda: faiss.deserialize_index(data[:-1]),
        lambda: index.add(np.full((1, 64), np.nan)),
        lambda: faiss.index_factory(64, "SIK32768(gaussian,gamma=1),BFoo"),
    ):
        with pytest.raises(RuntimeError):
            function()


@pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="needs /proc/self/statm"
)
@pytest.mark.parametrize(
    "use", [searched, taken_apart, copied, put_together, hashed, failed]
)
def test_dropped_objects_give_their_memory_back(use):
    if address_sanitizer():
        pytest.skip("AddressSanitizer keeps freed memory; it looks for leaks")
    size = 8 << 20  # of the index or hash that is made each time
    x = np.random.default_rng(1).random((size // 256, 64), dtype="float32")
    rounds = 60 if use in (searched, put_together) else 25
    for _ in range(4):
        use(x)
    gc.collect()
    before = resident()
    for _ in range(rounds):
        use(x)
    gc.collect()
    assert resident() - before < 5 * size


# ----------------------------------------------------------------- threads


@pytest.mark.parametrize(
    "string",
    [
        CODES,
        f"{HASH},BHash4x8",
        KFLAT,
        f"HNSW8,{KFLAT}",
        f"{CODES},Refine({KFLAT})",
    ],
)
def test_searches_in_several_threads_equal_those_in_one(digits, string):
    index = made(string, digits.base)
    parts = [digits.queries[i : i + 25] for i in range(0, 200, 25)] * 3
    expected = [index.search(part, 5) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda part: index.search(part, 5), parts))
    for a, b in zip(found, expected):
        assert_equal(a, b)


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
        return [
            hash.encode(x),
            kernel.gram(x, digits.base),
            *binary.search(x, 4),
            *index.range_search(x, 0.3),
            *fresh.search(x, 4),
            part.encode(x),
            *faiss.clone_index(fresh).search(x, 2),
        ]

    expected = [job(i) for i in range(20)]
    with ThreadPoolExecutor(4) as pool:
        for found, right in zip(pool.map(job, range(20)), expected):
            assert_equal(found, right)


def test_an_error_in_one_thread_is_raised_there(digits):
    index = made(KFLAT, digits.base)
    bad = digits.queries.copy()
    bad[3, 4] = np.nan

    def job(i):
        try:
            return index.search(bad if i % 2 else digits.queries, 3)
        except RuntimeError as error:
            return str(error)

    expected = index.search(digits.queries, 3)
    with ThreadPoolExecutor(4) as pool:
        for i, found in enumerate(pool.map(job, range(20))):
            if i % 2:
                assert "component 4 of vector 3" in found
            else:
                assert_equal(found, expected)


# -------------------------------------------------------------- interrupts


def interrupt(function):
    """Calls a function that would run for long, presses Ctrl-C meanwhile, and
    checks that KeyboardInterrupt comes out."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            function()
            # too fast: the interrupt must not hit anything else
            while True:
                time.sleep(1)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


# Each of these would need many seconds. What the calls leave unwritten tells
# an interrupt in the middle from one that waited for the end.


@pytest.mark.parametrize("string", [KFLAT, f"IDMap,{KFLAT}"])
def test_a_search_can_be_interrupted(digits, string):
    index = made(string, np.tile(digits.base, (50, 1)))
    x = np.tile(digits.queries, (500, 1))
    D = np.full((len(x), 1), -5, "float32")
    I = np.full((len(x), 1), -5, "int64")
    expected = index.search(digits.queries, 3)
    interrupt(lambda: index.search(x, 1, D=D, I=I))
    assert (I[-1] == -5).all() and (D[-1] == -5).all()
    assert index.ntotal == 50 * len(digits.base)
    assert_equal(index.search(digits.queries, 3), expected)


def test_a_range_search_can_be_interrupted(digits):
    index = made(KFLAT, np.tile(digits.base, (50, 1)))
    x = np.tile(digits.queries, (500, 1))
    found = []
    interrupt(lambda: found.append(index.range_search(x, 1e-9)))
    assert found == []
    assert index.range_search(digits.queries, 0.1)[0][-1] > 0


def test_encoding_can_be_interrupted(digits):
    index = faiss.index_factory(512, "SIK16384(gaussian,gamma=1,proj=dense),BFlat")
    x = np.zeros((50_000, 512), "float32")
    codes = np.full((len(x), 2048), 0xAA, "uint8")
    expected = index.hash.encode(x[:3])
    interrupt(lambda: index.sa_encode(x, codes))
    assert (codes[-1] == 0xAA).all()
    np.testing.assert_array_equal(index.hash.encode(x[:3]), expected)
    interrupt(lambda: index.add(x))
    assert index.ntotal == index.storage.ntotal == 0


@pytest.mark.parametrize("kind", ["kernel", "hash"])
def test_training_can_be_interrupted(digits, kind):
    if kind == "kernel":
        trained = faiss_ext.kernel_factory("gaussian")
        kernel = trained
    else:
        trained = faiss_ext.kernel_hash_factory(64, "SIK64(gaussian)")
        kernel = trained.kernel
    x = np.tile(digits.base, (41, 1))
    kernel.sample_queries = len(x)
    interrupt(lambda: trained.train(x))
    assert not trained.is_trained and kernel.gamma == 0
    kernel.sample_queries = 100
    trained.train(digits.base)
    assert trained.is_trained and kernel.gamma > 0


def test_a_gram_matrix_can_be_interrupted(digits):
    kernel = faiss_ext.kernel_factory("matern(nu=0.7,gamma=0.001)")
    x = np.tile(digits.base, (10, 1))
    found = []
    interrupt(lambda: found.append(kernel.gram(x)))
    assert found == []
    assert kernel.gram(digits.queries).shape == (200, 200)
