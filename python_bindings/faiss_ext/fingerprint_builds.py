# SPDX-License-Identifier: MIT
"""Builds indexes of files of fingerprints, with the names in the files."""

import os
import tempfile

import numpy as np

from . import swigfaiss_ext as swig
from .arguments import counted
from .fingerprint_files import fingerprint_batches
from .names import Names
from .out_of_core import build_of, made_from
from .progress import counting
from .sources import FileSource
from .vector_files import VectorFileError


class PackedFile(FileSource):
    """Fingerprints in a temporary file, by the name of the file that they come
    from."""

    def __init__(self, path, name):
        super().__init__(path)
        self.name = name


class Skipped:
    """The lines that were skipped: their number, and the first messages."""

    most = 5

    def __init__(self):
        self.n, self.first = 0, []

    def extend(self, messages):
        self.n += len(messages)
        self.first += messages[:self.most - len(self.first)]

    def lines(self):
        """A report of them, in lines."""
        if self.n == 0:
            return []
        more = [f"  and {self.n - self.most:,} more"] if self.n > self.most else []
        return [f"{counted(self.n, 'line')} skipped:",
                *(f"  {message}" for message in self.first), *more]


def build_from_fingerprints(path, string, output, fingerprint=None,
                            skip_errors=False, ids=None, memory=None,
                            train=100_000, seed=1234, parameters=None,
                            progress=True):
    """Builds a binary index of a file of fingerprints, which may be larger than
    memory.

    The fingerprints are written to a temporary file beside `output`, from which
    the index is built.

    Parameters
    ----------
    path, fingerprint, skip_errors
        As for `read_fingerprints`. A name that occurs twice is an error in its
        line, too.
    string : str
        The factory string of a binary index without a scheme.
    output : str or path
        The file to which the caller will write the index.
    ids : function, optional
        Called with the number of fingerprints. Returns their ids and a list of
        their names, each of them None by default.
    memory, train, seed, parameters, progress
        As for `build_from`.

    Returns
    -------
    index : faiss.IndexBinary
    names : Names
    skipped : Skipped
    """
    if not swig._is_string_for_codes(string):
        raise VectorFileError(
            f"{path}: fingerprints need a binary index without a scheme, such "
            f"as BKFlat(jaccard), got {string}")
    names, skipped = Names(), Skipped()
    folder = os.path.dirname(os.path.realpath(output))
    with tempfile.NamedTemporaryFile(
            dir=folder, prefix=".faiss_ext_", suffix=".bvecs") as file:
        with counting("read", None, progress, "fingerprint") as count:
            for batch in fingerprint_batches(path, fingerprint, skip_errors):
                if len(names) == 0:  # errors now, and not after hours
                    made_from(string, batch.codes.shape[1], "uint8", None,
                              parameters or {}, path, batch.bits)
                batch = with_new_names(batch, names, path, skip_errors)
                skipped.extend(batch.skipped)
                names.add(batch.names)
                write_bvecs(file, batch.codes)
                count(len(batch.codes))
        file.flush()
        ids, others = (None, None) if ids is None else ids(len(names))
        index = build_of(
            PackedFile(file.name, path), string, memory, None, None, None,
            train, seed, parameters, progress, ids, packed=batch.bits)
    if ids is not None or others is not None:
        names = renamed(list(names) if others is None else others, ids)
    if batch.type is not None:
        names.about["fingerprint"] = batch.type
    return index, names, skipped


def with_new_names(batch, names, path, skip_errors):
    """A batch without fingerprints whose name is already in use, or an error."""
    is_new = ~names.contains(batch.names)
    before = set()
    for i, name in enumerate(batch.names):
        is_new[i] &= name not in before
        before.add(name)
    messages = [f"{path}: the name {batch.names[i]!r} occurs twice"
                for i in np.flatnonzero(~is_new)]
    if not messages:
        return batch
    if not skip_errors:
        raise VectorFileError(f"{messages[0]}; --skip-errors keeps the first "
                              "vector of each name")
    return batch._replace(
        codes=batch.codes[is_new], skipped=batch.skipped + messages,
        names=[batch.names[i] for i in np.flatnonzero(is_new)])


def write_bvecs(file, codes):
    rows = np.empty((len(codes), 4 + codes.shape[1]), "uint8")
    rows[:, :4] = np.array([codes.shape[1]], "<i4").view("uint8")
    rows[:, 4:] = codes
    file.write(rows.tobytes())


def renamed(names, ids):
    table = Names()
    table.add(names, ids)
    return table
