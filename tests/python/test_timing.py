# SPDX-License-Identifier: MIT
"""Times of calls: other programs do not change their order. The clocks are fake, but for one test beside busy processes."""

import subprocess
import sys
from types import SimpleNamespace

import faiss
import faiss_ext
import numpy as np
import pytest
from faiss_ext import advice, timing

from helpers import COUNTS


class Clocks:
    """Calls take as long as they say; `stalls` are seconds that the calls wait for a processor, one after the other."""

    def __init__(self, stalls=()):
        self.wall = self.processor = 0.0
        self.stalls = iter(stalls)

    def call(self, seconds):
        def run():
            self.processor += seconds
            self.wall += seconds + next(self.stalls, 0)

        return run


@pytest.fixture
def clocks(monkeypatch):
    def set_up(stalls=(), load=0.0):
        now = Clocks(stalls)
        fake = SimpleNamespace(perf_counter=lambda: now.wall, process_time=lambda: now.processor)
        monkeypatch.setattr(timing, "time", fake)
        monkeypatch.setattr(timing.os, "getloadavg", lambda: (load * timing.os.cpu_count(), 0, 0))
        return now

    return set_up


def timers_of(now, seconds, threads):
    return [timing.Timer(now.call(each), threads) for each in seconds]


@pytest.mark.parametrize("threads", [1, 4])
def test_quiet_calls_need_few_turns(clocks, threads):
    timers = timers_of(clocks(), [0.01, 0.02], threads)
    timing.take_turns(timers)
    assert [timer.least for timer in timers] == pytest.approx([0.01, 0.02])
    assert [len(timer.turns) for timer in timers] == [timing.FEWEST] * 2
    assert not any(timer.is_disturbed for timer in timers)


def test_one_stalled_call_does_not_decide(clocks):
    now = clocks([5.0])  # the faster one stalls first
    timers = timers_of(now, [0.01, 0.02], 4)
    timing.take_turns(timers)
    assert [timer.least for timer in timers] == pytest.approx([0.01, 0.02])


def test_of_one_thread_only_processor_time_counts(clocks):
    timers = timers_of(clocks([0.3] * 100), [0.02, 0.01], 1)
    timing.take_turns(timers)
    assert [timer.least for timer in timers] == pytest.approx([0.02, 0.01])
    assert not any(timer.is_disturbed for timer in timers)
    assert timing.timed(clocks([9.0]).call(0.5), 1) == (0.5, None)
    assert timing.timed(clocks([9.0]).call(0.5), 2) == (9.5, None)


def test_turns_go_on_until_the_fastest_two_are_apart(clocks):
    # every other call of both waits, by as much as tells them apart; later none does
    timers = timers_of(clocks([0.02, 0, 0, 0.02, 0.02, 0, 0.02, 0.02]), [0.01, 0.012], 4)
    timing.take_turns(timers)
    assert timing.FEWEST < len(timers[0].turns) < timing.MOST
    assert timing.are_apart(timers) and timers[0].least < timers[1].least


def test_equal_calls_end_the_turns_too(clocks):
    timers = timers_of(clocks(), [0.01, 0.01], 4)
    timing.take_turns(timers)
    assert [len(timer.turns) for timer in timers] == [timing.MOST] * 2
    assert not timing.are_apart(timers)


def test_long_and_short_calls(clocks):
    timers = timers_of(clocks(), [10.0, 20.0], 4)
    timing.take_turns(timers)
    assert [len(timer.turns) for timer in timers] == [2, 2]
    now = clocks()
    timers = timers_of(now, [1e-5], 4)
    timing.take_turns(timers, shortest=0.1)
    assert timers[0].least == pytest.approx(1e-5) and now.wall >= 0.1


@pytest.mark.parametrize("stalls, load, threads, disturbed", [
    ([], 0.5, 4, False), ([], 3.0, 4, True), ([], 3.0, 1, False),
    ([1.0] * 100, 0.5, 4, True),  # no turn had a processor to itself
    ([0, 1.0, 1.0, 0.5] * 100, 0.5, 4, True)])  # most turns waited
def test_a_busy_machine_is_noticed(clocks, stalls, load, threads, disturbed):
    timer, = timers_of(clocks(stalls, load), [0.01], threads)
    timing.take_turns([timer])
    assert timer.is_disturbed == disturbed


def test_an_unknown_load_is_none(monkeypatch):
    def unknown():
        raise OSError

    monkeypatch.setattr(timing.os, "getloadavg", unknown)
    assert not timing.is_loaded()


def contender(now, seconds, threads=4):
    """A Contender of advice.py that is built already, and whose search takes so long."""
    made = advice.Contender.__new__(advice.Contender)
    made.batch = advice.Searches(timers_of(now, [seconds], threads), 100, True, 1)
    made.tried = advice.Tried("", {}, 1.0, 0, 0, 1, 1, True)
    return made


def test_contenders_take_turns_with_the_fastest_one(clocks):
    now = clocks([0, 3.0])  # the second one stalls at first
    first, second = contender(now, 0.02), contender(now, 0.01)
    first.take_turns(None)
    second.take_turns(first)
    assert first.tried.queries_per_second == pytest.approx(100 / 0.02)
    assert second.tried.queries_per_second == pytest.approx(100 / 0.01)


def test_a_recommendation_says_that_it_cannot_tell(clocks):
    now = clocks([0, 0.03, 0.03, 0.02] * 100)
    one, other = contender(now, 0.010), contender(now, 0.011)
    disturbed = one.take_turns(None) | other.take_turns(one)
    one.tried.string, other.tried.string = "KFlat(chi2)", "KFlat(js)"
    tried = sorted((one.tried, other.tried), key=lambda t: -t.queries_per_second)
    found = advice.Recommendation(
        **vars(tried[0]), tried=tried, disturbed=disturbed, impossible={}, limits={"recall": 0.9}, n=9, extrapolated=False,
        sample_size=9, k=3, d=64, threads=1, make=None)
    assert disturbed and found.as_fast == [tried[1].string]
    text = str(found)
    assert f"{found.usual_queries_per_second:,.0f} to {found.queries_per_second:,.0f} queries/s" in text
    assert f"Too close to tell which is faster: {found.string}; {tried[1].string}" in text


def test_a_recommendation_names_the_fastest_index_for_one_query_at_a_time():
    lists, graph = tried = [advice.Tried(string, parameters, 1.0, speed, speed, 1, 1, True, single) for string, parameters, speed, single in (
        ("KIVF4", {"nprobe": 2}, 9.0, 3.0), ("HNSW8,KFlat(linear)", {"efSearch": 16}, 8.0, 4.0))]
    found = advice.Recommendation(
        **vars(lists), tried=tried, disturbed=False, impossible={}, limits={"recall": 0.9}, n=9, extrapolated=False,
        sample_size=9, k=3, d=64, threads=1, make=None)
    assert found.string == lists.string and found.fastest_single is graph
    assert f"The fastest for one query at a time is {graph.string} with efSearch=16: 4 queries/s instead of 3." in str(found)


def test_calls_are_prepared_before_the_clock_starts(clocks):
    now, order = clocks(), []
    timer = timing.Timer(lambda: (order.append("call"), now.call(0.01)()), 4, lambda: (order.append("prepare"), now.call(5)()))
    timing.take_turns([timer])
    assert timer.least == pytest.approx(0.01)
    assert order == ["prepare", "call"] * timing.FEWEST


def test_earlier_turns_count(clocks):
    timers = timers_of(clocks(), [0.01, 0.02], 4)
    for timer in timers:
        timer.turn()
    timing.take_turns(timers, turns=1)
    assert [len(timer.turns) for timer in timers] == [timing.FEWEST] * 2


def test_the_slower_call_is_found_in_a_busy_moment(clocks):
    slow, fast = timers_of(clocks([0, 3.0] + [2.0] * 20), [0.02, 0.01], 4)
    for timer in (slow, fast):
        timer.turn()
    assert slow.least < fast.least  # which has waited
    assert timing.is_slower(slow, fast) and not timing.is_slower(fast, slow)
    assert len(slow.turns) == len(fast.turns) == 1


def explored(clocks, stalls, n_experiments):
    """What explore finds if a search takes nprobe / 100 seconds, and waits: the space, and the best points."""
    index = faiss.index_factory(64, "IVF64,Flat")
    index.train(COUNTS)
    index.add(COUNTS)
    crit = faiss.IntersectionCriterion(20, 5)
    exact = faiss.IndexFlatL2(64)
    exact.add(COUNTS)
    crit.set_groundtruth(None, exact.search(COUNTS[:20], 5)[1])
    now, search, running = clocks(), index.search, []

    def timed_search(x, k):
        running.append(len(running))
        now.call(index.nprobe / 100 + (stalls(len(running) - 1) if len(running) > 1 else 0))()
        return search(x, k)

    index.search = timed_search
    space = faiss_ext.ParameterSpace()
    space.initialize(index)
    space.n_experiments, space.verbose = n_experiments, 0
    before = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(4)
        found = space.explore(index, COUNTS[:20], crit)
    finally:
        faiss.omp_set_num_threads(before)
    best = [found.optimal_pts.at(i) for i in range(found.optimal_pts.size())]
    return space, [(point.key, point.perf, round(point.t, 6)) for point in best if point.key]


@pytest.mark.parametrize("length, n_experiments", [(1, 0), (5, 0), (12, 0), (1, 500), (5, 500)])
def test_a_busy_spell_does_not_change_which_settings_are_best(clocks, length, n_experiments):
    quiet, expected = explored(clocks, lambda search: 0, n_experiments)
    assert len(expected) == 3 and not quiet.is_disturbed
    for first in range(1, 30):
        _, found = explored(clocks, lambda search: 0.5 * (first <= search < first + length), n_experiments)
        assert found == expected, first


def test_where_it_cannot_be_told_there_is_a_range(clocks):
    waits = np.random.default_rng(1).random(1000)
    space, best = explored(clocks, lambda search: waits[search], 0)
    assert space.is_disturbed
    usual = [space.usual_times[key] for key, *_ in best]
    assert all(most > t for most, (_, _, t) in zip(usual, best))


def test_results_of_one_search_only_are_kept(clocks):
    kept = []

    class Kept(np.ndarray):
        def __del__(self):
            kept.remove(None)

    index = faiss.index_factory(64, "IVF64,Flat")
    index.train(COUNTS)
    index.add(COUNTS)
    search, most = index.search, []

    def counted(x, k):
        kept.append(None)
        most.append(len(kept))
        D, I = search(x, k)
        return D.view(Kept), I

    index.search = counted
    space = faiss_ext.ParameterSpace()
    space.initialize(index)
    space.verbose, space.n_experiments = 0, 0
    crit = faiss.IntersectionCriterion(20, 5)
    crit.set_groundtruth(None, search(COUNTS[:20], 5)[1])
    space.explore(index, COUNTS[:20], crit)
    assert len(most) > 15 and max(most) <= 3


def test_beside_busy_processes_the_order_stays():
    """Of one thread: of several, no clock tells anything for certain there."""
    before = faiss.omp_get_max_threads()
    x = np.random.default_rng(1).random((4000, 32), dtype="float32")
    indexes = []
    for n in (100, 4000):  # 40 times the work
        index = faiss.index_factory(32, "KFlat(chi2)")
        index.add(x[:n])
        indexes.append(index)
    busy = [subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
            for _ in range(6)]
    try:
        faiss.omp_set_num_threads(1)
        for process in busy:
            process.stdout.readline()  # it is at work
        timers = [timing.Timer(lambda index=index: index.search(x[:200], 3), 1) for index in indexes]
        for order in (timers, timers[::-1]):
            timing.take_turns(order)
            assert timers[0].least < timers[1].least
    finally:
        faiss.omp_set_num_threads(before)
        for process in busy:
            process.kill()
            process.wait()
            process.stdout.close()


def test_a_recommendation_takes_one_thread_on_a_busy_machine(monkeypatch):
    threads = faiss.omp_get_max_threads()
    x = np.random.default_rng(1).random((300, 8))
    for busy in (True, False):
        monkeypatch.setattr(advice, "is_loaded", lambda: busy)
        found = faiss_ext.recommend(x, "chi2")
        assert found.threads == (1 if busy else threads)
        assert faiss.omp_get_max_threads() == threads
