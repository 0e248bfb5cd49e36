# SPDX-License-Identifier: MIT
"""How far long work has come."""

import contextlib
import sys
import time

from . import swigfaiss_ext as swig


class Bars:
    """A bar of tqdm for each task, one after the other."""

    def __init__(self, tqdm, **style):
        self.tqdm = tqdm
        self.style = style
        self.bar = None

    def __call__(self, task, done, total):
        # (a bar that tqdm does not show has no description and no count)
        if (self.bar is None or self.shown != (task, total)
                or done < self.done):
            self.close()
            self.bar = self.tqdm(
                total=total, desc=task, leave=False, **self.style)
            self.shown, self.done = (task, total), 0
        self.bar.update(done - self.done)
        self.done = done
        if done == total:
            self.close()

    def close(self):
        bar, self.bar = self.bar, None
        if bar is not None:
            bar.close()


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


class LineForEach(Lines):
    """A line for each step that is done."""

    def __call__(self, task, done, total):
        if done:
            print(f"{task}: {done} of {total}", file=sys.stderr)


class Harmless:
    """What shows something on stderr, until it fails: the work goes on where
    that is closed."""

    def __init__(self, shown):
        self.shown = shown

    def __call__(self, *step):
        self.attempt(lambda: self.shown(*step))

    def close(self):
        self.attempt(lambda: self.shown.close())

    def attempt(self, show):
        # (print takes a file that is None for stdout)
        if self.shown is not None and sys.stderr is not None:
            try:
                show()
            except Exception:
                self.shown = None


def display(lines, **style):
    """Bars of tqdm where it is installed, or else lines."""
    try:
        from tqdm import tqdm
    except ImportError:
        return Harmless(lines())
    return Harmless(Bars(tqdm, **style))


def bar(items, description, show=True):
    """Goes through items, and shows on stderr how many are done: by tqdm where
    it is installed, or else by a line for each."""
    if not show:
        yield from items
        return
    shown = display(LineForEach)
    try:
        shown(description, 0, len(items))
        for done, item in enumerate(items, 1):
            yield item
            shown(description, done, len(items))
    finally:
        shown.close()


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
    nothing. Of several such blocks of a thread the one that was entered last
    shows something. A block may be left in any order and on any thread.

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
        function = shown = display(Lines, unit="", unit_scale=True)
    elif not callable(function):
        raise TypeError(f"show_progress: {function!r} is not callable")
    scope = swig._ProgressScope(function)
    try:
        yield
    finally:
        scope.end()
        if shown is not None:
            shown.close()
