# SPDX-License-Identifier: MIT
"""Statements of Kim and Choi on feature maps that have no figure: the corollaries on the explicit map, and equation 3."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from experiments import Outcome, Run, experiment
from findings import Finding, computed, tested, text
from jiang_que_kulis_2015 import KERNELS as NAMES
from kim_choi_additive import angle, spread
from measures import hamming
from vectors import normalised

from faiss_ext import kernel_factory, map_factory

SMOOTH = ("chi2", "js")
KERNELS = (*SMOOTH, "intersection")
ORDERS = (1, 2, 4, 8, 16, 32, 64)
FLOAT32 = 1e-6  # smaller errors, absolute or relative, are rounding


def in_words(kernel: str) -> str:
    return NAMES.get(kernel, kernel)


def mapped(kernel: str, order: int, x) -> np.ndarray:
    return map_factory(x.shape[1], f"HKM{order}({kernel})").apply(x).astype(float)


def error(kernel: str, order: int, x, values) -> float:
    """The largest |K - Psi'Psi| of all pairs."""
    y = mapped(kernel, order, x)
    return float(np.abs(y @ y.T - values).max())


def histograms(run: Run, repeat) -> np.ndarray:
    return run.rng(repeat).dirichlet(np.full(20, 0.5), run.choose(full=300, quick=100)).astype(np.float32)


def errors_by_order(run: Run) -> dict[tuple[str, int], np.ndarray]:
    """By kernel and order, one error for each repeat."""
    out: dict[tuple[str, int], list] = {(kernel, order): [] for kernel in KERNELS for order in ORDERS}
    for repeat in range(run.repeats):
        x = histograms(run, repeat)
        for kernel in KERNELS:
            values = kernel_factory(kernel).gram(x, x)
            for order in ORDERS:
                out[kernel, order].append(error(kernel, order, x, values))
    return {key: np.array(values) for key, values in out.items()}


def squared_norms(keys="") -> dict[str, dict[int, float]]:
    return {kernel: {order: map_factory(2, f"HKM{order}({kernel}{keys})").squared_norm() for order in ORDERS} for kernel in KERNELS}


@experiment(
    "003-corollaries",
    "Corollaries 1 and 2: length and error of the explicit map, by order",
    "The map's length is at most 1 for any period above 2π, and the same for all histograms. Maps of O(d log² 1/δ) dimensions "
    "approximate smooth kernels (χ², JS) to δ. For kernels that are not smooth (intersection), the dimension grows as a power of 1/δ "
    "(footnote 1).",
    "300 random histograms of 20 components, default periods, orders from 1 to 64, 20 repeats. Errors below 0.000001 are left "
    "out, because the maps are float32.",
    repeats=20,
)
def corollaries(run: Run) -> Outcome:
    errors = errors_by_order(run)
    figure, axis = plt.subplots(figsize=(6, 4.5), layout="constrained")
    for kernel in KERNELS:
        orders = [order for order in ORDERS if errors[kernel, order].min() > FLOAT32]
        axis.plot(orders, [errors[kernel, order].mean() for order in orders], "o-", label=kernel)
    axis.set(xlabel="order m of the map (2m + 1 dimensions a component)", ylabel="largest error", xscale="log", yscale="log")
    axis.legend()
    rows = [
        {"kernel": kernel, "order": order, "repeat": repeat, "error": error}
        for (kernel, order), of in errors.items()
        for repeat, error in enumerate(of)
    ]
    return Outcome([*length_findings(histograms(run, 0)), *growth_findings(errors)], rows, figure)


def spread_of_lengths(kernel: str, x) -> float:
    """Between the longest and the shortest map of any order, as a part of the squared length."""
    lengths = [(mapped(kernel, order, x) ** 2).sum(axis=1) for order in ORDERS]
    return float(max(of.max() / of.min() - 1 for of in lengths))


def length_findings(x) -> list[Finding]:
    default, short = squared_norms(), squared_norms(",period=7")
    longest = {kernel: max(of.values()) for kernel, of in short.items()}
    sparse = normalised(np.where(np.arange(len(x))[:, None] % x.shape[1] < np.arange(x.shape[1]), 0, x))  # 1 to 20 components
    spreads = {kernel: spread_of_lengths(kernel, np.concatenate([x, sparse])) for kernel in KERNELS}
    return [
        computed(
            "Corollary 1: ‖Ψ(x)‖² ≤ 1 for any period above 2π",
            "period 7: " + ", ".join(f"{in_words(kernel)} {value:.3f}" for kernel, value in longest.items()),
            max(longest.values()) <= 1,
            "the proof bounds a sum by an integral that is smaller than the sum",
            for_any_data=True,
            in_quick_runs=False,
        ),
        computed(
            "‖Ψ(x)‖² ≤ 1 + 10⁻⁶ with the default periods",
            ", ".join(f"{in_words(kernel)} {min(of.values()):.3f} to {max(of.values()):.6f}" for kernel, of in default.items()),
            max(value for of in default.values() for value in of.values()) <= 1 + 1e-6,
            check=True,
        ),
        computed(
            "The length of the map is the same regardless of the input vector",
            f"largest difference between {2 * len(x)} histograms, half of them with 1 to {x.shape[1]} components above 0, as a part of "
            "‖Ψ(x)‖²: " + ", ".join(f"{in_words(kernel)} {value:.0e}" for kernel, value in spreads.items()),
            max(spreads.values()) < FLOAT32,
            basis="counted",
            for_any_data=True,
        ),
    ]


def growth_findings(errors) -> list[Finding]:
    """If m = O(log² 1/δ), the exponent of m as a power of 1/δ falls, and m / log² 1/δ stays bounded.

    If m is a power of 1/δ, its exponent does not fall to zero, and m / log² 1/δ rises without end.
    """

    def exponents(kernel, orders):
        steps = zip(orders, orders[1:])
        return [np.log(b / a) / np.log(errors[kernel, a] / errors[kernel, b]) for a, b in steps]

    def needed(kernel, order):
        return order / np.log(errors[kernel, order]) ** 2

    def listed(kernel, orders):
        return f"{in_words(kernel)} " + ", ".join(f"{needed(kernel, order).mean():.3f}" for order in orders)

    few = (1, 2, 4, 8, 16)  # beyond these the error of the smooth kernels is rounding
    smooth = {kernel: exponents(kernel, few) for kernel in SMOOTH}
    rough = exponents("intersection", (1, 4, 16, 64))
    return [
        tested(
            "Corollary 2: for smooth kernels m = O(log² 1/δ): m / log²(1/δ) stops rising, and the exponent of m as a power of 1/δ falls "
            "with every order (the corollary gives no constant)",
            f"m / log²(1/δ) at orders {', '.join(map(str, few))}: "
            + "; ".join(listed(kernel, few) for kernel in SMOOTH)
            + "; exponent between these orders: "
            + "; ".join(f"{in_words(kernel)} {', '.join(text(e) for e in of)}" for kernel, of in smooth.items()),
            [pair for of in smooth.values() for pair in zip(of, of[1:])]
            + [(needed(kernel, few[-2]), needed(kernel, few[-1])) for kernel in SMOOTH],
            for_any_data=True,
            in_quick_runs=False,  # the last step of JS needs 20 repeats
        ),
        tested(
            f"Footnote 1: for intersection more is needed: m / log²(1/δ) keeps rising, with every order to {ORDERS[-1]}",
            listed("intersection", ORDERS),
            [(needed("intersection", b), needed("intersection", a)) for a, b in zip(ORDERS, ORDERS[1:])],
            for_any_data=True,
        ),
        tested(
            "Footnote 1: for intersection m = O(δ^(−1/(c−1))) with a constant c > 1: the exponent does not rise with the order",
            "exponent between orders 1, 4, 16 and 64: " + ", ".join(text(e) for e in rough),
            list(zip(rough, rough[1:])),
            for_any_data=True,
        ),
    ]


# ---------------------------------------------------------------- equation 3


@experiment(
    "003-equation3",
    "Equation 3 as printed, without Θ^(−1/2)",
    "KLSH's feature map is φ(x) = U'(k(x₁, x), …, k(x_m, x)), with the leading eigenvectors U of the Gram matrix.",
    "the points, landmarks and bits of Figure 1; landmarks from the whole domain, all eigenvalues above 10⁻⁷ of the largest, 20 "
    "repeats. The paper has no such experiment.",
    repeats=20,
)
def equation_3(run: Run) -> Outcome:
    n, landmarks, bits = run.choose(full=2000, quick=400), run.choose(full=1000, quick=100), 1024
    kernel = kernel_factory("chi2")
    forms = {"as printed": 0.0, "with Θ^(−1/2)": -0.5}
    found: dict[str, list[tuple]] = {form: [] for form in forms}
    figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True, layout="constrained")
    for repeat in range(run.repeats):
        rng = run.rng(repeat)
        x, chosen = (normalised(np.abs(rng.normal(size=(size, 2)))) for size in (n, landmarks))
        pair = np.triu_indices(n, 1)
        value = kernel.gram(x, x)[pair]
        values, vectors = np.linalg.eigh(kernel.gram(chosen, chosen).astype(float))
        kept = values > 1e-7 * values[-1]
        planes = rng.standard_normal((kept.sum(), bits))
        for axis, (form, power) in zip(axes, forms.items()):
            margins = kernel.gram(x, chosen) @ (vectors[:, kept] * values[kept] ** power @ planes)
            codes = np.packbits(margins >= 0, axis=1)
            distance = hamming(codes, codes)[pair] / bits
            found[form].append((off_by(distance, value), spread(value, distance) / distance.std()))
            if repeat == 0:
                shown = rng.choice(len(value), 5000)
                axis.plot(value[shown], distance[shown], "k.", ms=1)
                axis.set(title=form, xlabel="chi2 kernel", ylabel="Normalised Hamming distance")
    (printed, printed_spread), (scaled, scaled_spread) = (np.transpose(found[form]) for form in forms)
    return Outcome(
        [
            tested(
                "codes of the map as printed estimate the angle acos(K)/π less well than with Θ^(−1/2), which makes inner products "
                "of features those of kernel PCA",
                f"root mean square deviation {text(printed)} against {text(scaled)}",
                [(printed, scaled)],
                check=True,
            ),
            tested(
                "at equal kernel value, distances of the map as printed scatter more, in units of their own standard deviation",
                f"{text(printed_spread)} against {text(scaled_spread)}",
                [(printed_spread, scaled_spread)],
                check=True,
                in_quick_runs=False,
            ),
        ],
        [{"form": form, "off acos(K)/pi": off, "scatter": part} for form, of in found.items() for off, part in of],
        figure,
    )


def off_by(distance, value) -> float:
    return float(np.sqrt(np.mean((distance - angle(value)) ** 2)))
