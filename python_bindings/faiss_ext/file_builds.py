# SPDX-License-Identifier: MIT
"""Builds indexes of files of vectors or of fingerprints."""

import faiss

from .fingerprint_builds import build_from_fingerprints
from .fingerprint_files import is_fingerprint_file
from .name_files import write_with_names
from .out_of_core import build_of, check_names
from .sources import FileSource
from .vector_files import VectorFileError, checked_name


def build_from(path, string, memory=None, output=None, part=None, exact=None,
               metric=faiss.METRIC_L2, train=100_000, seed=1234,
               parameters=None, progress=True, ids=None, names=None,
               packed=None, fingerprint=None):
    """Builds an index of a file of vectors, which may be larger than memory.

    The file is mapped, and its vectors are added in blocks. `KFlat(kernel)`,
    alone or in `...,Refine(KFlat(kernel))`, also behind `IDMap` and
    `Concurrent`, reads the vectors from the file (`IndexFileKernel`), so the
    index needs memory only for its codes. The file must then stay. A `store=`
    in the string keeps copies in the index instead.

    Parameters
    ----------
    path : str or path
        The file, of any kind that `faiss_ext.vector_files.read_vectors` or
        `faiss_ext.read_fingerprints` reads.
    string : str
        The factory string. `BFlat`, `BKFlat(jaccard)` and other binary indexes
        without a scheme take packed bits as they are. Other indexes take them
        as vectors of zeros and ones.
    memory : int or str, optional
        Memory that may be used: a number of bytes, or a size such as "2GB". By
        default four fifths of the machine's.
    output : str or path, optional
        File of the index. Without it, the index is only returned.
    part : str, optional
        The array of an HDF5 file.
    exact : str, optional
        "file", or "memory": `KFlat` then keeps copies of the vectors, also
        without `store=`. "file" raises an error if `KFlat` cannot read the
        file. By default it does if it can, and keeps copies otherwise.
    metric : int, optional
        faiss.METRIC_L2 or faiss.METRIC_INNER_PRODUCT.
    train : int, optional
        Number of training vectors, which are drawn at random. Fewer are used
        if memory is short.
    seed : int, optional
        Seed of the training sample.
    parameters : dict, optional
        Parameters of the index by name.
    progress : bool, optional
        Whether to show progress and rate on stderr.
    ids : array_like of int64, shape (n,), optional
        The id of each vector of the file; by default its position. A `KFlat`
        that reads the file needs `IDMap` in the string. An interrupted build
        with ids starts again.
    names : Names, optional
        The names of the vectors, which the file of the index keeps; by default
        the names in a file of fingerprints. `faiss_ext.read_names` reads them.
    packed : bool or int, optional
        Whether bytes (uint8) in the file are packed bits, as `numpy.packbits`
        gives; or their number of bits, if they do not fill their bytes. It must
        be given under jaccard, dice and CWS, unless the index takes packed bits
        as they are. Other bytes are numbers by default. Files of fingerprints
        tell it themselves.
    fingerprint : str, optional
        The type of fingerprints, as for `read_fingerprints`.

    Returns
    -------
    faiss.Index or faiss.IndexBinary

    Raises
    ------
    MemoryError
        If the index does not fit into `memory`.
    VectorFileError
        A ValueError. If the file cannot be read or changes. Also if the folder
        `output + ".build"` cannot be made, is damaged, or was not made by this
        build.

    Notes
    -----
    **Interruptions.** With `output`, and more vectors than one block, each
    finished block is written to the folder `output + ".build"`. After an
    interruption the same call continues, also with more memory, and rebuilds
    damaged blocks. At the end the index is written and the files in the folder
    are deleted. Graphs and hash tables are not merged from blocks. They are
    saved whole, each time that adding has taken ten times as long as saving.

    **Fingerprints.** The fingerprints of a `.fps`, `.smi` or `.sdf` file are
    written to a temporary file in the folder of `output` first. A name that
    occurs twice is an error. An interrupted build starts again.

    **Memory.** `memory` determines the sizes of the blocks and of the training
    sample. If the index turns out not to fit, the build fails after the first
    block. All parts except flat codes (`BFlat`) are counted twice, because
    they may need as much again while they grow. The limit does not include a
    few MB for matrices during training (33 MB for FAISS's k-means of `BIVF`).
    It does not include mapped pages of the file of vectors either. The system
    can reclaim these pages at any time, but they are part of the peak resident
    memory (RSS).

    Examples
    --------
    >>> index = faiss_ext.build_from(
    ...     "base.fvecs", "AHK512(chi2,center=1),BFlat,Refine(KFlat(chi2))",
    ...     memory="2GB", output="base.index")
    """
    if not is_fingerprint_file(checked_name(path)):
        if fingerprint is not None:
            raise ValueError(f"fingerprint: {path} is not a file of fingerprints")
        return build_of(FileSource(path, part, packed), string, memory,
                        output, exact, metric, train, seed, parameters,
                        progress, ids, names)
    check_for_fingerprints(path, part, packed)
    check_names(names, output)
    index, of_file, _ = build_from_fingerprints(
        str(path), string, output, {"fingerprint": fingerprint},
        lambda n: (ids, None), memory, train, seed, parameters, progress, exact,
        metric)
    if output is not None:
        write_with_names(index, output, of_file if names is None else names)
    return index


def check_for_fingerprints(path, part, packed):
    if part is not None:
        raise VectorFileError(f"{path}: has no part {part!r}")
    if packed is not None:
        raise ValueError(f"packed: {path} tells itself that it has packed bits")
