# SPDX-License-Identifier: MIT
"""Draws the figures of the pages in docs/schemes: kernel values, and their estimates by codes and maps.

    PYTHONPATH=build/python /usr/bin/python3 scripts/scheme_figures.py [--out docs/figures/schemes]

Each point is a pair of scikit-learn's digits: images of 8 x 8 pixels, normalised to sum to 1 if the kernel is one of
histograms. Lines are the expectation by theory.
"""

import argparse
from pathlib import Path

import faiss
import faiss_ext
import matplotlib
import numpy as np
from sklearn.datasets import load_digits

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#777777"
N_PAIRS = 1500
DIGITS = load_digits().data.astype("float32")
HISTOGRAMS = DIGITS / DIGITS.sum(axis=1, keepdims=True)

# of each scheme: string, data, the kernel along the axis (None: that of the hash)
SCHEMES = {
    "sik": ("SIK512(gaussian)", DIGITS, None),
    "bsik": ("BSIK512(8x8,m=5)", DIGITS, None),
    "ahk": ("AHK512(chi2)", HISTOGRAMS, None),
    "rhbe": ("RHBE512", DIGITS, None),
    "scr": ("SCR512", HISTOGRAMS, None),
    "cws": ("CWS512", DIGITS, None),
    "klsh": ("KLSH512(chi2)", HISTOGRAMS, None),
    "sh": ("SH64", DIGITS, "distance"),
}
# of each map: strings, data, kernel
MAPS = {
    "hkm": (["HKM1(intersection)", "HKM3(intersection)"], HISTOGRAMS, "intersection"),
    "kpca": (["KPCA16(chi2,p=500)", "KPCA128(chi2,p=500)"], HISTOGRAMS, "chi2"),
    "rff": (["RFF128(gaussian)", "RFF1024(gaussian)"], DIGITS, "gaussian"),
}


def pairs(x, nearness, n=N_PAIRS, seed=1):
    """n pairs of rows (i, j), as many near as far ones: from tenths of the range of nearness(i, j)."""
    rng = np.random.default_rng(seed)
    i, j = rng.integers(len(x), size=(2, 200 * n))
    near = faiss.IndexFlatL2(x.shape[1])  # chance meets few near pairs
    near.add(x)
    neighbours = near.search(x, 6)[1][:, 1:]
    i = np.concatenate([i, np.repeat(np.arange(len(x)), neighbours.shape[1])])
    j = np.concatenate([j, neighbours.ravel()])
    i, j = i[i != j], j[i != j]
    value = nearness(i, j)
    edges = np.linspace(value.min(), value.max(), 11)[1:-1]
    kept = []
    for part in np.split(np.argsort(value), np.searchsorted(np.sort(value), edges)):
        kept.append(rng.permutation(part)[: n // 10])
    kept = np.concatenate(kept)
    return i[kept], j[kept]


def differing_bits(codes, i, j):
    return np.unpackbits(codes[i] ^ codes[j], axis=1).sum(axis=1)


def styled(ax, xlabel, ylabel):
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#eeeeee")
    ax.set_axisbelow(True)


def scheme_figure(string, x, axis, path):
    h = faiss_ext.kernel_hash_factory(x.shape[1], string)
    if not h.is_trained:
        h.train(x)
    codes = h.encode(x)
    fig, ax = plt.subplots(figsize=(6, 3.6), dpi=110)
    if axis == "distance":
        def of(i, j):
            return np.linalg.norm(x[i] - x[j], axis=1)
        label = "distance of two vectors"
    else:
        table = np.array([[h.kernel_value(a, b) for b in x[:400]] for a in x[:400]])
        x, codes = x[:400], codes[:400]

        def of(i, j):
            return table[i, j]
        label = "kernel value of two vectors"
    i, j = pairs(x, of)
    value = of(i, j)
    ax.plot(value, differing_bits(codes, i, j) / h.nbits, ".", color=BLUE, ms=3, alpha=0.4, mew=0)
    if axis is None:
        k = np.linspace(value.min(), 1, 200)
        ax.plot(k, [h.expected_hamming(v) / h.nbits for v in k], color=ORANGE, lw=2)
        bounds = np.array([h.hamming_bounds(v) for v in k]) / h.nbits
        if (bounds[:, 1] < 1).any() and not np.allclose(bounds[:, 0], bounds[:, 1]):
            ax.plot(k, bounds, color=GREY, lw=1, ls="--")
    styled(ax, label, "share of bits that differ")
    ax.set_title(f"{string}: {len(i):,} pairs of digits", fontsize=10)
    fig.tight_layout()
    fig.savefig(path)
    plt.close(fig)


def map_figure(strings, x, kernel_name, path):
    kernel = faiss_ext.kernel_factory(kernel_name)
    if not kernel.is_trained:
        kernel.train(x)
    gram = kernel.gram(x)
    fig, axes = plt.subplots(1, len(strings), figsize=(8, 3.6), dpi=110, sharex=True, sharey=True)
    for ax, string in zip(axes, strings):
        vt = faiss_ext.map_factory(x.shape[1], string)
        if not vt.is_trained:
            vt.train(x)
        z = vt.apply(x)
        i, j = pairs(x, lambda i, j: gram[i, j])
        exact = 2 - 2 * gram[i, j]
        mapped = ((z[i] - z[j]) ** 2).sum(axis=1)
        ax.plot([0, exact.max()], [0, exact.max()], color=ORANGE, lw=2)
        ax.plot(exact, mapped, ".", color=BLUE, ms=3, alpha=0.4, mew=0)
        styled(ax, "squared distance by the kernel", "after the map" if ax is axes[0] else "")
        ax.set_title(f"{string}, {z.shape[1]} dimensions", fontsize=10)
    fig.tight_layout()
    fig.savefig(path)
    plt.close(fig)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "docs/figures/schemes")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, (string, x, axis) in SCHEMES.items():
        scheme_figure(string, x, axis, out / f"{name}.png")
    for name, (strings, x, kernel) in MAPS.items():
        map_figure(strings, x, kernel, out / f"{name}.png")
    print(f"{len(SCHEMES) + len(MAPS)} figures in {out}")


if __name__ == "__main__":
    main()
