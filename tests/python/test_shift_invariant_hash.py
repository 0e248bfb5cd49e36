"""Shift-invariant kernel hashing: its theory on real data, and its codes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import pdist
from scipy.special import gamma as gamma_function
from scipy.special import kv
from sklearn.kernel_approximation import RBFSampler

import faiss
import faiss_ext

# chance that a right hash fails one of the statistical tests
FAILURE = 1e-9


def matern_profile(nu, r):
    z = np.sqrt(2 * nu) * np.minimum(r, 600 / np.sqrt(2 * nu))
    return 2 ** (1 - nu) / gamma_function(nu) * z**nu * kv(nu, z)


# K as a function of r = scale * |x - y|, the norm, and the scale at gamma
KERNELS = {
    "gaussian": (lambda r: np.exp(-(r**2) / 2), "euclidean", np.sqrt),
    "laplacian": (lambda r: np.exp(-r), "cityblock", float),
    "matern,nu=0.5": (lambda r: np.exp(-r), "euclidean", np.sqrt),
    "matern,nu=1.5": (
        lambda r: matern_profile(1.5, r),
        "euclidean",
        np.sqrt,
    ),
    "matern,nu=0.7": (
        lambda r: matern_profile(0.7, r),
        "euclidean",
        np.sqrt,
    ),
}


# the strings of both forms of the projection, where there are two
FORMS = [*KERNELS, "gaussian,proj=dense", "matern,nu=1.5,proj=dense"]


def hash_of(name, d=64, nbits=256, **keys):
    arguments = ",".join([name, *(f"{k}={v!r}" for k, v in keys.items())])
    return faiss_ext.kernel_hash_factory(d, f"SIK{nbits}({arguments})")


def h_k(profile, r):
    """The series of the expected normalised Hamming distance (Raginsky and
    Lazebnik 2009, lemma 2.2)."""
    r = np.asarray(r, dtype=float)
    total, m, k = np.zeros_like(r), 0, 1
    while np.max(k) > 1e-13:
        m += 1
        k = profile(m * r)
        total += (1 - k) / (4 * m * m - 1)
        assert m < 10_000
    rest = 1 / (2 * (2 * m + 1))  # of the terms with K = 0
    return 8 / np.pi**2 * (total + rest)


def hamming(a, b):
    """All Hamming distances between two sets of codes."""
    a = np.unpackbits(a, axis=1).astype("float32")
    b = np.unpackbits(b, axis=1).astype("float32")
    return a @ (1 - b.T) + (1 - a) @ b.T


def hoeffding(n, nbits):
    """How far the mean of nbits independent bits may stray from its
    expectation, for n such means at once."""
    return np.sqrt(np.log(2 * n / FAILURE) / (2 * nbits))


# ------------------------------------------------------------------ theory


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("width", [0.2, 1, 5])
def test_hamming_distances_follow_the_kernel(digits, name, width):
    """Theorem 2.1: close to h_K for all pairs at once. Bits are independent."""
    profile, metric, scale = KERNELS[name]
    x = digits.base[:120]
    distances = pdist(x.astype(float), metric)
    gamma = float((width / distances.mean()) ** (1 if scale is float else 2))
    nbits = 1 << 15
    name += ",proj=dense"
    codes = hash_of(name, nbits=nbits, gamma=gamma, seed=3).encode(x)

    measured = hamming(codes, codes)[np.triu_indices(len(x), 1)] / nbits
    expected = h_k(profile, scale(gamma) * distances)
    bound = hoeffding(len(expected), nbits)
    assert bound < 0.025 and expected.max() - expected.min() > 2 * bound
    assert np.abs(measured - expected).max() <= bound


@pytest.mark.parametrize("name", KERNELS)
def test_expected_hamming_is_the_series(name):
    profile = KERNELS[name][0]
    hash = hash_of(name, nbits=512, gamma=0.3)
    r = np.geomspace(0.01, 6, 60)
    expected = 512 * h_k(profile, r)
    values = [hash.expected_hamming(float(k)) for k in profile(r)]
    np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_expected_hamming_lies_between_the_bounds(name):
    """Lemma 2.3."""
    hash = hash_of(name, nbits=64, gamma=0.3)
    for u in np.linspace(0, 1, 101):
        lower = 4 / np.pi**2 * (1 - u)
        upper = min(np.sqrt(1 - u) / 2, 4 / np.pi**2 * (1 - 2 * u / 3))
        assert hash.lower_bound(u) == pytest.approx(lower)
        assert hash.upper_bound(u) == pytest.approx(upper)
        h = hash.expected_hamming(u) / 64
        assert lower - 1e-8 <= h <= upper + 1e-8


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_estimate_inverts_expected_hamming(name):
    hash = hash_of(name, nbits=512, gamma=0.3)
    values = np.linspace(0.001, 1, 200)
    bits = [hash.expected_hamming(float(k)) for k in values]
    assert (np.diff(bits) < 0).all()
    estimates = [hash.kernel_estimate(b) for b in bits]
    np.testing.assert_allclose(estimates, values, atol=1e-6)
    assert hash.kernel_estimate(0) == 1
    # more bits than are ever expected
    assert hash.kernel_estimate(300) == hash.kernel_estimate(512) == 0


@pytest.mark.parametrize(
    "factory", [faiss_ext.index_factory, faiss_ext.index_binary_factory]
)
def test_kernel_estimate_takes_the_distances_that_search_returns(
    digits, factory
):
    index = factory(64, "SIK256(gaussian,gamma=0.001),BFlat")
    index.add(digits.base)
    D, _ = index.search(digits.queries[:1], 1)
    distance = D[0, 0]  # a number of NumPy
    estimate = index.hash.kernel_estimate(distance)
    assert estimate == index.hash.kernel_estimate(float(distance))
    assert 0 < estimate <= 1


def test_estimates_agree_with_random_fourier_features(digits):
    """scikit-learn's RBFSampler estimates the same kernel in another way; the
    two differ by no more than both of their Hoeffding bounds."""
    x = digits.base[:40]
    gamma = 0.001
    features = RBFSampler(
        gamma=gamma / 2, n_components=1 << 15, random_state=5
    ).fit_transform(x.astype(float))
    pairs = np.triu_indices(len(x), 1)
    theirs = (features @ features.T)[pairs]
    npairs = len(theirs)
    # a mean of products of two cosines, each from -2 to 2
    their_bound = 4 * hoeffding(npairs, 1 << 15)

    nbits = 1 << 15
    hash = hash_of("gaussian,proj=dense", nbits=nbits, gamma=gamma)
    codes = hash.encode(x)
    distances = hamming(codes, codes)[pairs].astype(float)
    bound = nbits * hoeffding(npairs, nbits)
    low = [hash.kernel_estimate(min(h + bound, nbits)) for h in distances]
    high = [hash.kernel_estimate(max(h - bound, 0)) for h in distances]
    assert (theirs >= np.array(low) - their_bound).all()
    assert (theirs <= np.array(high) + their_bound).all()
    assert np.ptp(theirs) > 2 * their_bound + np.subtract(high, low).max()


def test_the_same_vector_has_the_same_code_and_far_ones_differ(digits):
    hash = hash_of("gaussian,proj=dense", nbits=4096, gamma=10.0)
    x = digits.base[:50]
    codes = hash.encode(x)
    np.testing.assert_array_equal(hash.encode(x.copy()), codes)
    # K = 0: h_K is 4/pi^2 for all pairs
    far = hamming(codes, codes)[np.triu_indices(50, 1)] / 4096
    assert np.abs(far - 4 / np.pi**2).max() <= hoeffding(len(far), 4096)


# ---------------------------------------------------------------- sampling


@pytest.mark.parametrize(
    "name, marginal, scale",
    [
        ("gaussian", stats.norm(), lambda gamma: gamma**0.5),
        ("laplacian", stats.cauchy(), lambda gamma: gamma),
        ("matern,nu=1.5", stats.t(3), lambda gamma: gamma**0.5),
        ("matern,nu=0.7", stats.t(1.4), lambda gamma: gamma**0.5),
    ],
)
def test_random_numbers_have_their_distributions(name, marginal, scale):
    nbits, d, gamma = 20_000, 3, 0.25
    hash = hash_of(name + ",proj=dense", d, nbits, gamma=gamma, seed=11)
    omega = hash.projection.matrix().reshape(nbits, d)
    omega = 2 * np.pi * omega.astype(float) / scale(gamma)
    b = faiss.vector_to_array(hash.offset)
    t = np.cos(2 * np.pi * faiss.vector_to_array(hash.threshold))
    numbers = [(column, marginal) for column in omega.T]
    numbers += [(b, stats.uniform()), (t, stats.uniform(-1, 2))]
    for sample, distribution in numbers:
        assert stats.kstest(sample, distribution.cdf).pvalue > 1e-6
    signs = np.sign(np.column_stack([omega, b - 0.5, t]))
    correlation = signs.T @ signs / nbits - np.eye(5)
    assert np.abs(correlation).max() < 6 / np.sqrt(nbits)


def test_coordinates_of_matern_frequencies_share_their_scale():
    """Multivariate Student-t, not independent coordinates."""
    for name in ("matern,nu=0.5", "matern,nu=0.5,proj=dense"):
        hash = hash_of(name, 2, 20_000, gamma=1.0)
        omega = np.abs(hash.projection.matrix()).reshape(-1, 2)
        assert stats.spearmanr(omega).correlation > 0.3
    hash = hash_of("laplacian", 2, 20_000, gamma=1.0)
    omega = np.abs(hash.projection.matrix()).reshape(-1, 2)
    assert abs(stats.spearmanr(omega).correlation) < 0.05


@pytest.mark.parametrize("name", FORMS)
def test_bits_are_those_of_the_definition(digits, name):
    """cos(omega x + b) + t >= 0, in double precision."""
    x = digits.queries
    hash = hash_of(name, nbits=1024, gamma=0.001)
    u = x.astype(float) @ hash.projection.matrix().reshape(
        1024, 64
    ).T + faiss.vector_to_array(hash.offset)
    t = -np.cos(2 * np.pi * faiss.vector_to_array(hash.threshold))
    value = np.cos(2 * np.pi * u) + t
    bits = np.unpackbits(hash.encode(x), axis=1, bitorder="little")
    differ = bits != (value >= 0)
    # rounding decides only where a phase of many turns is next to a threshold
    assert differ.mean() < 1e-3
    turns = 1 + np.abs(x) @ np.abs(
        hash.projection.matrix().reshape(1024, 64).T
    )
    assert (np.abs(value) <= 1e-4 * turns)[differ].all()


@pytest.mark.parametrize("name", FORMS)
def test_margins_lie_between_minus_half_and_half(digits, name):
    margins = hash_of(name, gamma=0.001).apply(digits.queries)
    assert margins.shape == (200, 256) and margins.dtype == np.float32
    assert margins.min() >= -0.5 and margins.max() <= 0.5
    assert margins.min() < 0 < margins.max()


def test_seeds_repeat_and_differ(digits):
    x = digits.queries
    default = hash_of("gaussian", gamma=0.001)
    assert default.seed == 1234
    same = [hash_of("gaussian", gamma=0.001, seed=1234) for _ in range(2)]
    for hash in same:
        np.testing.assert_array_equal(hash.encode(x), default.encode(x))
    kernel = faiss_ext.GaussianKernel(0.001)
    direct = faiss_ext.ShiftInvariantHash(64, 256, kernel, 1234)
    np.testing.assert_array_equal(direct.encode(x), default.encode(x))
    proj = faiss_ext.ProjectionChoice("dense")
    direct = faiss_ext.ShiftInvariantHash(64, 256, kernel, 1234, proj)
    dense = hash_of("gaussian,proj=dense", gamma=0.001)
    np.testing.assert_array_equal(direct.encode(x), dense.encode(x))

    seeds = [0, 1, 1234, 1235, 2**31, 2**63 - 1]
    for name in ("gaussian", "gaussian,proj=dense"):
        codes = [hash_of(name, gamma=0.001, seed=s).encode(x) for s in seeds]
        share = np.mean([np.unpackbits(codes[0] ^ c).mean() for c in codes[1:]])
        assert 0.4 < share < 0.6
        assert len({c.tobytes() for c in codes}) == len(seeds)


# ------------------------------------------------------------------- codes


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("nbits", [8, 24, 64, 1000])
def test_encode_packs_the_signs_of_apply(digits, name, nbits):
    hash = hash_of(name, nbits=nbits, gamma=0.001)
    x = digits.queries
    codes = hash.encode(x)
    assert codes.dtype == np.uint8 and codes.shape == (200, nbits // 8)
    assert hash.code_size() == nbits // 8 and hash.d_out == hash.nbits == nbits
    expected = np.packbits(hash.apply(x) >= 0, axis=1, bitorder="little")
    np.testing.assert_array_equal(codes, expected)


def test_encode_packs_as_faiss_does(digits):
    hash = hash_of("gaussian", gamma=0.001)
    margins = hash.apply(digits.queries)
    codes = np.zeros((200, 32), dtype="uint8")
    faiss.fvecs2bitvecs(
        faiss.swig_ptr(margins), faiss.swig_ptr(codes), 256, 200
    )
    np.testing.assert_array_equal(hash.encode(digits.queries), codes)


@given(
    d=st.integers(1, 40),
    nbits=st.integers(1, 40).map(lambda n: 8 * n),
    name=st.sampled_from(FORMS),
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 150), max_size=6),
)
@settings(deadline=None, derandomize=True, max_examples=60)
def test_codes_do_not_depend_on_the_split_into_batches(
    d, nbits, name, seed, cuts
):
    x = np.random.default_rng(seed).normal(size=(150, d)).astype("float32")
    hash = hash_of(name, d, nbits, gamma=1.0, seed=seed)
    codes, margins = hash.encode(x), hash.apply(x)
    ends = sorted([0, *cuts, 150])
    parts = [x[a:b] for a, b in zip(ends, ends[1:])]
    np.testing.assert_array_equal(
        np.vstack([hash.encode(part) for part in parts]), codes
    )
    np.testing.assert_array_equal(
        np.vstack([hash.apply(part) for part in parts]), margins
    )


@pytest.mark.parametrize("name", FORMS)
def test_codes_do_not_depend_on_the_number_of_threads(digits, name):
    hash = hash_of(name, nbits=512, gamma=0.001)
    before = faiss.omp_get_max_threads()
    try:
        codes = []
        for threads in (1, 2, 5):
            faiss.omp_set_num_threads(threads)
            codes.append(hash.encode(digits.base).tobytes())
    finally:
        faiss.omp_set_num_threads(before)
    assert len(set(codes)) == 1


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: x.astype("float64"),
        lambda x: x.astype("int64"),
        lambda x: x.astype("uint8"),
        lambda x: x.astype(">f4"),
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: np.repeat(x, 3, axis=0)[::3],
        lambda x: x[::-1].copy()[::-1],
        lambda x: x.tolist(),
    ],
    ids="float64 int64 uint8 bigendian fortran columns rows back list".split(),
)
def test_vectors_of_any_type_and_layout_give_the_same_codes(digits, convert):
    x = digits.queries[:20]
    hash = hash_of("gaussian", gamma=0.001)
    converted = convert(x)
    np.testing.assert_array_equal(hash.encode(converted), hash.encode(x))
    np.testing.assert_array_equal(hash.apply(converted), hash.apply(x))
    auto, other = hash_of("gaussian"), hash_of("gaussian")
    auto.train(converted)
    other.train(x)
    assert auto.kernel.gamma == other.kernel.gamma


def test_no_vectors_give_no_codes():
    hash = hash_of("gaussian", 5, 64, gamma=1.0)
    nothing = np.zeros((0, 5), dtype="float32")
    assert hash.encode(nothing).shape == (0, 8)
    assert hash.apply(nothing).shape == (0, 64)
    hash.train(nothing)  # a given bandwidth needs no data


# ---------------------------------------------------------------- training


@pytest.mark.parametrize("name", FORMS)
def test_training_sets_the_bandwidth_as_the_kernel_does(digits, name):
    hash = hash_of(name)
    assert not hash.is_trained and not hash.kernel.is_trained
    assert hash.projection is None
    hash.train(digits.base)
    assert hash.is_trained and hash.kernel.is_trained
    string = name.removesuffix(",proj=dense")
    string = string.replace(",", "(") + ")" if "," in string else string
    kernel = faiss_ext.kernel_factory(string)
    kernel.train(digits.base)
    assert hash.kernel.description() == kernel.description()
    given = hash_of(name, gamma=kernel.gamma)
    assert given.is_trained
    np.testing.assert_array_equal(
        given.encode(digits.queries), hash.encode(digits.queries)
    )


def test_a_given_bandwidth_is_kept(digits):
    hash = hash_of("gaussian", gamma=0.5)
    codes = hash.encode(digits.queries)
    hash.train(digits.base)
    assert hash.kernel.gamma == 0.5
    np.testing.assert_array_equal(hash.encode(digits.queries), codes)


def test_half_of_the_bits_of_a_code_are_set(digits):
    """b uniform on the circle, and independent: a bit is 1 with probability
    1/2, whatever the frequencies are."""
    hash = hash_of("gaussian", nbits=1 << 14, gamma=0.001)
    share = np.unpackbits(hash.encode(digits.queries), axis=1).mean(axis=1)
    assert np.abs(share - 0.5).max() <= hoeffding(200, 1 << 14)


# ------------------------------------------------------------------ errors


def test_an_untrained_hash_asks_for_training(digits):
    hash = hash_of("gaussian")
    for method in (hash.encode, hash.apply):
        with pytest.raises(RuntimeError, match="call train"):
            method(digits.queries)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39])
def test_numbers_that_are_not_finite_floats_are_named(digits, bad):
    x = digits.queries.astype(float)
    x[70, 3] = bad
    hash = hash_of("gaussian", gamma=0.001)
    for method in (hash.encode, hash.apply):
        with pytest.raises(RuntimeError, match="component 3 of vector 70"):
            method(x)
    untrained = hash_of("gaussian")
    with pytest.raises(RuntimeError, match="component 3 of vector 70"):
        untrained.train(x)
    assert not untrained.is_trained


@pytest.mark.parametrize("shape", [(64,), (3, 63), (3, 65), (1, 3, 64), ()])
def test_arrays_of_a_wrong_shape_are_refused(shape):
    hash = hash_of("gaussian", gamma=0.001)
    for method in (hash.encode, hash.apply, hash.train):
        with pytest.raises(ValueError, match=r"shape \(n, 64\)"):
            method(np.zeros(shape))


@pytest.mark.parametrize(
    "d, nbits", [(0, 8), (-1, 8), (4, 0), (4, 12), (4, -8)]
)
def test_sizes_out_of_range_are_refused(d, nbits):
    with pytest.raises(RuntimeError, match="expected a positive"):
        faiss_ext.ShiftInvariantHash(d, nbits, faiss_ext.GaussianKernel(1.0))


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_values_outside_the_range_are_refused(value):
    hash = hash_of("gaussian", gamma=1.0, nbits=64)
    with pytest.raises(RuntimeError, match="from 0 to 1"):
        hash.expected_hamming(value)
    with pytest.raises(RuntimeError, match="0 to 64 bits"):
        hash.kernel_estimate(64 * value)


@pytest.mark.parametrize(
    "string, position, accepted",
    [
        ("SIK(gaussian)", 3, "multiple of 8"),
        ("SIK100(gaussian)", 3, "multiple of 8"),
        ("SIK0(gaussian)", 3, "multiple of 8"),
        ("SIK99999999999(gaussian)", 3, "multiple of 8"),
        ("SIK64", 5, "gaussian, laplacian, matern"),
        ("SIK64()", 6, "expected an argument"),
        ("SIK64(chi3)", 6, "gaussian, laplacian"),
        ("SIK64(linear)", 6, "gaussian, laplacian, matern"),
        ("SIK64(gaussian,gama=1)", 15, "gamma="),
        ("SIK64(gaussian,nu=1)", 15, "gamma="),
        ("SIK64(gaussian,seed=x)", 20, "an integer"),
        ("SIK64(gaussian,seed=-1)", 20, "an integer"),
        ("SIK64(gaussian,proj=foo)", 20, "structured, dense"),
        ("SIK64(laplacian,proj=structured)", 21, "dense"),
        ("SIK64(gaussian(gamma=1),gamma=2)", 24, "given twice"),
        ("XYZ64(gaussian)", 0, "SIK<bits>"),
        ("64", 0, "SIK<bits>"),
        ("", 0, "SIK<bits>"),
    ],
)
def test_errors_in_strings_quote_mark_and_help(string, position, accepted):
    with pytest.raises(RuntimeError) as error:
        faiss_ext.kernel_hash_factory(64, string)
    message = str(error.value)
    assert f'"{string}"' in message and accepted in message
    quoted, marker = message.splitlines()[1:3]
    assert quoted == "  " + string
    assert marker == "  " + " " * position + "^"
