# SPDX-License-Identifier: MIT
"""Prints what the faiss module of this interpreter is, a line for each fact.

Run by CMake and by package_metadata.py, with the interpreter that will import
faiss_ext:

    version=1.15.1
    package=/.../site-packages/faiss
    extension=/.../faiss/_swigfaiss.abi3.so
    library=/.../faiss/libfaiss.so       empty: FAISS is in the extension
    exports=1                            0: its symbols cannot be linked
    type_table=swig_runtime_data5        SWIG's, which its modules must share
    distribution=faiss-cpu               empty: not from that wheel
"""

import ctypes
import importlib.metadata
import os
import re
import sys
from pathlib import Path


def probe():
    import faiss

    package = Path(faiss.__file__).resolve().parent
    extension = next(
        module.__file__
        for name, module in sys.modules.items()
        if name.split(".")[-1].startswith("_swigfaiss")
    )
    library = library_of_faiss(extension)
    return {
        "version": faiss.__version__,
        "package": package,
        "extension": extension,
        "library": "" if library == Path(extension).resolve() else library or "",
        "exports": int(library is not None),
        "type_table": type_table(),
        "distribution": distribution(faiss.__version__),
    }


def library_of_faiss(extension):
    """The file that the table of virtual functions of faiss::Index is in: the
    extension or what it is linked with. None if nothing shows it."""

    class Place(ctypes.Structure):
        _fields_ = [
            ("file", ctypes.c_char_p),
            ("base", ctypes.c_void_p),
            ("symbol", ctypes.c_char_p),
            ("address", ctypes.c_void_p),
        ]

    try:
        table = ctypes.c_void_p.in_dll(
            ctypes.CDLL(extension), "_ZTVN5faiss5IndexE"
        )
    except ValueError:
        return None
    place = Place()
    ctypes.CDLL(None).dladdr(
        ctypes.c_void_p(ctypes.addressof(table)), ctypes.byref(place)
    )
    return Path(os.fsdecode(place.file)).resolve()


def type_table():
    """The module that extensions made by SWIG share their types in."""
    return next(
        (n for n in sys.modules if re.fullmatch(r"swig_runtime_data\d+", n)),
        "",
    )


def distribution(version):
    name = "faiss-cpu"
    try:
        installed = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
    return name if f"{installed}.".startswith(f"{version}.") else ""


def leave_isolation():
    """Starts again outside the environment in which pip builds packages, whose
    folder in PYTHONPATH hides the installed packages, and so FAISS."""
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = [folder for folder in path if "pip-build-env-" not in folder]
    if kept != path:
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
        os.environ.pop("PYTHONNOUSERSITE", None)
        os.execv(sys.executable, [sys.executable, *sys.argv])


if __name__ == "__main__":
    leave_isolation()
    for key, value in probe().items():
        print(f"{key}={value}")
