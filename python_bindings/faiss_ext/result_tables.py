# SPDX-License-Identifier: MIT
"""Results of searches as columns and rows."""

import faiss
import numpy as np

from .distances import kernel_values


def lines_of(arrays):
    """The columns and rows of results by numbers."""
    q_of, I, D = flat_results(arrays)
    return ("query", "id", "distance"), zip(q_of, I, D)


def table_of(searched, queries, query_names, arrays):
    """The columns and rows of results, with names if there are some, and with
    kernel values if the index has them. The nearest are first."""
    values, column = similarities(searched, queries, arrays)
    arrays = {**arrays, "D": values}
    q_of, I, values = flat_results(arrays)
    ids = I if "names" not in arrays else arrays["names"].ravel()[
        arrays["I"].ravel() >= 0]
    model = getattr(searched, "model", searched)
    larger_first = (column == "similarity"
                    or model.metric_type == faiss.METRIC_INNER_PRODUCT)
    order = np.lexsort((-values if larger_first else values, q_of))
    return (("query", "id" if ids is I else "name", column), (
        (q_of[at] if query_names is None else query_names[q_of[at]], ids[at],
         f"{values[at]:.7g}" if values.dtype.kind == "f" else values[at])
        for at in order))


def similarities(searched, queries, arrays):
    """The kernel values of results, or their distances, and which of them."""
    try:
        return kernel_values(searched, arrays["D"], arrays["I"], queries,
                             arrays.get("lims")), "similarity"
    except (ValueError, RuntimeError):  # the index has none
        return arrays["D"], "distance"


def flat_results(arrays):
    """The query, id and distance of each result, without padding."""
    I, D = arrays["I"], arrays["D"]
    counts = (np.diff(arrays["lims"].astype("int64")) if "lims" in arrays
              else np.full(len(I), I.shape[-1]))
    there = I.ravel() >= 0
    return (np.repeat(np.arange(len(counts)), counts)[there],
            I.ravel()[there], D.ravel()[there])
