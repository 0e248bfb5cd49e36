# SPDX-License-Identifier: MIT
"""Reads and writes files. A file is replaced when the new one is complete."""

import contextlib
import errno
import hashlib
import json
import os
import stat
import tempfile

import faiss

from . import swigfaiss_ext as swig
from .extend_faiss import as_place, read_index_binary
from .vector_files import VectorFileError


def write_index(index, to):
    """Writes an index to a file or an IOWriter.

    Unlike FAISS's writer, it also replaces files of FAISS's own indexes
    atomically.
    """
    (swig.write_index_binary if isinstance(index, faiss.IndexBinary)
     else swig.write_index)(
         index, as_place(to, "write_index", (faiss.IOWriter,)))


def read_index(source, binary, io_flags=0):
    return (read_index_binary if binary else faiss.read_index)(source, io_flags)


def size_of(index):
    """Size of an index's file, in bytes."""
    size = 0

    def count(data):
        nonlocal size
        size += len(data)

    write_index(index, faiss.PyCallbackIOWriter(count))
    return size


def write_json(path, value):
    with replacing(path) as file:
        file.write(json.dumps(value, indent=1).encode())


def read_json(path):
    """Reads JSON; raises ValueError if the file is not JSON."""
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file)
        except RecursionError:
            raise ValueError("too many brackets in each other") from None


def digest(path):
    """Size and checksum of a file."""
    sha = hashlib.sha256()
    size = 0
    with open(path, "rb") as file:
        while block := file.read(2**20):
            sha.update(block)
            size += len(block)
    return {"bytes": size, "sha256": sha.hexdigest()}


def has_digest(path, expected):
    """Whether a file is there with the size and checksum among `expected`."""
    try:
        return digest(path).items() <= expected.items()
    except OSError:
        return False


@contextlib.contextmanager
def replacing(path):
    """Opens a new file that replaces another one when it is complete.

    Like write_index, it follows symbolic links and keeps the permissions of
    the old file. A pipe or device is written to directly.
    """
    path = os.path.realpath(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            yield file
        return
    if mode is None:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    elif not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    handle, name = tempfile.mkstemp(
        dir=os.path.dirname(path), prefix=".faiss_ext_")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, stat.S_IMODE(mode))
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def check_writable(path):
    """Raises VectorFileError now if writing would fail later."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    except OSError as error:  # such as a loop of symbolic links
        raise VectorFileError(
            f"{path}: cannot be written: {error.strerror or error}") from error
    if mode is not None and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        writable = os.access(path, os.W_OK)
    else:
        folder = os.path.dirname(os.path.realpath(path))
        if os.path.isdir(path):
            raise VectorFileError(f"{path}: cannot be written: it is a folder")
        if not os.path.isdir(folder):
            raise VectorFileError(
                f"{path}: cannot be written: there is no folder {folder}")
        writable = os.access(folder, os.W_OK) and (
            mode is None or os.access(path, os.W_OK))
    if not writable:
        raise VectorFileError(f"{path}: cannot be written: permission denied")
