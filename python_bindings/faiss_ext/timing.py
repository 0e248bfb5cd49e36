# SPDX-License-Identifier: MIT
"""Times of calls that are compared, on machines where other programs run too.

Calls take turns, so that a busy moment is everybody's; each counts by its
fastest turn; and turns go on until the order of the fastest two is clear. If
one thread runs, processor time counts, which passes only while it runs.

It needs nothing but Python: the benchmarks load it without faiss_ext.
"""

import os
import statistics
import time

TURN_S = 0.001  # a turn repeats a call for at least so long
FEWEST, MOST = 3, 12  # turns
LONG_S = 1.0  # for a call; then the order may stay unclear, and two turns do
VARIES = 1.25  # times the fastest turn: what half the turns of a quiet machine keep
LOADED = 1.5  # programs that are ready to run, for each processor


class Timer:
    """A call and the seconds of its turns.

    Attributes
    ----------
    call : callable
        Takes no arguments.
    threads : int
        How many threads the call may use.
    turns : list of float
        Seconds of a call in each turn: of processors if one thread runs, of
        the clock otherwise.
    """

    def __init__(self, call, threads):
        self.call, self.threads = call, threads
        self.turns = []
        self.waited = False  # longer than it ran, in the fastest turn

    def turn(self):
        calls, wall, processor = 0, time.perf_counter(), time.process_time()
        seconds = 0
        while calls == 0 or seconds < TURN_S:
            self.call()
            calls += 1
            ran = time.process_time() - processor
            passed = time.perf_counter() - wall
            seconds = ran if self.threads == 1 else passed
        self.turns.append(seconds / calls)
        if self.turns[-1] == self.least:
            self.waited = ran < passed / VARIES

    @property
    def least(self):
        """Seconds of the fastest turn."""
        return min(self.turns)

    @property
    def middle(self):
        """Seconds that half the turns keep."""
        return statistics.median_high(self.turns)

    @property
    def is_disturbed(self):
        """Whether other programs may have made even the fastest turn slower."""
        return self.middle > VARIES * self.least or (
            self.threads > 1 and (self.waited or is_loaded()))


def is_loaded():
    """Whether more programs want to run than there are processors."""
    try:
        return os.getloadavg()[0] > LOADED * os.cpu_count()
    except (OSError, TypeError):
        return False  # it is not known


def are_apart(timers):
    """Whether half the turns of the fastest are faster than all of the next."""
    order = sorted(timers, key=lambda timer: timer.least)
    if len(order) == 1:
        return order[0].middle <= VARIES * order[0].least
    return order[0].middle < order[1].least


def take_turns(timers, shortest=0.0, are_clear=are_apart):
    """Times calls in turn until it is clear which is the fastest.

    Parameters
    ----------
    timers : list of Timer
        Those that have had turns before keep them.
    shortest : float
        Seconds that turns go on, at least, for each call.
    are_clear : callable
        Whether the timers have had enough turns.
    """
    begin = time.perf_counter()
    turns = 0
    while True:
        for timer in timers:
            timer.turn()
        turns += 1
        passed = (time.perf_counter() - begin) / len(timers)
        is_long = min(timer.least for timer in timers) > LONG_S
        if turns < (2 if is_long else FEWEST) or passed < shortest:
            continue
        if turns >= MOST or passed > LONG_S or are_clear(timers):
            return


def least(call, threads, shortest=0.0):
    """Seconds of a call, by its fastest turn."""
    timer = Timer(call, threads)
    take_turns([timer], shortest)
    return timer.least


def timed(call, threads):
    """Seconds of one call that cannot be repeated, and its result."""
    clock = time.process_time if threads == 1 else time.perf_counter
    start = clock()
    result = call()
    return clock() - start, result
