# SPDX-License-Identifier: MIT
"""Reads names of vectors from the kinds of files that may have their ids."""

from pathlib import Path

from .id_files import INTEGER, Ids, array_of, column_of_text, read_ids
from .vector_files import VectorFileError, errors_named, pyarrow_of


def read_ids_or_names(path, part=None, has_names=False, read=read_ids):
    """Reads a column of integers as ids, or one of strings as names.

    Files and parts are those of `read_ids`. A column of a text file has ids if
    its first line, or its first line below the names of columns, has an
    integer. Otherwise it has names. Without `part`, the first line also has a
    name, and each line of a `.txt` file is one name.

    Parameters
    ----------
    path, part
        As for `read_ids`.
    has_names : bool
        Whether a column of text has names even if they look like integers.
    read : function
        Reads a file without names: `read_ids` or `read_filter`.

    Returns
    -------
    Ids, whose `ids` are an array, or a list of str for names

    Raises
    ------
    VectorFileError
        As `read_ids` does. Also if a name is empty or occurs twice.
    """
    path = Path(path)
    with errors_named(path):
        names = names_of(path, part, has_names)
    return read(path, part) if names is None else checked_names(names)


def names_of(path, part, has_names):
    """The names in a file as Ids; None if it has none, so that another
    function reads it or says why it cannot be read."""
    if not path.is_file() or path.stat().st_size == 0:
        return None
    if path.suffix in (".csv", ".txt"):
        words = words_of(path, part)
        return None if has_ids(words, part) and not has_names else Ids(
            [word for word, _ in words], path, [number for _, number in words])
    if path.suffix == ".parquet":
        return names_of_parquet(path, part)
    if path.suffix in (".npy", ".npz"):
        array = array_of(path, part)
        if array.dtype.kind in "US" and array.ndim == 1:
            return Ids([name.decode() if isinstance(name, bytes) else name
                        for name in array.tolist()], path)
    return None


def words_of(path, part):
    """The words in a column of a text file, and the numbers of their lines."""
    if path.suffix == ".txt" and part is None:
        with open(path, encoding="utf-8-sig") as file:
            return [(line.strip(), number) for number, line
                    in enumerate(file, 1) if line.strip()]
    return [(word, number) for word, number, is_header
            in column_of_text(path, part) if part is None or not is_header]


def has_ids(words, part):
    """Whether the first word is an integer. Without a part, the first may be
    the name of the column, and then the second counts."""
    return any(INTEGER.fullmatch(word) for word, _
               in words[:2 if part is None else 1])


def names_of_parquet(path, part):
    pyarrow = pyarrow_of(path)
    types = {field.name: field.type
             for field in pyarrow.parquet.read_schema(path)}
    strings = [name for name, type_ in types.items()
               if pyarrow.types.is_string(type_)
               or pyarrow.types.is_large_string(type_)]
    if part is None and len(strings) == 1 and not any(
            map(pyarrow.types.is_integer, types.values())):
        part = strings[0]
    if part not in strings:
        return None
    column = pyarrow.parquet.read_table(path, columns=[part])[part]
    return Ids(["" if name is None else name for name in column.to_pylist()],
               path)


def checked_names(given):
    before = set()
    for at, name in enumerate(given.ids):
        if not name:
            raise VectorFileError(f"{given.place(at)}: the name is empty")
        if name in before:
            raise VectorFileError(f"{given.place(at)}: the name {name!r} "
                                  "occurs twice")
        before.add(name)
    return given


def is_names(given):
    """Whether Ids are names."""
    return isinstance(given.ids, list)
