"""Bilinear projections from Python: codes of many bits for matrices."""

import gc
import pickle

import numpy as np
import pytest

import faiss
import faiss_ext


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


def test_constructors_strings_copies_and_parts(digits):
    x = digits.queries
    strings = [
        "BSIK104(8x8,m=2)",
        "BSIK104(4x16,gamma=0.001,w=dense)",
        "RHBE104(proj=bilinear,center=1)",
    ]
    for hash in (faiss_ext.kernel_hash_factory(64, s) for s in strings):
        untrained = pickle.loads(pickle.dumps(hash))
        hash.train(digits.base)
        untrained.train(digits.base)
        codes, A = hash.encode(x), hash.projection.matrix()
        twins = [hash.copy(), pickle.loads(pickle.dumps(hash)), untrained]
        part, cls = hash.projection, type(hash)
        del hash
        gc.collect()
        np.testing.assert_array_equal(part.matrix(), A)
        for twin in twins:
            assert type(twin) is cls and twin.nbits == 104
            np.testing.assert_array_equal(twin.encode(x), codes)
    hash = faiss_ext.kernel_hash_factory(784, "BSIK6400(28x28,m=5)")
    assert isinstance(hash, faiss_ext.BilinearShiftInvariantHash)
    assert isinstance(hash, faiss_ext.ShiftInvariantHash)
    proj = hash.proj
    assert (hash.nbits, proj.d_w, proj.d_v, proj.m) == (6400, 28, 28, 5)
    assert proj.w == "structured" and proj.shuffle and not hash.is_trained
    hash = faiss_ext.BilinearShiftInvariantHash(8, 8, 64, 0.01, 2, False, 7)
    same = faiss_ext.kernel_hash_factory(
        64, "BSIK64(8x8,gamma=0.01,m=2,w=dense,seed=7)")
    np.testing.assert_array_equal(hash.encode(x), same.encode(x))


@pytest.mark.parametrize("shape", [(1, 64), (8, 8), (32, 2)])
@pytest.mark.parametrize("shuffle", [0, 1])
def test_kernel_of_a_pair_is_that_of_the_singular_values(
        digits, shape, shuffle):
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
    np.testing.assert_allclose(
        hash.apply(x), plain.apply(shuffled(x)), atol=1e-5)
    for x, y in zip(digits.queries[:10], digits.base[:10]):
        values = eigenvalues(shuffled(x), shuffled(y), shape, gamma)
        kernel = np.prod(1 / np.sqrt(1 + values))
        assert hash.bilinear_kernel(x, y) == pytest.approx(kernel, rel=1e-9)
        share, tail = series(values)
        assert hash.expected_hamming_of_pair(x, y) / 128 == pytest.approx(
            share, abs=tail + 2e-9)
    assert hash.bilinear_kernel(x, x) == 1
    # of a Gaussian kernel's value: eigenvalues that are all equal
    q = min(shape)
    share, tail = series(np.full(q, -2 * np.log(0.2) / q))
    assert hash.expected_hamming(0.2) / 128 == pytest.approx(
        share, abs=tail + 2e-9)
    bad = np.where(np.arange(64) == 5, np.nan, y)
    for method in (hash.bilinear_kernel, hash.expected_hamming_of_pair):
        assert method(x, y) == method(x[None], y[None])
        for args, error in (
                ((x, bad), RuntimeError),
                ((x[:63], y[:63]), (ValueError, RuntimeError)),
                ((digits.queries[:2], y), ValueError)):
            with pytest.raises(error):
                method(*args)
