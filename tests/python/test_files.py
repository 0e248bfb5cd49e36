# SPDX-License-Identifier: MIT
"""Files, copies and pickles in Python; and that FAISS's own are what they were."""

import copy
import importlib
import inspect
import io
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import faiss
import faiss_ext
import numpy as np
import pytest
from helpers import IP, L2, assert_equal, fill, made, made_binary, taken_by, taken_by

SIK = "SIK64(gaussian,gamma=0.001,seed=5)"
CODES, KFLAT = f"{SIK},BFlat", "KFlat(gaussian,gamma=0.001)"
STRINGS = [
    CODES, f"{SIK},BHash4x8", f"{SIK},BIVF8", "SIK64(matern,nu=0.7),BHNSW8",
    "KFlat(gaussian)", "HNSW8,KFlat(laplacian,gamma=0.01)", f"{CODES},RFlat",
    f"IDMap,{CODES}", f"IDMap2,{CODES},Refine(KFlat(gaussian))",
    "PCA16,L2norm,KFlat(linear)"]
BINARY_STRINGS = [*STRINGS[:4], f"{SIK},BHash12", f"IDMap,{CODES}", f"IDMap2,{SIK},BHNSW8"]


def by_hand():
    """FAISS's wrappers around our objects, put together in Python."""
    hash = faiss_ext.ShiftInvariantHash(64, 32, faiss_ext.GaussianKernel(0.001))

    def part(string=CODES):
        return faiss.index_factory(64, string)

    shards = faiss.IndexShards(64, False, True)
    replicas = faiss.IndexReplicas(64)
    for _ in range(2):
        shards.add_shard(part(KFLAT))
        replicas.addIndex(part())
    refined = faiss.IndexRefineFlat(part())
    refined.k_factor = 7
    return [
        faiss_ext.IndexKernelHash(hash, faiss.IndexBinaryFlat(32)),
        faiss.IndexPreTransform(hash, faiss.IndexFlatL2(32)),
        faiss.IndexIDMap2(faiss.IndexRefine(part(), part(KFLAT))),
        faiss.IndexHNSW(part(KFLAT), 8), *(refined, shards, replicas)]


@pytest.fixture(scope="module")
def indexes(digits):
    """Filled float indexes of all classes and wrappers, both metrics."""
    found = [faiss.index_factory(64, s, metric) for s in STRINGS for metric in (L2, IP)]
    return [fill(index, digits.base[:300]) for index in found + by_hand()]


@pytest.fixture(scope="module")
def binary_indexes(digits):
    x = digits.base[:300]
    found = [made_binary(string, x) for string in BINARY_STRINGS]
    shards = faiss.IndexBinaryShards(64, False, True)
    replicas = faiss.IndexBinaryReplicas(64)
    for _ in range(2):
        shards.add_shard(faiss.index_binary_factory(64, CODES))
        replicas.addIndex(faiss.index_binary_factory(64, CODES))
    for index in (shards, replicas):
        for i in range(2):
            faiss.downcast_IndexBinary(index.at(i)).train(x)
        fill(index, x)
        found.append(index)
    return found


def through_path(index, folder, write, read):
    write(index, folder / "größe.index")
    return read(folder / "größe.index")


def through_callbacks(index, folder, write, read):
    f = io.BytesIO()
    write(index, faiss.PyCallbackIOWriter(f.write))
    f.seek(0)
    return read(faiss.PyCallbackIOReader(f.read))


def through_buffers(index, folder, write, read):
    f = io.BytesIO()
    # the writer goes out of use here, which flushes
    write(index, faiss.BufferedIOWriter(faiss.PyCallbackIOWriter(f.write), 100))
    f.seek(0)
    return read(faiss.BufferedIOReader(faiss.PyCallbackIOReader(f.read), 100))


def through_vectors(index, folder, write, read):
    writer = faiss.VectorIOWriter()
    write(index, writer)
    reader = faiss.VectorIOReader()
    reader.data = writer.data
    return read(reader)


WAYS = [through_path, through_callbacks, through_buffers, through_vectors]


def copies_of(index, folder):
    """An index through files, streams, arrays, pickles and clones."""
    is_binary = isinstance(index, faiss.IndexBinary)
    kind = "index_binary" if is_binary else "index"
    for module in (faiss, faiss_ext):
        write = getattr(module, f"write_{kind}")
        read = getattr(module, f"read_{kind}")
        for way in WAYS:
            yield way(index, folder, write, read)
    serialized = getattr(faiss, f"serialize_{kind}")(index)
    yield getattr(faiss, f"deserialize_{kind}")(serialized)
    yield (faiss_ext.clone_binary_index if is_binary else faiss.clone_index)(index)
    if is_binary and type(index).__module__.startswith("faiss."):
        return  # FAISS 1.7.3 does not pickle its binary indexes
    yield copy.deepcopy(index)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        yield pickle.loads(pickle.dumps(index, protocol))


def assert_same(index, twin, queries):
    assert type(twin) is type(index)
    for name in ("d", "ntotal", "is_trained", "metric_type"):
        assert getattr(twin, name) == getattr(index, name), name
    for part in ("base_index", "refine_index", "storage", "index", "hash"):
        if hasattr(index, part):
            # FAISS reads an IndexFlat as an IndexFlatL2 or IndexFlatIP
            assert isinstance(getattr(twin, part), type(getattr(index, part)))
    assert_equal(twin.search(queries, 6), index.search(queries, 6))


# ------------------------------------------------------------ round trips

def test_indexes_come_back_the_same(digits, indexes, tmp_path):
    for index in indexes:
        ntotal = index.ntotal
        for twin in copies_of(index, tmp_path):
            assert_same(index, twin, digits.queries)
            # the copy is its own
            twin.reset()
            assert index.ntotal == ntotal and twin.ntotal == 0


def test_binary_indexes_come_back_the_same(digits, binary_indexes, tmp_path):
    for index in binary_indexes:
        for twin in copies_of(index, tmp_path):
            assert_same(index, twin, taken_by(index, digits.queries))


@pytest.mark.parametrize("name, message", [("a\0b", "null character"), ("a\udcffb", "not UTF-8")])
def test_names_that_faiss_cannot_open_are_refused(tmp_path, name, message):
    index = faiss.index_factory(8, "KFlat(linear)")
    name = str(tmp_path / name)
    for call in (lambda: faiss.write_index(index, name), lambda: faiss.read_index(name),
                 lambda: faiss.write_index(faiss.IndexFlatL2(8), name),
                 lambda: faiss_ext.read_index_binary(name)):
        with pytest.raises(ValueError, match=message):
            call()
    assert not list(tmp_path.iterdir())


def test_what_is_no_binary_index_is_not_cloned():
    for thing in (faiss.IndexFlatL2(8), "BFlat", 3, None):
        with pytest.raises(TypeError):
            faiss_ext.clone_binary_index(thing)


@pytest.mark.parametrize("string", ["SIK64(gaussian),BFlat", "KFlat(laplacian)"])
def test_untrained_indexes_come_back_and_learn_the_same(digits, tmp_path, string):
    index = faiss.index_factory(64, string)
    copies = [*copies_of(index, tmp_path)]
    fill(index, digits.base[:500])
    for twin in copies:
        assert not twin.is_trained and twin.ntotal == 0
        assert_same(index, fill(twin, digits.base[:500]), digits.queries)


def test_objects_follow_each_other_in_one_stream(digits):
    strings = CODES, "IDMap2,Flat", "KFlat(gaussian)"
    ours, theirs, kernel = (made(string, digits.base[:100]) for string in strings)
    order = [ours, theirs, kernel, theirs, ours]
    writer = faiss.VectorIOWriter()
    for index in order:
        faiss.write_index(index, writer)
    reader = faiss.VectorIOReader()
    reader.data = writer.data
    f = io.BytesIO(faiss.vector_to_array(writer.data).tobytes())
    for source in (reader, faiss.PyCallbackIOReader(f.read)):
        for index in order:
            assert_same(index, faiss.read_index(source), digits.queries)


def test_flags_for_reading_are_taken(digits, tmp_path):
    index = made(f"{SIK},BIVF8", digits.base[:500])
    name = str(tmp_path / "x")
    faiss.write_index(index, name)
    for flags in (0, faiss.IO_FLAG_READ_ONLY, faiss.IO_FLAG_MMAP):
        assert_same(index, faiss.read_index(name, flags), digits.queries)


# ------------------------------------------------------------------ errors

def test_errors_of_python_callbacks_are_not_lost(digits):
    index = made(CODES, digits.base[:100])

    def broken(data_or_size):
        raise OSError("broken")

    with pytest.raises((OSError, RuntimeError)):
        faiss.write_index(index, faiss.PyCallbackIOWriter(broken))
    with pytest.raises((OSError, RuntimeError)):
        faiss.read_index(faiss.PyCallbackIOReader(broken))


def test_what_cannot_be_written_says_so():
    kernel = faiss_ext.IndexFlatKernel(64, faiss_ext.LinearKernel())
    index = faiss.IndexIVFFlat(kernel, 64, 8)
    for write in (faiss.serialize_index, faiss.clone_index, copy.deepcopy):
        with pytest.raises(RuntimeError):
            write(index)


WRITER = """
import sys
import faiss, faiss_ext
import numpy as np
indexes = []
for n in (20000, 30000):
    index = faiss.index_factory(64, "IDMap,KFlat(linear)")
    index.add_with_ids(np.full((n, 64), n, dtype="float32"), np.arange(n))
    indexes.append(index)
faiss.write_index(indexes[0], sys.argv[1])
print("begin", flush=True)
while True:
    for index in indexes:
        faiss.write_index(index, sys.argv[1])
"""


def test_a_killed_process_leaves_a_whole_file(environment, tmp_path):
    """Whenever it is killed, the file is the one before or the one after."""
    path = tmp_path / "index"
    for i in range(6):
        with subprocess.Popen([sys.executable, "-c", WRITER, path], env=environment, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"begin\n"
            time.sleep(0.013 * i)
            process.kill()
        index = faiss.read_index(str(path))
        assert index.ntotal in (20000, 30000)
        assert index.search(np.full((1, 64), index.ntotal, dtype="float32"), 1)[0][0, 0] == 0


PROTECTED = """
import json, os, sys
import faiss, faiss_ext
from faiss_ext.files import check_writable, replacing
if os.getuid() == 0:
    os.setuid(65534)
index = faiss.index_factory(8, "KFlat(linear)")
def say(write):
    try:
        write()
    except Exception as error:
        print(type(error).__name__, str(error).partition("\\n")[0])
def replace():
    with replacing(sys.argv[1]) as file:
        file.write(b"other")
say(lambda: faiss.write_index(index, sys.argv[1]))
say(replace)
say(lambda: check_writable(sys.argv[1]))
"""


def test_files_that_are_protected_stay(run_python):
    """As with open(path, "w"), though their folder may be written to."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        path = Path(folder, "index")
        path.write_text("mine")
        path.chmod(0o444)
        said = run_python(PROTECTED, path).splitlines()
        assert path.read_text() == "mine" and os.listdir(folder) == ["index"]
    assert said == [f"RuntimeError cannot write the file '{path}': Permission denied",
                    f"PermissionError [Errno 13] Permission denied: '{path}'", f"VectorFileError {path}: cannot be written: permission denied"]


# --------------------------------------------------------- FAISS's own files

FAISS_PROGRAM = """
import hashlib, io, json, os, pickle, re, sys
import numpy as np
import faiss
if sys.argv[1] == "with":
    import faiss_ext
os.chdir(sys.argv[2])
faiss.omp_set_num_threads(1)
x = np.random.default_rng(7).normal(size=(400, 64)).astype("float32")
codes = x.view("uint8")[:, :8].copy()


def digest(*arrays):
    data = b"".join(np.ascontiguousarray(a) for a in arrays)
    return hashlib.sha256(data).hexdigest()


def attempt(function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:
        # without what errno happens to be
        message = re.sub(r" [(](Success|No such [^()]*)[)]$", "", str(error))
        return type(error).__name__ + ": " + message


def described(index, queries):
    if isinstance(index, str):
        return index
    names = ("index", "base_index", "refine_index", "storage", "quantizer")
    parts = [type(getattr(index, name)).__name__ for name in names if hasattr(index, name)]
    return [type(index).__name__, parts, index.d, index.ntotal, digest(*index.search(queries, 5))]


def reported(index, x, kind):
    write, read, serialize, deserialize = (
        getattr(faiss, f"{name}_{kind}")
        for name in ("write", "read", "serialize", "deserialize"))
    write(index, "file")
    data = open("file", "rb").read()
    f = io.BytesIO()
    write(index, faiss.PyCallbackIOWriter(f.write))
    serialized = serialize(index)
    f.seek(0)
    open("cut", "wb").write(data[: len(data) // 2])
    copies = [index, read("file"), read("file", faiss.IO_FLAG_READ_ONLY),
              read(faiss.PyCallbackIOReader(f.read)), deserialize(serialized)]
    if kind == "index":
        copies.append(attempt(faiss.clone_index, index))
        copies.append(pickle.loads(pickle.dumps(index)))
    return [
        digest(data), f.getvalue() == data, serialized.tobytes() == data,
        [described(copy, x[:50]) for copy in copies],
        attempt(read, "cut"), attempt(deserialize, serialized[:99])]


report = {}
for string in sys.argv[3].split():
    index = faiss.index_factory(64, string)
    index.train(x)
    if string.startswith("IDMap"):
        index.add_with_ids(x, 3 * np.arange(len(x)))
    else:
        index.add(x)
    report[string] = reported(index, x, "index")
for string in sys.argv[4].split():
    index = faiss.index_binary_factory(64, string)
    index.train(codes)
    index.add(codes)
    report[string] = reported(index, codes, "index_binary")

pca = faiss.PCAMatrix(64, 8)
pca.train(x)
faiss.write_VectorTransform(pca, "file")
twin = faiss.read_VectorTransform("file")
report["PCAMatrix"] = [digest(open("file", "rb").read()), type(twin).__name__,
                       digest(twin.apply(x)), type(faiss.downcast_VectorTransform(twin)).__name__]
open("text", "w").write("hello, world")
calls = [(faiss.write_index, index, "no/such/folder")]
calls += [(faiss.write_index, thing, "x") for thing in (3, [])]
for read in (faiss.read_index, faiss.read_index_binary, faiss.read_VectorTransform):
    calls += [(read, name) for name in ("missing", "text", ".", "", 3, [])]
bad = [(64, "foo"), (64, ""), (0, "Flat"), ("Flat", 64), (64, "Flat", 99), (64, 8)]
calls += [(faiss.index_factory, *arguments) for arguments in bad]
bad = [(64, "foo"), (63, "BFlat"), ("BFlat", 64)]
calls += [(faiss.index_binary_factory, *arguments) for arguments in bad]
for function, *arguments in calls:
    key = "%s %r" % (function.__name__, [a for a in arguments if a is not index])
    outcome = attempt(function, *arguments)
    report[key] = outcome if isinstance(outcome, str) else type(outcome).__name__
print(json.dumps(report))
"""


@pytest.mark.parametrize("string, d, n", [
    ("KFlat(chi2)", 64, 100_000), ("IDMap2,SIK8(gaussian(gamma=1)),BFlat", 4, 600_000),
    ("HNSW8,KFlat(chi2,store=u8)", 8, 30_000), ("AHK64(chi2),BHash4x16", 16, 100_000)])
def test_reading_takes_at_most_eight_times_the_file(run_python, tmp_path, string, d, n):
    x = np.random.default_rng(1).random((n, d), dtype="float32")
    index = faiss.index_factory(d, string)
    index.train(x[:1000])
    if string.startswith("IDMap"):
        index.add_with_ids(x, np.arange(n))
    else:
        index.add(x)
    path = tmp_path / "index"
    faiss.write_index(index, str(path))
    if "asan" in Path("/proc/self/maps").read_text():
        pytest.skip("AddressSanitizer takes memory around every piece")
    program = ("import faiss, faiss_ext, re, sys\n"
               "peak = lambda: int(re.search('VmHWM: *([0-9]+)', open('/proc/self/status').read().replace(chr(9), ' '))[1])\n"
               "before = peak()\n"
               "index = faiss.read_index(sys.argv[1])\n"
               "print(1024 * (peak() - before))\n")
    assert int(run_python(program, path).split()[-1]) <= 8 * path.stat().st_size + 2**24


IMPORT = """
import faiss, sys
modules = [m for name, m in sys.modules.items() if name.split(".")[0] in ("faiss", "swigfaiss")]
classes = {c for m in modules for c in vars(m).values() if isinstance(c, type)}
def attributes():
    return {(c, name): value for c in classes for name, value in vars(c).items()}
def functions():
    return {name: value for name, value in vars(faiss).items() if callable(value)}
before = attributes(), functions()
import faiss_ext
for then, now in zip(before, (attributes(), functions())):
    names = sorted({str(key) for key in then.keys() | now.keys() if then.get(key) is not now.get(key)})
    print(len(then), names)
"""


def test_importing_faiss_ext_leaves_faiss_classes_alone(run_python):
    classes, functions = run_python(IMPORT).splitlines()
    number, changed = classes.split(" ", 1)
    assert int(number) > 3000 and changed == "[]"
    kinds = ("index", "index_binary", "VectorTransform")
    replaced = [
        "index_factory", "index_binary_factory", *(f"{way}_{kind}" for way in ("read", "write") for kind in kinds),
        "clone_index", "clone_binary_index", "downcast_index", "downcast_IndexBinary", "downcast_VectorTransform",
        "extract_index_ivf", "try_extract_index_ivf"]
    assert functions.split(" ", 1)[1] == str(sorted(name for name in replaced if hasattr(faiss, name)))


def test_importing_faiss_ext_changes_nothing_of_faiss(run_python, tmp_path):
    """Bytes of files, results, types and errors of FAISS's own classes."""
    strings = ("Flat PQ8x4np HNSW16 LSH PCA16,IVF8,SQ8 IDMap2,Flat IDMap,IVF8,SQ4 "
               "IVF8,SQ8,Refine(SQ8) L2norm,Flat")
    binary = "BFlat BIVF8 BHash16x4 BHash8 BHNSW16"
    reports = {}
    for mode in ("with", "without"):
        folder = tmp_path / mode
        folder.mkdir()
        printed = run_python(FAISS_PROGRAM, mode, folder, strings, binary, OMP_NUM_THREADS="1")
        reports[mode] = json.loads(printed.splitlines()[-1])
    assert set(reports["with"]) == set(reports["without"])
    assert len(reports["with"]) > 25
    for key, expected in reports["without"].items():
        found = reports["with"][key]
        if isinstance(expected, str) and re.search("Wrong number or type of arguments|in method '", expected):
            assert "prototypes" not in found and "in method" not in found, key  # the type is FAISS's, the words are not
            expected, found = expected.split(":")[0], found.split(":")[0]
        assert found == expected, key


def test_importing_twice_replaces_once():
    read = faiss.read_index
    importlib.reload(faiss_ext.extend_faiss)
    assert faiss.read_index is read
    assert not hasattr(read.without_faiss_ext, "without_faiss_ext")


def keyword_calls():
    """Functions that are replaced, with arguments by FAISS's names for them, and
    by those of the documentation."""
    index, binary, vt = faiss.IndexFlatL2(8), faiss.IndexBinaryFlat(8), faiss.PCAMatrix(8, 4)
    for function, thing in (
            (faiss.downcast_index, index), (faiss.downcast_IndexBinary, binary), (faiss.downcast_VectorTransform, vt),
            (faiss.clone_index, index), (getattr(faiss, "clone_binary_index", None), binary)):
        if function is None:
            continue  # of FAISS 1.7.3
        names = {next(iter(inspect.signature(f).parameters)) for f in (function, function.without_faiss_ext)}
        for name in sorted(names):
            yield function, (), {name: thing}
    for factory in (faiss.index_factory, faiss.index_binary_factory):
        yield factory, (), {"d": 8, "description": "BFlat" if factory is faiss.index_binary_factory else "Flat"}
    yield faiss.index_factory, (8,), {"description": "Flat", "metric": faiss.METRIC_INNER_PRODUCT}


@pytest.mark.parametrize("number", range(len(list(keyword_calls()))))
def test_replaced_functions_take_their_arguments_by_name(number):
    function, args, kwargs = list(keyword_calls())[number]
    found = function(*args, **kwargs)
    expected = function.without_faiss_ext(*args, *kwargs.values())
    assert type(found) is type(expected)
    assert getattr(found, "metric_type", None) == getattr(expected, "metric_type", None)


def test_functions_for_files_take_their_arguments_by_name(tmp_path):
    index, path = faiss.index_factory(8, "KFlat(chi2)"), tmp_path / "x"
    faiss.write_index(index=index, f=path)
    assert faiss.read_index(f=path, io_flags=0).kernel.description() == "chi2"
    for arguments, said in (({"fname": path}, "unknown argument 'fname', expected f, io_flags"),
                            ({"io_flags": 0}, "f is missing")):
        with pytest.raises(TypeError, match=f"read_index: {said}"):
            faiss.read_index(**arguments)
    with pytest.raises(TypeError, match="write_index: index is given twice"):
        faiss.write_index(index, path, index=index)


def test_no_index_is_written_as_faiss_does(tmp_path):
    if tuple(int(n) for n in faiss.__version__.split(".")[:2]) < (1, 9):
        with pytest.raises(TypeError, match="expected an object to write, got None"):
            faiss.serialize_index(None)
        return
    assert faiss.deserialize_index(faiss.serialize_index(None)) is None
    faiss.write_index(None, str(tmp_path / "x"))
    assert faiss.read_index(str(tmp_path / "x")) is None


def spoilt(name):
    """An index that no file can hold, and what mends it."""
    x = np.random.default_rng(3).random((64, 16), "float32")

    def filled(string):
        index = faiss.index_factory(16, string)
        index.train(x)
        index.add(x)
        return index

    if name == "codes behind a hash":
        index = filled("SIK64(gaussian),BFlat")
        index.storage.add(np.zeros((5, 8), "uint8"))
    elif name == "vectors behind a transformation":
        index = filled("L2norm,KFlat(linear)")
        index.index.add(x)
    elif name == "vectors behind ids":
        index = faiss.index_factory(16, "IDMap,KFlat(linear)")
        index.add_with_ids(x, np.arange(64))
        index.index.add(x)
    elif name == "candidates":
        index = filled("SIK64(gaussian),BFlat,Refine(KFlat(linear))")
        index.base_index.add(x)
    elif name == "vectors behind a graph":
        index = filled("HNSW8,KFlat(linear)")
        index.storage.remove_ids(np.arange(9))
    elif name == "a shard":
        index = faiss.IndexShards(16, False, True)
        parts = [filled("KFlat(linear)") for _ in range(2)]
        for part in parts:
            index.add_shard(part)
        parts[0].add(x)
    elif name.startswith("efSearch"):
        index = filled("HNSW8,KFlat(linear)")
        index.hnsw.efSearch = 0 if name.endswith("0") else 2**24 + 1
    else:
        index = filled("L2norm,KFlat(linear)")
        for _ in range(1000):
            transform = faiss.NormalizationTransform(16)
            transform.this.disown()  # the index deletes it
            index.prepend_transform(transform)
    return index


@pytest.mark.parametrize("name, message", [
    ("codes behind a hash", "reset the index"),
    ("vectors behind a transformation", "reset the index"),
    ("vectors behind ids", "reset the index"),
    ("candidates", "reset the index"),
    ("vectors behind a graph", "reset the index"),
    ("a shard", "syncWithSubIndexes"),
    ("efSearch of 0", "efSearch is 0, expected a number from 1 to 16777216"),
    ("efSearch beyond", "efSearch is 16777217"),
    ("a long chain", "1001 transformations, expected at most 1000")])
def test_what_no_file_can_hold_is_not_written(tmp_path, name, message):
    path = tmp_path / "index"
    path.write_bytes(b"a good old file")
    index = spoilt(name)
    for write in (lambda: faiss.write_index(index, str(path)),
                  lambda: faiss.serialize_index(index),
                  lambda: faiss.clone_index(index),
                  lambda: copy.copy(index), lambda: pickle.dumps(index)):
        with pytest.raises(RuntimeError, match=message):
            write()
    assert path.read_bytes() == b"a good old file"
    assert os.listdir(tmp_path) == ["index"]


@pytest.mark.parametrize("name", [
    "codes behind a hash", "vectors behind a transformation",
    "vectors behind ids", "candidates", "vectors behind a graph"])
def test_counts_that_differ_are_an_error_everywhere(name):
    index = spoilt(name)
    x = np.ones((3, 16), "float32")
    for call in (lambda: index.add_with_ids(x, np.arange(3))
                 if "ids" in name else index.add(x),
                 lambda: index.search(x, 2)):
        with pytest.raises(RuntimeError, match="its parts do not match"):
            call()
    index.reset()
    assert index.ntotal == 0


def test_the_largest_settings_are_read_again():
    x = np.random.default_rng(3).random((64, 16), "float32")
    for string, name, most in (("HNSW8,KFlat(linear)", "efSearch", 2**24),
                               ("KFlat(linear),Refine(KFlat(linear))",
                                "k_factor", 10**9)):
        index = faiss.index_factory(16, string)
        index.add(x)
        faiss_ext.set_index_parameter(index, name, most)
        read = faiss.deserialize_index(faiss.serialize_index(index))
        assert faiss_ext.index_parameters(read)[name] == most
        with pytest.raises(ValueError, match=f"from 1 to {most}"):
            faiss_ext.set_index_parameter(index, name, most + 100)


@pytest.mark.parametrize("n", [1, 2, 4, 64, 65])
@pytest.mark.parametrize("storage", ["BHash4x8", "BHash8"])
def test_buckets_that_hold_all_vectors(storage, n):
    x = np.tile(np.random.default_rng(1).random((1, 16), "float32"), (n, 1))
    index = faiss.index_factory(16, f"SIK64(gaussian,gamma=1),{storage}")
    index.add(x)
    expected = index.search(x[:1], n)
    assert (expected[1] >= 0).all()
    for other in (faiss.deserialize_index(faiss.serialize_index(index)),
                  faiss.clone_index(index), pickle.loads(pickle.dumps(index))):
        assert_equal(other.search(x[:1], n), expected)


@pytest.mark.parametrize("string", ["BHash4x8", "IDMap2,BHash4x8"])
def test_buckets_of_tables_without_a_hash(string, tmp_path):
    codes = np.tile(np.random.default_rng(1).integers(0, 256, (1, 8)).astype("uint8"), (4, 1))
    index = faiss_ext.index_binary_factory(64, string)
    if "IDMap" in string:
        index.add_with_ids(codes, np.arange(4))
    else:
        index.add(codes)
    expected = index.search(codes[:1], 3)
    assert (expected[1] >= 0).all()
    faiss_ext.write_index_binary(index, str(tmp_path / "index"))
    for read in (faiss_ext.read_index_binary, faiss.read_index_binary):
        assert_equal(read(str(tmp_path / "index")).search(codes[:1], 3), expected)


def test_parts_inside_parts_that_were_changed_alone():
    x = np.random.default_rng(3).random((64, 16), "float32")

    def filled(string):
        index = faiss.index_factory(16, string)
        index.train(x)
        index.add(x) if "IDMap" not in string else index.add_with_ids(x, np.arange(64))
        return index

    graph = filled("SIK64(gaussian),BHNSW8")
    graph.storage.storage.remove_ids(np.arange(5))
    ids, codes = filled("IDMap2,KFlat(chi2)"), filled("IDMap,SIK64(gaussian),BFlat")
    for index in (ids, codes):
        index.index.remove_ids(np.arange(5))
    behind = filled("PCAR8,KFlat(linear)")
    behind.index.remove_ids(np.arange(5))
    broken = filled("HNSW8,KFlat(chi2)")
    broken.hnsw.entry_point = 10**6
    maps, refined = filled("HKM1(chi2),HNSW8"), filled("HNSW8,Refine(KFlat(chi2))")
    faiss.downcast_index(maps.index).storage.remove_ids(np.arange(5))
    faiss.downcast_index(refined.base_index).hnsw.reset()
    huge = filled("SIK64(gaussian),BHNSW8")
    huge.storage.hnsw.efSearch = -1
    for index, call in (
            (graph, lambda: graph.search(x, 2)), (graph, lambda: graph.add(x)),
            (ids, lambda: ids.remove_ids(np.arange(10, 12))), (ids, lambda: ids.reconstruct(1)),
            (codes, lambda: codes.remove_ids(np.arange(10, 12))),
            (behind, lambda: behind.search_and_reconstruct(x, 2)),
            (maps, lambda: maps.search(x, 2)), (maps, lambda: maps.add(x)),
            (refined, lambda: refined.search(x, 2)), (refined, lambda: refined.add(x)),
            (broken, lambda: broken.search(x, 2)), (broken, lambda: broken.add(x)),
            (huge, lambda: huge.search(x, 2))):
        with pytest.raises(RuntimeError, match="match|inconsistent|efSearch"):
            call()
        with pytest.raises(RuntimeError):
            faiss.serialize_index(index)
    exact = filled("HNSW8,KFlat(chi2)")
    D, I = exact.search(x, 2)
    exact.storage.remove_ids(np.arange(5))
    with pytest.raises(RuntimeError, match="has 64 vectors"):
        faiss_ext.kernel_values(exact, D, I, x)


def test_functions_of_faiss_that_were_imported_before(run_python):
    assert "done" in run_python("""if True:
        from faiss import index_factory, index_binary_factory
        import faiss_ext
        assert isinstance(index_factory(64, "KFlat(chi2)"), faiss_ext.IndexFlatKernel)
        assert isinstance(index_binary_factory(64, "BKFlat(jaccard)"), faiss_ext.IndexBinaryFlatKernel)
        assert type(index_factory(64, "Flat")).__name__.startswith("IndexFlat")
        for string in ("kflat(chi2)", "KFlat(rbf)"):
            try:
                index_factory(64, string)
            except RuntimeError as error:
                assert "did you mean" in str(error), error
        print("done")""")


def test_files_that_cannot_be_read_are_named(tmp_path):
    missing, foreign = str(tmp_path / "missing"), str(tmp_path / "foreign")
    with pytest.raises(RuntimeError, match=f"^cannot open {re.escape(missing)}: No such file or directory$"):
        faiss_ext.read_index_binary(missing)
    with open(foreign, "wb") as f:
        f.write(b"IxXX" + bytes(100))
    with pytest.raises(RuntimeError, match=f"^{re.escape(foreign)}: Index type"):
        faiss_ext.read_index_binary(foreign)


@pytest.mark.parametrize("call", [
    lambda: faiss_ext.index_factory("KFlat(chi2)", 64), lambda: faiss_ext.index_factory(2**40, "KFlat(chi2)"),
    lambda: faiss_ext.write_index("f", faiss_ext.index_factory(8, "KFlat(chi2)"))])
def test_arguments_of_replaced_functions_of_a_wrong_type(call):
    with pytest.raises(TypeError) as error:
        call()
    assert "prototypes" not in str(error.value) and "in method" not in str(error.value)
