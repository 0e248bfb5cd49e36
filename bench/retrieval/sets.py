# SPDX-License-Identifier: MIT
"""The data sets: base vectors and queries, as histograms of mass 1 where the kernel is one of histograms.

Files are read by scripts/datasets.py; what is particular to this benchmark is here: edge histograms and patches of images,
a set made several times as large, and the name of each.
"""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]
import datasets  # noqa: E402

HISTOGRAM_KERNELS = ("chi2", "intersection", "js", "hellinger")
EDGES, PATCHES = "_edges", "_patches"
CELLS, ORIENTATIONS = 5, 6
PATCHES_OF_IMAGE, PATCH_SEED = 20, 1
JITTER_SEED = 1


def names(folders):
    """Names of all sets in the folders; images have a second one, with `_edges` behind the name.

    A third one, with `_patches`, is loaded only if it is named, because it is large.
    """
    found = []
    for folder in folders:
        for name, files in datasets.find_datasets(folder).items():
            found.append(name)
            if datasets.IDX_NAME.match(files.base.name):
                found.append(name + EDGES)
    return found


def load(name, folders, queries, limit=None):
    """The set of that name in one of the folders, or in the file of that path, or scikit-learn's `digits`."""
    if name == "digits":
        return datasets.load_digits(queries, limit)
    if Path(name).is_file():
        return datasets.load(name, queries=queries, limit=limit)
    plain = name.removesuffix(EDGES).removesuffix(PATCHES)
    for folder in folders:
        if plain in datasets.find_datasets(folder):
            if name.endswith(PATCHES):
                data = datasets.load(folder, plain, limit=limit and -(-limit // PATCHES_OF_IMAGE))
                base, of_queries = (patches(x, PATCHES_OF_IMAGE) for x in (data.base, data.queries))
                return datasets.Dataset(name, base[:limit], of_queries[:queries])
            data = datasets.load(folder, plain, queries=queries, limit=limit)
            if plain == name:
                return data
            return datasets.Dataset(name, edge_histograms(data.base), edge_histograms(data.queries))
    known = ", ".join(["digits", *names(folders)])
    raise datasets.DatasetError(f"there is no set or file '{name}'; there are: {known}")


def side_of(images):
    side = int(round(images.shape[1] ** 0.5))
    if side * side != images.shape[1] or side < CELLS:
        raise datasets.DatasetError(f"only square images have edges and patches; {images.shape[1]} components are none")
    return side


def patches(images, count):
    """Random square patches with half the side of the images, which are square and given as rows.

    Every image gives `count` different ones, if it has so many. Those without a tenth of grey values above 0 are left out. The
    order is random.
    """
    side = side_of(images)
    half, places = side // 2, (side - side // 2 + 1) ** 2
    rng = np.random.default_rng(PATCH_SEED)
    windows = np.lib.stride_tricks.sliding_window_view(images.reshape(-1, side, side), (half, half), axis=(1, 2))
    chosen = np.argsort(rng.random((len(images), places), np.float32), axis=1)[:, :count]
    rows, columns = np.divmod(chosen, side - half + 1)
    out = windows[np.arange(len(images))[:, None], rows, columns].reshape(-1, half * half)
    out = out[(out > 0).mean(axis=1) >= 0.1]
    return out[rng.permutation(len(out))]


def edge_histograms(images):
    """Histograms of the orientations of edges in square grey images given as rows: 5 x 5 x 6 = 150 components.

    The gradient of a pixel is the central difference of its neighbours (one-sided at the border). The image is cut into
    5 x 5 cells; each pixel adds the length of its gradient to the one of its cell's 6 bins, of 30 degrees each, into
    which the gradient's orientation falls, opposite directions being the same orientation. Component (5 r + c) 6 + b is
    bin b of the cell in row r and column c. Nothing is smoothed, interpolated or normalised.
    """
    side = side_of(images)
    size = CELLS * CELLS * ORIENTATIONS
    cell = np.arange(side) * CELLS // side
    first_bin = (cell[:, None] * CELLS + cell[None, :]) * ORIENTATIONS
    out = np.empty((len(images), size), np.float32)
    for begin in range(0, len(images), 2000):
        block = images[begin : begin + 2000].reshape(-1, side, side).astype(np.float64)
        gy, gx = np.gradient(block, axis=(1, 2))
        bins = np.floor(np.arctan2(gy, gx) / np.pi * ORIENTATIONS + 1e-9).astype(np.int64) % ORIENTATIONS
        places = np.arange(len(block))[:, None, None] * size + first_bin + bins
        sums = np.bincount(places.ravel(), np.hypot(gx, gy).ravel(), minlength=len(block) * size)
        out[begin : begin + len(block)] = sums.reshape(-1, size)
    return out


def enlarged(data, times):
    """The set with `times` as many base vectors: copies in which each component is multiplied by a random factor near 1.

    Whole numbers remain whole numbers, and in their range.
    """
    from multi_index import jittered

    if times == 1:
        return data
    base = jittered(data.base, times * len(data.base), JITTER_SEED)
    if (data.base == np.rint(data.base)).all():
        base = np.minimum(np.rint(base), data.base.max())
    return datasets.Dataset(f"{data.name}_x{times}", base, data.queries)


def for_kernel(data, kernel):
    """Histograms of mass 1 for kernels of histograms, else the vectors as they are."""
    return datasets.l1_normalised(data) if kernel in HISTOGRAM_KERNELS else data
