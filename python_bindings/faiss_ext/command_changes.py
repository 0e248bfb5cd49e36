# SPDX-License-Identifier: MIT
"""The commands that change an index in a file: add, update, remove and
retrain."""

import contextlib
import os

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .command_files import (
    UsageError, check_class, check_count, check_inputs_stay,
    ids_or_names_given, index_and_names, naming, refuse_dash, show,
    vectors_and_names)
from .files import check_writable
from .filters import ids_of
from .id_files import Ids
from .index_tree import all_inside
from .name_files import write_with_names
from .name_lists import checked_names, is_names
from .named_vectors import (
    add_missing, check_has_names, check_new_names, known_names)
from .out_of_core import takes_one_add_only
from .retraining import retrained
from .showing import class_name
from .vector_files import VectorFileError


def index_to_change(args):
    """The index of a command that changes it, and its names or None; checks
    where it will be written."""
    inputs = [word for word in (getattr(args, "vectors", None),
                                getattr(args, "ids", None))
              if word is not None]
    output = args.output or args.index
    for word in inputs:
        refuse_dash(word)
    for path in (args.index, output):
        refuse_dash(path)
        if os.path.isdir(path):
            raise VectorFileError(f"{path}: is a folder, expected the file of "
                                  "an index; folders of shards cannot be "
                                  "changed")
        if os.path.exists(path) and not os.path.isfile(path):
            raise UsageError(f"{path}: is a pipe or device, expected a file, "
                             "which is replaced as a whole")
    check_writable(output)
    check_inputs_stay(output, *inputs)
    index, names = index_and_names(args.index)
    file = mapped_file(index)
    if file is not None:
        raise VectorFileError(
            f"{args.index}: the index reads its vectors from {file} and cannot "
            "be changed; build it again with --exact memory")
    return index, names


def mapped_file(index):
    """The file of vectors that an index reads, or None."""
    return next((part.path for part in all_inside(index)
                 if isinstance(part, swig.IndexFileKernel)), None)


def given_for(args, names, file_names, n):
    """The ids or names that --ids or the file gives to its n vectors; None
    without them."""
    if args.ids is None:
        given = (None if file_names is None
                 else checked_names(Ids(file_names, args.vectors,
                                        has_rows=args.vectors.endswith(".npz"))))
    else:
        given = ids_or_names_given(args.ids, names)
        check_count(given, args, n)
    if given is not None and is_names(given):
        check_has_names(args.index, names, given)
    elif given is not None:
        given.ids = np.asarray(given.ids, dtype="int64")
    return given


def finish(args, index, names, words, **counts):
    """Writes a changed index, and shows what has been done."""
    output = args.output or args.index
    write_with_names(index, output, names)
    counts["n"] = index.ntotal
    show(args, counts, [f"{output}: {words}; {index.ntotal:,} vectors now"])
    return 0


def run_add(args):
    index, names = index_to_change(args)
    if takes_one_add_only(index) and index.ntotal > 0:
        raise VectorFileError(
            f"{args.index}: {class_name(index)} of FAISS {faiss.__version__} "
            "takes no more vectors; build the index again")
    if args.ids is not None and names is None:
        check_class(index, args.index)
    if args.ids is None and isinstance(
            index, (faiss.IndexIDMap, faiss.IndexBinaryIDMap)
            ) and not hasattr(index, "upsert"):
        raise UsageError(f"{args.index}: its vectors have ids of your own; "
                         "--ids gives those of the new ones")
    x, new_names = vectors_and_names(args, index, names, args.vectors)
    given = given_for(args, names, new_names, x.shape[0])
    if given is not None and is_names(given):
        new_names, given = given.ids, None
    if names is not None:
        check_new_names(names, new_names, args)
    if given is None:
        before = ids_of(index)
        with naming(args.vectors):
            index.add(x)
        ids = np.setdiff1d(ids_of(index), before)
    else:
        check_class(index, args.index)
        ids = given.ids
        used = np.flatnonzero(index.contains(ids))
        if len(used):
            raise VectorFileError(
                f"{given.place(used[0])}: id {ids[used[0]]} is already in use; "
                "update replaces its vector")
        with naming(args.vectors):
            index.add_with_ids(x, ids)
    if names is not None:
        names.add(new_names, ids)
    first, last = (int(ids.min()), int(ids.max())) if len(ids) else (None, None)
    span = f", with ids from {first} to {last}" if len(ids) else ""
    return finish(args, index, names, f"{x.shape[0]:,} added{span}",
                  added=x.shape[0], first_id=first, last_id=last)


def run_update(args):
    index, names = index_to_change(args)
    check_class(index, args.index)
    x, file_names = vectors_and_names(args, index, names, args.vectors)
    if args.ids is None and file_names is None:
        raise UsageError("--ids is missing: it gives the id or name of each "
                         "vector")
    given = given_for(args, names, file_names, x.shape[0])
    is_there = (names.contains(given.ids) if is_names(given)
                else index.contains(given.ids))
    missing = np.flatnonzero(~is_there)
    if len(missing) and not args.upsert:
        id = given.ids[missing[0]]
        raise VectorFileError(
            f"{given.place(missing[0])}: {args.index} has no vector with "
            f"{f'the name {id!r}' if is_names(given) else f'id {id}'}; --upsert "
            "adds it")
    if names is not None and len(missing):
        add_missing(names, given, file_names, missing, args)
    ids = names.ids(given.ids) if is_names(given) else given.ids
    with naming(args.vectors):
        if args.upsert:
            index.upsert(x, ids)
        else:
            index.update_vectors(ids, x)
    replaced = x.shape[0] - len(missing)
    return finish(
        args, index, names, f"{replaced:,} replaced, {len(missing):,} added",
        replaced=replaced, added=len(missing))


def run_remove(args):
    index, names = index_to_change(args)
    check_class(index, args.index)
    given = ids_or_names_given(args.ids, names, are_known=True)
    ids = given.ids
    if is_names(given):
        check_has_names(args.index, names, given)
        there = names.ids(known_names(names, ids))
        missing = len(ids) - len(there)
    elif isinstance(ids, range):
        known = ids_of(index)
        there = known[(known >= ids.start) & (known < ids.stop)]
        missing = ids.stop - ids.start - len(there)
    else:
        there = ids[index.contains(ids)]
        missing = len(ids) - len(there)
    removed = index.remove_ids(there)
    if names is not None:
        names.remove(there[names.contains(there)])
    return finish(
        args, index, names, f"{removed:,} removed, {missing:,} not found",
        removed=removed, not_found=missing)


def run_retrain(args):
    index, names = index_to_change(args)
    if isinstance(index, faiss.IndexBinary):
        raise VectorFileError(
            f"{args.index}: {class_name(index)} is an index of codes, expected "
            "one that takes vectors; build it again")
    x = (None if args.vectors is None
         else vectors_and_names(args, index, names, args.vectors)[0])
    with naming(args.vectors) if x is not None else contextlib.nullcontext():
        made = retrained(index, x, train=args.train, seed=args.seed)
    count = min(args.train, index.ntotal) if x is None else x.shape[0]
    return finish(args, made, names, f"trained again on {count:,} "
                  + ("of its vectors" if x is None else "vectors"),
                  trained_on=count)
