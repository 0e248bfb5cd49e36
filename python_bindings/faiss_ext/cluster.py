# SPDX-License-Identifier: MIT
"""Shards on the workers of a Dask cluster. This module needs Dask's
distributed."""

import contextlib
import asyncio

import dask
from dask.distributed import CancelledError, wait

from .shard_folder import ShardError
from .shards import called, failed
from .sources import ArraySource
from .sparse_arrays import is_sparse
from .timing import Stopwatch

SMALL = 2**16  # up to this many bytes are sent with each call, not once
POLL, PATIENCE = 5, 60  # seconds


def same(value):
    return value


def size_of(x):
    """Size in bytes of vectors."""
    arrays = (x.indptr, x.indices, x.data) if is_sparse(x) else (x,)
    return sum(array.nbytes for array in arrays)


def chunks_of(array):
    """The partitions of a Dask array: its chunks of rows."""
    if array.ndim != 2:
        raise ValueError("partitions: expected a Dask array of two dimensions, "
                         f"got one of shape {array.shape}")
    array = array.rechunk({1: -1})
    return [
        ChunkSource(chunk, f"chunk {i}", f"{array.name} {i}", n,
                       array.shape[1], str(array.dtype))
        for i, (chunk, n) in enumerate(
            zip(array.to_delayed()[:, 0], array.chunks[0]))]


class ChunkSource(ArraySource):
    """A chunk of a Dask array, which is computed where it is used."""

    def __init__(self, array, name, identity, n, d, dtype):
        super().__init__(array, name, identity)
        if n == n and d == d:  # Dask has NaN for unknown sizes
            self.size = {"n": n, "d": d, "dtype": dtype, "identity": identity}

    def task(self):
        return dask.delayed(ArraySource)(
            self.array, self.name, self.identity, self.packed)

    def opened(self):
        """Computes the chunk in this process."""
        return ArraySource(
            self.array.compute(), self.name, self.identity,
            self.packed).opened()


def check_running(client):
    if client.status in ("closing", "closed"):
        raise ShardError("the client of the cluster has been closed")


class StalledError(ShardError):
    """Dask computes nothing, although it has workers and was asked to. Some
    versions lose calls if all workers are lost."""


class Condition:
    """Tells for how long something has been true."""

    def __init__(self):
        self.since = None

    def lasts(self, holds):
        """Whether it holds, and has held for PATIENCE seconds."""
        if not holds:
            self.since = None
        elif self.since is None:
            self.since = Stopwatch()
        return self.since is not None and self.since.seconds >= PATIENCE


def as_finished(client, futures, return_when="FIRST_COMPLETED"):
    """Yields futures as they finish.

    Raises ShardError if the cluster has had no worker for a while, and
    StalledError if it has had some that did nothing. Dask itself would wait
    forever.
    """
    pending = list(futures)
    deserted, idle = Condition(), Condition()
    while pending:
        try:
            wait(pending, timeout=POLL, return_when=return_when)
        except (asyncio.TimeoutError, CancelledError):
            pass  # the futures have the status
        done = [future for future in pending if future.status != "pending"]
        pending = [future for future in pending if future not in done]
        yield from done
        if not pending:
            return
        has_workers = bool(client.scheduler_info()["workers"])
        if deserted.lasts(not done and not has_workers):
            raise ShardError(f"the cluster has had no worker for {PATIENCE} s")
        if idle.lasts(not done and has_workers
                      and not any(client.processing().values())):
            raise StalledError("Dask has done nothing for some calls for "
                               f"{PATIENCE} s; restart the cluster")


class ClusterEngine:
    """Does the work on the workers of a cluster."""

    def __init__(self, client):
        if getattr(client, "asynchronous", False):
            raise ValueError("client: expected a synchronous client, got an "
                             "asynchronous one")
        check_running(client)
        self.client = client

    def shared(self, value):
        return dask.delayed(value, traverse=False)

    def start(self, function, calls):
        """Starts calls, and returns their futures.

        Futures remember how they were computed: if a worker is lost, another
        one computes its results again.
        """
        # Dask recognises a call by its name; pure=False makes names unique
        task = dask.delayed(function, pure=False, traverse=False)
        return self.client.compute([
            task(*(a.task() if isinstance(a, ChunkSource) else a
                   for a in arguments)) for arguments in calls])

    def wait(self, futures, names, count):
        failures = []
        name_of = dict(zip([f.key for f in futures], names))
        for future in as_finished(self.client, futures):
            if future.status != "finished":
                failures.append((name_of[future.key], error_of(future)))
            count(1)
        if failures:
            raise failed(sorted(failures, key=lambda f: names.index(f[0])))

    def all(self, function, calls, names, count=lambda n: None):
        futures = self.start(function, calls)
        self.wait(futures, names, count)
        return self.client.gather(futures)

    def keep(self, function, calls, names, count=lambda n: None):
        futures = self.start(function, calls)
        self.wait(futures, names, count)
        return OnCluster(self.client, futures, names, lambda numbers: self.start(
            function, [calls[i] for i in numbers]))


def error_of(future):
    if future.status == "error":
        return future.exception()
    return RuntimeError(f"it was {future.status}")


class OnCluster:
    """Shards that are held by workers."""

    def __init__(self, client, shards, names, start):
        """start : makes the shards with these numbers again, and returns their
        futures
        """
        self.client, self.shards, self.names = client, shards, names
        self.start = start

    def run(self, method, x, own, parameters, removed, repeats=True):
        """Calls a method of each shard, with x and with the shard's own
        arguments.

        Shards whose arguments are None are skipped. If `repeats`, the calls are
        repeated once if Dask has lost a part of a shard, or calls.
        """
        client, given = self.client, x
        check_running(client)
        failed_before = [s for s in self.shards if s.status == "error"]
        if failed_before:
            with contextlib.suppress(KeyError):  # from their dependencies
                client.retry(failed_before)
        cancelled = [i for i, shard in enumerate(self.shards)
                     if shard.status == "cancelled"]  # as by client.restart()
        if cancelled:
            for i, shard in zip(cancelled, self.start(cancelled)):
                self.shards[i] = shard
        if x is not None and size_of(x) > SMALL:
            # a submitted call is repeated if its worker is lost; scattered
            # data would be lost
            x = client.submit(same, x, pure=False)
        futures = {
            i: client.submit(called, self.shards[i], method, x, mine,
                             parameters, removed[i], pure=False, priority=1)
            for i, mine in enumerate(own) if mine is not None}
        try:
            for _ in as_finished(client, futures.values(), "ALL_COMPLETED"):
                pass
        except StalledError:
            if not repeats:
                raise
            self.shards = self.start(range(len(self.shards)))
            return self.run(method, given, own, parameters, removed, False)
        try:
            results = client.gather(list(futures.values()))
        except Exception:
            failures = [(self.names[i], error_of(f)) for i, f in futures.items()
                        if f.status in ("error", "cancelled", "lost")]
            # Dask raises it for what a lost worker has held
            if repeats and any(isinstance(e, KeyError) for _, e in failures):
                return self.run(method, given, own, parameters, removed, False)
            are_shards_made = all(s.status != "error" for s in self.shards)
            # the same error from all calls has another cause, e.g. a query
            if not failures or are_shards_made and len(failures) == len(
                    futures) and len({repr(e) for _, e in failures}) == 1:
                raise
            raise failed(failures) from None
        found = dict(zip(futures, results))
        return [found.get(i) for i in range(len(own))]

    def close(self):
        self.shards = []

    def __reduce__(self):
        raise TypeError("the shards are on a cluster and cannot be pickled; "
                        "save() writes a folder, which open_shards opens")
