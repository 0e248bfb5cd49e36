# SPDX-License-Identifier: MIT
"""What the distances of a search say about the kernel."""

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .parameters import real
from .showing import transforms_of


def is_normalised(kernel):
    """Whether k(x, x) = 1 for every x."""
    if isinstance(kernel, swig.ExponentialKernel):
        return is_normalised(kernel.kernel)
    return isinstance(kernel, (
        swig.ShiftInvariantKernel, swig.JaccardKernel, swig.CosineKernel,
        swig.ExpChi2Kernel, swig.NormalizedKernel))


def kernel_values(
    index: "faiss.Index | faiss.IndexBinary", D: "ArrayLike"
) -> "NDArray[np.float64]":
    """The kernel values at the distances that an index has returned.

    They are exact where the index compares vectors under a kernel, `KFlat`,
    `HNSW,KFlat`, `Refine(KFlat)` and `BKFlat`, and otherwise what a scheme's
    codes tell: `kernel_estimate` of the Hamming distance, or
    `asymmetric_kernel_estimate`.

    Parameters
    ----------
    index : faiss.Index or faiss.IndexBinary
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


def values_of(index, D):
    distances = D.astype("float64")
    if isinstance(index, (faiss.IndexIDMap, faiss.IndexBinaryIDMap)):
        return values_of(real(index.index), D)
    if isinstance(index, faiss.IndexRefine):
        return values_of(real(index.refine_index), D)
    if isinstance(index, swig.IndexHNSWKernel):
        return values_of(real(index.storage), D)
    if isinstance(index, faiss.IndexPreTransform) and has_no_map(index):
        return values_of(real(index.index), D)
    if isinstance(index, swig.IndexFlatKernel):
        if index.metric_type == faiss.METRIC_INNER_PRODUCT:
            return distances
        if is_normalised(index.kernel):
            return 1 - distances / 2
        raise ValueError(
            f"kernel_values: squared distances under {index.kernel.description()}"
            " do not tell its values, since k(x, x) varies; use "
            "METRIC_INNER_PRODUCT, or normalized(kernel)")
    if isinstance(index, swig.IndexBinaryFlatKernel):
        return np.maximum(0, 1 - distances / 2**30)
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
