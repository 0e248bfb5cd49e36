# SPDX-License-Identifier: MIT
"""show_progress: what long calls tell in Python."""

import builtins
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


@pytest.mark.parametrize("wrap", ["", "IDMap,", "PCA32,"])
def test_what_the_function_raises_ends_the_call(wrap):
    """Also where FAISS's own wrappers make other errors of it."""
    index = faiss.index_factory(64, wrap + SLOW.replace("AHK2048(chi2", "SIK2048(gaussian,gamma=1"))
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


def test_lines_without_tqdm(slow, monkeypatch, capsys):
    real_import = builtins.__import__

    def without_tqdm(name, *args, **kwargs):
        if name == "tqdm":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_tqdm)
    monkeypatch.delitem(sys.modules, "tqdm", raising=False)
    monkeypatch.setattr(progress.Lines, "interval", 0)
    with faiss_ext.show_progress():
        slow.add(many)
    lines = capsys.readouterr().err.splitlines()
    assert lines and all(line.startswith("encoding: ") for line in lines)
    assert lines[-1] == "encoding: 100 %"
