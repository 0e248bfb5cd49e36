# SPDX-License-Identifier: MIT
"""show_progress: what long calls tell in Python."""

import builtins
import contextlib
import functools
import gc
import io
import sys
import threading

import faiss
import faiss_ext
import numpy as np
import pytest
from faiss_ext import progress
from helpers import BASE

many = np.tile(BASE, (60, 1))  # 95,820 vectors
SLOW = "AHK2048(chi2,proj=dense),BFlat"


class FakeBar:
    """What tqdm shows."""

    def __init__(self, total, desc, **_):
        self.total, self.desc, self.n, self.closed = total, desc, 0, False

    def update(self, step):
        assert step >= 0
        self.n += step

    def close(self):
        self.closed = True


@pytest.fixture
def slow():
    index = faiss.index_factory(64, SLOW)
    assert index.is_trained
    return index


def test_a_function_is_told_task_steps_and_total(slow):
    told = []
    with faiss_ext.show_progress(lambda *step: told.append(step)):
        slow.add(many)
    assert {(task, total) for task, _, total in told} == {("encoding", len(many))}
    done = [step[1] for step in told]
    assert done == sorted(done) and done[-1] == len(many)
    told.clear()
    slow.add(many[:5000])
    assert told == []


def test_scopes_inside_each_other_and_of_other_threads(slow):
    outer, inner = [], []
    with faiss_ext.show_progress(lambda *step: outer.append(step)):
        with faiss_ext.show_progress(lambda *step: inner.append(step)):
            slow.add(many)
        assert inner and not outer
        thread = threading.Thread(target=slow.add, args=(many,))
        thread.start()
        thread.join()
        assert not outer
        slow.add(many)
    assert outer


def steps_of(told):
    """A generator that has told a list how far it is."""
    with faiss_ext.show_progress(lambda *step: told.append(step)):
        yield


def in_another_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


@pytest.mark.parametrize("end", [
    lambda held: next(held[0], None), lambda held: (held.clear(), gc.collect())], ids=["resumed", "collected"])
def test_blocks_that_end_on_another_thread(slow, end):
    outer, inner = [], []
    with faiss_ext.show_progress(lambda *step: outer.append(step)):
        held = [steps_of(inner)]
        next(held[0])
        in_another_thread(lambda: end(held))
        slow.add(many)
    assert outer and not inner


def test_blocks_that_are_not_inside_each_other(slow):
    first, second = [], []
    a, b = steps_of(first), steps_of(second)
    next(a), next(b)
    assert next(a, "ended") == "ended"
    slow.add(many)
    assert second and not first
    assert next(b, "ended") == "ended"
    told = len(second)
    slow.add(many)
    assert len(second) == told and not first


def test_a_function_may_end_its_block(slow):
    told = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(faiss_ext.show_progress(lambda *step: (told.append(step), stack.close())))
        slow.add(many)
    assert len(told) == 1 and slow.ntotal == len(many)


@pytest.mark.parametrize("wrap", ["", "IDMap,", "PCA32,"])
def test_what_the_function_raises_ends_the_call(wrap):
    """Also where FAISS's own wrappers make other errors of it."""
    index = faiss.index_factory(64, wrap + SLOW.replace("AHK2048(chi2", "SIK8192(gaussian,gamma=1"))
    index.train(BASE)

    def fail(task, done, total):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"), faiss_ext.show_progress(fail):
        if wrap == "IDMap,":
            index.add_with_ids(many, np.arange(len(many)))
        else:
            index.add(many)
    assert index.ntotal == 0
    with faiss_ext.show_progress(lambda *step: None):
        index.add(BASE) if wrap != "IDMap," else index.add_with_ids(BASE, np.arange(len(BASE)))
    assert index.ntotal == len(BASE)


def test_what_is_not_callable_is_refused():
    with pytest.raises(TypeError, match="show_progress: 3 is not callable"):
        with faiss_ext.show_progress(3):
            pass


def test_bars_of_tqdm():
    bars = []

    def tqdm(**kwargs):
        bars.append(FakeBar(**kwargs))
        return bars[-1]

    shown = progress.Bars(tqdm)
    for step in [("a", 1, 9), ("a", 4, 9), ("a", 9, 9), ("b", 2, 5), ("a", 3, 9), ("a", 1, 9)]:
        shown(*step)
    shown.close()
    assert [(b.desc, b.n, b.total) for b in bars] == [
        ("a", 9, 9), ("b", 2, 5), ("a", 3, 9), ("a", 1, 9)]
    assert all(b.closed for b in bars)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_bars_are_ended_before_an_error_is_shown(monkeypatch, is_terminal):
    pytest.importorskip("tqdm")

    def fail(self, rival):
        raise ValueError("a mistake")

    stream = io.StringIO()
    stream.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(faiss_ext.advice.Contender, "take_turns", fail)
    for work in (lambda: faiss_ext.recommend(many[:500], "linear"), functools.partial(fail_while_counting, 3)):
        try:
            work()
        except ValueError:  # its traceback keeps the frames alive
            print("a mistake", file=sys.stderr)
    for begin in stream.getvalue().split("a mistake\n")[:-1]:
        assert begin.startswith("\r")
        assert begin.endswith(" \r" if is_terminal else "\n")


def fail_while_counting(total):
    with progress.counting("vectors", total) as count:
        count(1)
        raise ValueError("a mistake")


def test_bars_that_tqdm_does_not_show(slow, monkeypatch):
    tqdm = pytest.importorskip("tqdm")
    monkeypatch.setattr(tqdm, "tqdm", functools.partial(tqdm.tqdm, disable=True))
    with faiss_ext.show_progress():
        slow.add(many)
    assert list(progress.bar(range(3), "items")) == [0, 1, 2]
    assert slow.ntotal == len(many)


class BrokenPipe(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


def is_free(lock):
    """Whether another thread can take tqdm's lock; if not, tqdm's own thread keeps the process from ending."""
    taken = []

    def take():
        for each in lock.locks:
            taken.append(each.acquire(timeout=2))
            if taken[-1]:
                each.release()

    in_another_thread(take)
    return all(taken)


@pytest.mark.parametrize("stderr", [BrokenPipe(), None])
@pytest.mark.parametrize("has_tqdm", [True, False])
def test_nowhere_to_show_it(slow, request, monkeypatch, capsys, stderr, has_tqdm):
    if not has_tqdm:
        request.getfixturevalue("without_tqdm")
    monkeypatch.setattr(progress.Lines, "interval", 0)
    monkeypatch.setattr(sys, "stderr", stderr)
    with faiss_ext.show_progress():
        slow.add(many)
    assert list(progress.bar(range(3), "items")) == [0, 1, 2]
    with progress.counting("vectors", 3) as count:
        count(3)
    monkeypatch.undo()
    if has_tqdm:
        assert is_free(pytest.importorskip("tqdm").tqdm.get_lock())
    assert slow.ntotal == len(many)
    assert capsys.readouterr().out == ""


@pytest.fixture
def without_tqdm(monkeypatch):
    real_import = builtins.__import__

    def import_others(name, *args, **kwargs):
        if name == "tqdm":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", import_others)
    monkeypatch.delitem(sys.modules, "tqdm", raising=False)


def test_lines_without_tqdm(slow, without_tqdm, monkeypatch, capsys):
    monkeypatch.setattr(progress.Lines, "interval", 0)
    with faiss_ext.show_progress():
        slow.add(many)
    lines = capsys.readouterr().err.splitlines()
    assert lines and all(line.startswith("encoding: ") for line in lines)
    assert lines[-1] == "encoding: 100 %"


def test_items_without_tqdm_are_shown_when_they_are_done(without_tqdm, capsys):
    said = []
    for _ in progress.bar("ab", "items"):
        said.append(capsys.readouterr().err)
    said.append(capsys.readouterr().err)
    assert said == ["", "items: 1 of 2\n", "items: 2 of 2\n"]
