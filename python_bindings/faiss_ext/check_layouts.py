# SPDX-License-Identifier: MIT
"""Compares FAISS's classes in memory with the headers that faiss_ext was
compiled with.

Even a patch release of FAISS can move a field. Code that was compiled with
other headers would then read and write other memory. faiss_ext finds some
fields wherever they are, but works with no other difference. So an object of each
class is made here, and SWIG's properties, which were compiled together with
FAISS, show its fields:

- A property of a number changes the bytes of the field.
- A property of an object returns its address, inside the other object or in a
  pointer.
- The allocator tells the size, but rounds it up.
- The symbol of a class's table of virtual functions tells how many there are.

It cannot see fields in the bytes that the allocator adds, virtual functions that
change places, tables without a symbol, strings, and classes that Python cannot
make (such as faiss::FlatCodesDistanceComputer and faiss::FaissException).
"""

import ctypes
import functools
import os

import numpy as np

from ._layouts import LAYOUTS

LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p
LIBC.malloc.argtypes = [ctypes.c_size_t]
LIBC.free.argtypes = [ctypes.c_void_p]
LIBC.malloc_usable_size.restype = ctypes.c_size_t
LIBC.malloc_usable_size.argtypes = [ctypes.c_void_p]
RTLD_DL_SYMENT = 1
GRANULARITY = 16  # glibc's allocator rounds sizes up by less
# free memory from before may be larger
ATTEMPTS = 10
BLOCKS = 200
POINTER_SIZE = ctypes.sizeof(ctypes.c_void_p)


class SymbolPlace(ctypes.Structure):
    """Dl_info of <dlfcn.h>."""

    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                ("name", ctypes.c_char_p), ("address", ctypes.c_void_p)]


class Symbol(ctypes.Structure):
    """Elf64_Sym of <elf.h>."""

    _fields_ = [("name", ctypes.c_uint32), ("info", ctypes.c_ubyte),
                ("other", ctypes.c_ubyte), ("section", ctypes.c_uint16),
                ("value", ctypes.c_uint64), ("size", ctypes.c_uint64)]


def compare(faiss):
    """Returns the movable fields that are elsewhere, as a dict of distances in
    bytes, and a list with a sentence for each other difference."""
    moved, differences = {}, []
    for name, make in constructors(faiss).items():
        if not hasattr(faiss, name):
            differences.append(f"there is no class faiss::{name}")
            continue
        layout, thing = LAYOUTS[name], make()
        for field, (offset, size, is_movable) in layout.fields.items():
            found = field_offset(thing, field, offset, size)
            if found == offset:
                continue
            if is_movable and found is not None:
                moved[f"{name}::{field}"] = found - offset
                continue
            differences.append(
                f"the offset of faiss::{name}::{field} is "
                f"{'unknown' if found is None else found}, expected {offset}")
        found = count_virtual_functions(thing, layout.virtual_functions)
        if found != layout.virtual_functions:
            differences.append(
                f"faiss::{name} has {found} virtual functions, expected "
                f"{layout.virtual_functions}")
        found = unexpected_size(
            thing, make, layout.least_size, layout.most_size)
        if found is not None:
            at_most = "" if layout.least_size else "at most "
            differences.append(f"faiss::{name} occupies {found} bytes, "
                               f"expected {at_most}{layout.most_size}")
    return moved, differences


def constructors(faiss):
    """Returns a function for each class that makes an object without null
    pointers."""
    flat, exact = faiss.IndexFlatL2(2), faiss.IndexFlatL2(2)
    bits = faiss.IndexBinaryFlat(8)
    selector = faiss.IDSelectorRange(0, 1)
    parameters = faiss.SearchParameters()
    arguments = {
        "IndexFlatL2": (2,),
        "IndexHNSW": (flat, 2),
        "IndexPreTransform": (flat,),
        "IndexRefine": (flat, exact),
        "IndexIDMap": (flat,),
        "IndexIVFFlat": (flat, 2, 1),
        "IndexIVFPQR": (flat, 2, 1, 1, 1, 1, 1),
        "IndexIVFPQFastScan": (flat, 2, 1, 1, 4),
        "IndexIVFResidualQuantizerFastScan": (flat, 2, 1, 1, 4),
        "IndexPQFastScan": (2, 1, 4),
        "IndexResidualQuantizerFastScan": (2, 1, 4),
        "IndexBinaryFlat": (8,),
        "IndexBinaryHNSW": (bits, 2),
        "IndexBinaryIVF": (bits, 8, 1),
        "IndexBinaryIDMap": (bits,),
        "IndexBinaryHash": (8, 1),
        "IndexBinaryMultiHash": (8, 1, 1),
        "ArrayInvertedLists": (1, 1),
        "ProductQuantizer": (1, 1, 1),
        "ResidualQuantizer": (1, 1, 1),
        "PCAMatrix": (1, 1),
        "OPQMatrix": (1, 1, 1),
        "NormalizationTransform": (1,),
        "RangeSearchResult": (1,),
        "IDSelectorRange": (0, 1),
        "IDSelectorArray": (np.zeros(1, np.int64),),
        "IDSelectorBatch": (np.zeros(1, np.int64),),
        "IDSelectorBitmap": (np.zeros(1, np.uint8),),
        "FileIOReader": (os.devnull,),
    }
    pointers = {
        "sel": selector,
        "quantizer_params": parameters,
        "index_params": parameters,
        "base_index_params": parameters,
        "clustering_index": flat,
        # not the object to which fine_quantizer points
        "aq": faiss.ResidualQuantizer(1, 1, 1),
    }

    def make(name):
        thing = getattr(faiss, name)(*arguments.get(name, ()))
        if name == "RangeSearchResult":
            thing.do_allocation()
        for field in pointers.keys() & LAYOUTS[name].fields:
            setattr(thing, field, pointers[field])
        return thing

    return {name: functools.partial(make, name) for name in LAYOUTS}


def field_offset(thing, field, offset, size):
    """Returns the offset of a field, which is likely to be the one given; None
    if the object does not show it."""
    value = getattr(thing, field, None)
    if isinstance(value, (int, float, str)):
        return number_offset(thing, field, value, offset, size)
    return (None if value is None
            else object_offset(thing, value, offset, size))


def number_offset(thing, field, value, offset, size):
    before = memory(thing)
    setattr(thing, field, another_number(value))
    after = memory(thing)
    setattr(thing, field, value)
    if before[offset:offset + size] != after[offset:offset + size]:
        return offset
    return next((i // size * size for i, (a, b) in enumerate(zip(before, after))
                 if a != b), None)


def another_number(value):
    if isinstance(value, str):  # SWIG's type of a char
        return chr(ord(value) ^ 1)
    return value + 1 if isinstance(value, float) else type(value)(value ^ 1)


def object_offset(thing, value, offset, size):
    start, there = address(thing), address(value)
    if size != POINTER_SIZE:
        return there - start
    pointers = memoryview(memory(thing)).cast("P").tolist()
    places = [i * POINTER_SIZE for i, p in enumerate(pointers) if p == there]
    return offset if offset in places else next(iter(places), None)


def address(thing):
    """Of an object of a class that SWIG wraps, or of another one."""
    return int(getattr(thing, "this", thing))


def memory(thing):
    size = usable_size(thing) // POINTER_SIZE * POINTER_SIZE
    return ctypes.string_at(address(thing), size)


def count_virtual_functions(thing, expected):
    """Returns the expected number if the table has no symbol."""
    if not expected:
        return expected
    table = ctypes.c_size_t.from_address(address(thing)).value
    place, symbol = SymbolPlace(), ctypes.POINTER(Symbol)()
    found = LIBC.dladdr1(ctypes.c_void_p(table), ctypes.byref(place),
                         ctypes.byref(symbol), RTLD_DL_SYMENT)
    # an offset and the type's information stand before the functions
    head = 2 * POINTER_SIZE
    if not found or place.address != table - head:
        return expected
    size = (symbol.contents.size - head) // POINTER_SIZE
    functions = (ctypes.c_ssize_t * size).from_address(table)
    # tables of further base classes begin with a negative offset
    return next((i for i, f in enumerate(functions) if f < 0), size)


def unexpected_size(thing, make, least, most):
    """Returns None if objects may have a size from least to most, otherwise the
    memory that one occupies."""
    things, blocks = [thing], []
    found, limit = usable_size(thing), most + GRANULARITY - 1
    try:
        while found > limit and len(things) < ATTEMPTS:
            limit = max(limit, leave_room(most, blocks))
            things.append(make())
            found = min(found, usable_size(things[-1]))
    finally:
        for block in blocks:
            LIBC.free(block)
    return None if least <= found <= limit else found


def usable_size(thing):
    return LIBC.malloc_usable_size(address(thing))


def leave_room(size, blocks):
    """Occupies free memory into which an object of this size fits loosely. Then
    the next one gets the memory whose size is returned."""
    rooms = []
    for _ in range(BLOCKS):
        blocks.append(LIBC.malloc(size))
        rooms.append(LIBC.malloc_usable_size(blocks[-1]))
        if rooms[-1] < size + GRANULARITY:
            break
    LIBC.free(blocks.pop())
    return min(rooms)
