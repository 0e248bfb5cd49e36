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
from .errors import with_prefix
from .extend_faiss import read_index_binary
from .fingerprint_builds import Skipped
from .files import check_writable
from .fingerprint_files import STDIN, is_fingerprint_file, names_in
from .id_files import SUFFIXES as SUFFIXES_OF_IDS, Ids, listed_ids, read_ids
from .index_tree import hash_of
from .name_files import names_in_rest
from .name_lists import checked_names, is_names, read_ids_or_names
from .named_vectors import fingerprints_for, names_beside
from .out_of_core import about_vector, takes_packed_bits
from .result_files import SUFFIXES
from .shard_building import open_shards
from .showing import class_name
from .sources import as_floats, widened
from .sparse_arrays import is_sparse
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
                "there is no file of this name; ids of an index with names are "
                "read from a .npy file")
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
    if not is_fingerprint_file(file):
        x = vectors_for(index, vectors_of(file), file)
        has_names = names is not None and takes_packed_bits(index)
        return x, names_of_packed(file, len(x)) if has_names else None
    read = fingerprints_for(
        index, names, file, args.fingerprint, args.skip_errors)
    tell_skipped(read.skipped)
    return read.codes, read.names


def names_of_packed(file, n):
    """The names of n packed bits that an .npz file has, or None."""
    path = file_and_part(file)[0]
    with errors_named(path):
        return names_in(path, n)


def tell_skipped(messages):
    skipped = Skipped()
    skipped.extend(messages)
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


def as_bits(x, file):
    """The vectors of a file as packed bits."""
    if is_sparse(x) or x.dtype != np.uint8:
        raise VectorFileError(
            f"{file}: --packed expects bytes of packed bits (uint8), got "
            f"{'sparse vectors' if is_sparse(x) else f'an array of {x.dtype}'}")
    return np.ascontiguousarray(x)


def check_bytes(args, x, file):
    """Raises VectorFileError for bytes that may be packed bits or counts."""
    if not (args.packed or args.counts):
        try:
            as_packed(None, x, args.kernel, file)
        except ValueError:
            raise VectorFileError(
                f"{file}: has bytes (uint8), which may be packed bits or counts; "
                "give --packed or --counts") from None


def name_standard_input(args):
    """Gives - a name that ends with its --format, as files have."""
    inputs = [key for key in ("vectors", "queries")
              if getattr(args, key, None) == "-"]
    if getattr(args, "format", None) is None:
        if inputs:
            refuse_dash("-")
        return
    if len(inputs) != 1:
        raise UsageError("--format is for standard input: give one of the files "
                         "as -")
    setattr(args, inputs[0], f"{STDIN}.{args.format}")


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


def vectors_for(index, x, name):
    """Vectors of a file in the form that an index takes."""
    width, bits = index.d, False
    if isinstance(index, faiss.IndexBinary):
        bits = takes_packed_bits(index)
        width = -(-index.d // 8) if bits else hash_of(index).d_in
        if bits and x.dtype != np.uint8:
            raise VectorFileError(f"{name}: the index takes packed bits, "
                                  f"uint8, got {x.dtype}")
    if not bits:
        x = as_floats(x, name)
    if is_sparse(x):
        x = widened(x, width, name)
    if x.shape[1] != width and bits:
        raise VectorFileError(f"{name}: codes of {8 * x.shape[1]:,} bits, the "
                              f"index takes {index.d:,}")
    if x.shape[1] != width:
        raise VectorFileError(f"{name}: vectors of {x.shape[1]} components, "
                              f"the index takes {width}")
    return x


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
