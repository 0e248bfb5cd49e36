# SPDX-License-Identifier: MIT
"""Experiments of Kim and Choi, Binary embedding with additive homogeneous kernels.

Codes are made once, of as many bits as are wanted at most; their first bits are the codes of fewer bits, since the
hyperplanes of `proj=dense`, KLSH and SCR are independent of each other.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from experiments import Outcome, Run, experiment
from findings import Finding, cannot_be_tried, computed, differences, interval, margin, mean_and_deviation, tested, text
from jiang_que_kulis_2015 import KERNELS
from measures import AVERAGES, exact_neighbours, hamming, precision_recall
from scipy.sparse.linalg import eigsh
from vectors import normalised

import faiss
from faiss_ext import kernel_factory, kernel_hash_factory, map_factory

ORDERS = {"chi2": 3, "intersection": 10}  # of the map, in the paper
BITS = 8192
DELTA = 0.01
ROUNDING = 1e-6  # of probabilities from float32 products
NEIGHBOURS = 100
RECALL = np.linspace(0.02, 1, 50)
COLOURS = {"BE-AHK": "C0", "KLSH(16)": "C1", "KLSH(32)": "C1", "KLSH(64)": "C2", "KLSH(256)": "C2", "RHBE": "C3", "SCR": "C4"}
OVER_QUERIES = AVERAGES.index("mean over queries")
STEP = 4000  # vectors whose distances are computed at once


# ---------------------------------------------------------------- schemes


def additive(kernel, order, bits=BITS, seed=1, proj="dense") -> str:
    return f"AHK{bits}({kernel},order={order},proj={proj},seed={seed})"


def klsh(kernel, rank, landmarks, bits=BITS, seed=1, form="") -> str:
    """Kernel PCA, then Gaussian hyperplanes through the origin: equations 2 and 3, but with a centred Gram matrix.

    Equation 3 as printed does not centre it; KLSH of Jiang, Que and Kulis, to which the paper refers, does. The form
    "nystrom=1," leaves it as it is.
    """
    return f"KLSH{bits}({kernel},p={landmarks},rank={rank},{form}draw=gauss,center=0,seed={seed})"


def schemes(run: Run, kernel, seed) -> dict[str, str]:
    """The schemes that the paper compares, in its form."""
    landmarks = run.choose(full=1000, quick=100)
    return {
        "BE-AHK": additive(kernel, ORDERS[kernel], seed=seed),
        **{f"KLSH({rank})": klsh(kernel, rank, landmarks, seed=seed) for rank in ranks(run)},
        "RHBE": f"RHBE{BITS}(proj=dense,seed={seed})",
        "SCR": f"SCR{BITS}(seed={seed})",
    }


def ranks(run: Run) -> tuple[int, int]:
    return run.choose(full=(32, 256), quick=(16, 64))


def trained(string, vectors):
    scheme = kernel_hash_factory(vectors.shape[1], string)
    scheme.train(vectors)
    return scheme


def mapped(vectors, kernel, order):
    """The explicit map; its length is the same for all histograms of mass 1."""
    return map_factory(vectors.shape[1], f"HKM{order}({kernel})").apply(vectors)


def angle(kernel_values):
    """The paper's acos-kernel."""
    return np.arccos(np.clip(kernel_values, -1, 1)) / np.pi


# ---------------------------------------------------------------- Figure 1


@experiment(
    "003-fig1",
    "KLSH with landmarks from a part of the domain",
    "Hamming distances of KLSH follow the kernel if landmarks cover the domain, and not if they come from a part of it.",
    "absolute values of normal numbers in two dimensions and 1,024 bits, as in the paper. The paper does not give the rest: we scale the "
    "points to histograms of mass 1, take 2,000 points and 1,000 landmarks, and keep all components of kernel PCA. The part has one "
    "component in [0.8, 1], as in the paper's figure. 20 repeats.",
    repeats=20,
)
def biased_landmarks(run: Run) -> Outcome:
    n, landmarks, bits = run.choose(full=2000, quick=500), run.choose(full=1000, quick=100), 1024
    figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True, constrained_layout=True)
    part, whole = "one component in [0.8, 1]", "the whole domain"
    spreads: dict[tuple[str, str], list[float]] = {}
    for repeat in range(run.repeats):
        x, others = (normalised(np.abs(run.rng(repeat).normal(size=(size, 2)))) for size in (n, 10 * landmarks))
        pair = np.triu_indices(n, 1)
        value = kernel_factory("chi2").gram(x, x)[pair]
        for axis, (label, domain) in zip(axes, {part: others[others[:, 0] >= 0.8], whole: others}.items()):
            for gram_matrix, form in (("centred", ""), ("as it is", "nystrom=1,")):
                codes = trained(klsh("chi2", 0, landmarks, bits, repeat + 1, form), domain).encode(x)
                distance = hamming(codes, codes)[pair] / bits
                spreads.setdefault((label, gram_matrix), []).append(spread(value, distance))
                if repeat == 0 and not form:
                    shown = run.rng().choice(len(value), 5000)
                    axis.plot(value[shown], distance[shown], "k.", ms=1)
                    axis.set(title=f"Landmarks from {label}", xlabel="chi2 kernel", ylabel="Normalised Hamming distance")
    forms = {
        "centred": "a centred Gram matrix, as in Jiang, Que and Kulis",
        "as it is": "an uncentred Gram matrix, as in the printed equation 3",
    }
    pairs = {form: [np.array(spreads[label, form]) for label in (part, whole)] for form in forms}
    scatter = {form: "standard deviation {} against {}".format(*map(text, pair)) for form, pair in pairs.items()}
    excess = {form: differences(*pair) for form, pair in pairs.items()}
    most = excess["as it is"].mean() + margin(excess["as it is"])
    scatter["as it is"] += f" (the difference is below {most:.4f}; with a centred matrix it is {excess['centred'].mean():.3f})"
    findings = [
        tested(
            f"With {forms[form]}: at equal kernel value, distances scatter more with landmarks from a part of the domain",
            scatter[form],
            [pair],
            in_quick_runs=form == "centred",
        )
        for form, pair in pairs.items()
    ]
    rows = [
        {"landmarks from": label, "Gram matrix": form, "repeat": repeat, "spread": value}
        for (label, form), values in spreads.items()
        for repeat, value in enumerate(values)
    ]
    return Outcome(findings, rows, figure)


def spread(value, distance, bins=50) -> float:
    """Root mean square deviation of the distances from the mean of those with nearly the same kernel value."""
    place = np.minimum((value * bins).astype(int), bins - 1)
    count = np.maximum(np.bincount(place, minlength=bins), 1)
    mean = np.bincount(place, distance, bins) / count
    return float(np.sqrt(np.mean((distance - mean[place]) ** 2)))


# ---------------------------------------------------------------- Figure 2


@experiment(
    "003-fig2",
    "Normalised Hamming distance by kernel value, with the bounds of Theorem 1 at 0.01",
    "If the map approximates the kernel to 0.01, the probability that a bit differs is between two functions of the kernel value "
    "(Theorem 1). So the normalised Hamming distance is related to the kernel value.",
    "10,000 points of two χ²-distributed components and 10,000 bits, as in the paper. We scale the points to histograms of mass 1. "
    "Pairs are of two different points.",
)
def bounds(run: Run) -> Outcome:
    n, bits = run.choose(full=10000, quick=1500), 10000
    x = normalised(run.rng().chisquare(1, size=(n, 2)))
    orders = (1, 2, 3)
    maps = {order: mapped(x, "chi2", order) for order in orders}
    codes = trained(additive("chi2", 3, bits), x).encode(x)
    pairs = n * (n - 1) // 2
    # by Hoeffding's inequality for all pairs at once, fails with a probability below 0.001
    allowed = np.sqrt(np.log(2 * pairs / 0.001) / (2 * bits))
    error = dict.fromkeys(orders, 0.0)
    squared_norm = {order: float(y[0] @ y[0]) for order, y in maps.items()}
    outside = {"bits": 0, **dict.fromkeys(orders, 0)}
    beyond, room, shown = 0.0, np.inf, []
    for begin in range(0, n, 1000):
        part = slice(begin, begin + 1000)
        value = kernel_factory("chi2").gram(x[part], x).clip(0, 1)
        once = np.arange(n) > np.arange(n)[part, None]  # each pair of different points once
        low, high = lower_bound(value), upper_bound(value)
        for order, y in maps.items():
            products = y[part] @ y.T
            error[order] = max(error[order], float(np.abs(products - value).max()))
            expected = angle(products / squared_norm[order])
            within = np.minimum(expected - low, high - expected)
            outside[order] += int(np.sum(once & (within < -ROUNDING)))
            if order == 3:
                room = min(room, float(within[once].min(initial=np.inf)))
        distance = hamming(codes[part], codes) / bits
        excess = np.where(once, np.maximum(low - distance, distance - high), 0)
        outside["bits"] += int(np.sum(excess > 0))
        beyond = max(beyond, float(excess.max()))
        some = run.rng(begin).integers(value.size, size=n // 10 if n < 5000 else 200)
        shown.append(np.stack([value.ravel()[some], distance.ravel()[some]]))
    points = np.concatenate(shown, axis=1)
    grid = np.linspace(0, 1, 200)
    figure, axis = plt.subplots(figsize=(5, 4), constrained_layout=True)
    axis.plot(*points, "ko", ms=3, mfc="none", label="pairs")
    axis.plot(grid, upper_bound(grid), "b:", label="upper bound")
    axis.plot(grid, lower_bound(grid), "r:", label="lower bound")
    axis.set(xlabel="chi2 kernel", ylabel="Normalised Hamming distance", xlim=(0, 1), ylim=(0, 0.55))
    axis.legend()
    largest = ", ".join(f"{order}: {error[order]:.4f}" for order in orders)
    findings = [
        computed(
            f"Theorem 1: if the map approximates the kernel to δ = {DELTA}, the probability that a bit differs is between f(K) and g(K)",
            f"order 3: {outside[3]:,} of {pairs:,} pairs outside, the nearest to a bound is {room:.4f} within. Orders 1 and 2 do not "
            f"approximate to {DELTA}: {outside[1]:,} and {outside[2]:,} pairs outside",
            outside[3] == 0,
            basis="counted",
            for_any_data=True,
        ),
        computed(
            f"the map's error is below {DELTA} for all pairs at order 3, but at no lower order",
            f"largest error by order {largest}",
            error[3] < DELTA <= min(error[1], error[2]),
            basis="counted",
            check=True,
        ),
        computed(
            f"the share of differing bits, of {bits:,}, is outside f(K) and g(K) by no more than Hoeffding's inequality allows for all "
            "pairs at once (the theorem is on the probability, from which the share deviates by chance)",
            f"{outside['bits'] / pairs:.2%} of pairs outside, by {beyond:.4f} at most; allowed: {allowed:.4f}",
            beyond <= allowed,
            basis="bound",
            check=True,
        ),
    ]
    rows = [
        {"kernel value": u, "normalised Hamming distance": h, "lower": lower_bound(u), "upper": upper_bound(u)}
        for u, h in points.T
    ]
    return Outcome(findings, rows, figure)


def lower_bound(u, delta=DELTA):
    """f of Theorem 1."""
    v = (u + delta) / (1 - delta)
    return 0.5 - v / np.pi - 3 / (5 * np.pi) * v**3


def upper_bound(u, delta=DELTA):
    """g of Theorem 1."""
    v = u - delta
    return 0.5 - v / np.pi - v**3 / (6 * np.pi)


# ---------------------------------------------------------------- Figure 3


@experiment(
    "003-fig3",
    "Normalised Hamming distances against the acos-kernel, by bits",
    "BE-AHK almost acts as an unbiased estimator of the acos-kernel, because the difference becomes zero with more bits. SCR does not "
    "work with an intersection kernel.",
    "5,000 vectors, as in the paper; five repeats.",
    "{descriptors} for GIST1M",
)
def kernel_preservation(run: Run) -> Outcome:
    data = run.descriptors()
    n = run.choose(full=5000, quick=400)
    all_bits = [2**i for i in range(7, 14)]
    errors: dict[tuple, list] = {}  # by kernel, norm, scheme, bits: one for each repeat
    limits: dict[str, list] = {kernel: [] for kernel in ORDERS}  # errors of the map, one for each repeat
    for repeat in range(run.repeats):
        x = normalised(data.base[run.rng(repeat).choice(len(data.base), n, replace=False)])
        targets = {kernel: target_of(angle(kernel_factory(kernel).gram(x, x))) for kernel in ORDERS}
        codes: dict[tuple, np.ndarray] = {}
        for kernel in ORDERS:
            for label, string in schemes(run, kernel, repeat + 1).items():
                of = "both" if label in ("RHBE", "SCR") else kernel
                if (label, of) not in codes:
                    codes[label, of] = trained(string, x).encode(x)
            y = mapped(x, kernel, ORDERS[kernel])
            difference = angle(y @ y.T / (y[0] @ y[0])) - targets[kernel].matrix
            limits[kernel].append(float(np.linalg.norm(difference)) / targets[kernel].norms["Frobenius"])
        for (label, of), code in codes.items():
            for bits, distance in distances_by_bits(code, all_bits):
                for kernel in ORDERS if of == "both" else (of,):
                    for norm, error in relative_errors(distance, targets[kernel]).items():
                        errors.setdefault((kernel, norm, label, bits), []).append(error)
    figure = preservation_figure(errors, all_bits)
    infinite = {(kernel, "Frobenius", "BE-AHK", "infinitely many"): values for kernel, values in limits.items()}
    rows = [
        {"kernel": kernel, "norm": norm, "scheme": label, "bits": bits, "repeat": repeat, "error": error}
        for (kernel, norm, label, bits), values in {**errors, **infinite}.items()
        for repeat, error in enumerate(values)
    ]
    findings = [f for kernel in ORDERS for f in preservation_findings(run, kernel, errors, limits[kernel])]
    return Outcome([*findings, scr_finding(errors)], rows, figure)


def distances_by_bits(codes, all_bits):
    """Normalised Hamming distances of all pairs by the first bits of the codes."""
    total = np.zeros((len(codes), len(codes)), np.float32)
    for before, bits in zip([0, *all_bits], all_bits):
        part = codes[:, before // 8 : bits // 8]
        total += hamming(part, part)
        yield bits, total / bits


def spectral_norm(symmetric) -> float:
    """To one part in a hundred, or better."""
    start = np.ones(len(symmetric), np.float32)
    return float(abs(eigsh(symmetric, k=1, v0=start, tol=0.01, return_eigenvectors=False)[0]))


NORMS = {"Frobenius": np.linalg.norm, "spectral": spectral_norm}


class Target(NamedTuple):
    """A matrix to be met, and its norms."""

    matrix: np.ndarray
    norms: dict[str, float]


def target_of(matrix) -> Target:
    matrix = matrix.astype(np.float32)
    return Target(matrix, {name: float(norm(matrix)) for name, norm in NORMS.items()})


def relative_errors(distance, target: Target) -> dict[str, float]:
    difference = distance.astype(np.float32) - target.matrix
    return {name: float(norm(difference)) / target.norms[name] for name, norm in NORMS.items()}


def preservation_figure(errors, all_bits):
    figure, axes = plt.subplots(2, 2, figsize=(9, 7), sharex=True, constrained_layout=True)
    for row, norm in zip(axes, ("Frobenius", "spectral")):
        for axis, kernel in zip(row, ORDERS):
            for label in dict.fromkeys(key[2] for key in errors):
                curve = [mean_and_deviation(errors[kernel, norm, label, bits]) for bits in all_bits]
                axis.errorbar(all_bits, *zip(*curve), label=label, color=COLOURS[label], marker="o", ms=3, capsize=2)
            axis.margins(y=0.25)  # for the legend
            axis.set(xscale="log", ylim=(0, None), title=kernel, xlabel="Bits", ylabel=f"Relative error ({norm} norm)")
    axes[0, 0].set_xticks(all_bits, all_bits, fontsize=8)
    axes[0, 0].minorticks_off()
    axes[0, 1].legend(ncol=3, loc="upper center", fontsize=8)
    return figure


def both_norms(errors, kernel, label) -> list[np.ndarray]:
    """Errors of a scheme with the most bits, one array for each norm."""
    return [np.array(errors[kernel, norm, label, BITS]) for norm in NORMS]


def listed(by_norm) -> str:
    return " and ".join(map(text, by_norm))


def preservation_findings(run, kernel, errors, limit) -> list[Finding]:
    ahk, weak = both_norms(errors, kernel, "BE-AHK"), f"KLSH({ranks(run)[0]})"
    few, many = (np.array(errors[kernel, "Frobenius", "BE-AHK", bits]) for bits in (128, BITS))
    mean_limit = np.mean(limit)
    because = "a map of finite order has an error of its own, to which the difference goes"
    if kernel == "intersection":
        because += "; this kernel is not smooth, so its maps converge slowly with the order (footnote 1 of the paper)"
    return [
        computed(
            f"{KERNELS[kernel]}: the difference becomes zero when the number of bits increases (the paper's reason why BE-AHK “almost acts as "
            "an unbiased estimator”)",
            f"Frobenius norm: {text(few)} at 128 bits, {text(many)} at {BITS:,}; with infinitely many bits it is the error of the map of "
            f"order {ORDERS[kernel]}, {mean_limit:.4f} ± {mean_and_deviation(limit)[1]:.4f}",
            max(limit) < 1e-6,
            because,
            in_quick_runs=False,
        ),
        tested(
            f"{KERNELS[kernel]}: the error of BE-AHK is smaller with {BITS:,} bits than with 128 (Frobenius norm)",
            f"{text(few)} → {text(many)}",
            [(few, many)],
            check=True,
        ),
        tested(
            f"{KERNELS[kernel]}: with {BITS:,} bits the error of {weak} is larger than that of BE-AHK (both norms; the text of the paper "
            "does not mention KLSH here)",
            f"{listed(both_norms(errors, kernel, weak))} against {listed(ahk)}",
            list(zip(both_norms(errors, kernel, weak), ahk)),
            check=True,
        ),
    ]


def scr_finding(errors) -> Finding:
    scr = {kernel: both_norms(errors, kernel, "SCR") for kernel in ORDERS}
    before = np.array(errors["intersection", "Frobenius", "SCR", 2048])
    return tested(
        f"SCR does not work with an intersection kernel: with {BITS:,} bits its error is larger than with χ² (both norms)",
        f"{listed(scr['intersection'])} against {listed(scr['chi2'])}; with 2,048 bits its error for intersection was {text(before)} "
        f"already (Frobenius norm)",
        list(zip(scr["intersection"], scr["chi2"])),
    )


# ---------------------------------------------------------------- Figures 4 to 6


class Task(NamedTuple):
    """Histograms to search, queries, and which are among the 100 nearest of each."""

    base: np.ndarray
    queries: np.ndarray
    true: np.ndarray


def task(run: Run, of_images, kernel, repeat, count) -> Task:
    """100 queries drawn anew in each repeat, and the first `count` vectors."""
    data = run.images() if of_images else run.descriptors()
    base = normalised(data.base[:count])
    drawn = run.rng(repeat).choice(len(data.queries), 100, replace=False)
    queries = normalised(data.queries[np.sort(drawn)])
    true = np.zeros((len(queries), len(base)), bool)
    nearest = exact_neighbours(run.cache, kernel, base, queries, NEIGHBOURS)
    true[np.arange(len(queries))[:, None], nearest] = True
    return Task(base, queries, true)


def base_size(run: Run, of_images) -> int:
    """The paper's number of images, and all descriptors."""
    if of_images:
        return run.choose(full=50000, quick=2000)
    return run.choose(full=len(run.descriptors().base), quick=1000)


def curves_of(scheme, of: Task, all_bits) -> list[np.ndarray]:
    """Precision by the first bits of the codes, averages x the levels RECALL."""
    queries = scheme.encode(of.queries)
    parts = [scheme.encode(of.base[i : i + STEP]) for i in range(0, len(of.base), STEP)]
    curves = []
    for bits in all_bits:
        distance = np.concatenate([hamming(queries[:, : bits // 8], p[:, : bits // 8]) for p in parts], axis=1)
        curves.append(precision_recall(distance, of.true, RECALL))
    return curves


SHOWN_BITS = (512, 2048, BITS)


@cache
def one_retrieval(run: Run, of_images, kernel, repeat) -> dict[tuple[str, int], np.ndarray]:
    """By scheme and bits: precision, averages x levels of recall."""
    all_bits = SHOWN_BITS if of_images else [BITS]
    now = task(run, of_images, kernel, repeat, base_size(run, of_images))
    return {
        (label, bits): curve
        for label, string in schemes(run, kernel, repeat + 1).items()
        for bits, curve in zip(all_bits, curves_of(trained(string, now.base), now, all_bits))
    }


def retrieval(run: Run, of_images, kernel) -> dict[tuple[str, int], np.ndarray]:
    """By scheme and bits: precision, repeats x averages x levels of recall."""
    found = [one_retrieval(run, of_images, kernel, repeat) for repeat in range(run.repeats)]
    return {key: np.array([curves[key] for curves in found]) for key in found[0]}


def plot_curves(axis, curves: dict[str, np.ndarray], average: int, title):
    for label, values in curves.items():
        mean, deviation = mean_and_deviation(values[:, average])
        axis.plot(RECALL, mean, label=label, color=COLOURS[label])
        axis.fill_between(RECALL, mean - deviation, mean + deviation, color=COLOURS[label], alpha=0.2)
    axis.set(title=title, xlabel="Recall", ylabel=f"Precision, {AVERAGES[average]}", xlim=(0, 1), ylim=(0, 1))


def curve_rows(curves, **more):
    return [
        {**more, "scheme": label, "bits": bits, "average": average, "recall": float(level), "precision": mean,
         "deviation": deviation}
        for (label, bits), values in curves.items()
        for average, means, deviations in zip(AVERAGES, *mean_and_deviation(values))
        for level, mean, deviation in zip(RECALL, means, deviations)
    ]  # fmt: skip


def area(curves, average: int):
    """Mean precision over the levels of recall, of each repeat."""
    return curves[:, average].mean(axis=1)


def by_average(of) -> list[Finding]:
    """The findings that a function makes for an average and the beginning of its claims."""
    return [finding for average, name in enumerate(AVERAGES) for finding in of(average, f"{name}, ")]


def comparable(kernel, curves, average, on) -> Finding:
    areas = {label: area(values, average) for (label, bits), values in curves.items() if bits == BITS}
    ahk = areas.pop("BE-AHK")
    ordered = sorted(areas, key=lambda label: areas[label].mean())
    return cannot_be_tried(
        f"{on}{KERNELS[kernel]}: with {BITS:,} bits BE-AHK is comparable to the existing schemes",
        f"mean precision {text(ahk)}; less that of " + ", ".join(f"{label} {interval(ahk, areas[label])}" for label in ordered),
        "the paper does not say which difference is comparable",
    )


def above_angles(kernel, curves, average, on, **more) -> list[Finding]:
    """Of hyperplanes and Cauchy projections, which do not perform well for intersection on MNIST."""
    ahk = area(curves["BE-AHK", BITS], average)
    return [
        tested(
            f"{on}{KERNELS[kernel]}: with {BITS:,} bits {label} does not do well: BE-AHK is above it",
            f"{text(ahk)} against {text(area(curves[label, BITS], average))}",
            [(ahk, area(curves[label, BITS], average))],
            in_quick_runs=average == OVER_QUERIES,
            **more,
        )
        for label in ("RHBE", "SCR")
    ]


@experiment(
    "003-fig4",
    "Precision and recall on images, by bits",
    "With many bits BE-AHK is comparable with KLSH for both kernels. RHBE and SCR do not do well for intersection.",
    "the first 50,000 images of {images}, 100 queries, five repeats, as in the paper on MNIST.",
)
def images_by_bits(run: Run) -> Outcome:
    figure, axes = plt.subplots(4, 3, figsize=(11, 14), constrained_layout=True)
    findings, rows, by_kernel = [], [], {}
    for i, kernel in enumerate(ORDERS):
        curves = by_kernel[kernel] = retrieval(run, True, kernel)
        rows += curve_rows(curves, kernel=kernel)
        for average, row in enumerate(axes[2 * i : 2 * i + 2]):
            for axis, bits in zip(row, SHOWN_BITS):
                shown = {label: values for (label, b), values in curves.items() if b == bits}
                plot_curves(axis, shown, average, f"{kernel}, {bits:,} bits")
        findings += by_average(lambda average, on, kernel=kernel, curves=curves: image_findings(kernel, curves, average, on))
    findings += by_average(lambda average, on: [rank_matters(run, *of, average, on) for of in by_kernel.items()])
    axes[0, 0].legend()
    return Outcome(findings, rows, figure, [NO_QUERY_IS_LEFT_OUT])


NO_QUERY_IS_LEFT_OUT = f"All queries have {NEIGHBOURS} true neighbours, so that none is left out."


def image_findings(kernel, curves, average, on) -> list[Finding]:
    few, many = (area(curves["BE-AHK", bits], average) for bits in (SHOWN_BITS[0], BITS))
    findings = [
        comparable(kernel, curves, average, on),
        tested(
            f"{on}{KERNELS[kernel]}: BE-AHK finds more with more bits ({SHOWN_BITS[0]} → {BITS:,})",
            f"{text(few)} → {text(many)}",
            [(many, few)],
        ),
    ]
    return findings + (above_angles(kernel, curves, average, on) if kernel == "intersection" else [])


def rank_matters(run: Run, kernel, curves, average, on) -> Finding:
    low, high = (f"KLSH({rank})" for rank in ranks(run))
    above, below = (area(curves[label, BITS], average) for label in (high, low))
    return tested(
        f"{on}{KERNELS[kernel]}: KLSH is sensitive to the rank of kernel PCA: with {BITS:,} bits {high} is above {low} (the paper does not "
        "say which rank is better)",
        f"{text(above)} against {text(below)}",
        [(above, below)],
        in_quick_runs=False,
    )


@experiment(
    "003-fig5",
    "Precision and recall on descriptors with 8,192 bits (SIFT in place of GIST1M)",
    "BE-AHK is comparable with the other schemes.",
    "all of {descriptors}; GIST1M has a million vectors. 100 queries, five repeats.",
    "{descriptors} for GIST1M",
)
def descriptors(run: Run) -> Outcome:
    figure, axes = plt.subplots(2, 2, figsize=(8, 8), constrained_layout=True)
    findings, rows = [], []
    for column, kernel in zip(axes.T, ORDERS):
        curves = retrieval(run, False, kernel)
        rows += curve_rows(curves, kernel=kernel)
        for average, axis in enumerate(column):
            shown = {label: values for (label, b), values in curves.items() if b == BITS}
            plot_curves(axis, shown, average, f"{kernel}, {BITS:,} bits")

        def of_kernel(average, on, kernel=kernel, curves=curves):
            ahead = above_angles(kernel, curves, average, on, check=True) if kernel == "intersection" else []
            return [comparable(kernel, curves, average, on), *ahead]

        findings += by_average(of_kernel)
    axes[0, 0].legend()
    return Outcome(findings, rows, figure, [NO_QUERY_IS_LEFT_OUT])


@experiment(
    "003-fig6",
    "Drift: landmarks from one of ten clusters, images, 8,192 bits",
    "KLSH loses much of its precision. BE-AHK does not change, and is above KLSH.",
    "the first 50,000 images of {images}, 100 queries, five repeats, each with landmarks from another of the five largest "
    "clusters.",
)
def drift(run: Run) -> Outcome:
    figure, axes = plt.subplots(2, 2, figsize=(8, 8), constrained_layout=True)
    findings, rows = [], []
    for column, kernel in zip(axes.T, ORDERS):
        everywhere = retrieval(run, True, kernel)
        drifted, same = retrieval_from_clusters(run, kernel)
        rows += curve_rows({(label, BITS): values for label, values in drifted.items()}, kernel=kernel)
        for average, axis in enumerate(column):
            plot_curves(axis, drifted, average, f"{kernel}, {BITS:,} bits")
        findings.append(computed(f"{KERNELS[kernel]}: BE-AHK does not change", "bit for bit the same" if same else "other codes", same))

        def of_kernel(average, on, kernel=kernel, everywhere=everywhere, drifted=drifted):
            return drift_findings(run, kernel, everywhere, drifted, average, on)

        findings += by_average(of_kernel)
    axes[0, 0].legend()
    return Outcome(findings, rows, figure, [NO_QUERY_IS_LEFT_OUT])


def drift_findings(run: Run, kernel, everywhere, drifted, average, on) -> list[Finding]:
    ahk = area(drifted["BE-AHK"], average)
    findings = []
    for rank in ranks(run):
        label, weak = f"KLSH({rank})", rank == ranks(run)[0]
        before, after = area(everywhere[label, BITS], average), area(drifted[label], average)
        loss, lead = f"{text(before)} → {text(after)}", f"{text(ahk)} against {text(after)}"
        findings += [
            tested(f"{on}{KERNELS[kernel]}: the precision of {label} drops", loss, [(before, after)], in_quick_runs=weak),
            tested(f"{on}{KERNELS[kernel]}: BE-AHK is above {label}", lead, [(ahk, after)], in_quick_runs=weak),
        ]
    return findings


def retrieval_from_clusters(run: Run, kernel) -> tuple[dict[str, np.ndarray], bool]:
    """Curves of BE-AHK and KLSH when only one k-means cluster is there for training; whether BE-AHK's codes change."""
    size = base_size(run, True)
    found: dict[str, list] = {}
    same = True
    for repeat in range(run.repeats):
        now = task(run, True, kernel, repeat, size)
        cluster = one_cluster(now.base, repeat)
        if repeat == 0:
            string = schemes(run, kernel, 1)["BE-AHK"]
            codes = [trained(string, x).encode(now.queries) for x in (now.base, cluster)]
            same = bool(np.array_equal(*codes))
        for rank in ranks(run):
            string = klsh(kernel, rank, min(len(cluster), run.choose(full=1000, quick=100)), seed=repeat + 1)
            found.setdefault(f"KLSH({rank})", []).append(curves_of(trained(string, cluster), now, [BITS])[0])
    ahk = retrieval(run, True, kernel)["BE-AHK", BITS]
    return {"BE-AHK": ahk, **{label: np.array(curves) for label, curves in found.items()}}, same


def one_cluster(base, which):
    """The vectors of one of ten k-means clusters, the largest for which = 0: the smallest can have a single vector."""
    kmeans = faiss.Kmeans(base.shape[1], 10, niter=10, seed=1)
    kmeans.train(base)
    cluster = kmeans.index.search(base, 1)[1][:, 0]
    by_size = np.argsort(-np.bincount(cluster, minlength=10), kind="stable")
    return base[cluster == by_size[which]]


# ---------------------------------------------------------------- the order of the map

ORDER_BITS = (256, 1024, BITS)


@experiment(
    "003-order",
    "Orders of the map, by bits, with structured projections (the library's default)",
    "The paper takes order 3 for χ² and order 10 for intersection.",
    "the first 10,000 vectors of {images} and of {descriptors}, 100 queries, five repeats. Precision is the mean over queries.",
)
def orders_of_the_map(run: Run) -> Outcome:
    figure, axes = plt.subplots(2, 2, figsize=(9, 7), sharex=True, constrained_layout=True)
    findings, rows = [], []
    for row, of_images in zip(axes, (True, False)):
        name = (run.images() if of_images else run.descriptors()).name
        for axis, kernel in zip(row, ORDERS):
            areas = areas_by_order(run, of_images, kernel)
            for order, by_bits in areas.items():
                mean, deviation = mean_and_deviation(by_bits)
                axis.errorbar(ORDER_BITS, mean, deviation, label=f"order {order}", marker="o", ms=3, capsize=2)
                rows += [
                    {"data": name, "kernel": kernel, "order": order, "bits": bits, "mean precision": m, "deviation": s}
                    for bits, m, s in zip(ORDER_BITS, mean, deviation)
                ]
            axis.set(xscale="log", title=f"{name}, {kernel}", xlabel="Bits", ylabel="Mean precision", ylim=(0, 1))
            axis.set_xticks(ORDER_BITS, ORDER_BITS)
            axis.minorticks_off()
            axis.legend()
            findings.append(order_matters(name, kernel, areas))
    return Outcome(findings, rows, figure)


def areas_by_order(run: Run, of_images, kernel) -> dict[int, np.ndarray]:
    """By order: mean precision over queries and levels of recall, repeats x numbers of bits."""
    found: dict[int, list] = {order: [] for order in sorted({1, 2, 3, ORDERS[kernel]})}
    for repeat in range(run.repeats):
        now = task(run, of_images, kernel, repeat, run.choose(full=10000, quick=1000))
        for order, values in found.items():
            strings = [additive(kernel, order, bits, repeat + 1, "structured") for bits in ORDER_BITS]
            curves = [curves_of(trained(string, now.base), now, [bits])[0] for string, bits in zip(strings, ORDER_BITS)]
            values.append(np.mean(curves, axis=2)[:, OVER_QUERIES])
    return {order: np.array(values) for order, values in found.items()}


def order_matters(name, kernel, areas) -> Finding:
    paper = ORDERS[kernel]

    def at(place):
        listed = ", ".join(f"{order}: {text(values[:, place])}" for order, values in areas.items())
        return f"{ORDER_BITS[place]:,} bits, order {listed}"

    return tested(
        f"{name}, {KERNELS[kernel]}: with {BITS:,} bits order {paper} finds more than order 1 (not in the paper)",
        "; ".join(at(place) for place in range(len(ORDER_BITS))),
        [(areas[paper][:, -1], areas[1][:, -1])],
        check=True,
        in_quick_runs=kernel == "intersection",
    )
