# SPDX-License-Identifier: MIT
"""Kernel similarity search for FAISS.

Importing faiss_ext extends the faiss module: FAISS's functions that make, read,
write, copy and downcast objects then also handle kernels, hashes and feature
maps. Its classes are not changed.

>>> import faiss, faiss_ext
>>> index = faiss.index_factory(64, "SIK512(gaussian),BFlat,Refine(KFlat(gaussian))")

kernel_names(), map_names() and hash_names() list the names that strings can
contain. describe("SIK") returns the parameters of one of them.
"""

import inspect

from . import check_interpreter  # must run before NumPy and FAISS are loaded

try:  # first, since it loads the FAISS that faiss_ext is linked with
    import faiss
except ModuleNotFoundError as _error:
    if _error.name == "faiss":
        _error.msg = ("faiss_ext needs the module faiss: pip install faiss-cpu, "
                      "or Debian's package python3-faiss")
    raise

from . import check_faiss
from ._version import __version__
_moved_fields = check_faiss.check(faiss)

try:
    from . import swigfaiss_ext
except ImportError as _error:
    _error.msg += f". {check_faiss.REMEDY}"
    raise
for _field, _distance in _moved_fields.items():
    swigfaiss_ext._move_field(_field, _distance)

from .class_wrappers import mean_neighbor_distance  # completes swigfaiss_ext
from .swigfaiss_ext import *
from .description import Description, Field, describe
from . import index_protocols
from . import extend_faiss

from .extend_faiss import clone_binary_index, read_index_binary
from .parameters import (
    ParameterSpace, index_parameters, set_index_parameter)
from .environment import show_versions, versions
from .advice import Recommendation, recommend
from .calibration import Calibration, calibrate
from .distances import kernel_values
from .clusters import butina_clusters
from .duplicates import near_duplicate_groups, near_duplicates
from .file_builds import build_from
from .fingerprint_files import (
    Fingerprints, fingerprint_batches, read_fingerprints, write_fps)
from .name_files import read_names, write_index
from .names import Names
from .graphs import threshold_graph
from .picks import maxmin_picks
from .out_of_core import file_index
from .progress import show_progress
from .retraining import retrained
from .shard_building import build_shards, open_shards
from .shard_folder import ShardError
from .shards import ShardedIndex
from .strings import index_string
from .vector_files import VectorFileError

# FAISS's functions, extended to the types of this package, are also available
# as faiss_ext.*. index_binary_factory, read_index_binary and
# clone_binary_index are not among them: this package has its own versions,
# which make flat indexes IndexBinaryFlatSIMD and inverted lists
# IndexBinaryIVFSIMD. Its write_index also writes names.
from faiss import (
    index_factory, read_index,
    write_index_binary, write_VectorTransform,
    read_VectorTransform, clone_index)

__all__ = sorted(
    {"Calibration", "Description", "Field", "build_from", "calibrate",
     "describe", "file_index", "mean_neighbor_distance",
     "Fingerprints", "Names", "ParameterSpace", "Recommendation", "ShardError",
     "ShardedIndex", "VectorFileError",
     "build_shards", "butina_clusters", "fingerprint_batches",
     "index_parameters", "index_string", "kernel_values", "maxmin_picks",
     "near_duplicate_groups", "near_duplicates", "open_shards",
     "read_fingerprints", "read_names", "recommend", "retrained",
     "set_index_parameter",
     "show_progress", "show_versions", "threshold_graph", "versions",
     "write_fps"}
    | {name for name, thing in vars(swigfaiss_ext).items()
       if not name.startswith("_")
       and (inspect.isclass(thing) or inspect.isfunction(thing))
       and thing.__module__ == swigfaiss_ext.__name__})


def __dir__():
    return [*__all__, "__version__", "cvar"]
