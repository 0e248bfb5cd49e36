# SPDX-License-Identifier: MIT
"""Findings: a statement of a paper, what came out here, and the verdict. Verdicts are reached here and nowhere else.

`tested` asks whether repeats are above others; `agrees` and `unchanged` ask whether repeats are equal to something; `computed`
takes what needs no test; `cannot_be_tried` says what is missing.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import optimize, stats

LEVEL = 0.99  # of each one-sided t test
POWER = 0.9  # with this probability, a difference of `detectable` is detected


class Verdict(str, Enum):
    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"


class Finding(NamedTuple):
    """One statement and what became of it.

    `basis` says how the verdict was reached; "" stands for a t test over repeats. `stand_in` names the data in place of the
    paper's; None stands for the experiment's own. Theory is stated `for_any_data`, so no data stand in for others. A check
    is not a statement of the paper: it tests the setting, the arithmetic or the library. A theorem of the paper is a
    statement, whatever comes out. If `in_quick_runs` is true, the tests assert that the finding holds in a quick run.
    """

    claim: str
    here: str
    verdict: Verdict
    because: str = ""
    basis: str = ""
    stand_in: str | None = None
    check: bool = False
    for_any_data: bool = False
    in_quick_runs: bool = True


class Comparison(NamedTuple):
    """A measure with the paper's form of a scheme and with the library's defaults. It has no verdict: no paper speaks of it."""

    measure: str
    paper_form: str
    our_form: str
    paper: str
    ours: str
    difference: str  # ours less the paper's, with its interval


# ---------------------------------------------------------------- repeats


def mean_and_deviation(values) -> tuple[np.ndarray, np.ndarray]:
    """Over the first axis, the repeats; the deviation is that of a single repeat."""
    values = np.asarray(values, float)
    return values.mean(axis=0), values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])


def text(values) -> str:
    """Mean and standard deviation of the repeats."""
    mean, deviation = mean_and_deviation(values)
    return f"{mean:.3f} ± {deviation:.3f}"


def differences(a, b=0.0) -> np.ndarray:
    """Of repeats from other repeats with the same seeds, or from a number."""
    d = np.asarray(a, float) - np.asarray(b, float)
    if len(d) < 2:
        raise ValueError("a test needs at least two repeats")
    return d


def margin(d, level=LEVEL) -> float:
    """How far the mean of the repeats d can be from the true one, to one side, at this level."""
    return float(stats.t.ppf(level, len(d) - 1) * d.std(ddof=1) / np.sqrt(len(d)))


def clearly_above(a, b=0.0, level=LEVEL) -> bool:
    """Whether repeats of a exceed those of b, or a number, by more than chance: a one-sided t test of the differences.

    If all differences are equal, their sign decides.
    """
    d = differences(a, b)
    return bool(d.mean() > margin(d, level))


def interval(a, b=0.0) -> str:
    """The mean difference and its confidence interval."""
    d = differences(a, b)
    return f"{d.mean():+.3g} [{d.mean() - margin(d):+.3g}, {d.mean() + margin(d):+.3g}]"


def compared(measure: str, paper_form: str, our_form: str, pairs) -> Comparison:
    """`pairs` has the paper's and our value of each repeat."""
    paper, ours = np.transpose(pairs)
    return Comparison(measure, paper_form, our_form, text(paper), text(ours), interval(ours, paper))


@cache
def detectable_deviations(repeats: int, level=LEVEL) -> float:
    """The difference, in standard deviations of a repeat, that the test detects with the probability POWER."""
    critical = stats.t.ppf(level, repeats - 1)
    with np.errstate(divide="ignore"):  # SciPy warns on the way
        shift = optimize.brentq(lambda c: stats.nct.sf(critical, repeats - 1, c) - POWER, 1e-3, 10 * critical)
    return shift / np.sqrt(repeats)


def detectable(d, level=LEVEL) -> float:
    return detectable_deviations(len(d), level) * float(d.std(ddof=1))


# ---------------------------------------------------------------- verdicts


def tested(claim: str, here: str, pairs, because: str = "", **more) -> Finding:
    """Whether in all pairs the first is above the second; the second may be a number.

    The statement holds if the test shows it for every pair, and does not if the test shows the opposite for any pair; there
    the level is divided among the pairs. `because` is the reason if it does not hold.
    """
    all_differences = [differences(a, b) for a, b in pairs]
    if len(all_differences) == 1:
        here += f"; difference {interval(*pairs[0])}"
    if all(clearly_above(d) for d in all_differences):
        return Finding(claim, here, Verdict.HOLDS, **more)
    divided = 1 - (1 - LEVEL) / len(all_differences)
    if any(clearly_above(-d, level=divided) for d in all_differences):
        return Finding(claim, here, Verdict.FAILS, because, **more)
    if any(not d.any() for d in all_differences):
        return Finding(claim, here, Verdict.FAILS, because or "there is no difference in any repeat", **more)
    return undecided(claim, here, [d for d in all_differences if not clearly_above(d)], **more)


def undecided(claim: str, here: str, not_shown, **more) -> Finding:
    size, repeats = max((detectable(d), len(d)) for d in not_shown)
    because = (
        f"{repeats} repeats are too few to decide; they would detect a difference of {size:.2g} with a probability of {POWER}"
    )
    return Finding(claim, here, Verdict.UNDECIDED, because, **more)


def two_sided_test(pairs) -> tuple[bool, float]:
    """Whether a two-sided test shows a difference in any pair, and the difference that it detects in each.

    The level is divided among the pairs.
    """
    divided = 1 - (1 - LEVEL) / (2 * len(pairs))
    all_differences = [differences(a, b) for a, b in pairs]
    is_shown = any(clearly_above(sign * d, level=divided) for d in all_differences for sign in (1, -1))
    return is_shown, max(detectable(d, divided) for d in all_differences)


def unchanged(claim: str, here: str, pairs, because: str = "", unit: str = "", **more) -> Finding:
    """A paper's statement that the two of each pair are equal: repeats can refute it, but cannot show it.

    `unit` follows the difference that the repeats would detect, such as " percentage points".
    """
    differ, size = two_sided_test(pairs)
    if differ:
        return Finding(claim, here, Verdict.FAILS, because, **more)
    because = (
        f"repeats can refute equality but not show it; these would detect a difference of {size:.2g}{unit} with a probability of {POWER}"
    )
    return Finding(claim, here, Verdict.UNDECIDED, because, **more)


def agrees(claim: str, here: str, values, expected: float, **more) -> Finding:
    """A check against a known value: it holds unless the repeats differ from it. The power is given."""
    differ, size = two_sided_test([(values, expected)])
    here += f"; a difference of {size:.2g} would be detected with a probability of {POWER}"
    verdict = Verdict.FAILS if differ else Verdict.HOLDS
    return Finding(claim, here, verdict, check=True, **more)


def computed(claim: str, here: str, holds: bool, because: str = "", basis: str = "no test needed", **more) -> Finding:
    """What is computed, counted or proved, or has a bound. `because` is the reason if it does not hold."""
    if holds:
        return Finding(claim, here, Verdict.HOLDS, basis=basis, **more)
    return Finding(claim, here, Verdict.FAILS, because, basis=basis, **more)


def cannot_be_tried(claim: str, here: str, because: str) -> Finding:
    return Finding(claim, here, Verdict.UNDECIDED, because, in_quick_runs=False)
