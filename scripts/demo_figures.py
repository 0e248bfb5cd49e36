# SPDX-License-Identifier: MIT
"""The demo's pictures: recall against speed, and a contact sheet of queries and their results."""

import matplotlib
import numpy as np
from contact_sheet import Tile, contact_sheet
from demo_indexes import EXACT
from demo_tables import RANKS, fronts, recall, speed

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import to_rgb  # noqa: E402
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # noqa: E402

# Okabe and Ito's colours, which the colour-blind tell apart as well
BLUE, SKY, GREEN, ORANGE, RED, PURPLE = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7"
LOOKS = {  # of a family, by its title: colour, marker, line
    "exact scan": ("black", "*", "-"),
    "exact scan, compact": ("black", "P", "-"),
    "exact under L2": ("0.45", "*", "-"),
    "LSH": ("0.65", "s", ":"),
    "LSH, trained": ("0.5", "s", "--"),
    "IVF-PQ, re-ranked": ("0.35", "s", "-"),
    "codes": (SKY, "o", "-"),
    "codes, asymmetric": (SKY, "o", "--"),
    "bilinear codes": (PURPLE, "v", "-"),
    "codes, re-ranked": (BLUE, "o", "-"),
    "buckets of codes": (ORANGE, "D", "-"),
    "lists": (RED, "^", "--"),
    "lists, re-ranked": (RED, "^", "-"),
    "graph": (GREEN, "X", "-"),
}
ZOOM = 0.9  # recall from which on the second panel shows
SHEET_ROWS, SHEET_SIZE = 8, 56
MISS = "#e00000"


# ---------------------------------------------------------------- recall against speed


def write_plot(rows, title, path):
    figure, _ = draw_plot(rows, title)
    figure.savefig(path)
    plt.close(figure)


def draw_plot(rows, title):
    """Two panels of Pareto fronts, one for each family: all, and where nearly all is found. Figure and labels."""
    curves = fronts(rows)
    figure, panels = plt.subplots(1, 2, figsize=(13, 6.2), dpi=100)
    figure.subplots_adjust(left=0.055, right=0.975, top=0.87, bottom=0.17, wspace=0.13)
    figure.text(0.055, 0.985, title, fontsize=10, va="top", linespacing=1.5)
    low = min(recall(row) for front in curves.values() for row in front)
    bottom = max(0, np.floor(low * 10 - 0.3) / 10)
    labels = []
    for axes, limits in zip(panels, ((bottom, 1.06), (ZOOM - 0.002, 1.01))):
        shown = {family: front for family, front in curves.items() if recall(front[-1]) >= limits[0]}
        draw_panel(axes, shown, limits)
        # what lies in the enlarged part only has its name there; the exact scan, to which all is compared, has it twice
        everywhere = axes is panels[1]
        named = {f for f, front in shown.items() if everywhere or recall(front[0]) < ZOOM or front[0] is rows[0]}
        labels += label_curves(axes, shown, named)
    panels[0].axhspan(ZOOM, panels[0].get_ylim()[1], color="0.95", zorder=0)
    panels[0].set_ylabel(f"recall@{RANKS[-1]}: share of the exact {RANKS[-1]} nearest under the kernel")
    panels[1].set_title(f"enlarged: recall from {ZOOM}", fontsize=10, loc="left")
    draw_size_key(figure, [row.bytes_per_vector for front in curves.values() for row in front])
    return figure, labels


def draw_panel(axes, curves, limits):
    for family, front in curves.items():
        colour, marker, line = LOOKS[family.title]
        x, y = [speed(row) for row in front], [recall(row) for row in front]
        axes.plot(x, y, line, color=colour, linewidth=1.5, zorder=2)
        areas = [area(row.bytes_per_vector) for row in front]
        order = 4 if family.group == EXACT else 3
        axes.scatter(x, y, areas, color=colour, marker=marker, edgecolor="white", linewidth=0.5, zorder=order)
    x = [speed(row) for front in curves.values() for row in front if recall(row) >= limits[0]]
    axes.set_xscale("log")
    room = (max(x) / min(x)) ** 0.06  # for labels
    axes.set_xlim(min(x) / 1.1 / room, max(x) * 1.1 * room**3)
    is_wide = max(x) > 30 * min(x)
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if is_wide else (1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(limits)
    axes.set_xlabel("queries per second")
    axes.grid(True, which="major", color="0.88")
    axes.grid(True, which="minor", axis="x", color="0.95")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def area(size):
    """That of a marker for so many bytes per vector: it grows with their logarithm."""
    return 12 + 15 * np.log2(max(size, 8) / 8)


def draw_size_key(figure, sizes):
    axes = figure.add_axes([0.055, 0.01, 0.5, 0.06])
    axes.axis("off")
    axes.set(xlim=(0, 1), ylim=(-1, 1))
    axes.text(0, 0, "bytes per vector:", va="center", fontsize=9)
    powers = [4**i for i in range(2, 12) if min(sizes) <= 2 * 4**i and 4**i <= 2 * max(sizes)]
    for i, size in enumerate(powers):
        axes.scatter(0.24 + 0.11 * i, 0, area(size), color="0.4", edgecolor="white", linewidth=0.5, clip_on=False)
        axes.text(0.265 + 0.11 * i, 0, f"{size:,}", va="center", fontsize=9)
    figure.text(0.6, 0.04, "grey: FAISS's own indexes, which search under L2", va="center", fontsize=9)


# ---------------------------------------------------------------- labels at the curves

STEP = 4  # pixels between the points that stand for what is drawn
GAPS = (7, 12, 18, 26, 36, 50, 70, 100)  # pixels between a curve and its label
LINE_FROM = 20  # the gap from which on a line joins them
MARGIN = 3
AROUND = np.array([(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)])


def label_curves(axes, curves, named):
    """Puts the names of some curves beside them: not over another name, and over as little of the curves as can be."""
    inside = np.array(axes.get_window_extent().extents)
    drawn = {family: points_of(axes, front) for family, front in curves.items()}
    ink = Ink(inside, np.concatenate([points for both in drawn.values() for points in both]))
    to_axes = axes.transAxes.inverted().transform
    boxes, labels = np.empty((0, 4)), []
    paths = {family: path[within(path, inside)] for family, (path, _) in drawn.items() if family in named}
    for family, path in sorted(paths.items(), key=lambda item: len(item[1])):  # what has the least room comes first
        colour = 0.8 * np.array(to_rgb(LOOKS[family.title][0]))  # darker, to be read
        text = f"{family.title}\n{family.strings}"
        label = axes.text(0, 0, text, color=colour, fontsize=8, linespacing=1.15, va="bottom")
        extent = label.get_window_extent()
        box, anchor, gap = best_place(path, np.array([extent.width, extent.height]), inside, boxes, ink)
        label.set_position(to_axes(box[:2]))
        label.set_transform(axes.transAxes)
        boxes = np.vstack([boxes, box])
        if gap >= LINE_FROM:
            line = joining(box[None], anchor[None])[0]
            axes.plot(*to_axes(line).T, color=colour, linewidth=0.6, transform=axes.transAxes, zorder=1.5)
            boxes = np.vstack([boxes, np.hstack([line, line])])
        labels.append(label)
    return labels


def points_of(axes, front):
    """Pixels along a curve, and pixels all over its markers."""
    at = axes.transData.transform([(speed(row), recall(row)) for row in front])
    path = [at]
    for a, b in zip(at, at[1:]):
        path.append(a + np.linspace(0, 1, 2 + int(np.hypot(*(b - a)) / STEP))[:, None] * (b - a))
    markers = []
    for point, row in zip(at, front):
        radius = np.sqrt(area(row.bytes_per_vector) / np.pi) * axes.figure.dpi / 72
        offsets = np.stack(np.meshgrid(*2 * [np.arange(-radius, radius + 1, STEP)]), axis=-1).reshape(-1, 2)
        markers.append(point + offsets[np.hypot(*offsets.T) <= radius])
    return np.concatenate(path), np.concatenate(markers)


def within(points, box):
    return (points >= box[:2]).all(axis=1) & (points <= box[2:]).all(axis=1)


class Ink:
    """How much of what is drawn lies in a box, by sums over all pixels to the left of and below each one."""

    def __init__(self, inside, points):
        self.origin = inside[:2]
        pixels = np.floor(points[within(points, inside)] - self.origin).astype(int)
        self.sums = np.zeros(np.ceil(inside[2:] - inside[:2]).astype(int) + 2)
        np.add.at(self.sums, tuple(pixels.T + 1), 1)
        self.sums = self.sums.cumsum(axis=0).cumsum(axis=1)

    def under(self, boxes):
        edges = np.floor(boxes - np.tile(self.origin, 2) + (-MARGIN, -MARGIN, MARGIN, MARGIN)).astype(int)
        left, bottom, right, top = np.clip(edges, 0, np.tile(self.sums.shape, 2) - np.array(1)).T
        return self.sums[right, top] - self.sums[left, top] - self.sums[right, bottom] + self.sums[left, bottom]


def best_place(path, size, inside, boxes, ink):
    """A box (left, bottom, right, top) for a label of that size: near a path, off other boxes and off what is drawn.

    Also where on the path it belongs, and how far from there it is.
    """
    path = path[:: max(1, len(path) // 60)]
    sides = np.tile(AROUND, (len(path) * len(GAPS), 1))
    gaps = np.repeat(GAPS, len(path) * len(AROUND))
    anchors = np.tile(np.repeat(path, len(AROUND), axis=0), (len(GAPS), 1))
    corners = anchors + sides * gaps[:, None] + (sides - 1) / 2 * size
    # besides, anywhere
    along = (np.arange(inside[i], inside[i + 2], 4 * STEP) for i in (0, 1))
    grid = np.stack(np.meshgrid(*along), axis=-1).reshape(-1, 2)
    away = np.clip(path, grid[:, None], grid[:, None] + size) - path
    nearest = np.hypot(away[..., 0], away[..., 1]).argmin(axis=1)
    corners = np.concatenate([corners, grid])
    anchors = np.concatenate([anchors, path[nearest]])
    gaps = np.concatenate([gaps, np.hypot(*away[np.arange(len(grid)), nearest].T)])

    found = np.hstack([corners, corners + size])
    fits = (corners >= inside[:2] + MARGIN).all(axis=1) & (found[:, 2:] <= inside[2:] - MARGIN).all(axis=1)
    found, anchors, gaps = found[fits], anchors[fits], gaps[fits]
    lines = joining(found, anchors)
    overlaps = np.zeros(len(found))
    for box in boxes:
        overlaps += (found[:, :2] < box[2:] + MARGIN).all(axis=1) & (found[:, 2:] > box[:2] - MARGIN).all(axis=1)
        crosses = ((lines > box[:2]) & (lines < box[2:])).all(axis=2).any(axis=1)
        overlaps += 0.001 * (crosses & (gaps >= LINE_FROM))
    crossed = ink.under(np.tile(lines[:, :-2], 2).reshape(-1, 4)).reshape(len(lines), -1).sum(axis=1)
    off_centre = np.hypot(*((found[:, :2] + found[:, 2:]) / 2 - anchors).T)
    costs = gaps + 0.25 * off_centre + 50 * ink.under(found) + 10 * crossed * (gaps >= LINE_FROM)
    chosen = np.argmin(1e6 * overlaps + costs)
    return found[chosen], anchors[chosen], gaps[chosen]


def joining(boxes, anchors):
    """Points on the lines from boxes to what they name."""
    starts = np.clip(anchors, boxes[:, :2], boxes[:, 2:])
    return starts[:, None] + np.linspace(0, 1, 9)[:, None] * (anchors - starts)[:, None]


# ---------------------------------------------------------------- queries and what was found


def write_sheet(data, kernel, truth, row, seed, path):
    """Some queries, drawn with the seed, and the images that an index has found for them; wrong ones are framed."""
    queries = np.sort(np.random.default_rng(seed).permutation(len(data.queries))[:SHEET_ROWS])
    hits = truth.hits(row.labels)
    brightest = max(data.base.max(), 1e-30)

    def pixels(vector):
        return np.clip(vector.reshape(data.image_shape) / brightest, 0, 1)

    def found(query, label, is_hit):
        if label < 0:
            return Tile(None, "none", MISS)
        value = kernel.gram(data.queries[query : query + 1], data.base[label : label + 1])[0, 0]
        return Tile(pixels(data.base[label]), f"{value:.2f}", None if is_hit else MISS)

    rows = [
        [Tile(pixels(data.queries[q])), *(found(q, label, is_hit) for label, is_hit in zip(row.labels[q], hits[q]))]
        for q in queries
    ]
    heading = f"{row.method}\nfinds these, with the kernel's value; framed: not among the true {RANKS[-1]}"
    contact_sheet(path, rows, heading, SHEET_SIZE)
