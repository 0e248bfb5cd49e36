# SPDX-License-Identifier: MIT
"""Projections from Python: bilinear ones of matrices, and which form a hash has."""

import faiss
import faiss_ext
import numpy as np
import pytest

CLASSES = {
    "structured": faiss_ext.StructuredProjection,
    "dense": faiss_ext.DenseProjection,
    "generated": faiss_ext.GeneratedProjection,
}


def series(eigenvalues):
    """8/pi^2 sum (1 - k_b(m)) / (4 m^2 - 1), one term after the other; what
    lies behind the last is between 0 and k_b / (4 m + 2)."""
    m = np.arange(1, 20_001)[:, None]
    k = np.exp(-0.5 * np.log1p(m**2 * eigenvalues).sum(axis=1))
    total = (k / (4.0 * m[:, 0] ** 2 - 1)).sum()
    tail = k[-1] / (4 * len(m) + 2)
    return 8 / np.pi**2 * (0.5 - total - tail / 2), tail


def eigenvalues(x, y, shape, gamma):
    D = (x.astype(float) - y).reshape(shape)
    return gamma * np.linalg.svd(D, compute_uv=False) ** 2


def test_matrix_is_made_of_pairs():
    hash = faiss_ext.kernel_hash_factory(
        63, "BSIK104(7x9,m=3,gamma=0.5,w=dense,shuffle=0)")
    p = hash.projection
    assert isinstance(p, faiss_ext.BilinearProjection)
    assert (p.d_w, p.d_v, p.m, p.d_in, p.d_out) == (7, 9, 3, 63, 104)
    assert p.k_w == p.k_v == int(np.ceil(3 * np.sqrt(104)))
    pair_w, pair_v = map(faiss.vector_to_array, (p.pair_w, p.pair_v))
    assert len(set(zip(pair_w.tolist(), pair_v.tolist()))) == 104
    w = faiss.vector_to_array(p.W).reshape(p.k_w, 7)[pair_w]
    v = p.V[pair_v]
    A = p.matrix()
    assert A.dtype == np.float32 and v.shape == (104, 9)
    # two roundings of a product of two numbers
    expected = np.einsum("jr,jc->jrc", w.astype(float), v).reshape(104, 63)
    np.testing.assert_allclose(A, expected, rtol=0, atol=4e-7 * abs(A).max())


def test_constructors_and_strings_make_the_same_bilinear_hash(digits):
    hash = faiss_ext.kernel_hash_factory(784, "BSIK6400(28x28,m=5)")
    assert isinstance(hash, faiss_ext.ShiftInvariantHash)
    proj = hash.proj
    assert (hash.nbits, proj.d_w, proj.d_v, proj.m) == (6400, 28, 28, 5)
    assert proj.w == "structured" and proj.shuffle and not hash.is_trained
    hash = faiss_ext.BilinearShiftInvariantHash(8, 8, 64, 0.01, 2, False, 7)
    string = "BSIK64(8x8,gamma=0.01,m=2,w=dense,seed=7)"
    hash.check_identical(faiss_ext.kernel_hash_factory(64, string))


@pytest.mark.parametrize("shape", [(1, 64), (8, 8), (32, 2)])
@pytest.mark.parametrize("shuffle", [0, 1])
def test_kernel_of_a_pair_is_that_of_the_singular_values(digits, shape, shuffle):
    gamma, shape_key = 0.0007, f"{shape[0]}x{shape[1]},gamma=0.0007"
    hash, plain = (
        faiss_ext.kernel_hash_factory(64, f"BSIK128({shape_key},shuffle={s})")
        for s in (shuffle, 0))
    # signed components in another order
    source = faiss.vector_to_array(hash.projection.source)
    assert hash.proj.shuffle == shuffle == (len(source) > 0)
    source = source if shuffle else np.arange(64)
    place = np.where(source < 0, -1 - source, source)
    assert sorted(place) == list(range(64))
    assert not shuffle or 10 < (source < 0).sum() < 54

    def shuffled(x):
        return np.where(source < 0, -1, 1) * x[..., place]

    x = digits.queries[:50]
    np.testing.assert_allclose(hash.apply(x), plain.apply(shuffled(x)), atol=1e-5)
    for x, y in zip(digits.queries[:10], digits.base[:10]):
        values = eigenvalues(shuffled(x), shuffled(y), shape, gamma)
        kernel = np.prod(1 / np.sqrt(1 + values))
        assert hash.bilinear_kernel(x, y) == pytest.approx(kernel, rel=1e-9)
        share, tail = series(values)
        found = hash.expected_hamming_of_pair(x, y) / 128
        assert found == pytest.approx(share, abs=tail + 2e-9)
    assert hash.bilinear_kernel(x, x) == 1
    # of a Gaussian kernel's value: eigenvalues that are all equal
    q = min(shape)
    share, tail = series(np.full(q, -2 * np.log(0.2) / q))
    assert hash.expected_hamming(0.2) / 128 == pytest.approx(share, abs=tail + 2e-9)
    bad = np.where(np.arange(64) == 5, np.nan, y)
    for method in (hash.bilinear_kernel, hash.expected_hamming_of_pair,
                   hash.covariance_of_pair):
        assert method(x, y) == method(x[None], y[None])
        for args, error in (
                ((x, bad), RuntimeError),
                ((x[:63], y[:63]), (ValueError, RuntimeError)),
                ((digits.queries[:2], y), ValueError)):
            with pytest.raises(error):
                method(*args)


def test_constructors_choose_the_form():
    kernel = faiss_ext.GaussianKernel(1.0)
    map = faiss_ext.kernel_hash_factory(12, "AHK8(chi2)").map
    for make in (
        lambda *form: faiss_ext.ShiftInvariantHash(12, 64, kernel, 3, *form),
        lambda *form: faiss_ext.AdditiveKernelHash(map, 64, False, 3, *form),
        lambda *form: faiss_ext.HyperplaneHash(12, 64, False, 3, *form),
    ):
        for kind, cls in CLASSES.items():
            hash = make(faiss_ext.ProjectionChoice(kind))
            assert type(hash.projection) is cls and hash.proj.kind == kind
        make().check_identical(make(faiss_ext.ProjectionChoice("structured")))
    # frequencies of the Laplacian kernel have preferred directions, components
    # of Cauchy projections are independent
    laplacian = faiss_ext.LaplacianKernel(1.0)
    structured = faiss_ext.ProjectionChoice("structured")
    hash = faiss_ext.ShiftInvariantHash(12, 64, laplacian, 3, structured)
    assert hash.proj.kind == "dense"
    for dense in (hash, faiss_ext.kernel_hash_factory(12, "SCR64")):
        assert type(dense.projection) is faiss_ext.DenseProjection


def test_the_projection_is_there_when_it_is_drawn(digits):
    x = digits.base / 64
    for proj, cls in CLASSES.items():
        hash = faiss_ext.kernel_hash_factory(64, f"SIK64(gaussian,proj={proj})")
        with pytest.raises(RuntimeError):
            hash.train(x[:1])  # no distances
        assert hash.projection is None
        hash.train(x)
        with pytest.raises(AttributeError):
            hash.projection = hash.projection
        # others have it from the beginning, for the mean is no part of it
        other = faiss_ext.kernel_hash_factory(64, f"AHK64(js,center=1,proj={proj})")
        assert type(hash.projection) is type(other.projection) is cls
        projection = hash.projection
        matrix = projection.matrix()
        assert matrix.shape == (64, 64) and matrix.dtype == np.float32
        np.testing.assert_allclose(projection.apply(x), x @ matrix.T, atol=1e-4)
        assert projection.apply(x[:0]).shape == (0, 64)
        for shape in [(3, 63), (64,)]:
            with pytest.raises(ValueError):
                projection.apply(np.zeros(shape))
