# SPDX-License-Identifier: MIT
"""Files that are complete, or as they were."""

import contextlib
import os
import tempfile

from .vector_files import VectorFileError


@contextlib.contextmanager
def replacing(path):
    """A new file that takes the place of another one when it is complete."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, name = tempfile.mkstemp(dir=folder, prefix=".faiss_ext_")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def check_writable(path):
    """What would fail in the end fails at once."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        raise VectorFileError(f"{path}: cannot be written")
