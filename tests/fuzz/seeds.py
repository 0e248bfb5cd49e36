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
    for name in ("files", "strings", "walks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for path in sorted((TESTS / "golden").glob("*.index")):
        data = path.read_bytes()
        kind = KINDS[data[:4]]
        length = struct.unpack("<Q", data[8:16])[0]
        (folder / "files" / f"{path.stem}.content").write_bytes(bytes([kind]) + data[-length:])
        (folder / "files" / f"{path.stem}.file").write_bytes(bytes([128 - 128 % 3 + kind + 3]) + data)
    strings = re.findall(r'"([^"\n]+)"', (TESTS / "testing_strings.h").read_text())
    for i, string in enumerate(strings):
        for grammar in range(5):
            (folder / "strings" / f"{i}.{grammar}").write_bytes(bytes([grammar, 23]) + string.encode())


if __name__ == "__main__":
    main()
