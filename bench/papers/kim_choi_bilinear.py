# SPDX-License-Identifier: MIT
"""Experiments of Kim and Choi, Bilinear random projections for locality-sensitive binary codes.

The paper's form of the scheme is w=dense,shuffle=0. Numbers of bits are multiples of 8 here: 904 for the paper's 900.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import vectors
from experiments import Outcome, Run, experiment
from findings import Finding, cannot_be_tried, computed, interval, mean_and_deviation, tested, text
from measures import AVERAGES, MAX_TRUE_NEIGHBOURS, hamming, precision_recall, radius_truth, without_neighbours
from scipy import ndimage, stats
from vectors import Dataset, datasets

import faiss
from faiss_ext import BilinearShiftInvariantHash, kernel_hash_factory, timing

PAPER_FORM = "w=dense,shuffle=0"
NORM = 0.8  # of the matrices in lemma 1
EXPONENT = 0.79
LARGEST_SHARE = 0.28  # of the largest eigenvalue in the sum of the others, at most, in lemma 1
LEVELS = np.linspace(0.05, 1, 20)  # of recall
ERROR = 1e-3  # probability that a bound of Hoeffding's fails


# ---------------------------------------------------------------- pairs of matrices


class Pairs(NamedTuple):
    """Pairs of square matrices as rows, all of norm 0.8, and what the theory knows of their differences."""

    x: np.ndarray
    y: np.ndarray
    eigenvalues: np.ndarray  # of (X - Y)(X - Y)', pairs x side, falling
    gaussian: np.ndarray  # the Gaussian kernel

    @property
    def meets_conditions(self):
        """Of lemma 1, for each pair."""
        largest = self.eigenvalues[:, 0]
        return largest <= LARGEST_SHARE * (self.eigenvalues.sum(axis=1) - largest)


def as_pairs(x, y, side) -> Pairs:
    x, y = x.astype(np.float32), y.astype(np.float32)
    difference = (x.astype(float) - y).reshape(-1, side, side)
    eigenvalues = np.linalg.svd(difference, compute_uv=False) ** 2
    return Pairs(x, y, eigenvalues, np.exp(-eigenvalues.sum(axis=1) / 2))


def uniform_pairs(side, n, rng) -> Pairs:
    """Entries uniform on [-1, 1]; angles between X and Y are spread evenly, so that all kernel values occur."""
    x, z = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in rng.uniform(-1, 1, (2, n, side * side)))
    z -= (x * z).sum(axis=1, keepdims=True) * x
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    angle = np.linspace(0.02, np.pi, n)[:, None]
    return as_pairs(NORM * x, NORM * (np.cos(angle) * x + np.sin(angle) * z), side)


def diagonal(shares, side) -> np.ndarray:
    """A matrix of norm 1 as a row, whose squared entries on the diagonal are these shares, and else zero."""
    return np.diag(np.sqrt([*shares, *np.zeros(side - len(shares))])).ravel()


def diagonal_pairs(shares, n, side) -> Pairs:
    """Y = -X; the eigenvalues of the difference have these shares in their sum, which grows up to what the norm allows."""
    x = NORM * np.linspace(0.1, 1, n)[:, None] * diagonal(shares, side)
    return as_pairs(x, -x, side)


RANK_ONE = [1.0]
FIVE_EQUAL = [0.2] * 5
# the most uneven spectrum that lemma 1 allows, up to rounding
MOST_UNEVEN = [LARGEST_SHARE / (1 + LARGEST_SHARE) - 1e-6] * 4
MOST_UNEVEN.append(1 - sum(MOST_UNEVEN))


def bilinear_hash(side, bits, m, seed) -> BilinearShiftInvariantHash:
    return kernel_hash_factory(side * side, f"BSIK{bits}({side}x{side},m={m},gamma=1,{PAPER_FORM},seed={seed})")


def bilinear_kernels(pairs: Pairs, factor=1) -> np.ndarray:
    """k_b of each pair, multiplied by a factor; by the library."""
    h = bilinear_hash(pairs.eigenvalues.shape[1], 8, 1, 1)
    return np.array([h.bilinear_kernel(factor * x, factor * y) for x, y in zip(pairs.x, pairs.y)])


def expected_shares(pairs: Pairs) -> np.ndarray:
    """The probability that a bit differs, by the library."""
    h = bilinear_hash(pairs.eigenvalues.shape[1], 8, 1, 1)
    return np.array([h.expected_hamming_of_pair(x, y) for x, y in zip(pairs.x, pairs.y)]) / 8


def differing_bits(h, pairs: Pairs) -> np.ndarray:
    """pairs x bits, bool"""
    return np.unpackbits(h.encode(pairs.x) ^ h.encode(pairs.y), axis=1, bitorder="little").astype(bool)


def ends(h) -> tuple[np.ndarray, np.ndarray]:
    """Which w and which v each bit has."""
    return faiss.vector_to_array(h.projection.pair_w), faiss.vector_to_array(h.projection.pair_v)


# ---------------------------------------------------------------- Figures 2 to 4: theory


def feature_products(pairs: Pairs, count, rng) -> np.ndarray:
    """The mean of phi(X) phi(Y) over `count` triples (w, v, b), others for each pair; equation 9."""
    side = pairs.eigenvalues.shape[1]
    out = []
    for x, y in zip(pairs.x, pairs.y):
        w, v = rng.standard_normal((2, count, side), dtype=np.float32)
        b = rng.uniform(0, 2 * np.pi, count)
        phi_x, phi_y = (np.cos(((w @ z.reshape(side, side)) * v).sum(axis=1) + b) for z in (x, y))
        out.append(2 * (phi_x * phi_y).mean())
    return np.array(out)


FACTORS = (1, 2, 3, 5, 10)  # of matrices, for property 2


@experiment(
    "004-fig2",
    "Products of bilinear random Fourier features between their bounds",
    "The features' inner product estimates k_b, which lies between the Gaussian kernel k_g and k_g^0.79 (lemma 1). For large matrices "
    "the upper bound is satisfied.",
    "150 pairs of each size. The entries of X are uniform, scaled to the norm 0.8, as in the paper. Y is turned against X by angles that "
    "are spread evenly, so that all kernel values occur; the paper does not say how it chose pairs.",
)
def feature_bounds(run: Run) -> Outcome:
    n, count = run.choose(full=150, quick=40), run.choose(full=10000, quick=4000)
    figure, axes = plt.subplots(1, 4, figsize=(15, 4), sharey=True, layout="constrained")
    rows, above, estimates_above, meeting, errors = [], {}, {}, {}, []
    below = inside = 0
    by_factor = []  # k_b of all pairs, FACTORS x pairs
    for side, axis in zip((4, 8, 15, 25), axes):
        pairs = uniform_pairs(side, n, run.rng(side))
        kernels = np.array([bilinear_kernels(pairs, factor) for factor in FACTORS])
        exact, estimate = kernels[0], feature_products(pairs, count, run.rng(side))
        by_factor.append(kernels)
        upper, meets = pairs.gaussian**EXPONENT, pairs.meets_conditions
        above[side], estimates_above[side] = int((exact > upper).sum()), int((estimate > upper).sum())
        below += int((exact < pairs.gaussian - 1e-6).sum())
        meeting[side] = int(meets.sum())
        inside += int(((pairs.gaussian - 1e-6 <= exact) & (exact <= upper))[meets].sum())
        errors += list(estimate - exact)
        for values in zip(pairs.gaussian, exact, estimate, meets):
            rows.append({"side": side, **dict(zip(("k_g", "k_b", "estimate", "meets conditions"), map(float, values)))})
        order = np.argsort(pairs.gaussian)
        axis.plot(pairs.gaussian, estimate, "r.", label="bilinear RFF")
        axis.plot(pairs.gaussian[order], exact[order], "0.6", lw=1, label="k_b")
        axis.plot(pairs.gaussian[order], pairs.gaussian[order], "b", label="k_g")
        axis.plot(pairs.gaussian[order], upper[order], "k", label="k_g$^{0.79}$")
        axis.set(title=f"{side}-by-{side} matrix", xlabel="Gaussian kernel")
    axes[0].set_ylabel("inner product of features")
    axes[0].legend()
    # a product is between -2 and 2
    margin = 4 * np.sqrt(np.log(2 / ERROR) / (2 * count * len(errors)))
    margin_of_one = 4 * np.sqrt(np.log(2 * len(errors) / ERROR) / (2 * count))
    by_factor = np.concatenate(by_factor, axis=1)

    def of_sizes(counts, sides):
        return ", ".join(f"{counts[side]} at {side} x {side}" for side in sides)

    return Outcome(
        [
            computed(
                f"E φ(X) φ(Y) = k_b, the product of (1 + λ_j)^(−1/2) (eq. 10): means of {count:,} products, each"
                f" within {margin_of_one:.3f} of k_b, their mean within {margin:.4f} (Hoeffding)",
                f"largest deviation {np.abs(errors).max():.3f}, mean deviation {np.mean(errors):.4f}",
                np.abs(errors).max() < margin_of_one and abs(np.mean(errors)) < margin,
                basis="bound",
                for_any_data=True,
            ),
            computed(
                f"Lemma 1: k_g ≤ k_b ≤ k_g^0.79 if the norms are at most {NORM} and λ_1 ≤ {LARGEST_SHARE} Σ λ_i of the others",
                f"{inside} of {sum(meeting.values())} pairs that meet the conditions ({of_sizes(meeting, meeting)}); k_g ≤ k_b in"
                f" {4 * n - below} of all {4 * n} pairs",
                inside == sum(meeting.values()) > 0 and below == 0,
                basis="counted",
                for_any_data=True,
            ),
            computed(
                "Property 1: 0 ≤ k_b ≤ 1",
                f"{by_factor.min():.2g} to {by_factor.max():.3f}, at X − Y and {', '.join(map(str, FACTORS[1:]))} times X − Y",
                by_factor.min() >= 0 and by_factor.max() <= 1,
                basis="counted",
                for_any_data=True,
            ),
            computed(
                "Property 2: k_b(mX − mY) ≤ k_b(X − Y) for positive integers m",
                f"in {(by_factor[1:] <= by_factor[0]).sum():,} of {by_factor[1:].size:,} cases: all pairs, m = "
                + ", ".join(map(str, FACTORS[1:])),
                bool((by_factor[1:] <= by_factor[0]).all()),
                basis="counted",
                for_any_data=True,
            ),
            computed(
                "The upper bound is satisfied for matrices of high dimension, (c) and (d)",
                f"k_b above it, of {n} pairs each: {of_sizes(above, (15, 25))} (but {of_sizes(above, (4, 8))}); estimates, which deviate "
                f"by chance: {of_sizes(estimates_above, (15, 25))}",
                above[15] == above[25] == 0,
                basis="counted",
            ),
        ],
        rows,
        figure,
    )


NO_CONDITION = (
    "the theorem rests on lemma 1, whose condition on the eigenvalues a difference of rank one does not meet; the theorem omits that "
    "condition"
)


def lower_bound(kernel, exponent=EXPONENT) -> np.ndarray:
    """Of the expected Hamming distance (theorem 2), with the exponent 1 that of a single projection (theorem 1)."""
    return 4 / np.pi**2 * (1 - kernel**exponent)


def upper_bound(kernel) -> np.ndarray:
    return np.minimum(np.sqrt(1 - kernel) / 2, 4 / np.pi**2 * (1 - 2 / 3 * kernel))


@experiment(
    "004-fig3",
    "Bounds on the expected Hamming distance",
    "Bilinear projections have the same upper bound as a single one, and a slightly worse lower bound.",
    "the bounds by their formulas, 200 pairs of 25 x 25 matrices as in Figure 2, and 20 pairs whose differences have rank one.",
)
def hamming_bounds(run: Run) -> Outcome:
    side, bits, m = 25, 10000, 100
    groups = {
        "25 x 25, uniform": uniform_pairs(side, run.choose(full=200, quick=40), run.rng()),
        "rank one": diagonal_pairs(RANK_ONE, 20, side),
    }
    pairs = Pairs(*map(np.concatenate, zip(*groups.values())))
    names = np.repeat(list(groups), [len(p.x) for p in groups.values()])
    expected = expected_shares(pairs)
    shares, sharing = [], 0
    for repeat in range(run.repeats):
        h = bilinear_hash(side, bits, m, 1 + repeat)
        shares.append(differing_bits(h, pairs).mean(axis=1))
        sharing = max(sharing, *(np.bincount(p).max() for p in ends(h)))
    measured, deviation = mean_and_deviation(shares)
    # the bits are the edges of a bipartite graph: as many colours as one w or v has bits make all of a colour independent
    margin = np.sqrt(sharing * np.log(2 * len(measured) / ERROR) / (2 * bits * run.repeats))
    meets = pairs.meets_conditions
    low, high = lower_bound(pairs.gaussian), upper_bound(pairs.gaussian)
    inside = (low <= expected) & (expected <= high)
    worst = int(np.argmax(low - expected))
    u = np.linspace(0, 1, 201)
    worse = (lower_bound(u, exponent=1) - lower_bound(u)).max()
    alone = kernel_hash_factory(side * side, single(1, 1, bits))
    off = max(abs(alone.hamming_bounds(v)[1] / bits - upper_bound(v)) for v in u)
    figure, axis = plt.subplots(figsize=(6, 5), layout="constrained")
    axis.plot(u, upper_bound(u), "b", label="upper bound (both)")
    axis.plot(u, lower_bound(u), "r", label="lower bound, bilinear")
    axis.plot(u, lower_bound(u, exponent=1), "k--", label="lower bound, single")
    for name, colour in zip(groups, ("0.6", "tab:orange")):
        of = names == name
        axis.errorbar(pairs.gaussian[of], measured[of], deviation[of], fmt=".", color=colour, ms=3, label=f"codes, {name}")
    axis.set(xlabel="Gaussian kernel", ylabel="expected Hamming distance", xlim=(0, 1), ylim=(0, 0.45))
    axis.legend()
    return Outcome(
        [
            computed(
                f"Lemma 2, the expected distance as a series in k_b: codes differ in this share of bits, within {margin:.3f} (Hoeffding,"
                f" for {run.repeats} codes of {bits:,} bits, of which at most {sharing} share a w or a v)",
                f"largest deviation {np.abs(measured - expected).max():.4f}",
                np.abs(measured - expected).max() < margin,
                basis="bound",
                for_any_data=True,
            ),
            computed(
                "Theorem 2: the expected distance is between the bounds (for pairs that meet the conditions of lemma 1)",
                f"{inside[meets].sum()} of {meets.sum()} pairs",
                inside[meets].all() and meets.any(),
                basis="counted",
                for_any_data=True,
            ),
            computed(
                "Theorem 2: the expected distance is between the bounds for any two points (the theorem states no condition)",
                f"{names[worst]} at k_g = {pairs.gaussian[worst]:.3f}: expected distance {expected[worst]:.3f}, measured"
                f" {measured[worst]:.3f}, lower bound {low[worst]:.3f}",
                inside.all(),
                NO_CONDITION,
                for_any_data=True,
                in_quick_runs=False,
            ),
            computed(
                "The upper bound is the same as that of a single projection",
                f"the expected distances of {(expected <= high).sum()} of {len(expected)} pairs, rank one included, are below it; the"
                f" library's bound for SIK differs from it by {off:.0e} at most",
                off < 1e-6 and (expected <= high).all(),
                basis="counted",
                for_any_data=True,
            ),
            computed(
                "The lower bound is worse than that of a single projection (the paper: slightly)",
                f"by {worse:.3f} at most",
                worse > 0,
                for_any_data=True,
            ),
        ],
        [
            dict(zip(("pairs", "k_g", "expected", "measured", "meets conditions"), (name, *map(float, v))))
            for name, *v in zip(names, pairs.gaussian, expected, measured, meets)
        ],
        figure,
    )


def covariances_by_lemma_5(pairs: Pairs) -> np.ndarray:
    """Of two bits that share a w: exact, by the library."""
    h = bilinear_hash(pairs.eigenvalues.shape[1], 8, 1, 1)
    return np.array([h.covariance_of_pair(x, y) for x, y in zip(pairs.x, pairs.y)])


class Covariances(NamedTuple):
    """Of the bits of codes, measured: repeats x pairs."""

    sharing: np.ndarray  # of two bits that share a w
    apart: np.ndarray  # of two bits that share neither w nor v


def products_within(group, centred) -> tuple[np.ndarray, int]:
    """Products of two bits of the same group: their sum for each row of `centred`, and their number. Pairs are ordered."""
    count = np.bincount(group)
    sums = np.array([np.bincount(group, row) for row in centred])
    return (sums**2).sum(axis=1) - (centred**2).sum(axis=1), int((count * (count - 1)).sum())


def measured_covariances(side, pairs: Pairs, bits, repeats) -> Covariances:
    """Around their expectation of lemma 2."""
    mean = expected_shares(pairs)
    sharing, apart = [], []
    for repeat in range(repeats):
        h = bilinear_hash(side, bits, 1, 1 + repeat)
        centred = differing_bits(h, pairs) - mean[:, None]
        w, v = ends(h)
        (of_w, n_w), (of_v, n_v), (of_all, n) = (products_within(group, centred) for group in (w, v, np.zeros_like(w)))
        sharing.append(of_w / n_w)
        apart.append((of_all - of_w - of_v) / (n - n_w - n_v))  # no two bits share both
    return Covariances(np.array(sharing), np.array(apart))


def at_kernel_values(values, shares, side) -> tuple[np.ndarray, np.ndarray]:
    """Covariance and correlation of two bits that share a w, at values of the Gaussian kernel, for such eigenvalues: lemmas 2 and 5."""
    x = np.sqrt(-2 * np.log(values))[:, None] * diagonal(shares, side)
    pairs = as_pairs(x, np.zeros_like(x), side)
    covariance, share = covariances_by_lemma_5(pairs), expected_shares(pairs)
    return covariance, covariance / (share * (1 - share))


SIMILAR = np.array([0.9, 0.99, 0.999, 0.9999])  # kernel values of ever more similar vectors


def goes_to_zero(values) -> bool:
    """Of values at SIMILAR, which near k_g = 1 tenfold at each step: they fall by factors that do not shrink, up to 5 %.

    If they went to a limit above zero, the factors would go to 1.
    """
    factors = values[:-1] / values[1:]
    return bool(factors.min() > 1 and (factors[1:] > 0.95 * factors[:-1]).all())


def of_similar(side) -> Finding:
    bound = np.array([BilinearShiftInvariantHash.covariance_bound(u) for u in SIMILAR])
    (few, correlation_of_few), (one, correlation_of_one) = (at_kernel_values(SIMILAR, s, side) for s in (FIVE_EQUAL, RANK_ONE))
    quotient = bound / (one / correlation_of_one)

    def listed(values):
        return ", ".join(f"{value:.2g}" for value in values)

    return computed(
        "For highly similar vectors (k_g ≈ 1) the covariance of two bits that share a projection is nearly zero, indicating that "
        "there is no correlation",
        f"at k_g = {', '.join(map(str, SIMILAR))}: bound {listed(bound)}; exact covariance (lemma 5) of rank one {listed(one)}, of five "
        f"equal eigenvalues {listed(few)}; their correlation {listed(correlation_of_one)} and {listed(correlation_of_few)}. The bound "
        f"alone does not show it: divided by the variance of a bit (rank one) it is {listed(quotient)}",
        all(map(goes_to_zero, (bound, few, one, correlation_of_few, correlation_of_one))),
        for_any_data=True,
    )


def of_others(side) -> Finding:
    """Between the extremes."""
    values = np.array([1e-4, *np.linspace(0.02, 0.98, 49), 0.9999])
    bound = np.array([BilinearShiftInvariantHash.covariance_bound(u) for u in values])
    covariance, correlation = at_kernel_values(values, FIVE_EQUAL, side)

    def peak(of, name):
        at = int(np.argmax(of))
        return f"{name} {of[at]:.3g} at {values[at]:.2f}, {of[0]:.1g} at {values[0]} and {of[-1]:.1g} at {values[-1]}"

    return computed(
        "Points that are not highly similar or dissimilar have an unfavourable correlation",
        "five equal eigenvalues, by k_g: "
        + "; ".join(peak(*of) for of in ((bound, "bound"), (covariance, "covariance"), (correlation, "correlation"))),
        all(of[1:-1].max() > max(of[0], of[-1]) for of in (bound, covariance, correlation)),
        for_any_data=True,
    )


@experiment(
    "004-fig4",
    "Covariance of two bits that share a projection",
    "The covariance has a small upper bound (theorem 3). It is nearly 0 for highly similar vectors, and larger in between. Bits that "
    "share no projection are independent.",
    "the paper's figure shows only the bound. We also compute the exact covariance, and measure the covariance of the bits of "
    "codes.",
)
def covariances(run: Run) -> Outcome:
    side, repeats = 25, run.choose(full=200, quick=60)
    n = run.choose(full=12, quick=6)
    groups = {
        "25 x 25, uniform": uniform_pairs(side, n, run.rng()),
        "5 equal eigenvalues": diagonal_pairs(FIVE_EQUAL, n, side),
        "the most uneven that lemma 1 allows": diagonal_pairs(MOST_UNEVEN, n, side),
        "rank one": diagonal_pairs(RANK_ONE, n, side),
    }
    u = np.linspace(0.001, 1, 400)
    bound = np.array([BilinearShiftInvariantHash.covariance_bound(float(v)) for v in u])
    figure, axis = plt.subplots(figsize=(6, 5), layout="constrained")
    axis.plot(u, bound, "k", label="upper bound (theorem 3)")
    axis.set(xlabel="Gaussian kernel", ylabel="covariance", xlim=(0, 1))
    rows, scores, apart_scores, apart_errors, of_all = [], [], [], [], []
    for (name, pairs), colour in zip(groups.items(), ("tab:blue", "tab:green", "tab:orange", "tab:red")):
        exact = covariances_by_lemma_5(pairs)
        measured = measured_covariances(side, pairs, 10000, repeats)
        (sharing, error), (apart, apart_error) = (
            (mean, deviation / np.sqrt(repeats)) for mean, deviation in map(mean_and_deviation, measured)
        )
        limit = np.array([BilinearShiftInvariantHash.covariance_bound(float(v)) for v in pairs.gaussian])
        scores += list((sharing - exact) / error)
        apart_scores += list(apart / apart_error)
        apart_errors += list(apart_error)
        of_all += list(zip(exact, limit, pairs.gaussian, pairs.meets_conditions))
        axis.plot(pairs.gaussian, exact, color=colour, label=f"{name}, lemma 5")
        axis.errorbar(pairs.gaussian, sharing, error, fmt=".", color=colour)
        names = ("k_g", "lemma 5", "codes", "standard error", "bound", "codes, no shared projection", "its standard error")
        rows += [
            {"pairs": name, **dict(zip(names, map(float, v)))}
            for v in zip(pairs.gaussian, exact, sharing, error, limit, apart, apart_error)
        ]
    axis.set_ylim(top=0.024)
    axis.legend()
    critical = stats.t.ppf(1 - ERROR / 2 / len(scores), repeats - 1)
    exact, limit, gaussian, meets = np.transpose(of_all)
    meets = meets.astype(bool)
    worst, nearest = int(np.argmax(exact - limit)), int(np.argmax(np.where(meets, exact / limit, 0)))
    return Outcome(
        [
            of_similar(side),
            of_others(side),
            computed(
                f"Bits that share neither w nor v are independent: their covariance is within {critical:.1f} standard errors of 0",
                f"largest deviation {np.abs(apart_scores).max():.1f} standard errors, of {len(apart_scores)} pairs; a standard error is at"
                f" most {max(apart_errors):.1g}",
                np.abs(apart_scores).max() < critical,
                basis="t tests of all pairs together",
                for_any_data=True,
            ),
            computed(
                f"Lemma 5: bits that share a w covary as it says, within {critical:.1f} standard errors",
                f"largest deviation {np.abs(scores).max():.1f} standard errors, of {len(scores)} pairs",
                np.abs(scores).max() < critical,
                basis="t tests of all pairs together",
                for_any_data=True,
            ),
            computed(
                "Theorem 3: the covariance is below the bound (for differences that meet the conditions of lemma 1)",
                f"{(exact <= limit)[meets].sum()} of {meets.sum()} pairs; the nearest is {exact[nearest]:.5f}, its bound"
                f" {limit[nearest]:.5f}",
                bool((exact <= limit)[meets].all() and meets.any()),
                basis="counted",
                for_any_data=True,
            ),
            computed(
                "Theorem 3: the covariance is below the bound for any two points (the theorem states no condition)",
                f"rank one at k_g = {gaussian[worst]:.3f}: covariance {exact[worst]:.4f}, bound {limit[worst]:.4f}",
                bool((exact <= limit).all()),
                NO_CONDITION,
                for_any_data=True,
                in_quick_runs=False,
            ),
            computed(
                "Corollary 1 of the supplement: the covariance is not below the negative of the bound",
                f"all {len(exact)} pairs; the lowest covariance is {exact.min():.1g}",
                bool((exact >= -limit).all()),
                basis="counted",
                for_any_data=True,
            ),
        ],
        rows,
        figure,
    )


# ---------------------------------------------------------------- precision and recall


def single(gamma, seed, bits) -> str:
    return f"SIK{bits}(gaussian,gamma={gamma},proj=dense,seed={seed})"


def bilinear(gamma, seed, bits, m, form=PAPER_FORM) -> str:
    return f"BSIK{bits}(m={m},gamma={gamma},{form},seed={seed})"


class Search:
    """One repeat of the protocol: 300 queries drawn from all vectors, the others as base, and the bandwidth.

    Queries with too many true neighbours are left out, as in the paper.
    """

    def __init__(self, run: Run, data: Dataset, repeat: int):
        pool = np.concatenate([data.base, data.queries])
        drawn = run.rng(repeat).permutation(len(pool))
        queries, self.base = pool[drawn[:300]], pool[np.sort(drawn[300:])]
        truth = radius_truth(self.base, queries)
        kept = ~truth.too_many
        self.queries, self.true = queries[kept], truth.true[kept]
        self.gamma, self.seed = 1 / truth.radius**2, 1 + repeat
        self.counts = int((~kept).sum()), without_neighbours(self.true)  # left out, without neighbours

    def curve(self, codes, bits=None) -> np.ndarray:
        """Precision by the first bits of the codes of base and queries: averages x LEVELS."""
        base, queries = (np.ascontiguousarray(c[:, : bits and bits // 8]) for c in codes)
        return precision_recall(hamming(queries, base), self.true, LEVELS)

    def encode(self, scheme, *args):
        h = kernel_hash_factory(self.base.shape[1], scheme(self.gamma, self.seed, *args))
        return h.encode(self.base), h.encode(self.queries)


SINGLE = "single"
STRUCTURED = "structured"
DEFAULT = "structured, shuffled"  # the default form
OTHER_FORMS = {STRUCTURED: "w=structured,shuffle=0", DEFAULT: "w=structured,shuffle=1"}
Curves = dict[tuple[str, int], list[np.ndarray]]  # by scheme and number of bits, one a repeat: averages x LEVELS


def queries_note(searches: list[tuple[int, int]]) -> str:
    """`searches`: for each repeat, the queries left out and those without neighbours."""
    many, none = np.mean(searches, axis=0)
    have = "has" if round(none) == 1 else "have"
    return (
        f"Of 300 queries, {many:.0f} have more than {MAX_TRUE_NEIGHBOURS:,} true neighbours and are left out, as in the paper; "
        f"{none:.0f} {have} none (means of {len(searches)} repeats)."
    )


def name_of(m, form="") -> str:
    return f"bilinear, {form}{', ' if form else ''}m = {m}"


def curves_by_m(run: Run, data: Dataset, all_bits, repeats, others) -> tuple[Curves, str]:
    """A single projection and bilinear ones of m = 1, 5 and 10 in the paper's form; others as pairs (m, form). And a note."""
    curves: Curves = {}
    counts = []
    for repeat in range(repeats):
        search = Search(run, data, repeat)
        counts.append(search.counts)
        codes = search.encode(single, max(all_bits))  # shorter codes are its beginning
        for bits in all_bits:
            curves.setdefault((SINGLE, bits), []).append(search.curve(codes, bits))
            for m in (1, 5, 10):
                curves.setdefault((name_of(m), bits), []).append(search.curve(search.encode(bilinear, bits, m)))
            for m, form in others:
                codes_of_form = search.encode(bilinear, bits, m, OTHER_FORMS[form])
                curves.setdefault((name_of(m, form), bits), []).append(search.curve(codes_of_form))
    return curves, queries_note(counts)


def mean_precision(curves: Curves, average: int, *key) -> np.ndarray:
    """Over the levels of recall, by repeat."""
    return np.mean(np.array(curves[key])[:, average], axis=1)


def draw_curve(axis, curve, average, label, **style):
    mean, deviation = mean_and_deviation(np.array(curve)[:, average])
    axis.errorbar(LEVELS, mean, deviation, label=label, capsize=2, lw=1, **style)


def panels(lines_by_average: int, columns):
    """A grid of axes, averages x lines x columns."""
    lines = lines_by_average * len(AVERAGES)
    size = (4 * columns, 3.6 * lines)
    figure, axes = plt.subplots(
        lines, columns, figsize=size, sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    for axis in axes.flat:
        axis.set(xlim=(0, 1.02), ylim=(0, 1.02))
    for axis in axes[-1]:
        axis.set_xlabel("recall")
    axes = axes.reshape(len(AVERAGES), lines_by_average, columns)
    for name, of_average in zip(AVERAGES, axes):
        for axis in of_average[:, 0]:
            axis.set_ylabel(f"precision, {name}")
    return figure, axes


def figure_by_m(curves: Curves, all_bits, labels):
    figure, axes = panels(1, len(all_bits))
    for average, row in enumerate(axes[:, 0]):
        for axis, bits in zip(row, all_bits):
            for label, colour in zip(labels, ("k", "tab:green", "tab:blue", "tab:red", "tab:orange")):
                draw_curve(axis, curves[label, bits], average, label, color=colour, ls="--" if DEFAULT in label else "-")
            axis.set_title(f"{bits:,} bits")
    axes[0, 0, -1].legend(loc="lower left")
    return figure


def curve_rows(curves: Curves, **more):
    for (label, bits), values in curves.items():
        for average, means, deviations in zip(AVERAGES, *mean_and_deviation(values)):
            for level, mean, deviation in zip(LEVELS, means, deviations):
                yield {**more, "scheme": label, "bits": bits, "average": average, "recall": float(level),
                       "precision": float(mean), "deviation": float(deviation)}  # fmt: skip


def findings_on_m(curves: Curves, all_bits, in_quick_runs=True) -> list[Finding]:
    return [
        finding
        for average, name in enumerate(AVERAGES)
        for finding in findings_of_average(curves, average, all_bits, f"{name}: ", in_quick_runs)
    ]


def fewer_share(all_bits) -> Finding:
    def share(bits, m) -> float:
        """Of the pairs of bits, how many share a w or a v; the side of the matrices does not matter."""
        counts = map(np.bincount, ends(bilinear_hash(8, bits, m, 1)))
        return sum((c * (c - 1)).sum() for c in counts) / (bits * (bits - 1))

    shares = np.array([[share(bits, m) for m in (1, 5, 10)] for bits in all_bits])
    return computed(
        "a larger m reduces the correlation: fewer pairs of bits share a w or a v, and only such bits depend on each other",
        "part of the pairs with m = 1, 5 and 10 at "
        + "; ".join(f"{bits:,} bits: {', '.join(f'{s:.2%}' for s in of)}" for bits, of in zip(all_bits, shares)),
        bool((np.diff(shares) < 0).all()),
        basis="counted",
        for_any_data=True,
    )


def findings_of_average(curves: Curves, average, all_bits, on, in_quick_runs) -> list[Finding]:
    one, five, ten = ({bits: mean_precision(curves, average, name_of(m), bits) for bits in all_bits} for m in (1, 5, 10))
    alone = {bits: mean_precision(curves, average, SINGLE, bits) for bits in all_bits}

    def each(*schemes):
        return "; ".join(f"{bits:,} bits: {', '.join(text(s[bits]) for s in schemes)}" for bits in all_bits)

    def gains(a, b):
        return "; ".join(f"{bits:,} bits: {interval(a[bits], b[bits])}" for bits in all_bits)

    comparable = cannot_be_tried(
        f"{on}bilinear projections are comparable to a single one",
        "precision of m = 5 divided by the single one's: "
        + "; ".join(f"{bits:,} bits: {text(five[bits] / alone[bits])}" for bits in all_bits),
        "the paper does not say which difference is comparable",
    )
    return [
        tested(
            f"{on}a larger m helps: m = 5 is more precise than m = 1, at every number of bits",
            f"mean precision of m = 1 and m = 5 at {each(one, five)}",
            [(five[bits], one[bits]) for bits in all_bits],
            in_quick_runs=in_quick_runs,
        ),
        tested(
            f"{on}m = 5 performs well compared to m = 10: from 5 to 10 precision gains less than from 1 to 5, at every number of"
            " bits",
            f"from 1 to 5 {gains(five, one)}; from 5 to 10 {gains(ten, five)}",
            [(five[bits] - one[bits], ten[bits] - five[bits]) for bits in all_bits],
            in_quick_runs=False,
        ),
        tested(
            f"{on}a single projection is more precise than bilinear ones with m = 5, which the paper recommends, at every number of bits",
            f"mean precision of the single one, m = 5 and, not tested, m = 10 at {each(alone, five, ten)}",
            [(alone[bits], five[bits]) for bits in all_bits],
            in_quick_runs=in_quick_runs,
        ),
        comparable,
    ]


@experiment(
    "004-fig5",
    "Precision and recall on images, by number of bits and m",
    "A larger m reduces the correlation of bits. Bilinear projections come close to a single one, with m = 5 nearly as close "
    "as with m = 10.",
    "all 70,000 images of {images} as 28 x 28 matrices, of which 300 are queries; five repeats. 904 and 2,504 bits replace the "
    "paper's 900 and 2,500.",
)
def images_by_m(run: Run) -> Outcome:
    data = run.images()
    all_bits = run.choose(full=(400, 904, 1600, 2504), quick=(104, 400))
    others = [(5, STRUCTURED), *((m, DEFAULT) for m in (1, 5, 10))]
    repeats = run.choose(full=run.repeats, quick=12)  # few digits: a repeat is short, and varies
    curves, note = curves_by_m(run, data, all_bits, repeats, others)
    figure = figure_by_m(curves, all_bits, [SINGLE, name_of(1), name_of(5), name_of(10), name_of(5, DEFAULT)])
    return Outcome(
        [
            fewer_share(all_bits),
            *findings_on_m(curves, all_bits),
            *(form_of_default(curves, average, max(all_bits)) for average in range(len(AVERAGES))),
        ],
        list(curve_rows(curves, data=data.name)),
        figure,
        [note],
    )


def form_of_default(curves: Curves, average, bits) -> Finding:
    paper, default = (mean_precision(curves, average, name_of(5, *form), bits) for form in ((), (DEFAULT,)))
    return tested(
        f"{AVERAGES[average]}: the library's default form is more precise than the paper's (m = 5, {bits:,} bits; not in the"
        " paper)",
        f"{text(default)} against {text(paper)}",
        [(default, paper)],
        check=True,
    )


# ---------------------------------------------------------------- VLAD of whole images

CELLS, CELL, STEP, ORIENTATIONS = 4, 4, 2, 8
VLAD_OF = "VLAD of gradient patches of"
VLAD_FOR_FLICKR = "VLAD vectors of {images} for Flickr45K's"


def gradient_patches(images) -> np.ndarray:
    """Images x patches x 128: histograms of the directions of gradients, as in SIFT, on a grid of 2 pixels.

    A patch is 4 x 4 cells of 4 x 4 pixels, each with 8 directions, and has length 1. Square images as rows; those of
    less than 24 pixels a side are enlarged by a whole factor.
    """
    side = int(round(images.shape[1] ** 0.5))
    zoom = max(1, -(-24 // side))
    pixels = ndimage.zoom(images.reshape(-1, side, side), (1, zoom, zoom), order=1)
    gy, gx = np.gradient(pixels, axis=(1, 2))
    direction = np.floor((np.arctan2(gy, gx) / (2 * np.pi) + 1e-6) * ORIENTATIONS).astype(int) % ORIENTATIONS
    length = np.hypot(gx, gy)
    maps = np.stack([length * (direction == o) for o in range(ORIENTATIONS)], axis=-1)
    sums = np.lib.stride_tricks.sliding_window_view(maps, (CELL, CELL), axis=(1, 2))[:, ::STEP, ::STEP].sum(axis=(-2, -1))
    per_cell = CELL // STEP
    count = sums.shape[1] - per_cell * (CELLS - 1)
    parts = [
        sums[:, per_cell * i :, per_cell * j :][:, :count, :count].reshape(len(images), count**2, ORIENTATIONS)
        for i in range(CELLS)
        for j in range(CELLS)
    ]
    patches = np.concatenate(parts, axis=2).astype(np.float32)
    return patches / np.maximum(np.linalg.norm(patches, axis=2, keepdims=True), 1e-12)


@cache
def vlad_images(folder: Path | None, base: int, centres: int) -> Dataset:
    """One VLAD vector for each image, of unit length; `base` images, 500 others as queries."""
    data = vectors.images(folder)
    images, queries = data.base[:base], data.queries[:500]
    learned = datasets.vlad_centres(gradient_patches(images[:4000]).reshape(-1, CELLS**2 * ORIENTATIONS), centres)

    def vlad(x):
        patches = gradient_patches(x)
        return datasets.vlad(patches.reshape(-1, patches.shape[2]), learned, group=patches.shape[1])

    def in_parts(x):
        return np.concatenate([vlad(x[i : i + 500]) for i in range(0, len(x), 500)])

    return Dataset(f"{VLAD_OF} {data.name}", in_parts(images), in_parts(queries))


def whole_images(run: Run) -> Dataset:
    """As 250 x 256 matrices in full runs; the paper has 45,000 images. An experiment draws its queries from all of them."""
    return vlad_images(run.data_now, *run.choose(full=(3000, 500), quick=(1000, 32)))


@experiment(
    "004-fig6",
    "Precision and recall on VLAD vectors of images, by m",
    "A larger m reduces the correlation of bits. Bilinear projections come close to a single one, with m = 5 nearly as close "
    "as with m = 10.",
    "3,500 images, from dense patches of gradients, and 250 x 256 matrices; Flickr45K has 45,000 photographs. 300 of the images "
    "are queries. 20 repeats.",
    VLAD_FOR_FLICKR,
    repeats=20,
)
def vlad_by_m(run: Run) -> Outcome:
    data = whole_images(run)
    all_bits = run.choose(full=(4904, 6400), quick=(200, 400))
    curves, note = curves_by_m(run, data, all_bits, run.repeats, [(5, DEFAULT)])
    labels = [SINGLE, name_of(1), name_of(5), name_of(10), name_of(5, DEFAULT)]
    findings = findings_on_m(curves, all_bits, in_quick_runs=False)
    return Outcome(findings, list(curve_rows(curves, data=data.name)), figure_by_m(curves, all_bits, labels), [note])


# ---------------------------------------------------------------- Figures 7 and 8: time


def encoding_seconds(hashes, x) -> list[float]:
    """For one vector, on one thread: the least of several turns, in which the hashes alternate."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    timers = [timing.Timer(lambda h=h: h.encode(x), 1) for h in hashes]
    timing.take_turns(timers)
    faiss.omp_set_num_threads(threads)
    return [timer.least / len(x) for timer in timers]


def bilinear_multiplications(d, h) -> int:
    """Of the dense form: all w' X, then a product of length d_v for each bit."""
    return h.projection.k_w * d + h.nbits * h.projection.d_v


@experiment(
    "004-fig7",
    "Time and memory of encoding, by number of bits",
    "Bilinear projections take far less time and memory than a single one; m = 5 is much faster than m = 10.",
    "16 vectors of the set of Figure 6, whose values matter to neither time nor memory. A single projection is timed with 1,600 bits, and "
    "the time is multiplied for more bits. The paper leaves out its time at 62,500 bits, for lack of memory. [bilinear.md](bilinear.md) "
    "has times on another processor.",
)
def time_and_memory(run: Run) -> Outcome:
    x = whole_images(run).queries[:16]
    d = x.shape[1]
    all_bits = run.choose(full=(4904, 6400, 16904, 25600, 40000, 62504), quick=(512, 1024, 2048))
    single_bits = run.choose(full=1600, quick=512)
    alone = kernel_hash_factory(d, single(1, 1, single_bits))
    settings = [(bits, m) for bits in all_bits for m in (1, 5, 10)]
    hashes = [kernel_hash_factory(d, bilinear(1, 1, bits, m)) for bits, m in settings]
    times = np.array([encoding_seconds([alone, *hashes], x) for _ in range(run.repeats)])
    seconds = {(bits, 0): times[:, 0] * bits / single_bits for bits in all_bits}
    memory = {(bits, 0): 4.0 * bits * d for bits in all_bits}
    for i, setting in enumerate(settings):
        seconds[setting], memory[setting] = times[:, 1 + i], hashes[i].projection.memory()
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    for m, colour in ((0, "k"), (1, "tab:green"), (5, "tab:blue"), (10, "tab:red")):
        mean, deviation = np.transpose([mean_and_deviation(seconds[bits, m]) for bits in all_bits])
        label = name_of(m) if m else f"{SINGLE} (from {single_bits:,} bits)"
        left.errorbar(all_bits, 1e3 * mean, 1e3 * deviation, marker="o", color=colour, label=label, capsize=2)
        right.plot(all_bits, [memory[bits, m] / 1e6 for bits in all_bits], "o-", color=colour, label=label)
    left.set(xlabel="bits", ylabel="ms for one vector, one thread", yscale="log")
    right.set(xlabel="bits", ylabel="memory of the projection, MB", yscale="log")
    right.legend(loc="center right")
    ratios = {(bits, m): seconds[bits, 0] / seconds[bits, m] for bits, m in settings}
    savings = {(bits, m): memory[bits, 0] / memory[bits, m] for bits, m in settings}
    largest = max(all_bits)
    return Outcome(
        [
            tested(
                "Encoding takes less time than with a single projection, for all m and bits (the paper: much less)",
                f"a single one, measured with {single_bits:,} bits and multiplied, takes "
                + ", ".join(f"{mean_and_deviation(ratios[largest, m])[0]:.0f}" for m in (1, 5, 10))
                + f" times as long at {largest:,} bits for m = 1, 5 and 10, and at least"
                f" {min(r.mean() for r in ratios.values()):.1f} times in any setting",
                [(r, 1) for r in ratios.values()],
                in_quick_runs=False,
            ),
            computed(
                "The projection takes less memory, for all m and bits (the paper: much less)",
                f"{largest:,} bits, m = 10: {memory[largest, 10] / 1e6:.2f} MB, a single one"
                f" {memory[largest, 0] / 1e6:,.0f} MB; at least a factor of {min(savings.values()):.0f}",
                min(savings.values()) > 1,
            ),
            tested(
                "m = 5 is faster than m = 10, for all bits (the paper: much faster)",
                "m = 10 takes "
                + ", ".join(f"{(seconds[bits, 10] / seconds[bits, 5]).mean():.2f}" for bits in all_bits)
                + " times as long",
                [(seconds[bits, 10] / seconds[bits, 5], 1) for bits in all_bits],
                in_quick_runs=False,
            ),
        ],
        [
            {"bits": bits, "m": m or SINGLE, "ms": 1e3 * float(s.mean()), "deviation": 1e3 * float(s.std(ddof=1)),
             "MB": memory[bits, m] / 1e6}
            for (bits, m), s in seconds.items()
        ],  # fmt: skip
        figure,
    )


def whole_bytes(bits) -> int:
    return max(8, int(bits) // 8 * 8)


@experiment(
    "004-fig8",
    "Precision and recall on VLAD vectors of images, at equal encoding time",
    "At equal encoding time, bilinear projections are superior to a single one, with m = 1 and with m = 5.",
    "the 3,500 VLAD vectors of Figure 6; 300 of them are queries. Five repeats.",
    VLAD_FOR_FLICKR,
)
def equal_time(run: Run) -> Outcome:
    data = whole_images(run)
    d = data.base.shape[1]
    all_bits = run.choose(full=(16904, 25600, 40000, 62504), quick=(1024, 2048))
    timed_bits = run.choose(full=1600, quick=512)
    settings = [(m, bits) for m in (1, 5) for bits in all_bits]
    hashes = [kernel_hash_factory(d, bilinear(1, 1, bits, m)) for m, bits in settings]
    alone, *seconds = encoding_seconds([kernel_hash_factory(d, single(1, 1, timed_bits)), *hashes], data.queries[:16])
    by_time = [whole_bytes(s / alone * timed_bits) for s in seconds]
    by_work = [whole_bytes(bilinear_multiplications(d, h) / d) for h in hashes]
    curves: dict[str, list[list[np.ndarray]]] = {"bilinear": [], "equal time": [], "equal multiplications": []}
    counts = []
    for repeat in range(run.repeats):
        search = Search(run, data, repeat)
        counts.append(search.counts)
        codes = search.encode(single, max(by_time + by_work))
        curves["bilinear"].append([search.curve(search.encode(bilinear, bits, m)) for m, bits in settings])
        curves["equal time"].append([search.curve(codes, bits) for bits in by_time])
        curves["equal multiplications"].append([search.curve(codes, bits) for bits in by_work])
    used = {"bilinear": [bits for _, bits in settings], "equal time": by_time, "equal multiplications": by_work}
    precision = {name: np.mean(values, axis=3) for name, values in curves.items()}  # repeats x settings x averages
    rows = [
        row
        for i, (m, bits) in enumerate(settings)
        for name in curves
        for row in curve_rows({(name, used[name][i]): [c[i] for c in curves[name]]}, m=m, bilinear_bits=bits, data=data.name)
    ]
    findings = [
        ahead_of_single(precision, average, name, settings, used[name])
        for average in range(len(AVERAGES))
        for name in ("equal time", "equal multiplications")
    ]
    return Outcome(findings, rows, figure_at_equal_time(curves, settings, used, len(all_bits)), [queries_note(counts)])


def figure_at_equal_time(curves, settings, used, columns):
    figure, axes = panels(len(settings) // columns, columns)
    colours = {"bilinear": "tab:blue", "equal time": "k", "equal multiplications": "0.6"}
    for average, of_average in enumerate(axes):
        for i, ((m, bits), axis) in enumerate(zip(settings, of_average.flat)):
            for name, colour in colours.items():
                label = name_of(m) if name == "bilinear" else f"{SINGLE}, {name}: {used[name][i]:,} bits"
                draw_curve(axis, [c[i] for c in curves[name]], average, label, color=colour)
            axis.set_title(f"{bits:,} bits, m = {m}")
            axis.legend(fontsize=7)
    return figure


def ahead_of_single(precision, average, name, settings, used) -> Finding:
    by_time = name == "equal time"
    ours, theirs = (precision[which][:, :, average] for which in ("bilinear", name))
    return tested(
        f"{AVERAGES[average]}: at {name} for encoding, bilinear projections are more precise, for m = 1 and m = 5, at every "
        f"number of bits{'' if by_time else ' (not in the paper)'}",
        "; ".join(
            f"m = {m}, {bits:,} bits: {ours[:, i].mean():.3f} against {theirs[:, i].mean():.3f} ({used[i]:,} bits)"
            for i, (m, bits) in enumerate(settings)
        ),
        list(zip(ours.T, theirs.T)),
        check=not by_time,
        in_quick_runs=not by_time,
    )
