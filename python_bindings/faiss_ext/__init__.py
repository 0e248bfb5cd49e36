"""Similarity search under kernels, inside FAISS.

Importing this package teaches the faiss module its strings, files and classes:

>>> import faiss, faiss_ext
>>> index = faiss.index_factory(64, "SIK512(gaussian),BFlat,Refine(KFlat(gaussian))")

What concerns only FAISS's own classes goes on as before.
"""

import faiss  # first: it loads the FAISS that faiss_ext is linked with

from .swigfaiss_ext import *
from .class_wrappers import mean_neighbor_distance
from . import extend_faiss

from .extend_faiss import clone_binary_index, read_index_binary

# what takes NumPy's and Python's types, under this package's name as well
# (index_binary_factory, read_index_binary and clone_binary_index are this
# package's own: their flat indexes are IndexBinaryFlatSIMD)
from faiss import (
    index_factory, write_index, read_index,
    write_index_binary, write_VectorTransform,
    read_VectorTransform, clone_index)
