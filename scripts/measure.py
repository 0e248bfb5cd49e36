# SPDX-License-Identifier: MIT
"""Kernel search on real vectors: how many exact kernel neighbours binary codes find, at which speed and size.

The exact neighbours under a kernel come from an exhaustive scan (KFlat). Measured against them are codes of
shift-invariant kernel hashing (SIK), or, for kernels of histograms, of additive kernel hashing (AHK) in FAISS's binary
indexes, the same codes re-ranked by the kernel, and FAISS's own LSH and Flat; under a Gaussian kernel bilinear codes
(BSIK) as well. Prints a table, and writes it as CSV together with a recall-speed plot.
"""

import csv
import math
import platform
import re
import sys
import time
from pathlib import Path
from typing import NamedTuple

import datasets
import faiss
import numpy as np
from demo_options import HISTOGRAM_KERNELS, KERNEL_SHAPES
from faiss_ext import index_factory  # the same as faiss.index_factory, which the import extends
from tqdm import tqdm

RANKS = (1, 10, 100)
K = max(RANKS)
NFLIPS = (0, 1, 2)
K_FACTORS = (1, 4, 10)
# Feature-space distances lie between 0 and 2; two of them no further apart than float32 rounding are a tie.
TIE = 1e-6
GOOD_RECALL = 0.9
MIN_TIMING_S = 0.4


class Row(NamedTuple):
    """One measured index. `series` names the points that one line of the plot joins."""

    method: str
    series: str
    bits: int  # 0 where the vectors themselves are kept
    bytes_per_vector: int
    build_s: float
    queries_per_s: float
    recalls: tuple  # one for each of RANKS


# ---------------------------------------------------------------- measuring


class Truth:
    """Exact neighbours of each query, with every tie at the last rank, and the recall of other answers."""

    def __init__(self, exact, queries):
        depth = min(2 * K, exact.ntotal)
        while True:
            distances, labels = exact.search(queries, depth)
            if depth == exact.ntotal or (distances[:, -1] > distances[:, K - 1] + TIE).all():
                break
            depth = min(2 * depth, exact.ntotal)
        self.ntotal = exact.ntotal
        keys = self._keys(labels)
        self.neighbours = {r: keys[distances <= distances[:, r - 1 : r] + TIE] for r in RANKS}

    def recalls(self, labels):
        """Recall@R of search results (-1 for none) for each R in RANKS, averaged over the queries.

        A returned vector counts if it is no further from the query than the exact R-th neighbour: where several are
        equally far, any of them will do.
        """
        keys = self._keys(labels)
        # A query that an index leaves without an answer must not hit another query's key.
        keys[labels < 0] = -1
        return tuple(float(np.isin(keys[:, :r], self.neighbours[r]).mean()) for r in RANKS)

    def _keys(self, labels):
        """One number for each pair of query and base vector."""
        return labels + self.ntotal * np.arange(len(labels), dtype=np.int64)[:, None]


def timed(function, *args):
    """Seconds that a call took, and its result."""
    start = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - start, result


def search(index, queries):
    """Labels of the K nearest, and queries per second: the best of the runs started within MIN_TIMING_S."""
    best, spent = math.inf, 0.0
    while spent < MIN_TIMING_S:
        seconds, (_, labels) = timed(index.search, queries, K)
        best, spent = min(best, seconds), spent + seconds
    return labels, len(queries) / best


def build(index, base):
    """Trains and fills an index; seconds for both."""
    seconds, _ = timed(index.train, base)
    return seconds + timed(index.add, base)[0]


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


# ---------------------------------------------------------------- the indexes


class Demo:
    """Measures one index after another on one dataset, each against the same exact kernel neighbours."""

    def __init__(self, data, kernel, bits, seed):
        self.data, self.kernel, self.bits, self.seed = data, kernel, bits, seed
        self.is_histogram = kernel in HISTOGRAM_KERNELS
        self.scheme = "AHK" if self.is_histogram else "SIK"
        self.rows = []
        per_length = 2 + 1 + len(K_FACTORS) + len(NFLIPS) + (kernel == "gaussian")
        self.progress = Progress(2 + per_length * len(bits))

    def run(self):
        try:
            self._exact()
            self._flat()
            for bits in self.bits:
                self._lsh(bits)
                self._codes(bits)
                self._buckets(bits)
                if self.kernel == "gaussian":
                    self._bilinear(bits)
        finally:
            self.progress.close()
        return self.rows

    def _measure(self, method, series, index, build_s, bits=0, bytes_per_vector=0):
        labels, queries_per_s = search(index, self.data.queries)
        recalls = self.truth.recalls(labels)
        self.rows.append(Row(method, series, bits, bytes_per_vector, build_s, queries_per_s, recalls))
        self.progress.finish()

    def _exact(self):
        arguments = ",".join(KERNEL_SHAPES.get(self.kernel, ()))
        name = f"KFlat({self.kernel}({arguments}))" if arguments else f"KFlat({self.kernel})"
        self.progress.start(name)
        self.exact = index_factory(self.data.d, name)
        train_s, _ = timed(self.exact.train, self.data.base)
        self.exact_add_s, _ = timed(self.exact.add, self.data.base)
        self.gamma = None if self.is_histogram else self.exact.kernel.gamma
        self.truth = Truth(self.exact, self.data.queries)
        self._measure(name, "KFlat (exact)", self.exact, train_s + self.exact_add_s, 0, 4 * self.data.d)

    def _flat(self):
        self.progress.start("Flat")
        index = faiss.IndexFlatL2(self.data.d)
        self._measure("Flat (L2)", "Flat (L2)", index, build(index, self.data.base), 0, 4 * self.data.d)

    def _lsh(self, bits):
        for series, trained in (("LSH", False), ("LSH, trained thresholds", True)):
            method = series.replace("LSH", f"LSH{bits}")
            self.progress.start(method)
            index = faiss.IndexLSH(self.data.d, bits, True, trained)
            self._measure(method, series, index, build(index, self.data.base), bits, bits // 8)

    def _codes(self, bits):
        """All codes scanned; then the same index in front of the exact one, which re-ranks what it finds."""
        method = f"{self.scheme}{bits},BFlat"
        self.progress.start(method)
        codes = index_factory(self.data.d, self._string(bits) + ",BFlat")
        build_s = build(codes, self.data.base)
        self._measure(method, f"{self.scheme},BFlat", codes, build_s, bits, bits // 8)
        for k_factor in K_FACTORS:
            suffix = f",Refine(KFlat) k_factor={k_factor}"
            self.progress.start(method + suffix)
            index = faiss.IndexRefine(codes, self.exact)
            index.k_factor = k_factor
            total_s = build_s + self.exact_add_s
            self._measure(method + suffix, f"{self.scheme},BFlat" + suffix, index, total_s, bits, bits // 8 + 4 * self.data.d)

    def _buckets(self, bits):
        """Multi-index hashing: only codes that agree with the query's in one of several parts, up to nflip bits."""
        # With as many buckets as vectors, a table holds about one vector in each.
        part = min(bits, max(4, round(math.log2(len(self.data.base)))))
        tables = bits // part
        storage = f"BHash{tables}x{part}"
        self.progress.start(f"{self.scheme}{bits},{storage} (building)")
        index = index_factory(self.data.d, f"{self._string(bits)},{storage}")
        build_s = build(index, self.data.base)
        for nflip in NFLIPS:
            method = f"{self.scheme}{bits},{storage} nflip={nflip}"
            self.progress.start(method)
            faiss.downcast_IndexBinary(index.storage).nflip = nflip
            self._measure(method, f"{self.scheme},BHash nflip={nflip}", index, build_s, bits, bits // 8)

    def _bilinear(self, bits):
        """Bilinear projections: a matrix of few numbers in place of bits x d."""
        method = f"BSIK{bits},BFlat"
        self.progress.start(method)
        index = index_factory(self.data.d, f"BSIK{bits}(auto,gamma={self.gamma:.9g},seed={self.seed}),BFlat")
        self._measure(method, "BSIK,BFlat", index, build(index, self.data.base), bits, bits // 8)

    def _string(self, bits):
        if self.is_histogram:
            return f"AHK{bits}({self.kernel},center=1,seed={self.seed})"
        arguments = [self.kernel, *KERNEL_SHAPES[self.kernel], f"gamma={self.gamma:.9g}", f"seed={self.seed}"]
        return f"SIK{bits}({','.join(arguments)})"


# ---------------------------------------------------------------- reporting


def cpu_model():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def facts(data, kernel, gamma, seed):
    """What a reader needs in order to judge the timings, as pairs of name and value."""
    shape = "".join(f", {argument}" for argument in KERNEL_SHAPES.get(kernel, ()))
    gamma = f", gamma = {gamma:.6g} (chosen on the base vectors)" if gamma else ", vectors L1-normalised"
    return [
        ("dataset", f"{data.name}: {len(data.base):,} base vectors, {len(data.queries):,} queries, d = {data.d}"),
        ("kernel", f"{kernel}{shape}{gamma}, seed = {seed}"),
        ("machine", f"{cpu_model()}, {faiss.omp_get_max_threads()} thread(s)"),
        ("software", f"FAISS {faiss.__version__}, Python {platform.python_version()}, NumPy {np.__version__}"),
    ]


def format_table(rows):
    width = max(len(row.method) for row in rows)
    columns = [f"{'method':<{width}}", "bytes/vector", " build s", "queries/s", *(f"recall@{r:<3}" for r in RANKS)]
    lines = ["  ".join(columns), "  ".join("-" * len(column) for column in columns)]
    for row in rows:
        cells = [
            f"{row.method:<{width}}",
            f"{row.bytes_per_vector:>12,}",
            f"{row.build_s:>8.3f}",
            f"{row.queries_per_s:>9,.0f}",
            *(f"{recall:>10.3f}" for recall in row.recalls),
        ]
        lines.append("  ".join(cells))
    return "\n".join(lines)


def write_csv(rows, path):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        recall_names = [f"recall_at_{r}" for r in RANKS]
        writer.writerow(["method", "series", "bits", "bytes_per_vector", "build_s", "queries_per_s", *recall_names])
        for row in rows:
            numbers = [f"{row.build_s:.6g}", f"{row.queries_per_s:.6g}", *(f"{recall:.6g}" for recall in row.recalls)]
            writer.writerow([row.method, row.series, row.bits, row.bytes_per_vector, *numbers])


# Method kind, as the series begins: marker, and shades from the first series of the kind to the last.
LOOKS = (
    ("KFlat", "*", ("black",)),
    ("Flat", "P", ("dimgrey",)),
    ("LSH", "s", ("#b5a184", "#7a5c30")),
    ("BSIK,BFlat", "v", ("#7b3294",)),
    *(
        (f"{scheme},{kind}", marker, shades)
        for scheme in ("SIK", "AHK")
        for kind, marker, shades in (
            ("BFlat,Refine", "^", ("#9ecae1", "#4292c6", "#084594")),
            ("BFlat", "o", ("#2ca02c",)),
            ("BHash", "D", ("#fdae6b", "#f16913", "#a63603")),
        )
    ),
)


def write_plot(rows, title, path):
    """Recall@10 against speed: one line for each series, one marker for each kind, larger for longer codes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    lengths = sorted({row.bits for row in rows if row.bits})
    sizes = {bits: 5 + 2 * i for i, bits in enumerate(lengths)}
    used = {}

    figure, axes = plt.subplots(figsize=(11, 6))
    for series in dict.fromkeys(row.series for row in rows):
        start, marker, shades = next(look for look in LOOKS if series.startswith(look[0]))
        colour = shades[min(used.get(start, 0), len(shades) - 1)]
        used[start] = used.get(start, 0) + 1
        points = [row for row in rows if row.series == series]
        speed = [row.queries_per_s for row in points]
        recall = [row.recalls[RANKS.index(10)] for row in points]
        axes.plot(speed, recall, "-", color=colour, linewidth=1, alpha=0.6)
        for row, x, y in zip(points, speed, recall):
            style = {"color": colour, "markersize": sizes.get(row.bits, 13)}
            axes.plot(x, y, marker, **style, markeredgecolor="white", markeredgewidth=0.5, zorder=3 + (row is rows[0]))
        axes.plot([], [], marker=marker, linestyle="-", color=colour, markersize=7, label=series)
    axes.plot([], [], " ", label=" ")
    for bits in lengths:
        axes.plot([], [], "o", color="white", markeredgecolor="black", markersize=sizes[bits], label=f"{bits} bits")

    axes.set_xscale("log")
    axes.set_xlim(*_padded(axes.get_xlim()))
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("speed (queries per second, log scale)")
    axes.set_ylabel("recall@10 (share of the exact 10 nearest under the kernel)")
    axes.set_title(title, fontsize=10)
    axes.grid(True, which="major", color="0.85")
    axes.grid(True, which="minor", axis="x", color="0.94")
    axes.set_axisbelow(True)
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=9)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)


def _padded(limits):
    """Limits of a logarithmic axis, a little wider, so that no marker is cut."""
    return limits[0] / 1.15, limits[1] * 1.15


def conclusion(rows):
    """What the table shows, from its numbers alone: the fastest good index, and how far codes get without vectors."""
    exact, others = rows[0], rows[1:]

    def recall(row):
        return row.recalls[RANKS.index(10)]

    good = [row for row in others if recall(row) >= GOOD_RECALL]
    if good:
        fastest = max(good, key=lambda row: row.queries_per_s)
        first = f"Fastest with recall@10 >= {GOOD_RECALL}: {_describe(fastest, exact)}."
    else:
        best = max(others, key=recall)
        first = f"Only the exact scan reaches recall@10 >= {GOOD_RECALL}; next is {_describe(best, exact)}."

    codes = [row for row in others if row.bits and row.bytes_per_vector == row.bits // 8]
    good = [row for row in codes if recall(row) >= GOOD_RECALL]
    if good:
        smallest = min(good, key=lambda row: (row.bytes_per_vector, -row.queries_per_s))
        return f"{first}\nSmallest such codes without the vectors: {_describe(smallest, exact)}."
    best = max(codes, key=lambda row: (recall(row), row.queries_per_s))
    return f"{first}\nCodes without the vectors stay below that; the best: {_describe(best, exact)}."


def _describe(row, exact):
    return (
        f"{row.method} with recall@10 = {row.recalls[RANKS.index(10)]:.3f}, {row.queries_per_s:,.0f} queries/s"
        f" ({row.queries_per_s / exact.queries_per_s:.2g} times the exact kernel scan),"
        f" {row.bytes_per_vector:,} bytes per vector"
    )


def run(arguments):
    arguments.output.mkdir(parents=True, exist_ok=True)
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
    if len(data.base) < K:
        raise datasets.DatasetError(f"{data.name}: has {len(data.base)} base vectors; recall@{K} needs at least {K}")

    demo = Demo(data, arguments.kernel, arguments.bits, arguments.seed)
    rows = demo.run()

    facts_found = facts(data, arguments.kernel, demo.gamma, arguments.seed)
    stem = arguments.output / (re.sub(r"[^\w.-]+", "_", data.name) + "_" + arguments.kernel)
    table_path, plot_path = f"{stem}.csv", f"{stem}.png"
    write_csv(rows, table_path)
    title = f"{facts_found[0][1]}\n{arguments.kernel} kernel; {facts_found[2][1]}, FAISS {faiss.__version__}"
    write_plot(rows, title, plot_path)

    for name, value in facts_found:
        print(f"{name + ':':<10}{value}")
    print(
        "\nrecall@R: share of the true R nearest under the kernel among the first R returned, from one search for"
        f" {K};\nof vectors equally far from the query as the true R-th, any counts. All queries go in one call."
        "\nbytes/vector: codes, and the vectors where they are kept (Refine, Flat, KFlat); BHash's tables not counted."
        "\nbuild: training and adding; codes take gamma, where there is one, from KFlat, whose training chose it.\n"
    )
    print(format_table(rows))
    print(f"\n{conclusion(rows)}\n\ntable: {table_path}\nplot:  {plot_path}")


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
