# SPDX-License-Identifier: MIT
"""Reads files of vectors as arrays, dense or sparse.

>>> from faiss_ext.vector_files import read_vectors
>>> x = read_vectors("base.fvecs")

This module needs only NumPy. HDF5 files also need h5py, Parquet files pyarrow,
files of sparse vectors SciPy, and svmlight files scikit-learn.
"""

import contextlib
import gzip
import itertools
import math
import os
import re
import stat
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .sparse_arrays import checked_csr

SUFFIXES = (".fvecs", ".bvecs", ".npy", ".npz", ".hdf5", ".h5", ".parquet",
            ".csv", ".svm", ".svmlight", ".libsvm", ".h5ad")
SVMLIGHT = (".svm", ".svmlight", ".libsvm")
WITH_PARTS = (".npz", ".hdf5", ".h5", ".parquet", ".h5ad")
MOST_COMPRESSED = 1100  # largest compression ratio; deflate's is 1,032
DIMENSIONS = {1: "one dimension", 2: "two dimensions"}
IDX_NAME = re.compile(r".*-idx\d-ubyte(\.gz)?$|.*\.idx\d-ubyte(\.gz)?$")
# in the first line of a CSV file, neither a number nor a name
NOT_A_NAME = re.compile(r"[\d\s.+-]+|0x[\da-f]+|na|n/a|null|none",
                        re.IGNORECASE)
IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4",
             0x0D: ">f4", 0x0E: ">f8"}


class VectorFileError(ValueError):
    """A file has no vectors that can be read. The message says why."""


def read_vectors(path, part=None):
    """Reads the vectors of a file, in the file's number type.

    - `.npy`, `.fvecs` and `.bvecs` files are mapped into memory.
    - `.hdf5` and `.h5`: an array is mapped if it is stored in one piece and in
      NumPy's format. Needs h5py.
    - `.npz`: an array.
    - `.parquet`: a column of lists of equal length. Needs pyarrow.
    - `.csv`: a vector per line, as float32. The first line may have names.
    - sparse vectors, as arrays of scipy.sparse: `.npz` of
      `scipy.sparse.save_npz`; `.svm`, `.svmlight` and `.libsvm`, whose labels
      are left out, with the columns as the file numbers them; the matrix X of
      AnnData's `.h5ad`, or the part that is named; and a folder with
      indptr.npy, indices.npy and data.npy, which are mapped, and shape.npy if
      there may be empty columns at the end.
    - `...-idx3-ubyte`, plain or with `.gz`: images in MNIST's format.

    Parameters
    ----------
    path : str or path
        The file.
    part : str, optional
        The array of an `.npz` file; the array of an HDF5 file, as "array" or
        "group/array"; the matrix of an `.h5ad` file, as "layers/counts"; or the
        column of a Parquet file. By default the file must have only one, but
        `.h5ad` files have "X".

    Returns
    -------
    array, or array of scipy.sparse, shape (n, d), n and d at least 1

    Raises
    ------
    VectorFileError
        A ValueError. If the file cannot be read, or has no vectors.
    """
    return _read(path, part, _read_hdf5)


class Hdf5Rows:
    """An array of an HDF5 file that is not mapped. Its rows are read on
    demand."""

    def __init__(self, path, name, data):
        self.path, self.name = path, name
        self.shape, self.dtype, self.ndim = data.shape, data.dtype, data.ndim
        self.step = data.chunks[0] if data.chunks else 1024

    def __getitem__(self, rows):
        """The rows of a slice or of ascending numbers."""
        import h5py
        with errors_named(self.path), h5py.File(self.path, "r") as file:
            data = file[self.name]
            if isinstance(rows, slice):
                return data[rows]
            # HDF5's own selection of single rows takes much longer
            found = np.empty((len(rows), self.shape[1]), self.dtype)
            for piece in np.unique(rows // self.step):
                begin = piece * self.step
                mine = rows // self.step == piece
                found[mine] = data[begin : begin + self.step][
                    rows[mine] - begin]
            return found


def lazy_vectors(path, part=None):
    """Like read_vectors, but returns an Hdf5Rows for HDF5 arrays that cannot
    be mapped.

    An Hdf5Rows has a shape and a dtype, and gives rows as arrays.
    """
    return _read(path, part, _open_hdf5)


@contextlib.contextmanager
def errors_named(path):
    """Turns any error into a VectorFileError that names the file.

    A damaged file can make a library raise almost any exception.
    """
    damaged = f"truncated or malformed {Path(path).suffix} file".replace(
        "  ", " ")
    try:
        yield
    except VectorFileError:
        raise
    except OSError as error:
        said = damaged if error.errno is None else "cannot be read"
        inside = error.filename not in (None, path, str(path))
        raise VectorFileError(
            f"{path}: {said}: {f'{error.filename}: ' if inside else ''}"
            f"{error.strerror or error}") from error
    except MemoryError as error:
        raise VectorFileError(
            f"{path}: malformed, or larger than memory") from error
    except Exception as error:
        text = str(error).split("\n")[0][:300] or type(error).__name__
        raise VectorFileError(f"{path}: {damaged}: {text}") from error


def _check_size(path, shape, itemsize):
    """Raises VectorFileError, before memory is allocated, if no file of this
    size can hold such an array."""
    size = math.prod(shape) * itemsize
    most = MOST_COMPRESSED * os.path.getsize(path) + 2**20
    if size > most:
        raise VectorFileError(
            f"{path}: malformed: it claims an array of shape {tuple(shape)}, "
            f"{size:,} bytes, expected at most {most:,} in a file of "
            f"{os.path.getsize(path):,}")


def checked_name(path):
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError("expected the name of a file of vectors, got an object "
                        f"of class {type(path).__name__}")
    return path


def _read(path, part, read_hdf5):
    path = Path(checked_name(path))
    with errors_named(path):
        status = path.stat()
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise VectorFileError(f"{path}: is a pipe or device, expected a "
                                  "file")
        if status.st_size == 0:
            raise VectorFileError(f"{path}: empty file")
        if part is not None and path.suffix not in WITH_PARTS:
            raise VectorFileError(f"{path}: has no part '{part}': only .npz, "
                                  "HDF5 and Parquet files have names in them")
        if path.suffix == ".fvecs":
            vectors = _read_vecs(path, np.dtype("<f4"))
        elif path.suffix == ".bvecs":
            vectors = _read_vecs(path, np.dtype("u1"))
        elif path.suffix == ".npy":
            vectors = _read_npy(path)
        elif path.suffix == ".npz" and _is_sparse_npz(path):
            if part:
                raise VectorFileError(f"{path}: is one sparse array, which has no "
                                      f"part '{part}'")
            vectors = _read_sparse_npz(path)
        elif path.suffix == ".npz":
            vectors = _read_npz(path, part)
        elif path.suffix == ".h5ad":
            vectors = _read_h5ad(path, part)
        elif path.suffix in SVMLIGHT:
            vectors = _read_svmlight(path)
        elif _is_sparse_folder(path):
            vectors = _read_sparse_folder(path)
        elif path.suffix == ".csv":
            vectors = _read_csv(path)
        elif path.suffix in (".hdf5", ".h5"):
            vectors = read_hdf5(path, part)
        elif path.suffix == ".parquet":
            vectors = _read_parquet(path, part)
        elif IDX_NAME.match(path.name):
            vectors = _read_idx(path)
        else:
            raise VectorFileError(
                f"{path}: unknown kind of file; known are IDX images, "
                f"{', '.join(SUFFIXES)}, and folders of sparse vectors")
    if vectors.shape[0] == 0 or vectors.shape[1] == 0:
        raise VectorFileError(
            f"{path}: it has no vectors (shape {vectors.shape})")
    return vectors


class Place(NamedTuple):
    """The location of vectors in a file, for IndexFileKernel."""

    path: str
    n: int
    d: int
    store: str  # type of the components: "f32", "f16" or "u8"
    offset: int  # position of the first component, in bytes
    stride: int  # bytes from one vector to the next


STORES = {np.dtype("<f4"): "f32", np.dtype("<f2"): "f16", np.dtype("u1"): "u8"}


def place_of(vectors, path):
    """The location in the file of vectors that read_vectors has mapped.

    Raises
    ------
    VectorFileError
        If the vectors are not mapped, or cannot be compared in place.
    """
    owner = vectors
    while owner is not None and not (
            isinstance(owner, np.memmap) and owner.base is owner._mmap):
        owner = getattr(owner, "base", None)
    if owner is None:
        raise VectorFileError(
            f"{path}: its vectors cannot be mapped into memory; use .npy, "
            ".fvecs, .bvecs, or an HDF5 array that is stored in one piece and "
            "in NumPy's format of numbers")
    if vectors.dtype not in STORES:
        raise VectorFileError(
            f"{path}: {vectors.dtype} files are read in blocks; exact=\"file\" "
            "needs little-endian float32, float16 or uint8")
    if vectors.shape[1] > 1 and vectors.strides[1] != vectors.itemsize:
        raise VectorFileError(
            f"{path}: the array is in Fortran's order; save it in C order, so "
            "that the components of a vector are next to each other")
    start = owner.offset + (vectors.ctypes.data - owner.ctypes.data)
    stride = vectors.strides[0] if len(vectors) > 1 else (
        vectors.shape[1] * vectors.itemsize)
    return Place(os.fspath(path), *vectors.shape, STORES[vectors.dtype],
                 start, stride)


def image_shape(path):
    """Rows and columns of the images in a file.

    None if the file is not a three-dimensional file in MNIST's format.
    """
    path = Path(path)
    if not IDX_NAME.match(path.name):
        return None
    with (errors_named(path),
          (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file):
        header = file.read(16)
    if len(header) < 16 or header[3] != 3:
        return None
    return tuple(int(size) for size in np.frombuffer(header, ">u4", 2, 8))


def _read_vecs(path, dtype):
    """Maps an fvecs or bvecs file.

    Each vector is its dimension as a little-endian int32, then its components.
    """
    size = path.stat().st_size
    if size < 4:
        raise VectorFileError(
            f"{path}: truncated: {size} bytes, too short for one vector")
    raw = np.memmap(path, dtype=np.uint8, mode="r")
    d = int(raw[:4].view("<i4")[0])
    if d <= 0:
        raise VectorFileError(
            f"{path}: malformed: the first vector claims {d} dimensions")
    row = 4 + d * dtype.itemsize
    if row > size:
        raise VectorFileError(
            f"{path}: truncated or malformed: the first vector claims {d} "
            f"dimensions, the file has {size} bytes")
    n = size // row
    rows = raw[: n * row].reshape(n, row)
    different = np.flatnonzero((rows[:, :4] != rows[0, :4]).any(axis=1))
    if len(different):
        claimed = int(rows[different[0], :4].copy().view("<i4")[0])
        raise VectorFileError(
            f"{path}: malformed: vector {different[0]} claims {claimed} "
            f"dimensions, those before it {d}")
    if size % row:
        raise VectorFileError(
            f"{path}: truncated: {size % row} bytes left after {n} whole "
            f"vectors of {row} bytes")
    return np.ndarray((n, d), dtype=dtype, buffer=raw, offset=4,
                      strides=(row, dtype.itemsize))


def _read_npy(path):
    with np.errstate(over="ignore"):  # the header may claim any shape
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    return _checked_array(path, vectors)


def _read_npz(path, name):
    return _checked_array(path, npz_array(path, name, ndim=2))


def npz_array(path, name, ndim):
    """An array of an .npz file. Without a name, the only one with `ndim`
    dimensions."""
    with zipfile.ZipFile(path) as file:
        arrays = []
        for info in file.infolist():
            if not info.filename.endswith(".npy"):
                continue
            key = info.filename.removesuffix(".npy")
            with file.open(info) as member:
                shape, dtype = _npy_header(member)
            if len(shape) == ndim if name is None else key == name:
                found = info, shape, dtype
            if len(shape) == ndim:
                arrays.append(key)
        if name not in arrays and (name is not None or len(arrays) != 1):
            kind = f"array of {DIMENSIONS[ndim]}"
            raise VectorFileError(f"{path}: {absent(kind, name, arrays)}")
        info, shape, dtype = found
        _check_size(path, shape, dtype.itemsize)
        with file.open(info) as member:
            vectors = np.lib.format.read_array(member, allow_pickle=False)
            member.read(1)  # zipfile checks the checksum at the end
    return vectors


def _npy_header(file):
    version = np.lib.format.read_magic(file)
    read = (np.lib.format.read_array_header_1_0 if version == (1, 0)
            else np.lib.format.read_array_header_2_0)
    shape, _, dtype = read(file)
    return shape, dtype


def _read_csv(path):
    """Reads a CSV file: one vector per line.

    Components are separated by commas, semicolons or tabs. The first line may
    have names, none of which is a number.
    """
    with open(path, encoding="utf-8-sig") as file:
        first = file.readline()
        has_names = _are_names(first)
        lines = file if has_names else itertools.chain([first], file)
        rest = next((line for line in lines if line.strip()), None)
        if rest is None:
            return np.empty((0, 0), "float32")
        separator = next((c for c in ";,\t" if c in rest), ",")
        _check_first_line(path, first, rest, separator, has_names)
        try:
            with np.errstate(over="ignore"):  # numbers may exceed float32
                return np.loadtxt(
                    itertools.chain([rest], lines), "float32", delimiter=separator,
                    comments=None, quotechar='"', ndmin=2)
        except ValueError as error:
            if isinstance(error, UnicodeDecodeError):
                raise
            text = str(error)[:300]
            raise VectorFileError(
                f"{path}: expected the same number of numbers in each line, "
                f"separated by {separator!r}: {text}"
                + " (rows are counted after the line of names)" * has_names
            ) from error


def _check_first_line(path, first, rest, separator, has_names):
    """Refuses a first line that is neither a vector nor a line of names.

    Numbers of columns are told from a vector only if there are many.
    """
    if not first.strip():
        return
    words = [word.strip().strip('"') for word in first.split(separator)]
    if not has_names:
        if len(words) >= 8 and words == [str(i) for i in range(len(words))]:
            raise VectorFileError(
                f"{path}: the first line numbers the columns, 0 to "
                f"{len(words) - 1}: leave it out, or give the columns names")
        return
    width = len(rest.split(separator))
    if len(words) != width or not all(words):
        raise VectorFileError(
            f"{path}: expected {width} names in the first line, as many as "
            f"numbers in the next, separated by {separator!r}, got "
            f"{first.strip()[:200]!r}")
    for word in words:
        if NOT_A_NAME.fullmatch(word):
            raise VectorFileError(f"{path}: {word!r} in the first line is "
                                  "neither a number nor a name")


def _are_names(line):
    for word in re.split("[,;\t]", line):
        with contextlib.suppress(ValueError):
            float(word.strip().strip('"'))
            return False
    return True


def _read_hdf5(path, name):
    vectors = _open_hdf5(path, name)
    if not isinstance(vectors, Hdf5Rows):
        return vectors
    _check_size(path, vectors.shape, vectors.dtype.itemsize)
    return vectors[:]


def _open_hdf5(path, name):
    try:
        import h5py
    except ImportError as error:
        raise VectorFileError(
            f"{path}: HDF5 files need h5py (pip install h5py)") from error
    with h5py.File(path, "r") as file:
        if name is None or not isinstance(file.get(name), h5py.Dataset):
            arrays = []

            def visit(key, value):
                if isinstance(value, h5py.Dataset) and value.ndim == 2:
                    arrays.append(key)

            file.visititems(visit)
            if name is not None or len(arrays) != 1:
                raise VectorFileError(
                    f"{path}: {absent('array of two dimensions', name, arrays)}")
            name = arrays[0]
        data = file[name]
        if not os.path.samefile(data.file.filename, path):
            raise VectorFileError(f"{path}: {name} is a link to an array of "
                                  f"{data.file.filename}; give that file")
        if data.ndim != 2 or data.dtype.kind not in "fiub":
            return _checked_array(path, np.empty((0,) * data.ndim, data.dtype))
        if _lies_as_numpy_has_it(data):
            return np.memmap(
                path, data.dtype, "r", data.id.get_offset(), data.shape)
        if data.size and data.id.get_storage_size() == 0 and not (
                data.is_virtual or data.external):
            raise VectorFileError(
                f"{path}: nothing has been written to the array {name}")
        if data.chunks:
            _check_size(path, data.chunks, data.dtype.itemsize)
        return Hdf5Rows(path, name, data)


def _lies_as_numpy_has_it(data):
    """Whether an HDF5 array is stored in one piece, bit for bit as in NumPy.

    The dtype alone is not enough: integers with fewer bits, and floats that
    HDF5 converts, have the same dtype.
    """
    import h5py
    made = data.id.get_create_plist()
    if (made.get_layout() != h5py.h5d.CONTIGUOUS or made.get_external_count()
            or data.id.get_space_status() != h5py.h5d.SPACE_STATUS_ALLOCATED
            or data.id.get_type() != h5py.h5t.py_create(data.dtype)):
        return False
    size = data.size * data.dtype.itemsize
    return size > 0 and data.id.get_storage_size() == size


def pyarrow_of(path):
    """The module that reads a Parquet file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise VectorFileError(
            f"{path}: Parquet files need pyarrow (pip install pyarrow)"
        ) from error
    return pyarrow


def _read_parquet(path, name):
    pyarrow = pyarrow_of(path)
    schema = pyarrow.parquet.read_schema(path)
    lists = [field.name for field in schema
             if pyarrow.types.is_list(field.type)
             or pyarrow.types.is_large_list(field.type)
             or pyarrow.types.is_fixed_size_list(field.type)]
    if name is None and len(lists) == 1:
        name = lists[0]
    if name not in lists:
        raise VectorFileError(
            f"{path}: {absent('column of lists', name, lists)}")
    column = pyarrow.parquet.read_table(path, columns=[name])[name]
    if len(column) == 0:
        return np.empty((0, 0), dtype="float32")
    rows = column.combine_chunks()
    if isinstance(rows, pyarrow.ChunkedArray):
        rows = rows.chunk(0)
    if rows.null_count:
        raise VectorFileError(f"{path}: column '{name}' has rows without lists")
    values = rows.flatten()
    if pyarrow.types.is_fixed_size_list(rows.type):
        lengths = [rows.type.list_size]
    else:
        lengths = np.unique(
            rows.value_lengths().to_numpy(zero_copy_only=False))
    if len(lengths) > 1:
        raise VectorFileError(
            f"{path}: the lists of column '{name}' have from {lengths[0]} to "
            f"{lengths[-1]} items, expected the same number in each")
    if values.null_count:
        raise VectorFileError(f"{path}: column '{name}' has lists with nulls")
    values = values.to_numpy(zero_copy_only=False)
    return _checked_array(path, values.reshape(len(rows), int(lengths[0])))


def absent(what, name, names):
    if not names:
        return f"it has no {what}"
    there = ", ".join(names)
    return (f"which {what}? It has {there}" if name is None
            else f"no {what} '{name}' in it; it has {there}")


def _checked_array(path, vectors):
    if (not isinstance(vectors, np.ndarray) or vectors.ndim != 2
            or vectors.dtype.kind not in "fiub"):
        what = (f"{vectors.ndim}-dimensional {vectors.dtype}"
                if isinstance(vectors, np.ndarray) else "something else")
        raise VectorFileError(
            f"{path}: expected a two-dimensional array of real numbers, "
            f"got {what}")
    return vectors


def _read_idx(path):
    """Reads an IDX file.

    The format: two zero bytes, the type, the number of dimensions, each
    dimension as a big-endian uint32, then the values.
    """
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        kind = file.read(4)
        if len(kind) < 4:
            raise VectorFileError(
                f"{path}: truncated: {len(kind)} bytes, too short for an IDX "
                "header")
        ndim = kind[3]
        if kind[0] or kind[1] or kind[2] not in IDX_TYPES or ndim < 2:
            raise VectorFileError(
                f"{path}: malformed: an IDX file of vectors does not begin with "
                f"{kind.hex(' ')}")
        sizes = file.read(4 * ndim)
        if len(sizes) < 4 * ndim:
            raise VectorFileError(
                f"{path}: truncated: ends inside the IDX header")
        shape = [int(size) for size in np.frombuffer(sizes, ">u4")]
        dtype = np.dtype(IDX_TYPES[kind[2]])
        _check_size(path, shape, dtype.itemsize)
        expected = math.prod(shape) * dtype.itemsize
        raw = file.read(expected + 1)
    if len(raw) != expected:
        problem = (f"truncated: there are {len(raw)}" if len(raw) < expected
                   else "malformed: there are more")
        raise VectorFileError(f"{path}: {' x '.join(map(str, shape))} values "
                              f"need {expected} bytes, {problem}")
    return np.frombuffer(raw, dtype).reshape(shape[0], math.prod(shape[1:]))


# ---------------------------------------------------------- sparse vectors

# arrays of a folder of sparse vectors
ARRAYS = ("indptr", "indices", "data")
# classes of matrices in AnnData's files
ENCODINGS = {"csr_matrix": "csr_array", "csc_matrix": "csc_array"}


def _read_sparse_npz(path):
    with zipfile.ZipFile(path) as file:
        for info in file.infolist():
            with file.open(info) as member:
                shape, dtype = _npy_header(member)
            _check_size(path, shape, dtype.itemsize)
    import scipy.sparse
    return checked_csr(scipy.sparse.load_npz(path), "the sparse array")


def _is_sparse_npz(path):
    """Whether scipy.sparse.save_npz has written an .npz file."""
    with zipfile.ZipFile(path) as file:
        names = {name.removesuffix(".npy") for name in file.namelist()}
    return {"format", "shape", "data"} <= names


def _read_svmlight(path):
    from sklearn.datasets import load_svmlight_file
    # By default it guesses for each file whether columns count from 0 or 1, so
    # that two files could differ. If they count from 1, column 0 is empty.
    return load_svmlight_file(str(path), dtype=np.float32, zero_based=True)[0]


def _read_h5ad(path, part):
    """X, or another matrix of AnnData such as "layers/counts"."""
    import h5py
    import scipy.sparse
    with h5py.File(path, "r") as file:
        name = part or "X"
        found = file.get(name)
        encoding = _encoding(found)
        if encoding is None:
            names = []
            file.visititems(lambda key, value: names.append(key)
                            if _encoding(value) is not None else None)
            raise VectorFileError(f"{path}: {absent('matrix', name, names)}")
        if encoding == "array":
            return found[()]
        make = getattr(scipy.sparse, ENCODINGS[encoding])
        arrays = tuple(found[name][()] for name in ("data", "indices", "indptr"))
        return checked_csr(make(arrays, shape=tuple(found.attrs["shape"])),
                           found.name)


def _encoding(found):
    """How AnnData has stored a matrix: "array", or a key of ENCODINGS. None for
    everything else in the file."""
    import h5py
    if isinstance(found, h5py.Dataset):
        return "array" if found.ndim == 2 else None
    encoding = None if found is None else found.attrs.get("encoding-type")
    return encoding if encoding in ENCODINGS else None


def _is_sparse_folder(path):
    return path.is_dir() and (path / "indptr.npy").exists()


def _read_sparse_folder(path):
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
    return checked_csr(
        scipy.sparse.csr_array((data, indices, indptr), shape=(n, d), copy=False),
        "the sparse array")
