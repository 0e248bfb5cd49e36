# SPDX-License-Identifier: MIT
"""The faiss module that is there: one copy of what it brings in the process, and
refusals where it does not fit."""

import os
import re
import subprocess
import sys
from pathlib import Path

import faiss
import numpy as np
import pytest

import faiss_ext
from faiss_ext import _layouts, check_faiss, check_layouts
from faiss_ext._layouts import LAYOUTS, Field
from helpers import X


def output_of(code, **kwargs):
    result = subprocess.run(
        [sys.executable, "-c", code], text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, **kwargs)
    assert result.returncode == 0, result.stdout
    return result.stdout


def test_one_faiss_one_openmp_one_blas():
    """All that comes with the package is its module and Highway."""
    added = output_of("""
import os
import re

def libraries():
    maps = open("/proc/self/maps").read()
    return set(re.findall(r"/\\S*/(\\S+\\.so\\S*)$", maps, re.MULTILINE))

import faiss, ctypes, _ctypes, mmap
before = libraries()
assert any("faiss" in name for name in before), before
import faiss_ext
# a computation by OpenMP and LAPACK
x = faiss.rand((300, 8))
index = faiss.index_factory(8, "KPCA8(gaussian),Flat")
index.train(x)
index.add(x)
index.search(x, 1)
print(*sorted(libraries() - before))
""").split()
    kinds = [name for name in added
             if re.search("faiss|omp|blas|lapack|mkl", name) and "_ext" not in name]
    assert kinds == []
    assert any(name.startswith("_swigfaiss_ext") for name in added)


def test_without_faiss_the_import_says_how_to_install_it():
    assert "faiss_ext needs the module faiss: pip install faiss-cpu" in output_of("""
import sys
sys.modules["faiss"] = None
try:
    import faiss_ext
except ModuleNotFoundError as error:
    print(error.name, error)
""")


def test_the_number_of_threads_is_that_of_faiss():
    counts = output_of("""
import os
import faiss, faiss_ext
import numpy as np

faiss.omp_set_num_threads(1)  # before the first thread is made
x = np.random.default_rng(1).random((20000, 64), dtype=np.float32)
index = faiss.index_factory(64, "KFlat(chi2)")
index.add(x)
h = faiss_ext.kernel_hash_factory(64, "AHK256(chi2)")
for threads in 1, 3:
    faiss.omp_set_num_threads(threads)
    h.encode(x)
    index.search(x[:500], 10)
    print(len(os.listdir("/proc/self/task")))
""", env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}).split()
    one, three = map(int, counts)
    assert three == one + 2


class Faiss:
    """The faiss module with the number of another version."""

    __path__ = ["/somewhere/faiss"]

    def __init__(self, version):
        self.__version__ = version

    def __getattr__(self, name):
        return getattr(faiss, name)


def test_faiss_of_another_version_is_refused():
    version = check_faiss.FAISS_VERSION  # of the headers
    major, minor, patch = map(int, version.split(".")[:3])
    for other in (f"{major}.{minor}0.{patch}", f"{major}.{minor + 1}.{patch}",
                  f"{major + 1}.{minor}.{patch}"):
        with pytest.raises(ImportError) as error:
            check_faiss.check(Faiss(other))
        for named in (other, version, "/somewhere/faiss",
                      f"pip install 'faiss-cpu=={version}.*'"):
            assert named in str(error.value)


def test_a_patch_release_with_the_same_layouts_is_accepted():
    major, minor, patch = map(int, faiss.__version__.split(".")[:3])
    for other in faiss.__version__, f"{major}.{minor}.{patch + 1}":
        check_faiss.check(Faiss(other))


def test_a_patch_release_with_other_layouts_is_refused(monkeypatch):
    layout = LAYOUTS["IndexBinaryIVF"]
    offset = layout.fields["nprobe"].offset
    moved = {**layout.fields, "nprobe": layout.fields["nprobe"]._replace(offset=offset + 8)}
    monkeypatch.setitem(LAYOUTS, "IndexBinaryIVF", layout._replace(fields=moved))
    major, minor, patch = map(int, faiss.__version__.split(".")[:3])
    other = f"{major}.{minor}.{patch + 1}"
    with pytest.raises(ImportError) as error:
        check_faiss.check(Faiss(other))
    for named in (check_faiss.FAISS_VERSION, f"faiss {other} in /somewhere/faiss",
                  f"the offset of faiss::IndexBinaryIVF::nprobe is {offset}, expected {offset + 8}",
                  f"pip install 'faiss-cpu=={check_faiss.FAISS_VERSION}.*'"):
        assert named in str(error.value)


def test_layouts_of_the_headers_are_those_of_the_library():
    moved, differences = check_layouts.compare(faiss)
    assert differences == []
    # the wheel is also tested with the next patch release of FAISS
    assert moved == {} or faiss.__version__ != check_faiss.FAISS_VERSION


def with_layout(monkeypatch, name, **changes):
    """The comparison when the headers have another layout of a class."""
    with monkeypatch.context() as patch:
        patch.setitem(LAYOUTS, name, LAYOUTS[name]._replace(**changes))
        return check_layouts.compare(faiss)


MOVED, _ = check_layouts.compare(faiss)


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_every_field_is_looked_at(monkeypatch, name):
    for key, field in LAYOUTS[name].fields.items():
        here = field.offset + MOVED.get(f"{name}::{key}", 0)
        for offset in here - field.size, here + field.size:
            moved, differences = with_layout(
                monkeypatch, name, fields={key: field._replace(offset=offset)})
            if field.is_movable:
                assert moved[f"{name}::{key}"] == here - offset and differences == []
            else:
                assert differences == [
                    f"the offset of faiss::{name}::{key} is {here}, expected {offset}"]


EXACT = [name for name, layout in sorted(LAYOUTS.items()) if layout.least_size]


@pytest.mark.parametrize("name", EXACT)
def test_every_exact_size_is_looked_at(monkeypatch, name):
    """Allocators may add some bytes: up to 24 in glibc's."""
    size = LAYOUTS[name].most_size
    assert size == LAYOUTS[name].least_size
    for other in [size + 32] + [size - 32] * (size > 64):
        _, (text,) = with_layout(monkeypatch, name, least_size=other, most_size=other)
        found, expected = map(int, re.fullmatch(
            rf"faiss::{name} occupies (\d+) bytes, expected (\d+)", text).groups())
        assert expected == other and size <= found <= size + 24


@pytest.mark.parametrize("name", ["IndexHNSW", "IndexBinaryHNSW", "IndexBinaryIVF"])
def test_classes_that_faiss_constructs_may_be_smaller(monkeypatch, name):
    _, (text,) = with_layout(monkeypatch, name, most_size=64)
    found, most = map(int, re.fullmatch(
        rf"faiss::{name} occupies (\d+) bytes, expected at most (\d+)", text).groups())
    assert most == 64
    for most, is_accepted in (found - 48, False), (found, True), (found + 1000, True):
        _, differences = with_layout(monkeypatch, name, most_size=most)
        assert (differences == []) == is_accepted


def test_the_extension_uses_fields_where_they_are_found():
    """If the headers had nprobe one field earlier, the extension takes the next
    field, max_codes, for it."""
    assert output_of(f"""
import importlib.util, sys
import faiss

name = "faiss_ext._layouts"
spec = importlib.util.spec_from_file_location(name, {_layouts.__file__!r})
sys.modules[name] = layouts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(layouts)
fields = layouts.LAYOUTS["IndexIVFFlat"].fields
distance = fields["max_codes"].offset - fields["nprobe"].offset
fields["nprobe"] = fields["nprobe"]._replace(offset=fields["nprobe"].offset - distance)

import faiss_ext

index = faiss.index_factory(4, "IVF2,Flat")
index.nprobe, index.max_codes = 3, 70
print(faiss_ext.index_parameters(index))
""") == "{'nprobe': 70, 'max_codes': 70}\n"


@pytest.mark.parametrize("name", [
    "IndexFlatL2", "IndexHNSW", "IndexPreTransform", "IndexRefine", "IndexIDMap",
    "IndexIVFFlat", "IndexBinaryFlat", "IndexBinaryHNSW", "IndexBinaryIVF",
    "ArrayInvertedLists", "PCAMatrix", "IDSelectorRange", "VectorIOReader",
    "VectorIOWriter"])
def test_virtual_functions_are_counted(monkeypatch, name):
    count = LAYOUTS[name].virtual_functions
    for other in count - 1, count + 1:
        _, differences = with_layout(monkeypatch, name, virtual_functions=other)
        assert differences == [
            f"faiss::{name} has {count} virtual functions, expected {other}"]


def test_fields_that_are_absent_or_null_are_refused(monkeypatch):
    monkeypatch.setattr(faiss.HNSWStats, "null", None, raising=False)
    for field in "no_such_field", "null":
        for is_movable in False, True:
            moved, differences = with_layout(
                monkeypatch, "HNSWStats", fields={field: Field(8, 8, is_movable)})
            assert moved == MOVED and differences == [
                f"the offset of faiss::HNSWStats::{field} is unknown, expected 8"]


def test_another_type_table_is_refused(monkeypatch):
    monkeypatch.setattr(check_faiss, "SWIG_TYPE_TABLE", "swig_runtime_data99")
    with pytest.raises(ImportError, match="swig_runtime_data99"):
        check_faiss.check(faiss)


def test_tables_of_other_modules_do_no_harm(monkeypatch):
    monkeypatch.setitem(sys.modules, "swig_runtime_data99", sys)
    check_faiss.check(faiss)
    monkeypatch.setattr(check_faiss, "SWIG_TYPE_TABLE", "swig_runtime_data99")
    with pytest.raises(ImportError, match="swig_runtime_data99"):
        check_faiss.check(faiss)


def test_the_extension_is_not_loaded_where_it_does_not_fit():
    text = output_of("""
import faiss, sys
faiss.__version__ = "0.1.2"
try:
    import faiss_ext
except ImportError as error:
    print(error)
print("loaded" if "faiss_ext._swigfaiss_ext" in sys.modules else "not loaded")
""")
    assert "0.1.2" in text and "not loaded" in text


# What FAISS has had since the version given.

def since(version):
    mine = tuple(map(int, faiss.__version__.split(".")))
    return pytest.mark.skipif(
        mine < tuple(map(int, version.split("."))), reason=f"FAISS < {version}")


def filled(string, x, d=64):
    index = faiss.index_factory(d, string)
    index.train(x)
    index.add(x)
    return index


@since("1.14")
@pytest.mark.parametrize("string", [
    "HKM1(chi2),Flat", "HKM1(chi2),IVF8,Flat,Refine(KFlat(chi2))", "Flat",
    "AHK64(chi2),BFlat", "IDMap2,RFF128(gaussian),HNSW8"])
def test_files_are_mapped_into_memory(tmp_path, string):
    index = faiss.index_factory(64, string)
    index.train(X)
    index.add_with_ids(X, np.arange(len(X))) if "IDMap" in string else index.add(X)
    name = str(tmp_path / "index")
    faiss.write_index(index, name)
    mapped = faiss.read_index(name, faiss.IO_FLAG_MMAP_IFC)
    assert name in Path("/proc/self/maps").read_text()
    for a, b in zip(index.search(X[:50], 5), mapped.search(X[:50], 5)):
        np.testing.assert_array_equal(a, b)
    # it stays mapped as long as it is needed, and goes with the index
    os.remove(name)
    mapped.search(X[:5], 5)
    del mapped
    assert name not in Path("/proc/self/maps").read_text()
    with pytest.raises(RuntimeError, match="missing"):
        faiss.read_index(str(tmp_path / "missing"), faiss.IO_FLAG_MMAP_IFC)


@pytest.mark.parametrize("string", [
    "HKM1(chi2),PCAR32,IVF8,PQ16x4fs,Refine(KFlat(chi2))",
    "KPCA32(chi2),PQ16x4fs",
    "RFF128(gaussian),PQ16x4fs,RFlat",
    *(pytest.param(string, marks=since("1.11")) for string in (
        "HKM1(chi2),IVF8,RaBitQ", "KPCA32(chi2),IVF8,RaBitQ",
        "RFF128(gaussian),RaBitQ", "HKM1(chi2),IVF8,RaBitQ,Refine(KFlat(chi2))"))])
def test_codes_of_faiss_behind_a_map(tmp_path, string):
    index = filled(string, X)
    found = index.search(X[:100], 10)[1]
    exact = filled("KFlat(gaussian)" if "gaussian" in string else "KFlat(chi2)", X)
    truth = exact.search(X[:100], 10)[1]
    common = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, truth)])
    assert common > 100 * 10 / len(X)  # far more than by chance
    faiss.write_index(index, str(tmp_path / "index"))
    again = faiss.read_index(str(tmp_path / "index"))
    np.testing.assert_array_equal(again.search(X[:100], 10)[1], found)


@since("1.13")
def test_typed_arrays():
    """add_ex, search_ex: vectors of a type that is named."""
    index = filled("HKM1(chi2),Flat,Refine(KFlat(chi2))", X)
    other = faiss.index_factory(64, "HKM1(chi2),Flat,Refine(KFlat(chi2))")
    other.train(X)
    other.add(X, numeric_type=faiss.Float32)
    found = other.search(X[:5], 5, numeric_type=faiss.Float32)
    for a, b in zip(index.search(X[:5], 5), found):
        np.testing.assert_array_equal(a, b)


@since("1.8")
@pytest.mark.parametrize("storage", ["BFlat", "BPerm(M=5,B=40)"])
def test_search_parameters_of_binary_indexes(storage):
    index = faiss.index_binary_factory(64, f"AHK64(chi2),{storage}")
    index.train(X)
    index.add(X)
    even = faiss.IDSelectorBatch(np.arange(0, len(X), 2))
    found = index.search(X[:50], 5, params=faiss.SearchParameters(sel=even))[1]
    assert (found % 2 == 0).all()


@since("1.8")
def test_search_parameters_of_refine():
    index = filled("HKM1(chi2),PCAR32,IVF16,Flat,Refine(KFlat(chi2))", X)
    ivf = faiss.extract_index_ivf(index.base_index)
    ivf.nprobe, index.k_factor = 4, 8
    expected = index.search(X[:50], 5)
    ivf.nprobe, index.k_factor = 1, 1
    assert (index.search(X[:50], 5)[1] != expected[1]).any()
    params = faiss.IndexRefineSearchParameters(
        k_factor=8, base_index_params=faiss.SearchParametersPreTransform(
            index_params=faiss.SearchParametersIVF(nprobe=4)))
    for a, b in zip(index.search(X[:50], 5, params=params), expected):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(RuntimeError, match="expected SearchParametersRefine or IndexRefineSearchParameters"):
        index.search(X[:5], 5, params=faiss.SearchParametersIVF(nprobe=4))
    params.k_factor = 2.0**60
    with pytest.raises(RuntimeError, match=r"k_factor is .*, expected a number from 1 to 1e\+09"):
        index.search(X[:16], 1, params=params)
    everything = faiss.index_factory(64, "Flat,Refine(KFlat(chi2))")
    everything.add(X)
    params = faiss.IndexRefineSearchParameters(k_factor=8e8)
    np.testing.assert_array_equal(
        everything.search(X[:9], 5, params=params)[1],
        filled("KFlat(chi2)", X).search(X[:9], 5)[1])
    params.sel = faiss.IDSelectorRange(0, 100)
    with pytest.raises(RuntimeError, match="into base_index_params"):
        index.search(X[:5], 5, params=params)
    params.k_factor = 0.5
    with pytest.raises(ValueError, match="k_factor must be at least 1, got 0.5"):
        index.search(X[:5], 5, params=params)


def test_refine_behind_a_transform():
    """The exact kernel on rotated vectors: the same as on the vectors."""
    inner = faiss.index_factory(64, "SIK128(gaussian,gamma=1),BFlat,Refine(KFlat(gaussian,gamma=1))")
    inner.k_factor = len(X) / 5
    rotation = faiss.RandomRotationMatrix(64, 64)
    rotation.init(1)
    index = faiss.IndexPreTransform(rotation, inner)
    index.add(X)
    D, I = index.search(X[:50], 5)
    expected = filled("KFlat(gaussian,gamma=1)", X).search(X[:50], 5)
    np.testing.assert_allclose(D, expected[0], atol=1e-5)
    assert np.mean(I == expected[1]) > 0.95
    if tuple(map(int, faiss.__version__.split(".")))[:2] >= (1, 8):
        params = faiss.SearchParametersPreTransform(
            index_params=faiss.IndexRefineSearchParameters(k_factor=inner.k_factor))
        inner.k_factor = 1
        for a, b in zip(index.search(X[:50], 5, params=params), (D, I)):
            np.testing.assert_array_equal(a, b)
