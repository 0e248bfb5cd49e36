# SPDX-License-Identifier: MIT
"""What goes wrong in users' hands: slips, wrong types, failures half-way.

Each gives an error that says what was wrong, and leaves the object usable.
"""

import ast
import copy
import gc
import inspect
import re
import subprocess
import sys
import time
import weakref

import faiss
import faiss_ext
import numpy as np
import pytest
from faiss_ext import errors
from helpers import ROOT, assert_equal, is_interrupted

D = 16
GAUSSIAN = "SIK64(gaussian(gamma=1))"


def vectors(n, d=D, seed=1):
    return np.random.default_rng(seed).random((n, d), dtype="float32")


def histograms(n, seed=1):
    x = vectors(n, seed=seed)
    return x / x.sum(axis=1, keepdims=True)


def binary_codes(n=50):
    return np.random.default_rng(1).integers(0, 256, (n, 8), dtype="uint8")


def add(index, x):
    """Adds vectors, by ids where the index wants them."""
    if isinstance(index, faiss.IndexIDMap):
        index.add_with_ids(x, np.arange(len(x)) + index.ntotal)
    else:
        index.add(x)


def filled(string, x):
    index = faiss.index_factory(x.shape[1], string)
    index.train(x)
    add(index, x)
    return index


# --------------------------------------------------------------- callbacks

class Mine(Exception):
    """An exception that only a test knows."""


DEADLOCK = """
import faulthandler
faulthandler.dump_traceback_later(60, exit=True)
import faiss, faiss_ext, numpy as np

def fail(x, y):
    raise ZeroDivisionError("in a callback")

x = np.random.rand(40, 16).astype("float32")
for group in (faiss.IndexShards, faiss.IndexReplicas):
    for i in range(40):
        args = (16, True, True) if group is faiss.IndexShards else (16, True)
        index, kernel = group(*args), faiss_ext.CallbackKernel(fail)
        parts = [faiss_ext.IndexFlatKernel(16, kernel) for _ in range(2)]
        for part in parts:
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
ONE_CORE = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"


@pytest.mark.parametrize("prefix, variables", [
    (ONE_CORE, {"OMP_NUM_THREADS": "1"}), ("", {})])
def test_threaded_shards_over_failing_callbacks_do_not_deadlock(
        run_python, prefix, variables):
    assert run_python(prefix + DEADLOCK, **variables) == "done\n"


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("error", [
    Mine("grüße \udc80 \x00 end"), KeyboardInterrupt(), SystemExit(3)])
def test_a_callbacks_exception_comes_out_of_every_index(threaded, error):
    def function(x, y):
        if fails:
            raise error
        return x @ y.T

    x = vectors(20)
    kernel = faiss_ext.CallbackKernel(function)
    codes = faiss.index_factory(D, "RHBE64,BFlat")
    for make in (lambda flat: flat, lambda flat: faiss_ext.IndexHNSWKernel(flat, 8),
                 lambda flat: faiss_ext.IndexIDTable(flat), lambda flat: faiss_ext.IndexRefineKernel(codes, flat),
                 lambda flat: faiss_ext.IndexPreTransformSIMD(flat)):
        fails = []
        codes.reset()
        codes.train(x)
        index = make(faiss_ext.IndexFlatKernel(D, kernel))
        add(index, x)
        fails.append(True)
        calls = [lambda: index.search(x, 3), lambda: index.search(x[:1], 3)]
        if isinstance(index, faiss.IndexHNSW):
            calls.append(lambda: index.add(x))
        for call in calls:
            with pytest.raises(type(error)) as caught:
                call()
            assert caught.value is error
            assert caught.traceback[-1].name == "function"  # where it was raised


def test_references_of_callbacks_are_let_go_of():
    class Big:
        pass

    big = Big()
    seen = weakref.ref(big)

    def function(x, y, big=big):
        raise Mine(big)

    kernel = faiss_ext.CallbackKernel(function)
    index = faiss_ext.IndexFlatKernel(D, kernel)
    index.add(vectors(5))
    for call in (lambda: index.search(vectors(2), 1), lambda: kernel.gram(vectors(2))):
        with pytest.raises(Mine):
            call()
    del index, kernel, call, function, big
    # the interpreter lets go of what C++ has left to it when it next looks
    end = time.monotonic() + 600  # after which it never will
    while seen() is not None and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
    assert seen() is None


# ------------------------------------------------------------------ graphs

@pytest.mark.parametrize("string", [
    "HNSW32,KFlat(js)", "IDMap2,PCA64,HNSW16,KFlat(gaussian(gamma=1))"])
def test_an_interrupted_add_leaves_a_graph_as_it_was(string):
    x = vectors(30_000, 64)
    index = faiss.index_factory(64, string)
    index.train(x[:6000])
    before = copy.deepcopy(index)
    if not is_interrupted(lambda: add(index, x), 0.15) or index.ntotal == len(x):
        pytest.skip("the graph was built before the interrupt")
    # it was empty, and is as before
    assert index.ntotal == 0
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # several build a graph in any order
    for each in (index, before):
        add(each, x[:300])
    faiss.omp_set_num_threads(threads)
    assert_equal(index.search(x[:50], 3), before.search(x[:50], 3))

    # it was not, and has the same vectors as before
    for each in (index, before):
        faiss_ext.set_index_parameter(each, "efSearch", 1000)
    expected = before.search(x[:50], 3)
    if is_interrupted(lambda: add(index, x), 0.15) and index.ntotal == 300:
        assert_equal(index.search(x[:50], 3), expected)
        assert_equal(copy.deepcopy(index).search(x[:50], 3), expected)
        add(index, x[300:600])
        assert index.ntotal == 600
        assert (index.search(x[:600], 1)[1][:, 0] == np.arange(600)).mean() > 0.95


# ------------------------------------------------------------------ refine

@pytest.mark.parametrize("string", [
    "KFlat(chi2),Refine(KFlat(js))", "IDMap2,Flat,Refine(KFlat(chi2))",
    f"{GAUSSIAN},BFlat,Refine(KFlat(chi2))"])
def test_k_factor(string):
    x = histograms(100)
    index = filled(string, x)
    refine = index.index if string.startswith("IDMap") else index
    for value in (0.5, -1, 0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="k_factor"):
            refine.k_factor = value
        # past Python
        faiss.IndexRefine.k_factor.fset(refine, value)
        with pytest.raises(RuntimeError, match="k_factor"):
            index.search(x[:5], 3)
    refine.k_factor = 50
    assert (index.search(x, 1)[1][:, 0] == np.arange(100)).all()


@pytest.mark.parametrize("front", [
    f"{GAUSSIAN},BFlat", "Flat", "HNSW8,KFlat(linear)", "RHBE64,BHash16",
    "IVF2,Flat"])
def test_a_refused_add_to_refine_changes_nothing(front):
    x = vectors(100)
    index = filled(front + ",Refine(KFlat(chi2))", x)
    before = index.search(x[:9], 3)
    for bad in (-x, np.full_like(x, np.nan)):
        with pytest.raises(RuntimeError, match="component"):
            index.add(bad)
        for part in (index, index.base_index, index.refine_index):
            assert part.ntotal == 100
    assert_equal(index.search(x[:9], 3), before)
    index.add(x)
    assert index.ntotal == 200
    index.base_index.add(x)  # as if an add had failed half-way
    for call in (lambda: index.search(x, 1), lambda: index.add(x)):
        with pytest.raises(RuntimeError, match="reset the index"):
            call()
    index.reset()
    index.add(x)
    assert index.search(x, 1)[1].max() < 100


def test_training_of_refine_is_one_transaction():
    few = np.repeat(histograms(31), 100, axis=0)
    good = histograms(1000, seed=4)
    string = "KLSH64(chi2,p=30),BFlat,Refine(KFlat(gaussian))"
    index, fresh = (faiss.index_factory(D, string) for _ in range(2))
    with pytest.raises(RuntimeError, match="bandwidth"):
        index.train(few)
    for each in (index, fresh):
        each.train(good)
    np.testing.assert_array_equal(index.base_index.hash.encode(good),
                                  fresh.base_index.hash.encode(good))
    assert index.refine_index.kernel.gamma == fresh.refine_index.kernel.gamma
    # and the other way round
    index = faiss.index_factory(D, "SIK64(gaussian),BIVF100,Refine(KFlat(gaussian))")
    kernel = index.base_index.hash.kernel
    with pytest.raises(RuntimeError):
        index.train(good[:60])
    assert index.refine_index.kernel.description() == "gaussian"
    assert kernel.description() == "gaussian"  # it is still the hash's own
    index.train(good)
    assert kernel.gamma == index.base_index.hash.kernel.gamma


# ---------------------------------------------------------- slips of the hand

def test_none_is_an_error():
    index = faiss.index_factory(D, "RHBE64,BFlat")
    binary = faiss.index_binary_factory(D, "RHBE64,BFlat")
    for function, arguments in (
            (faiss.write_index, (index, None)),
            (faiss_ext.write_index, (index, None)), (faiss.read_index, (None,)),
            (faiss_ext.read_index, (None,)), (faiss.clone_index, (None,)),
            (faiss.read_index_binary, (None,)), (faiss_ext.read_index_binary, (None,)),
            (faiss.write_index_binary, (binary, None)),
            (faiss.read_VectorTransform, (None,)),
            (faiss.write_VectorTransform, (index.hash, None))):
        with pytest.raises(TypeError, match="None"):
            function(*arguments)


def test_reconstruction_of_ids_that_are_not_there():
    x, codes = vectors(50), binary_codes()
    for index, rows in (
            (filled("HNSW8,KFlat(linear)", x), x),
            (filled("Flat,Refine(KFlat(linear))", x), x),
            (filled("KFlat(linear)", x), x),
            (faiss_ext.index_binary_factory(64, "BFlat"), codes),
            (faiss_ext.index_binary_factory(D, "RHBE64,BHNSW8"), codes)):
        if rows is codes:
            getattr(index, "add_codes", index.add)(codes)
        np.testing.assert_array_equal(index.reconstruct(7), rows[7])
        for first, n in ((48, 5), (-1, 3), (50, 1), (2**40, 1)):
            with pytest.raises(RuntimeError, match="50 vectors"):
                index.reconstruct_n(first, n)
        for id in (-1, 50, 2**40):
            with pytest.raises(RuntimeError, match="50 vectors"):
                index.reconstruct(id)


def test_getters_that_are_properties_do_not_exist():
    for name, cls in vars(faiss_ext).items():
        if isinstance(cls, type):
            twins = [m for m in dir(cls) if m[:4] == "get_" and hasattr(cls, m[4:])]
            assert not twins, (name, twins)


def test_a_flag_set_by_hand_and_an_index_merged_into_itself():
    flat = faiss.index_factory(D, "KFlat(gaussian)")
    flat.is_trained = True
    flat.add(vectors(3))
    with pytest.raises(RuntimeError, match="train"):
        flat.search(vectors(1), 1)
    with pytest.raises(RuntimeError, match="itself"):
        flat.merge_from(flat, 0)


def test_theory_takes_rounded_kernel_values():
    for string in ("SIK64(gaussian,gamma=1)", "RHBE64", "AHK64(chi2)", "AHK64(chi2,rot=itq)", "RHBE64(rot=itq)", "SCR64"):
        hash = hash_of(string)
        for value in (1.00001, 1.0):
            assert hash.expected_hamming(value) == pytest.approx(0, abs=1e-9)
        for theory in (hash.expected_hamming, hash.hamming_bounds):
            with pytest.raises(RuntimeError, match="kernel value"):
                theory(1.01)
    hash = hash_of("SIK64(gaussian,gamma=1)")
    assert hash.hamming_bounds(1.00001) == (0, 0)
    assert hash.hamming_bounds(-1e-5)[1] == pytest.approx(64 * 4 / np.pi**2)


def test_spaces_around_punctuation():
    x = vectors(40)
    for spaced in ("SIK64 (gaussian , gamma = 2), BFlat", " IDMap2 , KFlat( chi2 )\n"):
        plain = re.sub(r"\s", "", spaced)
        assert_equal(filled(spaced, x).search(x, 4), filled(plain, x).search(x, 4))


# ---------------------------------------------------------------- settings

def klsh(keys="chi2,p=20"):
    return hash_of(f"KLSH64({keys})")


def hash_of(string):
    return faiss_ext.kernel_hash_factory(D, string)


def test_settings_that_would_do_nothing_are_refused():
    sik, other = hash_of("SIK64(gaussian)"), hash_of("SIK64(gaussian,seed=5)")
    sik.seed = 5  # not trained yet: it has an effect
    hash, same = klsh("chi2"), klsh("chi2,p=30,scale=2,seed=5,draw=gauss,nystrom=1,"
                                    "center=0,tolerance=0.01,normalize=0")
    hash.map.p, hash.map.scale, hash.map.seed, hash.draw = 30, 2, 5, "gauss"
    hash.map.nystrom, hash.map.center, hash.map.tolerance = True, False, 0.01
    hash.map.normalize = False
    for one, two in ((sik, other), (hash, same)):
        for each in (one, two):
            each.train(vectors(100))
            each.verbose = True
        np.testing.assert_array_equal(one.encode(vectors(9)), two.encode(vectors(9)))
    for thing, name in ((sik, "seed"), (hash.map, "rank"), (hash, "t")):
        with pytest.raises(AttributeError, match=rf"{name} cannot be changed"):
            setattr(thing, name, 6)
    for string in ("RHBE64(center=1)", "AHK64(chi2,center=1)"):
        for name, value in (("center", True), ("seed", 3)):
            with pytest.raises(AttributeError, match=name):
                setattr(hash_of(string), name, value)


MAKE = {
    "klsh": klsh,
    "map of klsh": lambda: klsh().map,
    "sik": lambda: hash_of("SIK64(gaussian)"),
    "bsik": lambda: hash_of("BSIK64"),
    "rff": lambda: faiss_ext.map_factory(D, "RFF64(gaussian)"),
    "kpca": lambda: faiss_ext.map_factory(D, "KPCA4(chi2)"),
    "hkm": lambda: faiss_ext.map_factory(D, "HKM1(chi2)"),
    "poly": lambda: faiss_ext.kernel_factory("poly"),
    "matern": lambda: faiss_ext.kernel_factory("matern"),
    "exponential": lambda: faiss_ext.kernel_factory("exponential(cosine,scale=1)"),
    "BPerm": lambda: faiss_ext.index_binary_factory(64, "BPerm"),
    "flat": lambda: faiss.index_factory(D, "KFlat(chi2)"),
    "graph": lambda: faiss.index_factory(D, "HNSW8,KFlat(chi2)"),
    "codes": lambda: faiss.index_factory(D, "RHBE64,BFlat"),
    "bilinear": lambda: hash_of("RHBE64(proj=bilinear,shape=4x4)").projection,
}


@pytest.mark.parametrize("make, name, bad", [
    ("klsh", "t", -1), ("klsh", "t", 20), ("klsh", "draw", "even"),
    ("map of klsh", "p", 1), ("map of klsh", "scale", -1),
    ("kpca", "tolerance", 1), ("kpca", "p", 8193), ("kpca", "p", 3),  # rank is 4
    ("kpca", "scale", float("nan")), ("sik", "seed", -1), ("bsik", "seed", -1),
    ("hkm", "norm", "l2"), ("poly", "degree", 0), ("matern", "nu", 30),
    ("exponential", "scale", -1)])
def test_settings_out_of_range_leave_the_old_value(make, name, bad):
    thing = MAKE[make]()
    before = getattr(thing, name)
    with pytest.raises(ValueError, match=rf"{name}.*{bad}"):
        setattr(thing, name, bad)
    assert getattr(thing, name) == before
    setattr(thing, name, before)


@pytest.mark.parametrize("make, name, near", [
    ("matern", "gama", "gamma"), ("klsh", "drawn", "draw"),
    ("map of klsh", "scales", "scale"), ("kpca", "toleranc", "tolerance"),
    ("BPerm", "ep", "eps"), ("flat", "verbos", "verbose"),
    ("graph", "hnws", "hnsw"), ("codes", "own_field", "own_fields")])
def test_misspelt_attributes(make, name, near):
    with pytest.raises(AttributeError, match=re.escape(repr(near))):
        setattr(MAKE[make](), name, 1)


def test_counts_are_read_only_and_subclasses_have_attributes_of_their_own():
    for make, names in (("codes", ("ntotal", "d")), ("flat", ("ntotal", "d")),
                        ("graph", ("ntotal", "d")), ("hkm", ("order", "period")),
                        ("bilinear", ("d_w", "d_v", "m", "d_in")),
                        ("rff", ("dims", "kernel", "proj", "projection"))):
        thing = MAKE[make]()
        for name in names:
            with pytest.raises(AttributeError, match=name):
                setattr(thing, name, 100)

    class My(faiss_ext.IndexFlatKernel):
        def __init__(self, *args):
            super().__init__(*args)
            self.extra = 5

    index = My(D, faiss_ext.LinearKernel())
    index._hidden = 6
    assert index.extra + index._hidden == 11
    with pytest.raises(AttributeError, match="read-only"):
        index.ntotal = 3


# --------------------------------------------------------------- arguments

@pytest.mark.parametrize("string", [
    f"{GAUSSIAN},BFlat,Refine(KFlat(chi2))", "IDMap2,KFlat(chi2)",
    "HNSW8,KFlat(chi2)", "PCA8,KFlat(gaussian(gamma=1))", "HKM1(chi2),Flat",
    "KFlat(chi2)", "RHBE64,BFlat"])
def test_wrappers_check_arguments(string):
    index = faiss.index_factory(D, string)
    x = vectors(50)
    index.train(x.tolist())  # lists are arrays
    if string.startswith("IDMap"):
        index.add_with_ids(x.tolist(), list(range(50)))
        with pytest.raises(ValueError, match="50 ids"):
            index.add_with_ids(x, np.arange(7))
    else:
        index.add(x.tolist())
    assert_equal(index.search(x[:5].tolist(), 3), index.search(x[:5], np.int64(3)))
    for bad, error in [
            (x[0], ValueError), (x[:, :5], ValueError), (x[None], ValueError),
            ("text", ValueError), ([["a"] * D], TypeError),
            (x.astype(complex), TypeError), (None, ValueError)]:
        for call in (lambda: index.search(bad, 3), lambda: index.add(bad),
                     lambda: index.search(x=bad, k=3)):
            with pytest.raises(error, match="expected"):
                call()
    check_k(lambda k: index.search(x, k))


def check_k(search):
    for bad, error in (("3", TypeError), (2.5, TypeError), (None, TypeError),
                       (0, ValueError), (-1, ValueError)):
        with pytest.raises(error, match="k must be.* positive"):
            search(bad)


@pytest.mark.parametrize("string", ["BFlat", "BPerm"])
def test_binary_indexes_check_arguments(string):
    codes = binary_codes()
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
    check_k(lambda k: index.search(codes, k))
    wrapped = faiss.index_binary_factory(D, "IDMap2,RHBE64,BFlat")
    for bad in (vectors(9, 3), vectors(1)[0], np.zeros((3, 5), "uint8")):
        with pytest.raises(ValueError, match="shape"):
            wrapped.search(bad, 3)
    check_k(lambda k: wrapped.search(vectors(3), k))


# ---------------------------------------------------------------- messages

def test_messages_are_text():
    for text in ("SIK64(gau\x00ss)", "\x00", "SIK\x0064(gaussian),BFlat"):
        for make in (faiss_ext.kernel_factory, hash_of):
            with pytest.raises(RuntimeError, match=r"\\x00") as caught:
                make(text)
            assert "^" in str(caught.value)
    # also where they quote damaged files
    writer = faiss.VectorIOWriter()
    faiss.write_index(faiss.index_factory(D, "SIK64(gaussian,gamma=1),BFlat"), writer)
    data = faiss.vector_to_array(writer.data)
    for i in [*range(200), *range(200, len(data), 17)]:
        for value in (0xff, 0x80, 0):
            damaged = data.copy()
            damaged[i] = value
            reader = faiss.VectorIOReader()
            faiss.copy_array_to_vector(damaged, reader.data)
            try:
                faiss_ext.read_index(reader)
            except (RuntimeError, MemoryError) as error:  # no UnicodeDecodeError
                assert str(error)


def test_what_cannot_stand_in_front_says_why():
    for string, names in (
            ("IVF16,KFlat(gaussian)", ("IVF16", "KFlat")),
            ("L2norm,IDMap,KFlat(chi2)", ("IDMap", "first")),
            ("PCA8,IDMap2,RHBE64,BFlat", ("IDMap2", "first")),
            ("Nonsense,KFlat(chi2)", ("Nonsense", "transformation"))):
        with pytest.raises(RuntimeError) as caught:
            faiss.index_factory(D, string)
        assert all(name in str(caught.value) for name in names)


def test_queries_of_auto_are_held_out():
    x = vectors(200)
    given = klsh("chi2,rank=auto")
    given.set_landmarks(x)
    for hash in (given, klsh("chi2,p=200,rank=auto")):
        with pytest.raises(RuntimeError, match="more vectors than landmarks"):
            hash.train(x)
        hash.train(np.concatenate([x, vectors(50, seed=3)]))
        assert hash.is_trained


# ----------------------------------------------------------------- strings

@pytest.mark.parametrize("string", [
    "(" * 100_000, "(" * 65, "IVF8," * 20_000 + "Flat", "KFlat(" * 100, "x" * 1_000_000, "PQ8," + "(" * 80 + ")" * 80,
    "KFlat(chi2)" + " " * 10_000, "\0" * 5000, "ü" * 3000])
def test_strings_that_are_too_long_or_too_deep(string):
    """FAISS's own parser crashes on some of them; no message quotes all of it."""
    for make in (lambda: faiss.index_factory(D, string), lambda: faiss.index_binary_factory(64, string),
                 lambda: faiss_ext.index_factory(D, string), lambda: faiss_ext.kernel_factory(string),
                 lambda: faiss_ext.kernel_hash_factory(D, string), lambda: faiss_ext.map_factory(D, string)):
        with pytest.raises(RuntimeError, match="characters|nested") as caught:
            make()
        assert len(str(caught.value)) < 3000


def test_the_place_of_an_error_in_a_long_string():
    string = "KFlat(chi2," + "store=u8," * 50 + "nosuchkey=1)"
    with pytest.raises(RuntimeError) as caught:
        faiss.index_factory(D, string)
    lines = str(caught.value).splitlines()
    assert len(lines[0]) < 400
    marked = lines[1][lines[2].index("^"):]
    assert string[string.index(marked.removesuffix("...")) :].startswith(marked.removesuffix("..."))


@pytest.mark.parametrize("string", ["HKM1(chi2),PCAR8,Flat", "L2norm,HKM1(chi2),PCAR8,Flat"])
def test_a_chain_names_the_vector_that_cannot_be_trained_with(string):
    x = vectors(20_000)
    x[19_977, 5] = -1
    index = faiss.index_factory(x.shape[1], string)
    with pytest.raises(RuntimeError, match="component 5 of vector 19977 is -"):
        index.train(x)


# ------------------------------------------- numbers of the wrong kind, or size

@pytest.mark.parametrize("string", ["KFlat(chi2)", "AHK64(chi2),BFlat", "AHK64(chi2),AFlat", "HKM1(chi2),KIVF4(M=4)", "L2norm,KFlat(chi2)"])
def test_a_radius_is_any_number(string):
    x = histograms(300)
    index = filled(string, x)
    D = index.search(x[:1], 5)[0]
    expected = index.range_search(x[:1], float(D[0, 4]))
    for radius in (D[0, 4], np.float64(D[0, 4]), np.array(D[0, 4])):
        for found, wanted in zip(index.range_search(x[:1], radius), expected):
            np.testing.assert_array_equal(found, wanted)
    for bad in ("1", None, [1.0], np.ones(3)):
        with pytest.raises(TypeError, match="the radius must be a number, got"):
            index.range_search(x[:1], bad)
    with pytest.raises(ValueError, match="radius is NaN"):
        index.range_search(x[:1], np.nan)


def test_a_kernel_value_is_no_radius_of_packed_bits():
    index = faiss.index_binary_factory(64, "BKFlat(jaccard)")
    codes = binary_codes()
    index.add(codes)
    with pytest.raises(ValueError, match=r"the radius is 0\.3, expected an integer.*distance\(value\)"):
        index.range_search(codes[:1], 0.3)
    assert index.range_search(codes[:1], np.float32(index.distance(0.3)))[0][1] >= 1
    assert index.range_search(codes[:1], np.inf)[0][1] == len(codes)


def test_ids_are_integers():
    x = histograms(300)
    index = filled("HKM1(chi2),KIVF4(M=4)", x)
    for bad, error in (([1.5, 2], TypeError), ([np.nan, 1], TypeError), (["7", "8"], TypeError), (np.array([2**63, 1], "uint64"), ValueError),
                       ([1], ValueError)):
        with pytest.raises(error, match=r"\bids?\b"):
            index.add_with_ids(x[:2], np.array(bad))
    assert index.ntotal == 300
    index.add_with_ids(x[:2], np.array([301, 302], "uint64"))
    assert index.ntotal == 302


def test_factories_name_what_is_of_the_wrong_type():
    for arguments, message in (((16.0, "KFlat(chi2)"), "d must be int, got 16.0"), ((16, "KFlat(chi2)", "l2"), "metric must be int, got 'l2'")):
        for factory in (faiss.index_factory, faiss_ext.index_factory):
            with pytest.raises(TypeError, match=f"index_factory: {message}"):
                factory(*arguments)
    index = faiss.index_factory(D, "KFlat(chi2),Refine(KFlat(chi2))")
    with pytest.raises(TypeError, match="IndexRefineKernel.k_factor must be float, got None"):
        index.k_factor = None
    for index in (index, faiss.index_factory(D, "KFlat(chi2)"), faiss.index_factory(D, "SIK64(gaussian),BFlat")):
        with pytest.raises(AttributeError, match="metric_type is read-only"):
            index.metric_type = faiss.METRIC_INNER_PRODUCT


@pytest.mark.parametrize("string", ["KFlt(chi2)", "PCA8,KFlt(chi2)", "Flat,Refine(KFlt(chi2))"])
def test_misspelt_names(string):
    with pytest.raises(RuntimeError, match="neither faiss_ext nor FAISS makes an index from") as caught:
        faiss.index_factory(D, string)
    assert string in str(caught.value) and "KFlat(...)" in str(caught.value)


@pytest.mark.parametrize("string, meant", [
    ("KFlat(rbf)", "gaussian"), ("SIK64(rbf),BFlat", "gaussian"), ("KFlat(gausian)", "gaussian"),
    ("KPCA64(rbf),Flat", "gaussian"), ("KLSH64(laplace),BFlat", "laplacian"), ("KFlat(cos)", "cosine"),
    ("KFlat(gauss)", "gaussian"), ("KFlat(jensen-shannon)", "js"), ("KFlat(chi_squared)", "chi2"), ("KFlat(hik)", "intersection"),
    ("KFlat(chi2,store=fp16)", "f16"), ("AHK64(chi2,centre=1),BFlat", "center"), ("SIK64(gaussian,sigma=2),BFlat", "gamma"),
    ("KFlat(tanimoto)", "jaccard"), ("KFlat(chi2,store=float16)", "f16"), ("KFlat(chi2,store=uint8)", "u8"),
    ("KFlat(gaussian(gama=1))", "gamma"), ("AHK64(chi2),bflat", "BFlat"), ("kflat", "KFlat"), ("kflat(chi2)", "KFlat"),
    ("HNSW32,kflat(chi2)", "KFlat"), ("kivf16", "KIVF"), ("sik512(gaussian),BFlat", "SIK"),
    ("hnsw32,KFlat(chi2)", "HNSW"), ("hnsw32", "HNSW"), ("HNSW32,flat", "Flat"), ("ivf16,Flat", "IVF"),
    ("pca8,KFlat(chi2)", "PCA"), ("l2norm,KFlat(chi2)", "L2norm"), ("opq8_16,KFlat(chi2)", "OPQ"),
    ("hkm1(chi2),KFlat(chi2)", "HKM"), ("AHK64(chi2),bhnsw8", "BHNSW"), ("AHK64(chi2),bhash4x8", "BHash"),
    ("AHK64(chi2),bivf4", "BIVF"), ("KFlat(chi2),refine(KFlat(js))", "Refine"), ("KFlat(chi2),rflat", "RFlat"),
    ("KFlat(l1)", "laplacian"), ("KFlat(L2)", "gaussian"), ("KFlat(manhattan)", "laplacian"),
    ("KFlat(euclidean)", "gaussian"), ("KFlat(ip)", "linear")])
def test_names_that_were_probably_meant(string, meant):
    with pytest.raises(RuntimeError, match=rf"did you mean {meant}\?"):
        faiss.index_factory(D, string)


@pytest.mark.parametrize("string, meant", [
    ("bivf4", "BIVF"), ("bkflat(jaccard)", "BKFlat"), ("IDMap2,bhash8", "BHash"), ("idmap2,BFlat", "IDMap2"), ("SIK64(gaussian),bhnsw8", "BHNSW")])
def test_names_that_were_probably_meant_for_codes(string, meant):
    with pytest.raises(RuntimeError, match=rf"did you mean {meant}\?"):
        faiss_ext.index_binary_factory(64, string)


@pytest.mark.parametrize("name, meant", [("rbf", "gaussian"), ("laplace", "laplacian"), ("kflat", "KFlat"), ("BKflat", "BKFlat")])
def test_names_that_describe_was_probably_asked_for(name, meant):
    with pytest.raises(ValueError, match=rf"unknown name '{name}'.*did you mean {meant}\?"):
        faiss_ext.describe(name)


def test_the_hint_at_sigma_is_right():
    with pytest.raises(RuntimeError, match=r"gamma is 1/sigma\^2 for gaussian and matern, 1/sigma for laplacian"):
        faiss_ext.kernel_factory("gaussian(sigma=2)")
    x, y = vectors(2)
    sigma = 2
    value = faiss_ext.kernel_factory(f"gaussian(gamma={1 / sigma**2})")(x, y)
    assert value == pytest.approx(np.exp(-((x - y) ** 2).sum() / (2 * sigma**2)), rel=1e-5)


@pytest.mark.parametrize("string", ["Flat,HNSW8,KFlat(chi2)", "AHK64(chi2),BHash8x", "PCAX8,KFlat(chi2)"])
def test_no_guess_of_the_name_that_was_given(string):
    with pytest.raises(RuntimeError) as caught:
        faiss.index_factory(D, string)
    assert not re.search(r"did you mean (HNSW|BHash|PCAX)\?", str(caught.value))


def test_no_guess_of_a_name_that_is_like_none():
    with pytest.raises(RuntimeError, match="unknown kernel 'wavelet'") as caught:
        faiss.index_factory(D, "KFlat(wavelet)")
    assert "did you mean" not in str(caught.value)


def test_a_string_is_no_kernel():
    with pytest.raises(TypeError, match=r"must be Kernel, got 'chi2'; kernel_factory\('chi2'\) makes a kernel"):
        faiss_ext.IndexFlatKernel(D, "chi2")


def test_search_parameters_of_a_part():
    index = faiss.index_factory(D, "KIVF4,Refine(KFlat(chi2))")
    said = r"'nprobe'; a part of it has: faiss_ext.set_index_parameter\(index, 'nprobe', value\)"
    with pytest.raises(AttributeError, match=said):
        index.nprobe
    with pytest.raises(AttributeError, match=said):
        index.nprobe = 3
    assert not hasattr(index, "efSearch")
    with pytest.raises(AttributeError, match="SpectralHash has no attribute 'nprobe'$"):
        faiss_ext.SpectralHash(D, 32).nprobe = 3
    faiss_ext.ParameterSpace().set_index_parameter(index, "nprobe", 3)
    assert faiss_ext.index_parameters(index)["nprobe"] == 3


def test_binary_and_float_strings_that_are_mixed_up():
    with pytest.raises(RuntimeError, match="is a binary index; use index_binary_factory"):
        faiss.index_factory(64, "BKFlat(jaccard)")
    with pytest.raises(RuntimeError) as caught:
        faiss.index_factory(64, "IDMap,BKFlat(jaccard)")
    assert "did you mean" not in str(caught.value)
    with pytest.raises(RuntimeError, match="unknown binary index.*(.|\n)*BKFlat"):
        faiss.index_binary_factory(64, "KFlat(chi2)")


# --------------------------------- what FAISS does not look at, and then ends in

@pytest.mark.parametrize("string", ["AHK64(chi2),AFlat", "L2norm,AHK64(chi2),AFlat"])
def test_codes_give_no_vectors_back(string):
    index = filled(string, histograms(50))
    for call in (lambda: index.reconstruct(0), lambda: index.reconstruct_n(0, 5)):
        with pytest.raises(RuntimeError, match="IndexAsymmetricHash: vectors cannot be reconstructed from their codes"):
            call()


@pytest.mark.parametrize("string", ["HKM1(chi2),Flat", "HKM1(chi2),HNSW8,Flat", "HKM1(chi2),SQ8", "HKM1(chi2),PCA8,Flat"])
def test_ids_behind_a_map_are_checked(string):
    index = filled(string, histograms(50))
    for first, n in ((10**12, 1), (-1, 1), (48, 5), (0, 51)):
        with pytest.raises(RuntimeError, match="the index has 50 vectors"):
            index.reconstruct_n(first, n)
        if n == 1:
            with pytest.raises(RuntimeError, match="the index has 50 vectors"):
                index.reconstruct(first)
    assert index.reconstruct_n(47, 3).shape == (3, D)


def test_ids_that_a_map_of_ids_does_not_have():
    x = histograms(50)
    index = faiss.index_factory(D, "IDMap2,KFlat(chi2)")
    index.add_with_ids(x, np.arange(50))
    np.testing.assert_array_equal(index.reconstruct_n(0, 50), x)
    np.testing.assert_array_equal(index.reconstruct_n(7, 2, np.empty((2, D), "float32")), x[7:9])
    for first, n in ((0, 51), (-1, 2), (10**12, 1)):
        with pytest.raises(RuntimeError, match="no vector with id"):
            index.reconstruct_n(first, n)
    with pytest.raises(ValueError, match="ni is -2, expected"):
        index.reconstruct_n(0, -2)
    for string in ("KFlat(chi2)", "HKM1(chi2),Flat", "KFlat(chi2),Refine(KFlat(chi2))"):
        index = filled(string, x)
        with pytest.raises(ValueError, match="ni is -2, expected"):
            index.reconstruct_n(0, -2)
        with pytest.raises(ValueError, match="n0 is 51, expected at most 50"):
            index.reconstruct_n(51, -1)
        with pytest.raises(RuntimeError, match="id 50 is out of range: the index has 50 vectors"):
            index.reconstruct(50)
    for bad in (np.zeros((5, 4), "int32"), np.zeros((1, D), "float32"), np.zeros((2, D))):
        with pytest.raises(ValueError, match=r"a writeable array of float32 of shape \(2, 16\), got"):
            index.reconstruct_n(0, 2, bad)
    np.testing.assert_array_equal(filled("IDMap,KFlat(chi2)", x).reconstruct_n(0, 2), x[:2])


@pytest.mark.parametrize("storage", ["BHash8", "BHash4x8"])
@pytest.mark.parametrize("nflip", [-1, 9, 70])
def test_searches_of_hash_tables_end(storage, nflip):
    x = histograms(50)
    index = filled(f"AHK64(chi2),{storage}", x)
    index.storage.nflip = nflip
    for search in (lambda: index.search(x[:2], 3), lambda: index.range_search(x[:2], 3)):
        with pytest.raises(RuntimeError, match=f"nflip of the storage is {nflip}, expected 0 to 8"):
            search()
    index.storage.nflip = 1
    assert (index.search(x[:2], 1)[1][:, 0] == [0, 1]).all()


def test_what_could_not_be_read_is_not_written(tmp_path):
    index = faiss.index_binary_factory(2**24 + 8, "BConcurrent,BFlat")
    with pytest.raises(RuntimeError, match="dimension 16777224 cannot be written, expected 0 to 16777216"):
        faiss.write_index_binary(index, str(tmp_path / "index"))
    assert not list(tmp_path.iterdir())


def test_bandwidths_of_duplicates():
    index = faiss.index_factory(D, "KFlat(gaussian)")
    with pytest.raises(RuntimeError, match="nearly equal to their neighbours .*such as neighbor=1000"):
        index.train(np.repeat(vectors(30), 60, axis=0))
    again = faiss.index_factory(D, "KFlat(gaussian(neighbor=1000))")
    again.train(np.repeat(vectors(30), 60, axis=0))
    assert again.is_trained
    with pytest.raises(RuntimeError, match="too small or too large for float; give gamma"):
        faiss.index_factory(D, "KFlat(expchi2)").train(np.repeat(vectors(2), [4999, 1], axis=0))


def test_an_index_of_a_function_has_no_string():
    for index in (faiss_ext.IndexFlatKernel(D, faiss_ext.CallbackKernel(lambda x, y: x @ y.T)),
                  faiss_ext.IndexFlatKernel(D, faiss_ext.NormalizedKernel(faiss_ext.CallbackKernel(lambda x, y: x @ y.T)))):
        with pytest.raises(ValueError, match="a CallbackKernel has no factory string"):
            faiss_ext.index_string(index)


def test_sparse_matrices_are_not_taken():
    class Sparse:
        shape = (2, D)

        def toarray(self):
            return histograms(2)

    index = faiss.index_factory(D, "KFlat(chi2)")
    with pytest.raises(TypeError, match="IndexFlatKernel.add: expected an array, got a sparse matrix"):
        index.add(Sparse())


# ---------------------------------------------------- numbers of every kind

TABLES = (ROOT / "tests" / "testing_strings.h").read_text()


def strings_of(table):
    """The strings of a table that the tests in C++ share."""
    rows = TABLES.split(f"{table}[] = {{")[1].split("\n};")[0]
    return re.findall(r'"([^"]+)"', rows)


def without_ids(string):
    """Whether ID maps can stand in front."""
    return not string.startswith(("IDMap", "Concurrent")) and "IVF" not in string


FLOAT_STRINGS = strings_of("indexes")
FLOAT_STRINGS += [f"IDMap2,{s}" for s in FLOAT_STRINGS if without_ids(s)]
FLOAT_STRINGS += ["KIVF4,Refine(KFlat(chi2))", "IDMap,SIK64(gaussian),BFlat,Refine(KFlat(gaussian))"]
# what FAISS has behind a map
FAISS_STRINGS = ["PQ8np", "PQ8x4fs", "IVF4,PQ8x4fs", "IVF4,PQ8np", "IVF4,SQ8", "IVF4,PQ8+8", "LSH", "ITQ16,LSH", "SQ8",
                 "HNSW8", "HNSW8,SQ8", "NSG8,Flat", "PQ8np,Refine(KFlat(linear))"]
FAISS_STRINGS = [f"HKM1(chi2),{s}" for s in FAISS_STRINGS] + ["IDMap,HKM1(chi2),PQ8np", "IDMap2,HKM1(chi2),HNSW8"]
HASHED_STRINGS = [f"RHBE64,{s}" for s in strings_of("storages")]
HASHED_STRINGS += [f"{name},{s}" for s in HASHED_STRINGS if without_ids(s) for name in ("IDMap", "IDMap2")]
CODE_STRINGS = ["BKFlat(jaccard)", "BFlat", "BIVF4", "BPerm(M=5,B=3)", "BHNSW8,BKFlat(dice)", "CWS64,BFlat,Refine(BKFlat(jaccard))"]
CODE_STRINGS += [f"{name},{s}" for s in CODE_STRINGS if without_ids(s) for name in ("IDMap", "IDMap2")]
INTEGERS = int, np.int64, np.int32, np.uint8
NUMBERS = *INTEGERS, float, np.float64, np.float32

def texts_of_errors(function):
    """Nodes with the text of an error that an except clause has named."""
    names = {h.name for h in ast.walk(function) if isinstance(h, ast.ExceptHandler)} | {"error"}

    def is_text(node):
        return (isinstance(node, ast.Call) and ast.unparse(node.func) in ("str", "message_of", "located")
                and bool(node.args) and ast.unparse(node.args[0]) in names)

    texts = {ast.unparse(node.targets[0]) for node in ast.walk(function)
             if isinstance(node, ast.Assign) and is_text(node.value)}
    return lambda node: is_text(node) or isinstance(node, ast.Name) and node.id in texts


MATCHING = {"startswith", "endswith", "find", "index", "partition", "removeprefix", "replace", "split"}


def test_no_code_searches_the_text_of_an_error():
    found = []
    for path in (ROOT / "python_bindings" / "faiss_ext").glob("*.py"):
        tree = ast.parse(path.read_text())
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            is_text = texts_of_errors(function)
            for node in ast.walk(function):
                if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
                    searched = node.comparators[0]
                elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
                    searched = node.args[-1]
                elif (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MATCHING
                      and "\\n" not in ast.unparse(node)):  # the first line is no search
                    searched = node.func.value
                else:
                    continue
                if is_text(searched):
                    found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    for path in (ROOT / "src").rglob("*.cpp"):
        found += [f"{path.name}: {match[0]}" for match in re.finditer(
            r".*(what\(\)|\bmsg)\)?\.(find|rfind|substr|compare)\b.*", path.read_text())]
    assert not found


# what FAISS, SWIG and Python's wrappers say of what is inside
RAW = re.compile(r"Error in |in method '|Wrong number or type|replacement_|<locals>|handle_Index|\bC\+\+|std::|"
                 r"not implemented|' failed$|must be real number|cannot be interpreted", re.DOTALL)


def made_of(string):
    if string in CODE_STRINGS:
        x = binary_codes(300)
        index = faiss_ext.index_binary_factory(64, string)
    else:
        x = np.random.default_rng(1).random((300, 24), dtype="float32")
        x /= x.sum(axis=1, keepdims=True)
        make = faiss_ext.index_binary_factory if string in HASHED_STRINGS else faiss_ext.index_factory
        index = make(24, string)
    index.train(x)
    if isinstance(index, (faiss.IndexIDMap, faiss.IndexBinaryIDMap)):
        index.add_with_ids(x, np.arange(len(x)))
    else:
        index.add(x)
    return index, x[:3]


def outcome(call, *numbers):
    """What a call returns, or the error, which has to read well."""
    try:
        found = call(*numbers)
    except (TypeError, ValueError, RuntimeError) as error:
        first = str(error).split("\n")[0]
        assert first and not RAW.search(first), f"{type(error).__name__}: {first}"
        assert len(str(error)) < 600, str(error)
        return error
    return found if isinstance(found, tuple) else (found,)


def calls_of(index, q):
    """The methods that take numbers: (call, numbers, whether they may have fractions)."""
    yield "search", index.search, (q, 3), False
    yield "search_and_reconstruct", index.search_and_reconstruct, (q, 3), False
    yield "assign", index.assign, (q, 3), False
    yield "range_search", index.range_search, (q, 1), True
    yield "reconstruct", index.reconstruct, (5,), False
    yield "reconstruct_n", index.reconstruct_n, (5, 3), False
    if hasattr(index, "search_codes"):
        codes = binary_codes(3)
        yield "search_codes", index.search_codes, (codes, 3), False
        yield "range_search_codes", index.range_search_codes, (codes, 20), True


@pytest.mark.parametrize("string", [*FLOAT_STRINGS, *HASHED_STRINGS, *CODE_STRINGS])
def test_numbers_of_every_kind(string):
    index, q = made_of(string)
    for name, call, arguments, fractions in calls_of(index, q):
        expected = outcome(call, *arguments)
        for kind in NUMBERS:
            given = [kind(a) if isinstance(a, int) else a for a in arguments]
            found = outcome(call, *given)
            if isinstance(expected, Exception):
                assert isinstance(found, Exception), (name, kind)
            elif kind in INTEGERS or fractions:
                assert not isinstance(found, Exception), (name, kind, found)
                assert_equal(found, expected)
            else:
                assert isinstance(found, TypeError) and "integer" in str(found), (name, kind, found)


@pytest.mark.parametrize("string", [*FLOAT_STRINGS, *HASHED_STRINGS, *CODE_STRINGS])
def test_errors_of_wrong_arguments_read_well(string):
    index, q = made_of(string)
    parameters, other = faiss.SearchParameters(), faiss_ext.index_factory(24, "KFlat(linear)")
    calls = [
        lambda: index.search(q), lambda: index.search(q, 3, sel=1), lambda: index.search(q, "3"),
        lambda: index.search(q, 3, params=parameters), lambda: index.search(q, 3, params="nprobe=3"),
        lambda: index.search(q, 3, params=faiss.SearchParametersIVF()), lambda: index.search(q, 3, D=np.zeros((1, 1))),
        lambda: index.range_search(q), lambda: index.range_search(q, "1"), lambda: index.range_search(q, 1, 2, 3),
        lambda: index.range_search(q, 1, params=parameters), lambda: index.assign(q, None),
        lambda: index.reconstruct("5"), lambda: index.reconstruct(10**6), lambda: index.reconstruct(None),
        lambda: index.reconstruct_n("1", 2), lambda: index.reconstruct_n(1, None), lambda: index.remove_ids(["a"]),
        lambda: index.remove_ids(5), lambda: index.remove_ids(np.array([1.5])), lambda: index.remove_ids([1, 2]),
        lambda: index.add_with_ids(q, [1.5, 2, 3]), lambda: index.add_with_ids(q), lambda: index.add_with_ids(q, [1, 2]),
        lambda: index.merge_from(None), lambda: index.merge_from("a"), lambda: index.merge_from(other),
        lambda: index.check_compatible_for_merge(3), lambda: index.check_compatible_for_merge(other),
        lambda: index.add_with_ids(q, [1001, 1002, 1003]), lambda: index.add(q)]
    if isinstance(index, faiss.Index):
        calls += [lambda: index.sa_code_size(), lambda: index.sa_encode(q), lambda: index.sa_decode(q),
                  lambda: index.sa_decode(np.zeros((1, 3), "uint8")), lambda: index.reconstruct_batch(["a"]),
                  lambda: index.reconstruct_batch([1, 2])]
    for call in calls:
        outcome(call)


@pytest.mark.parametrize("string", [*FLOAT_STRINGS, *HASHED_STRINGS, *CODE_STRINGS, *FAISS_STRINGS])
def test_searches_that_faiss_refuses_do_not_quote_it(string):
    index, q = made_of(string)
    selected = faiss.SearchParameters(sel=faiss.IDSelectorRange(0, 9))
    for params in (faiss.SearchParameters(), selected, faiss.SearchParametersIVF(), faiss.SearchParametersHNSW()):
        outcome(lambda: index.search(q, 3, params=params))
        outcome(lambda: index.range_search(q, 1, params=params))
        outcome(lambda: index.search_and_reconstruct(q, 3, params=params))
    for call in (lambda: index.search(q, 3, filter=[1, 2]), lambda: index.range_search(q, 1, filter=[1, 2]),
                 lambda: index.range_search(q, 1), lambda: index.search_and_reconstruct(q, 3), lambda: index.reconstruct(10**6)):
        outcome(call)


@pytest.mark.parametrize("string", [
    "KIVF4", "AHK64(chi2),BIVF4", "HKM1(chi2),IVF4,Flat", "IDMap,KFlat(chi2)", "IDMap2,KFlat(chi2)", "BIVF4"])
def test_no_vector_gets_the_id_of_padding(string):
    rng = np.random.default_rng(1)
    is_binary = string.startswith("B")
    x = rng.integers(0, 256, (400, 8)).astype("uint8") if is_binary else rng.random((400, 16), "float32")
    index = (faiss_ext.index_binary_factory(64, string) if is_binary else faiss_ext.index_factory(16, string))
    index.train(x)
    with pytest.raises(ValueError, match="an id is -1"):
        index.add_with_ids(x[:3], [5, -1, 7])
    assert index.ntotal == 0
    index.add_with_ids(x[:3], [5, 6, 7])
    assert index.ntotal == 3


@pytest.mark.parametrize("string, made", [
    ("KFlat(chi2)", "IVF"), ("HNSW8,KFlat(chi2)", "IVF"), ("KIVF4", "HNSW"), ("AHK64(chi2),BFlat", "IVF"),
    ("AHK64(chi2),BIVF4", "HNSW"), ("HKM1(chi2),Flat", "IVF"), ("HKM1(chi2),HNSW8,Flat", "IVF"),
    ("KFlat(chi2)", "PreTransform"), ("BFlat", "IVF"), ("BKFlat(jaccard)", "IVF"), ("BIVF4", "HNSW")])
def test_search_parameters_of_another_class_are_refused(string, made):
    rng = np.random.default_rng(1)
    is_binary = string.startswith("B")
    x = rng.integers(0, 256, (400, 8)).astype("uint8") if is_binary else rng.random((400, 16), "float32")
    index = (faiss_ext.index_binary_factory(64, string) if is_binary else faiss_ext.index_factory(16, string))
    index.train(x)
    index.add(x)
    params = getattr(faiss, "SearchParameters" + made)()
    calls = [lambda: index.search(x[:3], 2, params=params)]
    if "HNSW" not in string or "KFlat" in string:
        calls.append(lambda: index.range_search(x[:3], 1, params=params))
    for call in calls:
        with pytest.raises(RuntimeError, match="search parameters are of class .*expected .*SearchParameters"):
            call()
    if string != "HKM1(chi2),HNSW8,Flat":  # older versions of FAISS's graphs want their own
        assert index.search(x[:3], 2, params=faiss.SearchParameters())[1].shape == (3, 2)


# ------------------------------------------------- what is checked before a call

def some_indexes():
    x = np.random.default_rng(5).random((60, 16), dtype="float32")
    for string in ("KFlat(chi2)", "SIK64(gaussian(gamma=1)),BFlat", "HKM1(chi2),PCAR8,KIVF4(M=2)",
                   "IDMap2,KFlat(chi2)", "SIK64(gaussian(gamma=1)),BFlat,Refine(KFlat(chi2))"):
        index = faiss.index_factory(16, string)
        index.train(x)
        index.add_with_ids(x, np.arange(60)) if "IDMap" in string else index.add(x)
        yield index, x


def test_results_are_written_only_where_they_fit():
    for index, x in some_indexes():
        D, I = index.search(x[:3], 2)
        good = {"D": np.zeros_like(D), "I": np.zeros_like(I)}
        if "D" not in inspect.signature(type(index).search).parameters:
            continue
        for name in good:
            frozen = np.full_like(good[name], 77)
            frozen.flags.writeable = False
            for bad in (frozen, good[name][:, :1], good[name].astype("float64"),
                        np.asfortranarray(np.zeros((3, 4), good[name].dtype))[:, :2], good[name].tolist()):
                with pytest.raises((ValueError, TypeError), match=rf"search: {name} must be"):
                    index.search(x[:3], 2, **{**good, name: bad})
            assert (frozen == 77).all()
        index.search(x[:3], 2, **good)
        np.testing.assert_array_equal(good["I"], I)


def test_a_selector_in_place_of_parameters_says_what_to_write():
    for index, x in some_indexes():
        with pytest.raises(TypeError, match=r"params=faiss.SearchParameters\(sel=...\)"):
            index.search(x[:1], 2, params=faiss.IDSelectorRange(0, 3))


def test_masked_kernel_values_are_refused():
    index = faiss_ext.IndexFlatKernel(4, faiss_ext.CallbackKernel(lambda x, y: np.ma.masked_less(x @ y.T, 0.5)))
    with pytest.raises(ValueError, match="CallbackKernel: .*masked"):
        index.add(np.eye(4, dtype="float32"))
        index.search(np.eye(4, dtype="float32"), 2)


def test_vectors_of_a_damaged_index_are_not_merged():
    index, other = (faiss.index_factory(4, "KFlat(chi2)") for _ in range(2))
    for each in (index, other):
        each.add(np.eye(4, dtype="float32"))
    other.codes.resize(8)
    with pytest.raises(RuntimeError, match="merge_from"):
        index.merge_from(other)
    assert index.ntotal == 4


def test_masked_values_are_not_vectors():
    for index, x in some_indexes():
        masked = np.ma.masked_greater(x, 0.5)
        for method in (index.train, index.add, lambda m: index.search(m, 2)):
            with pytest.raises(ValueError, match="masked values"):
                method(masked)
        index.search(np.ma.masked_array(x), 2)  # none is masked
    with pytest.raises(ValueError, match="masked values"):
        faiss.index_factory(16, "IDMap2,KFlat(chi2)").add_with_ids(x, np.ma.masked_less(np.arange(60), 3))
    for function in (faiss_ext.mean_neighbor_distance, lambda m: faiss_ext.recommend(m, "chi2"),
                     faiss_ext.kernel_factory("chi2").gram):
        with pytest.raises(ValueError, match="masked values"):
            function(masked)


@pytest.mark.parametrize("string, problem", [
    (b"KFlat(chi2)", "expected a string, got b.*decode"),
    (None, "expected a string, got None"), (",KFlat(chi2)", "position 0"), ("PCA8,", "position 5"),
    ("PCA8,,Flat", "position 5")])
def test_what_is_not_a_factory_string(string, problem):
    for factory in (faiss.index_factory, faiss.index_binary_factory):
        with pytest.raises((TypeError, RuntimeError), match=problem):
            factory(16, string)


@pytest.mark.parametrize("string", ["BFlat", "BHash8", "BIVF4", "BKFlat(jaccard)", "BHNSW8,BKFlat(jaccard)", "BIVF4,Refine(BKFlat(jaccard))",
                                    "CWS64,BFlat,Refine(BKFlat(jaccard))"])
def test_binary_strings_name_their_factory(string):
    with pytest.raises(RuntimeError, match="index_binary_factory"):
        faiss.index_factory(16, string)


@pytest.mark.parametrize("string", ["Flat", "IVF4,Flat", "KFlat(chi2)", "HNSW8,KFlat(chi2)"])
def test_float_strings_name_their_factory(string):
    with pytest.raises(RuntimeError, match="index_factory takes this string"):
        faiss.index_binary_factory(16, string)


@pytest.mark.parametrize("string", ["KFlat chi2", "KFlat[chi2]", "chi2", "HNSW8,KFlat[chi2]"])
def test_a_kernel_that_is_not_in_parentheses(string):
    with pytest.raises(RuntimeError, match=r"chi2 is a kernel; KFlat\(chi2\)"):
        faiss.index_factory(D, string)


def masked(x):
    x = np.ma.array(x, mask=np.zeros(np.shape(x), bool))
    x[..., 0] = np.ma.masked
    return x


def test_masked_values_are_refused_at_every_entrance():
    x = histograms(60)
    kernel = faiss_ext.kernel_factory("chi2")
    index = filled("AHK64(chi2),BFlat,Refine(KFlat(chi2))", x)
    flat = filled("KFlat(chi2)", x)
    D_, I = flat.search(x[:3], 2)
    of_graph = filled("HNSW8,KFlat(chi2)", x)
    hash = filled("AHK64(chi2),BFlat", x).hash
    measured = faiss_ext.calibrate(index, x, histograms(20, seed=2), "chi2", k=5)
    entrances = [
        lambda: kernel(masked(x[0]), x[1]), lambda: kernel(x[0], masked(x[1])),
        lambda: kernel.gram(masked(x)), lambda: kernel.gram(list(masked(x))),
        lambda: flat.search(tuple(masked(x)), 2),
        lambda: flat.sa_decode(masked(flat.sa_encode(x))),
        lambda: flat.compute_distance_subset(x[:3], masked(I)),
        lambda: flat.compute_kernel_subset(masked(x[:3]), I),
        lambda: flat.values_of_scores(masked(D_), I),
        lambda: of_graph.values_of_scores(D_, masked(I)),
        lambda: flat.permute_entries(masked(np.arange(60))),
        lambda: flat.reconstruct_batch(masked(np.arange(3))),
        lambda: flat.remove_ids(masked(np.arange(3))),
        lambda: faiss_ext.kernel_values(flat, masked(D_), I, x[:3]),
        lambda: faiss_ext.kernel_values(flat, D_, masked(I), x[:3]),
        lambda: faiss_ext.kernel_values(flat, D_, I, masked(x[:3])),
        lambda: faiss_ext.kernel_values(flat, D_.ravel(), I.ravel(), x[:3], masked([0, 2, 4, 6])),
        lambda: faiss_ext.calibrate(index, masked(x), x[:5], "chi2"),
        lambda: faiss_ext.calibrate(index, x, masked(x[:5]), "chi2"),
        lambda: measured.value(masked(D_)), lambda: measured.interval(masked(D_)),
        lambda: faiss_ext.recommend(masked(x), "chi2"),
        lambda: faiss_ext.recommend(x, "chi2", queries=masked(x[:5])),
        lambda: faiss_ext.mean_neighbor_distance(masked(x)),
        lambda: hash.encode(masked(x)), lambda: hash.kernel_value(masked(x[0]), x[1]),
        lambda: hash.expected_hamming(masked([.5, .6])),
        lambda: hash.kernel_interval(masked([3, 4])),
        lambda: faiss_ext.ParameterSpace().explore(
            index, masked(x[:5]), faiss.IntersectionCriterion(5, 1)),
    ]
    for number, entrance in enumerate(entrances):
        with pytest.raises(ValueError, match="without masked values"):
            entrance()
            pytest.fail(f"entrance {number}")
    assert_equal(flat.search(x[:3], 2), (D_, I))


@pytest.mark.parametrize("given, error", [
    ([1.5], TypeError), (np.array([2**63], "uint64"), ValueError),
    ([[1, 2]], ValueError), (["a"], TypeError)])
def test_keys_are_ids(given, error):
    index = filled("KFlat(chi2)", histograms(20))
    with pytest.raises(error, match="reconstruct_batch"):
        index.reconstruct_batch(given)


@pytest.mark.parametrize("string", [
    "KFlat(chi2)", "AHK64(chi2),AFlat", "L2norm,KFlat(gaussian)"])
def test_ids_are_no_distances(string):
    x = histograms(20)
    index = filled(string, x)
    D_, I = index.search(x[:3], 2)
    with pytest.raises(TypeError, match="D must be an array of distances, which are floats, got int64"):
        faiss_ext.kernel_values(index, I, I, x[:3])


@pytest.mark.parametrize("distance", [-1, -2**31, 2**30 + 1])
def test_integers_that_are_no_distances_of_packed_bits(distance):
    index = faiss.index_binary_factory(64, "BKFlat(jaccard)")
    index.add(binary_codes())
    with pytest.raises(ValueError, match="from 0 to 2"):
        faiss_ext.kernel_values(index, np.array([0, distance]))
    padding = np.iinfo("int32").max
    np.testing.assert_array_equal(
        faiss_ext.kernel_values(index, np.array([0, 2**30, padding])), [1, 0, np.nan])


@pytest.mark.parametrize("make", [faiss.index_factory, faiss.index_binary_factory])
def test_numbers_that_are_no_hamming_distances(make):
    index = make(D, "SIK64(gaussian),BFlat")
    index.train(histograms(60))
    faiss_ext.kernel_values(index, [0, 32, 64])
    for distance in (-1, 65, 500):
        with pytest.raises(ValueError, match=f"codes with 64 bits, got {distance}"):
            faiss_ext.kernel_values(index, [0, distance])


def test_none_is_no_part_of_an_index():
    x = histograms(40)
    parts = {
        "HKM1(chi2),Flat": ["index"], "HNSW8,KFlat(chi2)": ["storage"],
        "AHK64(chi2),BFlat,Refine(KFlat(chi2))": ["base_index", "refine_index"]}
    for string, names in parts.items():
        index = filled(string, x)
        expected = index.search(x[:3], 2)
        for name in names:
            with pytest.raises((TypeError, AttributeError), match=f"{name} (cannot be None|is read-only)"):
                setattr(index, name, None)
        assert_equal(index.search(x[:3], 2), expected)
    lists = faiss_ext.index_binary_factory(64, "BIVF4")
    lists.train(binary_codes())
    for name in ("quantizer", "invlists"):
        with pytest.raises(TypeError, match=f"{name} cannot be None"):
            setattr(lists, name, None)
    with pytest.raises(TypeError, match="il must be faiss.InvertedLists, got None"):
        lists.replace_invlists(None)
    lists.clustering_index = faiss.IndexFlatL2(64)
    lists.clustering_index = None  # as it was
    lists.add(binary_codes())


def test_lists_that_do_not_fit_are_refused():
    codes = binary_codes()
    lists = faiss_ext.index_binary_factory(64, "BIVF4")
    lists.train(codes)
    lists.add(codes)
    expected, own = lists.search(codes, 2), lists.invlists
    own_quantizer = lists.quantizer
    for shape in ((2, 8), (4, 16)):
        lists.invlists = faiss.ArrayInvertedLists(*shape)
        for call in (lambda: lists.add(codes), lambda: lists.search(codes, 2), lambda: lists.reconstruct(0),
                     lambda: lists.range_search(codes, 3)):
            with pytest.raises(RuntimeError, match="invlists has"):
                call()
        lists.invlists = own
    lists.quantizer = faiss.IndexBinaryFlat(128)
    other = faiss_ext.clone_binary_index(faiss_ext.index_binary_factory(64, "BIVF4"))
    other.train(codes)
    with pytest.raises(RuntimeError, match="the quantizer has 0 vectors of 128 bits"):
        other.merge_from(lists)
    lists.quantizer = own_quantizer
    assert_equal(lists.search(codes, 2), expected)


def test_lists_of_blocks_behind_a_map():
    x = np.random.default_rng(1).random((400, D), dtype="float32")
    index, other = (filled("HKM1(chi2),IVF4,PQ4x4fs", x) for _ in range(2))
    expected = index.search(x[:9], 3)
    for call in (lambda: index.search_and_reconstruct(x[:9], 3), lambda: index.remove_ids(np.arange(3)),
                 lambda: index.merge_from(other, 400)):
        try:
            call()
        except RuntimeError as error:
            if faiss.__version__ == "1.7.3":  # which would end the process; others say no themselves
                assert "can only add to the lists of IndexIVFPQFastScan" in str(error)
            assert index.ntotal == 400
            assert_equal(index.search(x[:9], 3), expected)
        else:
            assert index.ntotal in (400, 397, 797, 800)


def test_merges_of_lists_of_blocks_keep_ids_apart():
    x = np.random.default_rng(1).random((400, D), dtype="float32")
    index, other = (filled("HKM1(chi2),IVF4,PQ4x4fs", x) for _ in range(2))
    with pytest.raises(RuntimeError, match=r"id \d+ is already in use; give an add_id|can only add to the lists of IndexIVFPQFastScan"):
        index.merge_from(other)
    assert index.ntotal == other.ntotal == 400


UNSUPPORTED = [
    ("HNSW8,KFlat(chi2)", ["sa_encode", "sa_decode", "sa_code_size"]),
    ("KIVF4(M=4)", ["sa_encode", "sa_decode", "sa_code_size"]),
    ("RHBE64,AFlat", ["sa_decode", "reconstruct"]),
    ("RHBE64,BFlat", ["sa_decode", "reconstruct"])]


@pytest.mark.parametrize("string, names", UNSUPPORTED)
def test_methods_that_a_class_does_not_support(string, names):
    x = histograms(60)
    index = filled(string, x)
    arguments = {"sa_code_size": (), "sa_encode": (x,), "sa_decode": (binary_codes(),), "reconstruct": (0,)}
    for name in names:
        with pytest.raises(RuntimeError) as caught:
            getattr(index, name)(*arguments[name])
        assert caught.value.unsupported, name
        assert name in str(caught.value) or "from their codes" in str(caught.value)
        assert index.ntotal == 60


def test_indexes_made_from_classes_have_no_ids_of_their_own():
    x = histograms(60)
    index = faiss_ext.IndexFlatKernel(16, faiss_ext.GaussianKernel(0.1))
    index.add(x)
    for call, arguments in ((index.add_with_ids, (x, np.arange(60))), (index.upsert, (x, np.arange(60))),
                            (index.update_vectors, (np.arange(60), x))):
        with pytest.raises(RuntimeError, match="put an (IDMap|IndexIDTable)") as caught:
            call(*arguments)
        assert caught.value.unsupported and index.ntotal == 60
    assert index.contains([0, 59, 60, -1]).tolist() == [True, True, False, False]
    assert index.remove_ids(np.arange(2)) == 2 and index.ids().tolist() == list(range(58))


@pytest.mark.parametrize("string, names", [
    ("KFlat(chi2)", ["assign", "search_and_reconstruct", "sa_encode", "range_search", "train"]),
    ("HNSW8,KFlat(chi2)", ["assign", "search_and_reconstruct", "range_search", "train"]),
    ("KFlat(chi2),Refine(KFlat(chi2))", ["assign", "search_and_reconstruct", "sa_encode", "train"]),
    ("HKM1(chi2),Flat", ["assign", "search_and_reconstruct", "sa_encode", "range_search", "train"]),
    ("IDMap,KFlat(chi2)", ["assign", "search_and_reconstruct", "range_search", "train"]),
    ("KIVF4(M=4)", ["assign", "search_and_reconstruct", "range_search"]),
    ("RHBE64,AFlat", ["assign", "sa_encode", "range_search"])])
def test_errors_of_methods_that_faiss_defines_name_the_vector(string, names):
    x = histograms(60)
    index = filled(string, x)
    x[3, 2] = np.nan
    more = {"assign": (3,), "search_and_reconstruct": (3,), "range_search": (0.1,)}
    for name in names:
        with pytest.raises(RuntimeError) as caught:
            getattr(index, name)(x, *more.get(name, ()))
        assert caught.value.vector == 3 and "src/" in caught.value.place, name
        assert "src/" not in str(caught.value), name


def test_a_callbacks_exception_comes_out_of_methods_that_faiss_defines():
    error = Mine()

    def function(x, y):
        if fails:
            raise error
        return x @ y.T

    x, fails = vectors(20), []
    flat = faiss_ext.IndexFlatKernel(D, faiss_ext.CallbackKernel(function))
    for index in (flat, faiss_ext.IndexHNSWKernel(flat, 8), faiss_ext.IndexPreTransformSIMD(flat)):
        fails.clear()
        flat.reset()
        index.add(x)
        fails.append(True)
        for call in (lambda: index.assign(x, 3), lambda: index.search_and_reconstruct(x, 3)):
            with pytest.raises(Mine) as caught:
                call()
            assert caught.value is error


def test_single_distances_that_a_class_does_not_compute():
    x = histograms(60)
    for string in ("RHBE64,AFlat", "RHBE64,BHash8", "RHBE64,BIVF4"):
        with pytest.raises(RuntimeError, match="distances") as caught:
            filled(string, x).get_distance_computer()
        assert caught.value.unsupported


@pytest.mark.parametrize("string, name, arguments, part, instead", [
    ("HKM1(chi2),HNSW8", "remove_ids", ([3],), "IndexHNSWFlat", "build the index again without the vectors"),
    ("HKM1(chi2),HNSW8", "sa_encode", (histograms(2),), "IndexHNSWFlat", "an index such as SQ8 or PQ encodes vectors"),
    pytest.param("HKM1(chi2),LSH", "range_search", (histograms(2), 1), "IndexLSH",
                 "use search, which finds the k nearest vectors", marks=pytest.mark.skipif(
                     faiss.__version__ != "1.7.3", reason="newer versions search it by range"))])
def test_methods_that_a_part_of_faiss_does_not_support(string, name, arguments, part, instead):
    index = filled(string, histograms(60))
    with pytest.raises(RuntimeError, match=rf"^IndexPreTransformSIMD(\.|::)\w+: {part} does not support \w+( in FAISS [\d.]+)?; {instead}$") as caught:
        getattr(index, name)(*arguments)
    assert caught.value.unsupported and index.ntotal == 60


@pytest.mark.parametrize("string", [
    "KFlat(chi2)", "HNSW8,KFlat(chi2)", "KFlat(chi2),Refine(KFlat(chi2))", "KIVF4(M=4)", "HKM1(chi2),Flat",
    "IDMap,KFlat(chi2)", "HKM1(chi2),IVF4,Flat", "HKM1(chi2),HNSW8"])
def test_errors_name_a_method_once(string):
    index = filled(string, histograms(60))
    for call in (lambda: index.reconstruct(-1), lambda: index.reconstruct_n(-1, 2), lambda: index.reconstruct_batch([0, -1]),
                 lambda: index.merge_from(index), lambda: index.search(histograms(2) * np.nan, 3)):
        with pytest.raises((RuntimeError, ValueError)) as caught:
            call()
        first = str(caught.value).split("\n")[0]
        assert len(re.findall(r"\bIndex\w+(?:::|\.)(?!cpp)\w+: ", first)) <= 1, first


def test_wrong_arguments_in_words(tmp_path):
    x = vectors(9)
    np.save(tmp_path / "x.npy", x)
    index = filled("KFlat(linear)", x)
    space = faiss_ext.ParameterSpace()

    def build(**more):
        faiss_ext.build_from(tmp_path / "x.npy", "KFlat(linear)", progress=False, **more)

    for call, error, words in (
            (lambda: faiss.clone_index(3), TypeError, "clone_index: expected an index, got 3"),
            (lambda: faiss.read_index(5), TypeError, "read_index: expected a file name or a faiss.IOReader, got 5"),
            (lambda: faiss.write_index(index, 5), TypeError, "write_index: expected a file name or a faiss.IOWriter, got 5"),
            (lambda: faiss.index_factory(2**40, "KFlat(linear)"), TypeError, f"index_factory: d is {2**40}, expected"),
            (lambda: faiss.index_factory(2**40, "Flat"), TypeError, f"index_factory: d is {2**40}, expected"),
            (lambda: faiss.index_factory("a", "KFlat(linear)"), TypeError, "index_factory: d must be int, got 'a'"),
            (lambda: faiss.write_index(3, "x"), TypeError, "write_index: wrong number or type of arguments"),
            (lambda: faiss_ext.index_binary_factory(2**40, "BFlat"), TypeError, f"d is {2**40}, which is out of range"),
            (lambda: faiss_ext.kernel_hash_factory(2**40, "RHBE64"), TypeError, f"d is {2**40}, which is out of range"),
            (lambda: faiss_ext.bits_for(2**70, 0.1, 0.1), TypeError, "out of range"),
            (lambda: build(parameters="nprobe=8"), TypeError, "parameters: expected a dict"),
            (lambda: build(seed="a"), TypeError, "seed: expected an integer, got 'a'"),
            (lambda: build(train=1.5), TypeError, "train: expected an integer, got 1.5"),
            (lambda: faiss_ext.open_shards(tmp_path, client=3), TypeError, "client: expected a dask.distributed.Client, got 3"),
            (lambda: faiss_ext.open_shards(tmp_path, io_flags="a"), TypeError, "io_flags: expected an integer, got 'a'"),
            (lambda: space.explore(index, x, None), TypeError, "crit must be a faiss.AutoTuneCriterion, got None"),
            (lambda: space.explore(index, None, faiss.OneRecallAtRCriterion(9, 1)), ValueError, "expected 9 queries")):
        with pytest.raises(error, match=re.escape(words)) as caught:
            call()
        assert not RAW.search(str(caught.value).replace("wrong number or type of", ""))


def test_maps_without_an_inverse():
    index = filled("KPCA8(chi2,p=40),Flat", histograms(60))
    with pytest.raises(RuntimeError, match="KernelPCA::reverse_transform is not supported") as caught:
        index.reconstruct(0)
    assert caught.value.unsupported


def test_lists_of_faiss_behind_a_map_whose_quantizer_has_changed():
    x = histograms(60)
    index = filled("HKM1(chi2),IVF4,Flat", x)
    lists = faiss.downcast_index(index.index)
    quantizer = faiss.downcast_index(lists.quantizer)
    centroids = quantizer.reconstruct_n(0, 4)
    quantizer.add(centroids)
    for call in (lambda: index.add(x), lambda: index.search(x, 3)):
        with pytest.raises(RuntimeError, match="the quantizer of an IndexIVFFlat has 8 vectors"):
            call()
    quantizer.reset()
    with pytest.raises(RuntimeError, match="has 0 vectors, expected one for each of 4 lists"):
        index.search(x, 3)
    quantizer.add(centroids)
    assert (index.search(x, 1)[1][:, 0] >= 0).all()


def test_rows_of_a_graph_whose_vectors_were_removed():
    x = histograms(60)
    index = filled("HKM1(chi2),HNSW8", x)
    faiss.downcast_index(faiss.downcast_index(index.index).storage).reset()
    for call in (lambda: index.reconstruct(3), lambda: index.reconstruct_n(0, 3),
                 lambda: index.reconstruct_batch([3]), lambda: index.search_and_reconstruct(x, 2)):
        with pytest.raises(RuntimeError, match="parts do not match"):
            call()


def test_parts_of_refine_that_were_replaced():
    x = histograms(60)
    index = filled("AHK64(chi2),BFlat,Refine(KFlat(chi2))", x)
    wide = filled("KFlat(chi2)", np.abs(vectors(60, 64)))
    other_metric = faiss.index_factory(D, "KFlat(chi2)", faiss.METRIC_INNER_PRODUCT)
    other_metric.add(x)
    own = index.refine_index
    for part, text in ((wide, "refine_index 64"), (other_metric, "refine_index 0")):
        index.refine_index = part
        for call in (lambda: index.search(x, 2), lambda: index.reconstruct(0), lambda: index.add(x)):
            with pytest.raises(RuntimeError, match=text):
                call()
    index.refine_index = own
    assert (index.search(x, 1)[1][:, 0] >= 0).all()


def test_a_masked_value_is_no_number():
    index = filled("KFlat(gaussian(gamma=1))", histograms(20))
    for call in (lambda: index.range_search(histograms(2), np.ma.masked),
                 lambda: faiss_ext.GaussianKernel(np.ma.masked)):
        with pytest.raises(ValueError, match="masked value"):
            call()


@pytest.mark.parametrize("string, name", [
    ("IDMap,KFlat(chi2)", "index"), ("IDMap,KFlat(chi2)", "id_map"), ("HNSW8,KFlat(chi2)", "storage")])
def test_parts_that_others_depend_on_are_not_replaced(string, name):
    x = histograms(20)
    index, other = filled(string, x), filled(string, x)
    with pytest.raises(AttributeError, match=f"{name} is read-only"):
        setattr(index, name, getattr(other, name))


def test_negative_ids_have_kernel_values():
    x = histograms(20)
    index = faiss.index_factory(D, "IDMap,KFlat(chi2)")
    index.add_with_ids(x, -10 - np.arange(20))
    D_, I = index.search(x, 3)
    np.testing.assert_allclose(
        faiss_ext.kernel_values(index, D_, I, x), np.take_along_axis(index.index.kernel.gram(x), -10 - I, axis=1), rtol=1e-5)
    assert (index.search_and_reconstruct(x, 1)[2][:, 0] == x).all()


def test_none_is_no_argument_of_a_constructor():
    flat = faiss.index_factory(D, "KFlat(chi2)")
    hash = faiss_ext.kernel_hash_factory(D, "SIK64(gaussian)")
    for make in (
            lambda: faiss_ext.IndexPreTransformSIMD(None),
            lambda: faiss_ext.IndexRefineKernel(None, flat),
            lambda: faiss_ext.IndexRefineKernel(flat, None),
            lambda: faiss_ext.IndexKernelHash(hash, None),
            lambda: faiss_ext.IndexBinaryKernelHash(None, faiss.IndexBinaryFlat(64)),
            lambda: faiss_ext.IndexFlatKernel(D, None),
            lambda: faiss_ext.IndexHNSWKernel(None, 8),
            lambda: faiss_ext.IndexBinaryIVFSIMD(None, 64, 4)):
        with pytest.raises((TypeError, RuntimeError), match="None|null"):
            make()
    behind = faiss_ext.IndexPreTransformSIMD(flat)
    with pytest.raises(TypeError, match="ltrans must be a faiss.VectorTransform, got None"):
        behind.prepend_transform(None)
    behind.add(histograms(3))


@pytest.mark.parametrize("ef", [0, -5, 2**25])
def test_a_graph_of_faiss_behind_a_map_searches_with_a_sound_ef(ef):
    x = histograms(40)
    index = filled("HKM1(chi2),HNSW8", x)
    graph = faiss.downcast_index(index.index)
    before, expected = graph.hnsw.efSearch, index.search(x[:3], 2)
    graph.hnsw.efSearch = ef
    with pytest.raises(RuntimeError, match=f"efSearch is {ef}"):
        index.search(x[:3], 2)
    graph.hnsw.efSearch = before
    assert_equal(index.search(x[:3], 2), expected)


def test_lists_whose_quantizer_has_grown():
    codes = binary_codes()
    lists = faiss_ext.index_binary_factory(64, "BIVF4")
    with pytest.raises(RuntimeError, match="add: the index is not trained"):
        lists.add(codes)
    lists.train(codes)
    lists.quantizer.add(codes)
    for call in (lambda: lists.add(codes), lambda: lists.search(codes, 2),
                 lambda: lists.add_with_ids(codes, np.arange(50))):
        with pytest.raises(RuntimeError, match="the quantizer .*has 54 vectors"):
            call()
    assert lists.ntotal == 0


def test_parts_that_were_emptied_are_not_read():
    x = histograms(40)
    hashed = faiss.index_binary_factory(D, "SIK64(gaussian),BHNSW8")
    hashed.train(x)
    hashed.add(x)
    hashed.storage.storage.reset()
    for call in (lambda: hashed.reconstruct(3), lambda: hashed.reconstruct_n(0, 3)):
        with pytest.raises(RuntimeError, match="parts do not match"):
            call()
    floats = filled("SIK64(gaussian),BHNSW8", x)
    floats.storage.storage.reset()
    mapped = filled("PCA8,KFlat(gaussian)", x)
    faiss.downcast_index(mapped.index).reset()
    for index in (floats, mapped):
        for call in (index.get_distance_computer, index.ids, lambda index=index: index.contains([0]),
                     index.list_sizes):
            with pytest.raises(RuntimeError, match="parts do not match"):
                call()


def test_a_function_of_faiss_for_other_graphs():
    index = filled("HNSW8,KFlat(chi2)", histograms(20))
    with pytest.raises(RuntimeError, match="link_singletons is not supported; compact") as caught:
        index.link_singletons()
    assert caught.value.unsupported


@pytest.mark.parametrize("string", ["HKM1(chi2),PCAR8", "HKM1(chi2),OPQ8", "HKM1(chi2),PCA8,L2norm"])
def test_transformations_without_an_index(string):
    with pytest.raises(RuntimeError, match="expected an index behind"):
        faiss.index_factory(D, string)


@pytest.mark.parametrize("string", ["bkflat(jaccard)", "IDMap2,bkflat(jaccard)", "bflat"])
def test_names_of_binary_indexes_that_were_probably_meant(string):
    with pytest.raises(RuntimeError, match="did you mean B"):
        faiss.index_binary_factory(64, string)


def test_refine_has_one_dimension():
    with pytest.raises(RuntimeError, match="base_index has 16 dimensions and refine_index 8"):
        faiss_ext.IndexRefineKernel(
            faiss.index_factory(D, "KFlat(chi2)"), faiss.index_factory(8, "KFlat(chi2)"))


def test_objects_of_another_kind_name_the_arguments():
    kernel = faiss_ext.kernel_factory("chi2")
    for call, name in (
            (lambda: faiss.write_VectorTransform(kernel, "x"), "write_VectorTransform"),
            (lambda: faiss.serialize_index(kernel), "write_index"),
            (lambda: faiss.clone_index(faiss_ext.index_binary_factory(64, "BFlat")), "clone_index"),
            (lambda: faiss_ext.open_shards(None), "path of a folder"),
            (lambda: faiss_ext.kernel_hash_factory(D, "SIK64(gaussian)").expected_hamming("a"), "expected_hamming")):
        with pytest.raises(TypeError, match=name) as caught:
            call()
        assert "prototypes" not in str(caught.value)


def test_bits_that_are_not_packed():
    index = faiss.index_binary_factory(64, "BKFlat(jaccard)")
    with pytest.raises(TypeError, match="numpy.packbits"):
        index.add(np.zeros((3, 64), bool))


@pytest.mark.parametrize("string, part", [
    ("HKM1(chi2),PQ8x4fs", "IndexPQFastScan"), ("HKM1(chi2),LSH", "IndexLSH"),
    ("HKM1(chi2),PQ8np", "IndexPQ"), ("HKM1(chi2),IVF4,PQ8+8", "IndexIVFPQR"), ("HKM1(chi2),IVF4,ITQ16,SH1.2", "IndexIVFSpectralHash"),
    ("HKM1(chi2),IVF4,PQ8x4fs", "IndexIVFPQFastScan"), ("HKM1(chi2),NSG8,Flat", "IndexNSGFlat")])
def test_filters_that_a_part_of_faiss_does_not_support(string, part):
    x = histograms(300)
    index = filled(string, x)
    expected = index.search(x[:3], 2)
    for call in (lambda: index.search(x[:3], 2, filter=[1, 2]), lambda: index.range_search(x[:3], 1, filter=[1, 2]),
                 lambda: index.search(x[:3], 2, params=faiss.SearchParameters(sel=faiss.IDSelectorRange(0, 5)))):
        try:
            call()
        except RuntimeError as error:
            assert error.unsupported and re.search(rf"{part} does not support (filters|range_search) in FAISS [\d.]+; ", str(error))
        else:
            assert faiss.__version__ != "1.7.3"  # newer versions do more
    assert_equal(index.search(x[:3], 2), expected)
    refined = filled(string + ",Refine(KFlat(chi2))", x)
    assert (refined.search(x[:3], 1, filter=[7])[1] == 7).all()


@pytest.mark.parametrize("to, other, message", [
    ("HKM1(chi2),Flat", "HKM1(chi2),IVF4,Flat", "IndexFlat cannot take the vectors of IndexIVFFlat; expected another IndexFlat with"),
    ("HKM1(chi2),IVF4,Flat", "HKM1(chi2),IVF5,Flat", "expected another IndexIVFFlat with the same parameters and training"),
    ("IDMap,HKM1(chi2),Flat", "IDMap,HKM1(chi2),SQ8", "IndexFlat cannot take the vectors of IndexScalarQuantizer"),
    ("Concurrent,Flat", "Concurrent,SQ8", "IndexFlat cannot take the vectors of IndexScalarQuantizer"),
    ("SQ8,Refine(KFlat(chi2))", "Flat,Refine(KFlat(chi2))", "IndexScalarQuantizer cannot take the vectors of IndexFlat"),
    ("HKM1(chi2),Flat", "KFlat(chi2)", "expected another index with the same transformations, got one of class IndexFlatKernel"),
    ("HKM1(chi2),HNSW8", "HKM1(chi2),HNSW8", "IndexHNSWFlat does not support merge_from; add the vectors of both to one index"),
    ("KFlat(chi2)", "KFlat(chi2,store=sparse)", "expected another IndexFlatKernel, got IndexSparseKernel"),
    ("KFlat(chi2,store=sparse)", "KFlat(chi2)", "expected another IndexSparseKernel, got IndexFlatKernel"),
    ("KFlat(chi2)", "HNSW8,KFlat(chi2)", "expected another IndexFlatKernel, got IndexHNSWKernel"),
    ("KFlat(chi2)", "Flat", "expected another IndexFlatKernel, got IndexFlat"),
    ("KIVF2", "KFlat(chi2)", "expected another IndexIVFPQ4, got IndexFlatKernel"),
    ("KFlat(chi2,store=f16)", "KFlat(chi2)", r"one index is KFlat\(chi2,store=f16\) with .* the other KFlat\(chi2\)")])
def test_merges_of_different_indexes_say_why(to, other, message):
    x = histograms(300)
    one, two = filled(to, x), filled(other, x)
    for call in (lambda: one.merge_from(two), lambda: one.merge_from(two, 5), lambda: one.check_compatible_for_merge(two)):
        with pytest.raises(RuntimeError, match=f"^cannot merge: .*{message}"):
            call()
    assert one.ntotal == two.ntotal == 300


@pytest.mark.parametrize("string", ["HKM1(chi2),NSG8,Flat", "Concurrent,NSG8,Flat", "IDMap,HKM1(chi2),NSG8,Flat", "NSG8,Flat,Refine(KFlat(chi2))"])
def test_graphs_that_take_all_vectors_at_once(string):
    x = histograms(300)
    index = filled(string, x)
    expected = index.search(x[:5], 3)
    with pytest.raises(RuntimeError, match="IndexNSGFlat takes all vectors in one call, and has 300; reset it and add all") as caught:
        index.add(x[:5])
    assert caught.value.unsupported and index.ntotal == 300
    index.add(x[:0])
    assert_equal(index.search(x[:5], 3), expected)


@pytest.mark.parametrize("string", ["HKM1(chi2),IVF4,PQ8+8", "Concurrent,IVF4,PQ8+8"])
def test_refined_codes_of_faiss_are_not_removed(string):
    index = filled(string, histograms(300))
    with pytest.raises(RuntimeError, match="remove_ids: IndexIVFPQR cannot remove vectors; build the index again") as caught:
        index.remove_ids([3])
    assert caught.value.unsupported and index.ntotal == 300


@pytest.mark.parametrize("string", ["HKM1(chi2),ZnLattice2x10_4", "Concurrent,ZnLattice2x10_4", "ZnLattice2x10_4,Refine(KFlat(chi2))"])
def test_lattices_hold_no_vectors(string):
    x = histograms(300)
    index = faiss.index_factory(x.shape[1], string)
    index.train(x)
    with pytest.raises(RuntimeError, match="IndexLattice only encodes vectors and cannot hold any; a string such as SQ8") as caught:
        index.add(x)
    assert caught.value.unsupported and index.ntotal == 0


@pytest.mark.parametrize("string", ["HKM1(chi2),HNSW8", "IDMap2,HKM1(chi2),HNSW8", "HKM1(chi2),IVF4,PQ8np"])
def test_plain_parameters_where_faiss_wants_its_own(string):
    x = histograms(300)
    index = filled(string, x)
    I = index.search(x[:20], 5, filter=range(0, 150))[1]
    assert (I < 150).all() and (I >= 0).any()
    assert_equal(index.search(x[:20], 5, params=faiss.SearchParameters()), index.search(x[:20], 5))


def test_keywords_that_search_does_not_have_say_what_to_write():
    index = filled("KIVF4,Refine(KFlat(chi2))", histograms(300))
    for given, said in ((dict(sel=faiss.IDSelectorRange(0, 3)), "filter=... takes ids"),
                        (dict(nprobe=3), r"set_index_parameter\(index, 'nprobe', value\)"),
                        (dict(k_factor=3), r"set_index_parameter\(index, 'k_factor', value\)")):
        for call in (lambda: index.search(histograms(2), 3, **given), lambda: index.range_search(histograms(2), 3, **given)):
            with pytest.raises(TypeError, match=f"unexpected keyword argument.*{said}"):
                call()
    with pytest.raises(TypeError, match="search takes filter="):
        index.assign(histograms(2), 3, filter=[1])


def test_what_is_not_a_file():
    index = faiss.index_factory(4, "KFlat(chi2)")
    for bad in (3, 1.5, [1], np.zeros(3)):
        with pytest.raises(TypeError, match="expected a file name or a faiss.IOReader"):
            faiss_ext.read_index_binary(bad)
        with pytest.raises(TypeError, match="expected a file name or a faiss.IOWriter"):
            faiss.write_index(index, bad)


def test_an_open_file_is_told_apart_from_its_name(tmp_path):
    with open(tmp_path / "file", "wb") as file:
        with pytest.raises(TypeError, match="PyCallbackIOWriter"):
            faiss.write_index(faiss.index_factory(4, "KFlat(chi2)"), file)


def test_lists_of_faiss_are_asked_of_an_index_without():
    for index, _ in some_indexes():
        assert faiss.try_extract_index_ivf(index) is None
        with pytest.raises(RuntimeError, match="holds no faiss.IndexIVF; faiss_ext.index_parameters"):
            faiss.extract_index_ivf(index)
    for bad in (3, "KIVF4", None):
        with pytest.raises(TypeError, match="extract_index_ivf: expected"):
            faiss.extract_index_ivf(bad)


def test_arguments_that_are_missing_are_named():
    for call, text in (
            (lambda: faiss_ext.IndexFlatKernel(64), "'kernel', expected \\(d, kernel"),
            (lambda: faiss_ext.ShiftInvariantHash(64), "'nbits', expected \\(d, nbits"),
            (lambda: faiss_ext.IndexBinaryFlatKernel.distance(), "'kernel_value'")):
        with pytest.raises(TypeError, match=text):
            call()
    with pytest.raises(TypeError, match="kernel_value must be float, got '0.8'"):
        faiss_ext.IndexBinaryFlatKernel.distance("0.8")
    distance = faiss_ext.IndexBinaryFlatKernel.distance(0.75)
    for each in (distance, np.int32(distance)):
        assert faiss_ext.IndexBinaryFlatKernel.kernel_value(each) == pytest.approx(0.75, abs=1e-6)


def test_objects_that_are_not_kernels_say_how_to_make_one():
    with pytest.raises(TypeError, match="kernel_factory"):
        faiss_ext.IndexFlatKernel(4, "chi2")
    with pytest.raises(TypeError, match="CallbackKernel"):
        faiss_ext.IndexFlatKernel(4, lambda x, y: x @ y.T)
    for make in (lambda k: faiss_ext.ShiftInvariantHash(4, 64, k), lambda k: faiss_ext.KernelizedLSH(4, 64, k)):
        with pytest.raises(TypeError, match="kernel_factory"):
            make("gaussian")
    with pytest.raises(TypeError, match="index_factory"):
        faiss_ext.IndexRefineKernel("Flat", faiss.IndexFlatL2(4))


def test_messages_are_bounded():
    index = faiss_ext.IndexPreTransformSIMD(faiss.index_factory(4, "KFlat(gaussian(gamma=1))"))
    for _ in range(300):
        index.prepend_transform(faiss.RandomRotationMatrix(4, 4))
    index.train(np.eye(4, dtype="float32"))
    with pytest.raises(RuntimeError) as error:
        index.add_with_ids(np.eye(4, dtype="float32"), np.zeros(4, "int64"))
    assert len(str(error.value)) < 2000
    assert "more" in repr(index) and len(repr(index)) < 2000
    with pytest.raises((TypeError, ValueError)) as error:
        index.search(np.eye(4, dtype="float32"), "k" * 10000)
    assert len(str(error.value)) < 500


def test_a_file_name_in_place_of_vectors():
    with pytest.raises(TypeError, match="read_vectors"):
        faiss_ext.recommend("base.npy", "chi2")
    for function in (lambda x: faiss_ext.file_index(x, "chi2"), lambda x: faiss_ext.build_from(x, "KFlat(chi2)")):
        with pytest.raises(TypeError, match="expected (the|a) (name of a )?file"):
            function(np.zeros((3, 4), "float32"))


EARLY = """
import numpy as np, sys
from faiss import clone_index, index_factory, read_index, write_index
import faiss_ext
index = index_factory(4, "KFlat(chi2)")
index.add(np.eye(4, dtype="float32"))
write_index(index, sys.argv[1])
for copy in (read_index(sys.argv[1]), clone_index(index)):
    assert type(faiss_ext.swigfaiss_ext._downcast(copy)) is type(index) and copy.ntotal == 4
"""


def test_functions_imported_before_this_package(tmp_path):
    subprocess.run([sys.executable, "-c", EARLY, str(tmp_path / "file")], check=True)


SAME = "an index cannot be merged with itself"


@pytest.mark.parametrize("string", ["BConcurrent,BHNSW8", "IDMap,BHNSW8", "BConcurrent,BFlat", "BFlat", "BIVF4", "BConcurrent,BHash8"])
def test_adding_no_codes(string):
    z = binary_codes(100)
    index = faiss_ext.index_binary_factory(64, string)
    index.train(z)
    index.add(z)
    expected = index.search(z[:9], 3)
    index.add(z[:0])
    index.add_with_ids(z[:0], [])
    for name, arguments in (("update_vectors", ([], z[:0])), ("upsert", (z[:0], []))):
        if hasattr(index, name) and not string.endswith("BHash8"):
            getattr(index, name)(*arguments)
    assert index.ntotal == 100
    assert_equal(index.search(z[:9], 3), expected)


@pytest.mark.parametrize("string", ["Concurrent,HNSW8", "IDMap,HKM1(chi2),HNSW8", GAUSSIAN + ",BHNSW8", "Concurrent," + GAUSSIAN + ",BHNSW8",
                                    "Concurrent,PQ4x4fs", "HNSW8,Refine(KFlat(chi2))", "PQ4x4fs,Refine(KFlat(chi2))"])
def test_adding_no_vectors(string):
    x = histograms(300)
    index = filled(string, x)
    expected = index.search(x[:9], 3)
    index.add(x[:0])
    if hasattr(index, "upsert"):
        index.add_with_ids(x[:0], [])
    assert index.ntotal == 300
    assert_equal(index.search(x[:9], 3), expected)


@pytest.mark.parametrize("string", ["Concurrent,Flat", "Concurrent,SQ8", "Concurrent,PQ4x4", "HKM1(chi2),Flat", "Flat,Refine(KFlat(chi2))",
                                    "PCA8,Flat,Refine(KFlat(chi2))"])
def test_merges_of_other_metrics(string):
    x = histograms(300)
    indexes = [faiss.index_factory(D, string, metric) for metric in (faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT)]
    for index in indexes:
        index.train(x)
        index.add(x)
    for one, two in (indexes, indexes[::-1]):
        for call in (lambda: one.merge_from(two, 300), lambda: one.check_compatible_for_merge(two)):
            with pytest.raises(RuntimeError, match="cannot merge: .*metric.*(L2.*INNER_PRODUCT|INNER_PRODUCT.*L2)"):
                call()
        assert one.ntotal == two.ntotal == 300


@pytest.mark.parametrize("string", ["PQ8x4", "SQ8", "RQ2x4", "LSQ2x4", "PQ8x4fs", "PCA8,Flat", "ITQ8,LSH", "IVF2,Flat", "IVF2,SQ8"])
@pytest.mark.parametrize("frame", ["HKM1(chi2),{}", "Concurrent,{}", "HKM1(chi2),{},Refine(KFlat(chi2))"])
def test_merges_of_indexes_trained_on_other_vectors(frame, string):
    x, y = histograms(300), histograms(300, seed=2) ** 4
    one, two, copy = (faiss.index_factory(D, frame.format(string)) for _ in range(3))
    for index, training in ((one, x), (two, y)):
        index.train(training)
        index.add(training[:50])
    copy = faiss.clone_index(one)
    for call in (lambda: one.merge_from(two, 50), lambda: one.check_compatible_for_merge(two)):
        with pytest.raises(RuntimeError, match="cannot merge: .*(same parameters and training|train one index)"):
            call()
    assert one.ntotal == two.ntotal == 50
    one.merge_from(copy, 50)
    assert one.ntotal == 100 and copy.ntotal == 0


@pytest.mark.parametrize("make, string", [
    *((faiss_ext.index_binary_factory, s) for s in ("BFlat", "BIVF2", "BIVF2_HNSW8", "BConcurrent,BIVF2", "BHNSW8", "BPerm", "BKFlat(jaccard)",
                                                    "BHNSW8,BKFlat(jaccard)", "BIVF2,Refine(BKFlat(jaccard))")),
    *((faiss.index_factory, s) for s in ("KFlat(chi2)", "KIVF2", "HKM1(chi2),IVF2,Flat", "Concurrent,IVF2,Flat", "HKM1(chi2),PQ8x4",
                                         "HNSW8,KFlat(chi2)", GAUSSIAN + ",BIVF2", GAUSSIAN + ",BFlat,Refine(KFlat(chi2))"))])
@pytest.mark.parametrize("removes", [False, True])
def test_merges_with_itself(make, string, removes):
    is_binary = make is faiss_ext.index_binary_factory
    x = np.packbits(vectors(200, 64) > 0.5, axis=1) if is_binary else histograms(200)
    index = make(64 if is_binary else D, string)
    index.train(x)
    index.add(x)
    if removes:
        index.remove_ids(np.array([3]))
    expected = index.search(x[:9], 3)
    for add_id in (0, 1000):
        for call in (lambda: index.merge_from(index, add_id), lambda: index.check_compatible_for_merge(index)):
            with pytest.raises(RuntimeError, match=SAME):
                call()
    assert index.ntotal == 200 - removes
    assert_equal(index.search(x[:9], 3), expected)


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("string", [
    "KIVF16", "HKM1(chi2),IVF16,Flat", "HKM1(chi2),IVF16,SQ8", "HKM1(chi2),PCAR8,KIVF16,Refine(KFlat(chi2))",
    "Concurrent,IVF16,Flat", "AHK32(chi2),BIVF8", "SH32,BFlat", "HKM1(chi2),SQ8", "KFlat(gaussian)", "KFlat(gaussian,store=sparse)"])
def test_merges_of_untrained_indexes(string, copied):
    one, x = faiss.index_factory(16, string), histograms(700)
    two = faiss.clone_index(one) if copied else faiss.index_factory(16, string)
    trained = faiss.index_factory(16, string)
    trained.train(x)
    trained.add(x[:10])
    for a, b in ((one, two), (one, trained), (trained, two)):
        for call in (lambda a=a, b=b: a.merge_from(b, 0), lambda a=a, b=b: a.check_compatible_for_merge(b)):
            with pytest.raises(RuntimeError, match="not trained"):
                call()
    assert trained.ntotal == 10 and one.ntotal == 0
    one.train(x)
    one.add(x)
    assert one.ntotal == 700


@pytest.mark.parametrize("make, string", [
    (faiss_ext.IndexFlatKernel, "KFlat(chi2)"), (faiss_ext.IndexSparseKernel, "KFlat(chi2,store=sparse)")])
def test_merges_do_not_lose_ids(make, string):
    x = histograms(3)
    one, two = make(D, faiss_ext.kernel_factory("chi2")), faiss.index_factory(D, string)
    two.add_with_ids(x, [7, 8, 9])
    with pytest.raises(RuntimeError, match="cannot merge: the other index has a table of ids"):
        one.merge_from(two)
    assert one.ntotal == 0 and two.contains([7, 8, 9]).all()


@pytest.mark.parametrize("string", ["Concurrent,Flat", "Concurrent,SQ8"])
def test_merges_of_other_dimensions(string):
    one, two = (faiss.index_factory(d, string) for d in (16, 8))
    one.train(vectors(50))
    two.train(vectors(50, 8))
    for call in (lambda: one.merge_from(two), lambda: one.check_compatible_for_merge(two)):
        with pytest.raises(RuntimeError, match="cannot merge: .*16 dimensions.* 8; expected the same number"):
            call()


@pytest.mark.parametrize("string", ["Flat,Refine(KFlat(chi2))", "PCA8,Flat,Refine(KFlat(chi2))", "Concurrent,Flat",
                                    "Concurrent,Flat,Refine(KFlat(chi2))", "Concurrent,PCA8,Flat,Refine(KFlat(chi2))"])
@pytest.mark.parametrize("metric", [faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT])
@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize("add_id", [0, 1000])
def test_indexes_take_their_copies(string, metric, is_file, add_id):
    x = histograms(300)
    first = faiss.index_factory(D, string, metric)
    first.train(x)
    first.add(x)
    second = faiss.deserialize_index(faiss.serialize_index(first)) if is_file else faiss.clone_index(first)
    third = faiss.clone_index(second)
    for other in (second, third):
        if add_id:
            first.merge_from(other, add_id + first.ntotal)
        else:
            first.merge_from(other)
        assert other.ntotal == 0
    assert first.ntotal == 900
    if metric == faiss.METRIC_L2:
        shifts = [0, add_id + 300, add_id + 600]
        labels = np.sort(first.search(x[:20], 3)[1], axis=1)
        np.testing.assert_array_equal(labels, np.add.outer(np.arange(20), shifts))
    second.add(x)
    assert second.ntotal == 300


@pytest.mark.parametrize("string", ["Concurrent,IVF4,Flat", "Concurrent,PCA8,IVF4,Flat", "Concurrent,IVF4,PQ4x4", "HKM1(chi2),IVF4,Flat"])
def test_vectors_found_with_filters_in_lists(string):
    x = histograms(300)
    index = filled(string, x)
    allowed = np.arange(0, 300, 7)
    for k in (3, 100):
        distances, labels, found = index.search_and_reconstruct(x[:9], k, filter=allowed)
        assert_equal((distances, labels), index.search(x[:9], k, filter=allowed))
        for row, vectors_found in zip(labels, found):
            for label, vector in zip(row, vectors_found):
                assert label in allowed or label == -1
                expected = np.full(D, np.nan) if label == -1 else index.reconstruct(int(label))
                np.testing.assert_array_equal(vector, expected)
    index.add_with_ids(x[:1], [5000])  # makes a table
    after = index.search_and_reconstruct(x[:9], 3, filter=allowed)
    for a, b in zip(after, (distances[:, :3], labels[:, :3], found[:, :3])):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("string", ["BFlat", "BIVF4", "BKFlat(jaccard)", "BConcurrent,BFlat", "IDMap,BFlat"])
def test_binary_indexes_are_not_merged_with_themselves(string):
    index = faiss_ext.index_binary_factory(64, string)
    index.train(binary_codes())
    index.add(binary_codes())
    for call in (lambda: index.merge_from(index), lambda: index.check_compatible_for_merge(index)):
        with pytest.raises(RuntimeError, match=SAME):
            call()
    assert index.ntotal == 50


@pytest.mark.parametrize("string", ["SQ8,Refine(KFlat(chi2))", "IDMap,KFlat(chi2)", "Concurrent,Flat", "HKM1(chi2),Flat", "Concurrent,IVF4,Flat",
                                    GAUSSIAN + ",BFlat", GAUSSIAN + ",AFlat"])
def test_indexes_are_not_merged_with_themselves(string):
    index = filled(string, histograms(300))
    for call in (lambda: index.merge_from(index), lambda: index.check_compatible_for_merge(index)):
        with pytest.raises(RuntimeError, match=SAME):
            call()
    assert index.ntotal == 300


def test_too_few_training_vectors():
    """The error says how many vectors are needed, or what FAISS says, without FAISS's source."""
    x = vectors(100)
    for string, words in (
            ("IVF4,Flat,Refine(KFlat(linear))", "IndexRefineKernel::train: the training of IndexIVFFlat needs at least 4 vectors, one for each "
             "inverted list, got 2"),
            ("Concurrent,IVF4,Flat", "IndexPreTransformSIMD::train: the training of IndexIVFFlat needs at least 4"),
            ("IDMap,PCA2,IVF4,Flat,Refine(KFlat(linear))", "IndexRefineKernel::train: the training of IndexPreTransform needs at least 4"),
            (f"{GAUSSIAN},BIVF4", "train: the training of IndexBinaryIVFSIMD needs at least 4"),
            ("PCA8,Flat,Refine(KFlat(linear))", "IndexRefineKernel.train: PCA matrix cannot output 8 dimensions from 16")):
        index = faiss.index_factory(D, string)
        error = outcome(lambda: index.train(x[:2]))
        assert str(error).startswith(words), str(error)
        assert not index.is_trained
        index.train(x)
        index.add(x)
    index = faiss.index_factory(D, "IMI2x4,Flat,Refine(KFlat(linear))")  # its quantizer makes 256 lists of 100 vectors
    index.train(x)
    assert index.is_trained


def test_errors_keep_their_vector_by_data():
    index = faiss_ext.index_factory(D, "KFlat(chi2)")
    x = vectors(3)
    x[1, 2] = -1
    with pytest.raises(RuntimeError) as caught:
        index.add(x)
    error = caught.value
    assert error.vector == 1
    other = errors.reworded(error, f"there is another problem, as quoted: {error}")
    assert not hasattr(other, "vector") and other.place == error.place
    front = errors.with_prefix(error, "file: ", ValueError)
    assert isinstance(front, ValueError) and str(front) == f"file: {error}" and front.vector == 1
    assert str(errors.with_vector(front, 7)) == f"file: {error}".replace("vector 1", "vector 7")


@pytest.mark.parametrize("string", ["KFlat(chi2)", "IDMap,KFlat(chi2)", "Concurrent,AHK64(chi2),BFlat,Refine(KFlat(chi2))", "AHK64(chi2),BFlat"])
def test_ids_that_are_no_ids(string):
    index, x = faiss.index_factory(D, string), vectors(9)
    index.train(x)
    index.add_with_ids(x, np.arange(9))
    for call, words in (
            (lambda: index.add_with_ids(x[:2], [2**63, 1]), f"add_with_ids: id {2**63} is too large, ids are 64-bit integers"),
            (lambda: index.add_with_ids(x[:2], [1, 2**70]), f"add_with_ids: id {2**70} is too large, ids are 64-bit integers"),
            (lambda: index.add_with_ids(x[:1], np.array([2**64 - 1], "uint64")), f"id {2**64 - 1} is too large"),
            (lambda: index.contains([-2**63 - 1]), f"contains: id {-2**63 - 1} is too small"),
            (lambda: index.contains([1.5]), "ids must be integers, got an array of float64"),
            (lambda: index.update_vectors(3, x[:1]), r"update_vectors: expected 1 ids, got 3; write \[3\] for an array of one"),
            (lambda: index.upsert(x[:1], 3), r"upsert: expected 1 ids, got 3; write \[3\]"),
            (lambda: index.update_vectors([3], x[0]), rf"update_vectors: expected an array of shape \(n, {D}\), got \({D},\); for one vector, x\[None\]"),
            (lambda: index.upsert(x[0], [3]), r"upsert: .* for one vector, x\[None\]")):
        with pytest.raises((TypeError, ValueError), match=words):
            call()
    assert index.contains(3) and not index.contains(9) and not index.contains(-1)
    assert index.contains(np.int64(3)).shape == () and index.contains([3, 9]).tolist() == [True, False]
    x[1, 2] = np.nan
    for name, call in (("update_vectors", lambda: index.update_vectors([2, 4], x[:2])), ("upsert", lambda: index.upsert(x[:2], [2, 14]))):
        with pytest.raises(RuntimeError, match=rf"^Index\w+::{name}: .*vector 1 ") as caught:
            call()
        assert caught.value.vector == 1 and not re.match(r"(\w+)::\w+: \1::", str(caught.value))
    index.add_with_ids(x[:1], [2**63 - 1])
    with pytest.raises(RuntimeError, match=f"::add: the number of new vectors is 1, expected at most 0: ids up to {2**63 - 2} have been given"):
        index.add(x[:1])


@pytest.mark.parametrize("string", [
    "KFlat(chi2)", "HNSW8,KFlat(chi2)", "AHK64(chi2),BFlat",
    "HKM1(chi2),PCAR8,KIVF4(M=8),Refine(KFlat(chi2))"])
def test_searches_of_float32_equal_those_of_converted_vectors(string):
    x = histograms(200)
    index = filled(string, x)
    for k in (1, 10, 300):
        for n in (0, 1, 5):
            assert_equal(index.search(x[:n], k),
                         index.search(x[:n].astype("float64"), np.int64(k)))
    bad = x[:5].copy()
    bad[2, 3] = np.nan
    errors_of = []
    for queries in (bad, bad.astype("float64")):
        with pytest.raises((RuntimeError, ValueError), match="vector 2") as error:
            index.search(queries, 3)
        errors_of.append((error.type, str(error.value)))
    assert errors_of[0] == errors_of[1]
    with pytest.raises(ValueError, match="k must be positive, got 0"):
        index.search(x[:1], 0)
    with pytest.raises(ValueError, match=r"shape \(n, 16\), got \(1, 15\)"):
        index.search(np.ascontiguousarray(x[:1, :15]), 3)


def test_errors_of_plain_searches_name_the_method():
    index = faiss.index_factory(D, "SIK64(gaussian),BFlat")
    messages = []
    for queries in (vectors(2), vectors(2).astype("float64")):
        with pytest.raises(RuntimeError) as error:
            index.search(queries, 3)
        messages.append(str(error.value))
    assert messages[0] == messages[1] and "train" in messages[0]
