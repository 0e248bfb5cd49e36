# SPDX-License-Identifier: MIT
"""Folders of builds that can be killed at any time, and then continued."""

import contextlib
import fcntl
import hashlib
import json
import os
import re

from .files import digest, read_json, write_index, write_json
from .timing import timed

STATE, LOCK = "build.json", "build.lock"


def checksum(facts):
    """The checksum of a dictionary for JSON, without its own entry."""
    rest = {key: facts[key] for key in facts if key != "sha256"}
    return hashlib.sha256(
        json.dumps(rest, sort_keys=True).encode()).hexdigest()


def same_file(file, path):
    """Whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


class BuildFolder:
    """A folder in which one process at a time builds.

    Its state, in STATE, identifies the build. The same call with the same
    state continues it. Each file is either complete or absent. A part of the
    build is an index with a record: its size, its checksum, and the source
    that it was made from.

    Parameters
    ----------
    path : str
        The folder.
    error : type
        The exceptions to raise, a class of ValueError.
    parts : str
        Regular expression for the names of the files, other than state and
        lock, that are deleted when the build is done.
    """

    def __init__(self, path, error, parts):
        self.path, self.error, self.parts = path, error, parts

    def file(self, name):
        return os.path.join(self.path, name)

    def has(self, name):
        return os.path.exists(self.file(name))

    # ------------------------------------------------------------ the state

    @contextlib.contextmanager
    def locked(self, state):
        """Makes the folder if it is missing, and locks it.

        Yields the result of check(state).
        """
        try:
            if not os.path.isdir(self.path):
                os.mkdir(self.path)
            if not self.has(LOCK):
                self.check(state)  # so as to leave no lock in other folders
            lock = open(self.file(LOCK), "a")
        except OSError as error:
            raise self.error(f"{self.path}: cannot be used: "
                             f"{error.strerror or error}") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self.error(
                    f"{self.path}: another process builds there") from None
            except OSError:
                pass  # some file systems have no locks
            if not same_file(lock, self.file(LOCK)):
                raise self.error(f"{self.path}: another process has just "
                                 "finished a build there; try again")
            yield self.check(state)

    def check(self, state):
        """The state of the unfinished build in the folder, or None.

        Raises an error if the folder has other files. With state None it must
        be new.
        """
        before = None if state is None else self.state(state)
        # ignores files of a process that was killed before it began
        if before is None and any(
                name != LOCK and not name.startswith(".faiss_ext_")
                for name in os.listdir(self.path)):
            raise self.error(
                f"{self.path} is not empty and holds no unfinished build; "
                "expected a new folder, or remove it")
        return before

    def state(self, expected):
        """The state in the folder, or None.

        Its values must have the same types as in `expected`.
        """
        path = self.file(STATE)
        try:
            state = read_json(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise self.error(f"{path} is damaged ({error}); delete the folder, "
                             "or give another one") from None
        is_state = isinstance(state, dict) and all(
            type(state.get(key)) is type(value)
            for key, value in expected.items())
        # (another version, which is refused, may have no checksum)
        if not is_state or state.get("version") == expected.get("version") and (
                state.get("sha256") != checksum(state)):
            raise self.error(
                f"{path} is damaged: expected the state of such a build; "
                "delete the folder, or give another one")
        state.pop("sha256", None)
        return state

    def set_state(self, state):
        write_json(self.file(STATE), {**state, "sha256": checksum(state)})

    def refuse(self, differences):
        raise self.error(
            f"{self.path} is an unfinished build that differs in: "
            f"{', '.join(differences)}; delete the folder, or give another one")

    def files(self):
        """The files that only the build needs, in the order in which they may
        be deleted."""
        # .faiss_ext_... files are left by a process that was killed while
        # writing
        ours = re.compile(rf"{re.escape(STATE)}|{re.escape(LOCK)}"
                          rf"|{self.parts}|\.faiss_ext_.*")
        last = STATE, LOCK
        return sorted(filter(ours.fullmatch, os.listdir(self.path)),
                      key=lambda name: (name in last, name == LOCK))

    def clean_up(self, keep=()):
        """Deletes the files that only the build needs."""
        for name in self.files():
            if name not in keep:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.file(name))

    # ------------------------------------------------------------ the indexes

    def write(self, index, name):
        """Writes an index; returns the time in seconds."""
        return timed(lambda: write_index(index, self.file(name)), None)[0]

    def write_part(self, index, name, source, **record):
        """Writes a part of the build and then its record, which is returned."""
        with contextlib.suppress(FileNotFoundError):  # of a deleted part
            os.unlink(self.file(record_name(name)))
        self.write(index, name)
        record.update(digest(self.file(name)))
        self.set_record(name, source, record)
        return record

    def set_record(self, name, source, record):
        write_json(self.file(record_name(name)), {**record, "source": source})

    def record(self, name, source):
        """The record of a part that was made from `source`, or None.

        The part has the right size; its checksum is not verified.
        """
        try:
            record = read_json(self.file(record_name(name)))
            size = os.path.getsize(self.file(name))
            is_it = size == record["bytes"] and record.pop("source") == source
            return record if is_it else None
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None


def differing(before, state):
    """The keys whose values differ from those of the state before."""
    return [key for key in state or ()
            if before and before.get(key) != state[key]]


def record_name(name):
    return f"{name}.json"
