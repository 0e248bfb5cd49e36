#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows the line and branch coverage of src/.

    python3 scripts/coverage.py FILE [--least PERCENT]

FILE is the output of `llvm-cov export -summary-only`. Prints the ten files with the most lines that were not run, and
the total. Fails if less than PERCENT of the lines were run.
"""

import argparse
import json
import sys
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--least", type=float, default=0, metavar="PERCENT")
    args = parser.parse_args()
    files = {}
    for entry in json.loads(args.file.read_text())["data"][0]["files"]:
        _, found, name = entry["filename"].rpartition("src/")
        if found:
            files[name] = entry["summary"]
    if not files:
        sys.exit(f"{args.file} knows of no files in src/")

    def left(name):
        return files[name]["lines"]["count"] - files[name]["lines"]["covered"]

    for name in sorted(files, key=left, reverse=True)[:10]:
        print(f"{left(name):5d} of {files[name]['lines']['count']:5d} lines not run: src/{name}")
    shares = {}
    for kind in ("lines", "branches"):
        count = sum(summary[kind]["count"] for summary in files.values())
        covered = sum(summary[kind]["covered"] for summary in files.values())
        shares[kind] = 100 * covered / max(count, 1)
        print(f"{kind} run: {covered} of {count}, {shares[kind]:.1f} %")
    if shares["lines"] < args.least:
        sys.exit(f"less than {args.least:g} % of the lines have been run")


if __name__ == "__main__":
    main()
