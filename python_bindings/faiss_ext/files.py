# SPDX-License-Identifier: MIT
"""Writes files atomically."""

import contextlib
import errno
import os
import stat
import tempfile

from .vector_files import VectorFileError


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
