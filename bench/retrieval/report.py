# SPDX-License-Identifier: MIT
"""What was measured, as CSV, tables in Markdown and figures."""

import csv
import itertools
import platform
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import pareto  # noqa: E402

BEGIN = "<!-- retrieval: begin -->\n"
END = "<!-- retrieval: end -->\n"
WAYS = ("batch", "single")
MARGIN = 0.003  # of recall
SHOWN_RECALL = 0.8  # from which on figures show points


def recall(row):
    return row[f"recall_at_{row['k']}"]


def speed(way):
    return lambda row: row[f"{way}_queries_per_s"]


def groups(rows, *keys):
    """Rows by the values of some keys, in the order in which they come first."""
    found = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def keep_fastest(points, rows):
    """Takes new rows into `points`; of two with the same contender and setting, the faster times, for each way."""
    for row in rows:
        key = tuple(row[name] for name in ("contender", "setting", "k", "threads"))
        old = points.setdefault(key, row)
        for way in WAYS:
            if speed(way)(row) > speed(way)(old):
                old.update({name: value for name, value in row.items() if way in name})


def finalists(rows, targets):
    """The rows to be timed again: of each contender the fastest that reach a target by a margin, or just reach it.

    The margin is for the recall of more queries, which may be lower.
    """
    kept = {}
    for own in groups(rows, "contender", "k", "threads").values():
        for target, way in itertools.product(targets, WAYS):
            for least in (target + MARGIN, target):
                if best := pareto.fastest(own, recall, speed(way), least):
                    kept[id(best)] = best
                    break
    return list(kept.values())


def write_csv(rows, path):
    if not rows:
        return
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})


# ---------------------------------------------------------------- tables


def table(header, rows):
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in [header, ["---"] * len(header), *rows]) + "\n"


def rounded(value):
    """Three significant digits, with commas."""
    return f"{float(f'{value:.3g}'):,.{0 if value >= 100 else 1}f}"


def code(name):
    return f"`{name}`" if "," in name or "(" in name else name


def count_text(threads):
    return "one thread" if threads == 1 else f"{threads} threads"


def front_table(rows, way):
    """The Pareto front of all contenders."""
    lines = [
        (f"{recall(row):.3f}", rounded(speed(way)(row)), code(row["contender"]), row["setting"])
        for row in pareto.front(rows, recall, speed(way))
    ]
    return table([f"recall@{rows[0]['k']}", f"queries/s, {way}", "contender", "setting"], lines)


def contender_table(rows, targets, key):
    """The fastest setting of every contender, or family, that reaches each target; the fastest first."""
    lines = []
    for (side, _), own in groups(rows, "side", key).items():
        best = [[pareto.fastest(own, recall, speed(way), target) for way in WAYS] for target in targets]
        chosen = next((row for pair in best for row in pair if row), None)
        if chosen:
            cells = [rounded(speed(way)(row)) if row else "" for pair in best for way, row in zip(WAYS, pair)]
            settings = [pair[0]["setting"] if pair[0] else "" for pair in best]
            lines.append((speed("batch")(best[0][0]), side, code(chosen["contender"]), *cells, *settings,
                          rounded(chosen["build_s"]), f"{chosen['bytes_per_vector']:,.0f}"))
    lines.sort(key=lambda line: -line[0])
    header = ["", "contender", *(f"{way}, {target:g}" for target in targets for way in WAYS),
              *(f"setting, {target:g}" for target in targets), "build s", "bytes"]
    return table(header, [line[1:] for line in lines])


def ratio_table(rows, targets):
    """Ours beside the best peer, for each set, number of neighbours, threads, target and way of asking."""
    lines = []
    for (name, kernel, k, threads), own in groups(rows, "set", "kernel", "k", "threads").items():
        for target in targets:
            for way in WAYS:
                best = [
                    pareto.fastest([row for row in own if row["side"] == side], recall, speed(way), target)
                    for side in ("ours", "peer")
                ]
                cells = [f"{rounded(speed(way)(row))}, {code(row['contender'])}" if row else "none" for row in best]
                ratio = f"{speed(way)(best[0]) / speed(way)(best[1]):.2f}" if all(best) else ""
                lines.append((name, short(kernel), k, threads, f"{target:g}", way, *cells, ratio))
    return table(["set", "kernel", "k", "threads", "recall", "", "ours: queries/s", "best peer: queries/s", "ratio"], lines)


def share_table(rows, targets):
    """The speed of every family as a share of our fastest search, batch (single); for each set, kernel and target."""
    columns = [(own, target) for own in groups(rows, "set", "kernel", "k", "threads").values() for target in targets]
    lines = []
    for (side, family), _ in groups(rows, "side", "family").items():
        cells = [share(own, [row for row in own if row["family"] == family], target) for own, target in columns]
        if any(cells):
            lines.append((side, code(family), *cells))
    lines.sort(key=lambda line: (line[0], -float((line[2] or "0").split()[0])))
    header = [f"{own[0]['set']}, {short(own[0]['kernel'])}, {target:g}" for own, target in columns]
    return table(["", "family", *header], lines)


def share(rows, family, target):
    """A cell of share_table."""
    ours = [row for row in rows if row["side"] == "ours"]
    both = [[pareto.fastest(some, recall, speed(way), target) for some in (family, ours)] for way in WAYS]
    if not all(map(all, both)):
        return ""
    batch, single = (f"{speed(way)(own) / speed(way)(best):.2f}" for way, (own, best) in zip(WAYS, both))
    return f"{batch} ({single})"


def short(kernel):
    return kernel.split("(")[0]


def facts(rows, args, versions, notes):
    """What a reader needs to judge the times."""
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor())
    lines = [f"Made on {cpu}; " + ", ".join(f"{name} {version}" for name, version in versions.items()) + ".\n\n"]
    lines += [f"- {note}\n" for note in notes]
    for (name, n, d), _ in groups(rows, "set", "n", "d").items():
        lines.append(f"- {name}: {n:,} vectors of {d} dimensions, at most {args.queries} queries\n")
    if args.turns:
        busy = f", while another process wrote to {args.busy} MB" if args.busy else ""
        lines.append(f"- times of {args.turns} turns with at most {args.turn_queries:,} different queries{busy}\n")
    return "".join(lines) + "\n"


def tables(rows, args, versions, notes):
    """All tables, for every number of neighbours and threads."""
    text = [facts(rows, args, versions, notes), "## Ours and the best peer\n\n", ratio_table(rows, args.recall),
            "## Speed as a share of our fastest search, batch (single)\n\n", share_table(rows, args.recall)]
    for (name, kernel, k, threads), own in groups(rows, "set", "kernel", "k", "threads").items():
        text.append(f"## {name}, {short(kernel)}, k = {k}, {count_text(threads)}\n\n")
        text.append(contender_table(own, args.recall, "contender"))
        text += [front_table(own, way) for way in WAYS]
    return "".join(text)


def short_tables(rows, args, versions, notes):
    """Those for the documentation: families in place of contenders, the first number of neighbours and threads."""
    text = [facts(rows, args, versions, notes), "### Ours and the best peer\n\n", ratio_table(rows, args.recall)]
    for (name, kernel, k, threads), own in groups(rows, "set", "kernel", "k", "threads").items():
        if k == args.k[0] and threads == args.threads[0]:
            text.append(f"### {name}, {short(kernel)}, k = {k}, {count_text(threads)}\n\n")
            text.append(contender_table(own, args.recall, "family"))
            text.append("The Pareto front of all contenders:\n\n" + front_table(own, "batch"))
    return "".join(text)


def around_marks(path):
    """What stands before and after the marks in a file; a ValueError says what is missing."""
    try:
        old = path.read_text()
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    if old.count(BEGIN) != 1 or old.count(END) != 1:
        raise ValueError(f"{path}: expected one line {BEGIN.strip()} and one {END.strip()}")
    return old.split(BEGIN)[0], old.split(END)[1]


def put_between_marks(path, text):
    """Replaces what stands between the marks in a file."""
    before, after = around_marks(path)
    path.write_text(f"{before}{BEGIN}\n{text}{END}{after}")


# ---------------------------------------------------------------- figures

OUR_COLOURS = ("#d62728", "#ff7f0e", "#8c564b", "#e377c2", "#b58900", "#9b2226", "#b5179e", "#7f4f24")
PEER_COLOURS = (
    "#1f77b4", "#2ca02c", "#17becf", "#6a4c93", "#3a5a40", "#4895ef", "#52796f", "#0b525b", "#777777", "#3f37c9",
    "#80b918", "#5e60ce", "#00a896", "#240046", "#adb5bd", "#2d6a4f")
RECALL_TICKS = (0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 1)


def write_figures(rows, folder):
    """For each kernel, k and number of threads a panel for each set: Pareto fronts, recall against queries/s."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for (kernel, k, threads), own in groups(rows, "kernel", "k", "threads").items():
        by_set = groups(own, "set")
        figure, axes = plt.subplots(
            len(WAYS), len(by_set), figsize=(7.5 * len(by_set), 5.5 * len(WAYS)), squeeze=False)
        colours = family_colours(own)
        for column, ((name,), points) in zip(axes.T, by_set.items()):
            for axis, way in zip(column, WAYS):
                draw_fronts(axis, points, way, colours)
                axis.set_title(f"{name}, {short(kernel)}, {way}, {count_text(threads)}", fontsize=10)
        figure.tight_layout()
        figure.savefig(folder / f"{short(kernel)}_k{k}_threads{threads}.png", dpi=110)
        plt.close(figure)


def family_colours(rows):
    found = {}
    for side, palette in (("ours", OUR_COLOURS), ("peer", PEER_COLOURS)):
        families = dict.fromkeys(row["family"] for row in rows if row["side"] == side)
        found |= {family: palette[i % len(palette)] for i, family in enumerate(families)}
    return found


def draw_fronts(axis, rows, way, colours):
    """The front of each family, ours solid and peers dashed, with its name at the right end."""
    k = rows[0]["k"]
    labels = []
    for (side, family), points in groups(rows, "side", "family").items():
        shown = [row for row in pareto.front(points, recall, speed(way)) if recall(row) >= SHOWN_RECALL]
        if shown:
            x, y = [recall(row) for row in shown], [speed(way)(row) for row in shown]
            is_ours = side == "ours"
            axis.plot(x, y, "-o" if is_ours else "--s", color=colours[family], linewidth=2 if is_ours else 1.2,
                      markersize=4 if is_ours else 3)
            labels.append((x[-1], y[-1], family, is_ours))
    axis.set_yscale("log")
    # what is not found, on a scale that is nearly logarithmic
    axis.set_xscale("function", functions=(lambda x: -np.log(1.005 - np.minimum(x, 1.004)), lambda y: 1.005 - np.exp(-y)))
    axis.set_xticks(RECALL_TICKS, [f"{tick:g}" for tick in RECALL_TICKS])
    axis.set_xlim(SHOWN_RECALL, 1.0005)
    axis.set_xlabel(f"recall@{k}")
    axis.set_ylabel("queries/s, all counted")
    axis.grid(True, which="major", color="0.88")
    axis.set_axisbelow(True)
    label_ends(axis, labels, colours)


def label_ends(axis, labels, colours):
    """Names right of the axis, in the order of the ends of their lines, moved apart where they would overlap."""
    if not labels:
        return
    gap = 1 / max(24, len(labels))
    to_axes = axis.transAxes.inverted().transform
    placed = []
    for x, y, family, is_ours in sorted(labels, key=lambda label: label[1]):
        at = to_axes(axis.transData.transform((x, y)))
        placed.append([at, max(at[1], placed[-1][1] + gap if placed else 0), family, is_ours])
    top = 1.0
    for entry in reversed(placed):
        entry[1] = min(entry[1], top)
        top = entry[1] - gap
    for at, height, family, is_ours in placed:
        axis.annotate(
            family, at, (1.03, height), "axes fraction", "axes fraction", color=colours[family], fontsize=8,
            fontweight="bold" if is_ours else "normal", va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colours[family], "linewidth": 0.5, "alpha": 0.5})
