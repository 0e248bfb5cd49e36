# SPDX-License-Identifier: MIT
"""Search strings with a kernel that only compares two of them: which word does a misspelt one mean?

    PYTHONPATH=build/python /usr/bin/python3 scripts/example_strings.py

The words come from Python's own documentation. The kernel compares how often each letter and each pair of letters occurs in
two words; it is a normalised spectrum kernel. The hash never sees a string. It is given rows of kernel values against
landmarks (`KLSH256(precomputed)`), which are some of the words. Codes find candidates, and the kernel ranks them.
"""

import ast
import re
from collections import Counter
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

import faiss
from faiss_ext import index_factory

MISSPELT = {
    "acheive": "achieve",
    "apropriate": "appropriate",
    "arguement": "argument",
    "begining": "beginning",
    "comparision": "comparison",
    "consistant": "consistent",
    "enviroment": "environment",
    "existance": "existence",
    "garantee": "guarantee",
    "immediatly": "immediately",
    "independant": "independent",
    "lenght": "length",
    "neccessary": "necessary",
    "occured": "occurred",
    "recieve": "receive",
    "refered": "referred",
    "seperate": "separate",
    "succesful": "successful",
    "thier": "their",
    "untill": "until",
}
LANDMARKS = 300
CANDIDATES = 50


def python_words():
    """The words in two or more texts of Python's documentation: its help topics and its modules' docstrings."""
    texts = [*topics.values()]
    for path in Path(ast.__file__).parent.glob("*.py"):
        nodes = ast.walk(ast.parse(path.read_bytes()))
        documented = (n for n in nodes if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef)))
        texts.append("\n".join(ast.get_docstring(node) or "" for node in documented))
    uses = Counter(word for text in texts for word in set(re.findall(r"\b[a-z]{3,}\b", text.lower())))
    return sorted(word for word, count in uses.items() if count > 1)


def spectrum(word):
    """How often each letter and each pair of letters occurs, scaled to norm 1. The word's ends are letters of pairs."""
    padded = f"^{word}$"
    counts = Counter(word) + Counter(map("".join, zip(padded, padded[1:])))
    norm = np.sqrt(sum(count**2 for count in counts.values()))
    return {gram: count / norm for gram, count in counts.items()}


def kernel(words, others):
    """The kernel matrix, len(words) x len(others): the inner products of the words' spectra."""
    columns = {}  # for each letter or pair, its values in all of the others
    for j, other in enumerate(others):
        for gram, value in spectrum(other).items():
            columns.setdefault(gram, np.zeros(len(others), "float32"))[j] = value
    matrix = np.zeros((len(words), len(others)), "float32")
    for row, word in zip(matrix, words):
        for gram, value in spectrum(word).items():
            row += value * columns.get(gram, 0)
    return matrix


def search(words, queries):
    """For each query, the CANDIDATES words whose codes are nearest to its own, those most like it first."""
    landmarks = np.random.default_rng(1).choice(words, LANDMARKS, replace=False)
    index = index_factory(LANDMARKS, "KLSH256(precomputed),BFlat")
    index.train(kernel(landmarks, landmarks))
    index.add(kernel(words, landmarks))
    _, labels = index.search(kernel(queries, landmarks), CANDIDATES)
    for query, found in zip(queries, labels):
        candidates = [words[i] for i in found]
        order = np.argsort(-kernel([query], candidates)[0], kind="stable")
        yield [candidates[i] for i in order]


def main():
    words = python_words()
    print(f"{len(words):,} words. For each misspelt one, codes find {CANDIDATES} candidates; the kernel ranks them.\n")
    row = "{:<13}{:<13}{:<13}{:<8}{}"
    print(row.format("misspelt", "meant", "found", "right?", "next"))
    results = list(search(words, list(MISSPELT)))
    for (misspelt, meant), found in zip(MISSPELT.items(), results):
        right = "yes" if found[0] == meant else "no"
        print(row.format(misspelt, meant, found[0], right, ", ".join(found[1:4])))
    first, five = (sum(meant in found[:n] for meant, found in zip(MISSPELT.values(), results)) for n in (1, 5))
    total = len(results)
    print(f"\nThe word meant comes first for {first} of {total}, and is among the first five for {five} of {total}.")


if __name__ == "__main__":
    main()
