# SPDX-License-Identifier: MIT
"""Measures time, and compares the speed of calls on machines that also run
other programs.

Compared calls take turns, so that a busy moment affects all of them. The
fastest turn of each call counts, and turns go on until the order of the fastest
two is clear. With one thread, processor time is measured, which only passes
while the call runs.

This module needs only Python: the benchmarks load it without faiss_ext.
"""

import os
import time

TURN_S = 0.001  # a turn repeats a call for at least this long
FEWEST, MOST = 3, 12  # turns
LONG_S = 1.0  # for longer calls two turns suffice, even if the order is unclear
# on a quiet machine, half the turns take at most this times the fastest one
VARIES = 1.25
LOADED = 1.5  # load average per processor above which the machine is busy


class Stopwatch:
    """Wall-clock time since the stopwatch was made."""

    def __init__(self):
        self.start = time.perf_counter()

    @property
    def seconds(self):
        return time.perf_counter() - self.start


class Timer:
    """A call and its measured times.

    Attributes
    ----------
    call : callable
        A function without arguments.
    threads : int
        Number of threads that the call may use.
    prepare : callable
        Called before each turn; its time does not count.
    turns : list of float
        Seconds per call in each turn: processor time with one thread,
        otherwise wall-clock time.
    """

    def __init__(self, call, threads, prepare=lambda: None):
        self.call, self.threads, self.prepare = call, threads, prepare
        self.turns = []
        self.waited = False  # whether the fastest turn had to wait to run

    def turn(self):
        self.prepare()
        calls, seconds = 0, 0
        wall, processor = Stopwatch(), time.process_time()
        while calls == 0 or seconds < TURN_S:
            self.call()
            calls += 1
            ran = time.process_time() - processor
            passed = wall.seconds
            seconds = ran if self.threads == 1 else passed
        self.turns.append(seconds / calls)
        if self.turns[-1] == self.least:
            self.waited = ran < passed / VARIES

    @property
    def least(self):
        """Seconds per call in the fastest turn."""
        return min(self.turns)

    @property
    def middle(self):
        """Seconds per call in the median turn (the higher one of two)."""
        return sorted(self.turns)[len(self.turns) // 2]

    @property
    def is_steady(self):
        """Whether half the turns are close to the fastest one."""
        return self.middle <= VARIES * self.least

    @property
    def is_disturbed(self):
        """Whether other programs may have slowed down even the fastest turn."""
        return not self.is_steady or (
            self.threads > 1 and (self.waited or is_loaded()))


def is_loaded():
    """Whether clearly more programs want to run than there are processors."""
    try:
        return os.getloadavg()[0] > LOADED * os.cpu_count()
    except (OSError, TypeError):
        return False  # unknown


def are_apart(timers):
    """Whether half the turns of the fastest call are faster than all turns of
    the next.

    A single call must be steady.
    """
    order = sorted(timers, key=lambda timer: timer.least)
    if len(order) == 1:
        return order[0].is_steady
    return order[0].middle < order[1].least


def are_steady(timers):
    """Whether half the turns of each call are close to its fastest one."""
    return all(timer.is_steady for timer in timers)


def take_turns(timers, shortest=0.0, are_clear=are_apart, turns=0):
    """Times calls in turn until it is clear which is the fastest.

    Parameters
    ----------
    timers : list of Timer
        The calls. Earlier turns are kept.
    shortest : float
        Least time for the turns of each call, in seconds.
    are_clear : callable
        Whether the timers have had enough turns.
    turns : int
        Number of earlier turns of each call that count.
    """
    all_turns = Stopwatch()
    while True:
        for timer in timers:
            timer.turn()
        turns += 1
        passed = all_turns.seconds / len(timers)
        is_long = min(timer.least for timer in timers) > LONG_S
        if turns < (2 if is_long else FEWEST) or passed < shortest:
            continue
        if turns >= MOST or passed > LONG_S or are_clear(timers):
            return


def is_slower(timer, other):
    """Whether one call is slower than another one, from a few new turns of
    both. Earlier turns do not count: the machine may have been busy then.
    """
    both = [Timer(each.call, each.threads, each.prepare)
            for each in (timer, other)]
    take_turns(both, are_clear=lambda timers: True)
    return both[0].least > both[1].least


def least(call, threads, shortest=0.0):
    """Seconds per call, in the fastest turn."""
    timer = Timer(call, threads)
    take_turns([timer], shortest)
    return timer.least


def timed(call, threads):
    """Seconds and result of a call that cannot be repeated."""
    clock = time.process_time if threads == 1 else time.perf_counter
    start = clock()
    result = call()
    return clock() - start, result
