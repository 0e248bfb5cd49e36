# SPDX-License-Identifier: MIT
"""docs/file-format.md is true: a reader that follows the page, and knows nothing else, reads real files to their last byte."""

import hashlib
import json
import re
import struct

import faiss
import faiss_ext
import numpy as np
import pytest
import xxhash
from helpers import ROOT, X, fill

BLOCK = re.compile(r"^```layout\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBERS = {"u8": "B", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "f32": "f", "f64": "d"}
OBJECTS = {"index": "FxIx", "binary index": "FxIB", "transformation": "FxVT"}
BLOCK_SIZE = 2**20


def layouts():
    """The fields of each structure of the page: pairs of a name and a type."""
    found = {}
    for block in BLOCK.findall((ROOT / "docs/file-format.md").read_text()):
        for line in block.splitlines():
            if line and not line.startswith(" "):
                names = re.split(r"\s{2,}", line)[0].split(", ")
                found.update((name, []) for name in names)
            elif line:
                found[names[-1]].append(tuple(re.split(r"\s{2,}", line.strip())[:2]))
    return found


LAYOUTS = layouts()
used = set()


def is_set(value):
    """Whether a number is not 0, or an array not empty."""
    return len(value) > 0 if hasattr(value, "__len__") else bool(value)


def holds(condition, values):
    """Whether a field with `if` is present: `segments`, `no landmarks` or `proj is 3`."""
    name, _, number = condition.removeprefix("no ").partition(" is ")
    if number:
        return values[name] == int(number)
    return is_set(values[name]) != condition.startswith("no ")


def number_in(value):
    """A number, or the number of items of an array."""
    return len(value) if hasattr(value, "__len__") else int(value)


class PageReader:
    """Reads a value of a type of the page from bytes."""

    def __init__(self, data):
        self.data, self.position = data, 0

    def bytes(self, n):
        assert self.position + n <= len(self.data), "the file ends before its last field does"
        self.position += n
        return self.data[self.position - n : self.position]

    def number(self, kind):
        return struct.unpack("<" + NUMBERS[kind], self.bytes(struct.calcsize("<" + NUMBERS[kind])))[0]

    def structure(self, name, kind=None):
        used.add(name)
        values = {}
        for field, type_ in LAYOUTS[name]:
            type_, _, condition = type_.partition(" if ")
            flat = {**values, **values.get("header", {})}
            if condition and not holds(condition, flat):
                continue
            values[field] = self.value(type_, flat, kind)
        return values

    def value(self, type_, values, kind):
        item, times, count = type_.partition("*")
        if times:
            terms = count.strip("()").split("+")
            total = sum(int(term) if term.isdigit() else number_in(values[term]) for term in terms)
            return [self.value(item, values, kind) for _ in range(total)]
        if type_.endswith(("[]", "[aligned]")):
            n = self.number("u64")
            if type_.endswith("[aligned]"):
                zeros = self.number("u8")
                assert zeros < 64 and self.bytes(zeros) == bytes(zeros)
                assert n == 0 or self.position % 64 == 0
            one = NUMBERS[type_.partition("[")[0]]
            return np.frombuffer(self.bytes(n * struct.calcsize("<" + one)), "<" + one)
        if type_ in NUMBERS:
            return self.number(type_)
        if type_ == "bool":
            byte = self.number("u8")
            assert byte in (0, 1)
            return bool(byte)
        if type_ == "text":
            return self.bytes(self.number("u64")).decode()
        if type_ in ("kernel", "bit kernel", "projection"):
            name = self.value("text", values, kind)
            if not name:
                return None
            trained = {"is_trained": self.value("bool", values, kind)} if type_ == "kernel" else {}
            return {"class": name, **trained, **self.structure(name)}
        if type_ == "same":
            return self.object(kind)
        if type_ in OBJECTS:
            return self.object(type_)
        return self.structure(type_, kind)

    def object(self, kind):
        magic = self.bytes(4).decode()
        if magic == "Fais":
            return self.bytes(self.number("u64"))
        assert magic == OBJECTS[kind]
        return self.content(kind)

    def content(self, kind):
        top = "Transformation" if kind == "transformation" else "Index"
        used.add(top)
        values = {}
        for field, type_ in LAYOUTS[top][:-1]:
            values[field] = self.value(type_, values, kind)
        return {**values, **self.structure(values["class"], kind)}

    def frame(self, kind):
        used.add("Frame")
        assert [field for field, _ in LAYOUTS["Frame"]] == [
            "magic", "version", "length", "checksums", "padding", "header", "content"]
        assert self.bytes(4).decode() == OBJECTS[kind]
        assert self.number("u32") == 11
        length = self.number("u64")
        checksums = [self.number("u64") for _ in range(-(-length // BLOCK_SIZE))]
        rest = -(self.position + 8) % 64
        assert self.bytes(rest) == bytes(rest)
        assert xxhash.xxh3_64_intdigest(self.data[: self.position]) == self.number("u64")
        begin = self.position
        for i, checksum in enumerate(checksums):
            block = self.data[begin + i * BLOCK_SIZE : begin + min((i + 1) * BLOCK_SIZE, length)]
            assert xxhash.xxh3_64_intdigest(block) == checksum
        values = self.content(kind)
        assert self.position == begin + length
        return values


def read(data, kind):
    reader = PageReader(bytes(data))
    values = reader.frame(kind)
    assert reader.position == len(data)
    return values


STRINGS = [
    "SIK16(gaussian),BFlat", "SIK16(laplacian,proj=dense,gamma=2),BHash4x4", "SIK16(matern,nu=2),BIVF4", "SCR16,BHNSW8",
    "SIK16(gaussian,gamma=1,proj=generated),BFlat",
    "BSIK16(8x8,m=2),BFlat", "BSIK16(8x8,w=dense,shuffle=1),BFlat", "SH16,BFlat", "CWS16,BFlat",
    "RHBE16,BFlat", "RHBE16(rot=itq),AFlat", "RHBE16(proj=bilinear,shape=8x8),BPerm(M=3,B=10)", "AHK16(js),AFlat",
    "AHK16(chi2,rot=pca,norm=l1),BPerm(eps=1)", "KLSH16(expchi2,p=40),BFlat", "KLSH16(hellinger,p=40,rank=8,draw=gauss),BFlat",
    "KFlat(poly(degree=2))", "KFlat(sum(0.3*chi2,product(linear,gaussian)))", "RFF8(gaussian,proj=bilinear),Flat",
    "SIK13(gaussian),BFlat", "KFlat(normalized(poly))", "KFlat(exponential(cosine,scale=2))", "KFlat(intersection,store=u8)",
    "KFlat(linear,store=f16)", "KFlat(linear,store=i8)", "KFlat(chi2,store=sparse)", "IDMap,KFlat(chi2)",
    "IDMap2,SIK16(gaussian),BFlat", "KPCA4(chi2,p=20),KIVF4",
    "RFF8(gaussian),KIVF2(M=4,residual=0),Refine(KFlat(gaussian))", "PCA4,L2norm,KFlat(linear)",
    "HKM1(chi2),PCAR8,Flat", "HNSW4,KFlat(chi2)", "SIK16(gaussian),BFlat,RFlat", "Flat,Refine(KFlat(chi2))",
    "Concurrent,KFlat(linear)"]


def by_hand():
    kernel = faiss_ext.LinearKernel()
    shards = faiss.IndexShards(64, False, True)
    replicas = faiss.IndexReplicas(64)
    for add in (shards.add_shard, replicas.addIndex):
        for _ in range(2):
            add(faiss.index_factory(64, "KFlat(linear)"))
    flat = faiss_ext.IndexFlatKernel(64, kernel)
    refine = faiss.IndexRefine(faiss.IndexFlatL2(64), flat)
    pre = faiss.IndexPreTransform(faiss.PCAMatrix(64, 64), faiss_ext.IndexFlatKernel(64, kernel))
    maps = [map_(faiss.index_factory(64, "KFlat(linear)")) for map_ in (faiss.IndexIDMap, faiss.IndexIDMap2)]
    flat_refine = faiss.IndexRefineFlat(faiss.index_factory(64, "SIK16(gaussian),BFlat"))
    mine = faiss_ext.IndexFlatKernel(64, faiss_ext.CallbackKernel(lambda X, Y: X @ Y.T, name="mine"))
    omega = np.random.default_rng(1).normal(size=(16, 64))
    given = [
        faiss_ext.IndexAsymmetricHash(faiss_ext.FrequencyHash(omega)),
        faiss.IndexPreTransform(faiss_ext.FrequencyMap(omega), faiss.IndexFlatL2(32))]
    return [mine, *given, *maps, shards, replicas, refine, flat_refine, pre, faiss.IndexHNSW(faiss_ext.IndexFlatKernel(64, kernel), 4)]


def check_header(values, index):
    assert values["d"] == index.d and values["ntotal"] == index.ntotal
    assert values["is_trained"] == index.is_trained and values["metric"] == index.metric_type


@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("string", STRINGS)
def test_indexes_are_written_as_documented(string, filled):
    index = faiss.index_factory(64, string)
    if filled:
        fill(index, X[:300])
    values = read(faiss.serialize_index(index), "index")
    while "header" not in values:  # "all" or "map", of the same fields
        values = next(iter(v for v in values.values() if isinstance(v, dict)))
    check_header(values["header"], index)
    if "id_map" in values:
        assert np.array_equal(values["id_map"], faiss.vector_to_array(index.id_map))


@pytest.mark.parametrize("string", ["KFlat(linear)", "KIVF4(M=8)", "SIK16(gaussian),BIVF4", "KFlat(linear),Refine(KFlat(chi2))"])
def test_tables_of_ids(string):
    index = faiss.index_factory(64, string)
    index.train(X[:300])
    index.add_with_ids(X[:100], np.arange(100) + 7)
    values = read(faiss.serialize_index(index), "index")
    assert values["next_id"] == 107 and np.array_equal(values["ids"], np.arange(100) + 7)
    check_header(values["header"], index)
    inside = values["index"]
    while "header" not in inside:
        inside = next(v for v in inside.values() if isinstance(v, dict))
    check_header(inside["header"], index)


def test_wrappers_put_together_by_hand():
    for index in by_hand():
        values = read(faiss.serialize_index(fill(index, X[:300])), "index")
        while "header" not in values:  # "all" or "map", of the same fields
            values = next(iter(v for v in values.values() if isinstance(v, dict)))
        check_header(values["header"], index)


def test_binary_indexes_and_transformations():
    for string in ("IDMap2,SIK16(gaussian),BFlat", "SIK16(gaussian),BPerm(M=3,B=10)", "BConcurrent,SIK16(gaussian),BFlat"):
        index = fill(faiss.index_binary_factory(64, string), X[:300])
        read(faiss.serialize_index_binary(index), "binary index")
    bare = faiss_ext.IndexBinaryPermuted(64)
    bare.add(X[:50].view("uint8")[:, :8].copy())
    values = read(faiss.serialize_index_binary(bare), "binary index")
    assert np.array_equal(values["codes"], X[:50].view("uint8")[:, :8].ravel())
    for name in faiss_ext.bit_kernel_names():
        sets = faiss_ext.index_binary_factory(500, f"BKFlat({name})")
        codes = np.packbits(np.repeat(X[:50] > 0.01, 8, axis=1)[:, :500], axis=1)
        sets.add(codes)
        values = read(faiss.serialize_index_binary(sets), "binary index")
        assert values["kernel"]["class"] == name
        for ones, part in zip(values["ones"], values["lists"]):
            rows = part["codes"].reshape(-1, 64)
            assert np.array_equal(rows[:, :63], codes[part["ids"]]) and not rows[:, 63].any()
            assert (np.unpackbits(rows, axis=1).sum(axis=1) == ones).all()
            assert np.array_equal(np.bitwise_xor(rows[:, :32], rows[:, 32:]), part["folded"].reshape(-1, 32))
    codes = X[:50].view("uint8")[:, :8].copy()
    for string in ("BHNSW4,BKFlat(dice)", "CWS16,BFlat,Refine(BKFlat(jaccard))"):
        index = faiss_ext.index_binary_factory(64, string)
        index.add(codes)
        values = read(faiss.serialize_index_binary(index), "binary index")
        assert values.get("kernel", "dice") == "dice" and values.get("k_factor", 1) == 1
    hash = faiss_ext.ShiftInvariantHash(64, 32, faiss_ext.GaussianKernel(0.25))
    hash.train(X)
    writer = faiss.VectorIOWriter()
    faiss.write_VectorTransform(hash, writer)
    values = read(faiss.vector_to_array(writer.data), "transformation")
    assert values["d_in"] == 64 and values["d_out"] == 32 and values["kernel"]["all"]["gamma"] == 0.25
    assert np.array_equal(values["all"]["threshold"], faiss.vector_to_array(hash.threshold))


def test_sparse_landmarks():
    x = np.where(X[:300] > np.median(X), X[:300], 0)
    rows = pytest.importorskip("scipy.sparse").csr_array(x)
    for thing in (faiss_ext.map_factory(64, "KPCA4(chi2,p=20)"), faiss_ext.kernel_hash_factory(64, "KLSH8(chi2,p=20)")):
        thing.set_landmarks(rows[:20])
        thing.train(rows)
        writer = faiss.VectorIOWriter()
        faiss.write_VectorTransform(thing, writer)
        values = read(faiss.vector_to_array(writer.data), "transformation")
        assert values["landmarks"].size == 0
        found = values["sparse_landmarks"]
        for name, expected in (("rows", rows[:20].indptr), ("columns", rows[:20].indices), ("values", rows[:20].data)):
            assert np.array_equal(found[name], expected)


def test_vectors_that_stay_in_their_file(tmp_path):
    np.save(tmp_path / "x.npy", X)
    index = faiss_ext.file_index(tmp_path / "x.npy", "chi2", n=len(X) - 1)
    values = read(faiss.serialize_index(index), "index")
    check_header(values["header"], index)
    assert bytes(values["path"]).decode() == index.path
    status = (tmp_path / "x.npy").stat()
    offset, stride, n, size, modified = values["layout"]
    assert (stride, n, size, modified) == (256, len(X), status.st_size, status.st_mtime_ns)
    data = (tmp_path / "x.npy").read_bytes()[offset : offset + (len(X) - 1) * 256]
    block = 2**20 // 256 * 256
    assert values["checksums"].tolist() == [
        xxhash.xxh3_64_intdigest(data[i : i + block]) for i in range(0, len(data), block)]


def test_names_behind_an_index(tmp_path):
    index = faiss_ext.index_binary_factory(64, "IDMap,BKFlat(jaccard)")
    names = faiss_ext.Names()
    index.add_with_ids(np.eye(2, 8, dtype="uint8"), names.add(["ab", "é"], ids=[9, 3]))
    names.about["fingerprint"] = "maccs"
    faiss_ext.write_index(index, tmp_path / "with.index", names=names)
    faiss.write_index_binary(index, str(tmp_path / "alone.index"))
    begin = (tmp_path / "alone.index").stat().st_size
    data = (tmp_path / "with.index").read_bytes()[begin:]
    reader = PageReader(data)
    values = reader.structure("Names")
    assert reader.position == len(data) == values["length"]
    assert bytes(values["magic"]) == b"FxNames1" and bytes(values["end"]) == b"1semaNxF"
    assert json.loads(values["about"]) == names.about and values["next_id"] == 10
    assert values["ids"].tolist() == [3, 9] and values["lengths"].tolist() == [2, 2] and bytes(values["names"]).decode() == "éab"
    assert bytes(values["checksum"]) == hashlib.sha256(data[:-48]).digest()


def test_the_vectors_of_kflat_are_where_the_page_says():
    index = fill(faiss.index_factory(64, "KFlat(linear)"), X[:100])
    rows = read(faiss.serialize_index(index), "index")["vectors"]
    assert np.array_equal(rows.view("<f4").reshape(100, 64), X[:100])


def test_files_of_several_blocks():
    x = np.random.default_rng(1).random((9000, 64), dtype="float32")  # 2.2 blocks
    index = fill(faiss.index_factory(64, "KFlat(linear)"), x)
    rows = read(faiss.serialize_index(index), "index")["vectors"]
    assert np.array_equal(rows.view("<f4").reshape(x.shape), x)


def test_every_class_of_the_page_occurs(tmp_path):
    """What the tests above read is all that the page describes."""
    used.clear()
    for string in STRINGS:
        test_indexes_are_written_as_documented(string, True)
    test_tables_of_ids("KFlat(linear)")
    test_wrappers_put_together_by_hand()
    test_binary_indexes_and_transformations()
    test_sparse_landmarks()
    test_vectors_that_stay_in_their_file(tmp_path)
    test_names_behind_an_index(tmp_path)
    assert used == set(LAYOUTS)
