# SPDX-License-Identifier: MIT
"""Kernelised LSH: its gains on real data, and kernels computed by Python
functions."""

import copy
import functools
import gc
import os
import pickle
import re
import traceback
import weakref
from pathlib import Path

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import BASE, IP, QUERIES, ROOT, made, script
from scipy import stats


def chi2(x, y):
    """The chi-square kernel, in double precision."""
    a, b = x[:, None, :].astype(float), y[None, :, :].astype(float)
    return (2 * a * b / np.where(a + b > 0, a + b, 1)).sum(axis=2)


def trained(keys, x=BASE, p=100):
    hash = faiss_ext.kernel_hash_factory(64, f"KLSH256(chi2,p={p},t=20,{keys})")
    hash.train(x)
    return hash


# --------------------------------------------------------------- real data

def data_set(name):
    """Histograms, queries, and numbers of landmarks and of t."""
    folder = os.environ.get("FAISS_EXT_DATA")
    if name == "digits":
        return BASE, QUERIES, 200, 20
    if not folder or not (Path(folder) / name).is_dir():
        pytest.skip(f"needs real data: let FAISS_EXT_DATA name a folder with {name}/")
    data = script("datasets").load(folder, name, queries=500, limit=20_000)
    base, queries = (
        x / np.maximum(x.sum(axis=1, keepdims=True), 1e-30)
        for x in (data.base, data.queries))
    return base, queries, 500, 50


# which ones gain by what else depends on the data
@pytest.mark.parametrize("name, keys", [
    ("digits", "rank=32,scale=5"), ("sceaux_sift", "rank=64,scale=5"),
    ("mnist", "rank=128")])
def test_gains_on_real_data(name, keys):
    base, queries, p, t = data_set(name)
    exact = faiss.index_factory(base.shape[1], "KFlat(chi2)", IP)
    exact.add(base)
    _, truth = exact.search(queries, 100)
    y = base[np.random.default_rng(3).permutation(len(base))[:p]]
    kernel = faiss_ext.Chi2Kernel()
    K, rows, query_rows = (kernel.gram(z, y) for z in (y, base, queries))

    @functools.lru_cache(maxsize=None)
    def measure(keys):
        """Each query's share of the 100 nearest among the first 100, and how
        far shares of ones are from 1/2."""
        draw = "" if "draw=gauss" in keys else f"t={t},"
        index = faiss.index_factory(p, f"KLSH256(precomputed,{draw}seed=1,{keys}),BFlat")
        index.train(K)
        index.add(rows)
        _, found = index.search(query_rows, 100)
        shares = [len(np.intersect1d(a, b)) / 100 for a, b in zip(found, truth)]
        bits = np.unpackbits(index.hash.encode(rows[:1000]), axis=1)
        return np.array(shares), np.abs(bits.mean(axis=0) - 0.5)

    def assert_gain(better, worse, least=0.0):
        # by four standard errors of each query's difference
        difference = measure(better)[0] - measure(worse)[0]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        assert difference.mean() - 4 * error > least, (better, worse)

    assert_gain("center=1", "center=0", 0.03 if name == "sceaux_sift" else 0)
    for center in ("center=0", "center=1"):
        assert_gain(f"{center},{keys}", center)
    centred, plain = (measure(f"center={c}")[1].mean() for c in (1, 0))
    assert centred < 0.5 * plain
    # Nyström's matrix collapses with CLT draws only
    clt, gauss = "nystrom=1,center=0", "nystrom=1,center=0,draw=gauss,rank=64"
    assert_gain("center=0", clt, 0.1)
    assert_gain(gauss, clt, 0.1)
    constant = [np.mean(measure(k)[1] > 0.49) for k in (clt, gauss)]
    assert constant[0] > 0.9 and constant[1] < 0.5


def test_auto_parameters_are_then_as_if_given():
    one = trained("rank=auto,scale=auto,center=0", p=120, x=BASE[:500])
    for twin in (one, copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert twin.map.rank in (16, 32, 64, 119, 120)
        assert twin.map.scale in (0, 1, 3, 5, 7, 9)
        assert "auto" not in twin.description()
        np.testing.assert_array_equal(twin.encode(QUERIES), one.encode(QUERIES))


# ----------------------------------------------------------------- scripts

def test_strings_are_found_by_their_misspellings(capsys):
    example = script("example_strings")
    words = example.python_words()
    example.python_words = lambda: words  # it takes a while
    rng = np.random.default_rng(1)
    meant = rng.choice([w for w in words if len(w) >= 6], 200, replace=False)
    misspelt = []  # two neighbouring letters inside have changed places
    for word in meant:
        i = rng.integers(1, len(word) - 2)
        misspelt.append(word[:i] + word[i + 1] + word[i] + word[i + 2:])
    results = list(example.search(words, misspelt))
    assert all(len(set(found)) == 50 for found in results)
    hits = sum(found[0] == word for word, found in zip(meant, results))
    # by chance: 1 in thousands. More than four in five, beyond doubt
    assert stats.binom.sf(hits - 1, 200, 0.8) < 1e-6, f"{hits} of 200"

    # what it prints is what it says of it
    example.main()
    lines = capsys.readouterr().out.splitlines()
    header = next(i for i, l in enumerate(lines) if l.startswith("misspelt"))
    rows = [line.split() for line in lines[header + 1:-2]]
    n, first = len(rows), sum(found == word for _, word, found, *_ in rows)
    assert n >= 10 and first >= 0.9 * n
    for _, word, found, right, *_ in rows:
        assert right == ("yes" if found == word else "no")
    said = re.search(rf" (\d+) of {n}, .*first five .* (\d+) of {n}", lines[-1])
    assert int(said[1]) == first <= int(said[2]) <= n


def test_the_table_of_recalls_is_printed(run_python, tmp_path):
    np.save(tmp_path / "base.npy", BASE[:300])
    np.save(tmp_path / "query.npy", QUERIES)
    output = run_python(
        "import runpy, sys\ndel sys.argv[0]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')",
        ROOT / "bench" / "papers" / "klsh_recall.py",
        *f"--data {tmp_path} --bits 64 --landmarks 100 --t 10".split(),
        *"--seeds 1 --queries 100 --kernels chi2,intersection".split())
    assert "d = 64; 64 bits, p = 100, t = 10; mean of 1 seeds" in output
    recall = {}
    for row in re.findall(r"^\| (.+?) \|(.*)\| .* \|$", output, re.M):
        if re.search(r"\d", row[1]) and "recall@" not in row[1]:
            values = [float(v) for v in row[1].split("|")]
            assert 0 <= values[0] <= values[1] <= values[2] <= 1
            recall.setdefault(row[0], []).append(values[1])
    assert len(recall) == 14
    # recall@10 of 300: far above and near chance
    assert max(recall["Nyström, CLT draw, as in the papers"]) < 0.3
    assert min(recall["plain, centred query"]) > 0.7


def test_statistics_can_be_read():
    index = made("KLSH64(chi2,p=50),BPerm(M=3,B=2)", BASE)
    stats = faiss_ext.cvar.indexBinaryPermuted_stats
    stats.reset()
    index.search(QUERIES, 5)
    assert stats.nq == 200 and stats.ntotal == 200 * len(BASE)


# --------------------------------------------------- kernels of functions

def callback(function=chi2):
    return faiss_ext.CallbackKernel(function)


def callback_hash(kernel):
    hash = faiss_ext.KernelizedLSH(64, 64, kernel)
    hash.map.p, hash.t = 50, 10
    return hash


def test_a_callback_stands_for_the_built_in_kernel():
    kernel = callback()
    assert isinstance(kernel, faiss_ext.Kernel) and kernel.is_trained
    outer = faiss_ext.ExponentialKernel(faiss_ext.NormalizedKernel(kernel), 3.0)
    for one, name in ((kernel, "chi2"), (outer, "exponential(normalized(chi2),scale=3)")):
        built_in = faiss_ext.kernel_factory(name)
        for x, y in ((9 * QUERIES, BASE[:300]), (9 * QUERIES[:1], BASE)):
            np.testing.assert_allclose(one.gram(x, y), built_in.gram(x, y), rtol=1e-5)
        value = built_in(BASE[0], BASE[1])
        assert one(BASE[0], BASE[1]) == pytest.approx(value, rel=1e-5)
    # negative components are the function's business
    assert callback(lambda X, Y: X @ Y.T).gram(-BASE[:3]).shape == (3, 3)


def test_a_callback_sees_float32_arrays_of_its_own():
    seen = []

    def f(X, Y):
        seen.append((X.copy(), Y.copy()))
        for z in (X, Y):
            assert type(z) is np.ndarray and z.dtype == np.float32
            assert z.flags.c_contiguous and z.shape[1] == 64
        values = X @ Y.T
        X[...] = 7  # changes nothing but its own
        Y[...] = 7
        return values

    x, y = QUERIES[:70].copy(), BASE[:30].copy()
    np.testing.assert_allclose(callback(f).gram(x, y), x @ y.T, rtol=1e-5)
    # together they are all rows
    rows = np.vstack([X for X, _ in seen])
    np.testing.assert_array_equal(np.unique(rows, axis=0), np.unique(x, axis=0))
    for _, Y in seen:
        np.testing.assert_array_equal(Y, y)
    index = faiss_ext.IndexFlatKernel(64, callback(f), IP)
    index.add(y)
    index.search(x, 3)
    np.testing.assert_array_equal(x, QUERIES[:70])
    np.testing.assert_array_equal(y, BASE[:30])
    np.testing.assert_array_equal(index.reconstruct_n(0, 30), y)


@pytest.mark.parametrize("convert", [
    lambda values: values.astype("float64"), np.asfortranarray, np.ndarray.tolist,
    lambda values: np.round(values * 8).astype("int16"),
    lambda values: values > 0.5], ids="float64 fortran list int16 bool".split())
def test_a_callback_may_return_any_kind_of_array(convert):
    x, y = QUERIES[:9], BASE[:20]
    values = callback(lambda X, Y: convert(chi2(X, Y))).gram(x, y)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, convert(chi2(x, y)), rtol=1e-6)


def test_calls_of_a_callback_are_few():
    """They cost more than values: a few per batch, and none for nothing."""
    calls = []

    def f(X, Y):
        calls.append(1)
        return chi2(X, Y)

    hash = callback_hash(callback(f))
    hash.train(BASE)
    index = faiss_ext.IndexFlatKernel(64, callback(f))
    index.add(BASE)
    calls.clear()
    hash.encode(BASE)
    index.search(QUERIES[:16], 3)
    assert len(calls) <= len(BASE) / 4
    calls.clear()
    kernel, nothing = callback(f), np.zeros((0, 64))
    assert kernel.gram(nothing).shape == (0, 0)
    assert kernel.gram(nothing, BASE).shape == (0, 1597)
    assert kernel.gram(BASE, nothing).shape == (1597, 0)
    bad = BASE.copy()
    bad[5, 3] = np.nan
    with pytest.raises(RuntimeError, match="component 3 of vector 5"):
        kernel.gram(bad)
    assert not calls


def test_hashes_and_indexes_by_a_callback():
    q, base = QUERIES[:20], BASE[:150]
    hashes = [callback_hash(kernel) for kernel in (callback(), faiss_ext.Chi2Kernel())]
    for hash in hashes:
        hash.map.rank, hash.map.scale = 16, 3.0
        hash.train(BASE)
    found, expected = (hash.apply(QUERIES) for hash in hashes)
    assert np.abs(found - expected).max() < 1e-2 * np.abs(expected).max()
    for cls in (faiss_ext.IndexKernelHash, faiss_ext.IndexBinaryKernelHash):
        index = cls(hashes[0], faiss.IndexBinaryFlat(64))
        index.add(base)
        assert (index.search(base, 1)[0] == 0).all()
    # exact, ranking again what others find, and by a graph
    values = chi2(q, base)
    nearest = np.sort(2 - 2 * values, axis=1)[:, :3]
    flat = faiss_ext.IndexFlatKernel(64, callback())
    again = faiss_ext.IndexFlatKernel(64, callback())
    refined = faiss.IndexRefine(faiss.IndexFlatL2(64), again)
    refined.k_factor = 50
    for index in (flat, refined):
        index.add(base)
        np.testing.assert_allclose(index.search(q, 3)[0], nearest, atol=1e-5)
    inner = faiss_ext.IndexFlatKernel(64, callback(), IP)
    graph = faiss.IndexHNSW(inner, 8)
    graph.add(base)
    graph.hnsw.efSearch = 64
    D, I = graph.search(q, 1)
    assert (I[:, 0] == values.argmax(axis=1)).mean() >= 0.9
    np.testing.assert_allclose(np.abs(D[:, 0]), values[range(20), I[:, 0]], rtol=1e-5)


class Custom(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)
        self.two = two


class Base(BaseException):
    pass


ERRORS = [
    ValueError("no such value"), KeyError("key"), MemoryError(), OSError(2, "?"),
    StopIteration(3), UnicodeDecodeError("utf-8", b"x", 0, 1, "why"),
    Custom("one", 2), Base(), SystemExit(5), GeneratorExit(), KeyboardInterrupt()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_exceptions_of_a_callback_reach_the_caller(error):
    for after in (0, 2):
        calls = []

        def the_callback(X, Y):
            calls.append(1)
            if len(calls) > after:
                raise error
            return chi2(X, Y)

        error.__traceback__ = None
        with pytest.raises(type(error)) as info:
            callback(the_callback).gram(BASE, BASE)
        assert info.value is error
        names = [f.name for f in traceback.extract_tb(error.__traceback__)]
        assert names[-1] == "the_callback" and "gram" in names
    # and all is well afterwards
    assert callback().gram(BASE[:3]).shape == (3, 3)


@pytest.mark.parametrize("threads", [1, 3])
def test_exceptions_reach_every_caller(threads):
    error = Custom("one", 2)
    broken = []

    def f(X, Y):
        if broken:
            raise error
        return chi2(X, Y)

    hash, untrained = (callback_hash(callback(f)) for _ in range(2))
    hash.train(BASE)
    codes = hash.encode(QUERIES)
    index = faiss_ext.IndexKernelHash(hash, faiss.IndexBinaryFlat(64))
    flat = faiss_ext.IndexFlatKernel(64, callback(f))
    index.add(BASE[:100])
    flat.add(BASE[:100])
    before = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(threads)
        broken.append(True)
        for function in (
            lambda: hash.encode(BASE),
            lambda: hash.apply(BASE),
            lambda: untrained.train(BASE),
            lambda: index.add(BASE),
            lambda: index.search(QUERIES, 3),
            lambda: index.range_search(QUERIES, 3),
            lambda: flat.search(QUERIES, 3),
            lambda: flat.search(QUERIES[:1], 3),
            lambda: flat.range_search(QUERIES, 0.5),
            lambda: hash.map.kernel(BASE[0], BASE[1]),
        ):
            with pytest.raises(Custom) as info:
                function()
            assert info.value is error and error.two == 2
    finally:
        faiss.omp_set_num_threads(before)
    assert not untrained.is_trained and index.ntotal == flat.ntotal == 100
    broken.clear()
    untrained.train(BASE)
    for each in (hash, untrained):
        np.testing.assert_array_equal(each.encode(QUERIES), codes)


def returning(values):
    return lambda X, Y: values(np.zeros((len(X), len(Y))))


@pytest.mark.parametrize("function, error, names", [
    (returning(lambda v: v.T), ValueError, r"\(40, 30\).*\(30, 40\)"),
    (returning(lambda v: v[:, :, None]), ValueError, r"\(40, 30, 1\)"),
    (returning(lambda v: v.ravel()), ValueError, r"\(1200,\)"),
    (returning(lambda v: 0.5), ValueError, r"\(\)"),
    (returning(lambda v: None), ValueError, r"\(\)"),
    (returning(lambda v: v + np.nan), ValueError, "finite"),
    (returning(lambda v: v - 1e39), ValueError, "finite"),
    (returning(lambda v: v + 1j), (TypeError, ValueError), ""),
    (returning(lambda v: v.astype("U1")), (TypeError, ValueError), ""),
    (returning(lambda v: v.astype(object)), (TypeError, ValueError), ""),
    (lambda X: X, TypeError, "argument"),
    (None, TypeError, "not callable"),
    ("chi2", TypeError, "not callable")])
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_kernel_is_refused(function, error, names):
    with pytest.raises(error, match=names):
        callback(function).gram(QUERIES[:40], BASE[:30])


# ---------------------------------------- callbacks in processes of their own

@pytest.fixture
def run_code(run_python):
    """Runs code, which finds x and f, a kernel of NumPy's; stops it if it
    hangs."""
    return lambda code: run_python(PRELUDE + code)


PRELUDE = """
import faulthandler
faulthandler.dump_traceback_later(90, exit=True)
import faiss, faiss_ext, numpy as np, os, signal, threading, time
from concurrent.futures import ThreadPoolExecutor
x = np.random.default_rng(1).random((300, 8)).astype("float32")
class Custom(Exception): pass
def f(X, Y):
    return X @ Y.T
def flat_of(g):
    return faiss_ext.IndexFlatKernel(
        8, faiss_ext.CallbackKernel(g), faiss.METRIC_INNER_PRODUCT)
def hash_of(kernel):
    hash = faiss_ext.KernelizedLSH(8, 64, kernel)
    hash.map.p, hash.t, hash.map.normalize = 50, 10, False
    hash.train(x)
    return hash
"""


@pytest.mark.parametrize("threads, call", [
    (1, "kernel.gram(X, X[:500])"), (2, "hash.encode(X)"),
    (2, "flat.search(X, 3)"),
    (1, "refined.search(X[:600], 3)")])
def test_an_interrupt_inside_a_callback(run_code, threads, call):
    """Whichever thread the callback is in, and long before all is done."""
    output = run_code(f"""
faiss.omp_set_num_threads({threads})
armed, calls = False, 0
def g(X, Y):
    global calls
    if armed:
        calls += 1
        if calls == 3:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)
    return f(X, Y)
kernel, flat, again = faiss_ext.CallbackKernel(g), flat_of(g), flat_of(g)
hash = hash_of(kernel)
X = np.tile(x, (200, 1))
flat.add(x)
refined = faiss_ext.IndexRefineKernel(faiss.IndexFlatIP(8), again)
refined.add(x)
refined.k_factor = 30
armed = True
# a shell may have started this process with interrupts ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    {call}
    print("went on", calls)
except KeyboardInterrupt:
    print("interrupted", calls)
armed = False
np.testing.assert_allclose(kernel.gram(x), x @ x.T, rtol=1e-5)
""")
    word, calls = output.split()
    assert word == "interrupted" and int(calls) < 200  # of more than 300


def test_callbacks_from_several_python_threads(run_code):
    """Many at once, on many threads each; exceptions reach their own caller."""
    output = run_code("""
def refined(i):
    broken = []
    def g(X, Y):
        if broken:
            raise Custom(i)
        return f(X, Y)
    parts = faiss.IndexFlatIP(8), flat_of(g)
    index = faiss_ext.IndexRefineKernel(*parts)
    index.add(x)
    index.k_factor = 3
    broken.append(True)
    return index, parts
kernel, flat = faiss_ext.CallbackKernel(f), flat_of(f)
hash = hash_of(kernel)
flat.add(x)
codes, gram, I = hash.encode(x), kernel.gram(x), flat.search(x, 3)[1]
def work(i):
    index, parts = refined(i)
    for _ in range(3):
        try:
            index.search(x[:10], 2)
            raise AssertionError("no exception")
        except Custom as e:
            assert e.args == (i,)
    np.testing.assert_array_equal(hash.encode(x[:50]), codes[:50])
    np.testing.assert_array_equal(flat.search(x, 3)[1], I)
    own = faiss_ext.CallbackKernel(lambda X, Y: f(X, Y) + i)
    np.testing.assert_allclose(own.gram(x), gram + i, rtol=1e-5)
for threads in (1, 3):
    faiss.omp_set_num_threads(threads)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(20)))
print("end")
""")
    assert output == "end\n"


def test_a_callback_may_use_faiss_ext_itself(run_code):
    """And what is left of callbacks at exit is no trouble."""
    output = run_code("""
inner = faiss_ext.Chi2Kernel()
innermost = faiss_ext.CallbackKernel(lambda X, Y: inner.gram(X, Y))
def g(X, Y):
    index = faiss_ext.index_factory(8, "KLSH64(chi2,p=20,t=5),BFlat")
    index.train(x)
    index.add(x[:30])
    index.search(X[:1], 3)
    return innermost.gram(X, Y)
kernel = faiss_ext.CallbackKernel(g)
np.testing.assert_allclose(
    kernel.gram(x[:200], x), inner.gram(x[:200], x), rtol=1e-6)
np.testing.assert_array_equal(hash_of(kernel).encode(x),
                              hash_of(inner).encode(x))
# an exception through two of them
def bad(X, Y):
    raise LookupError("deep")
deep = faiss_ext.CallbackKernel(bad)
outer = faiss_ext.CallbackKernel(lambda X, Y: deep.gram(X, Y))
try:
    outer.gram(x)
except LookupError as e:
    print(e)
hash, flat = hash_of(kernel), flat_of(f)
class Holder: pass
cycle = Holder()
cycle.itself, cycle.kernel = cycle, faiss_ext.CallbackKernel(lambda X, Y: 0)
""")
    assert output == "deep\n"


# --------------------------------------------------- lifetimes and copies

def test_a_callback_is_freed_with_the_last_that_holds_it():
    def function(X, Y):
        return chi2(X, Y)

    kernel, gone = callback(function), weakref.ref(function)
    hash = callback_hash(kernel)
    flat = faiss_ext.IndexFlatKernel(64, kernel)
    index = faiss_ext.IndexKernelHash(hash, faiss.IndexBinaryFlat(64))
    holders = [kernel, kernel.copy(), faiss_ext.NormalizedKernel(kernel), hash, index]
    holders += [hash.copy(), flat, faiss.IndexHNSW(flat, 8)]
    del function, kernel, hash, flat, index
    while holders:
        gc.collect()
        assert gone() is not None, holders
        holder = holders.pop(0)
        if isinstance(holder, faiss_ext.KernelHash):
            holder.train(BASE)
            assert holder.map.kernel(BASE[0], BASE[0]) == pytest.approx(1)
        del holder
    gc.collect()
    assert gone() is None


def test_callbacks_are_copied_but_not_written():
    """Although copies of indexes go through a file format."""
    hash = callback_hash(callback())
    hash.train(BASE)
    flat = faiss_ext.IndexFlatKernel(64, callback())
    codes = faiss_ext.IndexKernelHash(hash, faiss.IndexBinaryFlat(64))
    binary = faiss_ext.IndexBinaryKernelHash(hash, faiss.IndexBinaryFlat(64))

    def results(thing):
        if hasattr(thing, "search"):
            return np.hstack(thing.search(QUERIES, 5))
        is_hash = isinstance(thing, faiss_ext.KernelHash)
        return (thing.encode if is_hash else thing.gram)(QUERIES)

    for index in (flat, codes, binary):
        index.add(BASE[:100])
    normalized = faiss_ext.NormalizedKernel(callback())
    for thing in (callback(), normalized, hash, flat, codes, binary):
        copies, writers = [copy.deepcopy], [pickle.dumps]
        if isinstance(thing, faiss.Index):
            copies.append(faiss.clone_index)
            writers.append(faiss.serialize_index)
        for twin in [make(thing) for make in copies]:
            assert type(twin) is type(thing)
            np.testing.assert_array_equal(results(twin), results(thing))
            for write in writers:
                with pytest.raises(Exception, match="(?i)callback") as caught:
                    write(twin)
                assert re.search("cannot be|no files", str(caught.value))
