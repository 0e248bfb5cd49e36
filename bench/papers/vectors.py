# SPDX-License-Identifier: MIT
"""The data of the experiments: files of one's own, and smaller sets that need no file."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT / "scripts"), str(ROOT / "bench" / "retrieval")]  # behind this folder: both have a report.py
import datasets  # noqa: E402
import sets  # noqa: E402
from datasets import Dataset  # noqa: E402

QUERIES = 10000  # at most; an experiment takes as many of them as it needs


def normalised(x):
    """Rows of sum 1; of histograms, which have no negative components."""
    if (x < 0).any():
        raise datasets.DatasetError("the vectors have negative components, which histograms have not")
    return (x / np.maximum(x.sum(axis=1, keepdims=True), 1e-30)).astype(np.float32)


@cache
def images(folder: Path | None) -> Dataset:
    name = _name(folder, of_images=True)
    return datasets.load(folder, name, queries=QUERIES) if name else datasets.load_digits(queries=QUERIES)


@cache
def edges(folder: Path | None) -> Dataset:
    data = images(folder)
    base, queries = (normalised(sets.edge_histograms(x)) for x in (data.base, data.queries))
    return Dataset(f"edge histograms of {data.name}", base, queries)


@cache
def descriptors(folder: Path | None) -> Dataset:
    name = _name(folder, of_images=False)
    return datasets.load(folder, name, queries=QUERIES) if name else synthetic_descriptors()


def synthetic_descriptors(n=6000, queries=600, d=64, centres=200, seed=1) -> Dataset:
    """Histograms around random centres: gamma variables whose means are those of the centre."""
    rng = np.random.default_rng(seed)
    means = rng.gamma(0.5, size=(centres, d))
    x = rng.gamma(2 * means[rng.integers(centres, size=n + queries)] + 0.01).astype(np.float32)
    return Dataset("synthetic descriptors", x[queries:], x[:queries])


def uniform_rectangle(n, rng, aspect=0.5) -> np.ndarray:
    """n points in a rectangle of area 1."""
    return (rng.random((n, 2)) * [aspect**-0.5, aspect**0.5]).astype(np.float32)


def check(folder: Path) -> None:
    """Throws DatasetError unless the folder has both kinds of sets."""
    for of_images, kind in ((True, "images (the IDX files of MNIST)"), (False, "descriptors (.fvecs, .bvecs, .npy, .hdf5)")):
        if _name(folder, of_images) is None:
            raise datasets.DatasetError(f"{folder}: no set of {kind} here or in the folders directly below")


def _name(folder, of_images):
    """The first set in the folder that consists of images, or that does not."""
    if folder is None:
        return None
    found = datasets.find_datasets(folder)
    return next((name for name, files in found.items() if bool(datasets.IDX_NAME.match(files.base.name)) == of_images), None)
