# SPDX-License-Identifier: MIT
"""Match local features of two photographs: which corner of one is which corner of the other?

    PYTHONPATH=build/python /usr/bin/python3 scripts/example_matching.py [--output FILE.png]

The second photograph is the first one, rotated, shrunk, brightened and with noise, so the true position of each corner is
known. Harris corners of several scales are described as in SIFT, by histograms of the gradients around them: 4 x 4 parts of
8 directions each. Two corners match if the nearest descriptor is clearly nearer than the second nearest (Lowe's ratio test).
A match is right if it is within 3 pixels of the true position.

The descriptors are compared by L2, as is usual for SIFT, and as histograms by kernels, exactly and by codes. The Hellinger
kernel is L2 of square roots, known as RootSIFT, and works with any index. The other kernels need a map, codes, or `KFlat`. A
picture shows the matches.
"""

import argparse
import sys
from pathlib import Path

import faiss
import faiss_ext
import matplotlib
import numpy as np
from scipy import ndimage

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from PIL import Image  # noqa: E402  (matplotlib needs it, too)

ANGLE, SCALE = 30, 0.75  # degrees; size of the second photograph
GAIN, GAMMA, NOISE = 1.2, 0.7, 0.03
SCALES = (1, 0.75, 0.56)  # at which corners are looked for
CORNERS = 400  # at each of them
RADIUS = 8  # of a corner's surroundings, in pixels
RATIO = 0.8
NEAR = 3  # pixels
SHOWN = 60  # right matches in the picture
METHODS = {  # name: (string, parameters)
    "L2": ("Flat", {}),
    "hellinger": ("KFlat(hellinger)", {}),
    "chi2": ("KFlat(chi2)", {}),
    "js": ("KFlat(js)", {}),
    "intersection": ("KFlat(intersection)", {}),
    "chi2, codes": ("AHK256(chi2,center=1),AFlat,Refine(KFlat(chi2))", {"k_factor": 10}),
}


class Motion:
    """Turns about the centre of an image and scales: places are (row, column)."""

    def __init__(self, shape, angle=ANGLE, scale=SCALE):
        cos, sin = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        self.matrix = scale * np.array([[cos, sin], [-sin, cos]])
        self.shape = tuple(np.ceil(np.abs(self.matrix) @ shape - 1e-9).astype(int))  # of the result
        self.offset = (np.array(self.shape) - 1) / 2 - self.matrix @ ((np.array(shape) - 1) / 2)

    def __call__(self, places):
        """Where these places go."""
        return places @ self.matrix.T + self.offset

    def image(self, image):
        """The image after it; what comes from outside is 0."""
        back = np.linalg.inv(self.matrix)
        smooth = ndimage.gaussian_filter(image, 0.5 * max(1 / np.sqrt(np.linalg.det(self.matrix)) - 1, 0))
        where = {"offset": -back @ self.offset, "output_shape": self.shape}
        return ndimage.affine_transform(smooth, back, **where, order=1, mode="grid-constant")


def brightened(image, gain=GAIN, gamma=GAMMA, noise=NOISE, seed=1):
    rng = np.random.default_rng(seed)
    return np.clip(gain * np.clip(image, 0, 1) ** gamma + noise * rng.standard_normal(image.shape), 0, 1)


def corners(image, count=CORNERS, border=12):
    """The places where Harris's response is largest, and larger than all around: (row, column)."""
    smooth = ndimage.gaussian_filter(image, 1)
    dy, dx = ndimage.sobel(smooth, 0), ndimage.sobel(smooth, 1)
    yy, xx, yx = (ndimage.gaussian_filter(product, 1.5) for product in (dy * dy, dx * dx, dy * dx))
    response = yy * xx - yx**2 - 0.05 * (yy + xx) ** 2
    peak = (response == ndimage.maximum_filter(response, 5)) & (response > 0)
    inner = np.zeros_like(peak)
    inner[border:-border, border:-border] = True
    places = np.argwhere(peak & inner)
    order = np.argsort(-response[tuple(places.T)], kind="stable")
    return places[order[:count]].astype(float)


def descriptors(image, places, radius=RADIUS):
    """Histograms of the gradients around places, turned so that their main direction is the first: 4 x 4 parts of 8
    directions each, of sum 1."""
    smooth = ndimage.gaussian_filter(image, 1)
    dy, dx = np.gradient(smooth)
    offsets = (np.arange(16) - 7.5) / 8  # 16 x 16 samples in the square from -1 to 1
    v, u = np.meshgrid(offsets, offsets, indexing="ij")
    weight = np.exp(-(u**2 + v**2))
    part = (np.arange(16) // 4)[:, None] * 4 + np.arange(16) // 4
    found = np.zeros((len(places), 128), dtype="float32")
    for row, place in zip(found, places):
        angle = 0.0
        for turned in (False, True):
            cos, sin = np.cos(angle), np.sin(angle)
            where = [place[0] + radius * (v * cos + u * sin), place[1] + radius * (u * cos - v * sin)]
            y, x = (ndimage.map_coordinates(g, where, order=1, mode="nearest") for g in (dy, dx))
            strength, direction = weight * np.hypot(x, y), np.arctan2(y, x) - angle
            if not turned:
                inside = u**2 + v**2 < 1
                angle = main_direction(direction[inside], strength[inside])
            else:
                position = direction / (2 * np.pi) * 8
                low = np.floor(position)
                for which, share in ((low, 1 - (position - low)), (low + 1, position - low)):
                    np.add.at(row, part * 8 + which.astype(int) % 8, strength * share)
    return found / np.maximum(found.sum(axis=1, keepdims=True), 1e-30)


def main_direction(direction, strength, bins=36):
    """The most frequent direction: the peak of a smooth histogram."""
    which = np.floor(direction / (2 * np.pi) * bins).astype(int) % bins
    histogram = ndimage.gaussian_filter1d(np.bincount(which, strength, minlength=bins), 1.5, mode="wrap")
    top = int(np.argmax(histogram))
    left, middle, right = histogram[[top - 1, top, (top + 1) % bins]]
    shift = 0.5 * (left - right) / min(left - 2 * middle + right, -1e-12)
    return (top + 0.5 + shift) * 2 * np.pi / bins


def features(image):
    """Places in an image, and descriptors."""
    places, found = [], []
    for scale in SCALES:
        smooth = ndimage.gaussian_filter(image, 0.5 * (1 / scale - 1))
        smaller = ndimage.zoom(smooth, scale, order=1, grid_mode=True, mode="nearest")
        here = corners(smaller)
        found.append(descriptors(smaller, here))
        places.append((here + 0.5) * np.array(image.shape) / np.array(smaller.shape) - 0.5)
    return np.concatenate(places), np.concatenate(found)


def sift_norm(x):
    """As SIFT compares by L2: unit length, no component above 0.2."""
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-30)
    x = np.minimum(x, 0.2)
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-30)


def match(string, x, queries, parameters={}):
    """For each query its nearest vector, and the ratio of the distances to it and to the second one."""
    index = faiss.index_factory(x.shape[1], string)
    index.train(x)
    index.add(x)
    for name, value in parameters.items():
        faiss_ext.set_index_parameter(index, name, value)
    D, I = index.search(queries, 2)
    D = np.sqrt(np.maximum(D, 0))  # they are squared
    return I[:, 0], D[:, 0] / np.maximum(D[:, 1], 1e-30)


def right_at(right, ratios, precision=0.95):
    """How many right matches the best threshold on the ratio keeps, so that that part of all it keeps is right."""
    hits = np.cumsum(right[np.argsort(ratios, kind="stable")])
    good = hits >= precision * np.arange(1, len(hits) + 1)
    return int(hits[good].max(initial=0))


def draw(path, image, other, places, matched, right):
    """Writes a PNG of the two images beside each other, with lines between matched places: those that are right, which are
    thinned out, and all wrong ones."""
    gap, scale = 10, 0.8
    height, width = max(image.shape[0], other.shape[0]), image.shape[1] + gap + other.shape[1]
    both = np.ones((height, width))
    both[: image.shape[0], : image.shape[1]] = image
    both[: other.shape[0], image.shape[1] + gap :] = other
    figure = plt.figure(figsize=(width * scale / 100, height * scale / 100), dpi=100)
    axes = figure.add_axes([0, 0, 1, 1])
    axes.imshow(ndimage.gaussian_filter(both, 0.7), cmap="gray", vmin=-0.3, vmax=1)
    axes.axis("off")
    shown = np.random.default_rng(1).permutation(np.flatnonzero(right))[:SHOWN]
    for i in [*shown, *np.flatnonzero(~right)]:
        (y, x), (v, u) = places[i], matched[i]
        style = {"color": "lime", "linewidth": 0.6} if right[i] else {"color": "red", "linewidth": 1.2}
        axes.plot([x, u + image.shape[1] + gap], [y, v], marker=".", markersize=3, **style)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[:, :, :3]
    Image.fromarray(pixels).quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
    plt.close(figure)


def main(words):
    from sklearn.datasets import load_sample_image

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output", metavar="FILE.png", type=Path, default=Path("demo_output/matching.png"), help="default: %(default)s"
    )
    arguments = parser.parse_args(words)
    if arguments.output.suffix.lower() != ".png":
        parser.error(f"the output must be a .png file, got {arguments.output}")
    image = load_sample_image("china.jpg").mean(axis=2) / 255
    motion = Motion(image.shape)
    other = brightened(motion.image(image))
    places, described = features(image)
    other_places, other_described = features(other)
    true = motion(places)
    print(f"{len(places):,} corners of a photograph, and {len(other_places):,} of the same one turned by {ANGLE} degrees,")
    print(f"{SCALE} of the size, brighter and noisy.\n")
    print(f"{'':<14}{'nearest right':>14}{f'ratio < {RATIO}':>13}{'of them right':>15}{'right at 95 % precision':>25}")
    for name, (string, parameters) in METHODS.items():
        vectors = [sift_norm(v) if string == "Flat" else v for v in (other_described, described)]
        nearest, ratios = match(string, *vectors, parameters)
        right = np.linalg.norm(other_places[nearest] - true, axis=1) < NEAR
        clear = ratios < RATIO
        print(f"{name:<14}{right.sum():>14}{clear.sum():>13}{right[clear].sum():>15}{right_at(right, ratios):>25}")
        if name == "hellinger":
            arguments.output.parent.mkdir(parents=True, exist_ok=True)
            draw(arguments.output, image, other, places[clear], other_places[nearest[clear]], right[clear])
    print(f"\n{arguments.output} shows the matches by hellinger with a ratio below {RATIO}: {SHOWN} of those that are right in")
    print("green, all that are wrong in red. The last column has the best threshold in place of it, which needs the truth.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
