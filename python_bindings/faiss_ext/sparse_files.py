# SPDX-License-Identifier: MIT
"""Reads files of sparse vectors as arrays of scipy.sparse.

Needs SciPy. svmlight files also need scikit-learn, and AnnData's files h5py.
"""

import math
import zipfile

import numpy as np

SVMLIGHT = (".svm", ".svmlight", ".libsvm")
# arrays of a folder; these of an .npz file that scipy.sparse.save_npz writes
ARRAYS = ("indptr", "indices", "data")
# classes of arrays that AnnData writes
ENCODINGS = {"csr_matrix": "csr_array", "csc_matrix": "csc_array"}


def is_sparse_npz(path):
    """Whether scipy.sparse.save_npz has written an .npz file."""
    with zipfile.ZipFile(path) as file:
        names = {name.removesuffix(".npy") for name in file.namelist()}
    return {"format", "shape", "data"} <= names


def read_npz(path):
    import scipy.sparse
    return scipy.sparse.load_npz(path).tocsr()


def read_svmlight(path):
    from sklearn.datasets import load_svmlight_file
    return load_svmlight_file(str(path), dtype=np.float32)[0]


def read_h5ad(path, part):
    """X, or another matrix of AnnData such as "layers/counts"."""
    import h5py
    import scipy.sparse
    with h5py.File(path, "r") as file:
        found = file.get(part or "X")
        if isinstance(found, h5py.Dataset):
            return found[()]
        encoding = "" if found is None else found.attrs.get("encoding-type", "")
        if encoding not in ENCODINGS:
            raise ValueError(f"'{part or 'X'}' is not a matrix of AnnData")
        make = getattr(scipy.sparse, ENCODINGS[encoding])
        return make(tuple(found[name][()] for name in ("data", "indices", "indptr")),
                    shape=tuple(found.attrs["shape"])).tocsr()


def widened(x, d, path):
    """Sparse vectors with d columns, if their file does not say how many."""
    if not str(path).endswith(SVMLIGHT) or x.shape[1] >= d:
        return x
    x = x.copy()
    x.resize(x.shape[0], d)
    return x


def is_folder(path):
    return path.is_dir() and (path / "indptr.npy").exists()


def read_folder(path):
    """Maps the arrays of a folder: indptr.npy, indices.npy and data.npy, and
    shape.npy if it is there."""
    import scipy.sparse
    indptr, indices, data = (
        np.load(path / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        for name in ARRAYS)
    if any(array.ndim != 1 for array in (indptr, indices, data)):
        raise ValueError("indptr, indices and data must have one dimension")
    shape = path / "shape.npy"
    if shape.exists():
        n, d = map(int, np.load(shape, allow_pickle=False))
    else:
        n, d = len(indptr) - 1, int(indices.max(initial=0)) + 1
    if n != len(indptr) - 1:
        raise ValueError(f"{n} vectors in shape.npy, {len(indptr) - 1} in "
                         "indptr.npy")
    return scipy.sparse.csr_array((data, indices, indptr), shape=(n, d), copy=False)


def as_floats(x):
    """CSR with float32 components, and the row and column of one that is not
    finite, or None."""
    with np.errstate(over="ignore"):  # infinities are reported
        x = x.tocsr().astype("float32", copy=False)
    if math.isfinite(x.data.sum(dtype="float64")):
        return x, None
    wrong = np.flatnonzero(~np.isfinite(x.data))
    if not len(wrong):
        return x, None
    row = int(np.searchsorted(x.indptr, wrong[0], side="right")) - 1
    return x, (row, int(x.indices[wrong[0]]))
