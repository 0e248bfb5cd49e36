# SPDX-License-Identifier: MIT
"""What an experiment is: a function from a `Run` to an `Outcome`, with the name of the figure or table it belongs to.

A module of a paper declares its experiments by the decorator `experiment`:

    @experiment("003-fig2", "Bits that differ, by kernel value", "Their share is near a function of it.", "synthetic data.")
    def bounds(run: Run) -> Outcome:
        ...

The number before the hyphen is the paper's, in the order of `PAPERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import vectors
from findings import Comparison, Finding

import faiss_ext

PAPERS = {
    "001": "Raginsky and Lazebnik 2009, Locality-sensitive binary codes from shift-invariant kernels",
    "002": "Jiang, Que and Kulis 2015, Revisiting kernelized locality-sensitive hashing",
    "003": "Kim and Choi, Binary embedding with additive homogeneous kernels",
    "004": "Kim and Choi, Bilinear random projections for locality-sensitive binary codes",
    "005": "Kulis and Grauman 2012, Kernelized locality-sensitive hashing",
}

PAPERS_REPEATS = 5  # of Kim and Choi
QUICK_REPEATS = 4


@dataclass
class Outcome:
    """What came out: rows of the CSV file, a matplotlib figure with the paper's axes, the findings, and notes on the setting.

    Comparisons of the paper's form with the library's defaults make a table at the top of the page.
    """

    findings: list[Finding]
    rows: list[dict[str, Any]] = field(default_factory=list)
    figure: Any = None
    notes: list[str] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """How to run: on which data, how long, where exact neighbours are kept."""

    quick: bool
    cache: Path
    data: Path | None = None
    repeats: int = field(default=PAPERS_REPEATS, compare=False)  # with other random numbers; caches hold single repeats

    def choose(self, full, quick):
        """One of two settings, such as a number of bits."""
        return quick if self.quick else full

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
    """An experiment and its description. In `here` and `stand_in`, "{images}" and "{descriptors}" name the sets.

    `repeats` is fixed in advance: five as in the papers by Kim and Choi, or more if five are too few.
    """

    name: str
    title: str
    paper: str  # what the paper found, in a line
    here: str  # the setting of full runs
    stand_in: str  # data in place of the paper's, "" if they are the paper's
    repeats: int
    function: Callable[[Run], Outcome]

    def perform(self, run: Run) -> Outcome:
        """Its findings name their stand-ins."""
        outcome = self.function(replace(run, repeats=run.choose(full=self.repeats, quick=QUICK_REPEATS)))
        stand_in = run.choose(full=named(self.stand_in, run), quick="a small set")
        outcome.findings = [f if f.stand_in is not None else f._replace(stand_in=stand_in) for f in outcome.findings]
        return outcome


def named(text: str, run: Run) -> str:
    """A description with the names of the sets of images and of descriptors."""
    return text.format(images=run.images().name, descriptors=run.descriptors().name)


ALL: dict[str, Experiment] = {}


def experiment(name: str, title: str, paper: str, here: str, stand_in: str = "", repeats: int = PAPERS_REPEATS):
    """Declares the experiment of a figure or table."""

    def declare(function):
        if name in ALL or name.split("-")[0] not in PAPERS:
            raise ValueError(f"{name}: declared twice, or of an unknown paper")
        ALL[name] = Experiment(name, title, paper, here, stand_in, repeats, function)
        return function

    return declare
