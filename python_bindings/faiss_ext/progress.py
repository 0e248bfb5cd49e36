# SPDX-License-Identifier: MIT
"""Progress of long operations."""

import contextlib
import functools
import sys
import threading

from . import swigfaiss_ext as swig
from .timing import Stopwatch


class Stderr:
    """Standard error for bars of tqdm, until a write fails.

    tqdm must not notice that: it would keep its lock, for which its own thread
    waits when the process ends.
    """

    def __init__(self):
        self.stream = sys.stderr

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def is_terminal(self):
        try:
            return self.stream.isatty()
        except Exception:
            return False

    def write(self, text):
        self.attempt(lambda: self.stream.write(text))

    def flush(self):
        self.attempt(lambda: self.stream.flush())

    def attempt(self, write):
        if self.stream is not None:
            try:
                write()
            except Exception:
                self.stream = None


def bar_of_tqdm(tqdm, **style):
    # Only a terminal can erase a bar: in a file or a pipe, it stays before the
    # text that follows, so it must end with a newline there.
    stderr = Stderr()
    return tqdm(leave=not stderr.is_terminal(), file=stderr,
                dynamic_ncols=True, **style)


class Bars:
    """Shows one tqdm bar per task, one after the other."""

    def __init__(self, tqdm, **style):
        self.tqdm = tqdm
        self.style = style
        self.bar = None

    def __call__(self, task, done, total):
        # a disabled bar of tqdm keeps no description and no count
        if (self.bar is None or self.shown != (task, total)
                or done < self.done):
            self.close()
            self.bar = bar_of_tqdm(
                self.tqdm, total=total, desc=task, **self.style)
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
    """Prints a line every few seconds."""

    interval = 3

    def __init__(self):
        self.stopwatch = Stopwatch()

    def __call__(self, task, done, total):
        if self.stopwatch.seconds >= self.interval:
            self.stopwatch = Stopwatch()
            share = (f"{done:,}" if total is None
                     else f"{100 * done // max(total, 1)} %")
            print(f"{task}: {share}", file=sys.stderr)

    def close(self):
        pass


class LineForEach(Lines):
    """Prints a line for each finished step."""

    def __call__(self, task, done, total):
        if done:
            print(f"{task}: {done} of {total}", file=sys.stderr)


class Harmless:
    """Passes progress to a display on stderr, until the display fails.

    A closed stderr, for example, does not interrupt the work.
    """

    def __init__(self, shown):
        self.shown = shown

    def __call__(self, *step):
        self.attempt(lambda: self.shown(*step))

    def close(self):
        self.attempt(lambda: self.shown.close())

    def attempt(self, show):
        # print(file=None) would print to stdout
        if self.shown is not None and sys.stderr is not None:
            try:
                show()
            except Exception:
                self.shown = None


def display(lines, **style):
    """A tqdm display if tqdm is installed, otherwise lines."""
    try:
        from tqdm import tqdm
    except ImportError:
        return Harmless(lines())
    return Harmless(Bars(tqdm, **style))


def bar(items, description, show=True):
    """Iterates over items, and shows on stderr how many are done.

    Uses tqdm if it is installed; otherwise prints a line for each item.
    """
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
    """Yields a function f(n) that counts n more steps, and shows the rate on
    stderr. The total may be None.

    Uses tqdm if it is installed; otherwise prints a line every few seconds.
    """
    if not show:
        yield lambda n: None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        stopwatch, done, lines = Stopwatch(), 0, Harmless(Lines())

        def update(n):
            nonlocal done
            done += n
            rate = done / max(stopwatch.seconds, 1e-9)
            lines(f"{description}: {rate:,.0f} {unit}s/s", done, total)
        yield update
    else:
        with bar_of_tqdm(tqdm, desc=description, total=total,
                         unit=f" {unit}s", unit_scale=True) as shown:
            yield shown.update


class Blocks(threading.local):
    """The functions of this thread's blocks of show_progress."""

    def __init__(self):
        self.functions = []


blocks = Blocks()


class Steps:
    """Reports the steps of a loop in Python to the newest show_progress of this
    thread, as C++ does for its own loops."""

    interval = 0.1

    def __init__(self, task, total):
        self.task, self.total = task, total
        self.stopwatch, self.is_shown = Stopwatch(), False

    def __call__(self, done):
        is_due = self.stopwatch.seconds >= self.interval
        if blocks.functions and (is_due or self.is_shown and done == self.total):
            self.stopwatch, self.is_shown = Stopwatch(), True
            blocks.functions[-1](self.task, done, self.total)


@contextlib.contextmanager
def show_progress(function=None):
    """Shows the progress of long calls of faiss_ext.

    These are training, adding, encoding, mapping, building graphs and lists,
    clusters and diverse picks. Searches show the encoding or mapping of their
    queries.

    >>> with faiss_ext.show_progress():
    ...     index.train(x)
    ...     index.add(x)

    Parameters
    ----------
    function : callable, optional
        Called as function(task, done, total), at most ten times a second: the
        name of the task, the number of finished steps, and their total. If it
        raises an exception, the call is aborted and leaves the index
        unchanged. By default tqdm bars are shown. If tqdm is not installed, a
        line is printed on stderr every three seconds.

    Notes
    -----
    FAISS's own work, such as its k-means, is not shown, nor are calls from
    other threads. If a thread has several of these blocks, only the one
    entered last shows progress. A block may be left in any order and on any
    thread.
    """
    shown = None
    if function is None:
        function = shown = display(Lines, unit="", unit_scale=True)
    elif not callable(function):
        raise TypeError(f"show_progress: {function!r} is not callable")
    scope = swig._ProgressScope(function)
    functions = blocks.functions  # the block may end on another thread
    block = functools.partial(function)  # equal to no other block
    functions.append(block)
    try:
        yield
    finally:
        functions.remove(block)
        scope.end()
        if shown is not None:
            shown.close()
