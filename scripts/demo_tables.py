# SPDX-License-Identifier: MIT
"""The demo's results in words and numbers: a table, as text and as CSV, and a summary."""

import csv
import platform
from pathlib import Path

import demo_indexes
import faiss
import numpy as np
import pareto
from demo_options import KERNEL_SHAPES

RANKS = (1, 10)  # of recall; searches are for the last of them
GOOD_RECALL = 0.9
HEAD = f"""
recall@R: share of the true R nearest under the kernel among the first R returned, from one search for {max(RANKS)};
of vectors equally far from the query as the true R-th, any counts. All queries go in one call.
bytes/vector: of the index's file, besides what training has left; build: training and adding.
Of settings, and of code lengths, those are left out that are slower than another which finds as much; the CSV has all.
"""


def recall(row):
    """Recall at the last of RANKS."""
    return row.recalls[-1]


def speed(row):
    return row.queries_per_s


def fronts(rows):
    """For each family its rows that no other of it beats in recall and speed, by ascending recall."""
    families = {}
    for row in rows:
        families.setdefault(row.entry.family, []).append(row)
    return {family: pareto.front(own, recall, speed) for family, own in families.items()}


def cpu_model():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def facts(data, kernel, gamma, seed):
    """What a reader needs in order to judge the timings, by name."""
    shape = "".join(f", {argument}" for argument in KERNEL_SHAPES.get(kernel, ()))
    gamma = f", gamma = {gamma:.6g} (chosen on the base vectors)" if gamma else ", vectors L1-normalised"
    return {
        "dataset": f"{data.name}: {len(data.base):,} base vectors, {len(data.queries):,} queries, d = {data.d}",
        "kernel": f"{kernel}{shape}{gamma}, seed = {seed}",
        "machine": f"{cpu_model()}, {faiss.omp_get_max_threads()} thread(s)",
        "software": f"FAISS {faiss.__version__}, Python {platform.python_version()}, NumPy {np.__version__}",
    }


def format_table(rows):
    """A heading for each group; an index with search parameters has a line for itself, then one for each setting."""
    on_fronts = {id(row) for front in fronts(rows).values() for row in front}
    shown = [row for row in rows if id(row) in on_fronts]
    width = max(len(f"  {row.setting}" if row.setting else row.entry.name) for row in shown) + 2
    columns = [" " * width, "bytes/vector", " build s", "queries/s", *(f"recall@{r:<2}" for r in RANKS)]
    lines = ["  ".join(columns)]
    for group in demo_indexes.GROUPS:
        own = [row for row in shown if row.entry.family.group == group]
        if own:
            lines += ["", group]
        last = None
        for row in own:
            if row.setting and row.entry is not last:
                lines.append(f"  {row.entry.name}")
            last = row.entry
            cells = [
                f"{'    ' + row.setting if row.setting else '  ' + row.entry.name:<{width}}",
                f"{row.bytes_per_vector:>12,}",
                f"{row.build_s:>8.3f}",
                f"{row.queries_per_s:>9,.0f}",
                *(f"{value:>9.3f}" for value in row.recalls),
            ]
            lines.append("  ".join(cells))
    return "\n".join(lines)


def write_csv(rows, path):
    """All rows; `string` is what builds the index again."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        recall_names = [f"recall_at_{r}" for r in RANKS]
        numbers = ["bits", "bytes_per_vector", "build_s", "queries_per_s", *recall_names]
        writer.writerow(["group", "family", "method", "string", "setting", *numbers])
        for row in rows:
            group, _, family = row.entry.family
            values = [f"{value:.6g}" for value in (row.build_s, row.queries_per_s, *row.recalls)]
            words = [group, family, row.method, row.entry.string, row.setting]
            writer.writerow([*words, row.entry.bits, row.bytes_per_vector, *values])


def best(rows):
    """The fastest index that finds enough, or where there is none the one that finds most; exact scans apart."""
    others = [row for row in rows if row.entry.family.group != demo_indexes.EXACT]
    if not others:
        return None
    return pareto.fastest(others, recall, speed, GOOD_RECALL) or max(others, key=lambda row: (recall(row), speed(row)))


def without_vectors(rows):
    """Of the indexes that do not keep the vectors, the smallest that finds enough, or else the one that finds most."""
    small = [row for row in rows if not row.entry.keeps_vectors]
    good = [row for row in small if recall(row) >= GOOD_RECALL]
    if good:
        return min(good, key=lambda row: (row.bytes_per_vector, -speed(row)))
    return max(small, key=lambda row: (recall(row), speed(row)), default=None)


def compared(rows):
    """The rows of which the conclusion speaks; the exact scan is the first."""
    return [row for row in (rows[0], best(rows), without_vectors(rows)) if row is not None]


def conclusion(rows):
    """What the table shows, from its numbers alone: the fastest good index, and how far one gets without vectors."""
    exact, fastest, small = compared(rows)
    if recall(fastest) >= GOOD_RECALL:
        lines = [f"Fastest with recall@{RANKS[-1]} >= {GOOD_RECALL}: {_describe(fastest, exact)}."]
    else:
        lines = [f"Only the exact scan reaches recall@{RANKS[-1]} >= {GOOD_RECALL}; next is {_describe(fastest, exact)}."]
    if recall(small) >= GOOD_RECALL:
        lines.append(f"Smallest such without the vectors: {_describe(small, exact)}.")
    else:
        lines.append(f"Without the vectors all stay below that; the best: {_describe(small, exact)}.")
    if exact.disturbed or fastest.disturbed or small.disturbed:
        lines.append("Other programs kept the machine busy: on a quiet one all may be faster.")
    return "\n".join(lines)


def _describe(row, exact):
    if row.disturbed or exact.disturbed:
        # whichever of the two was disturbed more
        low, high = row.usual_queries_per_s / speed(exact), speed(row) / exact.usual_queries_per_s
        times = f"between {_two_digits(low)} and {_two_digits(high)}"
    else:
        times = _two_digits(speed(row) / speed(exact))
    return (
        f"{row.method} with recall@{RANKS[-1]} = {recall(row):.3f}, {speed(row):,.0f} queries/s"
        f" ({times} times the exact kernel scan), {row.bytes_per_vector:,} bytes per vector"
    )


def _two_digits(value):
    return f"{float(f'{value:.2g}'):,g}"
