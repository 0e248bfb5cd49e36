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

# what takes NumPy's and Python's types, under this package's name as well
# (index_binary_factory is the module's own: its `BFlat` is IndexBinaryFlatSIMD)
from faiss import (
    index_factory, write_index, read_index,
    write_index_binary, read_index_binary, write_VectorTransform,
    read_VectorTransform, clone_index)
