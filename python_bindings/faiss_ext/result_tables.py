# SPDX-License-Identifier: MIT
"""Results of searches as arrays, and as columns and rows."""

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .distances import kernel_values
from .index_tree import part_that_compares


def with_values_and_names(arrays, searched, queries, names, query_names):
    """The results of a search with more arrays: "similarities", if the index has
    kernel values of its distances, and "names" and "query_names", if there are
    some."""
    values = similarities(searched, queries, arrays)
    return {
        **arrays, **({} if values is None else {"similarities": values}),
        **({} if names is None else {"names": names.of(arrays["I"])}),
        **({} if query_names is None else {
            "query_names": np.array(query_names, dtype=object)})}


def similarities(searched, queries, arrays):
    """The exact kernel values of results; None if the index has none."""
    model = getattr(searched, "model", searched)  # of a ShardedIndex
    if swig._distance_kind(part_that_compares(model)) not in ("scaled", "kernel"):
        return None
    return kernel_values(searched, arrays["D"], arrays["I"], queries,
                         arrays.get("lims"))


def table_of(searched, arrays):
    """The columns and rows of results: the query and the result, by names if
    there are some, and the similarity or distance. The nearest are first."""
    I, D = arrays["I"].ravel(), arrays["D"].ravel()
    n, k = (arrays["I"].shape if "lims" not in arrays
            else (len(arrays["lims"]) - 1, None))
    q_of = np.repeat(np.arange(n), k if "lims" not in arrays
                     else np.diff(arrays["lims"].astype("int64")))
    model = getattr(searched, "model", searched)
    is_larger_nearer = model.metric_type == faiss.METRIC_INNER_PRODUCT
    order = np.lexsort((-D if is_larger_nearer else D, q_of))
    order = order[I[order] >= 0]  # without padding
    names, query_names = arrays.get("names"), arrays.get("query_names")
    ids = I if names is None else names.ravel()
    values = arrays.get("similarities", arrays["D"]).ravel()
    columns = ("query", "id" if names is None else "name",
               "similarity" if "similarities" in arrays else "distance")
    return columns, (
        (q_of[at] if query_names is None else query_names[q_of[at]], ids[at],
         f"{values[at]:.7g}" if values.dtype.kind == "f" else values[at])
        for at in order)


def lines_of(n, rows):
    """A line for each of n queries without names: its number, and the id and
    value of each result."""
    words = [[] for _ in range(n)]
    for q, id, value in rows:
        words[q].append(f"{id}:{value}")
    return [f"{q}: " + " ".join(results) for q, results in enumerate(words)]
