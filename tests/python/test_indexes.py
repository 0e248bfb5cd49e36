"""All indexes: strings, exact results, and FAISS's conventions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import euclidean_distances

import faiss
import faiss_ext

L2, IP = faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT
MAX_FLOAT = np.finfo("float32").max

HASH, BINARY, FLAT = (
    faiss_ext.IndexKernelHash,
    faiss_ext.IndexBinaryKernelHash,
    faiss_ext.IndexFlatKernel,
)

# strings of float indexes, with the classes from the outside inwards
STRINGS = {
    "SIK512(gaussian,gamma=0.02),BFlat": [HASH],
    "SIK512(laplacian),BFlat": [HASH],
    "SIK256(matern,nu=1.5),BFlat": [HASH],
    "SIK256(gaussian,gamma=auto),BFlat": [HASH],
    "SIK256(gaussian(gamma=0.001),seed=7,proj=dense),BFlat": [HASH],
    "SIK512(gaussian),BHash16x16": [HASH],
    "SIK256(gaussian),BHash24": [HASH],
    "SIK256(gaussian),BIVF1024": [HASH],
    "SIK256(gaussian),BIVF16_HNSW8": [HASH],
    "SIK256(gaussian),BHNSW32": [HASH],
    "KFlat(gaussian)": [FLAT],
    "KFlat(gaussian,gamma=0.02)": [FLAT],
    "KFlat(gaussian(gamma=0.02))": [FLAT],
    "KFlat(laplacian)": [FLAT],
    "KFlat(matern,nu=2.5)": [FLAT],
    "KFlat(linear)": [FLAT],
    "SIK512(gaussian),BFlat,Refine(KFlat(gaussian))": [
        faiss_ext.IndexRefineKernel,
        HASH,
    ],
    "SIK512(gaussian),BFlat,Refine(Flat)": [faiss_ext.IndexRefineKernel, HASH],
    "SIK512(gaussian),BFlat,RFlat": [faiss_ext.IndexRefineKernel, HASH],
    # a part that is FAISS's own comes as FAISS gives it
    "IVF16,Flat,Refine(KFlat(gaussian))": [faiss_ext.IndexRefineKernel, faiss.IndexIVFFlat],
    "HNSW32,KFlat(gaussian)": [faiss_ext.IndexHNSWKernel, FLAT],
    "HNSW16,KFlat(laplacian),Refine(KFlat(laplacian))": [
        faiss_ext.IndexRefineKernel,
        faiss_ext.IndexHNSWKernel,
        FLAT,
    ],
    "IDMap,SIK256(gaussian),BFlat": [faiss.IndexIDMap, HASH],
    "IDMap2,SIK256(gaussian),BFlat": [faiss.IndexIDMap2, HASH],
    "IDMap,KFlat(gaussian)": [faiss.IndexIDMap, FLAT],
    "IDMap2,SIK512(gaussian),BFlat,Refine(KFlat(gaussian))": [
        faiss.IndexIDMap2,
        faiss_ext.IndexRefineKernel,
        HASH,
    ],
    "IDMap2,HNSW32,KFlat(gaussian)": [
        faiss.IndexIDMap2,
        faiss_ext.IndexHNSWKernel,
        FLAT,
    ],
    "PCA16,KFlat(gaussian)": [faiss.IndexPreTransform, FLAT],
    "L2norm,SIK256(gaussian),BFlat": [faiss.IndexPreTransform, HASH],
    "PCA32,L2norm,SIK256(laplacian),BFlat,Refine(KFlat(laplacian))": [
        faiss_ext.IndexRefineKernel,
        faiss.IndexPreTransform,
        HASH,
    ],
    "IDMap,RR32,HNSW16,KFlat(gaussian)": [
        faiss.IndexIDMap,
        faiss.IndexPreTransform,
        faiss_ext.IndexHNSWKernel,
        FLAT,
    ],
    "Pad72,SIK64(gaussian),BHash4x8": [faiss.IndexPreTransform, HASH],
}

BINARY_STRINGS = {
    "SIK256(gaussian),BFlat": [BINARY],
    "SIK512(laplacian),BHash16x16": [BINARY],
    "SIK256(matern,nu=1.5),BHash24": [BINARY],
    "SIK256(gaussian,gamma=0.001),BIVF16": [BINARY],
    "SIK256(gaussian,seed=3),BHNSW32": [BINARY],
    "IDMap,SIK256(gaussian),BFlat": [faiss.IndexBinaryIDMap, BINARY],
    "IDMap2,SIK256(gaussian),BFlat": [faiss.IndexBinaryIDMap2, BINARY],
}

# float indexes that need no training, one of each kind
READY = [
    "SIK64(gaussian,gamma=0.001),BFlat",
    "SIK64(gaussian,gamma=0.001),BHash4x8",
    "SIK64(gaussian,gamma=0.001),BHash8",
    "SIK64(gaussian,gamma=0.001),BHNSW16",
    "KFlat(gaussian,gamma=0.001)",
    "HNSW16,KFlat(gaussian,gamma=0.001)",
    "SIK64(gaussian,gamma=0.001),BFlat,Refine(KFlat(gaussian,gamma=0.001))",
    "L2norm,SIK64(gaussian,gamma=4),BFlat",
]
READY_EXACT = [s for s in READY if "HNSW" not in s and "BHash" not in s]


@pytest.fixture
def one_thread():
    """Graphs are the same from run to run only if one thread builds them."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(before)


def part_of(index):
    for name in ("base_index", "storage", "index"):
        if hasattr(index, name) and not isinstance(index, (HASH, BINARY)):
            return getattr(index, name)
    return None


def classes(index):
    """The classes of an index and its parts, down to one of faiss_ext."""
    found = []
    while index is not None:
        found.append(type(index))
        index = part_of(index)
    return found


def fill(index, x):
    """Trains and fills; where ids can be given, vector i has id 10 i + 3."""
    index.train(x)
    if isinstance(index, (faiss.IndexIDMap, faiss.IndexBinaryIDMap)):
        index.add_with_ids(x, 10 * np.arange(len(x)) + 3)
    else:
        index.add(x)
    return index


def made(string, x, metric=L2):
    return fill(faiss.index_factory(x.shape[1], string, metric), x)


def kernel_distances(x, y, gamma):
    """|phi(x) - phi(y)|^2 of the Gaussian kernel, in double precision."""
    squared = euclidean_distances(x.astype(float), y.astype(float)) ** 2
    return -2 * np.expm1(-gamma * squared / 2)


def all_hamming(a, b):
    a, b = np.unpackbits(a, axis=1), np.unpackbits(b, axis=1)
    return (a[:, None] != b[None]).sum(axis=2)


def assert_nearest(D, I, distances, k, tolerance=0.0):
    """D and I hold the k smallest of each row of a matrix, ascending; of equal
    ones any may stand in I."""
    k = min(k, distances.shape[1])
    np.testing.assert_allclose(
        D[:, :k], np.sort(distances, axis=1)[:, :k], atol=tolerance
    )
    assert (np.diff(D[:, :k]) >= 0).all()
    np.testing.assert_allclose(
        np.take_along_axis(distances, I[:, :k], axis=1),
        D[:, :k],
        atol=tolerance,
    )
    assert all(len(set(row[:k])) == k for row in I.tolist())
    assert (I[:, k:] == -1).all()


def values_by_id(index, queries):
    """What an exhaustive index says of each query and each of its vectors."""
    D, I = index.search(queries, index.ntotal)
    return np.take_along_axis(D, np.argsort(I, axis=1), axis=1)


def recall(found, truth):
    pairs = zip(found, truth)
    return np.mean([np.isin(t, f).mean() for f, t in pairs])


# ----------------------------------------------------------------- strings


@pytest.mark.parametrize("string", STRINGS)
def test_strings_make_indexes_through_both_factories(
    digits, string, one_thread
):
    indexes = [
        fill(factory(64, string), digits.base)
        for factory in (faiss.index_factory, faiss_ext.index_factory)
    ]
    results = []
    for index in indexes:
        assert classes(index)[: len(STRINGS[string])] == STRINGS[string]
        assert isinstance(index, faiss.Index)
        assert index.d == 64 and index.ntotal == len(digits.base)
        assert index.is_trained and index.metric_type == L2
        results.append(index.search(digits.queries, 5))
    (D, I), (D2, I2) = results
    np.testing.assert_array_equal(D, D2)
    np.testing.assert_array_equal(I, I2)
    assert D.shape == I.shape == (200, 5)
    assert D.dtype == np.float32 and I.dtype == np.int64
    assert (np.diff(D) >= 0).all()
    if "IDMap" in string:
        assert (I[I >= 0] % 10 == 3).all()


@pytest.mark.parametrize("string", STRINGS)
def test_strings_know_the_inner_product(digits, string):
    index = made(string, digits.base[:1100], IP)
    assert index.metric_type == IP
    D, I = index.search(digits.base[:50], 3)
    assert (np.diff(D) <= 0).all()
    if classes(index)[-1] is FLAT and "linear" not in string:
        # a vector and itself; a graph may miss some
        assert (np.abs(D[:, 0] - 1) < 1e-6).mean() > 0.9
    elif classes(index) == [HASH] and "BHash" not in string:
        assert (D[:, 0] == index.hash.nbits).mean() > 0.9


@pytest.mark.parametrize("string", BINARY_STRINGS)
def test_binary_strings_make_indexes_through_both_factories(
    digits, string, one_thread
):
    results = []
    for module in (faiss, faiss_ext):
        index = module.index_binary_factory(64, string)
        assert classes(index) == BINARY_STRINGS[string]
        assert isinstance(index, faiss.IndexBinary)
        if "IDMap" in string:
            index.index.train(digits.base)
            codes = index.index.hash.encode
            index.add_with_ids(codes(digits.base), 10 * np.arange(1597) + 3)
            D, I = index.search(codes(digits.queries), 5)
            assert (I % 10 == 3).all()
        else:
            index.train(digits.base)
            index.add(digits.base)
            D, I = index.search(digits.queries, 5)
        nbits = int(string.split("SIK")[1][:3])
        assert index.d == nbits and index.ntotal == 1597
        assert D.dtype == np.int32 and I.dtype == np.int64
        results.append((D, I))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_hash_tables_over_784_dimensions():
    x = np.random.default_rng(4).normal(size=(3000, 784)).astype("float32")
    index = faiss.index_factory(784, "SIK512(gaussian),BHash16x16")
    assert not index.is_trained
    index.train(x)
    index.add(x)
    D, I = index.search(x[:100], 1)
    np.testing.assert_array_equal(I[:, 0], np.arange(100))
    assert (D == 0).all()


@pytest.mark.parametrize(
    "string", ["Flat", "IVF16,Flat", "PCA16,SQ8", "HNSW16", "IDMap2,LSH"]
)
def test_the_strings_of_faiss_go_on_as_before(digits, string, one_thread):
    before = faiss.index_factory.without_faiss_ext(64, string)
    fill(before, digits.base)
    for factory in (faiss.index_factory, faiss_ext.index_factory):
        index = factory(64, string)
        assert type(index) is type(before)
        fill(index, digits.base)
        for mine, theirs in zip(
            index.search(digits.queries, 5), before.search(digits.queries, 5)
        ):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("string", ["BFlat", "BHash16x4", "BIVF8", "BHNSW8"])
def test_the_binary_strings_of_faiss_go_on_as_before(string):
    for factory in (
        faiss.index_binary_factory,
        faiss_ext.index_binary_factory,
    ):
        index = factory(64, string)
        before = faiss.index_binary_factory.without_faiss_ext(64, string)
        expected = type(before)
        if string == "BFlat" and factory is faiss_ext.index_binary_factory:
            expected = faiss_ext.IndexBinaryFlatSIMD  # the faster scan
        assert type(index) is expected and index.d == 64
        assert isinstance(index, type(before))


@pytest.mark.parametrize(
    "string, position, accepted",
    [
        ("SIK512(gaussian)", 16, ",BFlat"),
        ("SIK512(gaussian),", 17, "BFlat"),
        ("SIK512(gaussian),Flat", 17, "BFlat"),
        ("SIK512(gaussian),BHash16x64", 17, "63"),
        ("SIK512(gaussian),BHash40x16", 17, "up to 512"),
        ("SIK512(gaussian),BIVF0", 21, "from 1"),
        ("SIK512(gaussian),BHNSW999999999", 22, "from 2"),
        ("SIK512(gaussian),BFlat,foo", 22, "Refine(KFlat(...))"),
        ("SIK512(chi3),BFlat", 7, "gaussian"),
        ("SIK100(gaussian),BFlat", 3, "multiple of 8"),
        ("KFlat", 5, "gaussian"),
        ("KFlat()", 6, "expected an argument"),
        ("KFlat(foo)", 6, "gaussian"),
        ("KFlat(gaussian", 5, "without"),
        ("KFlat(gaussian,nu=1)", 15, "gamma="),
        ("KFlat(gaussian),IDMap", 15, "Refine"),
        ("HNSW0,KFlat(gaussian)", 4, "from 2"),
        ("IVF16,KFlat(gaussian)", 0, "KFlat(<kernel>)"),
        ("Refine(KFlat(gaussian))", 0, "KFlat(<kernel>)"),
        ("SIK64(gaussian),BFlat,Refine(KFlat(foo))", 35, "gaussian"),
    ],
)
@pytest.mark.parametrize("module", [faiss, faiss_ext])
def test_errors_in_strings_quote_mark_and_help(
    module, string, position, accepted
):
    with pytest.raises(RuntimeError) as error:
        module.index_factory(64, string)
    message = str(error.value)
    assert f'"{string}"' in message and accepted in message
    quoted, marker = message.splitlines()[1:3]
    assert quoted == "  " + string
    assert marker == "  " + " " * position + "^"


@pytest.mark.parametrize(
    "string",
    [
        "SIK256(gaussian)",
        "KFlat(gaussian)",
        "SIK256(gaussian),Flat",
        "SIK256(gaussian),BFlat,Refine(KFlat(gaussian))",
        "L2norm,SIK256(gaussian),BFlat",
    ],
)
def test_errors_in_binary_strings_quote_and_help(string):
    with pytest.raises(RuntimeError) as error:
        faiss.index_binary_factory(64, string)
    assert f'"{string}"' in str(error.value)
    assert "BFlat" in str(error.value)


@pytest.mark.parametrize("string", READY[:1] + ["KFlat(gaussian,gamma=1)"])
def test_arguments_have_names_and_missing_ones_are_type_errors(digits, string):
    factories = [faiss.index_factory]
    if "SIK" in string:
        factories.append(faiss.index_binary_factory)
    for factory in factories:
        index = fill(factory(64, string), digits.base)
        D, I = index.search(digits.queries, 3)
        named = index.search(x=digits.queries, k=3)
        np.testing.assert_array_equal(named[1], I)
        for function in (index.search, index.add_with_ids, index.range_search):
            with pytest.raises(TypeError):
                function(digits.queries)
        for function in (index.train, index.add):
            with pytest.raises(TypeError):
                function()


def test_other_metrics_and_dimensions_are_refused():
    for string in READY[:1] + ["KFlat(gaussian)", "HNSW8,KFlat(gaussian)"]:
        with pytest.raises(RuntimeError, match="METRIC_L2"):
            faiss.index_factory(64, string, faiss.METRIC_L1)
        for d in (0, -1):
            with pytest.raises(RuntimeError, match="positive"):
                faiss.index_factory(d, string)


# ----------------------------------------------------------- exact results


@pytest.mark.parametrize(
    "storage", ["BFlat", "BHash8x8", "BHash12", "BIVF16", "BHNSW16"]
)
def test_binary_index_equals_hashing_by_hand(digits, storage, one_thread):
    index = faiss.index_binary_factory(64, f"SIK128(gaussian),{storage}")
    index.train(digits.base)
    index.add(digits.base)

    hash = faiss_ext.kernel_hash_factory(64, "SIK128(gaussian)")
    hash.train(digits.base)
    codes, queries = hash.encode(digits.base), hash.encode(digits.queries)
    by_hand = faiss.index_binary_factory(128, storage)
    by_hand.train(codes)
    by_hand.add(codes)

    D, I = by_hand.search(queries, 10)
    for x in (digits.queries, queries):
        found = index.search(x, 10)
        np.testing.assert_array_equal(found[0], D)
        np.testing.assert_array_equal(found[1], I)
    if storage != "BHNSW16":
        expected = by_hand.range_search(queries, 25)
        for x in (digits.queries, queries):
            for mine, theirs in zip(index.range_search(x, 25), expected):
                np.testing.assert_array_equal(mine, theirs)
        assert expected[0][-1] > 100

    # codes can be added as well as vectors
    taken = faiss.index_binary_factory(64, f"SIK128(gaussian),{storage}")
    taken.train(digits.base)
    taken.add(codes[:700])
    taken.add(digits.base[700:])
    if storage != "BHNSW16":  # whose graph depends on the order
        found = taken.search(digits.queries, 10)
        np.testing.assert_array_equal(found[0], D)
        np.testing.assert_array_equal(found[1], I)


@pytest.mark.parametrize("storage", ["BFlat", "BHash8x8", "BIVF16"])
@pytest.mark.parametrize("metric", [L2, IP])
def test_float_index_has_the_results_of_the_binary_one(
    digits, storage, metric
):
    binary = faiss.index_binary_factory(64, f"SIK128(gaussian),{storage}")
    fill(binary, digits.base)
    index = made(f"SIK128(gaussian),{storage}", digits.base, metric)
    hamming, labels = binary.search(digits.queries, 10)
    D, I = index.search(digits.queries, 10)
    found = labels >= 0
    as_metric = hamming if metric == L2 else 128 - 2 * hamming
    padding = MAX_FLOAT if metric == L2 else -MAX_FLOAT
    np.testing.assert_array_equal(I, labels)
    np.testing.assert_array_equal(D[found], as_metric[found])
    assert (D[~found] == padding).all()
    assert D.dtype == np.float32


@given(
    d=st.integers(1, 20),
    nbits=st.integers(1, 12).map(lambda n: 8 * n),
    n=st.integers(0, 40),
    nq=st.integers(0, 5),
    k=st.integers(1, 50),
    kernel=st.sampled_from(["gaussian", "laplacian", "matern,nu=0.8"]),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None, derandomize=True, max_examples=80)
def test_small_hash_indexes_equal_brute_force(
    d, nbits, n, nq, k, kernel, seed
):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype("float32")
    q = rng.normal(size=(nq, d)).astype("float32")
    string = f"SIK{nbits}({kernel},gamma=0.3,seed={seed})"
    hash = faiss_ext.kernel_hash_factory(d, string)
    distances = all_hamming(hash.encode(q), hash.encode(x))
    for factory in (faiss.index_factory, faiss.index_binary_factory):
        index = factory(d, string + ",BFlat")
        index.add(x)
        assert_nearest(*index.search(q, k), distances, k)
        radius = nbits // 2
        lims, D, I = index.range_search(q, radius)
        for i in range(nq):
            order = np.argsort(I[lims[i] : lims[i + 1]])
            inside = np.flatnonzero(distances[i] < radius)
            np.testing.assert_array_equal(
                I[lims[i] : lims[i + 1]][order], inside
            )
            np.testing.assert_array_equal(
                D[lims[i] : lims[i + 1]][order], distances[i, inside]
            )


@given(
    d=st.integers(1, 20),
    n=st.integers(0, 60),
    nq=st.integers(0, 20),
    k=st.integers(1, 70),
    gamma=st.floats(0.01, 3),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None, derandomize=True, max_examples=80)
def test_small_kernel_indexes_equal_brute_force(d, n, nq, k, gamma, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype("float32")
    q = rng.normal(size=(nq, d)).astype("float32")
    index = faiss.index_factory(d, f"KFlat(gaussian,gamma={gamma!r})")
    index.add(x)
    distances = (
        kernel_distances(q, x, gamma) if n and nq else np.empty((nq, n))
    )
    assert_nearest(*index.search(q, k), distances, k, 1e-4)


@pytest.mark.parametrize(
    "kernel", ["gaussian", "laplacian", "matern,nu=2.5", "linear"]
)
def test_kernel_index_is_ordered_by_the_gram_matrix(digits, kernel):
    """With the inner product, bit for bit, and equal values by id."""
    x = np.vstack([digits.base, digits.base[:100]])  # ties
    index = made(f"KFlat({kernel})", x, IP)
    gram = index.kernel.gram(digits.queries, x)
    D, I = index.search(digits.queries, 60)
    order = np.argsort(-gram, axis=1, kind="stable")[:, :60]
    np.testing.assert_array_equal(I, order)
    np.testing.assert_array_equal(D, np.take_along_axis(gram, order, axis=1))
    # one query alone is compared by several threads
    for i in range(5):
        alone = index.search(digits.queries[i : i + 1], 60)
        np.testing.assert_array_equal(alone[0][0], D[i])
        np.testing.assert_array_equal(alone[1][0], I[i])


def test_kernel_index_on_digits_equals_brute_force(digits):
    index = made("KFlat(gaussian)", digits.base)
    distances = kernel_distances(
        digits.queries, digits.base, index.kernel.gamma
    )
    assert_nearest(*index.search(digits.queries, 20), distances, 20, 2e-5)
    # the Gaussian kernel falls with the distance
    nearest = faiss.knn(digits.queries, digits.base, 20)[1]
    assert recall(index.search(digits.queries, 20)[1], nearest) > 0.999


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
@pytest.mark.parametrize("metric", [L2, IP])
def test_refining_everything_is_exact(digits, kernel, metric):
    exact = made(f"KFlat({kernel})", digits.base, metric)
    string = f"SIK64({kernel}),BFlat,Refine(KFlat({kernel}))"
    index = made(string, digits.base, metric)
    D, I = exact.search(digits.queries, 10)
    assert recall(index.search(digits.queries, 10)[1], I) < 0.9
    index.k_factor = len(digits.base) / 10
    found_D, found_I = index.search(digits.queries, 10)
    np.testing.assert_array_equal(found_D, D)
    # of vectors at the same distance any may be found
    same = values_by_id(exact, digits.queries)
    np.testing.assert_array_equal(np.take_along_axis(same, found_I, axis=1), D)


@pytest.mark.parametrize("metric", [L2, IP])
@pytest.mark.parametrize("storage", ["BFlat", "BHash4x8"])
def test_long_codes_rank_again_what_short_ones_find(digits, metric, storage):
    long = made("SIK512(gaussian),BFlat", digits.base, metric)
    string = f"SIK64(gaussian),BFlat,Refine(SIK512(gaussian),{storage})"
    index = made(string, digits.base, metric)
    index.k_factor = len(digits.base) / 10
    D, I = index.search(digits.queries, 10)
    np.testing.assert_array_equal(D, long.search(digits.queries, 10)[0])
    by_id = values_by_id(long, digits.queries)
    np.testing.assert_array_equal(np.take_along_axis(by_id, I, axis=1), D)


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "matern,nu=0.5"])
@pytest.mark.parametrize("metric", [L2, IP])
def test_graph_search_under_a_kernel_finds_the_neighbours(
    digits, kernel, metric
):
    truth = made(f"KFlat({kernel})", digits.base, metric)
    index = made(f"HNSW32,KFlat({kernel})", digits.base, metric)
    D, I = truth.search(digits.queries, 10)
    found_D, found_I = index.search(digits.queries, 10)
    assert recall(found_I, I) >= 0.95
    same = found_I == I
    np.testing.assert_array_equal(found_D[same], D[same])


def test_transformations_in_front_see_the_vectors_first(digits):
    index = made("PCA16,KFlat(gaussian)", digits.base)
    pca = faiss.PCAMatrix(64, 16)
    pca.train(digits.base)
    x, q = pca.apply(digits.base), pca.apply(digits.queries)
    by_hand = fill(faiss.index_factory(16, "KFlat(gaussian)"), x)
    assert index.index.kernel.gamma == pytest.approx(by_hand.kernel.gamma)
    D, I = index.search(digits.queries, 5)
    expected = by_hand.search(q, 5)
    np.testing.assert_allclose(D, expected[0], rtol=1e-4)
    assert recall(I, expected[1]) > 0.99


def test_a_hash_is_a_transformation_of_faiss(digits):
    hash = faiss_ext.kernel_hash_factory(64, "SIK32(gaussian)")
    index = faiss.IndexPreTransform(hash, faiss.IndexFlatL2(32))
    assert not index.is_trained
    fill(index, digits.base)
    D, I = index.search(digits.queries, 5)
    distances = euclidean_distances(
        hash.apply(digits.queries).astype(float),
        hash.apply(digits.base).astype(float),
    )
    assert_nearest(D, I, distances**2, 5, 1e-4)
    first = faiss.downcast_VectorTransform(index.chain.at(0))
    assert type(first) is faiss_ext.ShiftInvariantHash
    assert first.seed == hash.seed


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("string", [READY[0], "KFlat(gaussian,gamma=0.001)"])
def test_shards_hold_what_one_index_holds(digits, threaded, string):
    one = made(string, digits.base)
    shards = faiss.IndexShards(64, threaded, True)
    for _ in range(2):
        shards.add_shard(faiss.index_factory(64, string))
    shards.add(digits.base)
    assert shards.ntotal == one.ntotal
    assert [shards.at(i).ntotal for i in range(2)] == [798, 799]
    assert {type(shards.at(i)) for i in range(2)} == {type(one)}
    D, I = shards.search(digits.queries, 10)
    np.testing.assert_array_equal(D, one.search(digits.queries, 10)[0])
    by_id = values_by_id(one, digits.queries)
    np.testing.assert_array_equal(np.take_along_axis(by_id, I, axis=1), D)


def test_replicas_search_in_one_of_them(digits):
    one = made(READY[0], digits.base)
    replicas = faiss.IndexReplicas(64)
    for _ in range(2):
        replicas.addIndex(faiss.index_factory(64, READY[0]))
    replicas.add(digits.base)
    assert {type(replicas.at(i)) for i in range(2)} == {HASH}
    for mine, theirs in zip(
        replicas.search(digits.queries, 10), one.search(digits.queries, 10)
    ):
        np.testing.assert_array_equal(mine, theirs)


# ------------------------------------------------------ FAISS's conventions


@pytest.mark.parametrize("metric", [L2, IP])
@pytest.mark.parametrize("string", READY)
def test_missing_results_are_minus_one_and_the_largest_float(
    digits, string, metric
):
    padding = MAX_FLOAT if metric == L2 else -MAX_FLOAT
    index = faiss.index_factory(64, string, metric)
    D, I = index.search(digits.queries[:3], 4)  # an empty index
    assert (I == -1).all() and (D == padding).all()

    index.add(digits.base[:3])
    D, I = index.search(digits.base[:3], 5)
    assert (I[:, 3:] == -1).all() and (D[:, 3:] == padding).all()
    assert (D[I == -1] == padding).all()
    if string in READY_EXACT:
        assert (np.sort(I[:, :3], axis=1) == [0, 1, 2]).all()
    np.testing.assert_array_equal(I[:, 0], [0, 1, 2])


@pytest.mark.parametrize("storage", ["BFlat", "BHash4x8", "BHNSW8"])
def test_missing_results_of_binary_indexes(digits, storage):
    string = f"SIK64(gaussian,gamma=0.001),{storage}"
    index = faiss.index_binary_factory(64, string)
    plain = faiss.index_binary_factory(64, storage)
    for n in (0, 3):
        if n:
            index.add(digits.base[:n])
            plain.add(index.hash.encode(digits.base[:n]))
        mine = index.search(digits.queries[:3], 5)
        theirs = plain.search(index.hash.encode(digits.queries[:3]), 5)
        np.testing.assert_array_equal(mine[0], theirs[0])
        np.testing.assert_array_equal(mine[1], theirs[1])
        assert (mine[1][:, n:] == -1).all()


@pytest.mark.parametrize("k", [0, -1])
@pytest.mark.parametrize("string", READY)
def test_k_must_be_positive(digits, string, k):
    index = made(string, digits.base[:50])
    # FAISS's own classes assert
    with pytest.raises((ValueError, AssertionError)):
        index.search(digits.queries, k)
    for factory in (faiss.index_factory, faiss.index_binary_factory):
        index = fill(factory(64, READY[0]), digits.base[:50])
        with pytest.raises(ValueError, match="k must be positive"):
            index.search(digits.queries, k)


@pytest.mark.parametrize("string", READY)
def test_no_queries_give_no_results(digits, string):
    index = made(string, digits.base[:50])
    D, I = index.search(digits.queries[:0], 5)
    assert D.shape == I.shape == (0, 5)
    if "HNSW" not in string and "Refine" not in string:
        lims, D, I = index.range_search(digits.queries[:0], 5)
        assert lims.tolist() == [0] and len(D) == len(I) == 0


@pytest.mark.parametrize("storage", ["BFlat", "BHash8", "BHash4x8", "BHNSW8"])
@pytest.mark.parametrize("module", ["index_factory", "index_binary_factory"])
def test_adding_no_vectors_changes_nothing(run_python, module, storage):
    # in a process of its own, as it would end all tests if it crashed
    program = """
import sys
import faiss, faiss_ext, numpy as np
factory, string = getattr(faiss, sys.argv[1]), sys.argv[2]
x = np.random.default_rng(1).normal(size=(20, 8)).astype("float32")
for before in (0, 20):
    index = factory(8, string)
    if before:
        index.add(x)
    index.add(x[:0])
    assert index.ntotal == before
    index.add(x)
    assert index.ntotal == before + 20
"""
    run_python(program, module, f"SIK64(gaussian,gamma=0.1),{storage}")


@pytest.mark.parametrize("string", READY)
def test_a_bad_vector_changes_nothing(digits, string):
    index = made(string, digits.base[:300])
    before = index.search(digits.queries, 5)
    for bad in (np.nan, np.inf):
        x = digits.base[300:400].copy()
        x[60, 7] = bad
        with pytest.raises(RuntimeError, match="of vector 60"):
            index.add(x)
    for shape in [(3, 63), (64,)]:
        # FAISS's own classes assert, or cannot unpack the shape
        with pytest.raises((ValueError, AssertionError)):
            index.add(np.zeros(shape, "float32"))
        with pytest.raises((ValueError, AssertionError)):
            index.search(np.zeros(shape, "float32"), 3)
    assert index.ntotal == 300
    after = index.search(digits.queries, 5)
    np.testing.assert_array_equal(after[0], before[0])
    np.testing.assert_array_equal(after[1], before[1])
    if not string.startswith("HNSW"):
        with pytest.raises(RuntimeError, match="of vector 60"):
            index.search(x, 5)


def test_a_bad_vector_leaves_ids_and_binary_indexes_alone(digits):
    x = digits.base[300:400].copy()
    x[60, 7] = np.nan
    ids = np.arange(100)
    for string in ["IDMap," + READY[0], "IDMap2,KFlat(gaussian,gamma=1)"]:
        index = made(string, digits.base[:300])
        with pytest.raises(RuntimeError, match="of vector 60"):
            index.add_with_ids(x, ids)
        assert index.ntotal == index.index.ntotal == 300
        assert index.id_map.size() == 300
    index = fill(faiss.index_binary_factory(64, READY[0]), digits.base[:300])
    for add in (index.add, lambda x: index.search(x, 3)):
        with pytest.raises(RuntimeError, match="of vector 60"):
            add(x)
    with pytest.raises(ValueError, match="codes of shape"):
        index.add(np.zeros((3, 7), "uint8"))
    with pytest.raises(ValueError, match=r"shape \(n, 64\)"):
        index.add(np.zeros((3, 8), "float32"))
    assert index.ntotal == index.storage.ntotal == 300


def test_untrained_indexes_ask_for_training(digits):
    for string in ["SIK64(gaussian),BFlat", "KFlat(gaussian)"]:
        index = faiss.index_factory(64, string)
        assert not index.is_trained
        with pytest.raises(RuntimeError, match="call train"):
            index.add(digits.base)
        with pytest.raises(RuntimeError, match="call train"):
            index.search(digits.queries, 3)
        assert index.ntotal == 0
    # the hash is ready, its storage is not
    index = faiss.index_factory(64, "SIK64(gaussian,gamma=0.001),BIVF16")
    assert not index.is_trained
    with pytest.raises(RuntimeError, match="call train"):
        index.add(digits.base)
    index.train(digits.base)
    index.add(digits.base)
    assert index.is_trained and index.ntotal == len(digits.base)


@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
@pytest.mark.parametrize("metric", [L2, IP])
def test_range_search_of_a_kernel(digits, kernel, metric):
    index = made(f"KFlat({kernel})", digits.base, metric)
    by_id = values_by_id(index, digits.queries)
    nearest = index.search(digits.queries, 10)[0]
    radius = float(np.median(nearest[:, 9]))
    inside = by_id < radius if metric == L2 else by_id > radius
    lims, D, I = index.range_search(digits.queries, radius)
    np.testing.assert_array_equal(np.diff(lims), inside.sum(axis=1))
    np.testing.assert_array_equal(I, np.nonzero(inside)[1])
    np.testing.assert_array_equal(D, by_id[inside])
    # the bound itself is outside
    bound = float(nearest[0, 5])
    lims, D, I = index.range_search(digits.queries[:1], bound)
    assert (
        len(I)
        == (nearest[0] < bound if metric == L2 else nearest[0] > bound).sum()
    )


@pytest.mark.parametrize("metric", [L2, IP])
@pytest.mark.parametrize("radius", [-1000, -0.5, 0, 20, 20.5, 21, 65, 1e9])
def test_range_search_of_codes(digits, metric, radius):
    index = made("SIK64(gaussian),BFlat", digits.base, metric)
    hamming = all_hamming(
        index.hash.encode(digits.queries[:20]), index.hash.encode(digits.base)
    )
    value = hamming if metric == L2 else 64 - 2 * hamming
    inside = value < radius if metric == L2 else value > radius
    lims, D, I = index.range_search(digits.queries[:20], radius)
    np.testing.assert_array_equal(np.diff(lims), inside.sum(axis=1))
    for i in range(20):
        ids = I[lims[i] : lims[i + 1]]
        np.testing.assert_array_equal(np.sort(ids), np.flatnonzero(inside[i]))
        np.testing.assert_array_equal(D[lims[i] : lims[i + 1]], value[i, ids])


@pytest.mark.parametrize("radius", [0, 1, 20, 20.5, 65])
def test_range_search_of_a_binary_index_is_below_the_radius(digits, radius):
    index = fill(
        faiss.index_binary_factory(64, "SIK64(gaussian),BFlat"), digits.base
    )
    hamming = all_hamming(
        index.hash.encode(digits.queries), index.hash.encode(digits.base)
    )
    lims, _, _ = index.range_search(digits.queries, radius)
    np.testing.assert_array_equal(np.diff(lims), (hamming < radius).sum(1))


def test_ids_are_those_that_were_given(digits):
    x = digits.base[:500]
    ids = np.random.default_rng(2).permutation(10**6)[:500]
    for core in READY:
        plain = made(core, x)
        index = faiss.index_factory(64, "IDMap2," + core)
        index.add_with_ids(x[:200], ids[:200])
        index.add_with_ids(x[200:], ids[200:])
        if "HNSW" in core:
            assert set(index.search(x, 2)[1].flat) <= set(ids)
            continue
        D, I = plain.search(digits.queries, 4)
        found_D, found_I = index.search(digits.queries, 4)
        np.testing.assert_array_equal(found_D, D)
        np.testing.assert_array_equal(found_I, np.where(I < 0, -1, ids[I]))
    with pytest.raises(RuntimeError):
        index.add(x)  # ids would be needed
    with pytest.raises(RuntimeError, match="not implemented"):
        plain.add_with_ids(x, ids)  # no storage for them


def test_ids_are_checked_against_the_vectors(digits):
    for factory in (faiss.index_factory, faiss.index_binary_factory):
        index = factory(64, "SIK64(gaussian,gamma=0.001),BIVF4")
        index.train(digits.base)
        index.add_with_ids(digits.base[:3], [7, 9, 8])
        assert index.search(digits.base[:3], 1)[1].tolist() == [[7], [9], [8]]
        for ids in ([1, 2], [[1, 2, 3]], [1, 2, 3, 4]):
            with pytest.raises(ValueError, match="3 ids"):
                index.add_with_ids(digits.base[:3], ids)


@pytest.mark.parametrize(
    "core",
    ["KFlat(gaussian,gamma=0.001)", "SIK64(gaussian,gamma=0.001),BFlat"],
)
def test_removed_ids_are_gone(digits, core):
    x, ids = digits.base[:300], 10 * np.arange(300) + 3
    index = made("IDMap2," + core, x)
    gone = ids[::3]
    assert index.remove_ids(gone) == 100
    assert index.ntotal == index.index.ntotal == 200
    kept = np.setdiff1d(ids, gone)
    again = faiss.index_factory(64, "IDMap2," + core)
    again.add_with_ids(np.delete(x, np.arange(0, 300, 3), axis=0), kept)
    for mine, theirs in zip(
        index.search(digits.queries, 200), again.search(digits.queries, 200)
    ):
        np.testing.assert_array_equal(mine, theirs)
    assert index.remove_ids(gone) == 0

    # without ids, those behind move up, as in faiss.IndexFlat
    plain = made(core, x)
    assert plain.remove_ids(faiss.IDSelectorRange(0, 100)) == 100
    np.testing.assert_array_equal(
        plain.search(x[100:], 1)[1][:, 0], np.arange(200)
    )


@pytest.mark.parametrize("string", READY)
def test_reset_empties_and_leaves_the_training(digits, string):
    index = made(string, digits.base[:200])
    before = index.search(digits.queries, 3)
    index.reset()
    assert index.ntotal == 0 and index.is_trained
    assert (index.search(digits.queries, 3)[1] == -1).all()
    index.add(digits.base[:200])
    if "HNSW" not in string:
        after = index.search(digits.queries, 3)
        np.testing.assert_array_equal(after[0], before[0])
        np.testing.assert_array_equal(after[1], before[1])
    if classes(index)[-1] is HASH and len(classes(index)) == 1:
        binary = fill(faiss.index_binary_factory(64, string), digits.base)
        binary.reset()
        assert binary.ntotal == binary.storage.ntotal == 0
        assert (binary.search(digits.queries, 3)[1] == -1).all()


def test_merging_kernel_indexes_appends_the_other(digits):
    string = "KFlat(gaussian,gamma=0.001)"
    whole = made(string, digits.base)
    first = made(string, digits.base[:500])
    second = made(string, digits.base[500:])
    first.merge_from(second)
    assert first.ntotal == len(digits.base) and second.ntotal == 0
    for mine, theirs in zip(
        first.search(digits.queries, 7), whole.search(digits.queries, 7)
    ):
        np.testing.assert_array_equal(mine, theirs)
    assert (second.search(digits.queries, 2)[1] == -1).all()

    for other in [
        faiss.index_factory(64, "KFlat(gaussian,gamma=0.002)"),
        faiss.index_factory(64, "KFlat(laplacian,gamma=0.001)"),
        faiss.index_factory(64, string, IP),
        faiss.IndexFlatL2(64),
    ]:
        other.add(digits.base)
        with pytest.raises(RuntimeError):
            first.merge_from(other)
        assert first.ntotal == other.ntotal == len(digits.base)
    with pytest.raises(RuntimeError):
        first.merge_from(faiss.index_factory(32, string))


@pytest.mark.parametrize(
    "factory", [faiss.index_factory, faiss.index_binary_factory]
)
def test_merging_hash_indexes_appends_the_other(digits, factory):
    try:
        faiss.IndexBinaryFlat(64).merge_from(faiss.IndexBinaryFlat(64))
    except RuntimeError:
        pytest.skip("this version of FAISS cannot merge binary indexes")
    whole, first, second = (
        fill(factory(64, READY[0]), x)
        for x in (digits.base, digits.base[:500], digits.base[500:])
    )
    first.merge_from(second)
    assert first.ntotal == len(digits.base) and second.ntotal == 0
    for mine, theirs in zip(
        first.search(digits.queries, 7), whole.search(digits.queries, 7)
    ):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    "factory", [faiss.index_factory, faiss.index_binary_factory]
)
def test_merging_needs_the_same_hash(digits, factory):
    index = fill(factory(64, READY[0]), digits.base)
    for string, name in [
        (READY[0].replace("0.001", "0.002"), "gamma=0.002"),
        (READY[0].replace("gaussian", "laplacian"), "laplacian"),
        (READY[0].replace(")", ",seed=9)"), "seed=9"),
    ]:
        other = fill(factory(64, string), digits.base)
        with pytest.raises(RuntimeError, match=f"SIK.*{name}"):
            index.merge_from(other)
        assert index.ntotal == other.ntotal == len(digits.base)
    others = [faiss.IndexBinaryFlat(64)]
    if factory is faiss.index_factory:
        others = [faiss.index_factory(64, READY[0], IP), faiss.IndexFlatL2(64)]
    for other in others:
        with pytest.raises(RuntimeError, match="merged|metrics"):
            index.merge_from(other)


@pytest.mark.parametrize("metric", [L2, IP])
def test_kernel_index_searches_among_the_selected(digits, metric):
    index = made("KFlat(gaussian)", digits.base, metric)
    n = index.ntotal
    chosen = np.random.default_rng(3).permutation(n)[:400].astype("int64")
    bits = np.zeros(-(-n // 8) * 8, bool)
    bits[chosen] = True
    selectors = [
        (faiss.IDSelectorRange(100, 500), np.arange(100, 500)),
        (faiss.IDSelectorBatch(chosen), np.sort(chosen)),
        (faiss.IDSelectorArray(chosen), np.sort(chosen)),
        (
            faiss.IDSelectorBitmap(np.packbits(bits, bitorder="little")),
            np.sort(chosen),
        ),
        (
            faiss.IDSelectorNot(faiss.IDSelectorRange(100, 500)),
            np.r_[0:100, 500:n],
        ),
        (faiss.IDSelectorRange(5, 5), np.arange(0)),
    ]
    gamma = index.kernel.gamma
    radius = 0.3 if metric == L2 else 0.85
    for selector, members in selectors:
        part = faiss.index_factory(
            64, f"KFlat(gaussian,gamma={gamma!r})", metric
        )
        part.add(digits.base[members])
        params = faiss.SearchParameters(sel=selector)
        D, I = index.search(digits.queries, 450, params=params)
        part_D, part_I = part.search(digits.queries, 450)
        np.testing.assert_array_equal(D, part_D)
        expected = np.append(members, -1)[part_I]
        np.testing.assert_array_equal(I, expected)
        # a few queries go another way than many
        few = index.search(digits.queries[:1], 450, params=params)
        np.testing.assert_array_equal(few[1][0], I[0])

        mine = index.range_search(digits.queries, radius, params=params)
        theirs = part.range_search(digits.queries, radius)
        np.testing.assert_array_equal(mine[0], theirs[0])
        np.testing.assert_array_equal(mine[1], theirs[1])
        np.testing.assert_array_equal(mine[2], members[theirs[2]])


@pytest.mark.parametrize(
    "string",
    [
        "KFlat(gaussian,gamma=0.001)",
        "L2norm,KFlat(gaussian,gamma=1)",
        "SIK64(gaussian,gamma=0.001),BFlat",
        "L2norm,SIK64(gaussian,gamma=1),BFlat",
        "SIK64(gaussian,gamma=0.001),BPerm(M=9,B=20)",
    ],
)
def test_selectors_go_with_any_version_of_faiss(digits, string):
    index = made(string, digits.base)
    params = faiss.SearchParameters(sel=faiss.IDSelectorRange(0, 100))
    D, I = index.search(digits.queries, 10, params=params)
    assert I.max() < 100 and (I[:, 0] >= 0).all()
    if "BPerm" not in string:  # which looks at some only
        few = made(string, digits.base[:100]).search(digits.queries, 10)
        np.testing.assert_array_equal(D, few[0])
        np.testing.assert_array_equal(I, few[1])


@pytest.mark.parametrize("string", ["IDMap,{}", "IDMap2,{}", "HNSW8,{}"])
def test_other_search_parameters_are_as_in_faiss(digits, string):
    """Some of FAISS's classes refuse them, depending on its version."""
    outcomes = set()
    ids = 1000 + np.arange(len(digits.base))
    for part in ("Flat", "KFlat(gaussian,gamma=0.001)"):
        index = faiss.index_factory(64, string.format(part))
        index.train(digits.base)
        if "IDMap" in string:
            index.add_with_ids(digits.base, ids)
        else:
            index.add(digits.base)
        low = 1000 if "IDMap" in string else 0
        selector = faiss.IDSelectorRange(low, low + 100)
        params = faiss.SearchParameters(sel=selector)
        try:
            I = index.search(digits.queries, 5, params=params)[1]
        except RuntimeError as error:
            assert "params" in str(error)
            outcomes.add("refused")
        else:
            found = I[I >= 0]
            assert len(found) > 0
            assert (found >= low).all() and (found < low + 100).all()
            outcomes.add("taken")
    assert len(outcomes) == 1
    if faiss.__version__ == "1.7.3":
        assert outcomes == {"refused"}



def test_vectors_come_back_from_a_kernel_index(digits):
    index = made("KFlat(gaussian)", digits.base)
    np.testing.assert_array_equal(index.reconstruct(5), digits.base[5])
    np.testing.assert_array_equal(
        index.reconstruct_n(7, 20), digits.base[7:27]
    )
    np.testing.assert_array_equal(
        index.reconstruct_batch([9, 3]), digits.base[[9, 3]]
    )
    D, I, R = index.search_and_reconstruct(digits.queries, 3)
    np.testing.assert_array_equal(R, digits.base[I])
    codes = index.sa_encode(digits.base[:9])
    assert codes.shape == (9, index.sa_code_size()) == (9, 256)
    np.testing.assert_array_equal(index.sa_decode(codes), digits.base[:9])
    for key in (-1, index.ntotal):
        with pytest.raises(RuntimeError):
            index.reconstruct(key)


@pytest.mark.parametrize(
    "call",
    [
        "reconstruct(0)",
        "reconstruct_n(0, 2)",
        "reconstruct_batch([0, 1])",
        "search_and_reconstruct(x, 2)",
        "sa_decode(index.sa_encode(x))",
    ],
)
def test_vectors_cannot_come_back_from_codes(run_python, call):
    # in a process of its own, as it would end all tests if it crashed
    program = f"""
import faiss, faiss_ext, numpy as np
x = np.random.default_rng(1).normal(size=(20, 8)).astype("float32")
index = faiss.index_factory(8, "SIK64(gaussian,gamma=0.1),BFlat")
index.add(x)
try:
    index.{call}
except RuntimeError as error:
    print(error)
"""
    assert "not implemented" in run_python(program)


def test_codes_come_back_from_a_hash_index(digits):
    index = made("SIK64(gaussian),BFlat", digits.base)
    codes = index.hash.encode(digits.base[:5])
    assert index.sa_code_size() == 8
    np.testing.assert_array_equal(index.sa_encode(digits.base[:5]), codes)
    binary = fill(
        faiss.index_binary_factory(64, "SIK64(gaussian),BFlat"), digits.base
    )
    for i in range(5):
        np.testing.assert_array_equal(binary.reconstruct(i), codes[i])
        np.testing.assert_array_equal(index.storage.reconstruct(i), codes[i])


def test_assign_gives_the_labels_of_search(digits):
    for string in READY:
        index = made(string, digits.base[:100])
        np.testing.assert_array_equal(
            index.assign(digits.queries, 3), index.search(digits.queries, 3)[1]
        )


@pytest.mark.parametrize("string", READY + ["SIK64(gaussian),BIVF16"])
def test_verbose_changes_no_result(digits, string, one_thread):
    quiet = made(string, digits.base)
    index = faiss.index_factory(64, string)
    index.verbose = True
    assert index.verbose
    fill(index, digits.base)
    for mine, theirs in zip(
        index.search(digits.queries, 3), quiet.search(digits.queries, 3)
    ):
        np.testing.assert_array_equal(mine, theirs)
    if string.startswith("SIK") and "Refine" not in string:
        binary = faiss.index_binary_factory(64, string)
        binary.verbose = True
        fill(binary, digits.base)
        assert binary.search(digits.queries, 3)[0].shape == (200, 3)


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: x.astype("float64"),
        lambda x: x.astype("int32"),
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x[::-1].copy()[::-1],
        lambda x: x.tolist(),
    ],
)
def test_indexes_take_arrays_of_any_type_and_layout(digits, convert):
    x, q = digits.base[:100], digits.queries[:10]
    for factory, string in [
        (faiss.index_factory, "SIK64(gaussian),BFlat"),
        (faiss.index_factory, "KFlat(gaussian)"),
        (faiss.index_binary_factory, "SIK64(gaussian),BFlat"),
    ]:
        expected = fill(factory(64, string), x).search(q, 5)
        found = fill(factory(64, string), convert(x)).search(convert(q), 5)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


def test_codes_of_any_layout_are_taken(digits):
    index = fill(faiss.index_binary_factory(64, READY[0]), digits.base)
    codes = index.hash.encode(digits.queries)
    expected = index.search(codes, 3)
    for same in (np.asfortranarray(codes), np.repeat(codes, 2, axis=0)[::2]):
        found = index.search(same, 3)
        np.testing.assert_array_equal(found[1], expected[1])


# ----------------------------------------------------------------- classes


def test_our_classes_are_faiss_classes():
    assert issubclass(HASH, faiss.Index)
    assert issubclass(FLAT, faiss.IndexFlatCodes)
    assert issubclass(FLAT, faiss.Index)
    assert issubclass(BINARY, faiss.IndexBinary)
    assert issubclass(faiss_ext.KernelHash, faiss.VectorTransform)
    assert issubclass(faiss_ext.ShiftInvariantHash, faiss_ext.KernelHash)
    hash = faiss_ext.kernel_hash_factory(8, "SIK64(gaussian)")
    assert type(hash) is faiss_ext.ShiftInvariantHash
    assert isinstance(hash, faiss.VectorTransform)


@pytest.mark.parametrize(
    "storage, cls",
    [
        ("BFlat", faiss_ext.IndexBinaryFlatSIMD),
        ("BHash4x8", faiss.IndexBinaryMultiHash),
        ("BHash8", faiss.IndexBinaryHash),
        ("BIVF4", faiss.IndexBinaryIVF),
        ("BHNSW8", faiss.IndexBinaryHNSW),
    ],
)
def test_parts_have_their_own_class(storage, cls):
    string = f"SIK64(matern,nu=2.5),{storage}"
    for factory in (faiss.index_factory, faiss.index_binary_factory):
        index = factory(8, string)
        assert type(index.storage) is cls and index.storage.d == 64
        assert type(index.hash) is faiss_ext.ShiftInvariantHash
        assert type(index.hash.kernel) is faiss_ext.MaternKernel
        assert index.hash.kernel.nu == 2.5


def test_parts_of_wrappers_have_their_own_class():
    make = faiss.index_factory
    refine = make(8, "SIK64(gaussian),BFlat,Refine(KFlat(laplacian))")
    assert type(refine.base_index) is HASH
    assert type(refine.refine_index) is FLAT
    assert type(refine.refine_index.kernel) is faiss_ext.LaplacianKernel
    assert type(make(8, "IDMap2,SIK64(gaussian),BFlat").index) is HASH
    assert type(make(8, "IDMap,KFlat(linear)").index) is FLAT
    assert type(make(8, "HNSW8,KFlat(linear)").storage) is FLAT
    assert type(make(8, "L2norm,KFlat(linear)").index) is FLAT
    nested = make(8, "IDMap,L2norm,HNSW8,KFlat(linear)")
    assert type(nested.index) is faiss.IndexPreTransform
    assert type(nested.index.index) is faiss_ext.IndexHNSWKernel
    assert type(nested.index.index.storage) is FLAT
    binary = faiss.index_binary_factory(8, "IDMap2,SIK64(gaussian),BFlat")
    assert type(binary.index) is BINARY
    # and parts of FAISS's own indexes are what they were
    flat = faiss.index_factory.without_faiss_ext(8, "IDMap,Flat")
    assert type(flat.index) is faiss.Index
    assert isinstance(faiss.downcast_index(flat.index), faiss.IndexFlat)


def test_parameters_of_parts_take_effect(digits):
    index = made("SIK64(gaussian),BHash4x16", digits.base)
    found = []
    for nflip in (0, 2):
        index.storage.nflip = nflip
        found.append((index.search(digits.queries, 5)[1] >= 0).sum())
    assert found[1] > found[0]
    index = made("SIK64(gaussian),BIVF64", digits.base)
    truth = made("SIK64(gaussian),BFlat", digits.base)
    index.storage.nprobe = 64
    np.testing.assert_array_equal(
        index.search(digits.queries, 5)[0], truth.search(digits.queries, 5)[0]
    )


def test_constructors_take_parts(digits):
    kernel = faiss_ext.GaussianKernel(0.001)
    hash = faiss_ext.ShiftInvariantHash(64, 64, kernel, 1234)
    expected = made(READY[0], digits.base)
    for metric in (L2, IP):
        index = HASH(hash, faiss.IndexBinaryFlat(64), metric)
        assert index.d == 64 and index.metric_type == metric
    index = HASH(hash, faiss.IndexBinaryFlat(64))
    index.add(digits.base)
    for mine, theirs in zip(
        index.search(digits.queries, 5), expected.search(digits.queries, 5)
    ):
        np.testing.assert_array_equal(mine, theirs)
    binary = BINARY(hash, faiss.IndexBinaryFlat(64))
    binary.add(digits.base)
    np.testing.assert_array_equal(
        binary.search(digits.queries, 5)[0],
        expected.search(digits.queries, 5)[0],
    )
    flat = FLAT(64, kernel)
    kernel.neighbor = 77  # the index has a copy
    assert flat.kernel.neighbor == 50 and flat.metric_type == L2

    for cls in (HASH, BINARY):
        with pytest.raises(
            RuntimeError, match="64 bits, the storage takes 32"
        ):
            cls(hash, faiss.IndexBinaryFlat(32))
        with pytest.raises(RuntimeError, match="null"):
            cls(hash, None)
        with pytest.raises(RuntimeError, match="null"):
            cls(None, faiss.IndexBinaryFlat(64))


def test_an_index_can_be_made_over_filled_storage(digits):
    hash = faiss_ext.kernel_hash_factory(64, "SIK64(gaussian,gamma=0.001)")
    storage = faiss.IndexBinaryFlat(64)
    storage.add(hash.encode(digits.base))
    for cls in (HASH, BINARY):
        index = cls(hash, storage)
        assert index.ntotal == len(digits.base)
        D, I = index.search(digits.base[:10], 1)
        assert (D == 0).all()
