# SPDX-License-Identifier: MIT
"""Builds indexes of more vectors than fit into memory."""

import contextlib
import operator
import os
import re

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from ._version import __version__
from .arguments import (
    as_new_ids, checked_packed, may_be_bits, number_of_bits, python_number)
from .build_folder import LOCK, STATE, BuildFolder, differing
from .class_wrappers import unpacked
from .errors import with_prefix, with_vector
from .extend_faiss import clone_binary_index
from .files import (
    check_writable, digest, has_digest, read_index, size_of)
from .id_files import repeated
from .index_tree import (
    all_inside, hash_in_front, kept, part_that_stores, parts_that_answer,
    ranking_of, real, transforms_of)
from .name_files import write_with_names
from .names import Names
from .parameters import set_index_parameter
from .progress import counting, show_progress
from .sources import drawn
from .sparse_arrays import is_sparse
from .sparse_vectors import takes_sparse, why_not_sparse
from .timing import Stopwatch
from .vector_files import VectorFileError, lazy_vectors, place_of

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
LEAST_BLOCK, MOST_BLOCK = 1024, 2**18  # vectors


def number_of_bytes(memory, before="memory: "):
    """A memory size in bytes, from a number or from text such as "2GB".

    Messages of errors begin with `before`. None gives four fifths of the machine's memory.
    """
    if memory is None:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 4 // 5
    try:
        if isinstance(memory, str):
            match = re.fullmatch(
                r"\s*([0-9.]+)\s*([KMGT]?)B?\s*", memory.upper())
            size = int(float(match[1]) * UNITS[match[2]])
        else:
            size = int(memory)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{before}expected a number of bytes, or a size such "
                         f"as '2GB', got {memory!r}") from None
    if size < 2**20:
        raise ValueError(f"{before}{memory!r} is too little; expected a number of "
                         "bytes or a size such as '2GB', at least 1 MB")
    return size


def file_index(path, kernel, metric=faiss.METRIC_L2, part=None, n=None,
               packed=None):
    """Makes an exact index of the vectors in a file, without copying them.

    The file is mapped and must stay.

    Parameters
    ----------
    path : str or path
        A `.npy`, `.fvecs`, `.bvecs` or HDF5 file of float32, float16 or uint8.
    kernel : Kernel or str
        A kernel, or a string such as "chi2".
    metric : int, optional
        faiss.METRIC_L2 or faiss.METRIC_INNER_PRODUCT.
    part : str, optional
        The array of an HDF5 file.
    n : int, optional
        Number of vectors to index, from the first on; by default all. `add`
        and `add_next` add the ones that follow. To train a kernel with
        `index.train`, start with n=0.
    packed : bool, optional
        False, if bytes (uint8) are counts. It must be given under jaccard and
        dice, because the bytes may also be packed bits, which need an index
        such as BKFlat(jaccard).

    Returns
    -------
    IndexFileKernel

    Raises
    ------
    VectorFileError
        A ValueError. If the file cannot be read, or if its vectors cannot be
        compared in place.
    ValueError
        If the file has fewer than n vectors, or if the kernel is not trained.

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
    n = place.n if n is None else integer(n, "n")
    if not 0 <= n <= place.n:
        raise ValueError(f"{path}: n is {n}, expected 0 to {place.n}, the "
                         "number of its vectors")
    if isinstance(kernel, str):
        kernel = swig.kernel_factory(kernel)
    check_counts(packed, vectors.dtype, kernel.description(), path)
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


def takes_packed_bits(index):
    """Whether an index takes packed bits: a binary index without a scheme."""
    return (isinstance(index, faiss.IndexBinary)
            and hash_in_front(index) is None)


def shown(progress):
    return show_progress() if progress else contextlib.nullcontext()


def train_with(index, sample, numbers, progress, place_of=str):
    """Trains an index with the vectors of these numbers. Errors show a number
    as place_of(number)."""
    with shown(progress):
        try:
            index.train(sample)
        except RuntimeError as error:
            raise located(error, place_of, numbers) from None


def add(index, rows, begin, ids=None):
    """Adds rows; the first has number `begin` in ids and errors."""
    try:
        if ids is None:
            index.add(rows)
        else:
            index.add_with_ids(rows, ids[begin : begin + rows.shape[0]])
    except RuntimeError as error:
        raise located(error, str, range(begin, begin + rows.shape[0])) from None


def about_vector(error):
    """The number of the vector that caused a C++ error, or None."""
    return getattr(error, "vector", None)


def located(error, place_of, numbers, **facts):
    """Returns an error about a row as an error about the vector of its number.

    `numbers` are the numbers of all rows that were passed. The error shows a
    number as place_of(number).
    """
    row = about_vector(error)
    if row is None or row >= len(numbers):
        return with_prefix(error, "", **facts)
    vector = int(numbers[row])
    return with_vector(error, vector, place_of(vector), **facts)


def is_reserved(index):
    """Whether `reserve` has an effect on an index."""
    return isinstance(part_that_stores(index), faiss.IndexBinaryFlat)


def reserve(index, n):
    """Reserves memory for n vectors, so that flat binary codes grow without a
    second copy."""
    if is_reserved(index):
        codes = part_that_stores(index)
        size = codes.xb.size()
        codes.xb.resize(n * codes.code_size)
        codes.xb.resize(size)  # keeps the capacity


def copy_of(index):
    return (clone_binary_index(index)
            if isinstance(index, faiss.IndexBinary)
            else faiss.clone_index(index))


def takes_one_add_only(index):
    """Whether FAISS aborts at the second add."""
    version = tuple(int(n) for n in re.findall(r"\d+", faiss.__version__)[:3])
    return version < (1, 7, 4) and any(
        isinstance(part, faiss.IndexIVFPQFastScan) for part in all_inside(index))


def merge(index, other):
    """Appends the vectors of another index. Their ids follow the present ones."""
    index.merge_from(other, index.ntotal if swig._keeps_ids(index) else 0)


def can_merge(empty, row):
    """Whether indexes like an empty one can be merged in less time than
    building one index of all vectors takes. Tries it with one vector."""
    if swig._merges_slowly(empty):
        return False
    one, other = copy_of(empty), copy_of(empty)
    try:
        add(one, row, 0)
        add(other, row, 1)
        merge(one, other)
        return one.ntotal == 2
    except RuntimeError:
        return False


class BlockFolder(BuildFolder):
    """The folder of an unfinished build_from."""

    def __init__(self, path):
        super().__init__(path, VectorFileError, r"(trained|exact|all)\.index"
                         r"|block-\d+\.index(\.json)?")

    @contextlib.contextmanager
    def building(self, state):
        """Starts a build, or continues one; yields the size of its blocks.

        When all is done, deletes the build's files, and the folder if it is
        empty then.
        """
        with self.locked(state) as before:
            if before is None or not self.continues(before, state):
                self.clean_up(keep=(STATE, LOCK))
                self.set_state(state)
                before = state
            yield before["block"]
            self.clean_up()
        with contextlib.suppress(OSError):
            os.rmdir(self.path)

    def continues(self, before, state):
        """Whether to continue a build, and not to start it again.

        Raises an error if it is another build.
        """
        others = differing(before, state)
        if not others:
            return True
        names = [name for name in self.files()
                 if name.startswith(("block-", "all."))]
        if others == ["block"] and 0 < before["block"] < state["block"]:
            # With more memory, a build with a single finished block starts
            # again: it may have stopped because the index did not fit, and it
            # had a smaller training sample.
            return "all.index" in names or sum(
                name.endswith(".json") for name in names) > 1
        if names and others == ["block"]:
            raise self.error(
                f"{self.path} is an unfinished build that was begun with more "
                f"memory: {before['block']:,} vectors at a time, now "
                f"{state['block']:,}; give as much, delete the folder, or give "
                "another output")
        if names:
            words = {"block": "memory", "vectors": "file of vectors (another "
                     "one, or written since)"}
            self.refuse(words.get(key, key) for key in others
                        if key != "block" or "string" not in others)
        return False

    def read(self, name, binary=False):
        try:
            return read_index(self.file(name), binary)
        except RuntimeError as error:
            raise with_prefix(
                error, f"{self.file(name)} cannot be read; delete it, and the "
                "same call makes it again: ", self.error) from None

    def has_block(self, begin, source):
        """Whether a block is finished and its file is undamaged."""
        record = self.record(block_name(begin), source)
        return record is not None and has_digest(
            self.file(block_name(begin)), record)


def block_name(begin):
    return f"block-{begin}.index"


def build_of(source, string, memory, output, exact, metric, train, seed,
             parameters, progress, ids, names=None):
    """Builds an index of the vectors of a source, as build_from does."""
    train, seed, parameters = checked(string, exact, train, seed, parameters)
    check_names(names, output)
    source = source.opened()
    made = made_from(string, source.d, source.dtype, metric, parameters,
                     source.name, source.packed, is_sparse(source.vectors))
    if is_sparse(source.vectors) and not takes_sparse(made):
        raise VectorFileError(f"{source.name}: {why_not_sparse(string)}")
    check_exact(exact, string, made, [source])
    build = Build(source, made, number_of_bytes(memory), exact, train, seed,
                  progress)
    if ids is not None:
        ids = checked_ids(ids, build, made, string)
    if output is not None:
        output = os.path.abspath(output)
        check_writable(output)
        if os.path.exists(output) and os.path.samefile(
                output, build.source.path):
            raise ValueError("output: the index would overwrite the vectors")
        folder = BlockFolder(output + ".build")
    with contextlib.ExitStack() as stack:
        try:
            if output is None or ids is not None or (
                    source.n <= build.block and not folder.has(STATE)):
                build.train()
                build.fill(ids)
            else:
                build.resume(folder, stack.enter_context(folder.building({
                    "string": str(string), "metric": int(metric),
                    "parameters": parameters, **build.state()})))
        except RuntimeError as error:
            if hasattr(error, "path"):  # the text has it
                raise
            raise with_prefix(error, f"{source.name}: ") from None
        index = build.whole(ids)
        if output is not None:
            write_with_names(index, output, names)
    return index


def check_names(names, output):
    if names is not None and not isinstance(names, Names):
        raise TypeError(f"names: expected a faiss_ext.Names, got {names!r}")
    if names is not None and output is None:
        raise ValueError("names: the file of the index keeps them; give output=")


def integer(value, name):
    """An argument that is an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name}: expected an integer, got {value!r}") from None


def checked(string, exact, train, seed, parameters):
    """Checks the arguments of a build; returns train, seed and parameters as
    Python numbers."""
    if not isinstance(string, str):
        raise TypeError(f"string: expected a factory string of an index, got {string!r}")
    if not string.strip():
        raise ValueError("string: it is empty, expected a factory string of an "
                         "index, such as 'KFlat(chi2)'")
    if exact not in ("file", "memory", None):
        raise ValueError(f"exact: expected 'file' or 'memory', got {exact!r}")
    train, seed = integer(train, "train"), integer(seed, "seed")
    if not isinstance(parameters or {}, dict):
        raise TypeError("parameters: expected a dict such as {'nprobe': 8}, got "
                        f"{parameters!r}")
    if train < 1 or seed < 0:
        raise ValueError("train must be positive, and seed not negative; got "
                         f"{train} and {seed}")
    return train, seed, {name: python_number(value)
                         for name, value in (parameters or {}).items()}


def check_exact(exact, string, made, sources):
    """Checks that an index can read the vectors of sources from their files if
    exact="file" asks for it."""
    if exact != "file":
        return
    why = Layout(made).why_copied
    if not why:
        why = next((f"{source.name} is not in a file" for source in sources
                    if source.path is None), "")
    if not why:
        why = next((f"{source.name} has packed bits" for source in sources
                    if source.packed), "")
    if why:
        raise ValueError(
            f'exact="file" (--exact file) is not possible for {string}: {why}; '
            'use exact="memory" (--exact memory)')


class Layout:
    """Where an index that the factory has made compares vectors exactly.

    Attributes
    ----------
    wrappers : list
        Indexes around the one that ranks candidates again or compares them.
    ranking : Ranking or None
        How it ranks candidates again.
    flat
        The part that compares them.
    why_copied : str
        Why it cannot compare vectors in a file; empty if it can.
    """

    def __init__(self, made):
        self.ranking = ranking_of(made)
        path = (self.ranking.path if self.ranking
                else [real(made), *parts_that_answer(made)])
        self.wrappers = path[:-1]
        self.flat = self.ranking.exact if self.ranking else path[-1]
        self.why_copied = self.reason()

    def reason(self):
        if not isinstance(self.flat, swig.IndexFlatKernel):
            return "no KFlat, alone or in Refine, compares the vectors"
        if any(map(transforms_of, self.wrappers)):
            return ("its KFlat compares transformed vectors, and the file has "
                    "others")
        if self.flat.store != "f32":
            return f"store={self.flat.store} makes copies"
        return ""

    @property
    def has_table(self):
        return any(map(swig._translates_ids, self.wrappers))

    def wrapped(self, index, ids=None):
        """An index inside wrappers like those of this one. The ids are
        positions by default."""
        for wrapper in reversed(self.wrappers):
            if swig._translates_ids(wrapper):
                ids = np.arange(index.ntotal) if ids is None else ids
                index = kept(swig._table_of_ids_c(
                    index, len(ids), faiss.swig_ptr(ids)), index)
            else:
                index = type(wrapper)(index)
        return index


def checked_ids(ids, build, made, string):
    """Checks the ids of a build."""
    ids = as_new_ids(ids, build.source.n, "build_from")
    at = repeated(ids)
    if at is not None:
        raise ValueError(f"ids: vector {at} has the id {ids[at]} of an earlier "
                         "vector")
    if build.exact is not None and not build.layout.has_table:
        raise ValueError(
            'ids: a KFlat that reads the vectors from the file takes no ids; use '
            f'exact="memory" (--exact memory), or IDMap,{string}')
    if not hasattr(made, "upsert") and not swig._keeps_ids(made):
        raise ValueError(
            f"ids: {string} takes no ids; use IDMap,{string}")
    return ids


def check_counts(packed, dtype, string, name):
    """Raises an error for packed bits, which an index of vectors does not take
    from a file, and for bytes that may be packed bits."""
    if packed is not None and checked_packed(packed, name):
        raise VectorFileError(
            f"{name}: {string} takes vectors, got packed={packed}; use a string "
            "such as BKFlat(jaccard) for packed bits in a file")
    if packed is None and may_be_bits(dtype, string):
        raise VectorFileError(
            f"{name}: has bytes (uint8), which may be packed bits or counts; "
            "pass packed=False (--counts) for counts, or use a string such as "
            "BKFlat(jaccard) for packed bits")


def made_from(string, d, dtype, metric, parameters, name, packed=None,
              are_sparse=False):
    """Makes the empty index of a string, for vectors of a type from a source
    with a name. Packed bits are d bytes."""
    for_codes = swig._is_string_for_codes(string)
    dtype = None if are_sparse else dtype
    if packed is None and not for_codes and may_be_bits(dtype, string):
        raise VectorFileError(
            f"{name}: has bytes (uint8), which may be packed bits or counts; "
            "give packed=True or packed=False (--packed or --counts)")
    packed = for_codes if packed is None else checked_packed(packed, name)
    if packed and dtype != "uint8" or for_codes and not packed:
        raise VectorFileError(
            f"{name}: {string if for_codes else 'packed=True (--packed)'} takes "
            "packed bits, uint8, got " + (
                (dtype or "sparse vectors") if packed
                else "packed=False (--counts)"))
    d = number_of_bits(packed, d, name) if packed else d
    made = (swig.index_binary_factory(d, string) if for_codes
            else faiss.index_factory(d, string, metric))
    for name, value in parameters.items():
        set_index_parameter(made, name, value)
    return made


class Build:
    """An index that is being built.

    Vectors are added to `base`. `exact` reads them from the file. One of the
    two may be None.
    """

    def __init__(self, source, made, memory, exact, train=0, seed=0,
                 progress=False):
        """made : an index without vectors; train() trains it if it is not
        trained
        memory : in bytes
        """
        self.source, self.memory = source, memory
        self.train_size, self.seed, self.progress = train, seed, progress
        self.folder = None
        self.bits = takes_packed_bits(made)
        self.unpacks = bool(source.packed) and not self.bits
        self.base, self.exact, self.layout = made, None, Layout(made)
        if (exact != "memory" and source.path is not None
                and not self.unpacks and not self.layout.why_copied):
            self.exact = file_index(
                source.path, self.layout.flat.kernel, made.metric_type,
                source.part, n=0, packed=False)
            ranking = self.layout.ranking
            self.base = None if ranking is None else ranking.base
        # The sizes of a vector at each step on its way into the index. A hash
        # makes codes of a few vectors at a time.
        transforms = [] if self.base is None else transforms_of(self.base)
        widths = [made.d if self.unpacks else source.width, *(t.d_out for t in transforms
                              if not isinstance(t, swig.KernelHash))]
        self.bytes_on_the_way = 4 * sum(widths)
        self.block = int(np.clip(
            memory // 8 // self.bytes_on_the_way, LEAST_BLOCK, MOST_BLOCK))
        if (self.base is not None and source.n > self.block
                and takes_one_add_only(self.base)):
            raise ValueError(
                f"IndexIVFPQFastScan of FAISS {faiss.__version__} crashes at the "
                f"second call of add, and {source.n:,} vectors need several "
                "calls; use KIVF instead")

    def state(self):
        """The state that identifies a build, except for its string."""
        return {"version": __version__, "exact": self.exact is not None,
                "train": self.train_size, "seed": self.seed,
                "block": self.block, "d": self.parts()[0].d,
                "vectors": self.source.identity}

    def whole(self, ids=None):
        """The index, once all vectors are in it."""
        if self.exact is None:
            return self.base
        index = self.exact
        if self.base is not None:
            index = swig.IndexRefineKernel(self.base, self.exact)
            index.k_factor = self.layout.ranking.k_factor
        return self.layout.wrapped(index, ids)

    def block_of(self, begin, end):
        """Vectors in the form that the index takes."""
        return self.taken(self.source.block(
            begin, end, self.bits or self.unpacks))

    def taken(self, rows):
        return (unpacked(self.base, rows, True, self.source.name) if self.unpacks
                else rows)

    def parts(self):
        return [p for p in (self.exact, self.base) if p is not None]

    def train(self):
        untrained = [p for p in self.parts() if not p.is_trained]
        if untrained:
            # the mapped sample is held in memory as a whole
            most = self.memory // 2 // (
                4 * self.source.width + self.bytes_on_the_way)
            numbers = drawn(
                self.source.n, min(self.train_size, most), self.seed)
            sample = self.taken(self.source.rows(
                numbers, self.bits or self.unpacks))
            for part in untrained:
                train_with(part, sample, numbers, self.progress)

    def add_exact(self, n):
        """Adds the next n vectors of the file to the exact index."""
        try:
            self.exact.add_next(n)
        except RuntimeError as error:
            error.path = self.source.path
            raise

    def blocks(self, done=()):
        """Yields the first number and the rows of each unfinished block."""
        begin = 0
        with counting("add", self.source.n, self.progress) as count:
            while begin < self.source.n:
                end = min(begin + self.block, self.source.n)
                if begin not in done:
                    rows = self.block_of(begin, end)
                    with shown(self.progress):
                        yield begin, rows
                if self.exact is not None and self.exact.ntotal < end:
                    self.add_exact(end - self.exact.ntotal)
                    if self.folder is not None:
                        self.folder.write(self.exact, "exact.index")
                count(end - begin)
                begin = end

    def fill(self, ids=None):
        """Adds all vectors, without a folder."""
        if self.exact is not None:  # whole() gives them
            ids = None
        for begin, rows in self.blocks():
            if self.base is not None:
                empty = 0 if begin else size_of(self.base)
                add(self.base, rows, begin, ids)
                if begin == 0:
                    self.check_size(self.base, size_of(self.base) - empty)
                    reserve(self.base, self.source.n)

    def check_size(self, piece, size, beside=0):
        """Raises MemoryError if the whole index would not fit.

        The estimate is made from the size of a piece of the index in a file,
        plus `beside` bytes.
        """
        n, unused = self.source.n, swig._unused_places(piece)
        expected = (size / (piece.ntotal + unused) * (n + unused)
                    + swig._extra_memory(piece, n))
        if self.exact is not None and self.layout.has_table:
            expected += 8 * n  # ids
        needed = (expected * (1 if is_reserved(piece) else 2) + beside
                  + min(n, self.block) * self.bytes_on_the_way)
        if needed > self.memory:
            raise MemoryError(
                f"an index of {n:,} vectors takes about "
                f"{expected / 2**20:,.1f} MB ({expected / n:,.0f} bytes each), "
                f"and {needed / 2**20:,.1f} MB while it is built, more than "
                f"the {self.memory / 2**20:,.1f} MB of memory")

    def resume(self, folder, block):
        """Continues from the files in the folder, or starts a new build."""
        self.folder, self.block = folder, block
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
        # an index that was read can differ a little from the one written
        self.base = folder.read("trained.index", self.bits)
        if can_merge(self.base, self.block_of(0, 1)):
            self.fill_by_blocks()
        else:
            self.fill_with_copies()

    def fill_by_blocks(self):
        trained = digest(self.folder.file("trained.index"))
        sources = {begin: {"begin": begin, "trained": trained}
                   for begin in range(0, self.source.n, self.block)}
        done = {begin for begin, source in sources.items()
                if self.folder.has_block(begin, source)}

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
            check_block(piece, begin, self.folder.write_part(
                piece, block_name(begin), sources[begin])["bytes"])
        reserve(self.base, self.source.n)
        for begin in sources:
            merge(self.base, self.folder.read(block_name(begin), self.bits))

    def fill_with_copies(self):
        if self.folder.has("all.index"):
            self.base = self.folder.read("all.index", self.bits)
        saved, cost = Stopwatch(), 0
        for begin, rows in self.blocks(
                range(0, self.base.ntotal, self.block)):
            add(self.base, rows, begin)
            if saved.seconds > 10 * cost:
                cost = self.folder.write(self.base, "all.index")
                self.check_size(self.base, os.path.getsize(
                    self.folder.file("all.index")))
                saved = Stopwatch()
