# SPDX-License-Identifier: MIT
"""Loads real vectors from files, as float32 arrays for FAISS.

`find_datasets` lists the datasets in a folder, and `load` reads one. A dataset can be:

* MNIST's files, plain or with ``.gz``: ``train-images-idx3-ubyte`` is the base, ``t10k-images-idx3-ubyte`` the queries.
  Fashion-MNIST, KMNIST and others use the same names.
* ``base.X`` with ``query.X``, or ``NAME_base.X`` with ``NAME_query.X``, where X is ``fvecs``, ``bvecs`` or ``npy``.
* An HDF5 file of ann-benchmarks (``.hdf5``): ``train`` is the base, ``test`` the queries. Needs h5py.
* Any other single file of these kinds, or a base without queries. A random part, drawn with a seed, becomes the queries.

The files lie in the folder itself or in a folder directly below it. `load_digits` returns scikit-learn's handwritten
digits, which need no file.
"""

import importlib
import re
import sys
import types
from pathlib import Path
from typing import NamedTuple, Optional

import numpy as np


def _vector_files():
    """The package's module, without the rest of the package: some processes that read data have no FAISS."""
    package = types.ModuleType("faiss_ext_files")
    package.__path__ = [str(Path(__file__).resolve().parents[1] / "python_bindings" / "faiss_ext")]
    sys.modules[package.__name__] = package
    return importlib.import_module(f"{package.__name__}.vector_files")


vector_files = _vector_files()
# a file or folder that cannot be used; the message says which one, and why
DatasetError = vector_files.VectorFileError

VECTOR_SUFFIXES = (".fvecs", ".bvecs", ".npy", ".hdf5")
HDF5_NAMES = {"base": "train", "query": "test"}  # of the arrays in files of ann-benchmarks
IDX_NAME = re.compile(r"(?P<part>train|t10k)-images[-.]idx\d-ubyte(\.gz)?$")
ROLE_NAME = re.compile(r"((?P<name>.+)_)?(?P<role>base|query|learn|groundtruth)$")
# A dataset that has no query file gives at most this part of its vectors to the queries.
QUERY_SHARE = 0.2


class Files(NamedTuple):
    """Where one dataset lies. Without a query file, queries are split off the base."""

    base: Path
    query: Optional[Path] = None


class Dataset(NamedTuple):
    name: str
    base: np.ndarray  # float32, n x d
    queries: np.ndarray  # float32, nq x d
    image_shape: Optional[tuple] = None  # rows and columns, where the vectors are known to be images

    @property
    def d(self):
        return self.base.shape[1]


# ---------------------------------------------------------------- finding


def find_datasets(root):
    """Datasets in a folder and in the folders directly below it: a dict from name to `Files`.

    A dataset in a folder below has that folder's name, with ``/STEM`` behind it where there are several in it.
    A path to one vector file is a dataset by itself.
    """
    root = Path(root)
    if root.is_file():
        return {root.name: _single(root)}
    if not root.is_dir():
        raise DatasetError(f"{root}: no such folder")
    found = {}
    try:
        for folder in [root, *sorted(p for p in root.iterdir() if p.is_dir())]:
            here = _datasets_in(folder)
            for name, files in here.items():
                if folder != root:
                    name = f"{folder.name}/{name}" if name and len(here) > 1 else folder.name
                found[name or root.resolve().name] = files
    except PermissionError as error:
        raise DatasetError(f"{error.filename}: cannot be read: {error.strerror}") from error
    return found


def choose(root, name=None):
    """Name and `Files` of the dataset `name` under `root`; without a name, of the only one there."""
    found = find_datasets(root)
    if not found:
        raise DatasetError(
            f"{root}: no vectors here or in the folders directly below; expected train-images-idx3-ubyte[.gz],"
            f" base.fvecs with query.fvecs (or .bvecs, .npy), or one such file"
        )
    names = ", ".join(found)
    if name is None:
        if len(found) > 1:
            raise DatasetError(f"{root}: has several datasets; choose one with --dataset: {names}")
        name = next(iter(found))
    if name not in found:
        raise DatasetError(f"{root}: has no dataset '{name}'; there is: {names}")
    return name, found[name]


def _datasets_in(folder):
    """Datasets directly in one folder: a dict from name to `Files`, the name "" for files that carry none.

    Of two files that would serve alike, such as base.bvecs and base.fvecs, the first by name is taken.
    """
    pairs, single = {}, {}
    for path in sorted(p for p in folder.iterdir() if p.is_file()):
        if match := IDX_NAME.match(path.name):
            role = "base" if match["part"] == "train" else "query"
            pairs.setdefault("", {}).setdefault(role, path)
        elif path.suffix not in VECTOR_SUFFIXES:
            continue
        elif path.suffix != ".hdf5" and (match := ROLE_NAME.match(path.stem)):
            pairs.setdefault(match["name"] or "", {}).setdefault(match["role"], path)
        else:
            single[path.name] = _single(path)
    found = {name: Files(pair["base"], pair.get("query")) for name, pair in pairs.items() if "base" in pair}
    return {**found, **single}


def _single(path):
    """One file by itself: HDF5 files have queries of their own."""
    return Files(path, path if path.suffix == ".hdf5" else None)


# ---------------------------------------------------------------- loading


def load(root, name=None, queries=1000, limit=None, seed=1):
    """Reads one dataset under `root` (see `choose`): at most `limit` base vectors and `queries` queries.

    Where a file has more vectors than are wanted, those are drawn at random with the seed.
    """
    name, files = choose(root, name)
    base = read_vectors(files.base)
    shape = vector_files.image_shape(files.base)
    if files.query is None:
        return _split(name, str(files.base), base, shape, queries, limit, seed)
    query = read_vectors(files.query, "query")
    if base.shape[1] != query.shape[1]:
        raise DatasetError(
            f"{files.base} has vectors of {base.shape[1]} dimensions, {files.query.name} of {query.shape[1]}"
        )
    rng = np.random.default_rng(seed)
    return Dataset(
        name,
        _to_float32(_draw(base, limit, rng), files.base),
        _to_float32(_draw(query, queries, rng), files.query),
        shape,
    )


def load_digits(queries=1000, limit=None, seed=1):
    """scikit-learn's 1,797 handwritten digits of 8 x 8 grey values, split like a file without queries."""
    try:
        from sklearn.datasets import load_digits as sklearn_digits
    except ImportError as error:
        raise DatasetError("the digits dataset needs scikit-learn (Debian: python3-sklearn)") from error
    return _split("digits", "digits", sklearn_digits().data, (8, 8), queries, limit, seed)


def l1_normalised(dataset):
    """The same vectors as histograms of mass 1; those with a negative component are refused."""
    parts = []
    for x in (dataset.base, dataset.queries):
        if (x < 0).any():
            raise DatasetError(f"{dataset.name}: has negative components, which histograms have not")
        parts.append(x / np.maximum(x.sum(axis=1, keepdims=True), 1e-30))
    return Dataset(dataset.name, *parts, dataset.image_shape)


def _split(name, source, vectors, image_shape, queries, limit, seed):
    """Queries and base from one array, by a random permutation; never more queries than `QUERY_SHARE` of it."""
    n = len(vectors)
    if n < 2:
        raise DatasetError(f"{source}: one vector only, which cannot be split into base and queries")
    nq = max(1, min(queries, int(n * QUERY_SHARE)))
    order = np.random.default_rng(seed).permutation(n)
    chosen_base = np.sort(order[: n - nq][:limit])
    return Dataset(
        name,
        _to_float32(vectors[chosen_base], source),
        _to_float32(vectors[np.sort(order[n - nq :])], source),
        image_shape,
    )


def _draw(vectors, count, rng):
    if count is None or count >= len(vectors):
        return vectors
    return vectors[np.sort(rng.choice(len(vectors), count, replace=False))]


def _to_float32(vectors, source):
    with np.errstate(over="ignore"):
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    # A sum is finite only if all its terms are: one pass without an array of flags for the usual, good file.
    if not np.isfinite(vectors.sum(dtype=np.float64)):
        row, column = np.argwhere(~np.isfinite(vectors))[0]
        raise DatasetError(
            f"{source}: NaN or infinite value (as float32) in {np.count_nonzero(~np.isfinite(vectors))} place(s),"
            f" for one in vector {row} of those read, component {column}"
        )
    return vectors


# ---------------------------------------------------------------- VLAD


def vlad_centres(descriptors, k, seed=1):
    """k centres of local descriptors, by k-means on at most 100 descriptors for each."""
    import faiss

    if len(descriptors) < k:
        raise DatasetError(f"VLAD: {len(descriptors)} descriptors are too few for {k} centres")
    kmeans = faiss.Kmeans(descriptors.shape[1], k, niter=10, seed=seed, max_points_per_centroid=100)
    kmeans.train(np.ascontiguousarray(descriptors))
    return kmeans.centroids


def vlad(descriptors, centres, group):
    """VLAD vectors (Jegou et al., CVPR 2010): one for each `group` consecutive descriptors, as if of one image.

    A vector holds, for each centre, the sum of the differences to it of the descriptors nearest to it; signed square
    roots, then unit length. Its shape as a matrix is centres x dimension of a descriptor.
    """
    import faiss

    n = len(descriptors) // group
    if n == 0:
        raise DatasetError(f"VLAD: {len(descriptors)} descriptors make no group of {group}")
    index = faiss.IndexFlatL2(centres.shape[1])
    index.add(centres)
    nearest = index.search(np.ascontiguousarray(descriptors[: n * group]), 1)[1][:, 0]
    out = np.zeros((n, *centres.shape), np.float32)
    differences = descriptors[: n * group] - centres[nearest]
    np.add.at(out, (np.repeat(np.arange(n), group), nearest), differences)
    out = out.reshape(n, -1)
    out = np.sign(out) * np.sqrt(np.abs(out))
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-30)


# ---------------------------------------------------------------- file formats


def read_vectors(path, role="base"):
    """Vectors of one file, n x d, in the file's own number type; mapped rather than read where the format allows.

    Of an HDF5 file, which has both, `role` says whether those are the base or the queries.
    """
    part = HDF5_NAMES[role] if Path(path).suffix == ".hdf5" else None
    return vector_files.read_vectors(path, part)
