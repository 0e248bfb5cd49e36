# SPDX-License-Identifier: MIT
"""Indexes of more vectors than fit into memory."""

import contextlib
import fcntl
import hashlib
import json
import operator
import os
import re
import time

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from ._version import __version__
from .class_wrappers import python_number
from .extend_faiss import clone_binary_index, read_index_binary
from .files import check_writable, replacing
from .parameters import real, set_index_parameter
from .progress import counting, show_progress
from .showing import transforms_of
from .sources import FileSource, drawn
from .vector_files import VectorFileError, lazy_vectors, place_of

UNITS = {"": 1, "B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
LEAST_BLOCK, MOST_BLOCK = 1024, 2**18  # vectors
BYTES_OF_ENTRY = 100  # of a hash table in memory, about


def number_of_bytes(memory):
    """Of a number, or of text such as "2GB"; None: of most of the memory."""
    if memory is None:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 4 // 5
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?B?)\s*", memory.upper())
        unit = match and UNITS.get(match[2] if match[2] in UNITS
                                   else match[2] + "B")
        try:
            size = int(float(match[1]) * unit)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"memory: expected a size such as '2GB', got "
                             f"{memory!r}") from None
    else:
        try:
            size = int(memory)
        except (TypeError, ValueError, OverflowError):
            raise ValueError("memory: expected a number of bytes, or a size "
                             f"such as '2GB', got {memory!r}") from None
    if size < 2**20:
        raise ValueError(f"memory: {size} bytes are too few; expected at least "
                         "1 MB")
    return size


def file_index(path, kernel, metric=faiss.METRIC_L2, part=None, n=None):
    """An exact index in the vectors of a file, which stay there.

    Parameters
    ----------
    path : str or path
        `.npy`, `.fvecs`, `.bvecs` or HDF5, of float32, float16 or uint8.
    kernel : Kernel or str
        Such as "chi2".
    metric : int, optional
        faiss.METRIC_L2 or faiss.METRIC_INNER_PRODUCT.
    part : str, optional
        The array of an HDF5 file.
    n : int, optional
        How many vectors of the file, from the first on, are in the index; by
        default all. `add` and `add_next` add those that follow. A kernel that
        has to be trained, by `index.train`, takes n=0.

    Returns
    -------
    IndexFileKernel

    Raises
    ------
    VectorFileError
        Which is a ValueError, for a file that cannot be read, or whose vectors
        cannot be compared where they are.
    ValueError
        If the file has fewer than n vectors, or the kernel is not trained.

    Examples
    --------
    >>> exact = file_index("base.fvecs", "chi2")
    >>> D, I = exact.search(xq, 10)
    """
    vectors = lazy_vectors(path, part)
    try:
        place = place_of(vectors, path)
    except VectorFileError as error:
        raise VectorFileError(
            f'{error}; with exact="memory" (--exact memory), builds keep '
            "copies") from None
    n = place.n if n is None else operator.index(n)
    if not 0 <= n <= place.n:
        raise ValueError(f"{path}: n is {n}, expected 0 to {place.n}, the "
                         "number of its vectors")
    if isinstance(kernel, str):
        kernel = swig.kernel_factory(kernel)
    index = swig.IndexFileKernel(
        place.d, place.path, place.store, place.offset, place.stride, place.n,
        kernel, metric)
    if n > 0:
        if not index.is_trained:
            raise ValueError(
                f"{path}: the kernel is not trained; give its bandwidth, or "
                "n=0, then call train and add_next")
        index.add_next(n)
    return index


def takes_bits(string):
    """Whether a string is that of a binary index without a scheme."""
    core = string.removeprefix("IDMap2,").removeprefix("IDMap,")
    return core.startswith("B") and not core.startswith("BSIK")


def takes_packed_bits(index):
    """Whether an index takes packed bits: a binary one without a scheme."""
    index = without_ids(index)
    return (isinstance(index, faiss.IndexBinary)
            and not isinstance(index, swig.IndexBinaryKernelHash))


def shown(progress):
    return show_progress() if progress else contextlib.nullcontext()


def add(index, rows, begin):
    """Adds rows as the vectors from `begin` on."""
    try:
        if isinstance(index, (faiss.IndexIDMap, faiss.IndexBinaryIDMap)):
            index.add_with_ids(rows, np.arange(begin, begin + len(rows)))
        else:
            index.add(rows)
    except RuntimeError as error:
        raise RuntimeError(located(
            error, str, range(begin, begin + len(rows)))) from None


def about_vector(error):
    """The number of the vector that an error of C++ is about, or None."""
    return getattr(error, "vector", None)


def located(error, place_of, numbers):
    """An error about some vectors, as text that says which ones they are."""
    vector = about_vector(error)
    if vector is None or vector >= len(numbers):
        return str(error)
    return (f"{error.before}vector {place_of(int(numbers[vector]))}"
            f"{error.after}")


def write(index, to):
    """To a file or an IOWriter."""
    (faiss.write_index_binary if isinstance(index, faiss.IndexBinary)
     else faiss.write_index)(index, to)


def digest(path):
    """Size and checksum of a file."""
    sha = hashlib.sha256()
    size = 0
    with open(path, "rb") as file:
        while block := file.read(2**20):
            sha.update(block)
            size += len(block)
    return {"bytes": size, "sha256": sha.hexdigest()}


def write_json(path, value):
    with replacing(path) as file:
        file.write(json.dumps(value, indent=1).encode())


def read_json(path):
    """Raises a ValueError for all that is not JSON."""
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file)
        except RecursionError:
            raise ValueError("too many brackets in each other") from None


def size_of(index):
    """Bytes of an index in a file."""
    size = 0

    def count(data):
        nonlocal size
        size += len(data)

    write(index, faiss.PyCallbackIOWriter(count))
    return size


def uncounted(index, n):
    """Bytes that an index of n vectors takes beside those of its file."""
    index = core(without_ids(index))
    if isinstance(index, swig.IndexBinaryPermuted):
        return index.bytes_of_lists(n)
    if isinstance(index, (faiss.IndexBinaryHash, faiss.IndexBinaryMultiHash)):
        entries = index.hashtable_size() / max(index.ntotal, 1) * n
        most = getattr(index, "nhash", 1) * 2.0 ** index.b
        return BYTES_OF_ENTRY * min(entries, most)
    return 0


def unused_places(index):
    """How many more vectors an index has room for in blocks of 32, about, that
    its lists end with."""
    lists = core(without_ids(index))
    return 16 * lists.nlist if isinstance(lists, swig.IndexIVFPQ4) else 0


def without_ids(index):
    index = real(index)
    return (real(index.index) if isinstance(
        index, (faiss.IndexIDMap, faiss.IndexBinaryIDMap)) else index)


def is_reserved(index):
    """Whether reserve has an effect."""
    return isinstance(core(without_ids(index)), faiss.IndexBinaryFlat)


def reserve(index, n):
    """Has flat binary codes of n vectors grow without a second copy."""
    if is_reserved(index):
        codes = core(without_ids(index))
        size = codes.xb.size()
        codes.xb.resize(n * codes.code_size)
        codes.xb.resize(size)  # which gives nothing back


def copy_of(index):
    return (clone_binary_index(index)
            if isinstance(index, faiss.IndexBinary)
            else faiss.clone_index(index))


def core(index):
    """What keeps the vectors of an index."""
    index = real(index)
    while True:
        if isinstance(index, faiss.IndexPreTransform):
            index = real(index.index)
        elif isinstance(index, (swig.IndexKernelHash,
                                swig.IndexBinaryKernelHash)):
            index = real(index.storage)
        else:
            return index


def own_ids(index):
    """Whether vectors keep ids that count from the first vector of an index."""
    return isinstance(core(index), (
        swig.IndexIVFPQ4, faiss.IndexIVF, faiss.IndexBinaryIVF))


def takes_one_add_only(index):
    """Whether FAISS aborts at the second add."""
    version = tuple(int(n) for n in re.findall(r"\d+", faiss.__version__)[:3])
    return version < (1, 7, 4) and isinstance(
        core(index), faiss.IndexIVFPQFastScan)


def merge(index, other):
    """Appends the vectors of another index, with the ids that follow."""
    index.merge_from(other, index.ntotal if own_ids(index) else 0)


def can_merge(empty, rows):
    """Whether indexes like an empty one can be put together."""
    one, other = copy_of(empty), copy_of(empty)
    try:
        add(one, rows[:1], 0)
        add(other, rows[:1], 0 if own_ids(one) else 1)
        merge(one, other)
        return one.ntotal == 2
    except RuntimeError:
        return False


class Folder:
    """What an unfinished build has done, in files that are complete or not
    there."""

    # (.faiss_ext_...: of a process that was killed while it wrote)
    OURS = re.compile(r"lock|state\.json|(trained|exact|all)\.index"
                      r"|block-\d+\.(index|json)|\.faiss_ext_.*")

    def __init__(self, path, state):
        """For a build with this state, by which it is known again."""
        self.path = path
        try:
            os.makedirs(path, exist_ok=True)
            self.check()  # and leave no lock in what is not ours
            self.lock = open(self.file("lock"), "w")
        except OSError as error:
            raise VectorFileError(f"{path}: cannot be used: "
                                  f"{error.strerror or error}") from None
        try:
            self.begin(state)
        except BaseException:
            self.lock.close()  # which the traceback would keep
            raise

    def begin(self, state):
        path = self.path
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"{path}: another process builds there") from None
        self.check()
        before = self.state(state)
        self.block_size = state["block"]
        others = []
        if before is not None:
            others = [key for key in state if before[key] != state[key]]
            if not others:
                return
        has_more_memory = (
            others == ["block"] and 0 < before["block"] < state["block"])
        finished = sum(name.startswith("block-") and name.endswith(".json")
                       for name in self.files())
        if has_more_memory and (finished > 1 or self.has("all.index")):
            self.block_size = before["block"]
            return
        # (one block, with which it may have been found not to fit, and less to
        # train with, are not worth it)
        if not has_more_memory and any(
                name.startswith(("block-", "all.")) for name in self.files()):
            if others == ["block"]:
                raise ValueError(
                    f"{path} is an unfinished build that was begun with more "
                    f"memory: {before['block']:,} vectors at a time, now "
                    f"{state['block']:,}; give as much, delete the folder, or "
                    "give another output")
            names = [{"block": "memory", "vectors": "file of vectors, or one "
                      "that has been written since"}.get(key, key)
                     for key in others
                     if key != "block" or "string" not in others]
            raise ValueError(
                f"{path} is an unfinished build with another "
                f"{', '.join(names)}; delete the folder, or give another "
                "output")
        for name in self.files():
            if name != "lock":
                os.unlink(self.file(name))
        write_json(self.file("state.json"), state)

    def check(self):
        names = set(os.listdir(self.path))
        started = {name for name in names if name == "lock"
                   or name.startswith(".faiss_ext_")}
        if "state.json" not in names and names != started:
            raise ValueError(
                f"{self.path} is not empty and holds no unfinished build; "
                "expected a new folder, or remove it")

    def state(self, expected):
        """That of the build that is there, with values of the same types; None
        where there is none."""
        path = self.file("state.json")
        if not self.has("state.json"):
            return None
        try:
            state = read_json(path)
        except ValueError as error:
            raise ValueError(f"{path} is damaged ({error}); delete the folder, "
                             "or give another output") from None
        if not isinstance(state, dict) or any(
                type(state.get(key)) is not type(value)
                for key, value in expected.items()):
            raise ValueError(
                f"{path} is damaged: expected what build_from has written; "
                "delete the folder, or give another output")
        return state

    def file(self, name):
        return os.path.join(self.path, name)

    def files(self):
        """Those of a build, in the order in which they may be deleted."""
        last = ("state.json", "lock")
        return sorted(filter(self.OURS.fullmatch, os.listdir(self.path)),
                      key=lambda name: (name in last, name == "lock"))

    def has(self, name):
        return os.path.exists(self.file(name))

    def write(self, index, name):
        """Seconds that it took, and the size."""
        start = time.monotonic()
        write(index, self.file(name))
        return time.monotonic() - start, os.path.getsize(self.file(name))

    def read(self, name, binary=False):
        try:
            return (read_index_binary if binary else faiss.read_index)(
                self.file(name))
        except RuntimeError as error:
            raise ValueError(
                f"{self.file(name)} cannot be read; delete it, and the same "
                f"call makes it again: {error}") from None

    def write_block(self, index, begin, trained):
        """A block that is finished when what is known of it is there, too; the
        size.

        trained : digest of the index that it is a copy of
        """
        _, size = self.write(index, block_name(begin))
        write_json(self.file(f"block-{begin}.json"),
                   self.block(begin, trained))
        return size

    def has_block(self, begin, trained):
        """Whether a block is finished, and the file of its name is that."""
        try:
            return (read_json(self.file(f"block-{begin}.json"))
                    == self.block(begin, trained))
        except (OSError, ValueError):
            return False

    def block(self, begin, trained):
        return {"begin": begin, "trained": trained,
                **digest(self.file(block_name(begin)))}

    def delete(self):
        """Its files, and the folder if there are no others."""
        for name in self.files():
            os.unlink(self.file(name))
        self.lock.close()
        with contextlib.suppress(OSError):
            os.rmdir(self.path)


def block_name(begin):
    return f"block-{begin}.index"


def build_from(path, string, memory=None, output=None, part=None, exact="file",
               metric=faiss.METRIC_L2, train=100_000, seed=1234,
               parameters=None, progress=True):
    """An index of all vectors of a file that may be larger than memory.

    The file is mapped, and its vectors are added in blocks. In
    `...,Refine(KFlat(kernel))`, and in `KFlat(kernel)`, the exact kernel reads
    them where they are (`IndexFileKernel`), so that the index takes memory for
    its codes only. The file has to stay; a `store=` in the string keeps copies
    of the vectors in the index instead.

    With `output`, and more vectors than a block has, every finished block is
    written to the folder `output + ".build"`. After an interruption the same
    call goes on from there (also with more memory), and builds blocks that are
    damaged again; in the end the index is written, and the files in the folder
    are deleted. Graphs and hash tables, which cannot be put together from
    blocks, are saved whole, whenever adding has taken ten times as long as
    that.

    Parameters
    ----------
    path : str or path
        As `faiss_ext.vector_files.read_vectors` takes it.
    string : str
        Of the index; `BFlat`, `BKFlat(jaccard)` and the like take packed bits.
    memory : int or str, optional
        Bytes that may be used, or such as "2GB"; by default four fifths of the
        machine's. It sets the size of blocks and of the training sample; an
        index that turns out not to fit is an error after the first block; all
        but flat codes (`BFlat`) is counted twice, since it may take as much
        while it grows. Matrices of training take a few MB beside that, FAISS's
        k-means of `BIVF` 33 MB. Pages of the file of vectors that are mapped,
        which the system can take back at any time, are not counted; a peak of
        resident memory (RSS) counts them.
    output : str or path, optional
        File of the index.
    part : str, optional
        The array of an HDF5 file.
    exact : str, optional
        "file", or "memory", where `KFlat` keeps copies of the vectors without a
        `store=`, too.
    metric : int, optional
        faiss.METRIC_L2 or faiss.METRIC_INNER_PRODUCT.
    train : int, optional
        Vectors to train with, drawn at random; fewer where memory is short.
    seed : int, optional
        Of those.
    parameters : dict, optional
        Parameters of the index, by name.
    progress : bool, optional
        Shows how far it is, and the rate, on stderr.

    Returns
    -------
    faiss.Index or faiss.IndexBinary

    Raises
    ------
    MemoryError
        If the index does not fit into `memory`.
    VectorFileError
        Which is a ValueError, for a file that cannot be read or changes, or a
        folder that cannot be made.
    ValueError
        If `output + ".build"` is of another build or of none, or damaged.

    Examples
    --------
    >>> index = faiss_ext.build_from(
    ...     "base.fvecs", "AHK512(chi2,center=1),BFlat,Refine(KFlat(chi2))",
    ...     memory="2GB", output="base.index")
    """
    train, seed = checked(string, exact, train, seed)
    source = FileSource(path, part)
    made = made_from(string, source, metric, parameters or {})
    build = Build(source, made, number_of_bytes(memory), exact, train, seed,
                  progress)
    if output is not None:
        output = os.path.abspath(output)
        check_writable(output)
        if os.path.exists(output) and os.path.samefile(
                output, build.source.path):
            raise ValueError("the index would take the place of the vectors")
    try:
        if output is None or (
                build.source.n <= build.block and not os.path.exists(
                    os.path.join(output + ".build", "state.json"))):
            build.train()
            build.fill()
        else:
            folder = Folder(output + ".build", {
                "string": str(string), "metric": int(metric),
                "parameters": {
                    name: python_number(value)
                    for name, value in (parameters or {}).items()},
                **build.state()})
            try:
                build.resume(folder)
            except BaseException:
                folder.lock.close()  # which the traceback would keep
                raise
    except RuntimeError as error:
        if source.path in str(error):
            raise
        raise RuntimeError(f"{source.name}: {error}") from None
    index = build.whole()
    if output is not None:
        write(index, output)
    if build.folder is not None:
        build.folder.delete()
    return index


def checked(string, exact, train, seed):
    """What to build, and how: train and seed as Python's integers."""
    if not isinstance(string, str):
        raise TypeError(f"string: expected that of an index, got {string!r}")
    if not string.strip():
        raise ValueError("string: it is empty, expected that of an index, such "
                         "as 'KFlat(chi2)'")
    if exact not in ("file", "memory"):
        raise ValueError(f"exact: expected 'file' or 'memory', got {exact!r}")
    train, seed = operator.index(train), operator.index(seed)
    if train < 1 or seed < 0:
        raise ValueError("train must be positive, and seed not negative; got "
                         f"{train} and {seed}")
    return train, seed


def made_from(string, source, metric, parameters):
    """An empty index for vectors, by its string."""
    bits = takes_bits(string)
    if bits and source.vectors.dtype != np.uint8:
        raise VectorFileError(
            f"{source.name}: {string} takes packed bits, uint8, got "
            f"{source.vectors.dtype}")
    made = (swig.index_binary_factory(8 * source.d, string) if bits
            else faiss.index_factory(source.d, string, metric))
    for name, value in parameters.items():
        set_index_parameter(made, name, value)
    return made


class Build:
    """An index in the making: `base`, to which vectors are added, and `exact`,
    which finds them in the file; one of them may be None."""

    def __init__(self, source, made, memory, exact, train=0, seed=0,
                 progress=False):
        """
        made : without vectors; if it is not trained, train() does that
        memory : in bytes
        """
        self.source, self.memory = source, memory
        self.train_size, self.seed, self.progress = train, seed, progress
        self.folder = None
        self.bits = takes_packed_bits(made)
        self.base, self.exact, self.k_factor = made, None, None
        last = (real(made.refine_index)
                if isinstance(made, faiss.IndexRefine) else real(made))
        if (exact == "file" and source.path is not None
                and type(last) is swig.IndexFlatKernel
                and last.store == "f32"):
            self.exact = file_index(
                source.path, last.kernel, made.metric_type, source.part, n=0)
            self.base = None
            if isinstance(made, faiss.IndexRefine):
                self.k_factor = made.k_factor
                self.base = real(made.base_index)
                self.base.referenced_objects = [made]
        # what a vector is on its way into the index
        widths = [source.d, *(t.d_out for t in transforms_of(self.base))
                  ] if isinstance(self.base, faiss.IndexPreTransform) else [
                      source.d]
        self.bytes_on_the_way = 4 * sum(widths)
        self.block = int(np.clip(
            memory // 8 // self.bytes_on_the_way, LEAST_BLOCK, MOST_BLOCK))
        if source.n > self.block and takes_one_add_only(self.base):
            raise ValueError(
                f"{type(core(self.base)).__name__} of FAISS "
                f"{faiss.__version__} ends the process where vectors are added "
                f"a second time, and {source.n:,} are more than a block; "
                "expected KIVF, say")

    def state(self):
        """What a build is known by, beside its string."""
        return {"version": __version__, "exact": self.exact is not None,
                "train": self.train_size, "seed": self.seed,
                "block": self.block, "vectors": self.source.identity}

    def whole(self):
        """The index, when all vectors are in it."""
        if self.exact is None:
            return self.base
        if self.base is None:
            return self.exact
        index = swig.IndexRefineKernel(self.base, self.exact)
        index.k_factor = self.k_factor
        return index

    def parts(self):
        return [p for p in (self.exact, self.base) if p is not None]

    def train(self):
        untrained = [p for p in self.parts() if not p.is_trained]
        if untrained:
            # (what maps make of a sample is there as a whole)
            most = self.memory // 2 // (
                4 * self.source.d + self.bytes_on_the_way)
            numbers = drawn(
                self.source.n, min(self.train_size, most), self.seed)
            sample = self.source.rows(numbers, self.bits)
            with shown(self.progress):
                for part in untrained:
                    try:
                        part.train(sample)
                    except RuntimeError as error:
                        raise RuntimeError(
                            located(error, str, numbers)) from None

    def blocks(self, done=()):
        """Where each begins, and its rows; not of those that are done."""
        begin = 0
        with counting("add", self.source.n, self.progress) as count:
            while begin < self.source.n:
                end = min(begin + self.block, self.source.n)
                if begin not in done:
                    rows = self.source.block(begin, end, self.bits)
                    with shown(self.progress):
                        yield begin, rows
                if self.exact is not None and self.exact.ntotal < end:
                    self.exact.add_next(end - self.exact.ntotal)
                    if self.folder is not None:
                        self.folder.write(self.exact, "exact.index")
                count(end - begin)
                begin = end

    def fill(self):
        """Without a folder."""
        for begin, rows in self.blocks():
            if self.base is not None:
                empty = 0 if begin else size_of(self.base)
                add(self.base, rows, begin)
                if begin == 0:
                    self.check_size(self.base, size_of(self.base) - empty)
                    reserve(self.base, self.source.n)

    def check_size(self, piece, size, beside=0):
        """Throws if the index does not fit, by the size of a piece of it in a
        file, and `beside` more bytes."""
        n, unused = self.source.n, unused_places(piece)
        expected = (size / (piece.ntotal + unused) * (n + unused)
                    + uncounted(piece, n))
        needed = (expected * (1 if is_reserved(piece) else 2) + beside
                  + min(n, self.block) * self.bytes_on_the_way)
        if needed > self.memory:
            raise MemoryError(
                f"an index of {n:,} vectors takes about "
                f"{expected / 2**20:,.1f} MB ({expected / n:,.0f} bytes each), "
                f"and {needed / 2**20:,.1f} MB while it is built, more than "
                f"the {self.memory / 2**20:,.1f} MB of memory")

    def resume(self, folder):
        """From what is in the folder, or from the start."""
        self.folder, self.block = folder, folder.block_size
        if folder.has("trained.index"):
            self.base = folder.read("trained.index", self.bits)
        if folder.has("exact.index"):
            self.exact = folder.read("exact.index")
        self.train()
        if self.exact is not None:
            folder.write(self.exact, "exact.index")
        if self.base is None:
            for _ in self.blocks(range(0, self.exact.ntotal, self.block)):
                pass
            return
        if not folder.has("trained.index"):
            folder.write(self.base, "trained.index")
        # what has been read can be a little different from what was made
        self.base = folder.read("trained.index", self.bits)
        if can_merge(self.base, self.source.block(0, 1, self.bits)):
            self.fill_by_blocks()
        else:
            self.fill_with_copies()

    def fill_by_blocks(self):
        trained = digest(self.folder.file("trained.index"))
        begins = range(0, self.source.n, self.block)
        done = {begin for begin in begins
                if self.folder.has_block(begin, trained)}

        def check_block(piece, begin, size):
            if begin == 0 or piece.ntotal == self.block:
                self.check_size(piece, size - trained["bytes"], 2 * size)

        if done:
            begin = min(done)
            name = block_name(begin)
            check_block(self.folder.read(name, self.bits), begin,
                        os.path.getsize(self.folder.file(name)))
        for begin, rows in self.blocks(done):
            piece = copy_of(self.base)
            add(piece, rows, begin)
            check_block(piece, begin,
                        self.folder.write_block(piece, begin, trained))
        reserve(self.base, self.source.n)
        for begin in begins:
            merge(self.base, self.folder.read(block_name(begin), self.bits))

    def fill_with_copies(self):
        if self.folder.has("all.index"):
            self.base = self.folder.read("all.index", self.bits)
        saved, cost = time.monotonic(), 0
        for begin, rows in self.blocks(
                range(0, self.base.ntotal, self.block)):
            add(self.base, rows, begin)
            if time.monotonic() - saved > 10 * cost:
                cost, size = self.folder.write(self.base, "all.index")
                self.check_size(self.base, size)
                saved = time.monotonic()
