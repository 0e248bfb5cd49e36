# SPDX-License-Identifier: MIT
"""How far long work has come."""

import contextlib
import sys
import time

from . import swigfaiss_ext as swig


def bar(items, description, show=True):
    """Goes through items, and shows on stderr how many are done: by tqdm where
    it is installed, or else by a line for each."""
    if not show:
        yield from items
        return
    try:
        from tqdm import tqdm
    except ImportError:
        for i, item in enumerate(items, 1):
            print(f"{description}: {i} of {len(items)}", file=sys.stderr)
            yield item
    else:
        yield from tqdm(items, desc=description, leave=False)


class Bars:
    """A bar of tqdm for each task, one after the other."""

    def __init__(self, tqdm):
        self.tqdm = tqdm
        self.bar = None

    def __call__(self, task, done, total):
        if (self.bar is None or self.bar.desc != task
                or self.bar.total != total or done < self.bar.n):
            self.close()
            self.bar = self.tqdm(
                total=total, desc=task, leave=False, unit="",
                unit_scale=True)
        self.bar.update(done - self.bar.n)
        if done == total:
            self.close()

    def close(self):
        if self.bar is not None:
            self.bar.close()
            self.bar = None


class Lines:
    """A line every few seconds."""

    interval = 3

    def __init__(self):
        self.next = time.monotonic() + self.interval

    def __call__(self, task, done, total):
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + self.interval
            print(f"{task}: {100 * done // max(total, 1)} %", file=sys.stderr)

    def close(self):
        pass


@contextlib.contextmanager
def counting(description, total, show=True, unit="vector"):
    """Gives a function that is called with how many more are done, and shows
    on stderr how many in a second: by tqdm where it is installed, or else by a
    line every few seconds."""
    if not show:
        yield lambda n: None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        start, done, lines = time.monotonic(), 0, Lines()

        def update(n):
            nonlocal done
            done += n
            rate = done / max(time.monotonic() - start, 1e-9)
            lines(f"{description}: {rate:,.0f} {unit}s/s", done, total)
        yield update
    else:
        with tqdm(desc=description, total=total, unit=unit, leave=False,
                  unit_scale=True) as shown:
            yield shown.update


@contextlib.contextmanager
def show_progress(function=None):
    """Shows how far long calls of faiss_ext are: training, adding, encoding,
    mapping, the building of graphs and lists.

    >>> with faiss_ext.show_progress():
    ...     index.train(x)
    ...     index.add(x)

    Searches show the encoding or mapping of their queries. What FAISS does by
    itself, such as its own k-means, shows nothing. Calls of other threads show
    nothing.

    Parameters
    ----------
    function : callable, optional
        Is called as function(task, done, total), at most ten times a second,
        with the task's name and how many of its steps are done; what it raises
        ends the call that it tells of, which leaves the index as it was. By
        default bars of tqdm are shown where it is installed, or else a line on
        stderr every three seconds.
    """
    shown = None
    if function is None:
        try:
            from tqdm import tqdm
        except ImportError:
            function = shown = Lines()
        else:
            function = shown = Bars(tqdm)
    elif not callable(function):
        raise TypeError(f"show_progress: {function!r} is not callable")
    swig._begin_progress(function)
    try:
        yield
    finally:
        swig._end_progress()
        if shown is not None:
            shown.close()
