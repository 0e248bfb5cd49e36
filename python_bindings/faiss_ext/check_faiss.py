# SPDX-License-Identifier: MIT
"""Checks that faiss_ext fits the faiss module, before its extension is loaded.

Another minor version of FAISS has other classes and functions. With other
layouts of classes, faiss_ext would crash. With another SWIG type table, FAISS's
functions would not recognise its objects.
"""

import mmap
import re
import sys

from . import check_layouts
from ._version import FAISS_VERSION, SWIG_TYPE_TABLE, __version__

REMEDY = (f"Install FAISS {FAISS_VERSION} (pip install "
          f"'faiss-cpu=={FAISS_VERSION}.*'), or build faiss_ext again for "
          "the FAISS that is there.")


def check(faiss):
    """Returns the fields of FAISS's classes that have moved, as a dict of
    distances in bytes.

    Raises an ImportError if faiss_ext does not fit.
    """
    place = f"faiss {faiss.__version__} in {faiss.__path__[0]}"
    if minor_version(faiss.__version__) != minor_version(FAISS_VERSION):
        raise ImportError(
            f"faiss_ext {__version__} was built for FAISS {FAISS_VERSION}, and "
            f"this is {place}. {REMEDY}")
    if not has_type_table(SWIG_TYPE_TABLE):
        raise ImportError(
            f"faiss_ext {__version__} was built with SWIG's type table "
            f"{SWIG_TYPE_TABLE}, which {place} does not use. {REMEDY}")
    moved, differences = check_layouts.compare(faiss)
    if differences:
        raise ImportError(
            f"faiss_ext {__version__} was built for FAISS {FAISS_VERSION}, and "
            f"the layout of a class differs in {place}: {differences[0]}. "
            f"{REMEDY}")
    return moved


def minor_version(version):
    return version.split(".")[:2]


def has_type_table(name):
    tables = [m for m in sys.modules if re.fullmatch(r"swig_runtime_data\d+", m)]
    if name not in tables:
        return False
    # other packages may have imported modules of other SWIG versions
    return len(tables) == 1 or name.encode() in tables_of_extension()


def tables_of_extension():
    extension = next(m.__file__ for n, m in sys.modules.items()
                     if n.split(".")[-1].startswith("_swigfaiss")
                     and "_ext" not in n)
    with open(extension, "rb") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return set(re.findall(rb"swig_runtime_data\d+", data))
