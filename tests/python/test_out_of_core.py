# SPDX-License-Identifier: MIT
"""Indexes of files that may be larger than memory: the same as of arrays, in bounded memory, and however often killed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import faiss
import faiss_ext
import numpy as np
import pytest
from faiss_ext import index_tree, name_files, out_of_core
from faiss_ext.command_line import main
from faiss_ext.files import size_of
from faiss_ext.index_tree import part_that_stores
from faiss_ext.parameters import set_index_parameter
from faiss_ext.vector_files import VectorFileError, place_of, read_vectors
from helpers import COUNTS

N = 1500
X, Q = COUNTS[:N].astype("float32"), COUNTS[N:]


def write_vecs(path, x):
    with open(path, "wb") as file:
        for row in x:
            file.write(np.int32(len(row)).tobytes() + row.tobytes())


@pytest.fixture
def files(tmp_path):
    """The same vectors in all kinds of files that are mapped."""
    np.save(tmp_path / "f32.npy", X)
    np.save(tmp_path / "f16.npy", X.astype("float16"))
    np.save(tmp_path / "u8.npy", X.astype("uint8"))
    write_vecs(tmp_path / "x.fvecs", X)
    write_vecs(tmp_path / "x.bvecs", X.astype("uint8"))
    return tmp_path


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(out_of_core, "LEAST_BLOCK", 400)
    monkeypatch.setattr(out_of_core, "MOST_BLOCK", 400)


MAPPED = ("f32.npy", "f16.npy", "u8.npy", "x.fvecs", "x.bvecs")


def same_results(a, b, k=10):
    for found, expected in zip(a.search(Q, k), b.search(Q, k)):
        np.testing.assert_array_equal(found, expected)


def built(string, block=N):
    index = faiss.index_factory(64, string)
    index.train(X)
    for begin in range(0, N, block):
        out_of_core.add(index, X[begin : begin + block], begin)
    return index


# ------------------------------------------------------- vectors in a file

@pytest.mark.parametrize("name", MAPPED)
def test_exact_search_in_a_file(files, name):
    index = faiss_ext.file_index(files / name, "chi2")
    assert (index.d, index.ntotal, index.capacity) == (64, N, N)
    same_results(index, built("KFlat(chi2)"))
    np.testing.assert_array_equal(index.reconstruct_n(7, 3), X[7:10])
    assert os.path.samefile(index.path, files / name)
    with pytest.raises(AttributeError, match="read-only"):
        index.capacity = 3


def test_some_vectors_of_a_file(files):
    index = faiss_ext.file_index(files / "f32.npy", "chi2", n=np.int64(7))
    assert (index.ntotal, index.capacity) == (7, N)
    index.add(X[7:100])
    index.add_next(N - 100)
    same_results(index, built("KFlat(chi2)"))
    for n in (-1, N + 1):
        with pytest.raises(ValueError, match=f"f32.npy: n is {n}, expected 0 to {N}"):
            faiss_ext.file_index(files / "f32.npy", "chi2", n=n)
    with pytest.raises(TypeError, match="integer"):
        faiss_ext.file_index(files / "f32.npy", "chi2", n=1.5)
    with pytest.raises(ValueError, match="f32.npy: the kernel is not trained.*n=0"):
        faiss_ext.file_index(files / "f32.npy", "gaussian")
    index = faiss_ext.file_index(files / "f32.npy", "gaussian", n=0)
    index.train(X)
    index.add_next(N)
    same_results(index, built("KFlat(gaussian)"))


def test_hdf5_in_one_piece_is_mapped(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = X
        file.create_dataset("chunked", data=X, chunks=(100, 64))
    index = faiss_ext.file_index(tmp_path / "x.h5", "chi2", part="x")
    same_results(index, built("KFlat(chi2)"))
    with pytest.raises(VectorFileError, match='cannot be mapped.*exact="memory"'):
        faiss_ext.file_index(tmp_path / "x.h5", "chi2", part="chunked")
    same_results(faiss_ext.build_from(tmp_path / "x.h5", "KFlat(chi2)", part="chunked", exact="memory", progress=False),
                 built("KFlat(chi2)"))


def test_hdf5_in_pieces_is_read_by_blocks(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    from faiss_ext import vector_files
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=X, chunks=(128, 64), compression="gzip")
        file.create_dataset("cube", data=np.zeros((3, 3, 3)), chunks=(1, 3, 3))
        file.create_dataset("words", data=[[b"a", b"b"]], chunks=(1, 1))
    monkeypatch.setattr(out_of_core, "LEAST_BLOCK", 400)
    monkeypatch.setattr(out_of_core, "MOST_BLOCK", 400)
    read = []
    get = h5py.Dataset.__getitem__
    monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda *args: read.append(get(*args)) or read[-1])
    string = "HKM1(chi2),PCAR16,KIVF8(M=4)"
    index = faiss_ext.build_from(tmp_path / "x.h5", string, part="x", train=300, progress=False)
    assert max(map(len, read)) == 400
    np.save(tmp_path / "x.npy", X)
    same_results(index, faiss_ext.build_from(tmp_path / "x.npy", string, train=300, progress=False))
    rows = vector_files.lazy_vectors(tmp_path / "x.h5", "x")
    assert (rows.shape, rows.dtype) == (X.shape, X.dtype)
    numbers = np.array([0, 1, 127, 128, 700, 1499])
    np.testing.assert_array_equal(rows[numbers], X[numbers])
    for part, message in (("cube", "3-dimensional"), ("words", "two-dimensional array of real numbers")):
        with pytest.raises(VectorFileError, match=message):
            vector_files.lazy_vectors(tmp_path / "x.h5", part)


@pytest.mark.parametrize("again", ["", ",Refine(KFlat(chi2))"])
def test_lists_that_faiss_can_fill_only_once(files, small_blocks, again):
    string = "HKM1(chi2),PCAR16,IVF4,PQ8x4fs" + again
    if tuple(map(int, faiss.__version__.split(".")[:3])) < (1, 7, 4):
        with pytest.raises(ValueError, match="IndexIVFPQFastScan.*second call of add"):
            faiss_ext.build_from(files / "f32.npy", string, exact="memory", progress=False)
    else:
        assert faiss_ext.build_from(files / "f32.npy", string, progress=False).ntotal == N


@pytest.mark.parametrize("string, merges", [
    ("KFlat(chi2)", True), ("HNSW8,KFlat(chi2)", False), ("PCA4,HNSW8,KFlat(linear)", False), ("HNSW8,KFlat(chi2),Refine(KFlat(chi2))", False),
    ("Concurrent,KFlat(chi2)", True), ("Concurrent,HNSW8,KFlat(chi2)", False)])
def test_graphs_are_not_merged_from_blocks(string, merges):
    index = faiss.index_factory(X.shape[1], string)
    index.train(X)
    assert out_of_core.can_merge(index, X[:1]) == merges


@pytest.mark.parametrize("array, message", [
    (X.astype("float64"), "float64 files are read in blocks"),
    (X.astype(">f4"), "are read in blocks"),
    (np.asfortranarray(X), "Fortran's order")])
def test_what_cannot_be_compared_in_place(tmp_path, array, message):
    np.save(tmp_path / "x.npy", array)
    for use in (faiss_ext.file_index, faiss_ext.build_from):
        with pytest.raises(VectorFileError, match=message + '.*exact="memory"'):
            use(tmp_path / "x.npy", "chi2" if use is faiss_ext.file_index else "KFlat(chi2)")
    index = faiss_ext.build_from(tmp_path / "x.npy", "KFlat(chi2)", exact="memory", progress=False)
    same_results(index, built("KFlat(chi2)"))


def test_places(files):
    assert place_of(read_vectors(files / "x.fvecs"), "x")[1:] == (N, 64, "f32", 4, 4 + 4 * 64)
    assert place_of(read_vectors(files / "x.bvecs"), "x")[1:] == (N, 64, "u8", 4, 4 + 64)
    assert place_of(read_vectors(files / "f16.npy"), "x")[2:] == (64, "f16", 128, 128)
    mapped = read_vectors(files / "f32.npy")
    assert place_of(mapped[10:20], "x")[1:] == (10, 64, "f32", 128 + 10 * 256, 256)
    assert place_of(mapped[::2], "x")[1:] == (N // 2, 64, "f32", 128, 512)
    with pytest.raises(VectorFileError, match="cannot be mapped"):
        place_of(X, "x")


# ---------------------------------------------------------------- building

STRINGS = [
    "KFlat(chi2)", "AHK128(chi2),BFlat,Refine(KFlat(chi2))", "AHK128(chi2,center=1),BFlat,Refine(KFlat(chi2))",
    "HKM1(chi2),PCAR16,KIVF8(M=4),Refine(KFlat(chi2))", "HKM1(chi2),PCAR16,KIVF8(M=4)", "AHK128(chi2),AFlat",
    "SIK128(gaussian),BFlat,Refine(KFlat(gaussian))", "SIK64(gaussian),BIVF8", "IDMap2,SIK64(gaussian),BFlat",
    "KFlat(chi2,store=u8)", "HNSW8,KFlat(chi2)", "SIK64(gaussian),BHash4x8", "Flat", "IVF8,Flat", "PCA8,KFlat(linear)",
    *(wrapper + string for wrapper in ("Concurrent,", "IDMap,", "Concurrent,IDMap,")
      for string in ("KFlat(chi2)", "AHK128(chi2),BFlat,Refine(KFlat(chi2))"))]


@pytest.mark.parametrize("string", STRINGS)
def test_the_index_is_that_of_the_array(files, small_blocks, string):
    expected = built(string, 400)
    for name in ("x.fvecs", "u8.npy"):
        index = faiss_ext.build_from(files / name, string, "100MB", progress=False)
        assert index.ntotal == N
        same_results(index, expected)
        output = files / "out"
        same_results(faiss_ext.build_from(files / name, string, "100MB", output, progress=False), expected)
        same_results(faiss.read_index(str(output)), expected)
        assert not os.path.exists(f"{output}.build")


def exact_part(index):
    """The part that compares vectors, of the class that it has."""
    while parts := [part.index for part in index_tree.parts_of(index) if part.compares]:
        index, = parts
    return index


@pytest.mark.parametrize("string", ["KFlat(chi2)", "KFlat(gaussian)", "AHK64(chi2),BFlat,Refine(KFlat(chi2))"])
@pytest.mark.parametrize("wrapper", ["", "Concurrent,", "IDMap,", "IDMap2,", "Concurrent,IDMap,"])
def test_wrapped_indexes_read_the_file(files, small_blocks, wrapper, string):
    expected = built(wrapper + string)
    if "Refine" in string:
        set_index_parameter(expected, "k_factor", 2)
    for exact in ({}, {"exact": "file"}):
        index = faiss_ext.build_from(files / "x.fvecs", wrapper + string, output=files / "out", progress=False, **exact,
                                     parameters={"k_factor": 2} if "Refine" in string else {})
        for each in (index, faiss.read_index(str(files / "out"))):
            assert type(exact_part(each)) is faiss_ext.IndexFileKernel
            assert type(each) is type(expected) or type(expected) is faiss_ext.IndexFlatKernel
            assert faiss_ext.index_string(each) == faiss_ext.index_string(expected)
            same_results(each, expected)
    if "IDMap" in wrapper:
        ids = np.random.default_rng(0).permutation(10**6)[:N]
        index = faiss_ext.build_from(files / "x.fvecs", wrapper + string, exact="file", output=files / "out", progress=False, ids=ids)
        expected = faiss.index_factory(64, wrapper + string)
        expected.train(X)
        expected.add_with_ids(X, ids)
        for each in (index, faiss.read_index(str(files / "out"))):
            assert type(exact_part(each)) is faiss_ext.IndexFileKernel
            same_results(each, expected)


@pytest.mark.parametrize("string, why", [
    ("PCA8,KFlat(linear)", "transformed vectors"), ("IDMap,PCA8,KFlat(linear)", "transformed vectors"),
    ("Concurrent,HKM1(chi2),KFlat(linear)", "transformed vectors"), ("KFlat(chi2,store=f16)", "store=f16 makes copies"),
    ("HNSW8,KFlat(chi2)", "no KFlat, alone or in Refine"), ("Flat", "no KFlat"), ("AHK64(chi2),BFlat", "no KFlat"), ("IVF4,Flat,RFlat", "no KFlat")])
def test_a_file_that_cannot_be_read_in_place_is_refused(files, string, why):
    with pytest.raises(ValueError, match=f'exact="file".*is not possible for {re.escape(string)}: .*{why}.*exact="memory"'):
        faiss_ext.build_from(files / "f32.npy", string, exact="file", output=files / "out", progress=False)
    with pytest.raises(ValueError, match=f"is not possible for .*{why}" if "IDMap" not in string else "without IDMap"):
        faiss_ext.build_shards([files / "f32.npy"], string, exact="file", progress=False)
    assert not (files / "out").exists()


def test_partitions_that_are_no_files_have_none_to_read(files):
    with pytest.raises(ValueError, match="is not possible for KFlat.*array 1 is not in a file"):
        faiss_ext.build_shards([files / "f32.npy", X], "KFlat(chi2)", exact="file", progress=False)


@pytest.mark.parametrize("string", [
    "KFlat(chi2)", "AHK128(chi2,center=1),BFlat,Refine(KFlat(chi2))", "HKM1(chi2),PCAR16,KIVF8(M=4)", "HNSW8,KFlat(chi2)", "IDMap2,Flat", "IVF8,Flat"])
def test_ids_of_ones_own(files, small_blocks, string):
    ids = np.random.default_rng(0).permutation(10**6)[:N]
    expected = faiss.index_factory(64, string)
    expected.train(X)
    for begin in range(0, N, 400):
        expected.add_with_ids(X[begin : begin + 400], ids[begin : begin + 400])
    for output in (None, files / "out"):
        index = faiss_ext.build_from(files / "f32.npy", string, output=output, exact="memory", progress=False, ids=ids.tolist())
        same_results(index, expected)
    same_results(faiss.read_index(str(output)), expected)
    assert not os.path.exists(f"{output}.build")


def test_wrong_ids(files):
    ids = np.arange(N)
    twice = np.r_[ids[:-1], 3]
    for string, exact, given, error, message in (
            ("KFlat(chi2)", "memory", ids[1:], ValueError, f"expected {N} ids"), ("KFlat(chi2)", "memory", ids - 1, ValueError, "an id is -1"),
            ("KFlat(chi2)", "memory", ids + 0.5, TypeError, "ids must be integers"),
            ("IVF4,Flat", "memory", twice, ValueError, f"vector {N - 1} has the id 3 of an earlier"),
            ("KFlat(chi2)", "file", ids, ValueError, 'use exact="memory".*or IDMap,KFlat'), ("Flat", None, ids, ValueError, "Flat takes no ids; use IDMap,Flat")):
        with pytest.raises(error, match=message):
            faiss_ext.build_from(files / "f32.npy", string, output=files / "out", exact=exact, progress=False, ids=given)
        assert not (files / "out").exists()


def test_names_are_in_the_file_of_the_index(files, small_blocks, monkeypatch):
    """Also of an interrupted build: the file is never there without names."""
    names = faiss_ext.Names()
    names.add([f"vector {i}" for i in range(N)])
    path, output = files / "f32.npy", files / "named.index"

    def build():
        return faiss_ext.build_from(path, "KFlat(chi2)", "8MB", output, exact="memory", progress=False, names=names)

    def fail(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(name_files, "section", fail)
        with pytest.raises(KeyboardInterrupt):
            build()
    assert not output.exists()
    same_results(build(), faiss.read_index(str(output)))
    assert faiss_ext.read_names(output) == names
    before = output.read_bytes()
    for wrong, error, message in ((["a"], TypeError, "names: expected a faiss_ext.Names, got"), (3, TypeError, "got 3")):
        with pytest.raises(error, match=message):
            faiss_ext.build_from(path, "KFlat(chi2)", output=output, names=wrong)
    with pytest.raises(ValueError, match="names: the file of the index keeps them; give output="):
        faiss_ext.build_from(path, "KFlat(chi2)", names=names)
    assert output.read_bytes() == before and not (files / "named.index.build").exists()


def test_packed_bits(tmp_path, small_blocks):
    bits = np.packbits(X > 8, axis=1)
    np.save(tmp_path / "x.npy", bits)
    for string in ("BKFlat(jaccard)", "BFlat", "IDMap2,BFlat"):
        index = faiss_ext.build_from(tmp_path / "x.npy", string, output=tmp_path / "out", progress=False)
        expected = faiss_ext.index_binary_factory(64, "BKFlat(jaccard)" if "BK" in string else "BFlat")
        expected.add(bits)
        for found, wanted in zip(index.search(bits[:50], 5), expected.search(bits[:50], 5)):
            np.testing.assert_array_equal(found, wanted)
    fewer = np.packbits(X[:, :61] > 8, axis=1)
    np.save(tmp_path / "fewer.npy", fewer)
    index = faiss_ext.build_from(tmp_path / "fewer.npy", "BKFlat(hamming)", output=tmp_path / "out", progress=False, packed=61)
    assert index.d == 61
    with pytest.raises(VectorFileError, match="BFlat takes packed bits, uint8, got packed=False"):
        faiss_ext.build_from(tmp_path / "x.npy", "BFlat", packed=False)
    with pytest.raises(ValueError, match="fewer.npy: packed is 50, a number of bits, but rows of 8 bytes have 57 to 64"):
        faiss_ext.build_from(tmp_path / "fewer.npy", "BKFlat(hamming)", packed=50)
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(VectorFileError, match="takes packed bits, uint8, got float32"):
        faiss_ext.build_from(tmp_path / "x.npy", "BFlat")


@pytest.mark.parametrize("string", ["KFlat(jaccard)", "CWS64,BFlat", "CWS64,BFlat,Refine(KFlat(dice))"])
def test_bytes_in_sets_must_be_explained(tmp_path, capsys, string):
    path, counts = tmp_path / "x.npy", X.clip(0, 255).astype("uint8")
    np.save(path, counts)
    calls = [lambda **how: faiss_ext.build_from(path, string, progress=False, **how), lambda **how: faiss_ext.build_shards([path], string, progress=False, **how)]
    if string == "KFlat(jaccard)":
        calls.append(lambda **how: faiss_ext.file_index(path, "jaccard", **how))
    for call in calls:
        with pytest.raises(VectorFileError, match="x.npy: has bytes .uint8., which may be packed bits or counts; (give|pass) packed="):
            call()
        if call in calls[:2]:
            assert call(packed=True).d == 8 * counts.shape[1]
        else:
            with pytest.raises(VectorFileError, match="takes vectors, got packed=True; use a string such as BKFlat"):
                call(packed=True)
        expected = faiss.index_factory(counts.shape[1], string)
        expected.train(counts)
        expected.add(counts)
        np.testing.assert_array_equal(call(packed=False).search(counts[:20], 3)[0], expected.search(counts[:20], 3)[0])
    words = ["build", str(path), string, "-o", str(tmp_path / "x.index"), "--quiet"]
    assert main(words) == 1 and "give packed=True or packed=False (--packed or --counts)" in capsys.readouterr().err
    assert main([*words, "--counts"]) == 0
    faiss_ext.build_from(path, string.replace("jaccard", "chi2").replace("dice", "chi2").replace("CWS64", "AHK64(chi2)"), progress=False)


@pytest.mark.parametrize("string", ["KFlat(jaccard)", "CWS64,BFlat", "CWS64,BIVF4", "PCA8,Flat", "HNSW8,KFlat(jaccard)"])
def test_packed_bits_are_vectors_of_zeros_and_ones(tmp_path, small_blocks, monkeypatch, string):
    bits = X[:, :61] > 8
    path, output = tmp_path / "x.npy", tmp_path / "out"
    np.save(path, np.packbits(bits, axis=1))
    np.save(tmp_path / "dense.npy", bits.astype("float32"))

    def build(file=path, **others):
        return faiss_ext.build_from(file, string, output=output, progress=False, **others)

    expected = build(tmp_path / "dense.npy", exact="memory").search(bits[:50].astype("float32"), 5)
    with monkeypatch.context() as patched:
        patched.setattr(name_files, "write_index_alone", interrupt)
        with pytest.raises(KeyboardInterrupt):
            build(packed=61)
    assert os.listdir(tmp_path / "out.build")
    with pytest.raises(VectorFileError, match="file of vectors"):  # another build
        build(packed=64)
    found = build(packed=61).search(bits[:50].astype("float32"), 5)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-6)
    assert np.mean(found[1] == expected[1]) > 0.9  # (ties)
    with pytest.raises(VectorFileError, match="packed=True .--packed. takes packed bits, uint8, got float32"):
        build(tmp_path / "dense.npy", packed=True)


def interrupt(*args):
    raise KeyboardInterrupt


def test_files_of_fingerprints(tmp_path, small_blocks):
    bits, names = X[:, :61] > 8, [f"n {i}" for i in range(N)]
    codes, path, output = np.packbits(bits, axis=1), str(tmp_path / "x.fps"), tmp_path / "out"
    faiss_ext.write_fps(path, codes, names, 61, "mine")
    for string in ("BKFlat(jaccard)", "KFlat(jaccard)", "CWS64,BFlat,Refine(BKFlat(jaccard))"):
        index = faiss_ext.build_from(path, string, output=output, progress=False)
        assert (index.d, index.ntotal, list(faiss_ext.read_names(output)), faiss_ext.read_names(output).about) == (61, N, names, {"fingerprint": "mine"})
        same = faiss_ext.build_from(path, string, progress=False)
        queries = bits[:9].astype("float32") if string.startswith("K") else codes[:9]
        for found, expected in zip(index.search(queries, 4), same.search(queries, 4)):
            np.testing.assert_array_equal(found, expected)
    table = faiss_ext.Names()
    table.add(names, np.arange(N) + 7)
    faiss_ext.build_from(path, "BKFlat(jaccard)", output=output, progress=False, ids=np.arange(N) + 7, names=table)
    assert faiss_ext.read_names(output) == table
    for how, error, message in ((dict(packed=True), ValueError, "packed: .*x.fps tells itself that it has packed bits"), (dict(part="x"), VectorFileError, "x.fps: has no part 'x'"),
                                (dict(names=table), ValueError, "give output="), (dict(fingerprint="maccs"), VectorFileError, "x.fps: fingerprints of 61 bits, but maccs has 166"),
                                (dict(ids=[1]), ValueError, "expected 1500 ids")):
        with pytest.raises(error, match=message):
            faiss_ext.build_from(path, "BKFlat(jaccard)", progress=False, **how)
    faiss_ext.write_fps(path, codes[:2], ["twice", "twice"], 61)
    with pytest.raises(VectorFileError, match="x.fps: the name 'twice' occurs twice"):
        faiss_ext.build_from(path, "BKFlat(jaccard)", output=output, progress=False)
    np.save(tmp_path / "x.npy", codes)
    with pytest.raises(ValueError, match="fingerprint: .*x.npy is not a file of fingerprints"):
        faiss_ext.build_from(tmp_path / "x.npy", "BFlat", fingerprint="maccs")
    assert faiss_ext.read_names(output) == table and sorted(os.listdir(tmp_path)) == ["out", "x.fps", "x.npy"]


def test_parameters_are_any_numbers(files, tmp_path, monkeypatch):
    monkeypatch.setattr(out_of_core, "LEAST_BLOCK", 400)
    monkeypatch.setattr(out_of_core, "MOST_BLOCK", 400)
    index = faiss_ext.build_from(
        files / "f32.npy", "HKM1(chi2),PCAR16,KIVF8(M=4)", output=tmp_path / "index",
        parameters={"nprobe": np.int64(3)}, progress=False)
    assert faiss_ext.index_parameters(index) == {"nprobe": 3}


def test_parameters_and_metric(files):
    index = faiss_ext.build_from(
        files / "f32.npy", "HKM1(chi2),PCAR16,KIVF8(M=4),Refine(KFlat(chi2))",
        parameters={"nprobe": 3, "k_factor": 5}, progress=False)
    assert faiss_ext.index_parameters(index) == {"nprobe": 3, "k_factor": 5}
    index = faiss_ext.build_from(files / "f32.npy", "KFlat(chi2)", metric=faiss.METRIC_INNER_PRODUCT, progress=False)
    D, _ = index.search(Q, 3)
    assert (np.diff(D) <= 0).all()
    with pytest.raises(ValueError, match="no search parameter 'nprobe'"):
        faiss_ext.build_from(files / "f32.npy", "KFlat(chi2)", parameters={"nprobe": 3}, progress=False)


@pytest.mark.parametrize("string", ["AHK256(chi2),AFlat", "KIVF64", "AHK256(chi2),BFlat", "AHK256(chi2),BIVF64"])
def test_an_index_that_fits_whatever_its_last_block(files, string):
    np.save(files / "more.npy", np.tile(X, (7, 1))[:3 * 1024 + 1])
    index = faiss_ext.build_from(files / "more.npy", string, 2**20, files / "out", progress=False)
    assert index.ntotal == 3073 and size_of(index) < 2**19


@pytest.mark.parametrize("memory, size", [
    ("2GB", 2**31), ("1.5 gb", 3 * 2**29), ("100M", 100 * 2**20), (2**20, 2**20), ("2097152", 2**21), (3e6, 3000000)])
def test_sizes_of_memory(memory, size):
    assert out_of_core.number_of_bytes(memory) == size


@pytest.mark.parametrize("memory", ["much", "2XB", "", "-1GB", 10, "1kB", "1.2.3GB"])
def test_what_is_no_size_of_memory(files, memory):
    with pytest.raises(ValueError, match="memory"):
        faiss_ext.build_from(files / "f32.npy", "KFlat(chi2)", memory)


def test_an_index_that_does_not_fit(files, small_blocks):
    np.save(files / "more.npy", np.tile(X, (4, 1)))  # 1.5 MB
    for string in ("Flat", "HNSW32,KFlat(chi2,store=u8)"):
        for output in (None, files / "out"):
            with pytest.raises(MemoryError, match="6,000 vectors takes about"):
                faiss_ext.build_from(files / "more.npy", string, 2**20, output, progress=False)
            shutil.rmtree(files / "out.build", ignore_errors=True)
    faiss_ext.build_from(files / "more.npy", "AHK512(chi2),BFlat,Refine(KFlat(chi2))", 2**20, progress=False)
    # what takes more in memory than in a file
    for string in ("AHK512(chi2),BPerm(M=130,B=10)", "IDMap,AHK512(chi2),BHash4x24"):
        index = faiss_ext.build_from(files / "more.npy", string, "1GB", progress=False)
        assert size_of(index) < 2**20
        with pytest.raises(MemoryError, match="6,000 vectors takes about"):
            faiss_ext.build_from(files / "more.npy", string, 2**20, progress=False)


@pytest.mark.parametrize("string", ["AHK1024(chi2),BIVF8", "IDMap,AHK1024(chi2),BFlat", "AHK1024(chi2),BFlat,Refine(KFlat(chi2))"])
def test_a_build_that_was_refused_is_refused_at_once(files, small_blocks, monkeypatch, string):
    np.save(files / "more.npy", np.tile(X, (8, 1)))

    def build(memory):
        return faiss_ext.build_from(files / "more.npy", string, memory, files / "out", progress=False)

    def state():
        return {path: path.stat().st_mtime_ns for path in (files / "out.build").glob("block-*")}

    errors, states = [], []  # (of which none keeps the folder)
    for _ in range(3):
        with pytest.raises(MemoryError, match="12,000 vectors takes about") as caught:
            build(2**20)
        errors.append(caught.value)
        states.append(state())
    assert {path.name for path in states[0]} == {"block-0.index", "block-0.index.json"}
    assert states == states[:1] * 3 and len(set(map(str, errors))) == 1
    index = build("1GB")
    assert index.ntotal == 8 * N and not (files / "out.build").exists()


@pytest.mark.parametrize("string, twice", [("AHK1024(chi2),BFlat", False), ("AHK1024(chi2),BIVF8", True)])
@pytest.mark.parametrize("with_output", [False, True])
def test_what_grows_elsewhere_is_counted_twice(files, small_blocks, string, twice, with_output):
    np.save(files / "more.npy", np.tile(X, (4, 1)))

    def build(memory):
        return faiss_ext.build_from(
            files / "more.npy", string, memory, files / "out" if with_output else None, progress=False)

    size = size_of(build("1GB"))
    assert 4 * N * 128 <= size < 4 * N * 150 < 2**20
    if twice:
        for memory in (2**20, int(1.6 * size)):
            with pytest.raises(MemoryError, match=r"about 0\.\d MB .* and 1\.\d MB while it is built, more than the 1\.\d MB"):
                build(memory)
            shutil.rmtree(files / "out.build", ignore_errors=True)
    assert build(3 * size if twice else 2**20).ntotal == 4 * N


@pytest.mark.parametrize("string", ["AHK512(chi2),BFlat", "IDMap,AHK512(chi2),BFlat", "AHK512(chi2),BFlat,Refine(KFlat(chi2))"])
@pytest.mark.parametrize("with_folder", [False, True])
def test_flat_codes_grow_where_they_are(files, small_blocks, monkeypatch, string, with_folder):
    places, merge, add = [], out_of_core.merge, out_of_core.add

    def place(index):
        codes = part_that_stores(index)
        places.append(int(codes.xb.data().this) if hasattr(codes.xb.data(), "this") else int(codes.xb.data()))

    def and_note(function):
        def noting(index, *args):
            function(index, *args)
            place(index)
        return noting

    if with_folder:
        monkeypatch.setattr(out_of_core, "merge", and_note(merge))
    else:
        monkeypatch.setattr(out_of_core, "add", and_note(add))
    index = faiss_ext.build_from(
        files / "f32.npy", string, output=files / "out" if with_folder else None, progress=False)
    assert index.ntotal == N
    # the first one is before room is made: of a block, or of the trial of merging
    assert len(places) >= 4 and len(set(places[1:])) == 1, places


def test_names_of_folders_change_nothing(tmp_path):
    """Vectors that have changed are looked for beside the index."""
    there, here = tmp_path / "interrupted", tmp_path / "here"
    there.mkdir()
    np.save(there / "x.npy", X)
    faiss.write_index(faiss_ext.file_index(there / "x.npy", "chi2"), str(there / "index"))
    shutil.copytree(there, here)
    np.save(there / "x.npy", X[::-1])
    index = faiss.read_index(str(here / "index"))
    assert os.path.samefile(index.path, here / "x.npy")
    with pytest.raises(RuntimeError, match="interrupted"):
        faiss.read_index(str(there / "index"))


def test_a_file_that_is_wrong(files):
    bad = X.copy()
    bad[1234, 5] = np.nan
    np.save(files / "nan.npy", bad)
    with pytest.raises(VectorFileError, match="component 5 of vector 1234 is nan") as caught:
        faiss_ext.build_from(files / "nan.npy", "Flat", progress=False)
    assert caught.value.vector == 1234
    bad[1234, 5] = -1
    np.save(files / "negative.npy", bad)
    for string in ("KFlat(chi2)", "AHK64(chi2),BFlat,Refine(KFlat(chi2))"):
        with pytest.raises(RuntimeError, match="negative.npy.*component 5 of vector 1234 is -1, expected a finite number >= 0") as caught:
            faiss_ext.build_from(files / "negative.npy", string, train=5, progress=False)
        assert caught.value.vector == 1234
    many = np.tile(X, (8, 1))
    many[9876, 5] = -1
    np.save(files / "vector 3 interrupted.npy", many)
    for string in ("KFlat(chi2)", "IDMap2,KFlat(chi2)", "KIVF4,Refine(KFlat(chi2))", "HKM1(chi2),PCAR8,IVF4,Flat"):
        for exact in (None, "memory"):
            with pytest.raises(RuntimeError, match="vector 3 interrupted.npy.*component 5 of vector 9876 is -1, expected") as caught:
                faiss_ext.build_from(files / "vector 3 interrupted.npy", string, exact=exact, progress=False)
            assert caught.value.vector == 9876 and not hasattr(caught.value, "interrupted")
    before = (files / "f32.npy").read_bytes()
    (files / "link.npy").symlink_to(files / "f32.npy")
    index = faiss_ext.file_index(files / "f32.npy", "chi2")
    refined = faiss_ext.build_from(
        files / "f32.npy", "AHK64(chi2),BFlat,Refine(KFlat(chi2))", exact="file", progress=False)
    for owner in (index, refined):
        for name in ("f32.npy", "link.npy"):
            with pytest.raises(RuntimeError, match="reads its vectors from this file"):
                faiss.write_index(owner, str(files / name))
    assert (files / "f32.npy").read_bytes() == before
    with pytest.raises(VectorFileError, match="cannot be read"):
        faiss_ext.build_from(files / "gone.npy", "Flat")
    with pytest.raises(ValueError, match="overwrite the vectors"):
        faiss_ext.build_from(files / "f32.npy", "Flat", output=files / "f32.npy")
    with pytest.raises(VectorFileError, match="cannot be written"):
        faiss_ext.build_from(files / "f32.npy", "Flat", output=files / "gone" / "x")
    with pytest.raises(ValueError, match="'file' or 'memory'"):
        faiss_ext.build_from(files / "f32.npy", "Flat", exact="disk")
    for train, seed in ((0, 1), (-1, 1), (10, -1)):
        with pytest.raises(ValueError, match=f"got {train} and {seed}"):
            faiss_ext.build_from(files / "f32.npy", "Flat", train=train, seed=seed)
    with pytest.raises(TypeError, match="integer"):
        faiss_ext.build_from(files / "f32.npy", "Flat", train=10.5)
    with pytest.raises(ValueError, match="string: it is empty"):
        faiss_ext.build_from(files / "f32.npy", "")
    with pytest.raises(TypeError, match="string: expected a factory string of an index, got 3"):
        faiss_ext.build_from(files / "f32.npy", 3)


# ------------------------------------------------- builds that are killed

KILLED = """
import os, signal, sys
import faiss_ext
from faiss_ext import out_of_core
out_of_core.LEAST_BLOCK = out_of_core.MOST_BLOCK = 400
path, string, output, left = *sys.argv[1:4], int(sys.argv[4])
add = out_of_core.add

def add_or_die(index, rows, begin):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if len(rows) > 1:  # not those that are tried
        left -= 1
        print("added", begin, flush=True)
    add(index, rows, begin)

out_of_core.add = add_or_die
faiss_ext.build_from(path, string, "100MB", output, progress=False)
print("done")
"""


@pytest.mark.parametrize("string, keeps", [
    ("AHK128(chi2,center=1),BFlat,Refine(KFlat(chi2))", True),
    ("HKM1(chi2),PCAR16,KIVF8(M=4),Refine(KFlat(chi2))", True),
    ("HNSW8,KFlat(chi2)", False)])
def test_a_killed_build_goes_on(files, environment, string, keeps):
    output = files / "out"

    def run(blocks):
        command = [sys.executable, "-c", KILLED, str(files / "x.fvecs"), string, str(output), str(blocks)]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert result.returncode in (0, -signal.SIGKILL), result.stderr
        return result.returncode, re.findall(r"added (\d+)", result.stdout)

    added = []
    for _ in range(20):
        status, blocks = run(1)
        added += blocks
        assert os.path.exists(output) == (status == 0)
        if status == 0:
            break
    assert status == 0
    if keeps:
        assert added == ["0", "400", "800", "1200"]  # each once
    index = faiss.read_index(str(output))
    if keeps:
        same_results(index, built(string))
    else:  # the levels of a graph are drawn anew
        found, truth = index.search(Q, 10)[1], built("KFlat(chi2)").search(Q, 10)[1]
        assert np.mean([np.isin(a, b).mean() for a, b in zip(truth, found)]) > 0.9
    assert sorted(os.listdir(files)) == sorted([*MAPPED, "out"])


def stop_at(monkeypatch, stopped_at, files, string):
    """A build that is broken off."""
    def stop(index, rows, begin, add=out_of_core.add):
        if begin == stopped_at:
            raise KeyboardInterrupt
        add(index, rows, begin)

    with monkeypatch.context() as changed:
        changed.setattr(out_of_core, "add", stop)
        with pytest.raises(KeyboardInterrupt):
            faiss_ext.build_from(files / "f32.npy", string, "100MB", files / "out", progress=False)
    return files / "out.build"


IVF = "HKM1(chi2),PCAR16,KIVF8(M=4),Refine(KFlat(chi2))"


def test_the_folder_of_another_build_is_refused(files, small_blocks, monkeypatch):
    output, source = files / "out", files / "f32.npy"
    string = "AHK128(chi2),BFlat,Refine(KFlat(chi2))"

    def stop(index, rows, begin, add=out_of_core.add):
        if begin == 800:
            raise KeyboardInterrupt
        add(index, rows, begin)

    monkeypatch.setattr(out_of_core, "add", stop)
    with pytest.raises(KeyboardInterrupt):
        faiss_ext.build_from(source, string, "100MB", output, progress=False)
    monkeypatch.undo()
    monkeypatch.setattr(out_of_core, "LEAST_BLOCK", 400)
    monkeypatch.setattr(out_of_core, "MOST_BLOCK", 400)
    for other, message in (({"string": string.replace("128", "256")}, "differs in: string;"), ({"seed": 5}, "differs in: seed;"),
                           ({"metric": faiss.METRIC_INNER_PRODUCT}, "differs in: metric;"),
                           ({"path": files / "u8.npy"}, "differs in: file of vectors")):
        arguments = {"path": source, "string": string, **other}
        with pytest.raises(ValueError, match=message):
            faiss_ext.build_from(**arguments, memory="100MB", output=output, progress=False)
    os.utime(source, (1, 1))
    with pytest.raises(ValueError, match="differs in: file of vectors"):
        faiss_ext.build_from(source, string, "100MB", output, progress=False)


@pytest.mark.parametrize("string", [IVF, "HNSW8,KFlat(chi2,store=u8)"])
@pytest.mark.parametrize("block", [700, 2 * N])
def test_a_build_goes_on_with_more_memory(files, small_blocks, monkeypatch, string, block):
    def build():
        return faiss_ext.build_from(files / "f32.npy", string, "100MB", files / "out", progress=False)

    stop_at(monkeypatch, 800, files, string)
    monkeypatch.setattr(out_of_core, "MOST_BLOCK", 300)
    monkeypatch.setattr(out_of_core, "LEAST_BLOCK", 300)
    with pytest.raises(ValueError, match="begun with more memory: 400 vectors at a time, now 300; give as much"):
        build()
    monkeypatch.setattr(out_of_core, "MOST_BLOCK", block)
    monkeypatch.setattr(out_of_core, "LEAST_BLOCK", block)
    added = []

    def note(index, rows, begin, add=out_of_core.add):
        added.append(begin)
        add(index, rows, begin)

    with monkeypatch.context() as changed:
        changed.setattr(out_of_core, "add", note)
        index = build()
    added = [begin for begin in added if begin > 1]  # not those that are tried
    assert added == list(range(800 if string == IVF else added[0], N, 400)) and added[0] in (400, 800)
    assert index.ntotal == N and not os.path.exists(files / "out.build")
    if string == IVF:  # (levels of a graph are drawn anew)
        same_results(index, built(string, 400))


def test_a_refused_build_begins_anew_with_more_memory(files):
    """Not with what it has learnt from the few vectors that there was memory for."""
    np.save(files / "more.npy", np.tile(X, (20, 1)))
    string, output = "HKM1(chi2),PCAR32,KIVF8,Refine(KFlat(chi2))", files / "out"
    with pytest.raises(MemoryError):
        faiss_ext.build_from(files / "more.npy", string, "1MB", output, progress=False)
    assert any((files / "out.build").iterdir())
    index = faiss_ext.build_from(files / "more.npy", string, "1GB", output, progress=False)
    same_results(index, faiss_ext.build_from(files / "more.npy", string, "1GB", progress=False))


def test_an_error_that_is_kept_keeps_no_lock(files, small_blocks, monkeypatch):
    stop_at(monkeypatch, 800, files, IVF)
    kept = []
    for memory, block in (("50MB", 300), ("100MB", 400)):
        monkeypatch.setattr(out_of_core, "MOST_BLOCK", block)
        monkeypatch.setattr(out_of_core, "LEAST_BLOCK", block)
        try:
            index = faiss_ext.build_from(files / "f32.npy", IVF, memory, files / "out", progress=False)
        except ValueError as error:
            kept.append(error)
    assert len(kept) == 1 and "begun with more memory" in str(kept[0])
    assert index.ntotal == N


def test_a_folder_that_is_not_of_a_build_stays(files, small_blocks):
    folder = files / "out.build"
    (folder / "inside").mkdir(parents=True)
    for name in ("thesis.txt", "inside/thesis.txt"):
        (folder / name).write_text("mine")
    for _ in range(2):
        with pytest.raises(ValueError, match="out.build is not empty and holds no unfinished build; expected a new folder"):
            faiss_ext.build_from(files / "f32.npy", "Flat", output=files / "out", progress=False)
    assert sorted(os.listdir(folder)) == ["inside", "thesis.txt"] and not os.path.exists(files / "out")
    shutil.rmtree(folder)
    folder.write_text("mine")
    with pytest.raises(VectorFileError, match="out.build: cannot be used: File exists"):
        faiss_ext.build_from(files / "f32.npy", "Flat", output=files / "out", progress=False)
    folder.unlink()
    folder.mkdir()
    faiss_ext.build_from(files / "f32.npy", "Flat", output=files / "out", progress=False)
    assert not folder.exists()


def test_only_what_a_build_has_made_is_deleted(files, small_blocks, monkeypatch):
    folder = stop_at(monkeypatch, 800, files, IVF)
    (folder / "thesis.txt").write_text("mine")
    (folder / "inside").mkdir()
    (folder / ".faiss_ext_1_2").write_text("of a process that was killed")
    same_results(faiss_ext.build_from(files / "f32.npy", IVF, "100MB", files / "out", progress=False), built(IVF))
    assert sorted(os.listdir(folder)) == ["inside", "thesis.txt"]


def exchange(folder, a, b):
    os.rename(folder / a, folder / "c")
    os.rename(folder / b, folder / a)
    os.rename(folder / "c", folder / b)


def damage(path):
    path.write_bytes(path.read_bytes()[:-9] + b"123456789")


@pytest.mark.parametrize("harm, again", [
    (lambda folder: exchange(folder, "block-0.index", "block-400.index"), [0, 400, 1200]),
    (lambda folder: [exchange(folder, f"block-0.{kind}", f"block-400.{kind}") for kind in ("index", "index.json")], [0, 400, 1200]),
    (lambda folder: damage(folder / "block-400.index"), [400, 1200]),
    (lambda folder: (folder / "block-400.index.json").write_text("[" * 10**5), [400, 1200]),
    (lambda folder: (folder / "block-800.index.json").unlink(), [800, 1200])])
def test_blocks_that_are_not_what_they_were_are_built_again(files, small_blocks, monkeypatch, harm, again):
    folder = stop_at(monkeypatch, 1200, files, IVF)
    harm(folder)
    added = []

    def note(index, rows, begin, add=out_of_core.add):
        if len(rows) > 1:  # not those that are tried
            added.append(begin)
        add(index, rows, begin)

    monkeypatch.setattr(out_of_core, "add", note)
    index = faiss_ext.build_from(files / "f32.npy", IVF, "100MB", files / "out", progress=False)
    monkeypatch.undo()
    same_results(index, built(IVF))
    assert added == again


def test_blocks_of_another_training_are_built_again(files, small_blocks, monkeypatch):
    folder = stop_at(monkeypatch, 1200, files, IVF)
    index = faiss_ext.index_factory(64, IVF)
    index.train(X[:300])
    faiss.write_index(index.base_index, str(folder / "trained.index"))
    index.add(X)
    same_results(faiss_ext.build_from(files / "f32.npy", IVF, "100MB", files / "out", progress=False), index)


@pytest.mark.parametrize("string", [IVF, "HNSW8,KFlat(chi2),Refine(KFlat(chi2))"])
def test_killed_before_the_exact_index_is_written(files, small_blocks, monkeypatch, string):
    """After the last block."""
    write = out_of_core.BlockFolder.write

    def stop(self, index, name):
        if name == "exact.index" and index.ntotal == N:
            raise KeyboardInterrupt
        write(self, index, name)
        return 0  # seconds

    with monkeypatch.context() as changed:
        changed.setattr(out_of_core.BlockFolder, "write", stop)
        with pytest.raises(KeyboardInterrupt):
            faiss_ext.build_from(files / "f32.npy", string, "100MB", files / "out", progress=False)
    index = faiss_ext.build_from(files / "f32.npy", string, "100MB", files / "out", progress=False)
    assert index.ntotal == faiss.downcast_index(index.refine_index).ntotal == N


@pytest.mark.parametrize("content", [
    b"", b'{"string": "KF', b"null", b"[]", b"\xff", pytest.param(b"[" * 10**5, id="deep"), b"{}",
    lambda state: {**state, "block": "400"}, lambda state: {**state, "vectors": None},
    lambda state: {**state, "seed": state["seed"] + 1}, lambda state: {**state, "block": 2 * state["block"]}])
def test_a_damaged_state(files, small_blocks, monkeypatch, content):
    folder = stop_at(monkeypatch, 800, files, IVF)
    state = folder / "build.json"
    state.write_bytes(content if isinstance(content, bytes) else json.dumps(content(json.loads(state.read_text()))).encode())
    with pytest.raises(ValueError, match="out.build/build.json is damaged.*delete the folder"):
        faiss_ext.build_from(files / "f32.npy", IVF, "100MB", files / "out", progress=False)


@pytest.mark.parametrize("string, name", [
    (IVF, "trained.index"), (IVF, "exact.index"), ("HNSW8,KFlat(chi2,store=u8)", "all.index")])
def test_a_damaged_index_says_how_to_go_on(files, small_blocks, monkeypatch, string, name):
    folder = stop_at(monkeypatch, 800, files, string)
    damage(folder / name)
    with pytest.raises(VectorFileError, match=f"{name} cannot be read; delete it, and the same call makes it again: "):
        faiss_ext.build_from(files / "f32.npy", string, "100MB", files / "out", progress=False)
    (folder / name).unlink()
    index = faiss_ext.build_from(files / "f32.npy", string, "100MB", files / "out", progress=False)
    assert index.ntotal == N
    if string == IVF:
        same_results(index, built(string))


def test_one_process_at_a_time(files, small_blocks, monkeypatch):
    with out_of_core.BlockFolder(str(files / "out.build")).building({"block": 400}):
        with pytest.raises(ValueError, match="another process builds there"):
            faiss_ext.build_from(files / "f32.npy", "Flat", output=files / "out", progress=False)
    faiss_ext.build_from(files / "f32.npy", "Flat", output=files / "out", progress=False)


@pytest.mark.parametrize("string", ["Flat", "KFlat(chi2)"])
def test_the_old_index_is_replaced_not_overwritten(files, string):
    (files / "out").write_bytes(b"old")
    os.link(files / "out", files / "link")
    faiss_ext.build_from(files / "f32.npy", string, output=files / "out", progress=False)
    assert (files / "link").read_bytes() == b"old" and faiss.read_index(str(files / "out")).ntotal == N


def test_a_file_that_changes_during_the_build(files, small_blocks, monkeypatch):
    def change(index, rows, begin, ids, add=out_of_core.add):
        add(index, rows, begin, ids)
        os.utime(files / "f32.npy", (1, 1))

    monkeypatch.setattr(out_of_core, "add", change)
    with pytest.raises(VectorFileError, match="has changed during the build"):
        faiss_ext.build_from(files / "f32.npy", "AHK64(chi2),BFlat", progress=False)


# ------------------------------------------------------------------ memory

PEAK = """
import re, sys, threading, time
import faiss_ext
path, string, memory, output = sys.argv[1:5]

def anonymous():
    return int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024

before = peak = anonymous()
done = False

def watch():
    global peak
    while not done:
        peak = max(peak, anonymous())
        time.sleep(0.002)

thread = threading.Thread(target=watch, daemon=True)
thread.start()
index = faiss_ext.build_from(path, string, memory, output, progress=False)
done = True
thread.join()
print(peak - before, index.ntotal)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux's /proc")
def test_memory_is_bounded(tmp_path, environment):
    """400 MB of vectors, 32 MB of memory."""
    n, d = 100_000, 1024
    x = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", "float32", (n, d))
    rng = np.random.default_rng(1)
    for begin in range(0, n, 10_000):
        x[begin:begin + 10_000] = rng.random((10_000, d), dtype="float32")
    x.flush()
    del x
    environment = {**environment, "OMP_NUM_THREADS": "2", "MALLOC_ARENA_MAX": "2"}
    command = [sys.executable, "-c", PEAK, tmp_path / "x.npy", "SIK64(gaussian),BFlat,Refine(KFlat(gaussian))", "32MB",
               tmp_path / "out"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    peak, ntotal = map(int, result.stdout.split())
    assert ntotal == n
    assert peak < 64 * 2**20  # with what the library itself takes for threads


# ------------------------------------------------------------ command line

def test_command_line(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    string = "AHK128(chi2),BFlat,Refine(KFlat(chi2))"
    for exact, name in (("memory", "IndexFlatKernel"), ("file", "IndexFileKernel")):
        arguments = ["build", "x.fvecs", string, "-o", "out", "--exact", exact, "--memory", "50MB", "--quiet"]
        assert main(arguments) == 0
        assert name in capsys.readouterr().out
        same_results(faiss.read_index("out"), built(string))
    with pytest.raises(SystemExit, match="2"):
        main(["build", "x.fvecs", "Flat", "-o", "out", "--memory", "1B", "--quiet"])
    assert "'1B' is too little; expected a number of bytes or a size such as '2GB', at least 1 MB" in capsys.readouterr().err
    os.rename("x.fvecs", "y.fvecs")
    assert main(["search", "out", "u8.npy"]) == 1
    assert "cannot map the file" in capsys.readouterr().err


def test_what_maps_make_of_the_sample_fits(files, monkeypatch):
    sizes = []

    def counted(n, size, seed, drawn=faiss_ext.out_of_core.drawn):
        sizes.append(size)
        return drawn(n, size, seed)

    monkeypatch.setattr(faiss_ext.out_of_core, "drawn", counted)
    d = np.load(files / "f32.npy", mmap_mode="r").shape[1]
    for string, floats in (("KIVF4", d), ("HKM1(chi2),KIVF4", d + 3 * d)):
        faiss_ext.build_from(files / "f32.npy", string, memory="2MB", progress=False)
        assert sizes.pop() == 2**21 // 2 // (4 * d + 4 * floats)
