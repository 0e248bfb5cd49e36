# SPDX-License-Identifier: MIT
"""kernel_values: what distances say about the kernel."""

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import BASE, EDGES, IP, KERNELS, L2, QUERIES, made

K = 5


def gram(kernel, I):
    values = faiss_ext.kernel_factory(kernel).gram(QUERIES, BASE)
    return np.take_along_axis(values, np.maximum(I, 0), axis=1)


@pytest.mark.parametrize("string, kernel, metric", [
    ("KFlat(gaussian,gamma=20)", "gaussian(gamma=20)", L2),
    ("KFlat(jaccard)", "jaccard", L2),
    ("KFlat(cosine)", "cosine", IP),
    ("KFlat(chi2)", "chi2", IP),
    ("KFlat(poly(degree=2))", "poly(degree=2)", IP),
    ("IDMap,KFlat(jaccard)", "jaccard", L2),
    ("HNSW16,KFlat(laplacian(gamma=3))", "laplacian(gamma=3)", L2),
    ("L2norm,KFlat(cosine)", "cosine", IP),
    ("SIK64(gaussian,gamma=20),BFlat,Refine(KFlat(gaussian,gamma=20))", "gaussian(gamma=20)", L2),
    ("CWS64,BFlat,Refine(KFlat(jaccard))", "jaccard", L2)])
def test_exact_values(string, kernel, metric):
    index = faiss.index_factory(64, string, metric)
    index.train(BASE)
    if "IDMap" in string:
        index.add_with_ids(BASE, np.arange(len(BASE)))
    else:
        index.add(BASE)
    D, I = index.search(QUERIES, K)
    np.testing.assert_allclose(faiss_ext.kernel_values(index, D), gram(kernel, I), rtol=2e-4, atol=2e-5)
    assert faiss_ext.kernel_values(index, D[3, 2]).shape == ()


@pytest.mark.parametrize("storage", ["BFlat", "AFlat"])
@pytest.mark.parametrize("metric", [L2, IP])
def test_estimates_of_codes(storage, metric):
    index = faiss.index_factory(64, f"RHBE512(proj=dense),{storage}", metric)
    index.add(BASE)
    D, I = index.search(QUERIES, K)
    values = faiss_ext.kernel_values(index, D)
    hamming = (512 - D) / 2 if metric == IP else D
    estimate = index.hash.asymmetric_kernel_estimate if storage == "AFlat" else index.hash.kernel_estimate
    np.testing.assert_allclose(values, estimate(hamming))
    # near the cosine: five standard deviations of an angle of 512 bits
    assert np.abs(np.arccos(values) - np.arccos(np.clip(gram("cosine", I), -1, 1))).max() < 5 * np.pi * 0.5 / np.sqrt(512)


def test_binary_indexes():
    index = faiss_ext.index_binary_factory(64, "SIK256(gaussian,gamma=20),BFlat")
    index.add(BASE)
    D, I = index.search(QUERIES, K)
    np.testing.assert_allclose(faiss_ext.kernel_values(index, D), index.hash.kernel_estimate(D))
    codes = faiss_ext.index_binary_factory(64, "BKFlat(jaccard)")
    sets = (BASE > 0.02).astype("uint8")
    codes.add(np.packbits(sets, axis=1))
    D, I = codes.search(np.packbits(sets[:50], axis=1), K)
    expected = faiss_ext.kernel_factory("jaccard").gram(sets[:50].astype("float32"), sets.astype("float32"))
    np.testing.assert_allclose(
        faiss_ext.kernel_values(codes, D), np.take_along_axis(expected, I, axis=1), atol=1e-6)


@pytest.mark.parametrize("group", [faiss.IndexShards, faiss.IndexReplicas])
@pytest.mark.parametrize("string", ["KFlat(jaccard)", "CWS64,BFlat", "CWS64,BFlat,Refine(KFlat(jaccard))"])
def test_groups_of_indexes_that_are_alike(group, string):
    whole = group(64)
    parts = [made(string, BASE) for _ in range(2)]
    for part in parts:
        (whole.add_shard if group is faiss.IndexShards else whole.add_replica)(part)
    D, _ = whole.search(QUERIES, K)
    np.testing.assert_array_equal(faiss_ext.kernel_values(whole, D), faiss_ext.kernel_values(parts[0], D))
    other = group(64)
    unlike = [made("KFlat(jaccard)", BASE), made("KFlat(expchi2)", BASE)]
    for part in unlike:
        (other.add_shard if group is faiss.IndexShards else other.add_replica)(part)
    with pytest.raises(ValueError, match="the parts of .* differ"):
        faiss_ext.kernel_values(other, D)
    with pytest.raises(ValueError, match="cannot be computed"):
        faiss_ext.kernel_values(group(64), D)


def test_groups_of_binary_indexes():
    parts = [faiss_ext.index_binary_factory(64, "BKFlat(jaccard)") for _ in range(2)]
    whole = faiss.IndexBinaryShards(64)
    for part in parts:
        part.add(np.packbits(BASE[:50] > 0.02, axis=1))
        whole.add_shard(part)
    D, _ = whole.search(np.packbits(QUERIES > 0.02, axis=1), K)
    np.testing.assert_array_equal(faiss_ext.kernel_values(whole, D), faiss_ext.kernel_values(parts[0], D))


def test_no_neighbour_has_no_value():
    for index in (made("KFlat(jaccard)", BASE[:2]), made("CWS64,BFlat", BASE[:2])):
        D, I = index.search(QUERIES[:3], 4)
        values = faiss_ext.kernel_values(index, D)
        np.testing.assert_array_equal(np.isnan(values), I < 0)
    codes = faiss_ext.index_binary_factory(64, "BKFlat(jaccard)")
    codes.add(np.zeros((1, 8), dtype="uint8"))
    D, _ = codes.search(np.zeros((1, 8), dtype="uint8"), 2)
    np.testing.assert_array_equal(faiss_ext.kernel_values(codes, D), [[1, np.nan]])


@pytest.mark.parametrize("string", ["KFlat(chi2)", "KFlat(poly)", "KFlat(cosine)", "KFlat(normalized(chi2))", "Flat", "HKM1(chi2),Flat", "KIVF4"])
def test_distances_that_do_not_tell(string):
    with pytest.raises(ValueError, match="cannot be computed"):
        faiss_ext.kernel_values(faiss.index_factory(64, string), np.ones(3))


def test_a_query_that_is_refused_has_a_number():
    index = faiss.index_factory(64, "KFlat(chi2)")
    index.add(BASE[:100])
    D, I = index.search(QUERIES[:5], 3)
    lims, d, i = index.range_search(QUERIES[:5], 1e9)
    bad = QUERIES[:5].copy()
    bad[4, 0] = -1
    for results in ((D, I, bad), (d, i, bad, lims)):
        with pytest.raises(RuntimeError, match="component 0 of vector 4 is -1") as caught:
            faiss_ext.kernel_values(index, *results)
        assert caught.value.vector == 4


@pytest.mark.parametrize("string", ["SIK64(gaussian(gamma=0.1)),BFlat", "RHBE64,AFlat"])
def test_ids_and_queries_of_codes_are_checked(string):
    index = faiss.index_factory(64, string)
    index.train(BASE)
    index.add(BASE)
    D, I = index.search(QUERIES[:5], 3)
    np.testing.assert_array_equal(faiss_ext.kernel_values(index, D, I, QUERIES[:5]), faiss_ext.kernel_values(index, D))
    np.testing.assert_array_equal(
        faiss_ext.kernel_values(index, D[1], I[1], QUERIES[1]), faiss_ext.kernel_values(index, D)[1])
    for wrong in ((I, QUERIES[:4]), (I, QUERIES[:5, :9]), (I, "a"), (I[:4], QUERIES[:5]), (QUERIES[:5], I),
                  (I, QUERIES[:5], [0, 1])):
        with pytest.raises((TypeError, ValueError), match="^kernel_values: "):
            faiss_ext.kernel_values(index, D, *wrong)


def test_the_kernels_are_all():
    classes = {c for c in vars(faiss_ext).values() if isinstance(c, type) and issubclass(c, faiss_ext.Kernel)}
    leaves = {c for c in classes if not any(other is not c and issubclass(other, c) for other in classes)}
    assert {type(faiss_ext.kernel_factory(name)) for name in KERNELS} == leaves - {faiss_ext.CallbackKernel}


def check_values(index, x, xq, kernel, exact):
    """Against the kernel matrix, of results of every rank."""
    D, I = index.search(xq, index.ntotal + 2)
    assert (I < 0).any() and (I >= 0).sum() > 3 * len(xq)
    expected = np.where(I < 0, np.nan, np.take_along_axis(kernel.gram(xq, x), np.maximum(I, 0), axis=1))
    np.testing.assert_allclose(
        faiss_ext.kernel_values(index, D, I, xq), expected, rtol=1e-5, atol=1e-6 * np.nanmax(np.abs(expected)) * 1e-3)
    if exact:
        np.testing.assert_allclose(faiss_ext.kernel_values(index, D), expected, atol=1e-6 * max(1, np.nanmax(expected)))
    else:
        with pytest.raises(ValueError, match=r"from distances alone.*kernel_values\(index, D, I, xq\)"):
            faiss_ext.kernel_values(index, D)
    np.testing.assert_array_equal(
        faiss_ext.kernel_values(index, D[1], I[1], xq[1]), faiss_ext.kernel_values(index, D, I, xq)[1])


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("store", ["f32", "f16", "u8"])
@pytest.mark.parametrize("metric", [L2, IP])
def test_values_of_every_kernel_on_the_edges(name, store, metric):
    kernel, x = faiss_ext.kernel_factory(name), EDGES
    index = faiss.index_factory(64, f"KFlat({name},store={store})", metric)
    index.add(x)
    check_values(index, index.reconstruct_n(0, len(x)), x, kernel, KERNELS[name] or metric == IP)


@pytest.mark.parametrize("name", KERNELS)
def test_values_of_ranges(name):
    kernel, x = faiss_ext.kernel_factory(name), EDGES
    index = faiss.index_factory(64, f"IDMap2,KFlat({name})")
    index.add_with_ids(x, np.arange(len(x))[::-1] * 7)
    farthest = index.search(x, len(x))[0]
    for radius in (np.median(farthest), np.inf):  # some have none but themselves, some all
        lims, D, I = index.range_search(x, float(radius))
        expected = kernel.gram(x)[np.repeat(np.arange(len(x)), np.diff(lims.astype(int))), len(x) - 1 - I // 7]
        np.testing.assert_allclose(faiss_ext.kernel_values(index, D, I, x, lims), expected, rtol=1e-5)
    none = index.range_search(x[:2], -1.0)
    assert faiss_ext.kernel_values(index, none[1], none[2], x[:2], none[0]).shape == (0,)


GAMMA_OF = "gaussian(gamma=20)"


@pytest.mark.parametrize("string, kernel", [
    ("IDMap2,KFlat(chi2)", "chi2"), ("IDMap,HNSW16,KFlat(js)", "js"), ("HNSW16,KFlat(intersection)", "intersection"),
    ("HKM1(chi2),PCAR16,KIVF4,Refine(KFlat(chi2,store=f16))", "chi2"), ("AHK64(chi2,center=1),BFlat,Refine(KFlat(chi2))", "chi2"),
    ("KLSH64(chi2,p=50,rank=16),BFlat,Refine(KFlat(chi2))", "chi2"), ("RHBE64,BIVF4,Refine(KFlat(cosine))", "cosine"),
    ("SIK64(gaussian,gamma=20),BFlat,Refine(KFlat(gaussian,gamma=20))", GAMMA_OF),
    ("AHK64(js),AFlat,Refine(HNSW8,KFlat(js))", "js"), ("RHBE64,BFlat,Refine(KFlat(linear))", "linear")])
def test_values_of_recommended_strings(string, kernel):
    index = made(string, BASE)
    D, I = index.search(QUERIES, K)
    ids = (I - 3) // 10 if "IDMap" in string else I
    np.testing.assert_allclose(faiss_ext.kernel_values(index, D, I, QUERIES), gram(kernel, ids), rtol=1e-3 if "f16" in string else 2e-5)


def test_values_behind_transforms():
    index = faiss.index_factory(64, "PCA8,KFlat(poly(degree=2))")
    index.train(BASE)
    index.add(BASE)
    D, I = index.search(QUERIES, K)
    transform = faiss.downcast_VectorTransform(index.chain.at(0))
    expected = faiss_ext.kernel_factory("poly(degree=2)").gram(transform.apply(QUERIES), transform.apply(BASE))
    np.testing.assert_allclose(
        faiss_ext.kernel_values(index, D, I, QUERIES), np.take_along_axis(expected, I, axis=1), rtol=1e-5)


def test_values_of_a_function():
    kernel = faiss_ext.CallbackKernel(lambda x, y: np.minimum(x[:, None], y[None]).sum(axis=2))
    index = faiss_ext.IndexFlatKernel(64, kernel)
    index.add(BASE)
    D, I = index.search(QUERIES, K)
    np.testing.assert_allclose(faiss_ext.kernel_values(index, D, I, QUERIES), gram("intersection", I), rtol=1e-5)


@pytest.mark.parametrize("successive", [True, False])
def test_values_of_shards_and_replicas(successive):
    shards, replicas, parts = faiss.IndexShards(64, False, successive), faiss.IndexReplicas(64), []
    for i in range(3):
        part = faiss.index_factory(64, "KFlat(chi2)" if successive else "IDMap,KFlat(chi2)")
        own = np.arange(200 * i, 200 * i + 200)
        part.add(BASE[own]) if successive else part.add_with_ids(BASE[own], own)
        parts.append(part)
        shards.add_shard(part)
    D, I = shards.search(QUERIES, K)
    assert len(set(I.ravel() // 200)) == 3
    np.testing.assert_allclose(faiss_ext.kernel_values(shards, D, I, QUERIES), gram("chi2", I), rtol=1e-5)
    replicas.add_replica(parts[0])
    D, I = replicas.search(QUERIES, K)
    np.testing.assert_allclose(faiss_ext.kernel_values(replicas, D, I, QUERIES), gram("chi2", I), rtol=1e-5)
    I[0, 0] = 600
    with pytest.raises(RuntimeError, match="IndexShards has 0 vectors with id 600"):
        faiss_ext.kernel_values(shards, D, I, QUERIES)


def test_a_search_from_the_index_has_its_own_ids():
    """Ids that are not there, or stand for several vectors, are refused."""
    index = faiss.IndexIDMap(faiss.index_factory(64, "KFlat(chi2)"))  # which takes an id twice
    index.add_with_ids(BASE[:3], np.array([5, 7, 5]))
    D, I = index.search(QUERIES[:1], 1)
    for id, count in ((5, 2), (6, 0)):
        with pytest.raises(RuntimeError, match=f"has {count} vectors with id {id}, expected one"):
            faiss_ext.kernel_values(index, D, np.full_like(I, id), QUERIES[:1])
    flat = made("KFlat(chi2)", BASE[:3])
    with pytest.raises(RuntimeError, match="id 3 of query 0 is out of range: the index has 3 vectors"):
        faiss_ext.kernel_values(flat, D, np.full_like(I, 3), QUERIES[:1])


def test_ids_and_queries_must_fit():
    index = made("KFlat(chi2)", BASE)
    D, I = index.search(QUERIES, K)
    lims, E, J = index.range_search(QUERIES, 0.2)
    for arguments in ((D, I), (D, None, QUERIES), (E, None, None, lims)):
        with pytest.raises(TypeError, match="pass I and xq together"):
            faiss_ext.kernel_values(index, *arguments)
    for arguments, text in (
            ((D, I[:, 1:], QUERIES), r"I: expected ids of shape \(200, 5\), got an array of shape \(200, 4\)"),
            ((D, I.astype("f4"), QUERIES), "I: ids must be integers"),
            ((D, I, QUERIES[1:]), r"xq \(199, 64\)"), ((D, I, QUERIES[:, 1:]), r"xq: expected an array of shape \(n, 64\)"),
            ((E, J, QUERIES), "or lims of range_search"), ((E, J, QUERIES, lims[1:]), "lims: expected 201 numbers"),
            ((E, J, QUERIES, lims[::-1]), "expected lims to ascend"), ((D, I, QUERIES, lims), "expected lims to ascend")):
        with pytest.raises((TypeError, ValueError), match=text):
            faiss_ext.kernel_values(index, *arguments)


@pytest.mark.parametrize("string, metric", [
    ("KFlat(chi2)", 1), ("KFlat(chi2)", 0), ("HNSW16,KFlat(chi2)", 1), ("IDMap2,KFlat(gaussian)", 1),
    ("AHK64(chi2),BFlat,Refine(KFlat(chi2))", 1), ("AHK64(chi2),BFlat", 1)])
def test_results_that_were_masked_have_no_value(string, metric):
    index = faiss.index_factory(64, string, metric)
    index.train(BASE)
    if string.startswith("IDMap"):
        index.add_with_ids(BASE, np.arange(len(BASE)))
    else:
        index.add(BASE)
    D, I = index.search(QUERIES, K)
    expected = faiss_ext.kernel_values(index, D, I, QUERIES)
    expected[:, 1] = np.nan
    I[:, 1] = -1
    np.testing.assert_array_equal(faiss_ext.kernel_values(index, D, I, QUERIES), expected)


def test_empty_sets_of_packed_bits():
    sets = np.packbits(np.concatenate([EDGES > 8, np.zeros((1, 64))]).astype(bool), axis=1)
    bits = np.unpackbits(sets, axis=1).astype("float32")
    expected = faiss_ext.kernel_factory("jaccard").gram(bits)
    index = faiss_ext.index_binary_factory(64, "BKFlat(jaccard)")
    index.add(sets)
    D, I = index.search(sets, len(sets) + 1)
    np.testing.assert_allclose(
        faiss_ext.kernel_values(index, D), np.where(I < 0, np.nan, np.take_along_axis(expected, I, axis=1)), atol=1e-7)
    lims, D, I = index.range_search(sets, 2**30 + 1)
    rows = np.repeat(np.arange(len(sets)), np.diff(lims.astype(int)))
    np.testing.assert_allclose(faiss_ext.kernel_values(index, D), expected[rows, I], atol=1e-7)


def test_bad_arguments():
    index = faiss.index_factory(64, "KFlat(jaccard)")
    with pytest.raises(TypeError, match="expected an index"):
        faiss_ext.kernel_values(3, [1.0])
    with pytest.raises(TypeError, match="D must be an array of distances"):
        faiss_ext.kernel_values(index, ["far"])


def test_the_part_of_a_faiss_wrapper_tells_its_values():
    """FAISS returns parts of its own wrappers as faiss.Index."""
    hashed = made("SIK64(gaussian,gamma=0.5),BFlat", BASE)
    wrapper = faiss.IndexPreTransform(hashed)
    part = wrapper.index
    D, I = hashed.search(QUERIES[:3], 2)
    np.testing.assert_array_equal(
        faiss_ext.kernel_values(part, D), faiss_ext.kernel_values(hashed, D))


def test_errors_of_callbacks_stay_what_they_are():
    class Mine(RuntimeError):
        pass

    fails = False

    def kernel(x, y):
        if fails:
            raise Mine("own")
        return x @ y.T

    index = faiss_ext.IndexFlatKernel(4, faiss_ext.CallbackKernel(kernel))
    index.add(np.eye(4, dtype="f4"))
    D, I = index.search(np.eye(4, dtype="f4"), 2)
    fails = True
    with pytest.raises(Mine, match="own"):
        faiss_ext.kernel_values(index, D, I, np.eye(4, dtype="f4"))
