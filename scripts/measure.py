# SPDX-License-Identifier: MIT
"""Measures kernel search on real vectors: recall of exact kernel neighbours, speed and size of indexes.

An exhaustive scan (KFlat) gives the exact neighbours under the kernel. demo_indexes.py lists the indexes to measure. The
results are a table, printed and written as CSV (demo_tables.py), a figure of recall against speed, and for images a contact
sheet of queries and their results (demo_figures.py).
"""

import re
import sys
from typing import NamedTuple

import datasets
import demo_figures
import demo_indexes
import demo_tables
import faiss
import faiss_ext
import numpy as np
from demo_options import HISTOGRAM_KERNELS
from demo_tables import RANKS, recall
from faiss_ext import timing
from faiss_ext.advice import narrowest_store
from tqdm import tqdm

K = max(RANKS)
FEWEST = 100  # base vectors: with fewer, neither lists nor their codes are of use
# Feature-space distances lie between 0 and 2; two of them no further apart than float32 rounding are a tie.
TIE = 1e-6
MIN_TIMING_S = 0.15  # for which a search is repeated at least
LONG_S = 1.0  # of a search: slower settings are not tried
ENOUGH = 0.9995  # recall above which no effort is raised
GAIN = 0.001  # of recall, for which candidates are raised


class Row(NamedTuple):
    """One index of demo_indexes.py as it was measured with one setting of its search parameters."""

    entry: demo_indexes.Entry
    setting: str
    bytes_per_vector: int  # of its file
    build_s: float
    queries_per_s: float
    recalls: tuple  # one for each of RANKS
    labels: np.ndarray  # what was found: queries x K, -1 for nothing
    usual_queries_per_s: float = 0.0  # what half the searches reach
    disturbed: bool = False  # by other programs: it may be faster

    @property
    def method(self):
        return f"{self.entry.name} {self.setting}".rstrip()


# ---------------------------------------------------------------- measuring


class Truth:
    """Exact neighbours of each query, with every tie at the last rank, and the recall of other answers."""

    k = K

    def __init__(self, exact, queries):
        self.queries = queries
        depth = min(2 * K, exact.ntotal)
        while True:
            distances, labels = exact.search(queries, depth)
            if depth == exact.ntotal or (distances[:, -1] > distances[:, K - 1] + TIE).all():
                break
            depth = min(2 * depth, exact.ntotal)
        self.ntotal = exact.ntotal
        keys = self._keys(labels)
        self.neighbours = {r: keys[distances <= distances[:, r - 1 : r] + TIE] for r in RANKS}

    def hits(self, labels, r=K):
        """Which of the first r search results (-1 for none) are among the exact r nearest.

        They are if they are no further from the query than the exact r-th neighbour: where several are equally far, any
        of them will do.
        """
        keys = self._keys(labels)
        # A query that an index leaves without an answer must not hit another query's key.
        keys[labels < 0] = -1
        return np.isin(keys[:, :r], self.neighbours[r])

    def recall(self, labels, r=K):
        """Recall@r of search results, averaged over the queries."""
        return float(self.hits(labels, r).mean())

    def _keys(self, labels):
        """One number for each pair of query and base vector."""
        return labels + self.ntotal * np.arange(len(labels), dtype=np.int64)[:, None]


def timer_of(index, queries, parameters=()):
    """A Timer of a search for the K nearest, with search parameters [(name, value)]."""

    def set_parameters():
        for name, value in parameters:
            faiss_ext.set_index_parameter(index, name, value)

    return timing.Timer(lambda: index.search(queries, K), faiss.omp_get_max_threads(), set_parameters)


def file_size(index):
    """Bytes of an index's file, which is not written."""
    size = 0

    def count(block):
        nonlocal size
        size += len(block)

    faiss.write_index(index, faiss.PyCallbackIOWriter(count))
    return size


def build(index, base):
    """Trains and fills an index: seconds for both, and the bytes that a vector takes."""
    threads = faiss.omp_get_max_threads()
    train_s, _ = timing.timed(lambda: index.train(base), threads)
    empty = file_size(index)
    add_s, _ = timing.timed(lambda: index.add(base), threads)
    return train_s + add_s, round((file_size(index) - empty) / len(base))


class Progress:
    """A bar where standard error is a terminal, a line for each step where it is not."""

    def __init__(self, total):
        self.total, self.done = total, 0
        self.bar = tqdm(total=total, unit="index", leave=False) if sys.stderr.isatty() else None

    def start(self, what):
        if self.bar is not None:
            self.bar.set_description_str(what)
        else:
            print(f"[{self.done + 1}/{self.total}] {what}", file=sys.stderr, flush=True)

    def finish(self):
        self.done += 1
        if self.bar is not None:
            self.bar.update()

    def close(self):
        if self.bar is not None:
            self.bar.close()


class Demo:
    """Measures one index after another on one dataset, each against the same exact kernel neighbours."""

    def __init__(self, data, kernel, lengths, seed):
        self.data, self.rows = data, []
        self.timers = {}  # of the rows that the conclusion names, by method
        entry = demo_indexes.exact(kernel)
        self.exact = entry.make(data.d)
        costs = build(self.exact, data.base)
        self.gamma = None if kernel in HISTOGRAM_KERNELS else self.exact.kernel.gamma
        self.truth = Truth(self.exact, data.queries)
        self._add([self._tried(entry, self.exact, {}, costs)])
        store = narrowest_store(self.exact.kernel, self.truth, data.base, 0)
        self.plan = demo_indexes.Plan(kernel, self.gamma, len(data.base), data.d, store, lengths, seed)

    def run(self):
        entries = self.plan.entries()
        progress = Progress(len(entries))
        try:
            for entry in entries:
                progress.start(entry.name)
                index = entry.make(self.data.d)
                self._sweep(entry, index, build(index, self.data.base))
                progress.finish()
        finally:
            progress.close()
        self._compare()
        return self.rows

    def _compare(self):
        """Times the exact scan and the indexes that the conclusion sets beside it once more, in turn."""
        timing.take_turns(list(self.timers.values()), MIN_TIMING_S)
        self.rows = [self._rated(row, self.timers[row.method]) if row.method in self.timers else row for row in self.rows]

    def _rated(self, row, timer):
        """A row with the speed that a timer found."""
        n = len(self.data.queries)
        return row._replace(
            queries_per_s=n / timer.least, usual_queries_per_s=n / timer.middle, disturbed=timer.is_disturbed)

    def _sweep(self, entry, index, costs):
        """Measures an index with its search parameters raised as far as they are worth it.

        Candidates are not raised where that adds nothing, nor effort where a second setting has found everything; nor
        either where a search is long, and slower than the exact scan. All settings are timed in turn.
        """
        complete, trials = 0, []
        for effort in entry.efforts:
            last = -1.0
            for k_factor in entry.k_factors:
                both = {entry.effort: effort, "k_factor": k_factor}
                given = {name: value for name, value in both.items() if value is not None}
                row, timer = self._tried(entry, index, given, costs)
                trials.append((row, timer))
                is_slow = self._is_slow(timer)
                if recall(row) < last + GAIN:
                    break
                last = recall(row)
                if last >= ENOUGH or is_slow:
                    break
            complete += last >= ENOUGH
            if complete == 2 or is_slow:
                break
        self._add(trials)

    def _is_slow(self, timer):
        """Whether a search is long, and slower than the exact scan."""
        exact = self.timers[self.rows[0].method]
        if timer.least > LONG_S:
            timer.turn()  # the first one may have had to wait
        return timer.least > max(exact.least, LONG_S) and timing.is_slower(timer, exact)

    def _tried(self, entry, index, parameters, costs):
        """A row without its speed, and a timer that has had one turn."""
        timer = timer_of(index, self.data.queries, list(parameters.items()))
        timer.prepare()
        _, labels = timer.call()
        timer.turn()
        recalls = tuple(self.truth.recall(labels, r) for r in RANKS)
        build_s, bytes_per_vector = costs
        setting = " ".join(f"{name}={value}" for name, value in parameters.items())
        return Row(entry, setting, bytes_per_vector, build_s, 0.0, recalls, labels), timer

    def _add(self, trials):
        """Times pairs of rows and timers in turn, and adds the rows."""
        timing.take_turns([timer for _, timer in trials], MIN_TIMING_S, timing.are_steady, turns=1)
        for row, timer in trials:
            self.rows.append(self._rated(row, timer))
            self.timers[row.method] = timer
        if len(self.rows) > 1:  # others' indexes need not be kept
            named = {row.method for row in demo_tables.compared(self.rows)}
            self.timers = {method: timer for method, timer in self.timers.items() if method in named}


def read(arguments):
    """The vectors that the command line asks for."""
    if arguments.data:
        queries = arguments.queries * (arguments.group if arguments.vlad else 1)
        data = datasets.load(arguments.data, arguments.dataset, queries, arguments.limit, arguments.seed)
    else:
        data = datasets.load_digits(arguments.queries, arguments.limit, arguments.seed)
    if arguments.vlad:
        centres = datasets.vlad_centres(data.base, arguments.vlad, arguments.seed)
        data = datasets.Dataset(
            f"{data.name}, VLAD of {arguments.vlad} centres",
            *(datasets.vlad(x, centres, arguments.group) for x in (data.base, data.queries)),
        )
    if arguments.kernel in HISTOGRAM_KERNELS:
        data = datasets.l1_normalised(data)
    if len(data.base) < FEWEST:
        raise datasets.DatasetError(f"{data.name}: has {len(data.base)} base vectors; the demo needs at least {FEWEST}")
    return data


def run(arguments):
    arguments.output.mkdir(parents=True, exist_ok=True)
    data = read(arguments)
    demo = Demo(data, arguments.kernel, arguments.bits, arguments.seed)
    rows = demo.run()

    facts = demo_tables.facts(data, arguments.kernel, demo.gamma, arguments.seed)
    stem = arguments.output / (re.sub(r"[^\w.-]+", "_", data.name) + "_" + arguments.kernel)
    written = {"table": f"{stem}.csv", "plot": f"{stem}.png"}
    demo_tables.write_csv(rows, written["table"])
    title = f"{facts['dataset']}; {arguments.kernel} kernel\n{facts['machine']}; FAISS {faiss.__version__}"
    demo_figures.write_plot(rows, title, written["plot"])
    if data.image_shape:
        written["images"] = f"{stem}_neighbours.png"
        shown = demo_tables.best(rows)
        demo_figures.write_sheet(data, demo.exact.kernel, demo.truth, shown, arguments.seed, written["images"])

    for name, value in facts.items():
        print(f"{name + ':':<10}{value}")
    print(demo_tables.HEAD)
    print(demo_tables.format_table(rows))
    print(f"\n{demo_tables.conclusion(rows)}\n")
    for name, path in written.items():
        print(f"{name + ':':<8}{path}")


def main(arguments):
    """Measures what the command line asks for; says on standard error why that cannot be done."""
    try:
        run(arguments)
    except (datasets.DatasetError, OSError) as error:
        sys.exit(f"demo: {error}")
    except RuntimeError as error:  # what FAISS's exceptions are in Python
        sys.exit(f"demo: FAISS: {error}")
    except KeyboardInterrupt:
        sys.exit("\ndemo: interrupted")
