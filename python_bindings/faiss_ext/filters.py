# SPDX-License-Identifier: MIT
"""Filters of searches: arrays and sets of ids, masks, ranges and functions as
FAISS's selectors."""

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .arguments import as_keys, shown
from .parameters import is_sharded

KINDS = ("an array or set of ids, a boolean mask, a range, a function of ids or "
         "a faiss.IDSelector")


def selector_of(filter, index, where):
    """A selector of the ids that a filter allows."""
    allowed = allowed_by(filter, index, where)
    if isinstance(allowed, faiss.IDSelector):
        return allowed
    if isinstance(allowed, range):
        return selector_of_range(allowed, index)
    return selector_of_ids(allowed)


def allowed_by(filter, index, where):
    """The ids that a filter allows: an array, a range with step 1, or a
    selector."""
    if isinstance(filter, faiss.IDSelector):
        return filter
    if isinstance(filter, range):
        if filter.step == 1:
            return filter
        limits = np.iinfo("int64")
        if filter and not (limits.min <= min(filter[0], filter[-1])
                           and max(filter[0], filter[-1]) <= limits.max):
            raise ValueError(f"{where}: filter is {filter}, expected ids that "
                             "are 64-bit integers")
        filter = ids_in_range(filter, index)
    elif callable(filter) and not isinstance(filter, type):
        ids = ids_of(index)
        ids.flags.writeable = False
        return ids[as_mask(filter(ids), len(ids), where)]
    if isinstance(filter, (set, frozenset)):
        return as_keys(list(filter), "filter", where)
    if isinstance(filter, type) or np.ndim(filter) != 1:
        raise TypeError(f"{where}: filter must be {KINDS}, got {shown(filter)}")
    allowed = np.asarray(filter)
    if allowed.size == 0:
        return np.empty(0, "int64")
    if allowed.dtype == bool:
        check_mask(allowed, index, where)
        return np.flatnonzero(allowed)
    return as_keys(allowed, "filter", where)


def ids_in_range(allowed, index):
    """The ids in a range; only those of an index if the range is long."""
    if (allowed.stop - allowed.start) // allowed.step <= 4 * index.ntotal + 1000:
        return np.arange(allowed.start, allowed.stop, allowed.step)
    ids = ids_of(index)
    first, last = sorted((allowed[0], allowed[-1]))
    inside = ids[(ids >= first) & (ids <= last)]
    distance = inside.view("uint64") - np.uint64(first % 2**64)
    return inside[distance % np.uint64(abs(allowed.step)) == 0]


def selector_of_range(allowed, index):
    """A selector of a range with step 1."""
    limits = np.iinfo("int64")
    begin, end = (min(max(at, limits.min), limits.max)
                  for at in (allowed.start, allowed.stop))
    if allowed.start <= limits.max < allowed.stop:  # the largest id as well
        selector = faiss.IDSelectorRange(limits.min, begin)
        others = faiss.IDSelectorNot(selector)
        others.referenced_objects = [selector]
        return others
    selector = faiss.IDSelectorRange(begin, max(begin, end))
    if begin >= index.ntotal and not isinstance(
            index, (faiss.IndexIDMap, faiss.IndexBinaryIDMap)):
        # FAISS's Flat crashes for ranges beyond its vectors, but not for other
        # selectors
        others = faiss.IDSelectorNot(selector)
        others.referenced_objects = [selector]
        selector = faiss.IDSelectorNot(others)
        selector.referenced_objects = [others]
    return selector


def ids_of(index):
    """The ids of all vectors of an index, in no particular order."""
    if is_sharded(index):
        return index.ids()
    return integers_of(swig._index_ids_c, index, index.ntotal)


def list_sizes_of(index):
    """The number of vectors in each inverted list of an index."""
    return integers_of(swig._list_sizes_c, index, 0)


def integers_of(function, index, n):
    """Calls function(index, n, array), which stores at most n numbers and
    returns how many there are. Repeats the call if there are not n of them."""
    while True:
        found = np.empty(n, dtype="int64")
        n = function(index, len(found), faiss.swig_ptr(found))
        if n == len(found):  # no other thread has changed it since
            return found


def check_mask(mask, index, where):
    """Checks that a mask has a value for each id of an index."""
    try:
        ids = ids_of(index)
    except RuntimeError:  # shards do not tell their ids
        return
    needed = int(ids.max(initial=-1)) + 1
    if len(mask) < needed:
        raise ValueError(
            f"{where}: the mask given as filter has {len(mask):,} values, "
            f"expected one for each id from 0 to {needed - 1:,}, or an array "
            "of ids")


def as_mask(mask, n, where):
    """Checks the result of a filter that is a function."""
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.shape != (n,):
        raise TypeError(f"{where}: the function given as filter must return a "
                        f"boolean array of shape ({n},), got {shown(mask)}")
    return mask


def are_members(selector, ids):
    """Tells for each id whether a selector selects it."""
    ids = np.ascontiguousarray(ids, "int64")
    members = np.empty(len(ids), "uint8")
    swig._are_members_c(selector, len(ids), faiss.swig_ptr(ids),
                        faiss.swig_ptr(members))
    return members.view("bool")


def selector_of_ids(ids):
    """A selector of an array of ids."""
    if len(ids) and ids.min() >= 0 and ids.max() < 64 * len(ids):
        mask = np.zeros(int(ids.max()) + 1, dtype=bool)
        mask[ids] = True
        return faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
    return faiss.IDSelectorBatch(np.ascontiguousarray(ids, dtype="int64"))


def params_of(filter, index, where):
    """Search parameters with a filter."""
    selector = selector_of(filter, index, where)
    params = faiss.SearchParameters(sel=selector)
    # FAISS's class neither keeps it nor leaves it to its owner
    params.referenced_objects = [selector]
    selector.this.own(True)
    return params
