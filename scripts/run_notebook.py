# SPDX-License-Identifier: MIT
"""Runs a Jupyter notebook from beginning to end; fails if a cell fails.

PYTHONPATH=build/python /usr/bin/python3 scripts/run_notebook.py NOTEBOOK
"""

import sys
import tempfile

import nbclient
import nbformat

notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
with tempfile.TemporaryDirectory() as folder:
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute(cwd=folder)
pictures = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs if "image/png" in o.get("data", {})]
print(f"{sys.argv[1]}: {len(notebook.cells)} cells ran, {len(pictures)} pictures")
