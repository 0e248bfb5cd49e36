"""Structured projections from Python: the default of SIK, AHK and RHBE."""

import copy
import gc
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import faiss
import faiss_ext

# strings without the number of bits and the closing parenthesis, and the class
SCHEMES = {
    "SIK{}(gaussian,gamma=0.01": faiss_ext.ShiftInvariantHash,
    "SIK{}(matern,nu=0.7,gamma=0.01": faiss_ext.ShiftInvariantHash,
    "AHK{}(chi2": faiss_ext.AdditiveKernelHash,
    "AHK{}(js,order=2,center=1": faiss_ext.AdditiveKernelHash,
    "RHBE{}(center=0": faiss_ext.HyperplaneHash,
    "RHBE{}(center=1": faiss_ext.HyperplaneHash,
}
CLASSES = {
    "structured": faiss_ext.StructuredProjection,
    "dense": faiss_ext.DenseProjection,
}
STRUCTURED, DENSE = map(faiss_ext.ProjectionChoice, CLASSES)


def hash_of(scheme, d, nbits, **keys):
    arguments = "".join(f",{k}={v}" for k, v in keys.items())
    string = scheme.format(nbits) + arguments + ")"
    return faiss_ext.kernel_hash_factory(d, string)


def histograms(n, d, seed=1):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(d, 0.7), n).astype("float32")


def unpacked(codes):
    return np.unpackbits(codes, axis=1, bitorder="little")


def order(d):
    """Of the transforms."""
    return max(256, 1 << (d - 1).bit_length())


def whole_rows(hash, scheme):
    """The random directions in all dimensions of the transform: those of a hash
    of vectors of so many."""
    D, seed = order(hash.projection.d_in), hash.seed
    if isinstance(hash, faiss_ext.ShiftInvariantHash):
        twin = hash_of(scheme, D, hash.nbits, seed=seed)
    else:
        twin = faiss_ext.HyperplaneHash(D, hash.nbits, False, seed)
    return twin.projection.matrix().astype(float)


def rounding(hash, scheme, x):
    """How far products may be from those of matrix(), each of n x nbits: a unit
    of |w| |x| for each level of the butterflies and some products. With few
    outputs the parts of the last input are added up, at most D / 16 of them; i
    of them are at most sqrt(i) times as long as all, and sqrt(i) / sqrt(D / 16)
    sums to less than D / 16 units."""
    x = np.asarray(x, dtype=float)
    if isinstance(hash.projection, faiss_ext.DenseProjection):
        return 2e-5 * np.abs(x) @ np.abs(hash.projection.matrix().astype(float)).T
    W = whole_rows(hash, scheme)
    d, D = hash.projection.d_in, order(hash.projection.d_in)
    np.testing.assert_array_equal(W[:, :d], hash.projection.matrix())
    units = 3 * np.log2(D) + 3 + D / 16
    lengths = np.linalg.norm(x, axis=1), np.linalg.norm(W, axis=1)
    return 6e-8 * units * np.outer(*lengths)


# ------------------------------------------------------------- projections


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_class_of_the_projection(scheme):
    x = histograms(20, 12)
    for proj, the_class in CLASSES.items():
        hash = hash_of(scheme, 12, 64, proj=proj)
        hash.train(x)
        assert type(hash) is SCHEMES[scheme]
        assert type(hash.projection) is the_class
        assert isinstance(hash.projection, faiss_ext.Projection)
    default, given_form = (
        hash_of(scheme, 12, 64, **keys) for keys in ({}, {"proj": "structured"})
    )
    default.train(x)
    given_form.train(x)
    default.check_identical(given_form)
    with pytest.raises(RuntimeError):
        dense = hash_of(scheme, 12, 64, proj="dense")
        dense.train(x)
        default.check_identical(dense)


def test_constructors_choose_the_form():
    kernel = faiss_ext.GaussianKernel(1.0)
    map = faiss_ext.kernel_hash_factory(12, "AHK8(chi2)").map
    for make in (
        lambda *form: faiss_ext.ShiftInvariantHash(12, 64, kernel, 3, *form),
        lambda *form: faiss_ext.AdditiveKernelHash(map, 64, False, 3, *form),
        lambda *form: faiss_ext.HyperplaneHash(12, 64, False, 3, *form),
    ):
        assert type(make().projection) is faiss_ext.StructuredProjection
        assert type(make(STRUCTURED).projection) is CLASSES["structured"]
        assert type(make(DENSE).projection) is CLASSES["dense"]
        assert make().proj.kind == make(STRUCTURED).proj.kind == "structured"
        assert make(DENSE).proj.kind == "dense"
        make().check_identical(make(STRUCTURED))
    # frequencies of the Laplacian kernel have preferred directions
    hash = faiss_ext.ShiftInvariantHash(
        12, 64, faiss_ext.LaplacianKernel(1.0), 3, STRUCTURED
    )
    assert type(hash.projection) is faiss_ext.DenseProjection
    assert hash.proj.kind == "dense"


@pytest.mark.parametrize("proj", CLASSES)
def test_the_projection_is_there_when_it_is_drawn(proj):
    x = histograms(100, 12)
    hash = faiss_ext.kernel_hash_factory(12, f"SIK64(gaussian,proj={proj})")
    assert hash.projection is None and not hash.is_trained
    with pytest.raises(RuntimeError):
        hash.train(x[:1])  # no distances
    assert hash.projection is None
    hash.train(x)
    assert type(hash.projection) is CLASSES[proj]
    with pytest.raises(AttributeError):
        hash.projection = hash.projection
    # others have it from the beginning, for the mean is no part of it
    for string in (f"RHBE64(center=1,proj={proj})", f"AHK64(js,center=1,proj={proj})"):
        hash = faiss_ext.kernel_hash_factory(12, string)
        assert not hash.is_trained and type(hash.projection) is CLASSES[proj]


@pytest.mark.parametrize("d, nbits", [(1, 8), (12, 64), (64, 256), (300, 1032)])
def test_rows_are_orthogonal_in_all_dimensions_and_random_in_some(d, nbits):
    """Rows come in blocks of D, each of another rotation."""
    hash = faiss_ext.HyperplaneHash(d, nbits, False, 7)
    p = hash.projection
    A = p.matrix().astype(float)
    assert A.shape == (nbits, d) == (p.d_out, p.d_in)
    assert p.matrix().dtype == np.float32
    D = p.order(d)
    assert D == order(d)
    # a longer code begins with the bits of a shorter one
    longer = faiss_ext.HyperplaneHash(d, nbits + 8, False, 7).projection
    np.testing.assert_array_equal(longer.matrix()[:nbits], p.matrix())
    # filled up to D dimensions, rows of a rotation are orthogonal
    full = faiss_ext.HyperplaneHash(D, nbits, False, 7).projection
    B = full.matrix().astype(float)
    np.testing.assert_array_equal(B[:, :d], A)
    lengths = np.linalg.norm(B, axis=1)
    # of Gaussian vectors: 8 standard deviations, and the mean's distance of 1 / 4
    # sqrt(D)
    assert (np.abs(lengths - np.sqrt(D)) < 8 / np.sqrt(2) + 0.1).all()
    cosines = B / lengths[:, None]
    cosines = cosines @ cosines.T - np.eye(nbits)
    same = np.arange(nbits) // D
    same = same[:, None] == same
    assert np.abs(cosines[same]).max() < 2e-7  # a rounding of each entry
    assert same.all() or np.abs(cosines[~same]).max() > 0.01


@given(
    d=st.integers(1, 300),
    nbits=st.integers(1, 80).map(lambda n: 8 * n),
    scheme=st.sampled_from(list(SCHEMES)),
    proj=st.sampled_from(list(CLASSES)),
    seed=st.integers(0, 2**63 - 1),
)
@settings(deadline=None, derandomize=True, max_examples=60)
def test_codes_are_the_signs_of_the_products_with_the_matrix(
    d, nbits, scheme, proj, seed
):
    x = histograms(30, d, seed % 1000)
    hash = hash_of(scheme, d, nbits, proj=proj, seed=seed)
    hash.train(x)
    features = x
    if isinstance(hash, faiss_ext.AdditiveKernelHash):
        features = hash.map.apply(x)
    A = hash.projection.matrix().astype(float)
    products = features.astype(float) @ A.T
    allowed = rounding(hash, scheme, features)
    assert (np.abs(hash.projection.apply(features) - products) <= allowed).all()
    bits = unpacked(hash.encode(x)).astype(bool)
    if isinstance(hash, faiss_ext.ShiftInvariantHash):
        turns = products + faiss.vector_to_array(hash.offset)
        threshold = faiss.vector_to_array(hash.threshold)
        margins = threshold - np.abs(turns - np.round(turns))
        allowed = allowed + 6e-8 * (np.abs(turns) + 3)
    else:
        threshold = faiss.vector_to_array(hash.threshold)
        margins = products
        if len(threshold):
            margins = products - threshold
            allowed = allowed + 6e-8 * (np.abs(products) + np.abs(threshold))
    assert ((bits == (margins >= 0)) | (np.abs(margins) <= allowed)).all()
    assert (np.abs(margins) <= allowed).mean() < 0.1  # the test says something


# --------------------------------------------------------------- distances


def shares_of_seeds(make, x, seeds):
    """Normalised Hamming distances of all pairs, seeds x pairs."""
    pairs = np.triu_indices(len(x), 1)
    found = []
    for seed in range(seeds):
        bits = unpacked(make(seed).encode(x)).astype("float32")
        distances = bits @ (1 - bits.T) + (1 - bits) @ bits.T
        found.append(distances[pairs] / bits.shape[1])
    return np.array(found)


@pytest.mark.parametrize(
    "scheme", ["SIK{}(gaussian,gamma=0.001", "SIK{}(matern,gamma=0.001", "RHBE{}(center=0"]
)
def test_mean_distances_are_expected_and_vary_no_more_than_of_independent_bits(
    digits, scheme
):
    """Seeds are independent: the mean over 300 is nearly Gaussian, and within 7
    of its standard errors, and what D = 256 leaves out, 1 / D. The variance of a
    nearly Gaussian sample of 300 is within 7 sqrt(2 / 300) of the true one for
    each pair; p moves that of independent bits by no more than 1 / D."""
    x, nbits, seeds = digits.queries[:25], 256, 300
    shares = shares_of_seeds(
        lambda seed: hash_of(scheme, 64, nbits, seed=seed), x, seeds
    )
    hash = hash_of(scheme, 64, nbits)
    if isinstance(hash, faiss_ext.ShiftInvariantHash):
        values = hash.kernel.gram(x)
    else:
        unit = x.astype(float) / np.linalg.norm(x.astype(float), axis=1)[:, None]
        values = unit @ unit.T
    values = np.minimum(values[np.triu_indices(len(x), 1)], 1)
    p = np.array([hash.expected_hamming(float(v)) for v in values]) / nbits
    error = 7 * shares.std(axis=0, ddof=1) / np.sqrt(seeds)
    assert (np.abs(shares.mean(axis=0) - p) <= error + 1 / 256).all()
    assert error.max() < 0.015 < np.ptp(p) / 5
    variance = shares.var(axis=0, ddof=1)
    independent = (p * (1 - p) + 1 / 256) / nbits
    assert (variance <= independent * (1 + 7 * np.sqrt(2 / seeds))).all()


def test_orthogonal_directions_lower_the_variance():
    """At right angles by 4 / pi^2 = 0.41 of it: to a share of 0.59; measured from
    600 seeds, a variance errs by 7 sqrt(2 / 600) = 0.40 of itself at most."""
    x = np.zeros((2, 256), "float32")
    x[0], x[1, ::2], x[1, 1::2] = 1, 1, -1
    ratio = []
    for proj in ("structured", "dense"):
        shares = shares_of_seeds(
            lambda seed: hash_of("RHBE{}(center=0", 256, 256, seed=seed, proj=proj),
            x,
            600,
        )
        ratio.append(256 * 4 * shares.var(ddof=1))
    assert ratio[0] == pytest.approx(1 - 4 / np.pi**2, rel=0.4)
    assert ratio[1] == pytest.approx(1, rel=0.4)
    assert ratio[0] < 0.85 * ratio[1]


# ------------------------------------------------------- objects and files


@pytest.mark.parametrize("proj", CLASSES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_copies_pickles_and_files_give_the_same_codes(scheme, proj, tmp_path):
    x = histograms(50, 20)
    hash = hash_of(scheme, 20, 104, proj=proj)
    for train in (False, True):
        if train:
            hash.train(x)
        name = str(tmp_path / "hash")
        faiss.write_VectorTransform(hash, name)
        copies = [
            copy.copy(hash),
            copy.deepcopy(hash),
            hash.copy(),
            pickle.loads(pickle.dumps(hash)),
            faiss.read_VectorTransform(name),
        ]
        for twin in copies:
            assert type(twin) is type(hash)
            hash.check_identical(twin)
            assert twin.is_trained == hash.is_trained
            twin.train(x)
            assert type(twin.projection) is CLASSES[proj]
            reference = hash.copy()
            reference.train(x)
            np.testing.assert_array_equal(twin.encode(x), reference.encode(x))
            np.testing.assert_array_equal(
                twin.projection.matrix(), reference.projection.matrix()
            )
    # a copy is on its own
    twin, matrix = hash.copy(), hash.projection.matrix()
    codes, part = twin.encode(x), twin.projection
    del hash, copies
    gc.collect()
    np.testing.assert_array_equal(twin.encode(x), codes)
    del twin
    gc.collect()
    np.testing.assert_array_equal(part.matrix(), matrix)


def test_files_are_small():
    """784 dimensions and 1,024 bits: 12 bytes for each of 1,024 dimensions of the
    transform and 4 for each length, offset and threshold; a matrix has 3.2 MB."""
    for scheme in ("SIK{}(gaussian,gamma=0.01", "RHBE{}(center=0"):
        small, large = (
            len(pickle.dumps(hash_of(scheme, 784, 1024, proj=proj)))
            for proj in ("structured", "dense")
        )
        assert 16 * 1024 < small < 12 * 1024 + 12 * 1024 + 1000
        assert large > 4 * 784 * 1024


@pytest.mark.parametrize("scheme", SCHEMES)
def test_indexes_come_back_the_same(scheme, tmp_path):
    x = histograms(200, 20)
    q = histograms(10, 20, seed=2)
    for proj in CLASSES:
        string = scheme.format(64) + f",proj={proj})"
        index = faiss.index_factory(20, string + ",BFlat")
        index.train(x)
        index.add(x)
        assert type(index.hash.projection) is CLASSES[proj]
        D, I = index.search(q, 5)
        name = str(tmp_path / "index")
        faiss.write_index(index, name)
        for twin in (faiss.read_index(name), faiss.clone_index(index)):
            assert type(twin.hash.projection) is CLASSES[proj]
            found = twin.search(q, 5)
            np.testing.assert_array_equal(found[0], D)
            np.testing.assert_array_equal(found[1], I)


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("proj", CLASSES)
def test_vectors_are_checked(proj):
    projection = hash_of("RHBE{}(center=0", 12, 64, proj=proj).projection
    assert projection.apply(np.zeros((0, 12))).shape == (0, 64)
    for shape in [(3, 11), (12,)]:
        with pytest.raises(ValueError):
            projection.apply(np.zeros(shape))
    hash = hash_of("SIK{}(gaussian,gamma=0.01", 12, 64, proj=proj)
    x = histograms(5, 12)
    x[3, 2] = np.nan
    with pytest.raises(RuntimeError, match="component 2 of vector 3"):
        hash.encode(x)


@pytest.mark.parametrize(
    "string, accepted",
    [
        ("SIK64(laplacian,gamma=1,proj=structured)", "dense"),
        ("SIK64(gaussian,proj=bilinear)", "structured, dense"),
        ("AHK64(chi2,proj=bilinear)", "structured, dense"),
        ("RHBE64(proj=Structured)", "structured, dense, bilinear"),
    ],
)
def test_errors_name_the_forms_there_are(string, accepted):
    with pytest.raises(RuntimeError) as error:
        faiss_ext.kernel_hash_factory(12, string)
    message = str(error.value)
    assert f'"{string}"' in message and accepted in message
    quoted, marker = message.splitlines()[1:3]
    assert quoted == "  " + string
    assert marker == "  " + " " * string.rindex("=") + " ^"


def test_cauchy_projections_have_one_form():
    """Their components are independent Cauchy variables."""
    hash = faiss_ext.kernel_hash_factory(12, "SCR64")
    assert type(hash.projection) is faiss_ext.DenseProjection
    with pytest.raises(RuntimeError, match="'proj' of SCR.*position 6"):
        faiss_ext.kernel_hash_factory(12, "SCR64(proj=dense)")
