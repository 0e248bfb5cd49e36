# SPDX-License-Identifier: MIT
"""Contact sheets: each row shows the picture of a query and the pictures found for it."""

from typing import NamedTuple, Optional

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402
from PIL import Image  # noqa: E402  (matplotlib needs it, too)

GAP, TEXT = 4, 14  # pixels between pictures, and for a line of text
SCALE = 100  # dots per inch


class Tile(NamedTuple):
    """One picture. Without pixels its place stays white."""

    pixels: Optional[np.ndarray]  # rows x columns, grey from 0 to 1, or rows x columns x 3
    caption: str = ""
    frame: Optional[str] = None  # its colour


def contact_sheet(path, rows, heading, size=64):
    """Draws rows of tiles, the query first in each, and writes a PNG of 256 colours.

    `heading` stands above what was found and may have several lines; tiles are squares of `size` pixels.
    """
    columns = max(len(row) for row in rows)
    head = TEXT * (1 + heading.count("\n"))
    width, height = columns * (size + GAP) + 3 * GAP, len(rows) * (size + GAP + TEXT) + head
    figure = plt.figure(figsize=(width / SCALE, height / SCALE), dpi=SCALE)
    font = {"fontsize": 6.5, "va": "bottom"}
    for i, row in enumerate(rows):
        below = height - head - (i + 1) * (size + GAP + TEXT) + GAP + TEXT
        for j, tile in enumerate(row):
            left = GAP + j * (size + GAP) + (2 * GAP if j else 0)
            axes = figure.add_axes([left / width, below / height, size / width, size / height])
            axes.axis("off")
            if tile.pixels is not None:
                axes.imshow(tile.pixels, interpolation="antialiased", cmap="gray", vmin=0, vmax=1)
            if tile.frame:
                style = {"edgecolor": tile.frame, "linewidth": 2, "clip_on": False}
                axes.add_patch(Rectangle((0, 0), 1, 1, transform=axes.transAxes, fill=False, **style))
            figure.text((left + size / 2) / width, (below - TEXT + 2) / height, tile.caption, ha="center", **font)
    top = (height - head + 2) / height
    figure.text((GAP + size / 2) / width, top, "query", ha="center", **font)
    figure.text((size + 4 * GAP) / width, top, heading, ha="left", **font)
    figure.canvas.draw()
    Image.fromarray(np.asarray(figure.canvas.buffer_rgba())[:, :, :3]).quantize(256).save(path, optimize=True)
    plt.close(figure)
