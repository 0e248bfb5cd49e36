"""Search among strings, by a kernel that only compares two of them.

    PYTHONPATH=build/python /usr/bin/python3 scripts/example_strings.py

The kernel is the 3-spectrum kernel: the number of common substrings of three letters, normalised. The hash never sees a
string, only rows of kernel values against its landmarks (`KLSH...(precomputed,...)`).
"""

from collections import Counter

import numpy as np

import faiss
from faiss_ext import index_factory


def spectrum(word):
    """How often each substring of three letters occurs; the ends of the word count as letters."""
    padded = f"^{word}$"
    return Counter(padded[i:i + 3] for i in range(len(padded) - 2))


def kernel(words, others):
    """The normalised kernel matrix, len(words) x len(others)."""
    rows, columns = [[spectrum(w) for w in group] for group in (words, others)]
    norms = [[np.sqrt(sum(v * v for v in s.values())) for s in group] for group in (rows, columns)]
    out = np.zeros((len(rows), len(columns)), dtype="float32")
    for i, a in enumerate(rows):
        for j, b in enumerate(columns):
            out[i, j] = sum(v * b[key] for key, v in a.items()) / (norms[0][i] * norms[1][j])
    return out


def make_words(n, seed=1):
    """Words of two to four syllables, some of them misspelt forms of others."""
    rng = np.random.RandomState(seed)
    syllables = [c + v + e for c in "bdfgklmnprstv" for v in "aeiou" for e in ("", "n", "r", "s")]
    words = ["".join(rng.choice(syllables, rng.randint(2, 5))) for _ in range(n)]
    return list(dict.fromkeys(words))


def main():
    words = make_words(3000)
    landmarks = words[:200]
    index = index_factory(len(landmarks), "KLSH256(precomputed,rank=64),BFlat")
    index.train(kernel(landmarks, landmarks))
    index.add(kernel(words, landmarks))
    for word in words[500:505]:
        misspelt = word[:2] + "x" + word[3:]
        found = index.search(kernel([misspelt], landmarks), 5)[1][0]
        print(f"{misspelt}: {', '.join(words[i] for i in found)}")


if __name__ == "__main__":
    main()
