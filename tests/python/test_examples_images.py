# SPDX-License-Identifier: MIT
"""The examples in scripts/ that draw: images that look alike, and matching local features."""

import re

import numpy as np
import pytest
from helpers import script

matplotlib_image = pytest.importorskip("matplotlib.image")


@pytest.fixture(scope="module")
def images():
    return script("example_images")


@pytest.fixture(scope="module")
def matching():
    return script("example_matching")


@pytest.fixture(scope="module")
def photograph():
    from sklearn.datasets import load_sample_image

    return load_sample_image("china.jpg").mean(axis=2)[:300, :400] / 255


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


def test_bad_pictures_are_left_out(images, tmp_path, capsys):
    rng = np.random.default_rng(1)
    for name, shape in (("a", (40, 60, 3)), ("b", (40, 60, 3)), ("small", (1, 9, 3)), ("flat", (3, 900, 3)), ("cut", (40, 60, 3))):
        matplotlib_image.imsave(tmp_path / f"{name}.png", rng.random(shape))
    cut = (tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(cut[:len(cut) // 2])
    (tmp_path / "flipped.png").write_bytes(cut[:60] + bytes(200) + cut[260:])
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "text.jpg").write_text("no image")
    (tmp_path / "empty.png").write_bytes(b"")
    assert [p.source for p in images.read_images(tmp_path)] == ["a.png", "b.png"]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 7 and all("left out: " in line for line in lines)
    images.main(["--images", str(tmp_path), "--output", str(tmp_path / "sheet.png")])
    assert "2 pictures" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["x.txt", "x.jpg", "x"])
def test_pictures_are_png_files(images, matching, tmp_path, capsys, name):
    for module in (images, matching):
        with pytest.raises(SystemExit) as error:
            module.main(["--output", str(tmp_path / name)])
        out, err = capsys.readouterr()
        assert error.value.code == 2 and out == "" and "the output must be a .png file" in err


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


def test_a_motion_moves_places_as_it_moves_images(matching):
    for angle, scale in ((0, 1), (30, 0.75), (-100, 1.5)):
        motion = matching.Motion((60, 90), angle, scale)
        for place in ((20, 30), (45, 70)):
            spot = np.zeros((60, 90))
            spot[place] = 1
            spot = matching.ndimage.gaussian_filter(spot, 2)
            moved = motion.image(spot)
            assert moved.shape == motion.shape
            centre = matching.ndimage.center_of_mass(moved)
            np.testing.assert_allclose(centre, motion(np.array([place]))[0], atol=0.1)
    # a quarter turn is exact, and no place is lost
    image = np.random.default_rng(1).random((5, 8))
    np.testing.assert_allclose(matching.Motion((5, 8), 90, 1).image(image), np.rot90(image, -1), atol=1e-9)


def test_corners_are_where_they_are(matching):
    image = np.zeros((100, 120))
    image[30:60, 40:80] = 1
    places = matching.corners(image)
    true = np.array([(29.5, 39.5), (29.5, 79.5), (59.5, 39.5), (59.5, 79.5)])
    assert len(places) == 4
    assert np.linalg.norm(places[:, None] - true, axis=2).min(axis=0).max() < 2.5
    assert len(matching.corners(image, 2)) == 2
    # an edge has none
    image[:] = np.arange(120) > 60
    assert len(matching.corners(image)) == 0


def test_the_main_direction(matching):
    rng = np.random.default_rng(1)
    for angle in (0.1, 2, -2.5):
        direction = np.concatenate([angle + 0.1 * rng.standard_normal(500), rng.uniform(-np.pi, np.pi, 300)])
        found = matching.main_direction(direction, np.ones(800))
        assert abs(np.angle(np.exp(1j * (found - angle)))) < 0.1


def test_descriptors_turn_with_the_image(matching, photograph):
    places = matching.corners(photograph, 200)
    x = matching.descriptors(photograph, places)
    assert x.shape == (len(places), 128) and (x >= 0).all()
    np.testing.assert_allclose(x.sum(axis=1), 1, rtol=1e-4)
    # by a quarter turn, brighter: the same, whatever the samples between pixels
    motion = matching.Motion(photograph.shape, 90, 1)
    y = matching.descriptors(0.5 * motion.image(photograph) + 0.3, motion(places))
    assert np.quantile(np.abs(x - y).sum(axis=1), 0.9) < 0.02
    # a ramp has one direction only, and so the first
    ramp = np.linspace(0, 1, 60)[None] * np.ones((60, 1))
    descriptor = matching.descriptors(ramp, np.array([[30.0, 30.0]]))[0].reshape(16, 8)
    assert descriptor[:, [7, 0, 1]].sum() > 0.99 and descriptor[:, 0].sum() > 0.8


def test_matches_and_their_ratios(matching):
    rng = np.random.default_rng(1)
    x, q = (v / v.sum(axis=1, keepdims=True) for v in rng.random((2, 60, 128)).astype("float32") ** 2)
    a, b = q[:, None].astype(float), x[None]
    distances = {
        "Flat": np.sqrt(((a - b) ** 2).sum(axis=2)),
        "KFlat(hellinger)": np.sqrt(((np.sqrt(a) - np.sqrt(b)) ** 2).sum(axis=2)),
        "KFlat(chi2)": np.sqrt(2 - 2 * (2 * a * b / (a + b)).sum(axis=2)),
    }
    for string, d in distances.items():
        nearest, ratios = matching.match(string, x, q)
        np.testing.assert_array_equal(nearest, d.argmin(axis=1))
        two = np.sort(d, axis=1)[:, :2]
        np.testing.assert_allclose(ratios, two[:, 0] / two[:, 1], atol=1e-4)
    right, ratios = np.array([1, 0, 1, 1, 0, 0, 1]), np.array([0.1, 0.9, 0.3, 0.2, 0.4, 0.95, 0.5])
    # in the order of ratios: right, right, right, wrong, right, wrong, wrong
    assert [matching.right_at(right, ratios, p) for p in (1, 0.8, 0.75)] == [3, 4, 4]
    assert matching.right_at(1 - right[[1]], ratios[:1]) == 1 and matching.right_at(right[[1]], ratios[:1]) == 0
    normed = matching.sift_norm(x)
    np.testing.assert_allclose(np.linalg.norm(normed, axis=1), 1, rtol=1e-5)


def test_photographs_are_matched(matching, tmp_path, capsys):
    matching.main(["--output", str(tmp_path / "matching.png")])
    out = capsys.readouterr().out
    rows = {name: np.array(re.search(rf"^{name} +(\d+ .*)$", out, re.MULTILINE)[1].split(), dtype=int)
            for name in matching.METHODS}
    for nearest, clear, right, precise in rows.values():
        assert nearest > 500 and right <= clear < 1200 and right >= 0.9 * clear and precise <= nearest
    # what kernels are for: more right matches than by L2, at the same precision
    for name in ("hellinger", "chi2", "js", "chi2, codes"):
        assert rows[name][3] > rows["L2"][3]
    assert abs(rows["chi2, codes"][0] - rows["chi2"][0]) < 20
    shown = matplotlib_image.imread(tmp_path / "matching.png")[:, :, :3]
    assert shown.std() > 0.1 and (tmp_path / "matching.png").stat().st_size < 150_000
    # green lines, and red ones
    assert ((shown[:, :, 1] > 0.8) & (shown[:, :, 0] < 0.4)).any() and ((shown[:, :, 0] > 0.6) & (shown[:, :, 1] < 0.3)).any()
