# SPDX-License-Identifier: MIT
"""Filters of searches: arrays of ids, masks, ranges and functions as FAISS's
selectors."""

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .arguments import as_keys, shown

KINDS = ("an array of ids, a boolean mask, a range, a function of ids or a "
         "faiss.IDSelector")


def selector_of(filter, index, where):
    """A selector of the ids that a filter allows."""
    if isinstance(filter, faiss.IDSelector):
        return filter
    if isinstance(filter, range):
        if filter.step == 1:
            return faiss.IDSelectorRange(filter.start, max(filter.start,
                                                           filter.stop))
        filter = np.fromiter(filter, "int64", len(filter))
    elif callable(filter):
        ids = faiss.vector_to_array(swig._index_ids(index))
        return selector_of_ids(ids[as_mask(filter(ids), len(ids), where)], index)
    if np.ndim(filter) != 1:
        raise TypeError(f"{where}: filter must be {KINDS}, got {shown(filter)}")
    allowed = np.asarray(filter)
    if allowed.dtype == bool:
        return selector_of_ids(np.flatnonzero(allowed), index)
    return selector_of_ids(as_keys(allowed, "filter", where), index)


def as_mask(mask, n, where):
    """Checks the result of a filter that is a function."""
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.shape != (n,):
        raise TypeError(f"{where}: the function given as filter must return a "
                        f"boolean array of shape ({n},), got {shown(mask)}")
    return mask


def selector_of_ids(ids, index):
    """A selector of an array of ids."""
    if len(ids) and ids.min() >= 0 and ids.max() < 64 * (index.ntotal + 1024):
        mask = np.zeros(int(ids.max()) + 1, dtype=bool)
        mask[ids] = True
        return faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
    return faiss.IDSelectorBatch(np.ascontiguousarray(ids, dtype="int64"))


def params_of(filter, index, where):
    """Search parameters with a filter."""
    selector = selector_of(filter, index, where)
    params = faiss.SearchParameters(sel=selector)
    params.referenced_objects = [selector]  # FAISS's class does not keep it
    return params
