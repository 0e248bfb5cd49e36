# SPDX-License-Identifier: MIT
"""Find near-duplicate texts by their words: which text is this a rewritten copy of?

    PYTHONPATH=build/python /usr/bin/python3 scripts/example_texts.py

The texts are Python's own: the docstrings of its modules and the paragraphs of its help. A text is represented by the
histogram of its words, hashed to a fixed dimension, in which rare words count more. Texts are compared by the Jensen-Shannon
kernel, the cosine and L2. Copies with most of their words replaced at random have a known original, so the comparison can be
measured. Codes, and inverted lists behind an explicit map, then search for the same neighbours.
"""

import ast
import re
import sys
from pathlib import Path
from pydoc_data.topics import topics

import faiss
import faiss_ext
import numpy as np
from word_counts import word_counts

DIMENSION = 1024  # of the histograms: words are hashed
COPIES = 300
REPLACED = 0.7  # of a copy's words
QUERIES = ("statistics.median_low", "shutil.copymode", "textwrap.fill", "heapq.merge")
INDEXES = {  # with their search parameters
    "AHK512(js,center=1),BFlat,Refine(KFlat(js))": {"k_factor": 10},
    "AHK1024(js,center=1),AFlat,Refine(KFlat(js))": {"k_factor": 10},
    "HKM1(js),PCAR256,KIVF16,Refine(KFlat(js))": {"nprobe": 8, "k_factor": 10},
}


def named_docstrings(node, name):
    """The docstrings of a module or class and of all that it defines: (name, docstring)."""
    yield name, ast.get_docstring(node) or ""
    for child in node.body:
        if isinstance(child, (ast.ClassDef, ast.FunctionDef)):
            yield from named_docstrings(child, f"{name}.{child.name}")


def python_texts(folder=Path(ast.__file__).parent, help_topics=topics, least_words=25):
    """The texts of Python's library and help that are not short: (name, words). Of equal ones the first is taken."""
    texts = []
    for path in sorted(folder.glob("*.py")):
        texts += named_docstrings(ast.parse(path.read_bytes()), path.stem)
    for topic, text in sorted(help_topics.items()):
        texts += [(f"help('{topic}'), {i}", part) for i, part in enumerate(re.split(r"\n\s*\n", text), 1)]
    found = {}
    for name, text in texts:
        words = tuple(re.findall(r"[a-z]+", text.lower()))
        if len(words) >= least_words:
            found.setdefault(words, name)
    return [(name, words) for words, name in found.items()]


def rarity(x):
    """The weight of each component: the logarithm of one over the part of the texts that have it."""
    return np.log(len(x) / np.maximum(np.count_nonzero(x, axis=0), 1)).astype("float32")


def histograms(x, weights=1):
    """Weighted counts, scaled to sum 1."""
    x = x * weights
    return x / np.maximum(x.sum(axis=1, keepdims=True), 1e-30)


def rewritten(words, others, share, rng):
    """The text with about that share of its words replaced by any of the others."""
    return [others[rng.integers(len(others))] if rng.random() < share else word for word in words]


def built(string, x, parameters={}):
    """An index of these vectors, with those search parameters."""
    index = faiss.index_factory(x.shape[1], string)
    index.train(x)
    index.add(x)
    for name, value in parameters.items():
        faiss_ext.set_index_parameter(index, name, value)
    return index


def recall(found, exact):
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, exact)])


def main():
    texts = python_texts()
    names, words = zip(*texts)
    x = word_counts(words, DIMENSION)
    weights = rarity(x)
    weighted = histograms(x, weights)
    print(f"{len(texts):,} texts of {np.mean([len(w) for w in words]):.0f} words\n")

    asked = [i for i, name in enumerate(names) if name in QUERIES]
    exact = built("KFlat(js)", weighted)
    distances, ids = exact.search(weighted[asked], 4)
    values = 1 - distances / 2  # since k(x, x) = 1 where the sum is 1
    for i, row, found in zip(asked, values, ids):
        print(f"{names[i]}: " + ", ".join(f"{names[j]} {value:.2f}" for j, value in zip(found, row) if j != i))

    rng = np.random.default_rng(1)
    originals = rng.choice(len(texts), COPIES, replace=False)
    pool = [word for text in words for word in text]
    copies = word_counts([rewritten(words[i], pool, REPLACED, rng) for i in originals], DIMENSION)
    print(f"\n{COPIES} copies with {REPLACED:.0%} of their words replaced; how often the original comes first:\n")
    print(f"{'':<22}{'counts':>8}{'rare words count more':>24}")
    for label, string in (("Jensen-Shannon", "KFlat(js)"), ("cosine", "KFlat(cosine)"), ("L2", "Flat")):
        first = []
        for w in (1, weights):
            _, ids = built(string, histograms(x, w)).search(histograms(copies, w), 1)
            first.append(np.mean(ids[:, 0] == originals))
        print(f"{label:<22}{first[0]:>8.3f}{first[1]:>24.3f}")

    queries = histograms(copies, weights)
    _, near = exact.search(weighted[originals], 10)
    print("\nWith rare words counting more, how often the original of a copy comes first, and how many of the ten texts")
    print("nearest to the originals are found, themselves included:\n")
    for string, parameters in {"KFlat(js)": {}, **INDEXES}.items():
        index = built(string, weighted, parameters)
        first = np.mean(index.search(queries, 10)[1][:, 0] == originals)
        found = recall(index.search(weighted[originals], 10)[1], near)
        print(f"  {first:.3f}  {found:.3f}  {string}{''.join(f', {p}={v}' for p, v in parameters.items())}")


if __name__ == "__main__":
    sys.exit(main())
