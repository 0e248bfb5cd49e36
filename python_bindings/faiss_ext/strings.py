# SPDX-License-Identifier: MIT
"""The factory string of an index."""

import re

import faiss

from . import swigfaiss_ext as swig
from .parameters import real
from .showing import transforms_of


def index_string(index: "faiss.Index | faiss.IndexBinary") -> str:
    """The factory string that makes an empty index like this one.

    For indexes of this package it equals index.description(). The string
    includes values that training has chosen, such as the bandwidth of a kernel
    and the number of parts of `KIVF`. It also includes the search parameters
    that strings can have: `nprobe` of `KIVF`, and `B` of `BPerm`. The metric
    is not part of a string: pass `index.metric_type` to index_factory.

    Parameters
    ----------
    index : faiss.Index or faiss.IndexBinary
        An index of this package, or one of FAISS's that contains it or is
        contained in it.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the index or a part of it has no factory string, or none that
        index_string knows. Of FAISS's own indexes it knows the flat ones,
        `IVF<n>,Flat`, `HNSW<M>` and the binary ones; of its transformations
        PCA, OPQ, random rotations and L2norm.

    Examples
    --------
    >>> index_string(faiss.index_factory(64, "IDMap,KFlat(chi2,store=u8)"))
    'IDMap,KFlat(chi2,store=u8)'
    """
    if not isinstance(index, (faiss.Index, faiss.IndexBinary)):
        raise TypeError(f"index_string: expected an index, got {index!r}")
    string = string_of(real(index))
    if re.search(r"\bcallback\b", string):
        raise ValueError("a CallbackKernel has no factory string: it is a "
                         "function")
    return string


def no_string(thing):
    return ValueError(f"{type(thing).__name__} has no factory string, or one "
                      "that is not known here")


def with_arguments(name, *arguments):
    inside = ",".join(filter(None, arguments))
    return f"{name}({inside})" if inside else name


def changed(index, **defaults):
    """Keys for the attributes that differ from their defaults."""
    keys = []
    for name, default in defaults.items():
        value = getattr(index, name)
        if value != default:
            text = repr(value) if isinstance(value, float) else str(int(value))
            keys.append(f"{name}={text}")
    return keys


def string_of(index):
    if isinstance(index, (swig.IndexKernelHash, swig.IndexBinaryKernelHash)):
        return f"{index.hash.description()},{string_of(real(index.storage))}"
    if isinstance(index, swig.IndexAsymmetricHash):
        return f"{index.hash.description()},AFlat"
    if isinstance(index, swig.IndexFlatKernel):
        store = "" if index.store == "f32" else f"store={index.store}"
        return with_arguments("KFlat", index.kernel.description(), store)
    if isinstance(index, swig.IndexBinaryFlatKernel):
        return with_arguments("BKFlat", index.kernel.description())
    if isinstance(index, swig.IndexHNSWKernel):
        return (f"HNSW{index.hnsw.nb_neighbors(1)},"
                f"{string_of(real(index.storage))}")
    if isinstance(index, swig.IndexIVFPQ4):
        return with_arguments(
            f"KIVF{index.nlist}", f"M={index.M}",
            *changed(index, residual=True, nprobe=8, seed=1234))
    if isinstance(index, swig.IndexBinaryPermuted):
        number = changed(index, M=0) or changed(index, eps=0.5)
        return with_arguments("BPerm", *number, *changed(
            index, B=10, seed=1234, max_gb=8.0))
    if isinstance(index, (faiss.IndexIDMap2, faiss.IndexBinaryIDMap2)):
        return f"IDMap2,{string_of(real(index.index))}"
    if isinstance(index, (faiss.IndexIDMap, faiss.IndexBinaryIDMap)):
        return f"IDMap,{string_of(real(index.index))}"
    if isinstance(index, faiss.IndexRefine):
        base, again = real(index.base_index), real(index.refine_index)
        if isinstance(again, swig.IndexFlatKernel):
            return f"{string_of(base)},Refine({string_of(again)})"
        if isinstance(again, faiss.IndexFlat):
            return f"{string_of(base)},RFlat"
        raise no_string(index)
    if isinstance(index, faiss.IndexPreTransform):
        return ",".join([*map(transform_string, transforms_of(index)),
                         string_of(real(index.index))])
    return faiss_string(index)


def transform_string(transform):
    if isinstance(transform, swig.FeatureMap):
        return transform.description()
    if isinstance(transform, faiss.PCAMatrix):
        kind = {0: "", -0.5: "W"}.get(transform.eigen_power)
        if kind is not None:
            rotated = "R" if transform.random_rotation else ""
            return f"PCA{kind}{rotated}{transform.d_out}"
    if isinstance(transform, faiss.NormalizationTransform) and (
            transform.norm == 2):
        return "L2norm"
    if isinstance(transform, faiss.OPQMatrix):
        return f"OPQ{transform.M}_{transform.d_out}"
    if isinstance(transform, faiss.RandomRotationMatrix):
        return f"RR{transform.d_out}"
    raise no_string(transform)


def faiss_string(index):
    """The strings of some of FAISS's own classes."""
    if isinstance(index, faiss.IndexBinaryIVF):
        quantizer = real(index.quantizer)
        graph = (f"_HNSW{quantizer.hnsw.nb_neighbors(1)}" if isinstance(
            quantizer, faiss.IndexBinaryHNSW) else "")
        return f"BIVF{index.nlist}{graph}"
    if isinstance(index, faiss.IndexBinaryHNSW):
        return f"BHNSW{index.hnsw.nb_neighbors(1)}"
    if isinstance(index, faiss.IndexBinaryMultiHash):
        return f"BHash{index.nhash}x{index.b}"
    if isinstance(index, faiss.IndexBinaryHash):
        return f"BHash{index.b}"
    if isinstance(index, faiss.IndexBinaryFlat):
        return "BFlat"
    if type(index) is faiss.IndexHNSWFlat:
        return f"HNSW{index.hnsw.nb_neighbors(1)}"
    if type(index) is faiss.IndexIVFFlat:
        if isinstance(real(index.quantizer), faiss.IndexFlat):
            return f"IVF{index.nlist},Flat"
    if isinstance(index, faiss.IndexFlat):
        return "Flat"
    raise no_string(index)
