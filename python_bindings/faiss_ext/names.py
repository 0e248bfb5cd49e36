# SPDX-License-Identifier: MIT
"""String names of vectors beside the int64 ids of an index."""

from collections.abc import Iterable

import numpy as np

from .arguments import as_array, as_ids, as_new_ids, shown

LAST = np.iinfo("int64").max


class Names:
    """A table of names and ids, which works beside any index.

    The ids are those of an index. Search the index, and look up the names of
    the ids that it returns. `faiss_ext.write_index(index, path, names=names)`
    keeps the table in the index's file, and `faiss_ext.read_names(path)` reads
    it.

    A name takes about 140 bytes and its text.

    Attributes
    ----------
    about : dict
        Facts about the vectors, which are kept in the file as JSON. The
        command line keeps the type of fingerprints under "fingerprint".

    Examples
    --------
    >>> names = faiss_ext.Names()
    >>> index.add_with_ids(codes, names.add(["CHEMBL25", "CHEMBL521"]))
    >>> D, I = index.search(queries, 10)
    >>> names.of(I)
    """

    def __init__(self):
        self._ids, self._names = {}, {}  # ids by names, and names by ids
        self._next_id, self.about = 0, {}

    def add(
        self, names: "Sequence[str]", ids: "ArrayLike | None" = None
    ) -> "NDArray[np.int64]":
        """Adds names.

        Parameters
        ----------
        names : list of str
            The names, none of which is in use already.
        ids : array_like of int64, optional
            The id of each name, none of which is in use already. By default the
            ids that follow the largest one ever used, from 0 on.

        Returns
        -------
        int64, shape (n,)
            The ids.

        Raises
        ------
        ValueError
            If a name is empty, or a name or an id is already in use or occurs
            twice. Nothing is added then.
        TypeError
            If a name is not a str, or an id is not an integer.
        """
        where = "Names.add"
        names = checked(names, where)
        check_new(names, self._ids, "name", where)
        ids = (self._new_ids(len(names)) if ids is None
               else as_new_ids(ids, len(names), where))
        keys = ids.tolist()
        check_new(keys, self._names, "id", where)
        self._ids.update(zip(names, keys))
        self._names.update(zip(keys, names))
        self._next_id = max(self._next_id, max(keys, default=-1) + 1)
        return ids

    def _new_ids(self, n):
        if self._next_id + n - 1 > LAST:
            raise ValueError(f"Names.add: {n:,} ids from {self._next_id} on do "
                             "not fit into 64 bits; give ids=")
        return np.arange(self._next_id, self._next_id + n, dtype="int64")

    def ids(self, names: "Sequence[str]") -> "NDArray[np.int64]":
        """The ids of names.

        Parameters
        ----------
        names : list of str

        Returns
        -------
        int64, shape (n,)

        Raises
        ------
        ValueError
            If a name is not there.
        """
        return np.array(self._ids_of(checked(names, "Names.ids"), "Names.ids"),
                        dtype="int64")

    def contains(self, names: "Sequence[str] | ArrayLike") -> "NDArray[np.bool_]":
        """Checks for each of some names or ids whether the table has it.

        Parameters
        ----------
        names : list of str, or array_like of int64

        Returns
        -------
        bool, shape (n,)
        """
        where = "Names.contains"
        keys, table = ((checked(names, where), self._ids) if are_names(names)
                       else (as_ids(names, (None,), where).tolist(),
                             self._names))
        return np.fromiter((key in table for key in keys), bool, len(keys))

    def of(self, ids: "ArrayLike") -> "NDArray[np.object_]":
        """The names of ids.

        Parameters
        ----------
        ids : array_like of int64
            Of any shape, such as I of a search.

        Returns
        -------
        array of str, of the same shape, with dtype object
            None for the id -1, which means "no result".

        Raises
        ------
        ValueError
            If an id has no name.
        """
        ids = as_array(ids, "Names.of")
        flat = as_ids(ids.ravel(), (None,), "Names.of")
        found = np.full(len(flat), None, dtype=object)
        named = flat != -1
        found[named] = self._names_of(flat[named].tolist(), "Names.of")
        return found.reshape(ids.shape)

    def remove(self, names: "Sequence[str] | ArrayLike") -> "NDArray[np.int64]":
        """Removes names, with their ids.

        Parameters
        ----------
        names : list of str, or array_like of int64
            The names, or their ids.

        Returns
        -------
        int64
            The ids, in the order of the argument. They are not used again
            unless you give them.

        Raises
        ------
        ValueError
            If a name or an id is not there or is given twice. Nothing is
            removed then.
        """
        where = "Names.remove"
        if are_names(names):
            names = checked(names, where)
            check_new(names, (), "name", where)
            ids = self._ids_of(names, where)
        else:
            ids = as_ids(names, (None,), where).tolist()
            check_new(ids, (), "id", where)
            names = self._names_of(ids, where)
        for name, id in zip(names, ids):
            del self._ids[name], self._names[id]
        return np.array(ids, dtype="int64")

    def __len__(self):
        return len(self._ids)

    def __contains__(self, name):
        return isinstance(name, str) and name in self._ids

    def __iter__(self):
        return iter(self._contents()[0])

    def __eq__(self, other):
        if not isinstance(other, Names):
            return NotImplemented
        return ((self._names, self._next_id, self.about)
                == (other._names, other._next_id, other.about))

    def __repr__(self):
        about = "".join(f", {key}={shown(value)}"
                        for key, value in self.about.items())
        return f"Names({len(self):,} names{about})"

    def __reduce__(self):
        return with_contents, self._contents()

    def _contents(self):
        """The arguments of with_contents for an equal table."""
        ids = sorted(self._names)
        return ([self._names[id] for id in ids], ids, self._next_id,
                dict(self.about))

    def _ids_of(self, names, where):
        return looked_up(self._ids, names, "there is no name", where)

    def _names_of(self, ids, where):
        return looked_up(self._names, ids, "no name has the id", where)


def with_contents(texts, ids, next_id, about):
    """A table of names from the results of Names._contents."""
    names = Names()
    names.add(texts, ids)
    names._next_id, names.about = next_id, about
    return names


def are_names(values):
    """Whether an argument is a list of names, and not of ids."""
    if isinstance(values, str):
        return True  # an error, which checked() explains
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.dtype.kind == "U"
    return isinstance(values, Iterable) and any(
        isinstance(value, str) for value in values)


def checked(names, where):
    """The names in an argument as a list, checked."""
    if isinstance(names, np.ndarray):
        names = names.tolist()
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f"{where}: expected a list of names, got {shown(names)}")
    names = list(names)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{where}: names must be str, got {shown(name)}")
        if not name:
            raise ValueError(f"{where}: a name is empty")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{where}: the name {shown(name)} is not valid "
                             "Unicode") from None
    return names


def looked_up(table, keys, absent, where):
    """The values of keys in a table. The text `absent` and a key are the error
    if the key is not there."""
    try:
        return [table[key] for key in keys]
    except KeyError as error:
        raise ValueError(
            f"{where}: {absent} {shown(error.args[0])}") from None


def check_new(keys, table, noun, where):
    """Raises ValueError if one of the keys is in a table or occurs twice."""
    before = set()
    for key in keys:
        if key in table or key in before:
            raise ValueError(
                f"{where}: the {noun} {shown(key)} "
                + ("is already in use" if key in table else "occurs twice"))
        before.add(key)
