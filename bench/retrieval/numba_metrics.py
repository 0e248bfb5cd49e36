# SPDX-License-Identifier: MIT
"""The chi2 distance, sum of (x - y)^2 / (x + y), compiled by numba for libraries that take metrics of one's own."""

import numba
import numpy as np

TINY = np.float32(1e-30)  # where both components are 0


@numba.njit(fastmath=True)
def chi2(x, y):
    total = np.float32(0)
    for i in range(x.shape[0]):
        difference = x[i] - y[i]
        total += difference * difference / (x[i] + y[i] + TINY)
    return total


def chi2_function(d):
    """The same as a C function of two arrays of d floats."""
    pointer = numba.types.CPointer(numba.types.float32)

    @numba.cfunc(numba.types.float32(pointer, pointer), fastmath=True)
    def distance(a, b):
        x, y = numba.carray(a, d), numba.carray(b, d)
        total = np.float32(0)
        for i in range(d):
            difference = x[i] - y[i]
            total += difference * difference / (x[i] + y[i] + TINY)
        return total

    return distance
