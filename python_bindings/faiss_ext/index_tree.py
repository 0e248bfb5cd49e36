# SPDX-License-Identifier: MIT
"""The tree of an index, from C++: its parts, transformations and kernel."""

from typing import NamedTuple

from . import swigfaiss_ext as swig
from .errors import as_value_errors


class Part(NamedTuple):
    """An index directly inside another one; see IndexPart in C++."""

    name: str
    index: "faiss.Index | faiss.IndexBinary | None"
    is_searched: bool
    compares: bool
    by_position: bool
    is_quantizer: bool
    answers: bool


def kept(thing, owner):
    """A part of an index; it keeps its owner alive."""
    if thing is not None:
        thing.referenced_objects = [owner]
    return thing


def real(index):
    """An index as its own class (downcast); None for None."""
    if index is None:
        return None
    found = swig._downcast(index)
    # an object of a subclass in Python stays what it is
    return index if isinstance(index, type(found)) else kept(found, index)


def parts_of(index):
    """The indexes directly inside an index, without quantizers that are flat,
    as usual."""
    parts = (Part(*part) for part in swig._shown_parts(index))
    return [part._replace(index=kept(part.index, index)) for part in parts]


def transforms_of(index):
    """The transformations and the hash that vectors pass on their way to the
    parts."""
    return [kept(transform, index)
            for transform in swig._transforms_of(index)]


def kernel_of(index):
    """The kernel under which an index itself compares vectors, or None."""
    return kept(swig._kernel_of(index), index)


def part_that_compares(index):
    """The part of an index whose distances it returns; possibly the index
    itself."""
    with as_value_errors():
        return part_of(index, swig._part_that_compares(index))


def part_that_stores(index):
    """The part of an index that stores the vectors, through wrappers with one
    part; possibly the index itself."""
    return part_of(index, swig._part_that_stores(index))


def part_of(index, found):
    """A part that C++ has found; possibly the index itself."""
    return real(index) if found.this == index.this else kept(found, index)


def parts_that_answer(index):
    """The parts that return what the index returns, from the outside in: behind
    transformations, locks and tables of ids."""
    while (index := next((part.index for part in parts_of(index)
                          if part.answers), None)) is not None:
        yield index


class Ranking(NamedTuple):
    """How an index ranks candidates again, possibly inside wrappers."""

    path: list  # from the index to the part that ranks them
    base: "faiss.Index"  # finds candidates
    exact: "faiss.Index"  # compares them

    @property
    def k_factor(self):
        return self.path[-1].k_factor


def ranking_of(index):
    """How an index ranks candidates again; None if it does not."""
    path = [real(index), *parts_that_answer(index)]
    parts = parts_of(path[-1])
    base = [p.index for p in parts if p.is_searched and not p.compares]
    exact = [p.index for p in parts if p.compares and not p.is_searched]
    return Ranking(path, base[0], exact[0]) if base and exact else None


def part_in_front(index):
    """The part of an index, or of its first shard, that gets vectors as they
    are."""
    return part_of(index, swig._part_in_front(index))


def hash_before(index):
    """The hash that vectors pass on their way into the parts of an index, or
    None."""
    return next((transform for transform in transforms_of(index)
                 if isinstance(transform, swig.KernelHash)), None)


def hash_of(index):
    """The hash in an index, or None."""
    if (own := hash_before(index)) is not None:
        return own
    parts = [part.index for part in parts_of(index)]
    found = [hash for hash in map(hash_of, parts) if hash is not None]
    if not found or swig._divides_vectors(index) and (
            len(found) < len(parts)
            or len({hash.description() for hash in found}) > 1):
        return None
    return found[0]


def all_inside(index):
    """Yields an index and all indexes inside it."""
    yield real(index)
    for part in parts_of(index):
        if part.index is not None:
            yield from all_inside(part.index)


def hash_in_front(index):
    """The hash of a binary index that takes vectors; None if it takes
    codes."""
    return kept(swig._hash_in_front(index), index)
