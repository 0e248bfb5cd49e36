"""Real vectors from files, as float32 arrays ready for FAISS.

A folder holds one dataset or several. What counts as a dataset:

* the files of MNIST: ``train-images-idx3-ubyte`` is the base, ``t10k-images-idx3-ubyte`` the queries, each plain or
  with ``.gz`` (Fashion-MNIST, KMNIST and others use the same names);
* ``base.X`` with ``query.X``, or ``NAME_base.X`` with ``NAME_query.X``, where X is ``fvecs``, ``bvecs`` or ``npy``;
* an HDF5 file of ann-benchmarks (``.hdf5``), with the base as ``train`` and the queries as ``test``, where Python has
  h5py;
* any other single file of these kinds, and a base without queries: a part of it, drawn with a seed, is the queries.

Each of them may lie in the folder itself or in a folder directly below it. `find_datasets` lists them, `load` reads
one.
`load_digits` gives scikit-learn's handwritten digits, which need no file.
"""

import gzip
import re
import zlib
from pathlib import Path
from typing import NamedTuple, Optional

import numpy as np

VECTOR_SUFFIXES = (".fvecs", ".bvecs", ".npy", ".hdf5")
HDF5_NAMES = {"base": "train", "query": "test"}  # of the arrays in files of ann-benchmarks
IDX_NAME = re.compile(r"(?P<part>train|t10k)-images[-.]idx\d-ubyte(\.gz)?$")
ROLE_NAME = re.compile(r"((?P<name>.+)_)?(?P<role>base|query|learn|groundtruth)$")
IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
# A dataset that has no query file gives at most this part of its vectors to the queries.
QUERY_SHARE = 0.2


class DatasetError(Exception):
    """A file or folder that cannot be used; the message says which one, and why."""


class Files(NamedTuple):
    """Where one dataset lies. Without a query file, queries are split off the base."""

    base: Path
    query: Optional[Path] = None


class Dataset(NamedTuple):
    name: str
    base: np.ndarray  # float32, n x d
    queries: np.ndarray  # float32, nq x d

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
    if files.query is None:
        return _split(name, str(files.base), base, queries, limit, seed)
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
    )


def load_digits(queries=1000, limit=None, seed=1):
    """scikit-learn's 1,797 handwritten digits of 8 x 8 grey values, split like a file without queries."""
    try:
        from sklearn.datasets import load_digits as sklearn_digits
    except ImportError as error:
        raise DatasetError("the digits dataset needs scikit-learn (Debian: python3-sklearn)") from error
    return _split("digits", "digits", sklearn_digits().data, queries, limit, seed)


def l1_normalised(dataset):
    """The same vectors as histograms of mass 1; those with a negative component are refused."""
    parts = []
    for x in (dataset.base, dataset.queries):
        if (x < 0).any():
            raise DatasetError(f"{dataset.name}: has negative components, which histograms have not")
        parts.append(x / np.maximum(x.sum(axis=1, keepdims=True), 1e-30))
    return Dataset(dataset.name, *parts)


def _split(name, source, vectors, queries, limit, seed):
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
    path = Path(path)
    try:
        if path.stat().st_size == 0:
            raise DatasetError(f"{path}: empty file")
        if path.suffix == ".fvecs":
            vectors = _read_vecs(path, np.dtype("<f4"))
        elif path.suffix == ".bvecs":
            vectors = _read_vecs(path, np.dtype("u1"))
        elif path.suffix == ".npy":
            vectors = _read_npy(path)
        elif path.suffix == ".hdf5":
            vectors = _read_hdf5(path, HDF5_NAMES[role])
        elif IDX_NAME.match(path.name):
            vectors = _read_idx(path)
        else:
            raise DatasetError(f"{path}: unknown kind of file; known are IDX images, {', '.join(VECTOR_SUFFIXES)}")
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror or error}") from error
    if vectors.shape[0] == 0 or vectors.shape[1] == 0:
        raise DatasetError(f"{path}: no vectors in it (shape {vectors.shape})")
    return vectors


def _read_vecs(path, dtype):
    """fvecs, bvecs: each vector is its dimension as a little-endian int32, then its components."""
    size = path.stat().st_size
    if size < 4:
        raise DatasetError(f"{path}: truncated: {size} bytes, too short for one vector")
    raw = np.memmap(path, dtype=np.uint8, mode="r")
    d = int(raw[:4].view("<i4")[0])
    if d <= 0:
        raise DatasetError(f"{path}: malformed: the first vector claims {d} dimensions")
    row = 4 + d * dtype.itemsize
    if row > size:
        raise DatasetError(
            f"{path}: truncated or malformed: the first vector claims {d} dimensions, the file has {size} bytes"
        )
    n = size // row
    rows = raw[: n * row].reshape(n, row)
    different = np.flatnonzero((rows[:, :4] != rows[0, :4]).any(axis=1))
    if len(different):
        claimed = int(rows[different[0], :4].copy().view("<i4")[0])
        raise DatasetError(f"{path}: malformed: vector {different[0]} claims {claimed} dimensions, those before it {d}")
    if size % row:
        raise DatasetError(f"{path}: truncated: {size % row} bytes left after {n} whole vectors of {row} bytes")
    return np.ndarray((n, d), dtype=dtype, buffer=raw, offset=4, strides=(row, dtype.itemsize))


def _read_npy(path):
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, SyntaxError) as error:
        raise DatasetError(f"{path}: truncated or malformed .npy file: {error}") from error
    return _checked_array(path, vectors)


def _read_hdf5(path, name):
    try:
        import h5py
    except ImportError as error:
        raise DatasetError(f"{path}: HDF5 files need h5py (Debian: python3-h5py)") from error
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise DatasetError(f"{path}: truncated or malformed HDF5 file: {error}") from error
    with file:
        if not isinstance(file.get(name), h5py.Dataset):
            raise DatasetError(f"{path}: no array '{name}' in it; expected a file of ann-benchmarks, with train and test")
        return _checked_array(path, file[name][()])


def _checked_array(path, vectors):
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind not in "fiub":
        what = f"{vectors.ndim}-dimensional {vectors.dtype}" if isinstance(vectors, np.ndarray) else "something else"
        raise DatasetError(f"{path}: expected a two-dimensional array of real numbers, got {what}")
    return vectors


def _read_idx(path):
    """IDX: two zero bytes, the type, the number of dimensions, each dimension as a big-endian uint32, the values."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DatasetError(f"{path}: truncated or malformed gzip file: {error}") from error
    if len(raw) < 4:
        raise DatasetError(f"{path}: truncated: {len(raw)} bytes, too short for an IDX header")
    ndim = raw[3]
    if raw[0] or raw[1] or raw[2] not in IDX_TYPES or ndim < 2:
        raise DatasetError(f"{path}: malformed: an IDX file of vectors does not begin with {raw[:4].hex(' ')}")
    header = 4 + 4 * ndim
    if len(raw) < header:
        raise DatasetError(f"{path}: truncated: ends inside the IDX header")
    shape = [int(size) for size in np.frombuffer(raw, ">u4", ndim, 4)]
    dtype = np.dtype(IDX_TYPES[raw[2]])
    d = 1
    for size in shape[1:]:
        d *= size
    expected = header + shape[0] * d * dtype.itemsize
    if len(raw) != expected:
        kind = "truncated" if len(raw) < expected else "malformed"
        sizes = " x ".join(map(str, shape))
        raise DatasetError(f"{path}: {kind}: {sizes} values need {expected} bytes, there are {len(raw)}")
    return np.frombuffer(raw, dtype, offset=header).reshape(shape[0], d)
