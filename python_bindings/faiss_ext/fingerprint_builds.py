# SPDX-License-Identifier: MIT
"""Builds indexes of files of fingerprints, with the names in the files."""

import os
import tempfile

import faiss
import numpy as np

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

    def __init__(self, path, name, bits):
        super().__init__(path, None, bits)
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


def build_from_fingerprints(path, string, output, reading, ids, memory, train,
                            seed, parameters, progress, exact=None,
                            metric=faiss.METRIC_L2):
    """Builds an index of a file of fingerprints, which may be larger than
    memory.

    The fingerprints are written to a temporary file beside `output`, from which
    the index is built.

    Parameters
    ----------
    path : str
        The file. A name that occurs twice is an error in its line, too.
    string : str
        The factory string.
    output : str or path, or None
        The file to which the caller will write the index.
    reading : dict
        The other arguments of `fingerprint_batches`.
    ids : function
        Called with the number of fingerprints. Returns their ids and a list of
        their names, each of them None by default.
    memory, train, seed, parameters, progress, exact, metric
        As for `build_from`.

    Returns
    -------
    index : faiss.Index or faiss.IndexBinary
    names : Names
    skipped : Skipped
    """
    names, skipped = Names(), Skipped()
    folder = (None if output is None
              else os.path.dirname(os.path.realpath(output)))
    with tempfile.NamedTemporaryFile(
            dir=folder, prefix=".faiss_ext_", suffix=".bvecs") as file:
        with counting("read", None, progress, "fingerprint") as count:
            for batch in fingerprint_batches(path, **reading):
                if len(names) == 0:  # errors now, and not after hours
                    made_from(string, batch.codes.shape[1], "uint8", metric,
                              parameters or {}, path, batch.bits)
                batch = with_new_names(
                    batch, names, path, reading.get("skip_errors"))
                skipped.extend(batch.skipped)
                names.add(batch.names)
                write_bvecs(file, batch.codes)
                count(len(batch.codes))
        if len(names) == 0:
            raise VectorFileError(f"{path}: it has no fingerprints")
        file.flush()
        ids, others = ids(len(names))
        index = build_of(
            PackedFile(file.name, path, batch.bits), string, memory, None, exact,
            metric, train, seed, parameters, progress, ids)
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
