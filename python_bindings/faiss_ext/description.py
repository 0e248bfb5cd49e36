# SPDX-License-Identifier: MIT
"""Describes the parameters of kernels, maps, hashes and indexes in strings."""

import inspect
import re
import textwrap
from typing import Iterator, NamedTuple

from . import swigfaiss_ext as swig
from .arguments import shown


class Field(NamedTuple):
    """A parameter.

    Attributes
    ----------
    key : str
        Its name in strings.
    values : str
        The values that it can have.
    default : str
        Its default; empty if it must be given.
    meaning : str
        What it does.
    """

    key: str
    values: str
    default: str
    meaning: str


class Description:
    """The parameters of a kernel, map, hash or index, to print or to iterate
    over.

    Attributes
    ----------
    name : str
        Its name in strings.
    summary : str
        A sentence about it.
    fields : tuple of Field
        Its parameters.
    """

    def __init__(
        self, name: str, summary: str, fields: "tuple[Field, ...]"
    ) -> None:
        self.name = name
        self.summary = summary
        self.fields = fields

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, key: object) -> bool:
        return any(key in (field, field.key) for field in self.fields)

    def __getitem__(self, key: str) -> Field:
        """The parameter with a name.

        Parameters
        ----------
        key : str
            The name.

        Returns
        -------
        Field
        """
        for field in self.fields:
            if field.key == key:
                return field
        raise KeyError(key)

    def __repr__(self) -> str:
        head = textwrap.fill(self.summary or self.name, 79)
        if not self.fields:
            return f"{head}\n\nNo parameters."
        rows = [Field("key", "values", "default", "meaning"), *self.fields]
        widths = [max(map(len, column)) for column in zip(*rows)]
        # long lists of values are broken into lines
        widths[1] = min(widths[1], 36)
        lines = []
        for row in rows:
            cells = [[row.key], textwrap.wrap(row.values, widths[1]),
                     [row.default or "required"], [row.meaning]]
            for i in range(max(map(len, cells))):
                lines.append("  ".join(
                    (cell[i] if i < len(cell) else "").ljust(width)
                    for cell, width in zip(cells, widths)).rstrip())
        return "\n".join([head, "", *lines])


def summary_of(name):
    """The first sentence of the docstring of a name's class."""
    the_class = getattr(swig, swig._class_of_name(name).split("::")[-1], None)
    doc = inspect.cleandoc(getattr(the_class, "__doc__", None) or "")
    paragraph = " ".join(doc.split("\n\n")[0].split())
    # "al." does not end a sentence
    sentence = re.match(r".*?(?<!\bal)\.(?= [A-Z]|$)", paragraph)
    return sentence[0] if sentence else paragraph


def describe(name: str) -> Description:
    """Describes the parameters of a kernel, map, hash or index.

    Parameters
    ----------
    name : str
        Its name in strings: one of described_names().

    Returns
    -------
    Description
        Prints as a table. Iterating over it gives a Field for each parameter,
        with its key, values, default and meaning.

    Raises
    ------
    ValueError
        If there is no such name.

    Examples
    --------
    >>> describe("AHK")["order"].default
    '1'
    """
    if not isinstance(name, str):
        raise TypeError(f"describe: expected a name, got {name!r}")
    names = swig.described_names()
    if name not in names:
        try:
            hint = swig._described_name_hint(name)
        except TypeError:  # no text in UTF-8
            hint = ""
        raise ValueError(
            f"unknown name {shown(name)}, expected {', '.join(names[:-1])} or "
            f"{names[-1]}{hint}")
    fields = tuple(Field(*row) for row in swig._describe(name))
    return Description(name, summary_of(name), fields)
