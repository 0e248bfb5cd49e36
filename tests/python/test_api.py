# SPDX-License-Identifier: MIT
"""What the package shows: names, signatures, docstrings, types, words."""

import copy
import gc
import importlib.util
import inspect
import json
import os
import pickle
import pydoc
import re
import shutil
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import numpy as np
import pytest

import faiss
import faiss_ext
from helpers import BASE

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = [(name, getattr(faiss_ext, name)) for name in faiss_ext.__all__]
TYPED_USE = Path(__file__).with_name("typed_use.py")
CLASSES = [thing for _, thing in PUBLIC if isinstance(thing, type)]
# what C++ writes and Python does not
OF_CPP = re.compile(r"\w \*|const &|std::|faiss_ext::|Swig Object")


def own_members(the_class):
    """The public members that a class of the package itself has."""
    for name, member in vars(the_class).items():
        if name.startswith("_") or name.endswith("_c"):
            continue
        yield name, getattr(member, "__func__", member)


METHODS = [
    (f"{the_class.__name__}.{name}", getattr(the_class, name), member)
    for the_class in CLASSES
    for name, member in own_members(the_class)
    if inspect.isfunction(member)]


# ------------------------------------------------------------------ names

def test_public_names_are_sorted_and_public():
    names = faiss_ext.__all__
    assert names == sorted(set(names))
    assert not [name for name in names if name.startswith("_")]
    assert not {"cvar", "SwigPyIterator", "faiss"} & set(names)
    assert {"describe", "kernel_names", "KernelizedLSH", "read_index"} < set(names)


def test_version_is_that_of_the_project():
    text = (ROOT / "CMakeLists.txt").read_text().split("project(", 1)[1]
    assert faiss_ext.__version__ == re.search(r"VERSION\s+([0-9.]+)", text)[1]


# ---------------------------------------------------------- documentation

def test_everything_public_is_documented():
    for name, thing in PUBLIC:
        doc = inspect.getdoc(thing)
        assert doc and not OF_CPP.search(doc.splitlines()[0]), name
    assert len(METHODS) > 50
    for name, method, _ in METHODS:
        doc = inspect.getdoc(method)
        assert doc and not doc.startswith(("Parameters\n", "Returns\n")), name
        assert ":param" not in doc and ":type" not in doc, name
    text = pydoc.plain(pydoc.render_doc(faiss_ext))
    assert "float const" not in text and "Swig Object" not in text


def test_docstrings_are_made_when_the_module_is_built():
    source = inspect.getsource(faiss_ext.swigfaiss_ext)
    assert "Parameters\n----------\n" in source
    assert not re.findall(
        r":(?:param|r?type|returns?)\b.*|\*Overload.*|\w+::.*|\bconst [&*].*", source)


def test_signatures_name_arguments_in_pythons_types():
    functions = [(name, function) for name, _, function in METHODS]
    functions += [(n, f) for n, f in PUBLIC if inspect.isfunction(f)]
    functions += [
        (f"{c.__name__}.__init__", vars(c)["__init__"]) for c in CLASSES if "__init__" in vars(c)
    ]
    for name, function in functions:
        signature = inspect.signature(function)
        assert not OF_CPP.search(str(signature)), name
        parameters = signature.parameters.values()
        kinds = {p.kind for p in parameters}
        assert not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}, name
        # with parameters to explain, there is a section for them
        if {p.name for p in parameters} - {"self"} and function.__doc__:
            assert "Parameters\n" in function.__doc__, name


# -------------------------------------------------------------- describe

def test_descriptions(capsys):
    names = faiss_ext.described_names()
    for some in (faiss_ext.kernel_names(), faiss_ext.map_names(), faiss_ext.hash_names()):
        assert some and set(some) <= set(names)
    for name in names:
        description = faiss_ext.describe(name)
        assert description.name == name
        assert description.summary.endswith(".")
        text = repr(description)
        assert len(description) == len(list(description))
        for field in description:
            key, values, default, meaning = field
            assert description[key] is field
            assert values and meaning
            assert f"\n{key} " in text and meaning in text
    description = faiss_ext.describe("AHK")
    assert description["order"].default == "1"
    assert str(description).startswith("AHK: ")
    assert capsys.readouterr().out == ""  # it is returned, not printed
    with pytest.raises(KeyError):
        description["ordre"]
    with pytest.raises(ValueError, match="'AHX'.*AHK"):
        faiss_ext.describe("AHX")
    with pytest.raises(TypeError):
        faiss_ext.describe(3)


# ------------------------------------------------------ enumerators' words

def words_of(name, key):
    return set(re.split(", | or ", faiss_ext.describe(name)[key].values))


def homogeneous_map():
    return faiss_ext.HomogeneousKernelMap(4, faiss_ext.Chi2Kernel())


@pytest.mark.parametrize(
    "name, make, attribute, key",
    [
        ("HKM", homogeneous_map, "negative", "negative"),
        ("HKM", homogeneous_map, "norm", "norm"),
        ("KLSH", lambda: faiss_ext.KernelizedLSH(4, 8, faiss_ext.LinearKernel()), "draw", "draw"),
        ("RHBE", lambda: faiss_ext.ProjectionChoice("dense"), "kind", "proj"),
        ("RHBE", lambda: faiss_ext.ProjectionChoice("bilinear"), "w", "w")])
def test_enumerators_are_words(name, make, attribute, key):
    words = words_of(name, key)
    thing = make()
    assert getattr(thing, attribute) in words
    for word in words:
        setattr(thing, attribute, word)
        assert getattr(thing, attribute) == word
    before = getattr(thing, attribute)
    with pytest.raises(ValueError) as error:
        setattr(thing, attribute, "other")
    assert all(f"'{word}'" in str(error.value) for word in words)
    with pytest.raises(TypeError):
        setattr(thing, attribute, 0)
    assert getattr(thing, attribute) == before


def test_words_of_a_string_and_of_its_object_are_the_same():
    for kind in words_of("RHBE", "proj"):
        proj = faiss_ext.ProjectionChoice(kind)
        hash = faiss_ext.HyperplaneHash(d=16, nbits=64, proj=proj)
        twin = faiss_ext.kernel_hash_factory(16, f"RHBE64(proj={kind})")
        resolved = "structured" if kind == "auto" else kind
        assert hash.description() == twin.description()
        assert hash.proj.kind == twin.proj.kind == resolved
    for rot in words_of("RHBE", "rot"):
        hash = faiss_ext.HyperplaneHash(d=16, nbits=64, rot=rot)
        twin = faiss_ext.kernel_hash_factory(16, f"RHBE64(rot={rot})")
        assert hash.description() == twin.description() and twin.rot == rot
    assert faiss_ext.GaussianKernel().norm() == "l2"


def test_constructors_take_keywords():
    hash = faiss_ext.AdditiveKernelHash(map=homogeneous_map(), nbits=64, center=True, seed=7)
    assert hash.center and hash.seed == 7 and hash.nbits == 64
    storage = faiss.IndexBinaryFlat(64)
    index = faiss_ext.IndexKernelHash(storage=storage, hash=hash)
    del hash, storage
    assert index.hash.seed == 7 and index.storage.d == 64
    with pytest.raises(ValueError, match="window"):
        faiss_ext.HomogeneousKernelMap(4, faiss_ext.Chi2Kernel(), window="round")


@pytest.mark.parametrize("module, is_error", [
    ("faiss_ext.parameters", True), ("faiss_ext", True), ("test_api", True), ("helpers", True), ("dask.base", False)])
def test_deprecated_calls_of_ours_are_errors(module, is_error):
    with warnings.catch_warnings(record=True) as seen:
        try:
            warnings.warn_explicit("old", DeprecationWarning, "file.py", 1, module)
        except DeprecationWarning:
            assert is_error
        else:
            assert not is_error and len(seen) == 1


def test_dir_has_public_names_only():
    assert set(dir(faiss_ext)) == {*faiss_ext.__all__, "__version__", "cvar"}
    for name in dir(faiss_ext):
        assert not inspect.ismodule(getattr(faiss_ext, name))


# ------------------------------------------------- numbers and subclasses

def calls_with_numbers(folder):
    """Calls of what takes a number, by name: whole numbers, then others."""
    np.save(folder / "x.npy", BASE)
    flat = faiss_ext.index_factory(64, "KFlat(chi2)")
    flat.add(BASE)
    lists = faiss_ext.index_factory(64, "KIVF4")
    lists.train(BASE)
    codes = faiss_ext.index_binary_factory(64, "BKFlat(jaccard)")
    codes.add(np.packbits(BASE[:9] > 0, axis=1))
    queries = np.packbits(BASE[:1] > 0, axis=1)
    hash = faiss_ext.kernel_hash_factory(64, "CWS64")
    kernel = faiss_ext.GaussianKernel(0.5)
    calibration = faiss_ext.Calibration(range(99), range(99))
    whole = {
        "add_next": lambda n: faiss_ext.file_index(folder / "x.npy", "chi2", n=3).add_next(n),
        "neighbor": lambda n: faiss_ext.mean_neighbor_distance(BASE[:99], neighbor=n, seed=n),
        "index_factory": lambda n: faiss_ext.index_factory(n, "KFlat(chi2)"),
        "reconstruct": flat.reconstruct,
        "reconstruct_n": lambda n: flat.reconstruct_n(n, n),
        "binary reconstruct": codes.reconstruct,
        "binary search": lambda n: codes.search(queries, n),
        "search": lambda n: flat.search(BASE[:1], n),
        "search_scores": lambda n: flat.search_scores(BASE[:1], n),
        "lipschitz_constant": kernel.lipschitz_constant,
        "width": lambda n: faiss_ext.Calibration([1, 2], [3, 4], width=n),
        "set_index_parameter": lambda n: faiss_ext.set_index_parameter(lists, "nprobe", n),
        "attribute": lambda n: setattr(lists, "nprobe", n),
        "bits_for": lambda n: faiss_ext.bits_for(n, 0.1, 0.1),
        "recommend": lambda n: faiss_ext.recommend(BASE[:50], "chi2", k=n, seed=n),
    }
    real = {
        "distance": codes.distance,
        "kernel_interval": lambda v: hash.kernel_interval(v, v / 4),
        "kernel_estimate": hash.kernel_estimate,
        "profile": kernel.profile,
        "range_search": lambda v: flat.range_search(BASE[:1], v),
        "constructor": faiss_ext.GaussianKernel,
        "interval": lambda v: calibration.interval([3], v / 4),
    }
    return whole, real


def test_numbers_of_numpy_are_numbers(tmp_path):
    whole, real = calls_with_numbers(tmp_path)
    for call in whole.values():
        for number in (np.uint8(1), np.int32(1), np.int64(1), np.array(1)):
            call(number)
    for call in real.values():
        for number in (np.int32(1), np.float32(1), np.float64(1), np.array(1), np.array(1.0)):
            call(number)
    with pytest.raises(TypeError, match="add_next: n must be int, got 0.5"):
        whole["add_next"](np.float32(0.5))


class MyKernel(faiss_ext.GaussianKernel):
    pass


class MyMap(faiss_ext.HomogeneousKernelMap):
    pass


class MyHash(faiss_ext.HyperplaneHash):
    pass


class MyIndex(faiss_ext.IndexFlatKernel):
    pass


class MyBinaryIndex(faiss_ext.IndexBinaryFlatKernel):
    pass


class MyIds(faiss_ext.IndexIDTable):
    pass


@pytest.mark.parametrize("make", [
    lambda: MyKernel(0.5), lambda: MyMap(4, faiss_ext.Chi2Kernel()), lambda: MyHash(16, 64),
    lambda: MyIndex(4, faiss_ext.GaussianKernel(0.5)), lambda: MyBinaryIndex(64),
    lambda: MyIds(faiss_ext.index_factory(4, "KFlat(chi2)"))],
    ids=["kernel", "map", "hash", "index", "binary index", "IDMap2"])
def test_subclasses_come_back_from_copies_and_pickles(make):
    thing = make()
    vars(thing)["notes"] = ["mine"]  # (newer versions of FAISS refuse to assign it)
    for function in (copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))):
        found = function(thing)
        assert type(found) is type(thing) and found.notes == ["mine"]
        assert (found.notes is thing.notes) == (function is copy.copy)
        assert str(found) == str(thing)
        del found  # an object of its own
        gc.collect()
    assert thing.notes == ["mine"] and str(thing)


# ------------------------------------------------------------------ types

def test_stubs_are_up_to_date():
    package = Path(faiss_ext.__file__).parent
    assert (package / "py.typed").is_file()
    script = ROOT / "scripts" / "make_stubs.py"
    if not script.is_file():
        pytest.skip("scripts/make_stubs.py is not here")
    spec = importlib.util.spec_from_file_location("make_stubs", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (package / "__init__.pyi").read_text() == module.stubs()


MYPY_CONFIGURATION = r"""[mypy]
strict = True
[mypy-faiss.*]
ignore_missing_imports = True
# FAISS has no types to derive from
[mypy-faiss_ext]
disallow_subclassing_any = False
# what only the package itself imports has no types
[mypy-faiss_ext.*]
ignore_errors = True
[mypy-_swigfaiss_ext.*,__builtin__.*]
ignore_missing_imports = True
"""
# the package's other modules, what is FAISS's, and what takes pointers
NOT_IN_STUBS = r"""
faiss_ext\.(__main__|advice|calibration|check_faiss|check_layouts|class_wrappers|command_line|description|distances|documentation|environment)(\..*)?
faiss_ext\.(arguments|build_folder|extend_faiss|files|filters|id_files|index_tree|parameters|progress|showing|strings|vector_files)(\..*)?
faiss_ext\.(swigfaiss_ext|_swigfaiss_ext|_layouts|_version|cvar)(\..*)?
faiss_ext\..*\.(\w+_c|thisown|__swig_destroy__|apply_py)
faiss_ext\..*\.__(deep)?copy__
# a default value that Python has no word for
faiss_ext\.(\w+Hash|\w+Map|IndexFlatKernel)\.__init__
faiss_ext\.(Field\..*|Recommendation\.__\w+__)
"""


@pytest.fixture
def mypy(tmp_path, monkeypatch):
    """Runs a module of mypy in a folder with its configuration."""
    pytest.importorskip("mypy")
    (tmp_path / "mypy.ini").write_text(MYPY_CONFIGURATION)
    package = str(Path(faiss_ext.__file__).parents[1])
    if package != sysconfig.get_path("purelib"):  # where mypy looks by itself
        monkeypatch.setenv("MYPYPATH", package)

    def run(module, *arguments):
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return run


@pytest.mark.skipif(
    os.environ.get("FAISS_EXT_CHECK_STUBS") != "1", reason="takes half a minute; scripts/nightly.sh runs it")
@pytest.mark.skipif(
    not hasattr(type(faiss_ext.cvar), "__module__"),
    reason="mypy wants every type to have a module; that of cvar in SWIG 4.3 has none")
def test_stubs_are_those_of_the_package(mypy, tmp_path):
    (tmp_path / "allowed").write_text(NOT_IN_STUBS)
    result = mypy(
        "mypy.stubtest", "faiss_ext", "--mypy-config-file", "mypy.ini", "--allowlist",
        "allowed", "--ignore-unused-allowlist", "--concise")
    assert result.returncode == 0, result.stdout + result.stderr


def test_types_of_a_program(mypy, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import numpy as np
import faiss_ext

kernel: faiss_ext.Kernel = faiss_ext.kernel_factory("gaussian")
kernel.train(np.zeros((3, 4)))
matrix = kernel.gram([[1.0, 2.0]])
shape: tuple[int, ...] = matrix.shape
hash = faiss_ext.kernel_hash_factory(4, "SIK64(gaussian)")
bits: int = hash.nbits
hash.nbits = "many"
faiss_ext.HomogeneousKernelMap(4, faiss_ext.Chi2Kernel(), window=3)
names: list[str] = faiss_ext.kernel_names()
for field in faiss_ext.describe("AHK"):
    key: str = field.key
""")
    output = mypy("mypy", "--config-file", "mypy.ini", "program.py").stdout
    errors = [line for line in output.splitlines() if ": error:" in line]
    # the two mistakes, and no more
    assert {int(line.split(":")[1]) for line in errors} == {11, 12}, output


def test_types_of_ordinary_use_by_mypy(mypy):
    result = mypy("mypy", "--config-file", "mypy.ini", str(TYPED_USE))
    assert result.returncode == 0, result.stdout + result.stderr


def test_types_of_ordinary_use_by_pyright(tmp_path):
    pyright = shutil.which("basedpyright", path=os.pathsep.join(
        [str(ROOT / "build" / "pyright" / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]))
    if pyright is None:
        pytest.skip("basedpyright is not installed: scripts/install_deps.sh test")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({
        "typeCheckingMode": "standard", "include": [str(TYPED_USE)],
        "extraPaths": [str(Path(faiss_ext.__file__).parents[1])]}))
    result = subprocess.run(
        [pyright, "--pythonpath", sys.executable, "--project", str(tmp_path)],
        capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_ordinary_use_runs():
    subprocess.run([sys.executable, TYPED_USE], check=True, capture_output=True)
