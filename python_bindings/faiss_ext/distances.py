# SPDX-License-Identifier: MIT
"""What the distances of a search say about the kernel."""

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .parameters import is_sharded, real
from .showing import is_group, transforms_of
from .strings import string_of


def is_normalised(kernel):
    """Whether k(x, x) = 1 for every x."""
    if isinstance(kernel, swig.ExponentialKernel):
        return is_normalised(kernel.kernel)
    return isinstance(kernel, (
        swig.ShiftInvariantKernel, swig.JaccardKernel, swig.CosineKernel,
        swig.ExpChi2Kernel, swig.NormalizedKernel))


def kernel_values(
    index: "faiss.Index | faiss.IndexBinary | ShardedIndex", D: "ArrayLike"
) -> "NDArray[np.float64]":
    """The kernel values at the distances that an index has returned.

    They are exact where the index compares vectors under a kernel, `KFlat`,
    `HNSW,KFlat`, `Refine(KFlat)` and `BKFlat`, and otherwise what a scheme's
    codes tell: `kernel_estimate` of the Hamming distance, or
    `asymmetric_kernel_estimate`. The parts of Shards and Replicas must be
    alike.

    Parameters
    ----------
    index : faiss.Index, faiss.IndexBinary or ShardedIndex
        What was searched.
    D : array_like
        Distances of search or range_search, of any shape.

    Returns
    -------
    float64, of the shape of D; NaN where there was no neighbour

    Raises
    ------
    ValueError
        If distances do not tell: of maps and FAISS's own indexes, and of
        METRIC_L2 and kernels whose k(x, x) varies (use METRIC_INNER_PRODUCT,
        normalized(kernel), or faiss.IndexRefine).

    Examples
    --------
    >>> D, I = index.search(xq, 10)
    >>> kernel_values(index, D)
    """
    if is_sharded(index):
        index = index.model
    if not isinstance(index, (faiss.Index, faiss.IndexBinary)):
        raise TypeError(f"kernel_values: expected an index, got {index!r}")
    D = np.asarray(D)
    if D.dtype.kind not in "fiu":
        raise TypeError("kernel_values: expected an array of distances, got "
                        f"{D.dtype}")
    values = values_of(real(index), D)
    missing = np.iinfo("int32").max if isinstance(
        index, faiss.IndexBinary) else np.finfo("float32").max
    return np.where(np.abs(D.astype("float64")) >= missing, np.nan, values)


def part_that_compares(index):
    """The part of an index, or the index, whose distances it returns."""
    index = real(index)
    if isinstance(index, (faiss.IndexIDMap, faiss.IndexBinaryIDMap)):
        return part_that_compares(index.index)
    if isinstance(index, faiss.IndexRefine):
        return part_that_compares(index.refine_index)
    if isinstance(index, swig.IndexHNSWKernel):
        return part_that_compares(index.storage)
    if isinstance(index, faiss.IndexPreTransform) and has_no_map(index):
        return part_that_compares(index.index)
    if is_group(index) and index.count():
        return part_that_compares(one_of_all(index))
    return index


def one_of_all(group):
    """The first part of Shards or Replicas, if the others are like it."""
    parts = [real(group.at(i)) for i in range(group.count())]
    try:
        kinds = sorted({(string_of(part), part.metric_type) for part in parts})
    except ValueError:  # none that tells kernel values has no string
        return parts[0]
    if len(kinds) > 1:
        raise ValueError(f"the parts of {type(group).__name__} are not alike: "
                         + ", ".join(string for string, _ in kinds))
    return parts[0]


def of_inner_product(distances):
    return distances


def of_squared_distance(distances):
    return 1 - distances / 2


def of_integer_distance(distances):
    # (what is missing is farther)
    return np.where(distances <= 2**30, 1 - distances / 2**30, np.nan)


def exact_values(index):
    """The function of a distance that is the kernel value, where an index
    compares vectors under a kernel; otherwise None."""
    index = part_that_compares(index)
    if isinstance(index, swig.IndexBinaryFlatKernel):
        return of_integer_distance
    if isinstance(index, swig.IndexFlatKernel):
        if index.metric_type == faiss.METRIC_INNER_PRODUCT:
            return of_inner_product
        if is_normalised(index.kernel):
            return of_squared_distance
    return None


def values_of(index, D):
    distances = D.astype("float64")
    index = part_that_compares(index)
    exact = exact_values(index)
    if exact is not None:
        return exact(distances)
    if isinstance(index, swig.IndexFlatKernel):
        raise ValueError(
            f"kernel_values: squared distances under {index.kernel.description()}"
            " do not tell its values, since k(x, x) varies; use "
            "METRIC_INNER_PRODUCT, or normalized(kernel)")
    hashes = (swig.IndexKernelHash, swig.IndexBinaryKernelHash,
              swig.IndexAsymmetricHash)
    if isinstance(index, hashes):
        hash = index.hash
        if index.metric_type == faiss.METRIC_INNER_PRODUCT:
            distances = (hash.nbits - distances) / 2
        estimate = (hash.asymmetric_kernel_estimate
                    if isinstance(index, swig.IndexAsymmetricHash)
                    else hash.kernel_estimate)
        return estimate(np.clip(distances, 0, hash.nbits))
    raise ValueError("kernel_values: the distances of "
                     f"{type(index).__name__} do not tell kernel values")


def has_no_map(index):
    """Whether the kernel is that of the transformed vectors."""
    return not any(isinstance(transform, swig.FeatureMap)
                   for transform in transforms_of(index))
