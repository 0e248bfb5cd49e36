# SPDX-License-Identifier: MIT
"""Refuses subinterpreters, which NumPy and FAISS do not support."""

try:
    import _interpreters as interpreters  # since Python 3.13
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        interpreters = None

if (interpreters
        and interpreters.get_current() != interpreters.get_main()):
    raise ImportError(
        "faiss_ext can be imported in the main interpreter only: "
        "NumPy and FAISS do not support subinterpreters")
