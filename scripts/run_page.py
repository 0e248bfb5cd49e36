# SPDX-License-Identifier: MIT
"""Runs all Python code blocks of a documentation page one after the other, as a reader would type them.

    PYTHONPATH=build/python /usr/bin/python3 scripts/run_page.py PAGE [--figures FOLDER] [--notebook FILE]

The code runs in an empty temporary folder. --figures keeps the PNG files that it writes. --notebook writes the page as a
Jupyter notebook, without results.
"""

import argparse
import json
import os
import re
import shutil
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(path):
    """Runs the blocks in the current folder; returns how many there are."""
    text = path.read_text()
    names = {"__name__": path.stem}
    blocks = list(BLOCK.finditer(text))
    for block in blocks:
        # line numbers in a traceback are those of the page
        before = text[: block.start(1)].count("\n")
        exec(compile("\n" * before + block[1], str(path), "exec"), names)
    return len(blocks)


def cell(kind, text, number):
    made = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.strip("\n").splitlines(keepends=True)}
    if kind == "code":
        made |= {"execution_count": None, "outputs": []}
    return made


def notebook(text):
    """The page as a notebook (nbformat 4.5). Pictures are shown by the code that makes them."""
    text = re.sub(r"^!\[.*?\]\(.*?\)\n\n", "", text, flags=re.MULTILINE)
    cells, end = [], 0
    for block in BLOCK.finditer(text):
        for kind, part in (("markdown", text[end : block.start()]), ("code", block[1])):
            if part.strip():
                code = part.replace('import matplotlib\nmatplotlib.use("Agg")\n', "%matplotlib inline\n")
                cells.append(cell(kind, code, len(cells)))
        end = block.end()
    if text[end:].strip():
        cells.append(cell("markdown", text[end:], len(cells)))
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"}},
        "nbformat": 4, "nbformat_minor": 5}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--figures", type=Path, help="folder for the PNG files that the code writes")
    parser.add_argument("--notebook", type=Path, help="write the page as a notebook instead")
    args = parser.parse_args()
    page = args.page.resolve()
    if args.notebook:
        args.notebook.write_text(json.dumps(notebook(page.read_text()), indent=1, ensure_ascii=False) + "\n")
        return
    figures = args.figures and args.figures.resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        count = run_page(page)
        if figures:
            figures.mkdir(parents=True, exist_ok=True)
            for path in sorted(Path(folder).glob("*.png")):
                shutil.copy(path, figures / path.name)
        os.chdir(page.parent)
    print(f"{page.name}: {count} blocks ran")


if __name__ == "__main__":
    main()
