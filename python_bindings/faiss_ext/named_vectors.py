# SPDX-License-Identifier: MIT
"""Fingerprints and names of commands on an index with names."""

import os

from .fingerprint_files import fingerprint_batches, is_molecule_file
from .molecules import bits_of, canonical
from .name_files import read_names
from .vector_files import VectorFileError


def names_beside(path):
    """The names in the file of an index; None for folders and pipes."""
    return read_names(path) if os.path.isfile(path) else None


def fingerprint_of(names):
    """The type of the fingerprints in an index, or None."""
    return None if names is None else names.about.get("fingerprint")


def fingerprints_for(width, names, path, fingerprint, **others):
    """Yields fingerprints for an index in batches: of the number of bits that
    it takes, and of the type that its file tells.

    others : other arguments of `fingerprint_batches`
    """
    stored = fingerprint_of(names)
    if fingerprint is None and is_molecule_file(path):
        if stored is None or bits_of(stored) is None:
            raise VectorFileError(
                f"{path}: the type of the fingerprints in the index is not "
                f"known{'' if stored is None else f', {stored!r}'}; give "
                "--fingerprint")
        fingerprint = stored
    try:
        for read in fingerprint_batches(path, fingerprint, **others):
            if are_different(stored, read.type, fingerprint):
                raise VectorFileError(f"{path}: fingerprints of type "
                                      f"{read.type!r}, the index has {stored!r}")
            if read.bits != width:
                raise VectorFileError(f"{path}: fingerprints of {read.bits:,} "
                                      f"bits, the index takes {width:,}")
            yield read
    except VectorFileError:
        raise
    except ValueError as error:  # of a type
        raise VectorFileError(f"{path}: {error}") from None


def are_different(stored, type, fingerprint):
    """Whether fingerprints of a type cannot be compared with those in an index.
    If nobody can tell the type in the index, --fingerprint decides."""
    if stored is None or type is None or (
            fingerprint is not None and bits_of(stored) is None):
        return False
    return canonical(stored) != canonical(type)


def known_names(names, given):
    """The names of a list that an index has."""
    return [name for name, is_there in zip(given, names.contains(given))
            if is_there]


def check_has_names(index, names, given):
    """Raises VectorFileError if names are given for an index without names."""
    if names is None:
        raise VectorFileError(f"{given.name}: has names, but {index} has none; "
                              "--ids takes the integer ids of its vectors")


def check_new_names(names, new, args):
    """Raises VectorFileError unless there are names for new vectors, none of
    which the index has."""
    if new is None:
        raise VectorFileError(f"{args.index}: the index has names; --ids FILE "
                              "gives the names of the new vectors")
    there = known_names(names, new)
    if there:
        raise VectorFileError(
            f"{args.ids or args.vectors}: the name {there[0]!r} is already in "
            "use; update replaces its vector")


def add_missing(names, given, file_names, missing, args):
    """Adds the names of vectors that `update --upsert` adds."""
    texts = given.ids if isinstance(given.ids, list) else file_names
    check_new_names(names, texts and [texts[i] for i in missing], args)
    names.add([texts[i] for i in missing],
              None if texts is given.ids else given.ids[missing])
