# SPDX-License-Identifier: MIT
"""What the Python tests share: real data, and whether the module is there."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

# Threads that wait must not keep other programs from working. (It is read when
# the first module that uses OpenMP is loaded.)
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

try:
    import faiss_ext

    # the folder of headers, seen from the root of the sources, is not it
    import_problem = None if faiss_ext.__file__ else "no Python module found"
except ImportError as error:
    import_problem = str(error)

# files whose tests do not import faiss_ext themselves
NEEDS_NO_MODULE = {"test_older_libraries.py", "test_packaging.py"}


def pytest_collectstart(collector):
    is_module = isinstance(collector, pytest.Module)
    if import_problem and is_module and collector.path.name not in NEEDS_NO_MODULE:
        pytest.exit(
            f"The tests cannot import faiss_ext: {import_problem}.\n"
            "scripts/test.sh builds it and runs all tests. By hand: "
            "cmake --build build, then PYTHONPATH=build/python "
            "python3 -m pytest tests/python, with the Python that has faiss.",
            returncode=4)


class Data(NamedTuple):
    base: np.ndarray  # float32, n x d
    queries: np.ndarray  # float32, nq x d


@pytest.fixture(scope="session")
def digits():
    """scikit-learn's digits: 1,597 vectors of 64 grey values, 200 queries."""
    from helpers import COUNTS

    return Data(COUNTS[200:], COUNTS[:200])


@pytest.fixture(scope="session")
def data_folder():
    """The folder that FAISS_EXT_DATA names; without it the test is skipped."""
    folder = os.environ.get("FAISS_EXT_DATA")
    if not folder:
        pytest.skip("needs real data: let FAISS_EXT_DATA name a folder with mnist/")
    return Path(folder)


@pytest.fixture(scope="session")
def environment():
    """What a process of its own needs to import the same faiss_ext."""
    path = [str(Path(faiss_ext.__file__).resolve().parents[1])]
    path += filter(None, [os.environ.get("PYTHONPATH")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


@pytest.fixture(scope="session")
def run_python(environment):
    """Runs Python code in a process of its own; gives what it prints.

    Fails with what it says on standard error if it does not end well.
    """

    def run(code, *arguments, **variables):
        result = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=900)
        assert result.returncode == 0, f"exit status {result.returncode}\n{result.stderr}"
        return result.stdout

    return run


@pytest.fixture(scope="session")
def datasets():
    """scripts/datasets.py, which reads files of vectors."""
    from helpers import script

    return script("datasets")
