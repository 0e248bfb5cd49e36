# SPDX-License-Identifier: MIT
"""Search under kernels, beside peers: recall against speed of every contender over a grid of its parameters.

    PYTHONPATH=build/python /usr/bin/python3 bench/retrieval/run.py --out results --data FOLDER[,FOLDER...] \\
        [--set NAME|FILE ...] [--kernel chi2,intersection,js,gaussian] [--peers PYTHON] [--recall 0.95,0.99] \\
        [--threads 1,all] [--times 10] [--turns N] [--markdown docs/retrieval.md] [--quick]

FOLDER holds data sets as scripts/datasets.py reads them: MNIST's IDX files, .npy, .fvecs, .bvecs, HDF5 files of
ann-benchmarks; sets of images come a second time as histograms of their edges (NAME_edges), `digits` is scikit-learn's.
PYTHON is an interpreter with the newest faiss-cpu, hnswlib, usearch, pynndescent, nmslib, numba, rabitqlib, scann-core
and glass, or some of them.
Every index is built and searched in processes of its own. Written are points.csv, tables.md and figures; docs/retrieval.md
says how things are measured.
"""

import argparse
import re
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import contenders  # noqa: E402
import report  # noqa: E402
import faiss_ext  # noqa: E402
import sets  # noqa: E402
from experiment import DEPTH, Experiment, all_threads, packages  # noqa: E402

QUICK_LIMIT = 5000


def numbers(kind):
    def parse(text):
        return [kind(part) for part in text.split(",")]
    parse.__name__ = "list of numbers"  # argparse says: invalid list of numbers value
    return parse


def thread_count(text):
    return all_threads() if text == "all" else int(text)


def parse_args(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="retrieval_results", type=Path, help="folder for CSV, tables and figures")
    parser.add_argument("--data", default=[], type=lambda text: text.split(","), help="folders with data sets")
    parser.add_argument("--set", action="append", metavar="NAME|FILE", help="which; default: all that there are")
    parser.add_argument("--kernel", default=["chi2"], type=lambda text: re.split(r",(?![^(]*\))", text))
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter with the peers")
    parser.add_argument("--recall", default=[0.95, 0.99], type=numbers(float), help="targets")
    parser.add_argument("--k", default=[10, 100], type=numbers(int), help="neighbours to search for: 10, 100 or both")
    parser.add_argument("--threads", default=[1], type=numbers(thread_count), help="1, all, or other numbers")
    parser.add_argument("--queries", default=500, type=int)
    parser.add_argument("--turns", default=0, type=int, metavar="N",
                        help="time the settings that reach the targets again, N times, in turns, each query once")
    parser.add_argument("--turn-queries", default=10_000, type=int, metavar="N", help="different queries of a turn, at most")
    parser.add_argument("--busy", default=0, type=int, metavar="MB",
                        help="another process writes to so much memory during the turns")
    parser.add_argument("--limit", type=int, metavar="N", help="at most so many base vectors")
    parser.add_argument("--times", default=1, type=int, help="so many times the base vectors, by copies with jitter")
    parser.add_argument("--rounds", default=1, type=int, help="searches of all contenders, in turns; the fastest counts")
    parser.add_argument("--only", default="", metavar="REGEX", help="contenders whose names match; and the exact scan")
    parser.add_argument("--cache", type=Path, help="folder for exact neighbours (default: OUT/cache)")
    parser.add_argument("--limit-s", default=1200, type=float, help="seconds for a build or a search before it is given up")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables between the marks in this file too")
    parser.add_argument("--quick", action="store_true", help=f"digits, or {QUICK_LIMIT} vectors of each set")
    args = parser.parse_args(argv)
    if unknown := set(args.k) - {10, 100}:
        parser.error(f"--k takes 10 and 100, not {unknown.pop()}")
    if not all(0 < recall <= 1 for recall in args.recall):
        parser.error("--recall takes shares above 0, up to 1")
    try:
        args.only = re.compile(args.only)
    except re.error as error:
        parser.error(f"--only: {error}")
    for kernel in args.kernel:
        try:
            faiss_ext.kernel_factory(kernel)
        except RuntimeError as error:
            parser.error(f"--kernel: {error}")
    if args.markdown:
        try:
            report.around_marks(args.markdown)
        except ValueError as error:
            parser.error(f"--markdown: {error}")
    if args.peers and not shutil.which(args.peers):
        parser.error(f"--peers: there is no program {args.peers}")
    if min(args.times, args.queries, args.rounds, args.turn_queries, *args.threads) < 1 or (
            args.limit is not None and args.limit < 1):
        parser.error("--times, --queries, --rounds, --turn-queries, --limit and --threads take positive numbers")
    if min(args.turns, args.busy) < 0:
        parser.error("--turns and --busy take no negative numbers")
    return args


def candidates(args, experiment, missing):
    """The contenders of one experiment, and what is left out of it."""
    n, map_dims = len(experiment.data.base), experiment.map_dims
    found = contenders.ours(experiment.kernel, n, map_dims, experiment.store)
    if args.peers:
        found += contenders.peers(experiment.kernel, n, map_dims)
    chosen = [c for c in found if args.only.search(c["name"])]
    if not chosen and not args.only.search(contenders.exact_scan(experiment.kernel)["name"]):
        names = ", ".join(c["name"] for c in found)
        sys.exit(f"run.py: --only matches none of the contenders, which are {names}")
    found = chosen
    return [c for c in found if c["side"] == "ours" or not missing & needed(c)]


def needed(contender):
    """The modules of a peer."""
    return {contender["library"].split()[0]} | ({"numba"} if contender["compiled"] else set())


def measure(args, name, kernel, missing, rows, notes):
    """All contenders on one set under one kernel."""
    start = time.perf_counter()
    asked = max(args.queries, args.turn_queries) if args.turns else args.queries
    data = sets.load(name, args.data, asked, args.limit or (QUICK_LIMIT if args.quick else None))
    data = sets.for_kernel(sets.enlarged(data, args.times), kernel)
    if len(data.base) < DEPTH:
        sys.exit(f"run.py: {data.name} has {len(data.base)} vectors, fewer than {DEPTH}")
    with tempfile.TemporaryDirectory() as folder:
        experiment = Experiment(args, data, kernel, Path(folder), notes)
        say(f"{data.name}, {experiment.kernel}: {len(data.base):,} vectors, d = {data.d}; exact neighbours, map, "
            f"store={experiment.store}: {time.perf_counter() - start:.0f} s")
        chosen = [contenders.exact_scan(experiment.kernel), *candidates(args, experiment, missing)]
        chosen = [c for c in chosen if step(f"  {c['name']}: built", notes, experiment.build, c)]
        points = {}
        for turn in range(args.rounds):
            experiment.map_s.clear()
            for contender in chosen:
                label = f"  {contender['name']}: searched{f', {turn + 1}' if args.rounds > 1 else ''}"
                report.keep_fastest(points, step(label, notes, experiment.search, contender))
                report.write_csv(rows + list(points.values()), args.out / "points.csv")
        if args.turns:
            points = in_turns(args, experiment, chosen, list(points.values()), notes)
        rows += points.values()
        report.write_csv(rows, args.out / "points.csv")
    say(f"{data.name}, {kernel}: {time.perf_counter() - start:.0f} s")


def in_turns(args, experiment, chosen, rows, notes):
    """The settings that reach the targets, timed again as people search: all contenders in turns, each query once.

    The exact scan keeps its times: it would take long, and does not depend on the queries.
    """
    exact = contenders.exact_scan(experiment.kernel)["name"]
    kept = report.groups(report.finalists([row for row in rows if row["contender"] != exact], args.recall), "contender")
    points = {}
    report.keep_fastest(points, [row for row in rows if row["contender"] == exact])
    with experiment.busy_cache(args.busy):
        for turn in range(args.turns):
            experiment.map_s.clear()
            for contender in chosen:
                if own := kept.get((contender["name"],)):
                    label = f"  {contender['name']}: turn {turn + 1}"
                    report.keep_fastest(points, step(label, notes, experiment.revisit, contender, own))
    return points


def step(label, notes, function, *arguments):
    """A step of an experiment, with a line on how long it took and the new notes."""
    begin, known = (time.perf_counter(), cpu_seconds()), len(notes)
    result = function(*arguments)
    say(f"{label} in {time.perf_counter() - begin[0]:.0f} s, {cpu_seconds() - begin[1]:.0f} s of processors")
    for note in notes[known:]:
        say(f"  {note}")
    return result


def cpu_seconds():
    """Of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def say(text):
    print(text, file=sys.stderr, flush=True)


def main(argv=None):
    args = parse_args(argv)
    args.cache = args.cache or args.out / "cache"
    for folder in (args.out, args.cache):
        folder.mkdir(parents=True, exist_ok=True)
    notes, rows = [], []
    versions, missing = packages(args.peers, notes)
    for name in args.set or sets.names(args.data) or ["digits"]:
        for kernel in args.kernel:
            measure(args, name, kernel, missing, rows, notes)
    text = report.tables(rows, args, versions, notes)
    (args.out / "tables.md").write_text(text)
    report.write_figures(rows, args.out)
    if args.markdown:
        report.put_between_marks(args.markdown, report.short_tables(rows, args, versions, notes))
    print(text)


if __name__ == "__main__":
    try:
        main()
    except sets.datasets.DatasetError as error:
        sys.exit(f"run.py: {error}")
