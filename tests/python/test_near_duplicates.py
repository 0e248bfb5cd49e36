# SPDX-License-Identifier: MIT
"""near_duplicates and near_duplicate_groups: the pairs that SciPy or sets of Python give; the command line."""

import json

import faiss
import faiss_ext
import numpy as np
import pytest
from faiss_ext import near_duplicate_groups, near_duplicates
from faiss_ext.command_line import main
from faiss_ext.duplicates import first_of_groups
from helpers import is_interrupted
from hypothesis import given, settings
from hypothesis import strategies as st

sparse = pytest.importorskip("scipy.sparse")
csgraph = pytest.importorskip("scipy.sparse.csgraph")


def rows_of(sets, d=1000):
    """Sets of numbers as rows of ones."""
    indptr = np.cumsum([0, *map(len, sets)])
    columns = [c for s in sets for c in sorted(s)]
    return sparse.csr_array((np.ones(len(columns), "float32"), columns, indptr), shape=(len(sets), d))


def jaccard(a, b):
    return np.float32(len(a & b)) / np.float32(len(a | b)) if a or b else np.float32(1)


def expected_groups(pairs, n):
    graph = sparse.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    labels = csgraph.connected_components(graph, directed=False)[1]
    first = np.full(n, n)
    np.minimum.at(first, labels, np.arange(n))
    return first[labels]


@st.composite
def similar_sets(draw):
    """Sets, some of which differ from an earlier one in a few numbers."""
    number = st.integers(0, 15)
    sets = draw(st.lists(st.sets(number, max_size=12), max_size=12))
    for base in draw(st.lists(st.sampled_from(sets), max_size=12)) if sets else []:
        sets.append(base ^ draw(st.sets(number, max_size=2)))
    return sets


@settings(max_examples=300, deadline=None)
@given(similar_sets(), st.fractions(min_value="1/12", max_value=1, max_denominator=24))
def test_sets_by_their_jaccard_coefficients(sets, threshold):
    pairs, values = near_duplicates(rows_of(sets), threshold)
    expected = [(i, j, jaccard(a, b)) for j, b in enumerate(sets) for i, a in enumerate(sets[:j])
                if jaccard(a, b) >= np.float32(threshold)]
    expected.sort()
    assert [(i, j, v) for (i, j), v in zip(pairs.tolist(), values)] == expected
    assert (near_duplicate_groups(rows_of(sets), threshold) == expected_groups(pairs, len(sets))).all()


@pytest.mark.parametrize("kernel", ["jaccard", "cosine", "chi2"])
def test_frequent_columns_in_the_time_of_a_search(kernel):
    """So many vectors that lists of rare columns would be slow."""
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.arange(300))
    sets = [set(rng.choice(300, 40, p=p / p.sum()).tolist()) for _ in range(4000)]
    x = rows_of(sets, 300)
    index = faiss.index_factory(300, f"KFlat({kernel},store=sparse)", faiss.METRIC_INNER_PRODUCT)
    index.add(x)
    threshold = float(np.sort(index.search(x, 2)[0][:, 1])[-200])  # of some hundred pairs
    lims, _, ids = index.range_search(x, float(np.nextafter(np.float32(threshold), np.float32(0))))
    first = np.repeat(np.arange(4000), np.diff(lims).astype(int))
    expected = sorted(zip(first[first < ids].tolist(), ids[first < ids].tolist()))
    for missed in (0, 1e-9):
        pairs, _ = near_duplicates(x, threshold, kernel, missed=missed)
        assert len(expected) >= 100 and pairs.tolist() == [list(pair) for pair in expected]
    assert (near_duplicate_groups(x, threshold, kernel) == expected_groups(pairs, 4000)).all()


@pytest.fixture(scope="module")
def texts():
    """Histograms of words, every other one like an earlier one."""
    rng = np.random.default_rng(1)
    p = 1 / np.arange(1, 501)
    x = rng.multinomial(40, p / p.sum(), 400)
    source = rng.integers(0, 400, 400)
    x[1::2] = x[source[1::2]]
    x[1::2] += rng.multinomial(2, p / p.sum(), 200)
    return (x / x.sum(axis=1, keepdims=True)).astype("float32")


def angles(x):
    x = x.astype("float64") / np.linalg.norm(x, axis=1, keepdims=True)
    return x @ x.T


VALUES = {
    "cosine": angles,
    "hellinger": lambda x: np.sqrt(x) @ np.sqrt(x).T,
    "chi2": lambda x: np.array([np.nansum(2 * a * x / (a + x + (a + x == 0)), axis=1) for a in x.astype("float64")]),
    "jaccard": lambda x: np.array([np.minimum(a, x).sum(1) / np.maximum(a, x).sum(1) for a in x.astype("float64")]),
    "dice": lambda x: np.array([2 * np.minimum(a, x).sum(1) / (a + x).sum(1) for a in x.astype("float64")])}


@pytest.mark.parametrize("kernel", VALUES)
@pytest.mark.parametrize("threshold", [0.3, 0.7, 0.9])
def test_kernels_by_numpy(texts, kernel, threshold):
    all_values = np.triu(VALUES[kernel](texts), 1)
    pairs, values = near_duplicates(texts, threshold, kernel)
    found = np.zeros(all_values.shape, bool)
    found[tuple(pairs.T)] = True
    assert found.sum() == len(pairs) > 20 and pairs.dtype == np.int64
    assert (np.lexsort((pairs[:, 1], pairs[:, 0])) == np.arange(len(pairs))).all()
    # values so near are matters of rounding
    assert found[all_values > threshold + 1e-6].all() and not found[all_values < threshold - 1e-6].any()
    np.testing.assert_allclose(values, all_values[tuple(pairs.T)], rtol=1e-5)
    assert values.dtype == np.float32


@pytest.mark.parametrize("form", [
    lambda x: x, lambda x: x.astype("float64"), lambda x: x.tolist(), np.asfortranarray, sparse.csr_array,
    sparse.csc_array, sparse.coo_matrix, lambda x: sparse.csr_array(x.astype("float64"))])
def test_forms_of_vectors(texts, form):
    expected = near_duplicates(texts, 0.7, faiss_ext.kernel_factory("jaccard"))
    pairs, values = near_duplicates(form(texts), 0.7)
    assert (pairs == expected[0]).all() and (values == expected[1]).all()
    assert (near_duplicate_groups(form(texts), 0.7) == expected_groups(pairs, len(texts))).all()


@pytest.fixture(scope="module")
def fingerprints():
    """Bits, every other row like an earlier one."""
    rng = np.random.default_rng(1)
    bits = rng.random((300, 120)) < 0.4
    bits[1::2] = bits[rng.integers(0, 300, 300)[1::2]] ^ (rng.random((150, 120)) < 0.03)
    return bits


@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_packed_bits(fingerprints, bitorder):
    expected = near_duplicates(fingerprints, 0.7)
    assert 50 < len(expected[0]) < 1000
    codes = np.packbits(fingerprints, axis=1, bitorder=bitorder)
    pairs, values = near_duplicates(codes, 0.7, packed=True)
    assert (pairs == expected[0]).all() and (values == expected[1]).all()
    assert (near_duplicate_groups(codes, 0.7, packed=True) == near_duplicate_groups(fingerprints, 0.7)).all()
    # with packed=False, they are counts
    counts = near_duplicates(codes, 0.7, packed=False)
    assert (counts[0] == near_duplicates(codes.astype("float32"), 0.7)[0]).all()
    assert counts[0].tolist() != pairs.tolist()


@pytest.mark.parametrize("form", ["packed", "dense", "sparse"])
def test_names_of_pairs(fingerprints, form):
    x = {"packed": np.packbits(fingerprints, axis=1), "dense": fingerprints, "sparse": sparse.csr_array(fingerprints.astype("float32"))}[form]
    names = [f"molecule {i}" for i in range(len(fingerprints))]
    packed = form == "packed"
    pairs, values = near_duplicates(x, 0.7, packed=packed)
    for given in (names, np.array(names)):
        named, same = near_duplicates(x, 0.7, packed=packed, names=given)
        assert named == [(names[i], names[j]) for i, j in pairs] and (same == values).all()
    with pytest.raises(ValueError, match="near_duplicates: expected 300 names, one for each vector, got 1"):
        near_duplicates(x, 0.7, packed=packed, names=["a"])


def value_of_bits(name, a, b):
    common, either, one = (a & b).sum(), (a | b).sum(), a.sum() + b.sum()
    return {"hamming": 1 - (a ^ b).mean(), "russellrao": common / len(a), "tversky(alpha=0.5,beta=0.5)": 2 * common / one,
            "tversky(alpha=2,beta=2)": common / (2 * either - common), "tversky(alpha=0.5, beta=0.5)": 2 * common / one}[name]


@pytest.mark.parametrize("name, threshold", [
    ("hamming", 0.75), ("russellrao", 0.3), ("tversky(alpha=0.5,beta=0.5)", 0.8), ("tversky(alpha=2,beta=2)", 0.4), ("tversky(alpha=0.5, beta=0.5)", 0.8)])
def test_kernels_of_bits_alone(fingerprints, name, threshold):
    codes, n = np.packbits(fingerprints, axis=1), len(fingerprints)
    expected = {(i, j): value_of_bits(name, fingerprints[i], fingerprints[j]) for i in range(n) for j in range(i + 1, n)}
    expected = {pair: value for pair, value in expected.items() if value >= threshold}
    assert 50 < len(expected) < 3000
    for kernel in (name, faiss_ext.bit_kernel_factory(name)):
        pairs, values = near_duplicates(codes, threshold, kernel, packed=True)
        assert pairs.dtype == np.int64 and values.dtype == np.float32 and [tuple(pair) for pair in pairs.tolist()] == list(expected)
        np.testing.assert_allclose(values, list(expected.values()), rtol=1e-6)
        assert (near_duplicate_groups(codes, threshold, kernel, packed=True) == expected_groups(pairs, n)).all()
    empty = codes[:0]
    assert near_duplicates(empty, threshold, name, packed=True)[0].shape == (0, 2) and near_duplicate_groups(empty, threshold, name, packed=True).shape == (0,)
    with pytest.raises(ValueError, match="near_duplicates: missed is 1"):
        near_duplicates(codes, threshold, name, missed=1, packed=True)
    for call in (near_duplicates, near_duplicate_groups):
        with pytest.raises(ValueError, match=f"{call.__name__}: tversky.* is not symmetric"):
            call(codes, 0.5, "tversky(alpha=1,beta=0)", packed=True)


def test_kernels_of_bits_and_of_vectors(fingerprints):
    codes = np.packbits(fingerprints, axis=1)
    for name in ("jaccard", "dice", "cosine"):
        of_bits, of_vectors = (near_duplicates(codes, 0.7, kernel, packed=True) for kernel in (faiss_ext.bit_kernel_factory(name), name))
        assert (of_bits[0] == of_vectors[0]).all() and (of_bits[1] == of_vectors[1]).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=60))
def test_groups_of_any_pairs(n, pairs):
    pairs = np.array([(i, j) for i, j in pairs if i < j < n], "int64").reshape(-1, 2)
    assert (first_of_groups(pairs, n) == expected_groups(pairs, n)).all()


def test_groups_of_long_chains():
    order = np.random.default_rng(0).permutation(3000)
    pairs = np.sort(np.stack([order[:-1], order[1:]], axis=1))
    assert (first_of_groups(pairs, 3000) == 0).all()


@pytest.fixture(scope="module")
def dense():
    """Vectors of which no component is rare, every other one like an earlier one."""
    rng = np.random.default_rng(1)
    x = rng.exponential(size=(10_000, 32))
    x[1::2] = x[rng.integers(0, 5000, 5000) * 2] * rng.uniform(1, 1.2, (5000, 32))
    return x.astype("float32")


def test_missing_pairs(dense):
    def as_set(pairs):
        return {tuple(pair) for pair in pairs.tolist()}

    exact = as_set(near_duplicates(dense, 0.9, missed=0)[0])
    found = as_set(near_duplicates(dense, 0.9, missed=0.5)[0])
    other = as_set(near_duplicates(dense, 0.9, missed=0.5, seed=5)[0])
    assert found < exact and other < exact and found != other
    groups = near_duplicate_groups(dense, 0.9, missed=0.5)
    assert (groups == expected_groups(np.array(sorted(found)), len(dense))).all()
    assert as_set(near_duplicates(dense, 0.9, missed=1e-9)[0]) == exact


def test_no_vectors():
    for x in (np.zeros((0, 5)), sparse.csr_array((0, 5))):
        pairs, values = near_duplicates(x)
        assert pairs.shape == (0, 2) and values.shape == (0,)
        assert near_duplicate_groups(x).shape == (0,)


@pytest.mark.parametrize("function", [near_duplicates, near_duplicate_groups])
@pytest.mark.parametrize("arguments, error, words", [
    (dict(threshold=0), RuntimeError, "threshold is 0, expected a finite number above 0"),
    (dict(threshold=1.01), RuntimeError, "at most 1"),
    (dict(threshold=np.nan), ValueError, "threshold is nan"),
    (dict(threshold=1e300), ValueError, "threshold is 1e\\+300"),
    (dict(threshold="0.8"), TypeError, "must be a number, got '0.8'"),
    (dict(threshold=[0.8]), TypeError, "must be a number"),
    (dict(threshold=None), TypeError, "must be a number, got None"),
    (dict(missed=1), ValueError, "missed is 1.0, expected a number from 0 \\(exact search\\) to below 1"),
    (dict(missed=-0.1), ValueError, "missed is -0.1"),
    (dict(missed=np.nan), ValueError, "missed is nan"),
    (dict(missed="0.1"), TypeError, "missed must be a number, got '0.1'"),
    (dict(seed=-1), ValueError, "seed is -1, expected an integer from 0"),
    (dict(seed=2**63), ValueError, "seed is 9223372036854775808"),
    (dict(seed=0.5), TypeError, "seed must be an integer, got 0.5"),
    (dict(packed=True), TypeError, "expected codes \\(uint8\\), got an array of float64"),
    (dict(packed=True, x=np.zeros(3, "uint8")), ValueError, "shape"),
    (dict(packed=True, x=np.zeros((3, 0), "uint8")), RuntimeError, "number of bits is 0"),
    (dict(packed=True, x=sparse.csr_array(np.eye(3, dtype="uint8"))), TypeError, "got a sparse array"),
    (dict(kernel="gaussian"), RuntimeError, "bandwidth"),
    (dict(kernel=lambda a, b: 1.0), RuntimeError, "no bound by the columns"),
    (dict(kernel=3), TypeError, "must be a string"),
    (dict(x=[1.0, 2.0]), ValueError, "shape"),
    (dict(x=[["a"]]), TypeError, "numbers"),
    (dict(x=[[1.0, -2.0]]), RuntimeError, "component 1 of vector 0 is -2"),
    (dict(x=[[1.0, 2.0], [3.0, np.inf]]), RuntimeError, "component 1 of vector 1 is inf"),
    (dict(x=sparse.csr_array([[1.0, np.nan]])), RuntimeError, "component 1 of vector 0 is nan"),
    (dict(x=sparse.csr_array([[1j]])), TypeError, "complex")])
def test_wrong_arguments(function, arguments, error, words):
    given = {"x": np.ones((3, 2)), **arguments}
    with pytest.raises(error, match=words) as caught:
        function(**given)
    assert function.__name__ in str(caught.value) or "kernel" in str(caught.value)


def test_ctrl_c():
    rng = np.random.default_rng(1)
    x = rng.random((500_000, 20), "float32")  # no column is rare
    for function in (near_duplicates, near_duplicate_groups):
        assert is_interrupted(lambda: function(x, 0.99), 0.3)


def test_progress_is_shown(texts):
    shown = []
    with faiss_ext.show_progress(lambda task, done, total: shown.append((task, done, total))):
        near_duplicates(np.tile(texts, (50, 1)), 0.99)
    assert {task for task, _, _ in shown} <= {"near duplicates"}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, texts):
    monkeypatch.chdir(tmp_path)
    np.save("dense.npy", texts)
    sparse.save_npz("sparse.npz", sparse.csr_array(texts))
    capsys.readouterr()

    def function(*words):
        status = main(["duplicates", *map(str, words)])
        return (status, *capsys.readouterr())

    return function


@pytest.mark.parametrize("file", ["dense.npy", "sparse.npz"])
def test_command(run, texts, file):
    pairs, values = near_duplicates(texts, 0.95, "cosine")
    options = ("--kernel", "cosine", "--threshold", 0.95, "--quiet")
    status, out, err = run(file, *options)
    assert status == 0 and f"{len(pairs):,} pairs of 400 vectors" in err
    lines = [line.split() for line in out.splitlines()]
    assert [[int(i), int(j)] for i, j, _ in lines] == pairs.tolist()
    assert [float(v) for _, _, v in lines] == pytest.approx(values.tolist(), rel=1e-6)
    assert json.loads(run(file, *options, "--json")[1])["pairs"] == pairs.tolist()

    assert run(file, *options, "-o", "found.npz")[0] == 0
    with np.load("found.npz") as found:
        assert (found["pairs"] == pairs).all() and (found["values"] == values).all()
    status, out, _ = run(file, *options, "-o", "found.csv", "--json")
    assert status == 0 and json.loads(out)["pairs"] == len(pairs)
    found = np.loadtxt("found.csv", delimiter=",", skiprows=1)
    assert (found[:, :2] == pairs).all() and (found[:, 2].astype("float32") == values).all()

    groups = near_duplicate_groups(texts, 0.95, "cosine")
    status, out, err = run(file, *options, "--groups", "-o", "groups.csv")
    assert status == 0 and f"{len(np.unique(groups)):,} groups of 400 vectors" in err
    found = np.loadtxt("groups.csv", delimiter=",", skiprows=1)
    assert (found == np.stack([np.arange(400), groups], axis=1)).all()


def test_command_packed(run, fingerprints):
    codes = np.packbits(fingerprints, axis=1)
    np.save("packed.npy", codes)
    options = ("--threshold", 0.7, "--quiet", "--json")
    pairs = near_duplicates(codes, 0.7, packed=True)[0]
    assert json.loads(run("packed.npy", *options, "--packed")[1])["pairs"] == pairs.tolist()
    groups = near_duplicate_groups(codes, 0.7, packed=True)
    assert json.loads(run("packed.npy", *options, "--packed", "--groups")[1])["groups"] == groups.tolist()
    for file, got in (("dense.npy", "float32"), ("sparse.npz", "sparse")):
        status, _, err = run(file, *options, "--packed")
        assert status == 1 and f"{file}: --packed expects bytes of packed bits" in err and got in err


def test_command_of_fingerprints(run, fingerprints):
    """Of 117 bits, on which the values of hamming depend."""
    faiss_ext.write_fps("some.fps", np.packbits(fingerprints[:, :117], axis=1), [f"m{i}" for i in range(300)], 117)
    said = json.loads(run("some.fps", "--kernel", "hamming", "--threshold", 0.9, "--json", "--quiet")[1])
    different = (fingerprints[:, None, :117] ^ fingerprints[:, :117]).sum(axis=2)
    assert len(said["pairs"]) == np.triu(1 - different / 117 >= 0.9, 1).sum() > 50
    np.testing.assert_allclose(said["values"], [1 - different[i, j] / 117 for i, j in said["pairs"]], rtol=1e-6)


def test_command_missed(run, dense):
    np.save("many.npy", dense)
    options = ("many.npy", "--threshold", 0.9, "--quiet")
    found = json.loads(run(*options, "--missed", 0.5, "--seed", 5, "--json")[1])
    assert found["pairs"] == near_duplicates(dense, 0.9, missed=0.5, seed=5)[0].tolist()
    assert 0 < found["missed"] <= 0.5
    _, _, err = run(*options, "--missed", 0.5)
    assert "a pair is missing with a probability of at most 0." in err
    exact = json.loads(run(*options, "--missed", 0, "--json")[1])
    assert exact["missed"] == 0 and len(exact["pairs"]) > len(found["pairs"])
    with pytest.raises(SystemExit):
        run(*options, "--missed", 1)


def test_command_errors(run):
    assert run("dense.npy", "--kernel", "gaussian")[0] == 1
    status, _, err = run("dense.npy", "-o", "found.txt")
    assert status == 2 and ".npz, .csv or .tsv" in err
    np.save("negative.npy", np.float32([[1, -1]]))
    status, _, err = run("negative.npy", "--quiet")
    assert status == 1 and "negative.npy: " in err and "component 1 of vector 0" in err


@pytest.mark.parametrize("kernel", ["jaccard", "dice", "cosine", "hamming"])
@pytest.mark.parametrize("threshold", [0.5, 0.6, 0.8])
def test_packed_pairs_at_the_threshold(kernel, threshold):
    """Many values are equal to the threshold."""
    random = np.random.default_rng(3)
    codes = np.packbits(random.random((400, 24)) < 0.4, axis=1)
    ones = np.unpackbits(codes, axis=1).astype("int64")
    common, sizes = ones @ ones.T, ones.sum(axis=1)
    one, other = np.meshgrid(sizes, sizes, indexing="ij")
    reaches = {"jaccard": 10 * common >= round(10 * threshold) * (one + other - common),
               "dice": 20 * common >= round(10 * threshold) * (one + other),
               "cosine": 100 * common**2 >= round(10 * threshold) ** 2 * one * other,
               "hamming": 10 * (24 - one - other + 2 * common) >= round(10 * threshold) * 24}[kernel]
    pairs, _ = near_duplicates(codes, threshold, kernel, missed=0, packed=True)
    assert np.array_equal(pairs, np.argwhere(np.triu(reaches, 1)))
