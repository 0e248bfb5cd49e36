# SPDX-License-Identifier: MIT
"""The factory string of an index."""

import faiss

from . import swigfaiss_ext as swig
from .errors import as_value_errors


def index_string(index: "faiss.Index | faiss.IndexBinary") -> str:
    """Returns the factory string that makes an empty index like this one.

    For indexes of this package it equals index.description(). The string
    includes values that training has chosen, such as the bandwidth of a kernel
    and the number of parts of `KIVF`. It also includes the search parameters
    that strings can have: `nprobe` of `KIVF`, and `B` of `BPerm`. The metric
    is not part of a string: pass `index.metric_type` to index_factory.

    Parameters
    ----------
    index : faiss.Index or faiss.IndexBinary
        An index of this package, or one of FAISS's that contains it or is
        contained in it.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the index or a part of it has no factory string, or none that
        index_string knows. Of FAISS's own indexes it knows the flat ones,
        `IVF<n>,Flat`, `HNSW<M>` and the binary ones; of its transformations
        PCA, OPQ, random rotations and L2norm.

    Examples
    --------
    >>> index_string(faiss.index_factory(64, "IDMap,KFlat(chi2,store=u8)"))
    'IDMap,KFlat(chi2,store=u8)'
    """
    if not isinstance(index, (faiss.Index, faiss.IndexBinary)):
        raise TypeError(f"index_string: expected an index, got {index!r}")
    with as_value_errors():
        return swig._index_string(index)
