# SPDX-License-Identifier: MIT
"""Folders of shards: the files of an index, and a manifest."""

import contextlib
import json
import os

import faiss

from ._version import __version__
from .arguments import shown
from .build_folder import STATE, BuildFolder, checksum, differing
from .errors import with_prefix
from .files import digest, read_index, read_json, write_json
from .index_tree import parts_of, real, transforms_of
from .strings import index_string

FORMAT, VERSION = "faiss_ext shards", 1
MANIFEST, MODEL = "manifest.json", "model.index"
# the keys of a shard's entry in the manifest
ENTRY = {"file", "partition", "ntotal", "bytes", "sha256"}
# the types of values in a manifest that have no other check
KINDS = {"string": str, "trained_string": str, "binary": bool, "d": int,
         "metric": int, "seeds": dict, "parameters": dict}


class ShardError(ValueError):
    """A shard, its partition, or a folder of shards is invalid.

    The message says which one, and why.
    """


def shard_name(number):
    return f"shard-{number:05}.index"


def write_shard(index, folder, number, name, source=None, num_ids=None):
    """Writes a shard and its record, its entry in the manifest, which is
    returned."""
    file = shard_name(number)
    more = {} if num_ids in (None, index.ntotal) else {"ids": num_ids}
    return ShardFolder(folder).write_part(
        index, file, source, file=file, partition=name, ntotal=index.ntotal,
        **more)


def read_shard(folder, entry, model, io_flags=0):
    """Reads the index of a shard; raises ShardError if it does not match the
    manifest.

    model : d, metric and whether it is binary, from the manifest
    """
    path = os.path.join(folder, entry["file"])
    check_file(path, entry)
    try:
        index = real(read_index(path, model["binary"], io_flags))
    except RuntimeError as error:
        raise with_prefix(
            error, f"{path} (partition {entry['partition']}): ",
            ShardError) from None
    for what, expected in (("d", model["d"]), ("ntotal", entry["ntotal"]),
                           ("metric_type", model["metric"])):
        if getattr(index, what) != expected:
            raise ShardError(f"{path}: {what} is {getattr(index, what)}, the "
                             f"manifest says {expected}")
    return index


def check_file(path, entry):
    try:
        size = os.path.getsize(path)
        found = digest(path) if size == entry["bytes"] else {"bytes": size}
    except OSError as error:
        raise ShardError(f"{path}: cannot be read: "
                         f"{error.strerror or error}") from None
    for what, value in found.items():
        if value != entry[what]:
            raise ShardError(
                f"{path}: {what} is {value}, the manifest says {entry[what]}: "
                "it is damaged, or of another index")


def seeds_of(index):
    """The seeds of an index and its parts."""
    if index is None:
        return {}
    things = [index, *transforms_of(index)]
    things += [getattr(thing, "projection", None) for thing in things]
    seeds = {type(thing).__name__: int(thing.seed) for thing in things
             if isinstance(getattr(thing, "seed", None), int)}
    for part in parts_of(index):
        seeds.update(seeds_of(part.index))
    return seeds


class ShardFolder(BuildFolder):
    """A folder of shards that is complete or being built."""

    def __init__(self, path):
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"expected the path of a folder, got {shown(path)}")
        super().__init__(
            os.path.abspath(path), ShardError, r"shard-\d+\.index\.json")

    # ------------------------------------------------------------ building

    @contextlib.contextmanager
    def building(self, state):
        """Makes the folder, or continues an earlier build in it.

        The earlier build must have the same state; only partitions without a
        finished shard may differ. With state None the folder must be new.
        Yields whether the folder has a manifest: from a finished build, or
        from one that was killed after it wrote the manifest.
        """
        with self.locked(state) as before:
            if before is not None:
                if not self.has(STATE):
                    self.begin_again(state["partitions"])
                finished = self.finished(before["partitions"])
                if finished and not self.has(MODEL):
                    raise ShardError(
                        f"{self.file(MODEL)} is missing, by which the shards "
                        "that are there were built; delete the folder")
                if self.has(MODEL) and not finished and before != state:
                    os.unlink(self.file(MODEL))  # may come from other vectors
            if state is not None:
                self.set_state(state)
            yield self.has(MANIFEST)
            self.clean_up()

    def begin_again(self, partitions):
        """Turns a finished index back into the state before its build ended."""
        manifest = self.manifest()
        for number, (entry, source) in enumerate(
                zip(manifest["shards"], partitions)):
            self.set_record(shard_name(number), source, {
                key: entry[key] for key in ENTRY})

    def check(self, state):
        """The state of the finished or unfinished build in the folder, or None.

        Raises ShardError if it cannot be continued.
        """
        if not self.has(MANIFEST):
            before = super().check(state)
            others = differing(before, state)
            if others == ["partitions"]:
                self.check_partitions(before["partitions"], state["partitions"])
            elif others:
                self.refuse(others)
            return before
        before = None if state is None else self.state(state)
        if before is None:  # throws if the manifest, or the model, is damaged
            before = self.manifest().get("build")
        if before is None or before != state:
            others = differing(before, state)
            raise ShardError(
                f"{self.path} holds a finished index, which open_shards opens"
                + (f", of a build that differs in: {', '.join(others)}"
                   if others else "")
                + "; for another one give another folder")
        return before

    def check_partitions(self, before, now):
        """Raises ShardError if a partition with a finished shard has changed."""
        other = [entry for number, entry in self.finished(before)
                 if now[number : number + 1] != before[number : number + 1]]
        if other:
            raise ShardError(
                f"{self.path} is an unfinished build that differs in: "
                f"partitions, of which {', '.join(e['file'] for e in other)} "
                "have been built; delete these files, and the same call builds "
                "them again, or delete the folder, or give another one")

    def finished(self, partitions):
        """Numbers and entries of the finished shards of these partitions."""
        entries = map(self.done, range(len(partitions)), partitions)
        return [(number, entry) for number, entry in enumerate(entries)
                if entry is not None]

    def done(self, number, source):
        """The entry of a finished shard of this source, or None."""
        entry = self.record(shard_name(number), source)
        return entry if entry is not None and set(entry) == ENTRY else None

    def read_model(self, binary):
        try:
            return real(read_index(self.file(MODEL), binary))
        except RuntimeError as error:
            raise with_prefix(
                error, f"{self.file(MODEL)}: ", ShardError) from None

    def finish(self, index, entries, state=None):
        """Writes the manifest. `state` identifies the build."""
        if not self.has(MODEL):
            self.write(index.model, MODEL)
        first = 0
        for number, entry in enumerate(entries):
            if not self.has(entry["file"]):
                raise ShardError(
                    f"{self.file(entry['file'])}, which a worker has written, "
                    "is not to be seen here; expected a folder that all "
                    "machines share")
            entry["first"] = first
            first += entry.get("ids", entry["ntotal"])
        try:
            string = index_string(index.model)
        except ValueError:
            string = index.string
        manifest = {
            "format": FORMAT, "version": VERSION, "faiss_ext": __version__,
            "faiss": faiss.__version__, "string": index.string,
            "trained_string": string, "binary": index.is_binary,
            "d": index.d, "metric": int(index.metric_type),
            "ntotal": sum(entry["ntotal"] for entry in entries), "seeds": {
                **seeds_of(index.model),
                **({} if index.seed is None
                   else {"training sample": index.seed})},
            "parameters": index.parameters,
            **({} if state is None else {"build": state}),
            "model": {"file": MODEL, **digest(self.file(MODEL))},
            "shards": entries}
        write_json(self.file(MANIFEST), {
            **manifest, "sha256": checksum(manifest)})

    # ------------------------------------------------------------- reading

    def manifest(self):
        """The manifest; raises ShardError if it is damaged or inconsistent."""
        path = self.file(MANIFEST)
        try:
            manifest = read_json(path)
        except FileNotFoundError:
            raise ShardError(
                f"{self.path} has no {MANIFEST}: it is "
                + ("an unfinished build" if self.has(STATE)
                   else "not a folder of shards")) from None
        except OSError as error:
            raise ShardError(f"{path}: cannot be read: {error}") from None
        except ValueError as error:
            raise ShardError(f"{path} is damaged ({error}); delete the folder "
                             "and build it again") from None
        try:
            if manifest["format"] != FORMAT:
                raise ShardError(f"{path}: not of a folder of shards")
            if manifest["version"] != VERSION:
                raise ShardError(
                    f"{path} has format version {manifest['version']}, this "
                    f"version of faiss_ext reads version {VERSION}")
            if manifest["sha256"] != checksum(manifest):
                raise ShardError(f"{path} is damaged: it does not have the "
                                 "checksum that stands in it; delete the "
                                 "folder and build it again")
            first = ntotal = 0
            for entry in [*manifest["shards"], manifest["model"]]:
                name = entry["file"]
                if name != os.path.basename(name) or name in ("", ".", ".."):
                    raise ShardError(f"{path}: {name!r} is not a file of this "
                                     "folder")
                entry["bytes"], entry["sha256"]
            for entry in manifest["shards"]:
                if entry["first"] != first:
                    raise ShardError(
                        f"{path}: {entry['file']} begins with id "
                        f"{entry['first']}, expected {first}")
                ntotal += entry["ntotal"]
                first += entry.get("ids", entry["ntotal"])
                entry["partition"]
            if ntotal != manifest["ntotal"]:
                raise ShardError(f"{path}: ntotal is {manifest['ntotal']}, the "
                                 f"shards have {ntotal} vectors")
            if not manifest["shards"]:
                raise ShardError(f"{path}: there are no shards")
            for key, kind in KINDS.items():
                if type(manifest[key]) is not kind:
                    raise ShardError(f"{path} is damaged: {key} is "
                                     f"{manifest[key]!r}, expected a "
                                     f"{kind.__name__}")
            for name, value in manifest["seeds"].items():
                if type(value) is not int:
                    raise ShardError(f"{path} is damaged: the seed of {name} "
                                     f"is {value!r}, expected an int")
        except KeyError as error:
            raise ShardError(f"{path} is damaged: it has no {error}; delete the "
                             "folder and build it again") from None
        except (TypeError, AttributeError, RecursionError) as error:
            raise ShardError(f"{path} is damaged: expected what build_shards "
                             f"has written ({error}); delete the folder and "
                             "build it again") from None
        check_file(self.file(MODEL), manifest["model"])
        return manifest
