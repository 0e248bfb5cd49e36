# SPDX-License-Identifier: MIT
"""Fast projections beside a single dense one, for SIK under the Gaussian kernel.

A footnote of Kim and Choi's paper on bilinear projections names circulant ones (Yu, Kumar, Gong and Chang, Circulant binary
embedding, ICML 2014). They exist only here; the library's fast projections are the bilinear and the structured ones.
"""

from __future__ import annotations

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from experiments import Outcome, Run, experiment
from findings import Finding, computed, mean_and_deviation, tested, text
from kim_choi_bilinear import (
    DEFAULT,
    OTHER_FORMS,
    SINGLE,
    Search,
    bilinear,
    encoding_seconds,
    name_of,
    queries_note,
    single,
)
from measures import AVERAGES
from scipy import fft

from faiss_ext import kernel_hash_factory

CIRCULANT, ROTATIONS = "circulant", "structured"
BILINEAR, SHUFFLED = name_of(5), name_of(5, DEFAULT)
FORMS = (SINGLE, BILINEAR, SHUFFLED, ROTATIONS, CIRCULANT)
SHORT = dict(zip(FORMS, ("single", "bilinear (the paper's form)", "bilinear (the library's form)", "structured", "circulant")))
COLOURS = dict(zip(FORMS, ("k", "tab:blue", "tab:orange", "tab:green", "tab:red")))
LARGE = (250, 256)  # the matrices of Figure 7
LEVEL_WITH = 0.02  # of mean precision: our criterion
SLICE = 1000  # vectors that are transformed at a time


class CirculantHash:
    """SIK with circulant projections: for each d bits, a circulant matrix of normal numbers after random signs, by FFT.

    Each row has the law of a row of a dense projection; the rows of a circulant depend on each other.
    """

    def __init__(self, d: int, bits: int, gamma: float, seed: int):
        rng = np.random.default_rng([seed, 4])
        blocks = -(-bits // d)
        self.d, self.bits = d, bits
        self.signs = rng.choice(np.float32([-1, 1]), (blocks, d))
        self.rows = (np.sqrt(gamma) / (2 * np.pi) * rng.standard_normal((blocks, d))).astype(np.float32)
        self.spectra = fft.rfft(self.rows)
        self.offset = rng.random(bits, np.float32)
        self.threshold = (np.arccos(rng.uniform(-1, 1, bits)) / (2 * np.pi)).astype(np.float32)

    def matrix(self) -> np.ndarray:
        """The projection to turns, bits x d."""
        shifts = np.arange(self.d)[:, None] - np.arange(self.d)
        return np.concatenate([row[shifts] * sign for row, sign in zip(self.rows, self.signs)])[: self.bits]

    def margins(self, x) -> np.ndarray:
        turns = fft.irfft(fft.rfft(x[:, None] * self.signs) * self.spectra, n=self.d)
        turns = turns.reshape(len(x), -1)[:, : self.bits] + self.offset
        return self.threshold - np.abs(turns - np.rint(turns))

    def encode(self, x) -> np.ndarray:
        parts = (self.margins(x[i : i + SLICE]) >= 0 for i in range(0, len(x), SLICE))
        return np.concatenate([np.packbits(part, axis=1, bitorder="little") for part in parts])

    def memory(self) -> int:
        """Bytes of the projection: signs and spectra."""
        return self.signs.nbytes + self.spectra.nbytes


def hash_of(form: str, d: int, bits: int, gamma: float, seed: int):
    """A code with one of the projections."""
    if form == CIRCULANT:
        return CirculantHash(d, bits, gamma, seed)
    string = {
        SINGLE: single(gamma, seed, bits),
        BILINEAR: bilinear(gamma, seed, bits, 5),
        SHUFFLED: bilinear(gamma, seed, bits, 5, OTHER_FORMS[DEFAULT]),
        ROTATIONS: f"SIK{bits}(gaussian,gamma={gamma},proj=structured,seed={seed})",
    }[form]
    return kernel_hash_factory(d, string)


def megabytes(form: str, d: int, bits: int) -> float:
    """Of the projection."""
    if form == SINGLE:
        size = 4 * bits * d
    elif form == ROTATIONS:
        order = max(256, 1 << (d - 1).bit_length())
        size = 12 * order * -(-bits // order) + 4 * bits
    else:
        h = hash_of(form, d, bits, 1, 1)
        size = h.memory() if form == CIRCULANT else h.projection.memory()
    return size / 1e6


Times = dict[tuple[str, int], np.ndarray]  # by form and bits: seconds a vector, one a repeat


def times(run: Run, x, all_bits, measured=None) -> Times:
    """All forms and bits take turns. A single projection is timed with `measured` bits, if given, and the time multiplied."""
    keys = [(form, bits) for bits in all_bits for form in FORMS if form != SINGLE or not measured]
    hashes = [hash_of(form, x.shape[1], bits, 1, 1) for form, bits in keys]
    if measured:
        hashes.append(hash_of(SINGLE, x.shape[1], measured, 1, 1))
    seconds = np.transpose([encoding_seconds(hashes, x) for _ in range(run.repeats)])
    found = dict(zip(keys, seconds))
    if measured:
        found |= {(SINGLE, bits): seconds[-1] * bits / measured for bits in all_bits}
    return found


def precisions(run: Run, data, all_bits) -> tuple[dict, str, float]:
    """By form and bits the mean over LEVELS, repeats x averages. And a note, and the share of bits by FFT that are wrong."""
    found: dict = {(form, bits): [] for form in FORMS for bits in all_bits}
    counts, wrong = [], []
    for repeat in range(run.choose(full=run.repeats, quick=12)):
        search = Search(run, data, repeat)
        counts.append(search.counts)
        for form, bits in found:
            h = hash_of(form, search.base.shape[1], bits, search.gamma, search.seed)
            codes = h.encode(search.base), h.encode(search.queries)
            found[form, bits].append(search.curve(codes).mean(axis=1))
            if form == CIRCULANT:
                wrong.append(share_of_wrong_bits(h, search.queries, codes[1]))
    return {key: np.array(values) for key, values in found.items()}, queries_note(counts), float(max(wrong))


def share_of_wrong_bits(h: CirculantHash, x, codes) -> float:
    """Bits by FFT against those by the matrix, in double precision."""
    turns = x.astype(float) @ h.matrix().astype(float).T + h.offset
    bits = h.threshold >= np.abs(turns - np.rint(turns))
    return float((np.unpackbits(codes, axis=1, bitorder="little")[:, : h.bits] != bits).mean())


@experiment(
    "004-fast",
    "Fast projections: precision, time and memory",
    "A footnote: a circulant projection takes O(d) memory and O(d log d) time if the code has d bits. It is faster than bilinear "
    "projections, which are simpler. (The paper does not compare its precision.)",
    "SIK codes of the Gaussian kernel. Precision: the images, queries and repeats of Figure 5. Time: 16 of these images, and 16 "
    "random 250 x 256 matrices, whose values do not matter; one thread, processor time, the least of several turns in which all "
    "forms alternate. With 250 x 256 matrices a single projection is timed with 400 bits, and the time is multiplied. "
    "That is too long: 004-memory, which does not multiply, measures a tenth to a fifth less. The circulant projection uses SciPy's FFT "
    "and NumPy, the others are the library's.",
)
def fast_projections(run: Run) -> Outcome:
    data = run.images()
    all_bits = run.choose(full=(400, 784, 2504), quick=(64, 200))
    precision, note, wrong = precisions(run, data, all_bits)
    side = run.choose(full=LARGE, quick=(32, 32))
    d = side[0] * side[1]
    large_bits = run.choose(full=(4904, 16904, 62504), quick=(512, 1024))
    inputs = {
        data.name: (data.queries[:16], all_bits, None),
        "{} x {}".format(*side): (run.rng().random((16, d), np.float32), large_bits, run.choose(full=400, quick=256)),
    }
    seconds = {name: times(run, *of) for name, of in inputs.items()}
    memory = {
        name: {(form, bits): megabytes(form, x.shape[1], bits) for bits in of_bits for form in FORMS}
        for name, (x, of_bits, _) in inputs.items()
    }
    rows = [
        {
            "data": name, "bits": bits, "projection": form,
            **precision_of(precision, form, bits, name == data.name),
            "ms": 1e3 * float(s.mean()), "ms, deviation": 1e3 * float(s.std(ddof=1)), "MB": memory[name][form, bits],
        }
        for name in inputs for (form, bits), s in seconds[name].items()
    ]  # fmt: skip
    large = list(inputs)[-1]
    return Outcome(
        on_time_and_memory(seconds[large], memory[large], large, max(large_bits))
        + [finding for average in range(len(AVERAGES)) for finding in on_precision(precision, average, all_bits)]
        + [
            computed(
                "bits by FFT are those by the circulant matrix, but for rounding (fewer than 1 in 1,000 differ)",
                f"at most {1e6 * wrong:.0f} in a million differ",
                wrong < 1e-3,
                check=True,
            )
        ],
        rows,
        figure(precision, all_bits, seconds[large], memory[large], large, large_bits),
        [note],
    )


def precision_of(precision, form, bits, has_precision) -> dict:
    """For the table, by average; empty for inputs without queries."""
    cells = {}
    for i, average in enumerate(AVERAGES):
        mean, deviation = mean_and_deviation(precision[form, bits][:, i]) if has_precision else ("", "")
        cells |= {f"precision, {average}": mean, f"precision, {average}, deviation": deviation}
    return cells


def on_time_and_memory(seconds: Times, memory, name, bits) -> list[Finding]:
    """At the largest number of bits, which is about d."""

    def ratio(slow, fast):
        return np.log(seconds[slow, bits] / seconds[fast, bits])

    def times_as_long(slow, fast):
        return f"about {float(f'{np.exp(ratio(slow, fast).mean()):.2g}'):g} times as long"

    of_logarithms = "the test is of natural logarithms of the times"
    ms = ", ".join(f"{SHORT[form]} {1e3 * seconds[form, bits].mean():.3g}" for form in FORMS)
    at = f"{name} matrices, {bits:,} bits"
    return [
        tested(
            "A circulant projection is faster than a bilinear one, if the code has about d bits (the paper's form, m = 5)",
            f"{at}: ms a vector: {ms}; the bilinear one takes {times_as_long(BILINEAR, CIRCULANT)} ({of_logarithms})",
            [(ratio(BILINEAR, CIRCULANT), 0)],
            in_quick_runs=False,
        ),
        tested(
            "A circulant projection is faster than a single one, if the code has about d bits (the paper: O(d log d) in place of "
            "O(d²))",
            f"{at}: the single one, its time multiplied, takes {times_as_long(SINGLE, CIRCULANT)} ({of_logarithms})",
            [(ratio(SINGLE, CIRCULANT), 0)],
            in_quick_runs=False,
        ),
        computed(
            "A circulant projection takes less memory than a single one (the paper: O(d) in place of O(d²) at d bits)",
            f"{at}, MB: " + ", ".join(f"{SHORT[form]} {memory[form, bits]:.3g}" for form in FORMS),
            memory[CIRCULANT, bits] < memory[SINGLE, bits],
        ),
        tested(
            "the library's structured projection is faster than a circulant one in SciPy and a bilinear one of the paper's form "
            "(not in the paper)",
            f"{at}: they take {times_as_long(CIRCULANT, ROTATIONS)} and {times_as_long(BILINEAR, ROTATIONS)} ({of_logarithms})",
            [(ratio(CIRCULANT, ROTATIONS), 0), (ratio(BILINEAR, ROTATIONS), 0)],
            check=True,
            in_quick_runs=False,
        ),
    ]


def on_precision(precision, average, all_bits) -> list[Finding]:
    def values(form):
        return [precision[form, bits][:, average] for bits in all_bits]

    def each(*forms):
        return "; ".join(
            f"{bits:,} bits: " + ", ".join(f"{SHORT[form]} {text(precision[form, bits][:, average])}" for form in forms)
            for bits in all_bits
        )

    more_precise = partial(tested, check=True)
    on = AVERAGES[average]
    return [
        more_precise(
            f"{on}: a circulant projection is level with a single one, at most {LEVEL_WITH} less precise at every number of bits "
            "(our criterion; not in the paper)",
            each(CIRCULANT, SINGLE),
            [(ours, theirs - LEVEL_WITH) for ours, theirs in zip(values(CIRCULANT), values(SINGLE))],
            in_quick_runs=False,
        ),
        more_precise(
            f"{on}: a circulant projection is more precise than a bilinear one (the paper's form, m = 5), at every number of bits "
            "(not in the paper)",
            each(CIRCULANT, BILINEAR),
            list(zip(values(CIRCULANT), values(BILINEAR))),
        ),
        more_precise(
            f"{on}: the library's structured projection is more precise than a single, a bilinear (either form, m = 5) and a "
            "circulant one, at every number of bits (not in the paper)",
            each(ROTATIONS, SINGLE, BILINEAR, SHUFFLED, CIRCULANT),
            [pair for form in FORMS if form != ROTATIONS for pair in zip(values(ROTATIONS), values(form))],
            in_quick_runs=False,
        ),
    ]


def figure(precision, all_bits, seconds, memory, name, large_bits):
    drawn, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.5), layout="constrained")
    for form in FORMS:
        style = {"color": COLOURS[form], "label": form}
        for average, line in enumerate(("-", "--")):
            mean, deviation = np.transpose([mean_and_deviation(precision[form, bits][:, average]) for bits in all_bits])
            left.errorbar(all_bits, mean, deviation, ls=line, marker="o", capsize=2, **(style if not average else {"color": style["color"]}))
        mean, deviation = np.transpose([mean_and_deviation(1e3 * seconds[form, bits]) for bits in large_bits])
        middle.errorbar(large_bits, mean, deviation, marker="o", capsize=2, **style)
        right.plot(large_bits, [memory[form, bits] for bits in large_bits], "o-", **style)
    left.set(xlabel="bits", ylabel=f"mean precision; dashed: {AVERAGES[1]}")
    middle.set(xlabel="bits", ylabel=f"ms for one vector of {name}, one thread", yscale="log")
    right.set(xlabel="bits", ylabel="memory of the projection, MB", yscale="log")
    left.legend()
    return drawn
