# SPDX-License-Identifier: MIT
"""Results of commands: arrays in .npz and JSON, lines in .csv and .tsv."""

import csv
import io
import itertools

import numpy as np

from .files import replacing
from .vector_files import VectorFileError

SUFFIXES = (".npz", ".csv", ".tsv")


def write_results(output, arrays, columns, rows):
    """Writes the arrays to an .npz file, or the rows to a .csv or .tsv
    file."""
    whole = io.BytesIO()  # zipfile prints errors if a write fails
    if output.endswith(".npz"):
        np.savez(whole, **{name: as_strings(array) if array.dtype == object
                           else array for name, array in arrays.items()})
    else:
        text = io.StringIO()
        write_table(text, columns, rows,
                    "," if output.endswith(".csv") else "\t")
        whole.write(text.getvalue().encode())
    try:
        with replacing(output) as file:
            file.write(whole.getbuffer())
    except OSError as error:
        raise VectorFileError(f"{output}: cannot be written: "
                              f"{error.strerror or error}") from error


def write_table(file, columns, rows, separator):
    """Writes a line of names of columns, and then the rows."""
    write_rows(file, itertools.chain([columns], rows), separator)


def write_rows(file, rows, separator):
    """Writes rows. Words with the separator, quotes or ends of lines get
    quotes."""
    csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)


def as_lists(arrays):
    """Arrays as lists for JSON, which has no NaN: it becomes None."""
    return {name: (np.where(np.isnan(array), None, array)
                   if array.dtype.kind == "f" else array).tolist()
            for name, array in arrays.items()}


def as_strings(names):
    """Names as NumPy's strings, which need no pickle; None becomes ""."""
    return np.where(np.equal(names, None), "", names).astype(str)
