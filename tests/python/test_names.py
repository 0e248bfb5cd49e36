# SPDX-License-Identifier: MIT
"""Names beside ids, in memory and in the files of indexes."""

import copy
import pickle

import faiss
import faiss_ext
import numpy as np
import pytest
from faiss_ext import Names, read_names
from faiss_ext.name_files import END, END_MAGIC, MAGIC
from hypothesis import given, settings, strategies as st

from helpers import COUNTS, X

BITS = np.packbits(COUNTS[:300] > 8, axis=1)
TEXTS = [f"CHEMBL{i * 7919 % 300}" for i in range(300)]
ODD = ["é", "日本", "a\tb", "a\nb", "a b", "\0", "\0\0", " ", "a" * 5000, "A", "a"]


def of(texts=TEXTS, **kwargs):
    names = Names()
    names.add(texts, **kwargs)
    return names


def state(names):
    return names._contents()[2], dict(zip(names.of(list(ids_of(names))), ids_of(names)))


def ids_of(names):
    return names.ids(list(names)).tolist()


class Model:
    """The same table as two dicts."""

    def __init__(self):
        self.ids, self.next_id = {}, 0

    def add(self, texts, ids):
        if ids is None:
            ids = range(self.next_id, self.next_id + len(texts))
        if len(set(texts)) < len(texts) or len(set(ids)) < len(ids) or self.ids.keys() & set(texts) or (
                set(self.ids.values()) & set(ids)) or -1 in ids:
            return None
        self.ids.update(zip(texts, ids))
        self.next_id = max([self.next_id, *(i + 1 for i in ids)])
        return list(ids)


SOME = st.lists(st.text("abé", min_size=1, max_size=2), max_size=4)
STEPS = st.lists(st.one_of(
    st.tuples(st.just("add"), SOME, st.none()), st.tuples(st.just("add"), SOME, st.lists(st.integers(-3, 9), min_size=4, max_size=4)),
    st.tuples(st.just("remove"), SOME, st.booleans()), st.tuples(st.just("copy"), st.none(), st.none())), max_size=25)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_it_does_as_a_dict_does(steps):
    names, model = Names(), Model()
    for what, texts, more in steps:
        before = state(names)
        if what == "copy":
            names = pickle.loads(pickle.dumps(names))
        elif what == "add":
            ids = None if more is None else more[:len(texts)]
            expected = model.add(texts, ids)
            if expected is None:
                with pytest.raises(ValueError, match="Names.add: "):
                    names.add(texts, ids)
                assert state(names) == before
            else:
                assert names.add(texts, ids).tolist() == expected
        elif len(set(texts)) < len(texts) or not set(texts) <= model.ids.keys():
            with pytest.raises(ValueError, match="Names.remove: "):
                names.remove(texts)
            assert state(names) == before
        else:
            ids = [model.ids.pop(text) for text in texts]
            assert names.remove(ids if more else texts).tolist() == ids
        assert state(names) == (model.next_id, model.ids) and len(names) == len(model.ids)
        assert list(names) == sorted(model.ids, key=model.ids.get)
        for text in ("a", "bb", "é"):
            assert (text in names) == (text in model.ids)
        asked = np.arange(-3, 10)
        assert names.contains(asked).tolist() == [i in model.ids.values() for i in asked]


def test_many_names_are_found_and_others_are_not():
    texts = [f"{i:x}" for i in range(100_000)]
    names = Names()
    for begin in range(0, len(texts), 7001):
        names.add(texts[begin:begin + 7001])
    order = np.random.default_rng(0).permutation(len(texts))
    assert names.ids([texts[i] for i in order]).tolist() == order.tolist()
    assert names.of(order.reshape(100, -1)).ravel().tolist() == [texts[i] for i in order]
    assert not names.contains([f"{i:x}." for i in range(1000)]).any()
    names.remove(order[:60_000])
    assert len(names) == 40_000 and not names.contains(order[:60_000]).any()
    assert names.ids([texts[i] for i in order[60_000:]]).tolist() == order[60_000:].tolist()
    assert names.add(["new"]).tolist() == [100_000]


def test_ids_of_results():
    names = of()
    I = np.array([[3, -1], [0, 299]])
    found = names.of(I)
    assert found.dtype == object and found.tolist() == [[TEXTS[3], None], [TEXTS[0], TEXTS[299]]]
    assert names.of([]).tolist() == [] and names.of(np.int64(5)).tolist() == TEXTS[5]
    assert names.ids(np.array(TEXTS[:3])).tolist() == [0, 1, 2]


def test_large_and_negative_ids():
    ids = [2**63 - 1, -2**63, 0, -7]
    names = of(list("abcd"), ids=ids)
    assert names.of(ids).tolist() == list("abcd") and list(names) == ["b", "d", "c", "a"]
    with pytest.raises(ValueError, match="do not fit into 64 bits"):
        names.add(["e"])
    assert len(names) == 4 and names.add(["e"], [5]).tolist() == [5]


@pytest.mark.parametrize("call, error, message", [
    (lambda n: n.add(["x", "x"]), ValueError, "Names.add: the name 'x' occurs twice"),
    (lambda n: n.add(["x", "CHEMBL3"]), ValueError, "the name 'CHEMBL3' is already in use"),
    (lambda n: n.add(["x", "y"], ids=[300, 300]), ValueError, "the id 300 occurs twice"),
    (lambda n: n.add(["x", "y"], ids=[300, 7]), ValueError, "the id 7 is already in use"),
    (lambda n: n.add(["x"], ids=[-1]), ValueError, "an id is -1"), (lambda n: n.add(["x"], ids=[1, 2]), ValueError, "expected 1 ids"),
    (lambda n: n.add(["x"], ids=[0.5]), TypeError, "must be integers"), (lambda n: n.add(["x", ""]), ValueError, "a name is empty"),
    (lambda n: n.add("abc"), TypeError, "expected a list of names, got 'abc'"), (lambda n: n.add(["x", b"y"]), TypeError, "must be str, got b'y'"),
    (lambda n: n.add([3]), TypeError, "must be str, got 3"), (lambda n: n.add(["x", "\ud800"]), ValueError, "not valid Unicode"),
    (lambda n: n.add([["x"]]), TypeError, r"must be str, got \['x'\]"), (lambda n: n.add(3), TypeError, "expected a list of names, got 3"),
    (lambda n: n.add(np.array("abc")), TypeError, "expected a list of names, got 'abc'"), (lambda n: n.remove(3), ValueError, r"expected ids of shape .* write \[3\]"), (lambda n: n.ids(["CHEMBL3", "gone"]), ValueError, "there is no name 'gone'"),
    (lambda n: n.of([3, 300]), ValueError, "no name has the id 300"), (lambda n: n.of([0.5]), TypeError, "must be integers"),
    (lambda n: n.remove(["CHEMBL3", "gone"]), ValueError, "there is no name 'gone'"), (lambda n: n.remove([3, 300]), ValueError, "no name has the id 300"),
    (lambda n: n.remove(["CHEMBL3", "CHEMBL3"]), ValueError, "the name 'CHEMBL3' occurs twice"), (lambda n: n.remove("CHEMBL3"), TypeError, "expected a list of names"),
    (lambda n: n.remove([3, 3]), ValueError, "the id 3 occurs twice")])
def test_errors_change_nothing(call, error, message):
    names = of()
    with pytest.raises(error, match=message):
        call(names)
    assert names == of() and state(names) == state(of())


def test_it_is_a_value():
    names = of()
    names.about["fingerprint"] = "morgan2:2048"
    assert repr(names) == "Names(300 names, fingerprint='morgan2:2048')" and repr(Names()) == "Names(0 names)"
    assert names != of() and names != of(TEXTS[:299]) and names != 3
    backwards = of(TEXTS[::-1], ids=np.arange(300)[::-1])
    assert backwards == of() and backwards != of(ids=np.arange(300)[::-1])
    for again in (copy.copy(names), copy.deepcopy(names), pickle.loads(pickle.dumps(names))):
        assert again == names
        again.remove([0])
        again.about["bits"] = 8
        assert len(names) == 300 and list(names.about) == ["fingerprint"]


# ---------------------------------------------------------------- files

STRINGS = ["BKFlat(jaccard)", "BFlat", "BIVF4", "BPerm(M=3,B=10)", "IDMap2,BFlat"]


def made(string, x=BITS):
    index = faiss_ext.index_binary_factory(64, string) if string.startswith(("B", "IDMap2")) else faiss.index_factory(64, string)
    index.train(x)
    index.add(x)
    return index


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("string", STRINGS + ["KFlat(chi2)", "Flat", "IVF4,Flat", "HNSW8,KFlat(chi2)", "AHK128(chi2),BFlat", "HKM1(chi2),KIVF4"])
def test_an_index_and_its_names_share_a_file(tmp_path, string):
    path = tmp_path / "with.index"
    binary = string in STRINGS
    x = BITS if binary else X[:300]
    index = made(string, x)
    names = of(ids=np.random.default_rng(0).permutation(300))
    faiss_ext.write_index(index, path, names=names)
    (faiss.write_index_binary if binary else faiss.write_index)(index, str(tmp_path / "alone.index"))
    assert read_names(path) == names and read_names(tmp_path / "alone.index") is None
    assert path.read_bytes().startswith((tmp_path / "alone.index").read_bytes())
    readers = [faiss.read_index_binary, faiss_ext.read_index_binary] if binary else [faiss.read_index]
    D, I = index.search(x[:9], 3)
    for read in readers:
        for flags in (0, faiss.IO_FLAG_MMAP):
            E, J = read(str(path), flags).search(x[:9], 3)
            np.testing.assert_array_equal(D, E)
            np.testing.assert_array_equal(I, J)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=9), st.integers(-2**63, 2**63 - 1).filter(lambda i: i != -1)),
       st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.text(), st.none()), max_size=3))
def test_any_names_are_read_as_written(tmp_path_factory, pairs, about):
    path = tmp_path_factory.getbasetemp() / "any.index"
    pairs = dict(zip(pairs, dict.fromkeys(pairs.values())))  # of equal ids, one
    names = of(list(pairs), ids=list(pairs.values()))
    names.about = about
    index = faiss_ext.index_binary_factory(64, "IDMap2,BKFlat(jaccard)")
    index.add_with_ids(BITS[:len(names)], ids_of(names))
    faiss_ext.write_index(index, path, names=names)
    found = read_names(path)
    assert found == names and found.about == about and state(found) == state(names)


def test_odd_names_and_none(tmp_path):
    for texts in (ODD, []):
        faiss_ext.write_index(made("BKFlat(jaccard)", BITS[:len(texts)]), tmp_path / "odd.index", names=of(texts))
        found = read_names(tmp_path / "odd.index")
        assert list(found) == texts and found.add(["new"]).tolist() == [len(texts)]


def test_ids_are_not_used_again_after_reading(tmp_path):
    names = of()
    index = made("IDMap2,BKFlat(jaccard)")
    index.remove_ids(names.remove([299, 5]))
    faiss_ext.write_index(index, tmp_path / "some.index", names=names)
    found = read_names(tmp_path / "some.index")
    assert found.add(["new"]).tolist() == [300] and found.remove(["new", "CHEMBL0"]).tolist() == [300, 0]


@pytest.mark.parametrize("string", ["BKFlat(jaccard)", "BFlat"])
def test_truncated_and_damaged_names(tmp_path, string):
    path = tmp_path / "cut.index"
    index = made(string, BITS[:3])
    faiss.write_index_binary(index, str(path))
    alone = path.stat().st_size
    faiss_ext.write_index(index, path, names=of(["a", "bé", "c"]))
    whole = path.read_bytes()
    # nothing tells the end of a file of FAISS from the first bytes of names
    unseen = 8 if string == "BFlat" else 1
    for cut in range(alone, len(whole)):
        path.write_bytes(whole[:cut])
        if cut < alone + unseen:
            assert read_names(path) is None
        else:
            with pytest.raises(faiss_ext.VectorFileError, match="truncated or damaged") as error:
                read_names(path)
            assert str(path) in str(error.value)
        assert faiss_ext.read_index_binary(path).ntotal == 3
    for at in range(alone, len(whole)):
        for bit in (0, 7):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1:])
            with pytest.raises(faiss_ext.VectorFileError, match="damaged"):
                read_names(path)


@pytest.mark.parametrize("string, named, message", [
    ("BKFlat(jaccard)", range(299), "1 id of the index without a name, such as 299"), ("BKFlat(jaccard)", range(3), "297 ids of the index without a name, such as 3"),
    ("BKFlat(jaccard)", range(301), "1 name without a vector in the index, such as 'n300' with id 300"), ("BFlat", range(1, 301), "1 id .* such as 0"),
    ("IDMap2,BKFlat(jaccard)", range(0, 602, 2), "150 ids .* such as 1"), ("BKFlat(jaccard)", [], "300 ids"), ("BIVF2", range(302), "2 names .* such as 'n300'")])
@pytest.mark.filterwarnings("ignore")
def test_names_of_other_vectors_are_not_written(tmp_path, string, named, message):
    names = of([f"n{i}" for i in named], ids=list(named))
    with pytest.raises(ValueError, match=f"^write_index: {message}"):
        faiss_ext.write_index(made(string), tmp_path / "x.index", names=names)
    assert not list(tmp_path.iterdir())


def test_several_vectors_may_have_one_name(tmp_path):
    index = faiss.IndexBinaryIDMap(faiss.IndexBinaryFlat(64))
    index.add_with_ids(BITS[:4], np.array([7, 7, 9, 7]))
    names = of(["a", "b"], ids=[7, 9])
    faiss_ext.write_index(index, tmp_path / "x.index", names=names)
    assert read_names(tmp_path / "x.index") == names


def test_names_of_faiss_shards_are_counted(tmp_path):
    shards = faiss.IndexShards(64)
    parts = [faiss.IndexFlatL2(64) for _ in range(2)]
    for part in parts:
        part.add(X[:2])
        shards.add_shard(part)
    with pytest.raises(ValueError, match="3 names for 4 vectors"):
        faiss_ext.write_index(shards, tmp_path / "x.index", names=of(TEXTS[:3]))


@pytest.mark.parametrize("string", ["BKFlat(jaccard)", "BFlat,Refine(BKFlat(jaccard))"])
def test_a_truncated_index_is_an_error(tmp_path, string):
    path = tmp_path / "cut.index"
    for names in (None, of(TEXTS[:3])):
        faiss_ext.write_index(made(string, BITS[:3]), path, names=names)
        whole = path.read_bytes()
        faiss.write_index_binary(made(string, BITS[:3]), str(path))
        alone = path.stat().st_size
        for cut in range(4, alone):
            path.write_bytes(whole[:cut])
            with pytest.raises(faiss_ext.VectorFileError, match=f"cut.index: the index is truncated: expected .* bytes, got {cut:,}"):
                read_names(path)
        path.write_bytes(whole[:3])  # may be any file
        with pytest.raises(faiss_ext.VectorFileError, match="cut.index: the file of an index was expected, but it does not begin with one"):
            read_names(path)


def section(about=b"{}", next_id=2, ids=(0, 1), lengths=(1, 2), texts="aé", more=b""):
    texts = texts if isinstance(texts, bytes) else texts.encode()
    arrays = [np.frombuffer(about, "u1"), np.array(ids, "<i8"), np.array(lengths, "<u4"), np.frombuffer(texts, "u1")]
    about, ids, lengths, texts = (np.array([len(a)], "<u8").tobytes() + a.tobytes() for a in arrays)
    data = MAGIC + about + np.array([next_id], "<u8").tobytes() + ids + lengths + texts + more
    import hashlib
    return data + END.pack(hashlib.sha256(data).digest(), len(data) + END.size, END_MAGIC)


@pytest.mark.parametrize("wrong, message", [
    (dict(about=b"[]"), "the facts"), (dict(about=b"{"), "Expecting"), (dict(next_id=1), "the ids"), (dict(ids=(1, 0)), "the ids"),
    (dict(ids=(0, 0)), "the ids"), (dict(ids=(-1, 0)), "an id is -1"), (dict(ids=(0,)), "the lengths"), (dict(lengths=(1, 1)), "the lengths"), (dict(lengths=(1, 1), texts="aa"), "'a' occurs twice"),
    (dict(lengths=(0, 3)), "a name is empty"), (dict(lengths=(2, 1)), "utf-8"), (dict(ids=(), lengths=()), "the lengths"), (dict(texts=b"a\xff\xff"), "utf-8"), (dict(more=b"x"), "its length")])
def test_sections_of_other_programs_are_checked(tmp_path, wrong, message):
    path = tmp_path / "other.index"
    faiss.write_index_binary(made("BKFlat(jaccard)"), str(path))
    alone = path.read_bytes()
    path.write_bytes(alone + section())  # of two names
    assert read_names(path) == of(["a", "é"])
    path.write_bytes(alone + section(**wrong))
    with pytest.raises(faiss_ext.VectorFileError, match=f"malformed: .*{message}"):
        read_names(path)


def test_errors_of_writing_leave_the_file(tmp_path):
    path = tmp_path / "old.index"
    path.write_bytes(b"old")
    index, names = made("BKFlat(jaccard)"), of()
    names.about["x"] = object()
    for arguments, error in (((index, path, names), TypeError), ((index, path, TEXTS), TypeError), ((3, path, of()), TypeError),
                             ((index, faiss.VectorIOWriter(), of()), TypeError), ((index, tmp_path / "gone" / "x", of()), FileNotFoundError)):
        with pytest.raises(error):
            faiss_ext.write_index(*arguments[:2], names=arguments[2])
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ValueError, match="reads its vectors from"):
        faiss_ext.write_index(faiss_ext.file_index(tmp_path / "x.npy", "chi2"), tmp_path / "x.npy", names=of())
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), X)
    for bad, message in (("gone", "cannot be read"), ("", "cannot be read")):
        with pytest.raises(faiss_ext.VectorFileError, match=message):
            read_names(tmp_path / bad)
    (tmp_path / "empty").touch()
    for bad, message in (("empty", "but it is empty"), ("x.npy", "but it does not begin with one")):
        with pytest.raises(faiss_ext.VectorFileError, match=f"{bad}: the file of an index was expected, {message}"):
            read_names(tmp_path / bad)


def test_names_beside_shards(tmp_path):
    index = faiss_ext.build_shards([X[:100], X[100:300]], "KFlat(chi2)", progress=False)
    names = of()
    D, I = index.search(X[:5], 2)
    assert names.of(I)[:, 0].tolist() == TEXTS[:5]
