# SPDX-License-Identifier: MIT
"""Names of vectors in the file of their index, as docs/file-format.md
describes."""

import hashlib
import io
import json
import mmap
import os
import struct

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .arguments import counted, shown
from .extend_faiss import FILE_MAGICS
from .filters import ids_of
from .files import replacing, write_index as write_index_alone
from .index_tree import all_inside
from .names import Names, with_contents
from .vector_files import VectorFileError, checked_name, errors_named

MAGIC, END_MAGIC = b"FxNames1", b"1semaNxF"
END = struct.Struct("<32sQ8s")  # checksum, length, END_MAGIC
FRAME_HEAD = struct.Struct("<4sIQ")  # of an index: magic, version, length


def write_index(
    index: "faiss.Index | faiss.IndexBinary",
    f: "str | os.PathLike[str] | faiss.IOWriter", io_flags: int = 0, *,
    names: "Names | None" = None
) -> None:
    """Writes an index to a file, with the names of its vectors.

    FAISS's `write_index` and `read_index` read and write such files too. Its
    `write_index` writes no names.

    Parameters
    ----------
    index : faiss.Index or faiss.IndexBinary
        The index.
    f : str, path or faiss.IOWriter
        The file, or a writer if there are no names. A file with names is
        replaced once the new one is complete.
    io_flags : int, optional
        Without `names`, passed to the FAISS function of versions that have it.
    names : Names, optional
        The names, which are written behind the index in the same file.
        `read_names` reads them.

    Raises
    ------
    ValueError
        If an id of the index has no name, or if a name has an id that is not
        in the index. No file is written then.
    TypeError
        If one of the arguments is of another class.
    """
    if names is None:
        write = (faiss.write_index_binary
                 if isinstance(index, faiss.IndexBinary) else faiss.write_index)
        return write(index, f, *([io_flags] if io_flags else []))
    if not isinstance(names, Names):
        raise TypeError("write_index: names must be a faiss_ext.Names, got "
                        f"{shown(names)}")
    if not isinstance(index, (faiss.Index, faiss.IndexBinary)):
        raise TypeError(
            f"write_index: expected an index, got {shown(index)}")
    if not isinstance(f, (str, os.PathLike)):
        raise TypeError("write_index: with names, expected the name of a file, "
                        f"got {shown(f)}")
    check_not_read_from(f, index)
    check_same_ids(index, names)
    write_with_names(index, f, names)


def write_with_names(index, path, names):
    """Writes an index to a file, and its names if they are not None."""
    if names is None:
        return write_index_alone(index, path)
    with replacing(path) as file:
        write_index_alone(index, faiss.PyCallbackIOWriter(file.write))
        for piece in section(names):
            file.write(piece)


def read_names(path: "str | os.PathLike[str]") -> "Names | None":
    """Reads the names of vectors in the file of an index.

    Parameters
    ----------
    path : str or path
        The file, as `faiss_ext.write_index(index, path, names=names)` writes
        it.

    Returns
    -------
    Names, or None if the file has no names

    Raises
    ------
    VectorFileError
        A ValueError. If the file cannot be read, if it begins with no index, or
        if the index or the names in it are truncated or damaged.
    """
    with errors_named(checked_name(path)), open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        end = b""
        if size >= END.size:
            file.seek(size - END.size)
            end = file.read()
        if end.endswith(END_MAGIC):
            return contents(path, file, size, end)
        file.seek(0)
        if not begins_index(file.read(4)):
            raise VectorFileError(f"{path}: the file of an index was expected, "
                                  + ("but it is empty" if size == 0 else
                                     "but it does not begin with one"))
        if holds_beginning(path, file):
            raise truncated(path)
    return None


def begins_index(head):
    """Whether the first four bytes of a file may be those of an index. FAISS's
    begin with I."""
    return len(head) == 4 and (head in FILE_MAGICS or head.startswith(b"I"))


def names_in_rest(path, rest):
    """The names in the bytes that follow an index in a pipe, or None."""
    if rest.endswith(END_MAGIC) and len(rest) >= END.size:
        return contents(path, io.BytesIO(rest), len(rest), rest[-END.size:])
    if begins_section(rest):
        raise truncated(path)
    return None


def truncated(path):
    return VectorFileError(
        f"{path}: the names behind the index are truncated or damaged")


def check_not_read_from(path, index):
    """Raises an error if an index reads its vectors from the file to be
    written."""
    for part in all_inside(index):
        if (isinstance(part, swig.IndexFileKernel) and os.path.exists(path)
                and os.path.exists(part.path)
                and os.path.samefile(path, part.path)):
            raise ValueError(f"write_index: the index reads its vectors from "
                             f"{path}; write it to another file")


def check_same_ids(index, names):
    """Raises ValueError unless an index and its names have the same ids. Several
    vectors may have one id."""
    of_names = np.fromiter(names._names, "int64", len(names))
    try:
        of_index = np.unique(ids_of(index))
    except RuntimeError:  # shards do not tell their ids
        if len(names) == index.ntotal:
            return
        raise ValueError(
            f"write_index: {counted(len(names), 'name')} for "
            f"{counted(index.ntotal, 'vector')}, expected one for each") from None
    unnamed = np.setdiff1d(of_index, of_names)
    if len(unnamed):
        raise ValueError(
            f"write_index: {counted(len(unnamed), 'id')} of the index without a "
            f"name, such as {unnamed[0]}; expected a name for each")
    unused = np.setdiff1d(of_names, of_index)
    if len(unused):
        raise ValueError(
            f"write_index: {counted(len(unused), 'name')} without a vector in the "
            f"index, such as {names.of(unused[:1])[0]!r} with id {unused[0]}; "
            "names.remove removes names")


def section(names):
    """Yields the bytes of names in a file, in pieces."""
    texts, ids, next_id, about = names._contents()
    about, data = json.dumps(about).encode(), "".join(texts).encode()
    lengths = np.fromiter((len(text.encode()) for text in texts), "<u4",
                          len(texts))
    checksum, size = hashlib.sha256(), END.size
    for piece in (MAGIC, struct.pack("<Q", len(about)), about,
                  struct.pack("<QQ", next_id, len(ids)),
                  np.array(ids, "<i8").tobytes(),
                  struct.pack("<Q", len(ids)), lengths.tobytes(),
                  struct.pack("<Q", len(data)), data):
        checksum.update(piece)
        size += len(piece)
        yield piece
    yield END.pack(checksum.digest(), size, END_MAGIC)


def contents(path, file, size, end):
    """The names in the last bytes of a file."""
    checksum, length, _ = END.unpack(end)
    damaged = VectorFileError(f"{path}: the names behind the index are damaged")
    if not len(MAGIC) + END.size <= length <= size:
        raise damaged
    file.seek(size - length)
    data = file.read(length - END.size)
    if not data.startswith(MAGIC) or (
            hashlib.sha256(data).digest() != checksum):
        raise damaged
    try:
        return parsed(data)
    except (ValueError, struct.error) as error:
        raise VectorFileError(f"{path}: the names behind the index are "
                              f"malformed: {error}") from None


def parsed(data):
    """The names in the bytes of a section, whose checksum is right."""
    at = len(MAGIC)

    def array(dtype):
        nonlocal at
        n, = struct.unpack_from("<Q", data, at)
        items = np.frombuffer(data, dtype, n, at + 8)
        at += 8 + items.nbytes
        return items

    about = json.loads(array("u1").tobytes())
    next_id, = struct.unpack_from("<Q", data, at)
    at += 8
    ids, lengths, text = array("<i8"), array("<u4"), array("u1").data
    ends = [0, *np.cumsum(lengths, dtype="int64").tolist()]
    check(at == len(data), "its length")
    check(isinstance(about, dict), "the facts about the vectors")
    check(len(ids) == len(lengths) and ends[-1] == len(text),
          "the lengths of the names")
    check((ids[1:] > ids[:-1]).all() and next_id > int(ids.max(initial=-1)),
          "the ids")
    texts = [str(text[begin:end], "utf-8")
             for begin, end in zip(ends, ends[1:])]
    return with_contents(texts, ids, next_id, about)


def check(is_right, what):
    if not is_right:
        raise ValueError(f"{what} cannot be right")


def holds_beginning(path, file):
    """Whether a section begins in a file, whose end is missing or damaged."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end = end_of_frame(data)
        if end is None:  # FAISS's format: nothing tells where it ends
            return data.find(MAGIC) >= 0
        if end > len(data):
            raise VectorFileError(
                f"{path}: the index is truncated: expected {end:,} bytes, got "
                f"{len(data):,}")
        return begins_section(data[end:end + len(MAGIC)])


def begins_section(rest):
    """Whether the bytes behind an index begin a section, perhaps truncated."""
    return rest != b"" and MAGIC.startswith(rest[:len(MAGIC)])


def end_of_frame(data):
    """The end of the index in a file of faiss_ext's format; otherwise None. If
    the file ends before it tells its length, the end of its first fields."""
    if data[:4] not in FILE_MAGICS:
        return None
    if len(data) < FRAME_HEAD.size:
        return FRAME_HEAD.size
    _, _, length = FRAME_HEAD.unpack_from(data)
    checksums = -(-length // 2**20)
    header = FRAME_HEAD.size + 8 * checksums + 8
    return -(-header // 64) * 64 + length
