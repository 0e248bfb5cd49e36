# SPDX-License-Identifier: MIT
"""What an experiment is: a function from a `Run` to an `Outcome`, with the name of the figure or table it belongs to.

A module of a paper declares its experiments by the decorator `experiment`:

    @experiment("003-fig2", "Bits that differ, by kernel value", "All pairs lie between the bounds of Theorem 1.", "Synthetic data.")
    def bounds(run: Run) -> Outcome:
        ...

The number before the hyphen is the paper's, in the order of `PAPERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import vectors
from measures import clearly_above

import faiss_ext

PAPERS = {
    "001": "Raginsky and Lazebnik 2009, Locality-sensitive binary codes from shift-invariant kernels",
    "002": "Jiang, Que and Kulis 2015, Revisiting kernelized locality-sensitive hashing",
    "003": "Kim and Choi, Binary embedding with additive homogeneous kernels",
    "004": "Kim and Choi, Bilinear random projections for locality-sensitive binary codes",
    "005": "Kulis and Grauman 2012, Kernelized locality-sensitive hashing",
}


class Finding(NamedTuple):
    """One statement of a paper beside what came out here.

    `holds` is None where it could not be tried, `because` then says why; it also says why one does not hold, if that is
    established. Claims say of a number that is not the paper's "(our criterion)", and "(plain comparison)" where there are no
    repeats to test; "Check: " begins those that are not the paper's at all.
    Where a quick run is large enough to show it, `in_quick_runs` is true, and the tests assert that it holds there.
    """

    claim: str
    here: str
    holds: bool | None
    because: str = ""
    in_quick_runs: bool = True


def comparison(claim: str, here: str, pairs, in_quick_runs: bool = True, opposite_because: str = "") -> Finding:
    """Whether in all pairs of results of the repeats the first is above the second; either may be a number.

    `opposite_because` is the reason where one is clearly below.
    """
    holds = all(clearly_above(a, b) for a, b in pairs)
    opposite = any(clearly_above(b, a) for a, b in pairs)
    because = "" if holds else opposite_because if opposite else "the repeats do not tell it from chance"
    return Finding(claim, here, holds, because, in_quick_runs)


@dataclass
class Outcome:
    """What came out: rows of the CSV file, a matplotlib figure with the paper's axes, and the findings."""

    findings: list[Finding]
    rows: list[dict[str, Any]] = field(default_factory=list)
    figure: Any = None


@dataclass(frozen=True)
class Run:
    """How to run: on which data, how long, where exact neighbours are kept."""

    quick: bool
    cache: Path
    data: Path | None = None

    def choose(self, full, quick):
        """One of two settings, such as a number of bits."""
        return quick if self.quick else full

    @property
    def repeats(self) -> int:
        """Repeats with other random numbers, for error bars; five in the papers."""
        return self.choose(full=5, quick=4)

    def rng(self, repeat=0) -> np.random.Generator:
        return np.random.default_rng([2026, repeat])

    def images(self) -> vectors.Dataset:
        """MNIST, or another set of images; in quick runs and without data scikit-learn's digits."""
        return vectors.images(self.data_now)

    def edges(self) -> vectors.Dataset:
        """Histograms of the orientations of edges in the images, of mass 1."""
        return vectors.edges(self.data_now)

    def descriptors(self) -> vectors.Dataset:
        """Local descriptors; in quick runs and without data synthetic ones."""
        return vectors.descriptors(self.data_now)

    @property
    def settings(self) -> dict[str, str]:
        """What results depend on, in words: those of other settings do not belong on the same page."""
        return {
            "run": self.choose(full="the full run", quick="the quick run"),
            "version": f"faiss_ext {faiss_ext.__version__}",
            "images": f"images {self.images().name}",
            "descriptors": f"descriptors {self.descriptors().name}",
        }

    @property
    def data_now(self) -> Path | None:
        return None if self.quick else self.data


class Experiment(NamedTuple):
    name: str
    title: str
    paper: str  # what the paper found, in a line
    here: str  # which data stand in for the paper's in full runs, "{images}" and "{descriptors}", and what is smaller
    function: Callable[[Run], Outcome]


ALL: dict[str, Experiment] = {}


def experiment(name: str, title: str, paper: str, here: str):
    """Declares the experiment of a figure or table."""

    def declare(function):
        if name in ALL or name.split("-")[0] not in PAPERS:
            raise ValueError(f"{name}: declared twice, or of an unknown paper")
        ALL[name] = Experiment(name, title, paper, here, function)
        return function

    return declare
