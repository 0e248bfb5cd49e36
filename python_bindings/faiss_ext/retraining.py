# SPDX-License-Identifier: MIT
"""Training an index again, when its vectors have drifted."""

import faiss

from . import swigfaiss_ext as swig
from .arguments import (
    as_integer, as_vectors, check_number_of_bits, checked_packed)
from .parameters import is_sharded
from .sparse_arrays import is_sparse
from .sparse_vectors import PackedVectors, SparseVectors, takes_sparse


def retrained(
    index: "faiss.Index", x: "ArrayLike | None" = None, *,
    train: int = 100_000, seed: int = 1234, packed: "bool | int" = False
) -> "faiss.Index":
    """Makes a new index with the vectors of another one, and trains all its
    parts again.

    An index that was trained on old data finds fewer neighbours when it holds
    other data. The new index learns its maps, PCA, lists, codebooks, landmarks,
    centres, ranges and bandwidths anew, and encodes all vectors with them.

    - Ids, positions, search parameters, seeds and training options stay as they
      are. `add` continues with the same id. `ids()` of an index with inverted
      lists can have another order.
    - A bandwidth, rank, scale or number of parts that training has chosen is
      chosen again; one that the string gave stays. Landmarks of set_landmarks
      are replaced by drawn ones. Frequencies of a FrequencyMap or FrequencyHash
      stay, and so does the CallbackKernel of an IndexFlatKernel.
    - The given index does not change, and can be searched meanwhile. Behind
      `Concurrent`, changes wait until the new one is ready. They then go into
      the old index only.
    - The vectors in `Refine(KFlat(...))` are copied as they are stored, also
      with `store=u8`, and the codes are made of the stored vectors. Memory is
      needed for both indexes and the training vectors.

    Parameters
    ----------
    index : faiss.Index
        An index whose string ends with `Refine(KFlat(...))` or `RFlat`, a
        `KFlat` or `Flat`, an `HNSW` over one, or an `IVF<n>,Flat`.
    x : array_like or sparse array, shape (n, d), optional
        Training vectors. By default they are a random sample of the stored
        ones.
    train : int, optional
        Size of that sample. It takes at most 1 GB, also if it is larger.
    seed : int, optional
        Seed of that sample.
    packed : bool or int, optional
        Whether the rows of x are packed bits, as numpy.packbits gives; or
        their number of bits.

    Returns
    -------
    faiss.Index

    Raises
    ------
    RuntimeError
        If the index does not keep its vectors, is divided into shards, or has
        no factory string, as with a CallbackKernel in a map or scheme.

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
    packed = checked_packed(packed, "retrained")
    if packed:
        check_number_of_bits(packed, index.d, "retrained")
        x = PackedVectors(x, index.d, "retrained")
        if not takes_sparse(index):
            x = x.dense()
    if is_sparse(x):
        x = SparseVectors(x, index.d, "retrained")
    if isinstance(x, SparseVectors):
        return swig._retrained_sparse_c(index, *x.arguments())
    x = as_vectors(x, index.d, "retrained")
    return swig._retrained_c(index, len(x), faiss.swig_ptr(x))
