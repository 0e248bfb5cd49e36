#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables of keys in docs/strings.md, from the classes' own
descriptions (faiss_ext.describe).

    PYTHONPATH=build/python python3 scripts/key_tables.py [--check]

The tables are between the lines `<!-- keys: begin -->` and
`<!-- keys: end -->`. With --check nothing is written, and the exit status is 1
if the page is out of date.
"""

import argparse
import difflib
import sys
from pathlib import Path

import faiss_ext

PAGE = Path(__file__).resolve().parents[1] / "docs" / "strings.md"
BEGIN = "<!-- keys: begin -->\n"
END = "<!-- keys: end -->\n"
HEADER = ("key", "values", "default", "meaning")
# a scheme that has all keys of another one, and so many of them unchanged, is
# described by what it adds
MIN_SHARED = 4


def code(text):
    return f"`{text}`" if text else ""


def words(names):
    """`a`, `b` and `c`"""
    names = [code(n) for n in names]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def escaped(text):
    for character in "\\|<>*_`":
        text = text.replace(character, "\\" + character)
    return text


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def any_kernel(values):
    """The lists of all kernels, which are long, in a few words."""
    for names, word in ((faiss_ext.kernel_names(), "any kernel"),
                        (faiss_ext.bit_kernel_names(), "any kernel of bits")):
        for separator in (", ", " or "):
            every = ", ".join(names[:-1]) + separator + names[-1]
            values = values.replace(every, word)
    return values


def cells(row):
    key, values, default, meaning = row
    return (code(key), escaped(any_kernel(values)), code(default) or "required",
            escaped(meaning))


def kernel_tables(fields):
    """One table for all kernels; those that share a row stand beside it."""
    kernels_of = {}
    for name, rows in fields.items():
        for row in rows:
            kernels_of.setdefault(row, []).append(name)
    text = table(("kernels", *HEADER),
                 [(", ".join(map(code, names)), *cells(row))
                  for row, names in kernels_of.items()])
    bare = [name for name, rows in fields.items() if not rows]
    return text + (f"\n{words(bare)} have no keys.\n" if bare else "")


def shared_scheme(name, fields):
    """The scheme whose keys `name` has as well, if there is one."""
    keys = {row[0] for row in fields[name]}
    candidates = [
        (len(set(rows) & set(fields[name])), other)
        for other, rows in fields.items()
        if other != name and len(rows) < len(keys)
        and {row[0] for row in rows} <= keys]
    count, other = max(candidates, default=(0, None))
    return other if count >= MIN_SHARED else None


def scheme_tables(fields):
    text = ""
    for name, rows in fields.items():
        if not rows:
            continue  # an index without keys
        text += f"\n### {name}\n\n"
        other = shared_scheme(name, fields)
        if other:
            theirs = fields[other]
            rows = [row for row in rows if row not in theirs]
            changed = [row[0] for row in rows
                       if row[0] in {their[0] for their in theirs}]
            text += f"The keys of [{other}](#{other.lower()}), "
            if changed:
                verb = "differ" if len(changed) > 1 else "differs"
                text += f"of which {words(changed)} {verb}, "
            text += "and\n\n"
        text += table(HEADER, map(cells, rows))
    return text


def tables():
    fields = {name: [tuple(row) for row in faiss_ext.describe(name)]
              for name in faiss_ext.described_names()}
    kernels = {name: fields.pop(name) for name in faiss_ext.kernel_names()}
    of_bits = {name: kernels.get(name) or fields.pop(name, [])
               for name in faiss_ext.bit_kernel_names()}
    return ("\n### Kernels\n\n" + kernel_tables(kernels)
            + "\n### Kernels of bits\n\n" + kernel_tables(of_bits)
            + scheme_tables(fields) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true",
                        help="exit with status 1 if the page is out of date")
    check = parser.parse_args().check

    old = PAGE.read_text()
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{PAGE} has no lines {BEGIN.strip()} and {END.strip()}")
    new = before + begin + tables() + end + after
    if new == old:
        print("The tables of keys in docs/strings.md are up to date.")
        return 0
    if check:
        sys.stdout.writelines(difflib.unified_diff(
            old.splitlines(True), new.splitlines(True), "docs/strings.md",
            "docs/strings.md as it should be"))
        print("docs/strings.md is out of date: run scripts/key_tables.py")
        return 1
    PAGE.write_text(new)
    print("docs/strings.md: the tables of keys are written anew.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
