# SPDX-License-Identifier: MIT
"""Times of a search, a batch at once and one query at a time, over a grid of its parameters."""

import time

REPETITIONS = 3
MOST_SINGLE = 200  # queries that are asked one at a time
LONG_S = 0.5  # what takes longer than this is not repeated
GOOD_ENOUGH = 0.995  # no setting that finds more is tried
WORTH_TIMING = 0.7  # nor is one timed that finds less
SMALL_GAIN = 0.001
TOO_SLOW = 2  # times the exact scan
CLEARLY_SLOWER = 1.3  # than a setting that finds as much: not timed again
MOST_CANDIDATES = 2000


def least(function, *times):
    """The least time of a few calls, in seconds; `times` are those of calls already made."""
    times = list(times)
    while len(times) < REPETITIONS and sum(times) < LONG_S:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def timed(function, *args):
    """Seconds that a call took, and its result."""
    start = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - start, result


def per_query(search, queries, *times):
    """Seconds for a query: in one batch, of which `times` are known already, and one at a time."""
    batch = least(lambda: search(queries), *times)
    rows = [queries[i : i + 1] for i in range(min(len(queries), MOST_SINGLE))]
    return batch / len(queries), least(lambda: [search(row) for row in rows]) / len(rows)


def sweep(searcher, contender, queries, truth, k, slowest, visit):
    """Times a contender's search for k over its grid of (effort, candidates for each result).

    `visit(labels, point)` is called for each setting that is timed. Along both axes the grid is left where recall is
    above GOOD_ENOUGH or candidates add nothing more; one effort more than needed is tried, since it may do with fewer
    candidates. Settings far slower than `slowest` seconds for a query, the exact scan's time, are left out, and so are
    those that are slower than others and find less.
    """
    timed_points = []
    enough = 0
    for effort in contender["efforts"]:
        if enough == 2:
            return
        last = 0.0
        for factor in contender["factors"]:
            found = k if contender["ranks_itself"] else k * factor
            if k * (factor or 1) > MOST_CANDIDATES or contender["effort_is_candidates"] and effort < found:
                break
            searcher.configure(effort, factor)
            seconds, labels = timed(searcher.search, queries, found)
            recall = truth.recall(labels, k)
            if recall < last + SMALL_GAIN or seconds > max(LONG_S, TOO_SLOW * slowest * len(queries)):
                break
            last = recall
            is_beaten = any(r >= recall and seconds > CLEARLY_SLOWER * s * len(queries) for r, s in timed_points)
            if recall >= WORTH_TIMING and not is_beaten:
                batch, single = per_query(lambda x: searcher.search(x, found), queries, seconds)
                point = {"k": k, "effort": effort, "factor": factor, "batch_s": batch, "single_s": single}
                timed_points.append((recall, batch))
                visit(labels, point)
            if recall > GOOD_ENOUGH:
                enough += 1
                break
