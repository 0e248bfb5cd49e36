# SPDX-License-Identifier: MIT
"""Training an index again, when its vectors have drifted."""

import faiss

from . import swigfaiss_ext as swig
from .arguments import as_integer, as_vectors
from .parameters import is_sharded
from .sparse_arrays import is_sparse
from .sparse_vectors import SparseVectors


def retrained(
    index: "faiss.Index", x: "ArrayLike | None" = None, *,
    train: int = 100_000, seed: int = 1234
) -> "faiss.Index":
    """Makes a new index with the vectors of another one, and trains all its
    parts again.

    An index that was trained on old data finds fewer neighbours when it holds
    other data. The new index learns its maps, PCA, lists, codebooks, landmarks,
    centres, ranges and bandwidths anew, and encodes all vectors with them.

    - Ids, the order of vectors, search parameters, seeds and training options
      stay as they are. `add` continues with the same id.
    - A bandwidth, rank, scale or number of parts that training has chosen is
      chosen again; one that the string gave stays. Landmarks of set_landmarks
      are replaced by drawn ones.
    - The given index does not change, and can be searched meanwhile. An index
      behind `Concurrent` waits with changes until the new one is ready.
    - The vectors in `Refine(KFlat(...))` are copied as they are stored, also
      with `store=u8`, and the codes are made of the stored vectors. Memory is
      needed for both indexes and the training vectors.

    Parameters
    ----------
    index : faiss.Index
        An index whose string ends with `Refine(KFlat(...))` or `RFlat`, a
        `KFlat`, or an `HNSW` over one.
    x : array_like or sparse array, shape (n, d), optional
        Training vectors. By default they are a random sample of the stored
        ones.
    train : int, optional
        Size of that sample. It takes at most 1 GB, also if it is larger.
    seed : int, optional
        Seed of that sample.

    Returns
    -------
    faiss.Index

    Raises
    ------
    RuntimeError
        If the index does not keep its vectors, is divided into shards, or has
        no factory string, as with a CallbackKernel.

    Examples
    --------
    >>> index = retrained(index, recent)
    """
    if is_sharded(index) or not isinstance(index, faiss.Index):
        raise TypeError(f"retrained: expected a faiss.Index, got {index!r}; "
                        "indexes of codes and shards are made anew")
    train = as_integer(train, "train", "retrained")
    seed = as_integer(seed, "seed", "retrained")
    if train < 1 or seed < 0:
        raise ValueError("retrained: train must be positive, and seed not "
                         f"negative; got {train} and {seed}")
    if x is None:
        return swig._retrained_on_sample(index, train, seed)
    if is_sparse(x):
        rows = SparseVectors(x, index.d, "retrained")
        return swig._retrained_sparse_c(index, *rows.arguments())
    x = as_vectors(x, index.d, "retrained")
    return swig._retrained_c(index, len(x), faiss.swig_ptr(x))
