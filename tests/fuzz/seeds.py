# SPDX-License-Identifier: MIT
"""Writes the fuzzers' first inputs: golden files and the strings of the tests.

    python3 tests/fuzz/seeds.py FOLDER
"""

import re
import struct
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
KINDS = {b"FxIx": 0, b"FxIB": 1, b"FxVT": 2}


def main():
    folder = Path(sys.argv[1])
    for name in ("files", "strings", "walks", "sparse"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for path in sorted((TESTS / "golden").glob("*.index")):
        data = path.read_bytes()
        kind = KINDS[data[:4]]
        length = struct.unpack("<Q", data[8:16])[0]
        # the first byte: 128 of whole files, 64 of mapped ones, and the kind, by its rest after division by 3
        for suffix, first, rest in (("content", 0, data[-length:]), ("file", 129, data), ("mapped_content", 66, data[-length:]),
                                    ("mapped_file", 192, data)):
            (folder / "files" / f"{path.stem}.{suffix}").write_bytes(bytes([first + kind]) + rest)
    strings = re.findall(r'"([^"\n]+)"', (TESTS / "testing_strings.h").read_text())
    for i, string in enumerate(strings):
        for grammar in range(5):
            (folder / "strings" / f"{i}.{grammar}").write_bytes(bytes([grammar, 23]) + string.encode())


if __name__ == "__main__":
    main()
