# SPDX-License-Identifier: MIT
"""Runs FAISS's own tests with and without `import faiss_ext`, and lists those whose outcomes differ.

    python same_outcomes.py FOLDER_OF_TESTS [FILE...]

With --import it runs pytest behind the import; any other argument is pytest's. The status is 1 if outcomes differ.
"""

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path


def outcomes_of(folder, files, report, *arguments):
    subprocess.run(
        [sys.executable, __file__, *arguments, "-q", "--rootdir", ".", "-p", "no:cacheprovider", "-p", "no:warnings",
         "--tb", "no", f"--junitxml={report}", *files], cwd=folder)
    found = {}
    for case in xml.parse(report).iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        found[f"{case.get('classname')}::{case.get('name')}"] = " and ".join(sorted(kinds)) or "passed"
    return found


def compare(folder, files):
    files = files or sorted(path.name for path in Path(folder).glob("test_*.py"))
    with tempfile.TemporaryDirectory() as reports:
        without = outcomes_of(folder, files, Path(reports, "without.xml"), "--without")
        having = outcomes_of(folder, files, Path(reports, "with.xml"), "--import")
    different = sorted(name for name in without.keys() | having.keys() if without.get(name) != having.get(name))
    for name in different:
        print(f"{name}: {without.get(name)} without faiss_ext, {having.get(name)} with it")
    print(f"{len(without)} tests, {len(different)} differ")
    return bool(different) or not without


if __name__ == "__main__":
    first, *rest = sys.argv[1:]
    if first in ("--import", "--without"):
        import pytest
        if first == "--import":
            import faiss_ext  # noqa: F401
        sys.exit(pytest.main(rest))
    sys.exit(compare(first, rest))
