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

index_factory = swigfaiss_ext.index_factory
