# SPDX-License-Identifier: MIT
"""All maps and hashes as Python objects: copies and files, lifetimes of parts, and
the arrays that they take and refuse."""

import copy
import gc
import pickle

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import BASE, CONVERSIONS, COUNTS, QUERIES, assert_equal

STRINGS = {
    "HKM4(intersection,window=rectangular,period=7.5)": faiss_ext.HomogeneousKernelMap,
    "HKM1(chi2,degree=1.5,negative=sign,norm=l1)": faiss_ext.HomogeneousKernelMap,
    "KPCA16(chi2,p=80)": faiss_ext.KernelPCA,
    "KPCA16(gaussian,p=80,scale=2,center=0,nystrom=1,seed=3)": faiss_ext.KernelPCA,
    "RFF64(laplacian,seed=3)": faiss_ext.RandomFourierMap,
    "RFF64(matern,nu=0.7,proj=dense)": faiss_ext.RandomFourierMap,
    "SIK64(gaussian)": faiss_ext.ShiftInvariantHash,
    "SIK64(matern,nu=0.7,proj=dense)": faiss_ext.ShiftInvariantHash,
    "BSIK104(8x8,m=2)": faiss_ext.BilinearShiftInvariantHash,
    "BSIK104(4x16,gamma=0.001,w=dense)": faiss_ext.BilinearShiftInvariantHash,
    "AHK64(chi2)": faiss_ext.AdditiveKernelHash,
    "AHK64(js,order=0,center=1,proj=dense)": faiss_ext.AdditiveKernelHash,
    "RHBE64(center=1,seed=3)": faiss_ext.HyperplaneHash,
    "RHBE104(proj=bilinear,center=1)": faiss_ext.HyperplaneHash,
    "SCR64(seed=3)": faiss_ext.SignCauchyHash,
    "CWS64(seed=3)": faiss_ext.ConsistentSamplingHash,
    "SH64": faiss_ext.SpectralHash,
    "KLSH64(chi2,p=50,t=10)": faiss_ext.KernelizedLSH,
}
ALL = pytest.mark.parametrize("string", STRINGS)


def untrained(string):
    if string.startswith(("HKM", "KPCA", "RFF")):
        return faiss_ext.map_factory(64, string)
    return faiss_ext.kernel_hash_factory(64, string)


def trained(string, x=BASE):
    transform = untrained(string)
    transform.train(x)
    return transform


def outputs(transform, x):
    is_hash = hasattr(transform, "encode")
    return [transform.apply(x), transform.encode(x)] if is_hash else [transform.apply(x)]


def copies_of(thing, folder):
    yield from (thing.copy(), copy.copy(thing), copy.deepcopy(thing))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        yield pickle.loads(pickle.dumps(thing, protocol))
    for module in (faiss, faiss_ext):
        for name in (str(folder / "x"), folder / "größe"):
            module.write_VectorTransform(thing, name)
            yield module.read_VectorTransform(name)
        writer, reader = faiss.VectorIOWriter(), faiss.VectorIOReader()
        module.write_VectorTransform(thing, writer)
        reader.data = writer.data
        yield module.read_VectorTransform(reader)


@ALL
@pytest.mark.parametrize("is_trained", [False, True])
def test_copies_are_the_same(string, is_trained, tmp_path):
    thing = trained(string) if is_trained else untrained(string)
    twins = list(copies_of(thing, tmp_path))
    for twin in twins:
        assert type(twin) is type(thing) is STRINGS[string] and twin is not thing
        assert (twin.d_in, twin.d_out) == (64, thing.d_out)
        assert twin.is_trained == thing.is_trained
        assert twin.description() == thing.description()
        thing.check_identical(twin)
    thing.train(BASE)
    expected = outputs(thing, QUERIES)
    del thing
    gc.collect()
    for twin in twins:
        twin.train(BASE)
        assert_equal(outputs(twin, QUERIES), expected)


@ALL
def test_parts_outlive_what_they_are_of(string):
    thing = trained(string)
    kinds = {
        "projection": lambda part: part.matrix(),
        "kernel": lambda part: part.gram(QUERIES[:9]),
        # which works in the hash only if it is trained together with it
        "map": lambda part: part.p if string.startswith("KLSH") else part.apply(QUERIES),
        "map.kernel": lambda part: part.gram(QUERIES[:9]),
    }
    found = []
    for path, result in kinds.items():
        part = thing
        for name in path.split("."):
            part = getattr(part, name, None)
        if part is not None:
            found.append((part, result, result(part)))
    assert found or string.startswith("CWS")  # which has none
    del thing, part
    gc.collect()
    trained(string)  # may take its place
    for part, result, expected in found:
        np.testing.assert_array_equal(result(part), expected)


@ALL
def test_arrays_of_any_type_and_layout_are_taken(string):
    x = COUNTS[:100]
    thing = trained(string, x)
    expected = outputs(thing, x)
    for convert in CONVERSIONS.values():
        twin = trained(string, convert(x))
        thing.check_identical(twin)
        assert_equal(outputs(twin, convert(x)), expected)
    for found in outputs(thing, np.zeros((0, 64))):
        is_codes = found.dtype == np.uint8
        assert found.shape == (0, thing.d_out // 8 if is_codes else thing.d_out)
        assert is_codes or found.dtype == np.float32


@ALL
def test_arrays_of_a_wrong_shape_or_type_are_refused(string):
    thing, other = trained(string), untrained(string)
    methods = [thing.apply, other.train]
    methods += [thing.encode] if hasattr(thing, "encode") else []
    methods += [other.set_landmarks] if hasattr(other, "set_landmarks") else []
    for method in methods:
        for shape in [(64,), (3, 63), (3, 65), (1, 3, 64), ()]:
            with pytest.raises(ValueError, match=r"shape \(n, 64\)"):
                method(np.zeros(shape))
        for x in (np.zeros((2, 64), complex), np.full((2, 64), "a")):
            with pytest.raises(TypeError, match="numbers"):
                method(x)
        for bad in (np.nan, -np.inf, 1e39):
            x = QUERIES.astype(float)
            x[70, 3] = bad
            if method != other.train or not other.is_trained:
                with pytest.raises(RuntimeError, match="component 3 of vector 70"):
                    method(x)


def test_maps_in_front_of_an_index_made_by_hand():
    index = faiss_ext.IndexPreTransformSIMD(faiss.IndexFlatL2(48))
    index.prepend_transform(faiss_ext.map_factory(16, "HKM1(chi2)"))
    x = np.random.default_rng(1).random((20, 16), dtype="float32")
    index.add(x)
    assert index.d == 16 and index.chain.size() == 1
    assert isinstance(index.chain.at(0), faiss_ext.HomogeneousKernelMap)
    index.own_fields = False  # an index has no parameters of its own
    assert (index.search(x, 1)[1][:, 0] == np.arange(20)).all()
