# SPDX-License-Identifier: MIT
"""Text representations of indexes.

>>> faiss.index_factory(64, "IDMap,SIK512(gaussian),BFlat")
IndexIDTable(IndexKernelHash(SIK512(gaussian), IndexBinaryFlatSIMD), d=64, not trained)
"""

import faiss

from . import swigfaiss_ext as swig
from .parameters import real as real_of


def real(index):
    """An index as its own class, even if FAISS's downcast knows only its base
    class."""
    if isinstance(index, str):
        return index
    index = real_of(index)
    if isinstance(index, faiss.IndexBinary):
        found = swig._downcast(index)
        return found if isinstance(found, type(index)) else index
    return index


def class_name(thing):
    return type(thing).__name__


def transforms_of(index):
    # reading `chain` would mark it as possibly changed
    chain = (index._chain if isinstance(index, swig.IndexPreTransformSIMD)
             else index.chain)
    return [faiss.downcast_VectorTransform(chain.at(i))
            for i in range(chain.size())]


def is_group(index):
    """Whether an index consists of several ones: Shards or Replicas."""
    return isinstance(index, (
        faiss.IndexShards, faiss.IndexReplicas, faiss.IndexBinaryShards,
        faiss.IndexBinaryReplicas))


def transform_text(transform):
    if isinstance(transform, str):
        return transform
    if isinstance(transform, swig.Transform):
        return transform.description()
    return f"{class_name(transform)}({transform.d_in}, {transform.d_out})"


def number_text(value):
    return format(value, "g") if isinstance(value, float) else str(value)


def settings(index, *names):
    return [f"{name}={number_text(getattr(index, name))}" for name in names]


def text(index, settings_behind=()):
    """The text of an index and its parts."""
    if index is None:
        return "None"
    inside = [part if isinstance(part, str) else text(part)
              for part in contents(index)] + list(settings_behind)
    return class_name(index) + (f"({', '.join(inside)})" if inside else "")


def few(parts, most=16):
    """At most `most` parts: the first and the last ones."""
    left_out = len(parts) - most
    if left_out <= 0:
        return parts
    return [*parts[:most // 2], f"... {left_out} more ...",
            *parts[-most // 2:]]


def contents(index):
    """The settings (strings) and parts (indexes) of an index."""
    if isinstance(index, (swig.IndexKernelHash, swig.IndexBinaryKernelHash)):
        return [index.hash.description(), real(index.storage)]
    if isinstance(index, swig.IndexAsymmetricHash):
        return [index.hash.description()]
    if isinstance(index, swig.IndexBinaryFlatKernel):
        return [index.kernel.description()]
    if isinstance(index, swig.IndexFlatKernel):
        store = [] if index.store == "f32" else [f"store={index.store}"]
        return [index.kernel.description(), *store]
    if isinstance(index, swig.IndexIVFPQ4):
        return settings(index, "nlist", "M", "nprobe")
    if isinstance(index, swig.IndexBinaryPermuted):
        return settings(index, "M" if index.M else "eps", "B")
    if isinstance(index, (faiss.IndexIVF, faiss.IndexBinaryIVF)):
        quantizer = real(index.quantizer)
        plain = quantizer is None or isinstance(
            quantizer, (faiss.IndexFlat, faiss.IndexBinaryFlat)) and (
                not isinstance(quantizer, swig.IndexFlatKernel))
        return ([] if plain else [quantizer]) + settings(
            index, "nlist", "nprobe")
    if isinstance(index, faiss.IndexPreTransform):
        return [*map(transform_text, few(transforms_of(index))),
                real(index.index)]
    if isinstance(index, faiss.IndexRefine):
        return [real(index.base_index), real(index.refine_index),
                *settings(index, "k_factor")]
    if isinstance(index, (faiss.IndexHNSW, faiss.IndexBinaryHNSW)):
        return [real(index.storage),
                f"efSearch={index.hnsw.efSearch}"]
    if is_group(index):
        return list(map(real, few(
            [index.at(i) for i in range(index.count())])))
    if hasattr(index, "index"):  # IDMap
        return [real(index.index)]
    return []


def metric_name(index):
    """l2 or ip, as on the command line, or FAISS's name of another metric.

    None for a binary index, which has only one.
    """
    if isinstance(index, faiss.IndexBinary):
        return None
    metric = index.metric_type
    if metric == faiss.METRIC_INNER_PRODUCT:
        return "ip"
    names = (name[len("METRIC_"):] for name in dir(faiss)
             if name.startswith("METRIC_") and getattr(faiss, name) == metric)
    return next(names, str(metric)).lower()


def index_text(index):
    """The repr of an index."""
    name = metric_name(index)
    metric = [] if name in (None, "l2") else [f"metric={name}"]
    state = f"ntotal={index.ntotal}" if index.is_trained else "not trained"
    return text(real(index), [f"d={index.d}", *metric, state])
