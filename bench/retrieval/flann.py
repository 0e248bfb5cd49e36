# SPDX-License-Identifier: MIT
"""FLANN's k-means trees under the chi2 distance, by the C functions of its library (1.9; Debian: libflann1.9)."""

import ctypes
import ctypes.util

import numpy as np

CHI_SQUARE, KMEANS = 7, 2
SEED = 1


class Parameters(ctypes.Structure):
    """FLANNParameters of flann/defines.h."""

    _fields_ = [
        *((name, ctypes.c_int) for name in ("algorithm", "checks")), ("eps", ctypes.c_float),
        *((name, ctypes.c_int) for name in ("sorted", "max_neighbors", "cores", "trees", "leaf_max_size", "branching")),
        *((name, ctypes.c_int) for name in ("iterations", "centers_init")), ("cb_index", ctypes.c_float),
        *((name, ctypes.c_float) for name in ("target_precision", "build_weight", "memory_weight", "sample_fraction")),
        *((name, ctypes.c_int) for name in ("table_number", "key_size", "multi_probe_level", "log_level")),
        ("random_seed", ctypes.c_long),
    ]


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


class Tree:
    """One index; the base vectors must be contiguous float32 and are kept."""

    def __init__(self, base, threads):
        self.flann = ctypes.CDLL(ctypes.util.find_library("flann"))
        for name in ("flann_build_index", "flann_load_index"):
            getattr(self.flann, name).restype = ctypes.c_void_p
        defaults = Parameters.in_dll(self.flann, "DEFAULT_FLANN_PARAMETERS")
        self.parameters = Parameters.from_buffer_copy(defaults)
        self.parameters.algorithm, self.parameters.random_seed = KMEANS, SEED
        self.parameters.cores, self.parameters.sorted = threads, 1
        self.flann.flann_set_distance_type(CHI_SQUARE, 0)
        self.base = base

    def build(self):
        speedup = ctypes.c_float()
        self.index = ctypes.c_void_p(self.flann.flann_build_index(
            pointer(self.base), *self.base.shape, ctypes.byref(speedup), ctypes.byref(self.parameters)))

    def save(self, path):
        self.flann.flann_save_index(self.index, str(path).encode())

    def load(self, path):
        self.index = ctypes.c_void_p(
            self.flann.flann_load_index(str(path).encode(), pointer(self.base), *self.base.shape))

    def search(self, queries, k, checks):
        """Labels of the k nearest among at most `checks` vectors that are compared."""
        self.parameters.checks = checks
        queries = np.ascontiguousarray(queries)
        labels, distances = np.full((len(queries), k), -1, np.int32), np.empty((len(queries), k), np.float32)
        self.flann.flann_find_nearest_neighbors_index(
            self.index, pointer(queries), len(queries), pointer(labels), pointer(distances), k,
            ctypes.byref(self.parameters))
        return labels.astype(np.int64)
