"""Structured projections from Python: the default of SIK, AHK and RHBE."""

import gc
import pickle

import numpy as np
import pytest

import faiss
import faiss_ext

# strings without the number of bits and the closing parenthesis, and the class
SCHEMES = {
    "SIK{}(gaussian,gamma=0.01": faiss_ext.ShiftInvariantHash,
    "AHK{}(js,order=2,center=1": faiss_ext.AdditiveKernelHash,
    "RHBE{}(center=1": faiss_ext.HyperplaneHash,
}
CLASSES = {
    "structured": faiss_ext.StructuredProjection,
    "dense": faiss_ext.DenseProjection,
}
X = np.random.default_rng(1).dirichlet(np.full(12, 0.7), 50).astype("float32")


def hash_of(scheme, nbits=64, d=12, **keys):
    arguments = "".join(f",{k}={v}" for k, v in keys.items())
    return faiss_ext.kernel_hash_factory(
        d, scheme.format(nbits) + arguments + ")")


@pytest.mark.parametrize("proj", CLASSES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_copies_pickles_and_files_keep_the_form(scheme, proj, tmp_path):
    hash = hash_of(scheme, proj=proj)
    if proj == "structured":
        hash.check_identical(hash_of(scheme))
    else:
        with pytest.raises(RuntimeError):
            hash.check_identical(hash_of(scheme))
    name = str(tmp_path / "hash")
    for _ in range(2):
        faiss.write_VectorTransform(hash, name)
        copies = [
            hash.copy(),
            pickle.loads(pickle.dumps(hash)),
            faiss.read_VectorTransform(name),
        ]
        hash.train(X)
        for twin in copies:
            twin.train(X)
            assert type(twin) is type(hash) is SCHEMES[scheme]
            assert type(twin.projection) is CLASSES[proj]
            hash.check_identical(twin)
            np.testing.assert_array_equal(twin.encode(X), hash.encode(X))
    # a copy is on its own, and so is a part of it
    twin, codes, matrix = hash.copy(), hash.encode(X), hash.projection.matrix()
    part = twin.projection
    del hash, copies
    gc.collect()
    np.testing.assert_array_equal(twin.encode(X), codes)
    del twin
    gc.collect()
    np.testing.assert_array_equal(part.matrix(), matrix)


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


@pytest.mark.parametrize("proj", CLASSES)
def test_the_projection_is_there_when_it_is_drawn(proj):
    hash = hash_of("SIK{}(gaussian", proj=proj)
    with pytest.raises(RuntimeError):
        hash.train(X[:1])  # no distances
    assert hash.projection is None
    hash.train(X)
    assert type(hash.projection) is CLASSES[proj]
    with pytest.raises(AttributeError):
        hash.projection = hash.projection
    # others have it from the beginning, for the mean is no part of it
    hash = hash_of("AHK{}(js,center=1", proj=proj)
    assert not hash.is_trained and type(hash.projection) is CLASSES[proj]


def test_vectors_are_checked():
    for proj in CLASSES:
        projection = hash_of("RHBE{}(center=0", proj=proj).projection
        matrix = projection.matrix()
        assert matrix.shape == (64, 12) and matrix.dtype == np.float32
        assert projection.apply(np.zeros((0, 12))).shape == (0, 64)
        np.testing.assert_allclose(projection.apply(X), X @ matrix.T, atol=1e-4)
        for shape in [(3, 11), (12,)]:
            with pytest.raises(ValueError):
                projection.apply(np.zeros(shape))
