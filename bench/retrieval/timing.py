# SPDX-License-Identifier: MIT
"""Times of a search, a batch at once and one query at a time, over a grid of its parameters."""

import importlib.util
from pathlib import Path

MOST_SINGLE = 200  # queries that are asked one at a time, unless each is asked once
LONG_S = 0.5  # of a search, that is always allowed
GOOD_ENOUGH = 0.995  # no setting that finds more is tried
WORTH_TIMING = 0.7  # nor is one timed that finds less
SMALL_GAIN = 0.001
TOO_SLOW = 2  # times the exact scan
CLEARLY_SLOWER = 1.3  # than a setting that finds as much: not timed again
MOST_CANDIDATES = 2000


def module_of_the_library():
    """faiss_ext.timing, without faiss_ext: peers have Pythons of their own."""
    path = Path(__file__).resolve().parents[2] / "python_bindings" / "faiss_ext" / "timing.py"
    spec = importlib.util.spec_from_file_location("faiss_ext_timing", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


least, timed = (getattr(module_of_the_library(), name) for name in ("least", "timed"))


def seconds_of(call, threads, once):
    """Seconds for a call, in the fastest of several turns; or in a single one."""
    return timed(call, threads)[0] if once else least(call, threads)


def single_rows(n, once):
    """The rows that are asked for one at a time."""
    return range(n if once else min(n, MOST_SINGLE))


def per_query(search, queries, threads, once):
    """Seconds for a query: in one batch, and one at a time."""
    batch = seconds_of(lambda: search(queries), threads, once)
    rows = [queries[i : i + 1] for i in single_rows(len(queries), once)]
    return batch / len(queries), seconds_of(lambda: [search(row) for row in rows], threads, once) / len(rows)


def sweep(searcher, contender, queries, truth, k, slowest, visit, threads):
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
            found = k if contender["ranks_itself"] else round(k * factor)
            candidates = k * (factor or 1)
            if candidates > MOST_CANDIDATES or contender["effort_is_candidates"] and effort < candidates:
                break
            searcher.configure(effort, factor)
            seconds, labels = timed(lambda found=found: searcher.search(queries, found), threads)
            recall = truth.recall(labels, k)
            if recall < last + SMALL_GAIN or seconds > max(LONG_S, TOO_SLOW * slowest * len(queries)):
                break
            last = recall
            is_beaten = any(r >= recall and seconds > CLEARLY_SLOWER * s * len(queries) for r, s in timed_points)
            if recall >= WORTH_TIMING and not is_beaten:
                batch, single = per_query(lambda x: searcher.search(x, found), queries, threads, once=False)
                point = {"k": k, "effort": effort, "factor": factor, "batch_s": batch, "single_s": single}
                timed_points.append((recall, batch))
                visit(labels, point)
            if recall > GOOD_ENOUGH:
                enough += 1
                break


def revisit(searcher, contender, queries, k, settings, visit, threads):
    """Times settings once each: every query in a batch, and then every query alone."""
    for effort, factor in settings:
        found = k if contender["ranks_itself"] else round(k * factor)
        searcher.configure(effort, factor)
        labels = []

        def search(x, found=found, labels=labels):
            labels.append(searcher.search(x, found))

        batch, single = per_query(search, queries, threads, once=True)
        visit(labels[0], {"k": k, "effort": effort, "factor": factor, "batch_s": batch, "single_s": single})
