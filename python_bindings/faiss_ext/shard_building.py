# SPDX-License-Identifier: MIT
"""Builds sharded indexes from partitions, and opens them."""

import bisect
import contextlib
import os

import faiss
import numpy as np

from ._version import __version__
from .arguments import shown
from .class_wrappers import unpacked
from .errors import with_prefix
from .files import has_digest, read_index
from .out_of_core import (
    Build, check_exact, checked, integer, made_from,
    number_of_bytes, takes_packed_bits, train_with)
from .progress import counting
from .shard_folder import (
    MANIFEST, MODEL, ShardError, ShardFolder, read_shard, write_shard)
from .shards import LocalEngine, Shard, ShardedIndex
from .sources import ArraySource, FileSource, drawn, joined
from .sparse_arrays import is_sparse
from .sparse_vectors import takes_sparse, why_not_sparse
from .vector_files import SVMLIGHT


def build_shards(partitions, string, client=None, folder=None, part=None,
                 exact=None, metric=faiss.METRIC_L2, train=100_000, seed=1234,
                 parameters=None, memory=None, progress=True, packed=None):
    """Builds an index with one shard for each partition of the vectors.

    The index is trained once, with a sample of all partitions. If it needs no
    training, no sample is read. Each shard is built where its
    partition is: by the workers of a Dask cluster or, without a client, one
    after the other in this process. The shards stay there or, if a folder is
    given, are written to it and opened.

    Parameters
    ----------
    partitions : list of str or path, list of arrays, or a Dask array
        Files as for `build_from`, which every worker can read; or arrays of
        shape (n, d), dense or sparse; or a Dask array in chunks of rows. If there is training,
        persist an array that is expensive to compute.
    string : str
        The factory string, without `IDMap`: ids count from the first vector of
        the first partition.
    client : dask.distributed.Client, optional
        The cluster. By default shards are built in this process.
    folder : str or path, optional
        A new folder, or the folder of an earlier call with the same arguments.
        All workers must be able to write to it.
    part : str, optional
        The array of HDF5 files.
    exact : str, optional
        "file" or "memory", as for `build_from`. With "file", `KFlat` reads the
        vectors from their files, which must stay. By default it does so where
        the partitions are files that it can read.
    metric : int, optional
        faiss.METRIC_L2 or faiss.METRIC_INNER_PRODUCT.
    train : int, optional
        Number of training vectors, which are drawn at random.
    seed : int, optional
        Seed of the training sample.
    parameters : dict, optional
        Search parameters by name.
    memory : int or str, optional
        Memory that a shard and its construction may use, as for `build_from`.
    progress : bool, optional
        Whether to show on stderr how many shards are done.
    packed : bool or int, optional
        As for `build_from`.

    Returns
    -------
    ShardedIndex

    Raises
    ------
    ShardError
        A ValueError. If partitions failed, with the name of each; or if the
        folder cannot be used.

    Notes
    -----
    - If a worker is lost, another one rebuilds its shards from their
      partitions, or reads them again from the folder. This only costs time.
    - If a partition fails, the error is raised when all others are done.
    - With files and a folder, the same call continues after an interruption.
      In a finished folder it rebuilds only missing and damaged shards.
    - Between the calls, partitions without a finished shard may change, for
      instance a partition that failed. A model that is already trained is kept.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> index = faiss_ext.build_shards(
    ...     ["a.fvecs", "b.fvecs"],
    ...     "AHK512(chi2),BFlat,Refine(KFlat(chi2))",
    ...     Client("tcp://head:8786"), "/shared/index")
    >>> D, I = index.search(xq, 10)
    """
    train, seed, parameters = checked(string, exact, train, seed, parameters)
    if string.startswith(("IDMap,", "IDMap2,")):
        raise ValueError(f"{string}: shards have ids that follow each other; "
                         "expected a string without IDMap")
    memory = number_of_bytes(memory)
    engine = engine_of(client)
    sources = sources_of(partitions, part)
    for source in sources:
        source.packed = packed
    sizes = sizes_of(sources, engine)
    are_sparse = all(size.get("is_sparse") for size in sizes)
    model = made_from(
        string, sizes[0]["d"], sizes[0]["dtype"], metric, parameters,
        f"partition {sources[0].name}", packed, are_sparse)
    check_sparse(sizes, sources, string, model)
    check_exact(exact, string, model, sources)
    build = ShardBuild(engine, sources, sizes, exact, memory, progress)
    if folder is None:
        build.train(model, train, seed)
        shards = build.kept(model)
        index = ShardedIndex(model, string, build.shards(), shards, seed)
        index.parameters = parameters
        return index
    place = ShardFolder(folder)
    identities = [size["identity"] for size in sizes]
    state = {
        "version": __version__, "string": string, "exact": exact or "file",
        "metric": int(metric), "train": train, "seed": seed,
        "parameters": parameters, "packed": packed, "partitions": identities}
    with place.building(state) as has_manifest:
        if has_manifest:
            with contextlib.suppress(ShardError):  # if it is damaged
                return open_shards(place.path, client)
        if place.has(MODEL):
            model = place.read_model(isinstance(model, faiss.IndexBinary))
        else:
            build.train(model, train, seed)
            place.write(model, MODEL)
        entries = build.written(model, place, identities)
        index = ShardedIndex(model, string, build.shards(), None, seed)
        index.parameters = parameters
        place.finish(index, entries, state)
    return open_shards(place.path, client)


def open_shards(folder, client=None, io_flags=0):
    """Opens the index in a folder that `build_shards` or `save` has written.

    Parameters
    ----------
    folder : str or path
        The folder. It may have been moved. If an exact kernel reads files of
        vectors, these must be at their old paths or in this folder.
    client : dask.distributed.Client, optional
        A cluster whose workers read the shards. All of them must be able to
        read the folder. By default the shards are read in this process.
    io_flags : int, optional
        As for read_index. With faiss.IO_FLAG_MMAP the codes are mapped, also
        by another worker that a shard is moved to.

    Returns
    -------
    ShardedIndex

    Raises
    ------
    ShardError
        A ValueError. If a file is missing, damaged or not the expected one.
    """
    io_flags, engine = integer(io_flags, "io_flags"), engine_of(client)
    place = ShardFolder(folder)
    manifest = place.manifest()
    entries = manifest["shards"]
    what = {key: manifest[key] for key in ("binary", "d", "metric")}
    model = place.read_model(manifest["binary"])
    index = ShardedIndex(
        model, manifest["string"],
        [{key: entry[key] for key in ("partition", "first", "ntotal", "ids")
          if key in entry} for entry in entries], None)
    index.place = engine.keep(
        opened_shard,
        [(place.path, entry, what, io_flags) for entry in entries],
        [entry["partition"] for entry in entries])
    for name, value in manifest["parameters"].items():
        try:
            index.set_parameter(name, value)
        except (TypeError, ValueError) as error:
            raise ShardError(
                f"{place.file(MANIFEST)}: parameters: {error}") from None
    return index


class ShardBuild:
    """Builds the shards of an index."""

    def __init__(self, engine, sources, sizes, exact, memory, progress):
        self.engine, self.sources, self.sizes = engine, sources, sizes
        self.exact, self.memory, self.progress = exact, memory, progress
        self.names = [source.name for source in sources]
        self.ends = np.cumsum([size["n"] for size in sizes]).tolist()
        self.firsts = [0, *self.ends[:-1]]

    def shards(self):
        """The `shards` attribute of the ShardedIndex."""
        return [{"partition": name, "first": first, "ntotal": size["n"]}
                for name, first, size in zip(
                    self.names, self.firsts, self.sizes)]

    def train(self, model, size, seed):
        """Trains the model with a sample of all partitions, if it is not
        trained."""
        if model.is_trained:
            return
        numbers = drawn(self.ends[-1], size, seed)
        bits = takes_packed_bits(model)
        unpacks = bool(self.sources[0].packed) and not bits
        sample = self.sample(numbers, bits or unpacks)
        if unpacks:
            sample = unpacked(model, sample, True, "training")
        try:
            train_with(
                model, sample, numbers, self.progress, self.place_of)
        except RuntimeError as error:
            raise with_prefix(
                error, f"training, with a sample of {len(numbers):,} vectors of "
                "all partitions: ", ShardError) from None

    def place_of(self, number):
        """The number of a vector in its partition, and the partition's name."""
        at = bisect.bisect(self.firsts, number) - 1
        return f"{number - self.firsts[at]} of {self.names[at]}"

    def sample(self, numbers, bits):
        """The vectors that would be drawn from a single file of all
        partitions."""
        calls = [
            (source, numbers[(numbers >= begin) & (numbers < end)] - begin,
             bits)
            for source, begin, end in zip(
                self.sources, self.firsts, self.ends)]
        used = [i for i, call in enumerate(calls) if len(call[1])]
        return joined(self.engine.all(
            rows_of, [calls[i] for i in used], [self.names[i] for i in used]))

    def counting(self):
        return counting("shards", len(self.names), self.progress, "shard")

    def kept(self, model):
        """Builds shards that stay where they are built."""
        data = self.engine.shared(as_bytes(model))
        with self.counting() as count:
            return self.engine.keep(built_shard, [
                (data, source, first, self.exact, self.memory)
                for source, first in zip(self.sources, self.firsts)],
                self.names, count)

    def written(self, model, place, identities):
        """The manifest entries of shards that are in a folder.

        Missing and damaged shards are built and written first.
        """
        entries = list(map(place.done, range(len(self.names)), identities))
        there = [number for number, e in enumerate(entries) if e is not None]
        for number, is_whole in zip(there, self.engine.all(
                has_digest, [(place.file(entries[i]["file"]), entries[i])
                             for i in there],
                [self.names[i] for i in there])):
            if not is_whole:
                entries[number] = None
        missing = [number for number, e in enumerate(entries) if e is None]
        data = self.engine.shared(as_bytes(model))
        with self.counting() as count:
            count(len(entries) - len(missing))
            for number, entry in zip(missing, self.engine.all(
                    write_built_shard, [
                        (data, self.sources[number], self.exact, self.memory,
                         place.path, number) for number in missing],
                    [self.names[number] for number in missing], count)):
                entries[number] = entry
        return entries


# ----------------------------------------------------- functions for one shard

def measured(source):
    """Size, type and identity of a partition."""
    source = source.opened()
    return {"n": source.n, "d": source.d, "dtype": source.dtype,
            "is_sparse": is_sparse(source.vectors),
            "identity": source.identity}


def rows_of(source, numbers, bits):
    return source.opened().rows(numbers, bits)


def built_shard(model, source, first, exact, memory):
    return Shard(filled(model, source.opened(), exact, memory), first,
                 source.name)


def write_built_shard(model, source, exact, memory, folder, number):
    source = source.opened()
    return write_shard(filled(model, source, exact, memory), folder, number,
                       source.name, source.identity)


def filled(model, source, exact, memory):
    """Builds an index like the model from the vectors of a partition."""
    build = Build(source, index_from(model), memory, exact)
    build.fill()
    return build.whole()


def opened_shard(folder, entry, what, io_flags):
    opened = folder, entry, what, io_flags
    return Shard(
        read_shard(*opened), entry["first"], entry["partition"], opened)


def as_bytes(index):
    """Serialises a model, to send it to the builders of shards."""
    is_binary = isinstance(index, faiss.IndexBinary)
    return is_binary, (faiss.serialize_index_binary if is_binary
                       else faiss.serialize_index)(index).tobytes()


def index_from(model):
    is_binary, data = model
    reader = faiss.VectorIOReader()
    faiss.copy_array_to_vector(np.frombuffer(data, "uint8"), reader.data)
    return read_index(reader, is_binary)


# ------------------------------------------------------------- partitions

def sources_of(partitions, part):
    if hasattr(partitions, "to_delayed"):  # a Dask array
        from .cluster import chunks_of
        return chunks_of(partitions)
    if isinstance(partitions, (str, os.PathLike, np.ndarray)) or is_sparse(
            partitions):
        raise TypeError("partitions: expected a list of files or arrays, or a "
                        f"Dask array, got one {type(partitions).__name__}")
    try:
        partitions = list(partitions)
    except TypeError:
        raise TypeError("partitions: expected a list of files or arrays, or a "
                        f"Dask array, got {shown(partitions)}") from None
    if not partitions:
        raise ValueError("partitions: there are none")
    # arrays cannot be recognised in another call
    unknown = os.urandom(8).hex()
    return [FileSource(p, part) if isinstance(p, (str, os.PathLike))
            else ArraySource(p, f"array {i}", f"{unknown} {i}")
            for i, p in enumerate(partitions)]


def sizes_of(sources, engine):
    """The sizes of all partitions; raises ShardError if they do not match."""
    unknown = [source for source in sources if source.size is None]
    found = iter(engine.all(measured, [(source,) for source in unknown],
                            [source.name for source in unknown]))
    sizes = [source.size or next(found) for source in sources]
    most = max(size["d"] for size in sizes)
    for size, source in zip(sizes, sources):
        if source.path is not None and source.path.endswith(SVMLIGHT):
            source.columns = size["d"] = size["identity"]["d"] = most
        for what in ("d", "dtype"):
            if size[what] != sizes[0][what]:
                raise ShardError(
                    f"partition {source.name} has {what} {size[what]}, and "
                    f"{sources[0].name} {sizes[0][what]}; expected the same")
    if sum(size["n"] for size in sizes) == 0:
        raise ShardError("there are no vectors in the partitions")
    return sizes


def check_sparse(sizes, sources, string, model):
    """Raises ShardError if a partition is sparse and the index takes no sparse
    vectors."""
    for size, source in zip(sizes, sources):
        if size.get("is_sparse") and not takes_sparse(model):
            raise ShardError(
                f"partition {source.name}: {why_not_sparse(string)}")


def engine_of(client):
    if client is None:
        return LocalEngine()
    if not hasattr(client, "compute"):
        raise TypeError("client: expected a dask.distributed.Client, got "
                        f"{client!r}")
    from .cluster import ClusterEngine
    return ClusterEngine(client)
