# SPDX-License-Identifier: MIT
"""Spectral hashing (SH) against its definition in NumPy: PCA by numpy.linalg.eigh,
all modes of all directions, the smallest frequencies."""

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import BASE, QUERIES


def spectral_hash(base, queries, nbits):
    """The sines whose signs are the bits, and how fast their phases move with the
    projections."""
    d = base.shape[1]
    centred = base.astype("float64") - base.mean(axis=0, dtype="float64")
    values, vectors = np.linalg.eigh(centred.T @ centred)
    principal = vectors[:, ::-1][:, : min(nbits, d)]
    # the component that is largest in magnitude is positive
    principal = principal * np.sign(principal[abs(principal).argmax(axis=0), range(principal.shape[1])])
    projected = base @ principal
    a, b = projected.min(axis=0), projected.max(axis=0)
    varies = b - a > 1e-6 * (b - a).max()
    omega = np.arange(1, nbits + 1)[:, None] * np.pi / np.where(varies, b - a, 1e-300)
    chosen = np.argsort(omega, axis=None, kind="stable")[:nbits]
    mode, component = np.unravel_index(chosen, omega.shape)
    frequency = omega[mode, component]
    phases = frequency * ((queries @ principal)[:, component] - a[component])
    return np.sin(np.pi / 2 + phases), component, mode + 1, frequency


@pytest.mark.parametrize("nbits", [8, 32, 64, 256])
def test_codes_are_those_of_numpy(nbits):
    hash = faiss_ext.kernel_hash_factory(64, f"SH{nbits}")
    hash.train(BASE)
    expected, component, mode, frequency = spectral_hash(BASE, QUERIES, nbits)
    used, rows = np.unique(component, return_inverse=True)
    assert hash.projection.d_out == len(used)
    assert faiss.vector_to_array(hash.component).tolist() == rows.tolist()
    assert faiss.vector_to_array(hash.mode).tolist() == mode.tolist()
    # principal directions and projections are single precision
    error = 1e-5 * frequency
    assert (abs(hash.apply(QUERIES) - expected) < error).all()
    sure = abs(expected) > error
    assert sure.mean() > 0.99
    bits = np.unpackbits(hash.encode(QUERIES), axis=1, bitorder="little")
    assert (bits == (expected >= 0))[sure].all()


def test_nothing_is_estimated():
    hash = faiss_ext.SpectralHash(64, 32, 5)
    assert hash.seed == 5 and hash.description() == "SH32(seed=5)"
    hash.train(BASE)
    for function in (hash.expected_hamming, hash.kernel_estimate, hash.asymmetric_kernel_estimate):
        with pytest.raises(RuntimeError, match="learnt"):
            function(0.5)


@pytest.mark.parametrize("string", ["IVF4,PCA16,SH1.2g", "IVF4,ITQ16,SH8"])
def test_strings_of_faiss_stay_its_own(string):
    index = faiss.index_factory(64, string)
    assert isinstance(index, faiss.IndexIVFSpectralHash)
    assert index.period == pytest.approx(float(string[len("IVF4,PCA16,SH"):].rstrip("g")))
