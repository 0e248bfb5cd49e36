# SPDX-License-Identifier: MIT
"""Arguments of Python calls: arrays and numbers, checked and converted."""

import numbers
import operator
import re

import faiss
import numpy as np
from numpy import ndarray

from . import swigfaiss_ext as swig
from .errors import about_vector

FLOAT = np.dtype("float32")

# in strings of kernels and indexes: kernels under which bytes are often bits
OF_SETS = re.compile(r"\b(jaccard|dice|CWS\d*)\b")


def as_array(x, where):
    """x as an array; raises an error if the conversion would be ambiguous."""
    if hasattr(x, "toarray"):
        raise TypeError(f"{where}: expected an array, got a sparse matrix; "
                        "convert it with toarray()")
    rows = x if isinstance(x, (list, tuple)) else ()
    if np.ma.is_masked(x) or any(map(np.ma.is_masked, rows)):
        raise ValueError(f"{where}: expected an array without masked values; "
                         "fill them with filled(value), or leave out rows with "
                         "masked values")
    return np.asarray(x)


def is_plain(x, d):
    """Whether x is a C-contiguous float32 array of shape (n, d) already."""
    return (type(x) is ndarray and x.dtype is FLOAT and x.ndim == 2
            and x.shape[1] == d and x.flags.c_contiguous)


def as_vectors(x, d, where):
    """x as a C-contiguous float32 array of shape (n, d)."""
    if is_plain(x, d):
        return x  # single queries come here: the rest takes microseconds
    if x is None:
        raise ValueError(
            f"{where}: expected an array of shape (n, {d}), got None")
    x = as_array(x, where)
    if x.ndim != 2 or x.shape[1] != d:
        raise ValueError(
            f"{where}: expected an array of shape (n, {d}), got {x.shape}"
            + hint_for_one(x, d))
    if x.dtype.kind not in "fiub":
        raise TypeError(
            f"{where}: expected numbers, got an array of {x.dtype}")
    return as_float32(x, where)


def as_float32(x, where, place=lambda *at: at):
    """Numbers as a C-contiguous float32 array. Raises an error for one that is
    finite, but too large for float32; C++ refuses those that are infinite.

    place(*at) is the vector and the component at a position of the array.
    """
    try:
        with np.errstate(over="raise"):
            return np.ascontiguousarray(x, dtype="float32")
    except FloatingPointError:
        with np.errstate(over="ignore"):
            is_large = np.isfinite(x) & np.isinf(x.astype("float32"))
    at = tuple(np.argwhere(is_large)[0])
    vector, component = map(int, place(*at))
    raise about_vector(
        f"{where}: component {component} of ", vector,
        f" is {x[at]:g}, too large for float32; expected at most 3.4e38")


def as_matrix(x, where):
    """x as a C-contiguous float32 array of shape (n, d), for any d."""
    x = as_array(x, where)
    if x.ndim != 2:
        raise ValueError(
            f"{where}: expected an array of shape (n, d), got {x.shape}")
    return as_vectors(x, x.shape[1], where)


def as_codes(x, code_size, where):
    """x as a C-contiguous uint8 array of shape (n, code_size)."""
    x = as_array(x, where)
    if x.dtype != np.uint8:
        hint = ("; numpy.packbits(x, axis=1) makes codes of bits"
                if x.dtype == bool else "")
        raise TypeError(f"{where}: expected codes (uint8), got an array of "
                        f"{x.dtype}{hint}")
    if x.ndim != 2 or x.shape[1] != code_size:
        raise ValueError(
            f"{where}: expected codes of shape (n, {code_size}), "
            f"got {x.shape}" + hint_for_one(x, code_size))
    return np.ascontiguousarray(x)


def as_any_codes(x, where):
    """x as a C-contiguous uint8 array with rows of any length."""
    x = as_array(x, where)
    return as_codes(x, x.shape[1] if x.ndim == 2 else "d / 8", where)


def as_packed(packed, x, kernel, where):
    """Whether the rows of x are packed bits: False, True or their number of
    bits. None means False, unless that would be a guess: bytes under a kernel
    of sets. The kernel may be the string of an index, too."""
    if packed is not None:
        return checked_packed(packed, where)
    string = kernel if isinstance(kernel, str) else (
        kernel.description() if hasattr(kernel, "description") else "")
    dtype = None if hasattr(x, "tocsr") else np.asarray(x).dtype
    if may_be_bits(dtype, string):
        raise ValueError(
            f"{where}: x is an array of uint8, which may be packed bits or "
            "counts; pass packed=True or packed=False")
    if dtype == np.uint8 and is_only_of_bits(string):
        raise ValueError(f"{where}: {string} is a kernel of packed bits; pass "
                         "packed=True")
    return False


def is_only_of_bits(kernel):
    """Whether the string of a kernel names one of packed bits, and none of
    vectors."""
    name = kernel.partition("(")[0].strip()
    return (name in swig.bit_kernel_names()
            and name not in swig.kernel_names())


def may_be_bits(dtype, string):
    """Whether vectors of a type may be packed bits, under the kernel or in the
    index of a string."""
    return dtype == "uint8" and OF_SETS.search(string) is not None


def checked_packed(packed, where):
    """The argument `packed`: False, True, or a number of bits."""
    if isinstance(packed, (bool, np.bool_)):
        return bool(packed)
    try:
        bits = operator.index(packed)
    except TypeError:
        raise TypeError(f"{where}: packed must be True, False or a number of "
                        f"bits, got {shown(packed)}") from None
    if bits < 1:
        raise ValueError(f"{where}: packed is {bits}, expected True, False or a "
                         "positive number of bits")
    return bits


def number_of_bits(packed, size, where):
    """The number of bits in rows of `size` bytes: packed, or 8 for each byte if
    it is True."""
    if packed is True:
        return 8 * size
    if not 8 * (size - 1) < packed <= 8 * size:
        raise ValueError(
            f"{where}: packed is {packed}, a number of bits, but rows of "
            f"{counted(size, 'byte')} have {8 * size - 7} to {8 * size}; "
            "packed=True takes all bits")
    return packed


def check_number_of_bits(packed, d, where):
    """Raises an error unless packed is True or d."""
    if packed is not True and packed != d:
        raise ValueError(f"{where}: packed is {packed}, a number of bits, "
                         f"expected {d} or True")


def hint_for_one(x, d):
    """What to write instead of a single vector; or ""."""
    return "; for one vector, x[None]" if x.shape == (d,) else ""


def as_ids(ids, shape, where, noun="ids"):
    """ids as a C-contiguous int64 array; None in the shape, shown as k, stands
    for any number."""
    given = ids
    ids = as_array(ids, where)
    if len(ids.shape) != len(shape) or any(
            size not in (None, given) for size, given in zip(shape, ids.shape)):
        expected = (f"{shape[0]} {noun}" if len(shape) == 1 and shape[0] is not None
                    else f"{noun} of shape {shape}".replace("None", "k"))
        got = (f"an array of shape {ids.shape}" if ids.ndim else
               f"{shown(given)}; write [{shown(given)}] for an array of one")
        raise ValueError(f"{where}: expected {expected}, got {got}")
    limit = np.iinfo("int64").max
    if ids.size and (int(ids.max()) > limit if ids.dtype == np.uint64
                     else ids.dtype.kind in "fO"):
        check_size(given, where)
    if ids.size and ids.dtype.kind not in "iu":
        raise TypeError(
            f"{where}: {noun} must be integers, got an array of {ids.dtype}")
    return np.ascontiguousarray(ids, dtype="int64")


def check_size(ids, where):
    """Raises an error for integers that do not fit into 64 bits. NumPy makes
    other numbers of them."""
    limits = np.iinfo("int64")
    values = np.asarray(ids, dtype=object).ravel()
    if all(isinstance(value, numbers.Integral) for value in values):
        wrong = next((int(value) for value in values
                      if not limits.min <= value <= limits.max), None)
        if wrong is not None:
            raise ValueError(
                f"{where}: id {wrong} is too {'large' if wrong > 0 else 'small'}"
                ", ids are 64-bit integers")


def as_new_ids(ids, n, where):
    """Checked ids for vectors to be added."""
    ids = as_ids(ids, (n,), where)
    if (ids == -1).any():
        raise ValueError(f'{where}: an id is -1, which means "no result" in '
                         "searches")
    return ids


def as_radius(radius, where):
    """A radius as a float."""
    if type(radius) is int and abs(radius) < 2**53:
        return float(radius)  # single queries come here
    if radius is np.ma.masked:
        raise ValueError(f"{where}: the radius is a masked value")
    if isinstance(radius, (str, bytes)) or np.ndim(radius) != 0:
        raise TypeError(f"{where}: the radius must be a number, got {shown(radius)}")
    try:
        radius = float(radius)
    except OverflowError:
        radius = np.inf if radius > 0 else -np.inf
    except (TypeError, ValueError):
        raise TypeError(f"{where}: the radius must be a number, "
                        f"got {shown(radius)}") from None
    if abs(radius) > np.finfo("float32").max:  # infinite as float32
        radius = np.copysign(np.inf, radius)
    if np.isnan(radius):
        raise ValueError(f"{where}: the radius is NaN")
    return radius


def as_k(k, where):
    """k as an int."""
    try:
        k = operator.index(k)
    except TypeError:
        raise TypeError(
            f"{where}: k must be a positive integer, got {shown(k)}") from None
    if k <= 0:
        raise ValueError(f"{where}: k must be positive, got {k}")
    return k


def as_integer(value, name, where):
    """An integer as Python's int, whose sums do not wrap."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{where}: {name} must be an integer, got {shown(value)}") from None


def as_number(value, name, where):
    if not isinstance(value, (str, bytes)) and np.ndim(value) == 0:
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    raise TypeError(f"{where}: {name} must be a number, got {shown(value)}")


def as_threshold(threshold, where):
    threshold = as_number(threshold, "the threshold", where)
    if not abs(threshold) <= np.finfo("float32").max:
        raise ValueError(f"{where}: the threshold is {threshold}, expected a "
                         "number above 0, and at most 3.4e38")
    return threshold


def as_names(names, n, where):
    """The names of n vectors as a list; None if there are none."""
    if names is None:
        return None
    if isinstance(names, (str, bytes)) or not np.iterable(names):
        raise TypeError(f"{where}: names must be a list or an array, got "
                        f"{shown(names)}")
    names = list(names)
    if len(names) != n:
        raise ValueError(f"{where}: expected {n:,} names, one for each vector, "
                         f"got {len(names):,}")
    return names


def as_other_index(value, name, where):
    if not isinstance(value, (faiss.Index, faiss.IndexBinary)):
        raise TypeError(f"{where}: {name} must be an index, got {shown(value)}")
    return value


def as_selected(x, name, where):
    """The argument of remove_ids, checked."""
    if isinstance(x, faiss.IDSelector):
        return x
    if np.ndim(x) != 1:
        raise TypeError(f"{where}: expected an array of ids or an IDSelector, "
                        f"got {shown(x)}")
    return as_keys(x, name, where)


def as_code_rows(codes, name, where):
    """The argument of sa_decode, checked."""
    return as_array(codes, where)


def as_keys(keys, name, where):
    """The argument of reconstruct_batch, checked."""
    return as_ids(keys, (None,), where)


def as_asked(ids, where):
    """The argument of contains, an array of ids or one: its shape, and the ids
    in an array."""
    shape = np.shape(ids)
    return shape, as_keys([ids] if shape == () else ids, "ids", where)


# checks of arguments that are not vectors, by their names in FAISS's methods
AS_ARGUMENT = {
    "key": as_integer, "n0": as_integer, "ni": as_integer,
    "add_id": as_integer, "otherIndex": as_other_index,
    "other": as_other_index}


def counted(n, noun, plural=None):
    """A number of things for a message, such as "1 name" or "2,000 names"."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def shown(value, most=200):
    """A value for a message, shortened to a few lines."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of {value.dtype} of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= most else (
        f"{text[:most // 2]} ... {text[-most // 2:]}")


def python_number(value):
    """NumPy scalars and arrays of shape () as Python numbers, which SWIG
    accepts."""
    if value is np.ma.masked:
        raise ValueError("expected a number, got a masked value")
    is_scalar = isinstance(value, np.generic) or (
        isinstance(value, np.ndarray) and value.ndim == 0)
    return value.item() if is_scalar else value
