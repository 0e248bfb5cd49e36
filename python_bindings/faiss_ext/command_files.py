# SPDX-License-Identifier: MIT
"""Files, ids, errors and messages of the command line, for all commands."""

import contextlib
import functools
import io
import json
import os
import sys

import faiss
import numpy as np

from .arguments import as_packed, counted
from .class_wrappers import unpacked
from .errors import with_prefix
from .extend_faiss import read_index_binary
from .fingerprint_builds import Skipped
from .files import check_writable
from .fingerprint_files import (
    STDIN, is_fingerprint_file, joined, names_in, read_fingerprints)
from .id_files import SUFFIXES as SUFFIXES_OF_IDS, Ids, listed_ids, read_ids
from .index_tree import hash_in_front
from .name_files import names_in_rest
from .name_lists import checked_names, is_names, read_ids_or_names
from .named_vectors import fingerprints_for, names_beside
from .out_of_core import about_vector, takes_packed_bits
from .result_files import SUFFIXES
from .shard_building import open_shards
from .showing import class_name
from .sources import as_floats, widened
from .sparse_arrays import is_sparse
from .sparse_vectors import PackedVectors, dimension
from .vector_files import (
    VectorFileError, errors_named, lazy_vectors, read_vectors)


class UsageError(Exception):
    """The command line is invalid."""


def show(args, result, lines):
    """Prints the result as JSON, or the lines."""
    if args.json:
        print(json.dumps(result))
    else:
        print("\n".join(lines))


def file_and_part(word):
    """Splits FILE:NAME into FILE and NAME; NAME is None for FILE."""
    path, _, part = word.rpartition(":")
    if not os.path.exists(word) and os.path.exists(path):
        return path, part
    return word, None


def vectors_of(word):
    return read_vectors(*file_and_part(word))


def number_of_vectors(word):
    return lazy_vectors(*file_and_part(word)).shape[0]


def ids_given(word, read=read_ids):
    """The ids in a file, or in a list such as 3,17,20-30."""
    refuse_dash(word)
    try:
        listed = listed_ids(word)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if listed is not None:
        return listed
    path, part = file_and_part(word)
    if not os.path.exists(path):
        raise VectorFileError(f"{word}: neither a file nor a list of ids, such "
                              "as 3,17,20-30; negative ids are read from a file")
    return read(path, part)


def ids_or_names_given(word, names, read=read_ids, are_known=False):
    """The ids or names in a file, or in a list. If the index has names, text has
    names in both: a list such as aspirin,ibuprofen, or 2244,3672 if they look
    like integers. With are_known, names in a list that the index does not have
    are an error."""
    if names is not None and is_list_of_names(word):
        given = checked_names(Ids(
            [name.strip() for name in word.split(",")], word, has_rows=False))
        unknown = next((name for name in given.ids if name not in names), None)
        if are_known and unknown is not None:
            raise VectorFileError(
                f"{word}: the index has no vector with the name {unknown!r}, and "
                "there is no file of this name; if you mean ids instead of "
                "names, give them in a .npy file")
        return given
    return ids_given(word, functools.partial(
        read_ids_or_names, has_names=names is not None, read=read))


def is_list_of_names(word):
    """Whether a word is not a file of ids, even if it is missing."""
    path, _ = file_and_part(word)
    return not (word == "-" or os.path.exists(path)
                or word.partition(":")[0].endswith(SUFFIXES_OF_IDS))


def vectors_and_names(args, index, names, file):
    """The vectors of a file for an index, and their names, or None."""
    if is_fingerprint_file(file):
        read = joined(list(fingerprints_for(
            width_of(index), names, file, **reading(args))))
        tell_skipped(read.skipped)
        return unpacked(index, read.codes, read.bits, file), read.names
    are_bits = takes_packed_bits(index) or args.packed
    x = vectors_for(index, vectors_of(file), file, are_bits)
    has_names = names is not None and are_bits
    return x, names_of_packed(file, len(x)) if has_names else None


def batches_for(args, index, names, file):
    """Yields the same in batches, for a file of fingerprints."""
    skipped = Skipped()
    for read in fingerprints_for(
            width_of(index), names, file, **reading(args)):
        skipped.extend(read.skipped)
        if len(read.codes) or not read.skipped:
            yield unpacked(index, read.codes, read.bits, file), read.names
    report(skipped)


def as_dense(x):
    """Vectors as an array, if they are those of packed bits."""
    return x.dense() if isinstance(x, PackedVectors) else x


def reading(args):
    """The options of a file of fingerprints."""
    return {"fingerprint": args.fingerprint, "skip_errors": args.skip_errors,
            "name_property": args.name_property}


def fingerprints_of(args, file):
    """The fingerprints of a file for a command without an index."""
    read = read_fingerprints(file, **reading(args))
    tell_skipped(read.skipped)
    return read


def names_of_packed(file, n):
    """The names of n packed bits that an .npz file has, or None."""
    path = file_and_part(file)[0]
    with errors_named(path):
        return names_in(path, n)


def tell_skipped(messages):
    skipped = Skipped()
    skipped.extend(messages)
    report(skipped)


def report(skipped):
    for line in skipped.lines():
        print(line, file=sys.stderr)


def refuse_dash(word):
    if word == "-":
        raise UsageError("- is not a file: only fingerprints and SMILES are read "
                         "from standard input, with --format")


def check_results_file(output, *inputs):
    """Raises an error unless results can be written to a file, if any."""
    if output is None:
        return
    if not output.endswith(SUFFIXES):
        raise UsageError(
            f"the output must be an .npz, .csv or .tsv file, got {output}")
    check_writable(output)
    check_inputs_stay(output, *inputs)


def packed_given(args):
    """What --packed, --bits and --counts say: True, a number of bits, or False;
    None without them."""
    return False if args.counts else args.bits or args.packed or None


def rows_given(args, file, packed):
    """The vectors of a file for a command without an index, whether they are
    packed bits or their number, and their names or None."""
    if is_fingerprint_file(file):
        read = fingerprints_of(args, file)
        return read.codes, read.bits, read.names
    x = vectors_of(file)
    if packed:
        return as_bits(x, file), packed, None
    check_bytes(args, x, file)
    return x, False, None


def as_bits(x, file):
    """The vectors of a file as packed bits."""
    if is_sparse(x) or x.dtype != np.uint8:
        raise VectorFileError(
            f"{file}: --packed expects bytes of packed bits (uint8), got "
            f"{'sparse vectors' if is_sparse(x) else f'an array of {x.dtype}'}")
    return np.ascontiguousarray(x)


def check_bytes(args, x, file):
    """Raises VectorFileError for bytes that may be packed bits or counts."""
    try:
        as_packed(packed_given(args), x, args.kernel, file)
    except ValueError:
        raise VectorFileError(
            f"{file}: has bytes (uint8), which may be packed bits or counts; "
            "give --packed or --counts") from None


def name_standard_input(args):
    """Gives - the name of standard input in its --format."""
    inputs = [key for key in ("vectors", "queries")
              if getattr(args, key, None) == "-"]
    if getattr(args, "format", None) is None:
        if inputs:
            refuse_dash("-")
        return
    if len(inputs) != 1:
        raise UsageError("--format is for standard input: give one of the files "
                         "as -")
    setattr(args, inputs[0], STDIN[args.format])


def check_inputs_stay(output, *words):
    """Raises UsageError if the output is one of the input files, as FILE or
    FILE:NAME."""
    for word in filter(None, words):
        path = file_and_part(word)[0]
        if (os.path.exists(path) and os.path.exists(output)
                and os.path.samefile(path, output)):
            raise UsageError(
                f"the output would overwrite {path}; choose another file")


MAGICS = {b"FxIB": True, b"FxIx": False}


def index_of(path, mmap=False):
    """The float or binary index in a file, a pipe or a folder of shards."""
    return index_and_rest(path, mmap)[0]


def index_and_names(path, mmap=False):
    """The index, and the names of its vectors or None."""
    index, rest = index_and_rest(path, mmap)
    return index, (names_beside(path) if rest is None
                   else names_in_rest(path, rest))


def index_and_rest(path, mmap):
    """The index, and the bytes that follow it in a pipe; None for a file."""
    if os.path.isdir(path):
        return shards_of(path, mmap).to_faiss(), None
    try:
        file = open(path, "rb")
    except OSError as error:
        raise VectorFileError(
            f"{path}: cannot be read: {error.strerror or error}") from error
    with file:
        magic = file.read(4)
        if os.path.isfile(path):
            return read_of(magic, path, str(path), mmap), None
        if mmap:
            raise UsageError(
                f"{path}: --mmap needs a file, this is a pipe or device")
        source = faiss.PyCallbackIOReader(after(magic, file))
        source.name = str(path)
        return read_of(magic, path, source, mmap), file.read()


def after(head, file):
    """A read function that returns `head` first, and then the rest of the
    file."""
    head = io.BytesIO(head)
    return lambda size: head.read(size) or file.read(size)


def read_of(magic, path, source, mmap):
    """The index in a file or an IOReader."""
    binary = MAGICS.get(magic)
    if binary is None:
        binary = magic[:2] == b"IB"  # FAISS's own
    try:
        return (read_index_binary if binary else faiss.read_index)(
            source, faiss.IO_FLAG_MMAP if mmap else 0)
    except RuntimeError as error:
        if magic in MAGICS:  # the message already names the file
            raise
        raise VectorFileError(
            f"{path}: not an index, or a damaged one{own_words(error)}"
        ) from None


def own_words(error):
    """Returns the text of faiss_ext for an error, after a colon. FAISS's text
    would name FAISS's functions."""
    return f": {error}" if hasattr(error, "place") else ""


def shards_of(path, mmap=False):
    """The index in a folder of shards."""
    return open_shards(path, io_flags=faiss.IO_FLAG_MMAP if mmap else 0)


def size_of(path):
    """Size of an index's file or folder in bytes; None for a pipe."""
    if os.path.isdir(path):
        return sum(file.stat().st_size for file in os.scandir(path))
    return os.path.getsize(path) if os.path.isfile(path) else None


def width_of(index):
    """The number of components or bits of the vectors that an index takes."""
    hash = (hash_in_front(index) if isinstance(index, faiss.IndexBinary)
            else None)
    return dimension(index if hash is None else hash)


def vectors_for(index, x, name, are_bits):
    """Vectors or packed bits of a file in the form that an index takes."""
    width = width_of(index)
    if not are_bits:
        return floats_for(x, width, name)
    if is_sparse(x) or x.dtype != np.uint8:
        words = ("the index takes" if takes_packed_bits(index)
                 else "--packed expects")
        raise VectorFileError(f"{name}: {words} packed bits, uint8, got "
                              f"{'sparse vectors' if is_sparse(x) else x.dtype}")
    if x.shape[1] != -(-width // 8):
        raise VectorFileError(f"{name}: codes of {8 * x.shape[1]:,} bits, the "
                              f"index takes {width:,}")
    return unpacked(index, np.ascontiguousarray(x), True, name)


def floats_for(x, width, name):
    if is_sparse(x):
        x = widened(x, width, name)
    if x.shape[1] != width:
        may_be_bits = x.dtype == np.uint8 and x.shape[1] == -(-width // 8)
        raise VectorFileError(
            f"{name}: vectors of {x.shape[1]} components, the index takes {width}"
            + "; --packed takes bytes for packed bits" * may_be_bits)
    return as_floats(x, name)


@contextlib.contextmanager
def naming(file):
    """Names the file in errors about one of its vectors."""
    try:
        yield
    except RuntimeError as error:
        if about_vector(error) is not None:
            raise with_prefix(error, f"{file}: ") from None
        raise


def check_class(index, path):
    """Raises VectorFileError for an index without the methods for ids."""
    if not hasattr(index, "upsert"):
        raise VectorFileError(
            f"{path}: {class_name(index)} is a class of FAISS, expected an "
            "index of faiss_ext, which can filter and change vectors by ids")


def check_count(given, args, n):
    """Raises VectorFileError if there are not n ids or names."""
    ids = given.ids
    there = (ids.stop - ids.start if isinstance(ids, range)  # len() may fail
             else len(ids))
    if there != n:
        raise VectorFileError(
            f"{args.ids}: {counted(there, 'name' if is_names(given) else 'id')}, "
            f"but {args.vectors} has {counted(n, 'vector')}")
