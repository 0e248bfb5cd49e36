# SPDX-License-Identifier: MIT
"""String names of vectors beside the int64 ids of an index."""

import numpy as np

from .arguments import as_array, as_ids, as_new_ids, shown
from .byte_strings import ByteStrings, Growing
from .hash_table import HashTable, mixed

LAST = np.iinfo("int64").max


class Names:
    """A table of names and ids, which works beside any index.

    The ids are those of an index. Search the index, and look up the names of
    the ids that it returns. `faiss_ext.write_index(index, path, names=names)`
    keeps the table in the index's file, and `faiss_ext.read_names(path)` reads
    it.

    A name takes its bytes in UTF-8, and 17 more; 20 to 48 more once names have
    been looked for. Adding, looking up and removing take many names at a time,
    and are slow for one at a time.

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
        self._set(np.empty(0, "uint8"), np.empty(0, "int64"),
                  np.empty(0, "int64"), 0, {})

    def _set(self, data, lengths, ids, next_id, about):
        """Sets all contents. The ids ascend."""
        self._strings = ByteStrings(data, lengths)
        self._ids, self._is_kept = Growing(ids), Growing(np.ones(len(ids), bool))
        self._ascend = True
        self._id_table = HashTable()  # used if the ids do not ascend
        self._n, self._next_id, self.about = len(ids), next_id, about

    def _contents(self):
        """The arguments of _set for an equal table."""
        kept = self._by_id()
        return (*self._strings.taken(kept), self._ids.items[kept],
                self._next_id, self.about)

    def add(
        self, names: "Sequence[str]", ids: "ArrayLike | None" = None
    ) -> "NDArray[np.int64]":
        """Adds names.

        Parameters
        ----------
        names : list of str
            The names, none of which is there already.
        ids : array_like of int64, optional
            The id of each name, none of which is there already. By default the
            ids that follow the largest one ever used, from 0 on.

        Returns
        -------
        int64, shape (n,)
            The ids.

        Raises
        ------
        ValueError
            If a name is empty, or a name or an id is there already or twice.
            Nothing is added then.
        TypeError
            If a name is not a str, or an id is not an integer.
        """
        where = "Names.add"
        names, (data, lengths) = encoded(names, where)
        check_once(names, "name", where)
        there = self._find(data, lengths) >= 0
        if there.any():
            raise ValueError(f"{where}: the name {shown(names[there.argmax()])} "
                             "is there already")
        ids = (self._new_ids(len(names)) if ids is None
               else self._free_ids(ids, len(names)))
        if len(ids) == 0:
            return ids
        line = np.concatenate([self._ids.items[-1:], ids])
        self._ascend = self._ascend and bool((line[1:] > line[:-1]).all())
        self._strings.extend(data, lengths)
        self._ids.extend(ids)
        self._is_kept.extend(np.ones(len(ids), bool))
        self._n += len(ids)
        self._next_id = max(self._next_id, int(ids.max()) + 1)
        return ids

    def _new_ids(self, n):
        if self._next_id + n - 1 > LAST:
            raise ValueError(f"Names.add: {n:,} ids from {self._next_id} on do "
                             "not fit into 64 bits; give ids=")
        return np.arange(self._next_id, self._next_id + n, dtype="int64")

    def _free_ids(self, ids, n):
        ids = as_new_ids(ids, n, "Names.add").copy()
        check_once(ids.tolist(), "id", "Names.add")
        there = self._positions(ids) >= 0
        if there.any():
            raise ValueError(
                f"Names.add: the id {ids[there.argmax()]} is there already")
        return ids

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
        names, strings = encoded(names, "Names.ids")
        return self._ids.items[self._known(names, strings, "Names.ids")]

    def contains(self, names: "Sequence[str] | ArrayLike") -> "NDArray[np.bool_]":
        """Tells for each of some names or ids whether it is there.

        Parameters
        ----------
        names : list of str, or array_like of int64

        Returns
        -------
        bool, shape (n,)
        """
        where = "Names.contains"
        return (self._find(*encoded(names, where)[1]) if are_names(names)
                else self._positions(as_ids(names, (None,), where))) >= 0

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
        positions = self._known_ids(flat[named], "Names.of")
        found[named] = self._strings.texts(positions)
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
            names, strings = encoded(names, where)
            positions = self._known(names, strings, where)
        else:
            names = as_ids(names, (None,), where)
            positions = self._known_ids(names, where)
        check_once(positions.tolist(), "name", where, names)
        ids = self._ids.items[positions]
        self._is_kept.items[positions] = False
        self._n -= len(positions)
        if 2 * self._n < len(self._ids.items):
            self._set(*self._contents())
        return ids

    def __len__(self):
        return self._n

    def __contains__(self, name):
        return isinstance(name, str) and name != "" and bool(
            self.contains([name])[0])

    def __iter__(self):
        kept = self._by_id()
        for begin in range(0, len(kept), 1000):
            yield from self._strings.texts(kept[begin:begin + 1000])

    def __eq__(self, other):
        if not isinstance(other, Names):
            return NotImplemented
        mine, others = self._contents(), other._contents()
        return mine[4] == others[4] and all(
            map(np.array_equal, mine[:3], others[:3]))

    def __repr__(self):
        about = "".join(f", {key}={shown(value)}"
                        for key, value in self.about.items())
        return f"Names({len(self):,} names{about})"

    def __reduce__(self):
        return with_contents, self._contents()

    def _find(self, data, lengths):
        """The positions of encoded names, or -1."""
        return self._strings.find(data, lengths, self._is_kept.items)

    def _known(self, names, strings, where):
        positions = self._find(*strings)
        if (positions < 0).any():
            raise ValueError(f"{where}: there is no name "
                             f"{shown(names[(positions < 0).argmax()])}")
        return positions

    def _known_ids(self, ids, where):
        positions = self._positions(ids)
        if (positions < 0).any():
            raise ValueError(
                f"{where}: no name has the id {ids[(positions < 0).argmax()]}")
        return positions

    def _positions(self, ids):
        """The positions of ids, or -1."""
        mine, is_kept = self._ids.items, self._is_kept.items
        if not self._ascend:
            self._id_table.extend(mixed(mine.view("uint64")))
            return self._id_table.find(
                mixed(ids.view("uint64")), lambda positions, keys: (
                    is_kept[positions] & (mine[positions] == ids[keys])))
        if len(mine) == 0:
            return np.full(len(ids), -1)
        positions = np.minimum(np.searchsorted(mine, ids), len(mine) - 1)
        return np.where((mine[positions] == ids) & is_kept[positions],
                        positions, -1)

    def _by_id(self):
        """The positions of all names, by ascending ids."""
        kept = np.flatnonzero(self._is_kept.items)
        return kept if self._ascend else kept[np.argsort(self._ids.items[kept])]


def with_contents(*contents):
    """A table of names from what Names._contents returns."""
    names = Names()
    *arrays, about = contents
    names._set(*arrays, dict(about))
    return names


def are_names(values):
    """Whether an argument is a list of names, and not of ids."""
    if isinstance(values, str):
        return True  # an error, which encoded() explains
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.dtype.kind == "U"
    return any(isinstance(value, str) for value in values)


def encoded(names, where):
    """A list of names, and its bytes in UTF-8 with their lengths, checked."""
    if isinstance(names, (str, bytes)) or np.ndim(names) != 1:
        raise TypeError(f"{where}: expected a list of names, got {shown(names)}")
    names = names.tolist() if isinstance(names, np.ndarray) else list(names)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{where}: names must be str, got {shown(name)}")
        if not name:
            raise ValueError(f"{where}: a name is empty")
    try:
        parts = [name.encode() for name in names]
    except UnicodeEncodeError as error:
        raise ValueError(f"{where}: the name {shown(error.object)} is not valid "
                         "Unicode") from None
    return names, (np.frombuffer(b"".join(parts), "uint8"),
                   np.fromiter(map(len, parts), "int64", len(parts)))


def check_once(keys, what, where, said=None):
    """Raises ValueError if one of the keys is there twice."""
    if len(set(keys)) == len(keys):
        return
    before = set()
    for i, key in enumerate(keys):
        if key in before:
            text = shown(key if said is None else said[i])
            raise ValueError(f"{where}: the {what} {text} is there twice")
        before.add(key)
