# SPDX-License-Identifier: MIT
"""Versions and settings for bug reports."""

import importlib
import importlib.metadata
import os
import platform

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from ._version import FAISS_VERSION, __version__


# optional packages, which some functions need
OPTIONAL = ("scikit-learn", "distributed", "h5py", "pyarrow", "tqdm")


def versions() -> "dict[str, str | int]":
    """Versions and settings to include in a bug report.

    The versions of this package and of the packages that it uses, the
    instruction set, the number of threads, and the platform.

    Returns
    -------
    dict
    """
    found = {
        "faiss_ext": __version__,
        "built for FAISS": FAISS_VERSION,
        "FAISS": faiss.__version__,
        "FAISS from": faiss.__path__[0],
        "FAISS compiled for": faiss.get_compile_options().strip(),
        "instruction set": swig.instruction_set()}
    limit = os.environ.get("FAISS_EXT_SIMD")
    if limit:
        found["FAISS_EXT_SIMD"] = limit
    found.update({
        "threads": faiss.omp_get_max_threads(),
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "platform": platform.platform()})
    for name in OPTIONAL:
        version = version_of(name)
        if version:
            found[name] = version
    return found


def version_of(name):
    """The version of a package, or None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass  # some Debian packages have no metadata
    try:
        return importlib.import_module(name).__version__
    except ImportError:
        return None


def show_versions() -> None:
    """Prints the result of versions(), for a bug report."""
    found = versions()
    width = max(map(len, found))
    for name, value in found.items():
        print(f"{name.ljust(width)}  {value}")
