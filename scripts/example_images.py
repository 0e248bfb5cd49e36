# SPDX-License-Identifier: MIT
"""Find similar images by histograms of their colours and gradients; a contact sheet shows the results.

    PYTHONPATH=build/python /usr/bin/python3 scripts/example_images.py [--images FOLDER] [--output FILE.png]

Without a folder of images, the two photographs of scikit-learn are cut into overlapping tiles. An image is represented by a
histogram of its colours and a histogram of the directions and strengths of its gradients, with half of the mass each. Images
are compared by the chi2 kernel; its value is the mean of the values for the two histograms. `KFlat(chi2)` searches exactly.
Codes of 32 bytes find candidates for it.

The example also measures how often a tile's neighbours come from its own photograph, by colours alone and with gradients,
under the kernel and under L2. (Gradients alone cannot tell a clear sky from a blurred background.)
"""

import argparse
import struct
import sys
from pathlib import Path
from typing import NamedTuple

import faiss
import faiss_ext
import matplotlib.image
import numpy as np
from contact_sheet import Tile, contact_sheet
from PIL import Image

TILE, STEP = 64, 16
ROWS, COLUMNS = 6, 7  # of the contact sheet: queries, neighbours
COLOURS, DIRECTIONS = 4, 8  # levels of red, green and blue; directions of gradients
WEAK, STRONG = 0.02, 0.1  # magnitudes of gradients, for grey values from 0 to 1
CODES = "AHK256(chi2,center=1),AFlat,Refine(KFlat(chi2))"


class Picture(NamedTuple):
    pixels: np.ndarray  # rows x columns x 3, float32 from 0 to 1
    source: str
    corner: tuple = (0, 0)  # of a tile


def rgb(image):
    """An image as rows x columns x 3, from 0 to 1: of bytes or not, grey or with transparency, which is dropped."""
    image = image / np.float32(255) if image.dtype == np.uint8 else image.astype("float32")
    image = image if image.ndim == 3 else image[:, :, None]
    return image[:, :, :3] if image.shape[2] >= 3 else np.repeat(image[:, :, :1], 3, axis=2)


def read_images(folder, longest=256):
    """The PNG and JPEG files below a folder; of large ones every second pixel, or third, ... Those that are damaged or too
    small are left out with a message."""
    pictures = []
    for path in sorted(p for p in Path(folder).rglob("*") if p.suffix.lower() in (".png", ".jpg", ".jpeg")):
        try:
            image = rgb(matplotlib.image.imread(path))
        except (OSError, SyntaxError, ValueError, struct.error, Image.DecompressionBombError) as error:
            print(f"{path}: left out: {error}", file=sys.stderr)
            continue
        step = -(-max(image.shape) // longest)
        image = image[::step, ::step]
        if min(image.shape[:2]) < 2:  # which has no gradients
            print(f"{path}: left out: under 2 pixels a side", file=sys.stderr)
            continue
        pictures.append(Picture(image, str(path.relative_to(folder))))
    return pictures


def tiles(image, source, size=TILE, step=STEP):
    """Square tiles of an image, which overlap."""
    rows, columns = (range(0, length - size + 1, step) for length in image.shape[:2])
    return [Picture(image[i : i + size, j : j + size], source, (i, j)) for i in rows for j in columns]


def photographs():
    from sklearn.datasets import load_sample_images

    found = load_sample_images()
    return [tile for image, name in zip(found.images, found.filenames) for tile in tiles(rgb(image), Path(name).stem)]


def overlap(a, b, size=TILE):
    """Whether two pictures share pixels."""
    return a.source == b.source and all(abs(i - j) < size for i, j in zip(a.corner, b.corner))


def colours(pixels, levels=COLOURS):
    """The histogram of the colours, with some levels of red, green and blue: levels^3 components of sum 1."""
    level = np.minimum((pixels * levels).astype(int), levels - 1)
    places = (level * (levels**2, levels, 1)).sum(axis=2)
    return np.bincount(places.ravel(), minlength=levels**3) / places.size


def gradients(pixels, directions=DIRECTIONS):
    """The histogram of the gradients of the grey values: flat places, then the directions of weak ones and those of strong
    ones; 1 + 2 * directions components of sum 1. Opposite directions are one."""
    dy, dx = np.gradient(pixels.mean(axis=2))
    magnitude = np.hypot(dx, dy)
    direction = np.round(np.arctan2(dy, dx) / np.pi * directions).astype(int) % directions
    places = np.where(magnitude < WEAK, 0, 1 + direction + directions * (magnitude >= STRONG))
    return np.bincount(places.ravel(), minlength=1 + 2 * directions) / places.size


def histograms(pictures):
    return np.array([np.concatenate([colours(p.pixels), gradients(p.pixels)]) / 2 for p in pictures], dtype="float32")


def neighbours(ids, pictures, query, k):
    """The first k of the ids that share no pixels with the query or one another."""
    found = []
    for i in ids:
        if len(found) == k:
            break
        if not any(overlap(pictures[i], pictures[j]) for j in [query, *found]):
            found.append(int(i))
    return found


def unlike(x, n, kernel="chi2"):
    """n rows that are unlike one another: the first is the one most unlike the mean, each next one is that whose nearest
    among those before is farthest."""
    kernel = faiss_ext.kernel_factory(kernel)
    chosen = [int(np.argmin(kernel.gram(x.mean(axis=0, keepdims=True), x)))]
    nearest = kernel.gram(x[chosen], x)[0]
    while len(chosen) < min(n, len(x)):
        chosen.append(int(np.argmin(nearest)))
        nearest = np.maximum(nearest, kernel.gram(x[chosen[-1:]], x)[0])
    return chosen


def share_of_same(x, pictures, string, k=5):
    """How many of the k nearest pictures, none of which overlaps with the query, come from its source."""
    index = faiss.index_factory(x.shape[1], string)
    index.add(x)
    _, ids = index.search(x, min(len(x), 20 * k + 50))
    found = [neighbours(row, pictures, i, k) for i, row in enumerate(ids)]
    return np.mean([pictures[i].source == pictures[j].source for i, row in enumerate(found) for j in row])


def main(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", metavar="FOLDER", help="with PNG or JPEG files (default: tiles of two photographs)")
    parser.add_argument(
        "--output", metavar="FILE.png", type=Path, default=Path("demo_output/images.png"), help="default: %(default)s"
    )
    arguments = parser.parse_args(words)
    if arguments.output.suffix.lower() != ".png":
        parser.error(f"the output must be a .png file, got {arguments.output}")
    pictures = read_images(arguments.images) if arguments.images else photographs()
    if len(pictures) < 2:
        parser.error(f"{arguments.images}: has fewer than two PNG or JPEG files that can be read")
    x = histograms(pictures)
    exact = faiss.index_factory(x.shape[1], "KFlat(chi2)", faiss.METRIC_INNER_PRODUCT)
    exact.add(x)
    rows = []
    for query in unlike(x, ROWS):
        values, ids = exact.search(x[query : query + 1], len(x))
        value = dict(zip(ids[0].tolist(), values[0]))
        found = neighbours(ids[0], pictures, query, COLUMNS)
        rows.append([Tile(pictures[query].pixels), *(Tile(pictures[i].pixels, f"{value[i]:.2f}") for i in found)])
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    contact_sheet(arguments.output, rows, "most alike, with the kernel's value")
    print(f"{len(pictures):,} pictures, {x.shape[1]} components. {arguments.output} shows {len(rows)} that are unlike")
    print("one another, and beside each those most alike to it.")

    codes = faiss.index_factory(x.shape[1], CODES)
    codes.train(x)
    codes.add(x)
    codes.k_factor = 5
    k = min(10, len(x))
    _, near = exact.search(x, k)
    _, found = codes.search(x, k)
    recall = np.mean([len(set(a) & set(b)) / k for a, b in zip(near, found)])
    print(f"\n{CODES}, k_factor=5: {recall:.3f} of the exact {k} nearest")
    if not arguments.images:
        print("\nOf the five most alike that share no pixels, cut from the same photograph:\n")
        print(f"{'':<16}{'colours':>8}{'and gradients':>16}")
        by_colour = 2 * np.ascontiguousarray(x[:, : COLOURS**3])
        for string in ("KFlat(chi2)", "Flat"):
            print(f"{string:<16}{share_of_same(by_colour, pictures, string):8.4f}{share_of_same(x, pictures, string):16.4f}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
