# SPDX-License-Identifier: MIT
"""Reads the ids of vectors from files, and from text such as 3,17,20-30.

This module needs only NumPy. Parquet files also need pyarrow.
"""

import csv
import re
import stat
from pathlib import Path

import numpy as np

from .vector_files import (
    NOT_A_NAME, VectorFileError, absent, errors_named, npz_array, pyarrow_of)

SUFFIXES = (".npy", ".npz", ".parquet", ".csv", ".txt")
INTEGER = re.compile(r"[+-]?[0-9]+")
LIST = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")
LIMITS = np.iinfo("int64")
MOST_LISTED = 10**8  # ids of a list with ranges, which become an array


class Ids:
    """Ids that were given: an int64 array, or a range; and where each was.

    Rows of arrays are counted from 0, lines of text from 1. Names that do not
    come from rows or known lines have only the name of their source.
    """

    def __init__(self, ids, name, lines=None, has_rows=True):
        self.ids, self.name, self.lines = ids, name, lines
        self.has_rows = has_rows

    def place(self, at):
        """The place of an id for messages."""
        if self.lines is not None:
            return f"{self.name}: line {self.lines[at]}"
        return f"{self.name}: row {at}" if self.has_rows else str(self.name)


def listed_ids(text):
    """The Ids of text such as "3,17,20-30"; None if the text is not of this
    form.

    A range includes both ends. The ids of a single one are a Python range.
    """
    if not LIST.fullmatch(text):
        return None
    ranges = []
    for word in text.split(","):
        low, _, high = word.partition("-")
        ids = range(int(low), int(high or low) + 1)
        if not ids:
            raise ValueError(f"{word}: a range of ids is LOW-HIGH, as 20-30")
        if ids[-1] > LIMITS.max:
            raise ValueError(f"{word}: the largest id is {LIMITS.max}")
        ranges.append(ids)
    if len(ranges) == 1:
        return Ids(ranges[0], text, has_rows=False)
    # len(range) fails beyond 2^63
    if sum(ids[-1] - ids[0] + 1 for ids in ranges) > MOST_LISTED:
        raise ValueError(f"{text}: more than {MOST_LISTED:,} ids; expected "
                         "fewer, or a single range")
    ids = np.concatenate([np.arange(r.stop - r.start) + r.start
                          for r in ranges])
    at = repeated(ids)
    if at is not None:
        raise ValueError(f"{text}: id {ids[at]} occurs twice")
    return Ids(ids, text, has_rows=False)


def read_ids(path, part=None):
    """Reads the ids in a file.

    - `.npy`, `.npz`: an array of integers, of one dimension.
    - `.parquet`: a column of integers. Needs pyarrow.
    - `.csv`, `.txt`: an id per line, or a column. The first line may have
      names.

    Parameters
    ----------
    path : str or path
        The file.
    part : str, optional
        The array of an `.npz` file, or the column of a Parquet, `.csv` or
        `.txt` file. By default the file must have only one.

    Returns
    -------
    Ids, at least one

    Raises
    ------
    VectorFileError
        A ValueError. If the file cannot be read, has no ids, or if an id is
        not an integer, is -1, or occurs twice. Rows of arrays and columns
        are counted from 0, lines of text from 1.
    """
    return checked_given(given_by(path, part, checked_ids))


def read_filter(path, part=None):
    """Reads the ids that a search may return, as read_ids does, or a boolean
    mask over all ids, from an `.npy` or `.npz` file."""

    def ids_or_mask(path, array):
        is_mask = isinstance(array, np.ndarray) and array.dtype == bool
        return (np.array(array) if is_mask and array.ndim == 1
                else checked_ids(path, array))

    given = given_by(path, part, ids_or_mask)
    return given if given.ids.dtype == bool else checked_given(given)


def given_by(path, part, checked):
    """The Ids in a file; checked(path, array) makes those of an array."""
    path = Path(path)
    with errors_named(path):
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise VectorFileError(f"{path}: is a folder, pipe or device, "
                                  "expected a file of ids")
        if status.st_size == 0:
            raise VectorFileError(f"{path}: empty file")
        if path.suffix not in SUFFIXES:
            raise VectorFileError(f"{path}: unknown kind of file of ids; known "
                                  f"are {', '.join(SUFFIXES)}")
        if path.suffix in (".csv", ".txt"):
            return ids_of_text(path, part)
        return Ids(checked(path, array_of(path, part)), path)


def checked_given(given):
    """Ids from a file; raises VectorFileError if there are none, or if one is
    -1 or occurs twice."""
    path, ids, place = given.name, given.ids, given.place
    if len(ids) == 0:
        raise VectorFileError(f"{path}: it has no ids")
    wrong = np.flatnonzero(ids == -1)
    if len(wrong):
        raise VectorFileError(f"{place(wrong[0])}: the id is -1, which means "
                              '"no result" in searches')
    at = repeated(ids)
    if at is not None:
        raise VectorFileError(
            f"{place(at)}: id {ids[at]} occurs twice")
    return given


def repeated(ids):
    """Returns the position of the first repeated id, or None."""
    first = np.unique(ids, return_index=True)[1]
    if len(first) == len(ids):
        return None
    again = np.ones(len(ids), dtype=bool)
    again[first] = False
    return int(np.flatnonzero(again)[0])


def array_of(path, part):
    """The array in a file that is not text."""
    if path.suffix == ".npz":
        return npz_array(path, part, ndim=1)
    if path.suffix == ".parquet":
        return parquet_column(path, part)
    if part is not None:
        raise VectorFileError(f"{path}: has no part '{part}': an .npy file is "
                              "one array")
    with np.errstate(over="ignore"):  # the header may claim any shape
        return np.load(path, mmap_mode="r", allow_pickle=False)


def checked_ids(path, ids):
    """An array as int64; raises VectorFileError if it has no integers."""
    if not isinstance(ids, np.ndarray) or not (
            ids.ndim == 1 or ids.shape[1:] == (1,)):
        raise VectorFileError(
            f"{path}: expected ids in an array of one dimension"
            + (f", got shape {ids.shape}" if isinstance(ids, np.ndarray)
               else ""))
    ids = ids.reshape(-1)
    if ids.dtype.kind not in "iu":
        row = ""
        if ids.dtype.kind == "f":
            wrong = np.flatnonzero(~np.isfinite(ids) | (ids != np.floor(ids)))
            row = f"; row {wrong[0]} is {ids[wrong[0]]}" if len(wrong) else ""
        raise VectorFileError(
            f"{path}: expected integers as ids, got {ids.dtype}{row}")
    wrong = np.flatnonzero(ids > LIMITS.max) if ids.dtype == np.uint64 else ()
    if len(wrong):
        raise VectorFileError(f"{path}: row {wrong[0]}: id {ids[wrong[0]]} is "
                              f"too large; the largest is {LIMITS.max}")
    return np.array(ids, dtype="int64")


def parquet_column(path, name):
    """A column of numbers of a Parquet file."""
    pyarrow = pyarrow_of(path)
    schema = pyarrow.parquet.read_schema(path)
    columns = [field.name for field in schema
               if pyarrow.types.is_integer(field.type)
               or pyarrow.types.is_floating(field.type) and field.name == name]
    if name is None and len(columns) == 1:
        name = columns[0]
    if name not in columns:
        raise VectorFileError(
            f"{path}: {absent('column of integers', name, columns)}")
    column = pyarrow.parquet.read_table(path, columns=[name])[name]
    if column.null_count:
        row = column.is_null().to_numpy().argmax()
        raise VectorFileError(f"{path}: row {row} of column '{name}' is empty")
    return column.to_numpy()


def ids_of_text(path, name):
    """The Ids of a text file."""
    ids, numbers = [], []
    for word, number, is_header in column_of_text(path, name):
        if not is_header:
            ids.append(id_of(word, f"{path}: line {number}"))
            numbers.append(number)
    return Ids(np.array(ids, dtype="int64"), path, numbers)


def column_of_text(path, name):
    """Yields the words in a column of a text file, the numbers of their lines,
    and whether they are in a line of names of columns."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        separator = next((c for c in ";,\t" if c in first), ",")
        file.seek(0)
        lines = csv.reader(file, delimiter=separator)
        column, width = None, None
        for words in lines:
            words = [word.strip() for word in words]
            if not any(words):
                continue
            if width is None:
                width = len(words)
                has_names = not any(
                    is_number(word) or NOT_A_NAME.fullmatch(word)
                    for word in words)
                column = column_of(path, name, words if has_names else [],
                                   width)
                if has_names:
                    yield words[column], lines.line_num, True
                    continue
            if len(words) != width:
                raise VectorFileError(
                    f"{path}: line {lines.line_num}: expected {width} words "
                    f"separated by {separator!r}, as in the first line, got "
                    f"{len(words)}")
            yield words[column], lines.line_num, False


def column_of(path, name, names, width):
    """The number of the column with ids."""
    if name is None and width == 1:
        return 0
    if name is not None and name in names:
        return names.index(name)
    if name is None and not names:
        raise VectorFileError(
            f"{path}: expected an id per line, got {width} columns without "
            "names in the first line")
    raise VectorFileError(f"{path}: {absent('column', name, names)}")


def is_number(word):
    try:
        float(word)
        return True
    except ValueError:
        return False


def id_of(word, at):
    """The id that a word gives; `at` begins messages of errors."""
    if not INTEGER.fullmatch(word):
        raise VectorFileError(f"{at}: expected an integer as id, got "
                              f"{word[:100]!r}")
    if len(word) > 20 or not LIMITS.min <= int(word) <= LIMITS.max:
        raise VectorFileError(
            f"{at}: id {word[:100]} does not fit into 64 bits")
    return int(word)
