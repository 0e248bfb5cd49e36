# SPDX-License-Identifier: MIT
"""The examples in scripts/ that draw: images that look alike."""

import re

import numpy as np
import pytest
from helpers import script

matplotlib_image = pytest.importorskip("matplotlib.image")


@pytest.fixture(scope="module")
def images():
    return script("example_images")


def stripes(direction, size=64):
    """Grey values that rise and fall along a direction, of slopes that are neither flat nor steep."""
    i, j = np.mgrid[:size, :size]
    wave = np.abs((np.cos(direction) * j + np.sin(direction) * i) * 0.05 % 2 - 1)
    return np.repeat(wave[:, :, None], 3, axis=2).astype("float32")


def test_histograms_of_known_images(images):
    red = np.zeros((4, 4, 3), dtype="float32")
    red[:, :, 0] = 1
    red[:2, :, 2] = 0.5
    colours = images.colours(red)
    assert colours.sum() == 1 and colours[3 * 16] == colours[3 * 16 + 2] == 0.5
    np.testing.assert_array_equal(images.gradients(np.full((8, 8, 3), 0.3, "float32")), [1] + 16 * [0])
    for eighth in range(8):
        direction = eighth * np.pi / 8
        # 8 directions of weak gradients follow flat places; the far side of a wave has the opposite direction
        assert np.argmax(images.gradients(stripes(direction))) == 1 + eighth
        assert np.argmax(images.gradients(stripes(direction + np.pi))) == 1 + eighth
    ramp = np.repeat(np.linspace(0, 1, 8, dtype="float32")[None, :, None], 8, axis=0) * np.ones(3, "float32")
    assert images.gradients(ramp)[1 + 8] == 1  # a strong one
    x = images.histograms([images.Picture(red, "red"), images.Picture(ramp, "ramp")])
    assert x.shape == (2, 81) and x.dtype == np.float32
    np.testing.assert_allclose(x[:, :64].sum(axis=1), 0.5)
    np.testing.assert_allclose(x[:, 64:].sum(axis=1), 0.5)


def test_tiles_and_their_overlap(images):
    image = np.arange(100 * 80 * 3, dtype="float32").reshape(100, 80, 3)
    tiles = images.tiles(image, "a", size=64, step=16)
    assert [tile.corner for tile in tiles] == [(i, j) for i in (0, 16, 32) for j in (0, 16)]
    np.testing.assert_array_equal(tiles[-1].pixels, image[32:96, 16:80])
    pictures = [images.Picture(None, source, corner) for source, corner in (
        ("a", (0, 0)), ("a", (63, 63)), ("a", (64, 0)), ("b", (0, 0)), ("a", (64, 63)), ("a", (0, 64)))]
    assert [images.overlap(pictures[0], other) for other in pictures] == [True, True, False, False, False, False]
    # not 1, which the query overlaps, nor 4, which 2 overlaps, nor more than were asked for
    assert images.neighbours(np.array([0, 1, 2, 4, 3, 5]), pictures, 0, 2) == [2, 3]
    assert images.neighbours(np.array([0, 1, 2, 4, 3, 5]), pictures, 0, 9) == [2, 3, 5]


def test_unlike_pictures_are_chosen(images):
    x = np.repeat(np.eye(4, dtype="float32"), 10, axis=0)
    x[:, 0] += 0.01 * np.arange(40) / 40
    x /= x.sum(axis=1, keepdims=True)
    assert {i // 10 for i in images.unlike(x, 4)} == {0, 1, 2, 3}
    assert len(images.unlike(x[:3], 5)) == 3


def test_images_of_a_folder(images, tmp_path, capsys):
    rng = np.random.default_rng(1)
    (tmp_path / "own" / "more").mkdir(parents=True)
    for i in range(4):  # two pairs: noise in one colour each
        pixels = np.zeros((40, 60, 3))
        pixels[:, :, i % 2] = 0.5 + 0.4 * rng.random((40, 60))
        matplotlib_image.imsave(tmp_path / "own" / ("more" if i == 3 else ".") / f"{i}.png", pixels)
    matplotlib_image.imsave(tmp_path / "own" / "large.png", rng.random((300, 600, 3)))
    (tmp_path / "own" / "text.txt").write_text("no image")
    pictures = images.read_images(tmp_path / "own")
    assert [p.source for p in pictures] == ["0.png", "1.png", "2.png", "large.png", "more/3.png"]
    assert pictures[3].pixels.shape == (100, 200, 3) and pictures[0].pixels.shape == (40, 60, 3)
    output = tmp_path / "new" / "sheet.png"
    images.main(["--images", str(tmp_path / "own"), "--output", str(output)])
    assert "5 pictures" in capsys.readouterr().out and matplotlib_image.imread(output).std() > 0.1
    x = images.histograms(pictures)
    exact = images.faiss.index_factory(81, "KFlat(chi2)")
    exact.add(x)
    _, ids = exact.search(x, 2)
    assert ids[[0, 1, 2, 4], 1].tolist() == [2, 4, 0, 1]
    grey, transparent = np.zeros((5, 6), np.uint8), np.full((5, 6, 4), 255, np.uint8)
    assert images.rgb(grey).shape == images.rgb(transparent).shape == images.rgb(transparent[:, :, :2]).shape == (5, 6, 3)
    assert images.rgb(transparent).max() == 1
    with pytest.raises(SystemExit):
        images.main(["--images", str(tmp_path / "new" / "none")])


def test_tiles_of_photographs_are_found(images, tmp_path, capsys):
    images.main(["--output", str(tmp_path / "sheet.png")])
    out = capsys.readouterr().out
    kernel, l2 = (np.array(re.search(rf"^{name} +(.*)$", out, re.MULTILINE)[1].split(), dtype=float)
                  for name in (r"KFlat\(chi2\)", "Flat"))
    assert (kernel > l2).all() and kernel[1] > kernel[0] > 0.95
    assert float(re.search(r"k_factor=5: (\S+) of the exact", out)[1]) > 0.95
    # a row for each query, whose tiles are where they are said to be
    sheet = matplotlib_image.imread(tmp_path / "sheet.png")
    assert sheet.shape[0] > images.ROWS * 64 and sheet.shape[1] > (images.COLUMNS + 1) * 64
    assert (tmp_path / "sheet.png").stat().st_size < 150_000
