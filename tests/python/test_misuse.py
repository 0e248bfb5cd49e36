"""What goes wrong in users' hands: slips, wrong types, failures half-way.

Each gives an error that says what was wrong, and leaves the object usable.
"""

import copy
import os
import re
import signal
import subprocess
import sys
import threading
import time

import faiss
import faiss_ext
import numpy as np
import pytest

D = 16


def vectors(n, d=D, seed=1):
    return np.random.default_rng(seed).random((n, d), dtype="float32")


def run(script, environment, timeout=60):
    """Runs a program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, timeout=timeout,
        capture_output=True, text=True)


# --------------------------------------------------------------- callbacks

class Mine(Exception):
    """An exception that only a test knows."""


def failing(after=0, error=Mine("what I said")):
    """A callback kernel that fails from some call on."""
    calls = []

    def function(x, y):
        calls.append(1)
        if len(calls) > after:
            raise error
        return x @ y.T

    return faiss_ext.CallbackKernel(function)


DEADLOCK = """
import faiss, faiss_ext, numpy as np

def fail(x, y):
    raise ZeroDivisionError("in a callback")

x = np.random.rand(40, 16).astype("float32")
for group in (faiss.IndexShards, faiss.IndexReplicas):
    for i in range(60):
        args = (16, True, True) if group is faiss.IndexShards else (16, True)
        index = group(*args)
        parts = [faiss_ext.IndexFlatKernel(16, faiss_ext.CallbackKernel(fail))
                 for _ in range(2)]
        for part in parts:
            index.add_index(part) if hasattr(index, "add_index") else \\
                index.addIndex(part)
        index.add(x)
        for call in (lambda: index.search(x, 3), lambda: index.add(x[:1])):
            try:
                call()
            except Exception:
                pass
        del index, parts, call
print("done")
"""


@pytest.mark.parametrize("cores", [1, 2])
def test_threaded_shards_over_failing_callbacks_do_not_deadlock(
        environment, cores):
    script = DEADLOCK
    if cores == 1:
        script = ("import os\n"
                  "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
                  + script)
        environment = {**environment, "OMP_NUM_THREADS": "1"}
    done = run(script, environment)
    assert done.stdout == "done\n", done.stderr


def make_groups(kernel, threaded):
    for group in ("shards", "replicas", "id_map", "refine"):
        flat = [faiss_ext.IndexFlatKernel(D, kernel) for _ in range(2)]
        if group == "shards":
            index = faiss.IndexShards(D, threaded, True)
        elif group == "replicas":
            index = faiss.IndexReplicas(D, threaded)
        elif group == "id_map":
            index = faiss.IndexIDMap2(flat[0])
        else:
            index = faiss.IndexRefine(flat[0], flat[1])
        if group in ("shards", "replicas"):
            for part in flat:
                index.addIndex(part)
        index.referenced_objects = flat
        yield index


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("error", [
    Mine("what I said"), Mine("grüße \udc80 \x00 end"), KeyboardInterrupt(),
    SystemExit(3)])
def test_a_callbacks_exception_comes_out_of_faiss_own_indexes(threaded, error):
    for index in make_groups(failing(error=error), threaded):
        x = vectors(20)
        if isinstance(index, faiss.IndexIDMap):
            index.add_with_ids(x, np.arange(20))
        else:
            index.add(x)
        with pytest.raises(type(error)) as caught:
            index.search(x, 3)
        assert caught.value.args == error.args
        assert caught.traceback[-1].name == "function"  # where it was raised


def test_a_callbacks_exception_comes_out_of_binary_indexes():
    x = vectors(400)
    state = {}

    def function(a, b):
        if state:
            raise Mine("later")
        return np.minimum(a[:, None], b).sum(2)

    hash = faiss_ext.KernelizedLSH(D, 64, faiss_ext.CallbackKernel(function))
    hash.train(x)
    parts = [faiss_ext.IndexKernelHash(hash, faiss.IndexBinaryFlat(64))
             for _ in range(2)]
    shards = faiss.IndexShards(D, True, True)
    for part in parts:
        shards.addIndex(part)
    shards.add(x)
    shards.search(x, 2)
    binary = faiss.IndexBinaryIDMap2(
        faiss_ext.IndexBinaryKernelHash(hash, faiss.IndexBinaryFlat(64)))
    binary.add_with_ids(x, np.arange(400))
    state["fails"] = True
    for index in (shards, binary):
        with pytest.raises(Mine, match="later"):
            index.search(x, 2)


def test_references_of_callbacks_are_let_go_of():
    import gc
    import weakref

    class Big:
        pass

    big = Big()
    seen = weakref.ref(big)

    def function(x, y, big=big):
        raise Mine(big)

    index = faiss_ext.IndexFlatKernel(D, faiss_ext.CallbackKernel(function))
    index.add(vectors(5))
    shards = faiss.IndexShards(D, True, True)
    shards.addIndex(index)
    with pytest.raises(Mine):
        shards.search(vectors(2), 1)
    del shards, index, function, big
    # the interpreter lets go of what C++ has left to it when it next looks
    end = time.monotonic() + 10
    while seen() is not None and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
    assert seen() is None


# ---------------------------------------------------------------- training

def histograms(n, seed=1):
    x = vectors(n, seed=seed)
    return x / x.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("scheme", [
    "KLSH64(chi2,p=30)", "KLSH64(expchi2,p=30,rank=auto,scale=auto)",
    "SIK64(gaussian)", "SIK64(matern,proj=dense)", "SIK64(laplacian)",
    "BSIK64(4x4)", "AHK64(chi2,center=1)", "RHBE64(center=1)"])
def test_a_training_that_fails_in_the_storage_leaves_no_trace(scheme):
    few = np.repeat(histograms(31, seed=5), 100, axis=0)
    rng = np.random.default_rng(2)
    good = histograms(3000, seed=9)[rng.permutation(3000)]
    string = scheme + ",BIVF100"
    index = faiss.index_factory(D, string)
    kernel = getattr(index.hash, "kernel", None)
    described = kernel.description() if kernel else None
    # (all columns alike: no 100 different centroids, and no 100 vectors)
    with pytest.raises(RuntimeError):
        index.train(few[:99])
    with_few = index.is_trained
    assert not with_few and not index.hash.is_trained
    if kernel:
        assert kernel.description() == described  # it is still the hash's own
        assert index.hash.kernel.description() == described
    index.train(good)
    index.add(good)
    fresh = faiss.index_factory(D, string)
    fresh.train(good)
    fresh.add(good)
    q = histograms(20, seed=11)
    np.testing.assert_array_equal(index.hash.encode(q), fresh.hash.encode(q))
    for got, expected in zip(index.search(q, 5), fresh.search(q, 5)):
        np.testing.assert_array_equal(got, expected)


# ------------------------------------------------------------------ graphs

def interrupt_soon(seconds):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def interrupted_add(index, x, seconds):
    """Whether an interrupt came before the end of add."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = interrupt_soon(seconds)
    try:
        index.add(x)
        timer.join()
        time.sleep(0.05)
        return False
    except KeyboardInterrupt:
        return True
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("string", [
    "HNSW32,KFlat(js)", "IDMap2,HNSW32,KFlat(js)",
    "PCA64,HNSW16,KFlat(gaussian(gamma=1))"])
def test_an_interrupted_add_leaves_a_graph_as_it_was_or_unused(string):
    x = vectors(12000, 64)
    index = faiss.index_factory(64, string)
    index.train(x)
    add = (lambda v: index.add_with_ids(v, np.arange(len(v)))) \
        if string.startswith("IDMap") else index.add
    before = copy.deepcopy(index)

    class Adder:
        pass

    adder = Adder()
    adder.add = add
    if not interrupted_add(adder, x, 0.15):
        pytest.skip("the graph was built before the interrupt")
    # it was empty, and is as before
    assert index.ntotal == 0
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # several build a graph in any order
    add(x[:300])
    if string.startswith("IDMap"):
        before.add_with_ids(x[:300], np.arange(300))
    else:
        before.add(x[:300])
    faiss.omp_set_num_threads(threads)
    np.testing.assert_array_equal(
        index.search(x[:50], 3)[1], before.search(x[:50], 3)[1])

    # it was not, and says what to do
    if interrupted_add(adder, x, 0.15):
        for call in (lambda: index.search(x[:5], 1), lambda: add(x[:5]),
                     lambda: to_file(index), lambda: copy.deepcopy(index)):
            with pytest.raises(RuntimeError, match="incomplete"):
                call()
        if string.startswith("HNSW"):
            assert index.ntotal == 300
            index.rebuild()
            found = index.search(x[:300], 1)[1][:, 0]
            assert (found == np.arange(300)).mean() > 0.95
        index.reset()
        add(x[:300])
        assert index.ntotal == 300
        index.search(x[:50], 3)


def to_file(index):
    faiss.write_index(index, faiss.VectorIOWriter())


def test_a_kernel_that_fails_in_add_leaves_a_graph_as_it_was():
    x = vectors(200)
    graph = faiss_ext.IndexHNSWKernel(
        faiss_ext.IndexFlatKernel(D, failing(after=500)), 8)
    with pytest.raises(Mine):
        graph.add(x)
    assert graph.ntotal == 0 and graph.storage.ntotal == 0
    assert graph.graph_is_complete


# ---------------------------------------------------------------- overflow

@pytest.mark.parametrize("string", [
    "KFlat(poly(degree=8))", "KFlat(normalized(poly(degree=8)))",
    "HNSW8,KFlat(poly(degree=8))", "Flat,Refine(KFlat(poly(degree=8)))",
    "IDMap2,KFlat(poly(degree=8))", "SIK64(gaussian(gamma=1)),BFlat,Refine(KFlat(poly(degree=8)))"])
def test_kernels_that_overflow_are_an_error(string):
    big = np.floor(256 * vectors(50, 64)).astype("float32")
    small = big / 256
    index = faiss.index_factory(64, string)
    add = (lambda v: index.add_with_ids(v, np.arange(len(v)))) \
        if string.startswith("IDMap") else index.add
    index.train(small)
    add(small)
    before = index.search(small, 3)
    with pytest.raises(RuntimeError, match="overflows"):
        index.search(big, 3)
    np.testing.assert_array_equal(index.search(small, 3), before)
    with pytest.raises(RuntimeError, match="overflows"):
        faiss_ext.kernel_factory("poly(degree=8)").gram(big)
    if "Refine" not in string:  # there FAISS's own index comes first
        with pytest.raises(RuntimeError, match="overflows"):
            add(big)
        assert index.ntotal == 50


@pytest.mark.parametrize("power", [-135, -100, -70, 62, 100, 126])
def test_cosines_do_not_depend_on_lengths(power):
    x = vectors(300, 64) - 0.5
    expected = faiss_ext.kernel_factory("cosine").gram(x)
    # (below 2^-126 floats lose digits)
    tolerance = 2e-6 if power > -120 else 2e-2
    scaled = np.ldexp(x, power).astype("float32")
    assert np.isfinite(scaled).all()
    for other in (x, scaled):
        np.testing.assert_allclose(
            faiss_ext.kernel_factory("cosine").gram(scaled, other), expected,
            atol=tolerance)


@pytest.mark.parametrize("string", [
    "RHBE256", "RHBE256(proj=dense)", "RHBE256(proj=bilinear)"])
@pytest.mark.parametrize("power", [60, 64, 90, 120, 126])
def test_hyperplanes_do_not_depend_on_lengths(string, power):
    x = 1.9 * (vectors(40, 64) - 0.5)
    hash = faiss_ext.kernel_hash_factory(64, string)
    np.testing.assert_array_equal(
        hash.encode(np.ldexp(x, power).astype("float32")), hash.encode(x))


@pytest.mark.parametrize("string", [
    "BSIK64(4x4,gamma={})", "SIK64(gaussian,gamma={})",
    "SIK64(gaussian,gamma={},proj=dense)", "BSIK64(4x4,gamma={},w=dense)"])
def test_shift_invariant_codes_of_huge_vectors(string):
    # lengths and bandwidth by powers of 4 and 2: the same phases
    x = 1.9 * (vectors(40) - 0.5)
    expected = faiss_ext.kernel_hash_factory(D, string.format(1.0)).encode(x)
    assert len(np.unique(expected, axis=0)) == 40
    huge = np.ldexp(x, 126).astype("float32")
    hash = faiss_ext.kernel_hash_factory(D, string.format(repr(2.0**-252)))
    codes = hash.encode(huge)
    # the bandwidth's root is rounded: a bit may differ here and there
    assert np.unpackbits(codes ^ expected).mean() < 0.002


# ---------------------------------------------------------- slips of the hand

INDEX_STRINGS = ["SIK64(gaussian(gamma=1)),BFlat", "KFlat(chi2)"]


@pytest.mark.parametrize("call", [
    lambda ix: faiss.write_index(ix, None),
    lambda ix: faiss.write_index(None, "x"),
    lambda ix: faiss_ext.write_index(ix, None),
    lambda ix: faiss.read_index(None),
    lambda ix: faiss_ext.read_index(None),
    lambda ix: faiss_ext.read_index_binary(None),
    lambda ix: faiss.read_index_binary(None),
    lambda ix: faiss.read_VectorTransform(None),
    lambda ix: faiss.write_VectorTransform(
        faiss_ext.kernel_hash_factory(D, "RHBE64"), None),
    lambda ix: faiss.write_index_binary(
        faiss_ext.index_binary_factory(D, "RHBE64,BFlat"), None),
    lambda ix: faiss.clone_index(None)])
def test_none_is_an_error(call):
    for string in INDEX_STRINGS:
        with pytest.raises(TypeError, match="None"):
            call(faiss.index_factory(D, string))


@pytest.mark.parametrize("string", [
    "KFlat(chi2),Refine(KFlat(js))", "IDMap2,Flat,Refine(KFlat(chi2))",
    "SIK64(gaussian(gamma=1)),BFlat,Refine(KFlat(chi2))"])
def test_k_factor(string):
    index = faiss.index_factory(D, string)
    x = histograms(100)
    index.train(x)
    if string.startswith("IDMap"):
        index.add_with_ids(x, np.arange(100))
    else:
        index.add(x)
    refine = index.index if string.startswith("IDMap") else index
    for value in (0.5, -1, 0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="k_factor"):
            refine.k_factor = value
        # past Python
        fields = faiss.IndexRefine.k_factor.fset.without_faiss_ext
        fields(refine, value)
        with pytest.raises(RuntimeError, match="k_factor"):
            index.search(x[:5], 3)
    refine.k_factor = 50
    assert (index.search(x, 1)[1][:, 0] == np.arange(100)).all()


@pytest.mark.parametrize("id", [-1, 50, 2**40])
def test_reconstruction_of_ids_that_are_not_there(id):
    codes = np.random.default_rng(1).integers(0, 256, (50, 8), dtype="uint8")
    for index in (faiss_ext.index_binary_factory(64, "BFlat"),
                  faiss_ext.index_binary_factory(64, "BPerm"),
                  faiss_ext.index_binary_factory(D, "RHBE64,BFlat"),
                  faiss_ext.index_binary_factory(D, "RHBE64,BHNSW8")):
        index.add(codes)
        np.testing.assert_array_equal(index.reconstruct(7), codes[7])
        several = np.empty((5, 8), dtype="uint8")
        index.reconstruct_n(3, 5, faiss.swig_ptr(several))
        np.testing.assert_array_equal(several, codes[3:8])
        for call in (lambda: index.reconstruct(id),
                     lambda: index.reconstruct_n(id, 2, faiss.swig_ptr(several)),
                     lambda: index.reconstruct_n(49, 2, faiss.swig_ptr(several))):
            with pytest.raises(RuntimeError, match="50 vectors"):
                call()
    flat = faiss.index_factory(D, "KFlat(chi2)")
    flat.add(vectors(50))
    with pytest.raises(RuntimeError, match="50 vectors"):
        flat.reconstruct(id)


def test_empty_projections():
    for make in (faiss_ext.BilinearProjection, faiss_ext.DenseProjection,
                 faiss_ext.StructuredProjection):
        with pytest.raises(RuntimeError, match="empty"):
            make().apply(np.zeros((3, 0), "float32"))
    for shape in ((4, -1), (-1, 4), (0, 4)):
        with pytest.raises(RuntimeError, match="positive"):
            faiss_ext.DenseProjection(*shape)


def test_getters_that_are_properties_do_not_exist():
    for name, cls in vars(faiss_ext).items():
        if isinstance(cls, type):
            twins = [m for m in dir(cls) if m.startswith("get_")
                     and hasattr(cls, m[4:])]
            assert not twins, (name, twins)
    # parts outlive what they were taken from
    kernel = faiss_ext.kernel_hash_factory(D, "SIK64(gaussian,gamma=2)").kernel
    projection = faiss_ext.kernel_hash_factory(D, "RHBE64").projection
    junk = [faiss_ext.kernel_hash_factory(D, "RHBE64") for _ in range(20)]
    assert kernel.gamma == 2
    assert projection.apply(vectors(3)).shape == (3, 64)
    del junk


def test_merging_with_itself():
    x = vectors(20)
    for string in INDEX_STRINGS:
        index = faiss.index_factory(D, string)
        index.add(x)
        with pytest.raises(RuntimeError, match="itself"):
            index.merge_from(index, 0)
        assert index.ntotal == 20


# ---------------------------------------------------------------- settings

def test_settings_that_would_do_nothing_are_refused():
    sik = faiss_ext.kernel_hash_factory(D, "SIK64(gaussian)")
    sik.seed = 5  # not trained yet: it has an effect
    sik.train(vectors(200))
    other = faiss_ext.kernel_hash_factory(D, "SIK64(gaussian,seed=5)")
    other.train(vectors(200))
    np.testing.assert_array_equal(
        sik.encode(vectors(9)), other.encode(vectors(9)))
    with pytest.raises(AttributeError, match="no effect"):
        sik.seed = 6
    sik.verbose = True
    klsh = faiss_ext.kernel_hash_factory(D, "KLSH64(chi2,p=20)")
    klsh.map.rank = 5
    klsh.t = 7
    klsh.train(vectors(100))
    assert len(faiss.vector_to_array(klsh.map.eigenvalues)) == 5
    with pytest.raises(AttributeError, match="no effect"):
        klsh.map.rank = 6
    with pytest.raises(AttributeError, match="no effect"):
        klsh.t = 6
    for string in ("RHBE64", "RHBE64(center=1)", "AHK64(chi2,center=1)"):
        hash = faiss_ext.kernel_hash_factory(D, string)
        for name, value in (("center", True), ("seed", 3)):
            with pytest.raises(AttributeError, match=name):
                setattr(hash, name, value)


@pytest.mark.parametrize("make, name, bad", [
    (lambda: faiss_ext.kernel_hash_factory(D, "KLSH64(chi2,p=20)"), "t", -1),
    (lambda: faiss_ext.kernel_hash_factory(D, "KLSH64(chi2,p=20)"), "t", 20),
    (lambda: faiss_ext.kernel_hash_factory(D, "KLSH64(chi2)"), "draw", "even"),
    (lambda: faiss_ext.kernel_hash_factory(D, "KLSH64(chi2)").map, "p", 1),
    (lambda: faiss_ext.kernel_hash_factory(D, "KLSH64(chi2)").map, "scale", -1),
    (lambda: faiss_ext.map_factory(D, "KPCA4(chi2)"), "tolerance", 1),
    (lambda: faiss_ext.kernel_hash_factory(D, "SIK64(gaussian)"), "seed", -1),
    (lambda: faiss_ext.kernel_hash_factory(D, "BSIK64"), "seed", -1),
    (lambda: faiss_ext.map_factory(D, "HKM1(chi2)"), "norm", "l2"),
    (lambda: faiss_ext.kernel_factory("poly"), "degree", 0),
    (lambda: faiss_ext.kernel_factory("matern"), "nu", 30),
    (lambda: faiss_ext.kernel_factory("exponential(cosine,scale=1)"), "scale",
     -1),
])
def test_settings_out_of_range_leave_the_old_value(make, name, bad):
    thing = make()
    before = getattr(thing, name)
    with pytest.raises(ValueError, match=rf"{name}.*{bad}"):
        setattr(thing, name, bad)
    assert getattr(thing, name) == before
    setattr(thing, name, before)


def test_parts_of_hashes_are_set_before_training():
    x = vectors(100)
    klsh = faiss_ext.kernel_hash_factory(D, "KLSH64(chi2)")
    klsh.map.p, klsh.map.scale, klsh.map.seed, klsh.draw = 30, 2, 5, "gauss"
    klsh.map.nystrom, klsh.map.center, klsh.map.tolerance = True, False, 0.01
    klsh.train(x)
    same = faiss_ext.kernel_hash_factory(
        D, "KLSH64(chi2,p=30,scale=2,seed=5,draw=gauss,nystrom=1,center=0,"
        "tolerance=0.01)")
    same.train(x)
    np.testing.assert_array_equal(klsh.encode(x), same.encode(x))
    for negative, norm in (("sign", "none"), ("error", "l1"), ("sign", "l1")):
        map = faiss_ext.map_factory(D, "HKM1(chi2)")
        map.negative, map.norm = negative, norm
        same = faiss_ext.map_factory(
            D, f"HKM1(chi2,negative={negative},norm={norm})")
        z = x - 0.5 if negative == "sign" else x
        np.testing.assert_array_equal(map.apply(z), same.apply(z))


@pytest.mark.parametrize("make, name, near", [
    (lambda: faiss_ext.kernel_factory("matern"), "gama", "gamma"),
    (lambda: faiss_ext.kernel_hash_factory(D, "KLSH64(chi2)"), "drawn", "draw"),
    (lambda: faiss_ext.kernel_hash_factory(D, "KLSH64(chi2)").map, "scales",
     "scale"),
    (lambda: faiss_ext.map_factory(D, "KPCA4(chi2)"), "toleranc", "tolerance"),
    (lambda: faiss_ext.index_binary_factory(64, "BPerm"), "ep", "eps"),
    (lambda: faiss.index_factory(D, "KFlat(chi2)"), "verbos", "verbose"),
    (lambda: faiss.index_factory(D, "HNSW8,KFlat(chi2)"), "hnws", "hnsw"),
    (lambda: faiss.index_factory(D, "RHBE64,BFlat"), "own_field", "own_fields"),
])
def test_misspelt_attributes(make, name, near):
    with pytest.raises(AttributeError, match=re.escape(repr(near))):
        setattr(make(), name, 1)


@pytest.mark.parametrize("name", ["ntotal", "d"])
def test_counts_are_read_only(name):
    for string in (*INDEX_STRINGS, "HNSW8,KFlat(chi2)"):
        index = faiss.index_factory(D, string)
        index.add(vectors(10))
        with pytest.raises(AttributeError, match="read-only"):
            setattr(index, name, 10**6)
        assert index.search(vectors(10), 1)[1].shape == (10, 1)


def test_sorted_lists_check_their_settings():
    index = faiss_ext.index_binary_factory(64, "BPerm")
    codes = np.random.default_rng(1).integers(0, 256, (50, 8), dtype="uint8")
    index.add(codes)
    for name, bad, good in (("B", -5, 10), ("eps", 0, 0.5), ("M", -1, 0)):
        setattr(index, name, bad)
        with pytest.raises(RuntimeError, match=name):
            index.search(codes, 1)
        setattr(index, name, good)
    assert (index.search(codes, 1)[0] == 0).all()


# --------------------------------------------------------------- arguments

WRAPPED = [
    "SIK64(gaussian(gamma=1)),BFlat,Refine(KFlat(chi2))",
    "IDMap2,KFlat(chi2)", "HNSW8,KFlat(chi2)", "PCA8,KFlat(gaussian(gamma=1))",
    "HKM1(chi2),Flat", "KFlat(chi2)", "RHBE64,BFlat"]


@pytest.mark.parametrize("string", WRAPPED)
def test_wrappers_check_arguments(string):
    index = faiss.index_factory(D, string)
    x = vectors(50)
    index.train(x.tolist())  # lists are arrays
    ids = np.arange(50) + 100
    if string.startswith("IDMap"):
        index.add_with_ids(x.tolist(), ids.tolist())
        with pytest.raises(ValueError, match="50 ids"):
            index.add_with_ids(x, ids[:7])
    else:
        index.add(x.tolist())
    D1, I1 = index.search(x[:5].tolist(), 3)
    D2, I2 = index.search(x[:5], np.int64(3))
    np.testing.assert_array_equal(I1, I2)
    for bad, error in [
            (x[0], ValueError), (x[:, :5], ValueError), (x[None], ValueError),
            ("text", ValueError), ([["a"] * D], TypeError),
            (x.astype(complex), TypeError), (None, ValueError)]:
        for call in (lambda: index.search(bad, 3), lambda: index.add(bad),
                     lambda: index.search(x=bad, k=3)):
            with pytest.raises(error, match="expected"):
                call()
    for k in ("3", 2.5, None):
        with pytest.raises(TypeError, match="k must be a positive integer"):
            index.search(x, k)
    for k in (0, -1):
        with pytest.raises(ValueError, match="k must be positive"):
            index.search(x, k)


def test_binary_wrappers_check_arguments():
    index = faiss.index_binary_factory(D, "IDMap2,RHBE64,BFlat")
    x = vectors(20)
    index.add_with_ids(x, np.arange(20))
    for bad in (x[:, :3], x[0], np.zeros((3, 5), "uint8")):
        with pytest.raises(ValueError, match="shape"):
            index.search(bad, 3)
    with pytest.raises(TypeError, match="k must be"):
        index.search(x, "3")


# ---------------------------------------------------------------- messages

def test_messages_begin_with_what_is_wrong():
    index = faiss.index_factory(D, "KFlat(gaussian)")
    for call in (lambda: index.add(vectors(3)),
                 lambda: faiss_ext.kernel_factory("gausian"),
                 lambda: index.train(np.full((3, D), np.nan, "float32")),
                 lambda: faiss_ext.kernel_factory("matern(nu=1)").gram(
                     vectors(2))):
        with pytest.raises(RuntimeError) as caught:
            call()
        message = str(caught.value)
        first = message.splitlines()[0]
        assert not re.match(r"Error|.* failed", first), message
        assert "src/" not in first and "(" not in first.split(":")[0], message


@pytest.mark.parametrize("text", ["SIK64(gau\x00ss)", "\x00", "SIK\x0064(gaussian),BFlat"])
def test_strings_with_zeros_do_not_cut_their_message(text):
    for make in (faiss_ext.kernel_factory,
                 lambda s: faiss_ext.kernel_hash_factory(D, s)):
        with pytest.raises(RuntimeError, match=r"\\x00") as caught:
            make(text)
        assert "^" in str(caught.value)


def test_damaged_files_give_messages_of_text():
    writer = faiss.VectorIOWriter()
    faiss.write_index(faiss.index_factory(D, "SIK64(gaussian,gamma=1),BFlat"), writer)
    data = faiss.vector_to_array(writer.data)
    for i in range(len(data)):
        for value in (0xff, 0x80, 0):
            if i > 200 and i % 17:
                continue
            damaged = data.copy()
            damaged[i] = value
            reader = faiss.VectorIOReader()
            faiss.copy_array_to_vector(damaged, reader.data)
            try:
                faiss_ext.read_index(reader)
            except (RuntimeError, MemoryError) as error:  # no UnicodeDecodeError
                assert str(error)


def test_files_of_another_kind_say_what_reads_them(tmp_path):
    name = str(tmp_path / "file")
    binary = faiss.index_binary_factory(D, "RHBE64,BFlat")
    for write, thing, reader, others in [
            (faiss.write_index_binary, binary, "read_index_binary",
             (faiss.read_index, faiss.read_VectorTransform)),
            (faiss.write_index, faiss.index_factory(D, "RHBE64,BFlat"),
             "read_index", (faiss.read_index_binary, faiss.read_VectorTransform)),
            (faiss.write_VectorTransform, binary.hash, "read_VectorTransform",
             (faiss.read_index, faiss.read_index_binary))]:
        write(thing, name)
        for other in others:
            with pytest.raises(RuntimeError, match=f"read by {reader}\\b"):
                other(name)


# ----------------------------------------------------------------- strings

@pytest.mark.parametrize("spaced, plain", [
    ("SIK512 (gaussian , gamma = 2), BFlat", "SIK512(gaussian,gamma=2),BFlat"),
    (" KFlat( chi2 ) ", "KFlat(chi2)"),
    ("IDMap2 , HNSW8 ,\n KFlat(chi2)", "IDMap2,HNSW8,KFlat(chi2)")])
def test_spaces_around_punctuation(spaced, plain):
    x = vectors(40)
    found = []
    for string in (spaced, plain):
        index = faiss.index_factory(D, string)
        if "IDMap" in string:
            index.add_with_ids(x, np.arange(40))
        else:
            index.add(x)
        found.append(index.search(x, 4))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_flags():
    x = vectors(30)
    codes = {}
    for value in ("0", "1", "false", "true"):
        hash = faiss_ext.kernel_hash_factory(D, f"RHBE64(center={value})")
        hash.train(x)
        codes[value] = hash.encode(x).tobytes()
    assert codes["0"] == codes["false"] != codes["1"] == codes["true"]
    with pytest.raises(RuntimeError, match="accepted here: 0, 1, false, true"):
        faiss_ext.kernel_hash_factory(D, "RHBE64(center=yes)")


@pytest.mark.parametrize("string, said", [
    ("IVF16,KFlat(gaussian)", "IVF16 cannot have KFlat"),
    ("L2norm,IDMap,KFlat(chi2)", "IDMap must come first"),
    ("PCA8,IDMap2,RHBE64,BFlat", "IDMap2 must come first"),
    ("Nonsense,KFlat(chi2)", "not a transformation")])
def test_what_cannot_stand_in_front_says_why(string, said):
    with pytest.raises(RuntimeError, match=re.escape(said)):
        faiss.index_factory(D, string)


# ------------------------------------------------------------------ theory

def test_theory_takes_rounded_kernel_values():
    for string in ("SIK64(gaussian,gamma=1)", "BSIK64(4x4,gamma=1)", "RHBE64",
                   "AHK64(chi2)", "SCR64"):
        hash = faiss_ext.kernel_hash_factory(D, string)
        for value in (1.00001, 1.0):
            assert hash.expected_hamming(value) == pytest.approx(0, abs=1e-9)
        with pytest.raises(RuntimeError, match="kernel value"):
            hash.expected_hamming(1.01)
    assert faiss_ext.ShiftInvariantHash.lower_bound(1.00001) == 0
    upper = faiss_ext.ShiftInvariantHash.upper_bound(-1e-5)
    assert upper == pytest.approx(4 / np.pi**2)


def test_largest_seeds():
    for string in ("KLSH64(chi2,p=20,seed={})", "SIK64(gaussian,gamma=1,seed={})",
                   "RHBE64(seed={})", "KLSH64(chi2,p=20,rank=auto,seed={})"):
        hash = faiss_ext.kernel_hash_factory(D, string.format(2**63 - 1))
        hash.train(vectors(300))
        other = faiss_ext.kernel_hash_factory(D, string.format(2**63 - 2))
        other.train(vectors(300))
        assert hash.encode(vectors(9)).tobytes() != other.encode(vectors(9)).tobytes()


def test_bandwidths_too_large_for_codes():
    for string in ("SIK64(gaussian,gamma=1e100)", "BSIK64(4x4,gamma=1e100)"):
        with pytest.raises(RuntimeError, match="too large"):
            faiss_ext.kernel_hash_factory(D, string)


def test_queries_of_auto_are_held_out():
    x = vectors(200)
    hash = faiss_ext.kernel_hash_factory(D, "KLSH64(chi2,p=200,rank=auto)")
    with pytest.raises(RuntimeError, match="not landmarks"):
        hash.train(x)
    given = faiss_ext.kernel_hash_factory(D, "KLSH64(chi2,rank=auto)")
    given.set_landmarks(x)
    with pytest.raises(RuntimeError, match="not landmarks"):
        given.train(x)
    hash.train(np.concatenate([x, vectors(50, seed=3)]))
    assert hash.is_trained


# ------------------------------------------------------- what a review found

@pytest.mark.parametrize("front", [
    "SIK64(gaussian(gamma=1)),BFlat", "Flat", "HNSW8,KFlat(linear)",
    "RHBE64,BHash16", "IVF2,Flat"])
def test_a_refused_add_to_refine_changes_nothing(front):
    x = vectors(100)
    index = faiss.index_factory(D, front + ",Refine(KFlat(chi2))")
    index.train(x)
    index.add(x)
    before = index.search(x[:9], 3)
    for bad in (-x, np.full_like(x, np.nan)):
        with pytest.raises(RuntimeError, match="component"):
            index.add(bad)
        assert index.ntotal == index.base_index.ntotal == 100
        assert index.refine_index.ntotal == 100
    for got, expected in zip(index.search(x[:9], 3), before):
        np.testing.assert_array_equal(got, expected)
    index.add(x)
    assert index.ntotal == 200


def test_an_add_that_cannot_be_taken_back_says_so():
    x = vectors(50)
    index = faiss.index_factory(D, "Flat,Refine(KFlat(chi2))")
    index.add(x)
    index.base_index.add(x)  # as if it had failed half-way
    for call in (lambda: index.search(x, 1), lambda: index.add(x)):
        with pytest.raises(RuntimeError, match="reset the index"):
            call()
    index.reset()
    index.add(x)
    assert (index.search(x, 1)[1][:, 0] == np.arange(50)).all()


def test_training_of_refine_is_one_transaction():
    few = np.repeat(histograms(31), 100, axis=0)
    good = histograms(1000, seed=4)
    string = "KLSH64(chi2,p=30),BFlat,Refine(KFlat(gaussian))"
    index, fresh = (faiss.index_factory(D, string) for _ in range(2))
    with pytest.raises(RuntimeError, match="bandwidth"):
        index.train(few)
    for ix in (index, fresh):
        ix.train(good)
    np.testing.assert_array_equal(index.base_index.hash.encode(good),
                                  fresh.base_index.hash.encode(good))
    assert index.refine_index.kernel.gamma == fresh.refine_index.kernel.gamma
    # and the other way round
    string = "SIK64(gaussian),BIVF100,Refine(KFlat(gaussian))"
    index = faiss.index_factory(D, string)
    with pytest.raises(RuntimeError):
        index.train(good[:60])
    assert index.refine_index.kernel.description() == "gaussian"
    index.train(good)


def test_subclasses_have_attributes_of_their_own():
    class My(faiss_ext.IndexFlatKernel):
        def __init__(self, *args):
            super().__init__(*args)
            self.extra = 5

    index = My(D, faiss_ext.LinearKernel())
    index._hidden = 6
    assert index.extra + index._hidden == 11
    with pytest.raises(AttributeError, match="read-only"):
        index.ntotal = 3


def test_graphs_check_their_constructor():
    with pytest.raises(RuntimeError, match="null"):
        faiss_ext.IndexHNSWKernel(None)
    for m in (-1, 0, 1, 10**6):
        with pytest.raises(RuntimeError, match="M is"):
            faiss_ext.IndexHNSWKernel(
                faiss_ext.IndexFlatKernel(8, faiss_ext.LinearKernel()), m)


def test_reconstruction_of_ranges_that_are_not_there():
    for string in ("HNSW8,KFlat(linear)", "Flat,Refine(KFlat(linear))",
                   "KFlat(linear)"):
        index = faiss.index_factory(D, string)
        x = vectors(50)
        index.add(x)
        np.testing.assert_array_equal(index.reconstruct_n(40, 10), x[40:])
        for first, n in ((48, 5), (-1, 3), (50, 1)):
            with pytest.raises(RuntimeError, match="50 vectors"):
                index.reconstruct_n(first, n)


def test_more_slips():
    for function in (faiss.index_factory, faiss.index_binary_factory,
                     faiss_ext.index_binary_factory):
        with pytest.raises((TypeError, ValueError)):
            function(64, None)
    hash = faiss_ext.kernel_hash_factory(64, "RHBE64(proj=bilinear,shape=8x8)")
    for name in ("d_w", "d_v", "m", "d_in"):
        with pytest.raises(AttributeError, match="read-only"):
            setattr(hash.projection, name, 100)
    flat = faiss.index_factory(D, "KFlat(gaussian)")
    flat.is_trained = True
    flat.add(vectors(3))
    with pytest.raises(RuntimeError, match="train"):
        flat.search(vectors(1), 1)


@pytest.mark.parametrize("string", ["BFlat", "BPerm"])
def test_binary_indexes_check_arguments(string):
    codes = np.random.default_rng(1).integers(0, 256, (50, 8), dtype="uint8")
    index = faiss_ext.index_binary_factory(64, string)
    index.add(codes)
    assert index.search(codes, np.int32(2))[1].shape == (50, 2)
    for bad, error in ((codes[:, :3], ValueError), (codes[0], ValueError),
                       (codes.tolist(), TypeError), (vectors(3, 8), TypeError),
                       (None, TypeError)):
        for call in (index.add, lambda c: index.search(c, 1),
                     lambda c: index.range_search(c, 3)):
            with pytest.raises(error, match="codes"):
                call(bad)
    with pytest.raises(TypeError, match="k must be"):
        index.search(codes, "3")
    with pytest.raises(ValueError, match="k must be positive"):
        index.search(codes, 0)
