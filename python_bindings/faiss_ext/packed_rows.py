# SPDX-License-Identifier: MIT
"""Rows of packed bits, and their neighbours under kernels of bits."""

import faiss
import numpy as np

from . import swigfaiss_ext as swig
from .advice import as_bit_kernel
from .arguments import as_array, as_codes, as_threshold, number_of_bits
from .errors import about_vector
from .progress import Steps
from .sparse_arrays import is_sparse

BATCH = 1000  # codes of a range search


class PackedRows:
    """Rows of packed bits, as C++ takes them. Bits beyond their number are
    zeros."""

    def __init__(self, x, packed, where):
        """packed : True, or the number of bits"""
        if is_sparse(x):
            raise TypeError(f"{where}: expected packed bits in an array of "
                            "uint8, got a sparse array; leave out packed=True")
        x = as_array(x, where)
        self.codes = as_codes(x, x.shape[-1] if x.ndim else 0, where)
        size = self.codes.shape[1]
        self.bits = number_of_bits(packed, size, where)
        unused = 8 * size - self.bits
        if unused:
            beyond = np.flatnonzero(self.codes[:, -1] & (1 << unused) - 1)
            if len(beyond):
                raise about_vector(
                    f"{where}: ", beyond[0], f" has ones beyond its first "
                    f"{self.bits} bits; expected zeros in the {unused} low bits "
                    "of the last byte, as numpy.packbits gives")

    def __len__(self):
        return len(self.codes)

    def arguments(self):
        """For kernels that do not depend on the number of bits."""
        n, size = self.codes.shape
        return n, 8 * size, faiss.swig_ptr(self.codes)


def neighbours_of_codes(x, threshold, kernel, packed, where):
    """The codes whose kernel value with each code reaches the threshold, as CSR:
    the ends of the rows, ids that ascend, and values."""
    rows = PackedRows(x, packed, where)
    codes, index = rows.codes, index_of_rows(rows, kernel, where)
    radius = radius_of(index, threshold, where)
    n = len(codes)
    steps = Steps("neighbours", n)
    counts, ids, distances = [np.zeros(1, "int64")], [], []
    for i in range(0, n, BATCH):
        lims, D, I = index.range_search(codes[i : i + BATCH], radius)
        rows = i + np.repeat(np.arange(len(lims) - 1), np.diff(lims.astype("int64")))
        others = I != rows
        counts.append(np.bincount(rows[others] - i, minlength=len(lims) - 1))
        ids.append(I[others])
        distances.append(D[others])
        steps(min(i + BATCH, n))
    values = 1 - np.concatenate([np.empty(0), *distances]) / 2**30
    return (np.cumsum(np.concatenate(counts)),
            np.concatenate([np.empty(0, "int64"), *ids]), values.astype("float32"))


def index_of_rows(rows, kernel, where):
    """A BKFlat of packed bits, under a symmetric kernel."""
    kernel = as_symmetric_bit_kernel(kernel, where)
    index = swig.IndexBinaryFlatKernel(rows.bits, kernel)
    index.add(rows.codes)
    return index


def as_symmetric_bit_kernel(kernel, where):
    """A kernel of bits from a string, a BitKernel, or a Kernel with the same
    name."""
    kernel = as_bit_kernel(kernel)
    if not kernel.is_symmetric():
        raise ValueError(f"{where}: {kernel.description()} is not symmetric, "
                         "expected a kernel with k(x, y) = k(y, x)")
    return kernel


def radius_of(index, threshold, where):
    """The radius within which BKFlat finds codes whose kernel value reaches the
    threshold as a float32."""
    threshold = np.float32(as_threshold(threshold, where))
    if not 0 < threshold <= 1:
        raise ValueError(f"{where}: the threshold is {threshold}, expected a "
                         "number above 0, up to 1")
    # values above the middle are rounded to the threshold
    middle = (float(threshold) + float(np.nextafter(threshold, np.float32(0)))) / 2
    return index.distance(middle) + 1
