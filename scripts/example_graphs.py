# SPDX-License-Identifier: MIT
"""Find similar graphs with a Weisfeiler-Lehman kernel: which functions of Python's own library have the same structure?

    PYTHONPATH=build/python /usr/bin/python3 scripts/example_graphs.py

A function is represented by a graph. Its nodes are the nodes of the syntax tree, labelled with their kinds but without names.
Its edges connect the nodes of the tree, and each use of a variable with the next one. In each round of Weisfeiler and Lehman,
a node's new label combines its own label with its neighbours' labels. After h rounds the label describes all that is within
h steps. A graph becomes the histogram of the labels of all rounds, hashed to a fixed dimension.

Kernels of two such histograms:

* The inner product is the subtree kernel of Shervashidze et al. (JMLR 2011); the cosine is its normalised form.
* The sum of the minima is the optimal assignment kernel of Kriege et al. (NIPS 2016). `jaccard` divides it by the sum of the
  maxima.

The example finds functions that are nearly copies of functions in another module. It also guesses the module of a function
from the most similar functions, which measures the value of the rounds and the kernels.
"""

import ast
import sys
import zlib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import faiss
import faiss_ext
import numpy as np

DIMENSION = 2048  # of the histograms: labels are hashed
ROUNDS = 2
NEIGHBOURS = 5
MODULES = 12  # whose functions are told apart: those with the most
KERNELS = ("jaccard", "normalized(intersection)", "cosine", "intersection", "linear")
CODES = "CWS512,BFlat,Refine(KFlat(jaccard))"
K_FACTOR = 10
ALIKE = 0.5


class Graph(NamedTuple):
    labels: list  # of the nodes: strings
    edges: list  # pairs of nodes


def graph_of(function):
    """The syntax tree of a function, with an edge from each use of a variable to the next."""
    labels, edges, last_use = [], [], {}

    def visit(node, parent):
        me = len(labels)
        labels.append(type(node).__name__)
        if parent is not None:
            edges.append((parent, me))
        variable = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else None
        if variable is not None:
            if variable in last_use:
                edges.append((last_use[variable], me))
            last_use[variable] = me
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr_context):
                visit(child, me)

    visit(function, None)
    return Graph(labels, edges)


def functions(folder=Path(ast.__file__).parent, least_nodes=40):
    """The functions of the modules in a folder, and of their classes, that are not short: (module, name, graph)."""
    found = []

    def visit(node, module, name):
        for child in node.body:
            if isinstance(child, ast.ClassDef):
                visit(child, module, f"{name}.{child.name}")
            elif isinstance(child, ast.FunctionDef):
                graph = graph_of(child)
                if len(graph.labels) >= least_nodes:
                    found.append((module, f"{name}.{child.name}", graph))

    for path in sorted(folder.glob("*.py")):
        visit(ast.parse(path.read_bytes()), path.stem, path.stem)
    return found


def wl_labels(graph, rounds=ROUNDS):
    """The labels of each round, from the 0th on: checksums, which differ where the labels do, but for rare accidents."""
    neighbours = [[] for _ in graph.labels]
    for a, b in graph.edges:
        neighbours[a].append(b)
        neighbours[b].append(a)
    labels = [zlib.crc32(label.encode()) for label in graph.labels]
    yield labels
    for _ in range(rounds):
        around = [sorted(labels[j] for j in near) for near in neighbours]
        labels = [zlib.crc32(repr(pair).encode()) for pair in zip(labels, around)]
        yield labels


def histogram(graph, rounds=ROUNDS, dimension=DIMENSION):
    """How often each label occurs, all rounds together."""
    x = np.zeros(dimension, dtype="float32")
    for number, labels in enumerate(wl_labels(graph, rounds)):
        for label, count in Counter(labels).items():
            x[(label + number * 0x9E3779B9) % dimension] += count
    return x


def histograms(graphs, rounds=ROUNDS):
    return np.array([histogram(graph, rounds) for graph in graphs])


def neighbours(string, x, k=NEIGHBOURS, k_factor=None):
    """The k others most like each graph, and the kernel's values."""
    index = faiss_ext.index_factory(x.shape[1], string, faiss.METRIC_INNER_PRODUCT)
    index.train(x)
    index.add(x)
    if k_factor is not None:
        index.k_factor = k_factor
    values, ids = index.search(x, k + 1)
    # of equal graphs, another one may be among the k + 1 instead of the graph itself: then the last one is dropped
    itself = ids == np.arange(len(x))[:, None]
    itself[~itself.any(axis=1), -1] = True
    return values[~itself].reshape(len(x), k), ids[~itself].reshape(len(x), k)


def accuracy(ids, classes):
    """How often the class is the most frequent one of the neighbours'; of equally frequent ones, the nearest's."""
    return np.mean([Counter(classes[row]).most_common(1)[0][0] == own for row, own in zip(ids, classes)])


def copies(found, values, ids):
    """Pairs of functions in different modules of which one is nearest to the other, but not equal: (value, name, name)."""
    pairs = {}
    for i, (value, j) in enumerate(zip(values[:, 0], ids[:, 0])):
        if found[i][0] != found[j][0] and value < 1:
            pairs[min(i, j), max(i, j)] = float(value)
    return sorted(((value, found[i][1], found[j][1]) for (i, j), value in pairs.items()), reverse=True)


def main():
    found = functions()
    x = histograms([graph for _, _, graph in found])
    values, ids = neighbours("KFlat(jaccard)", x)
    print(f"{len(found):,} functions. In different modules, and most alike without being equal:\n")
    for value, name, other in copies(found, values, ids)[:12]:
        print(f"  {value:.2f}  {name}, {other}")
    _, by_codes = neighbours(CODES, x, k_factor=K_FACTOR)
    alike = [(j in row) for i, row in enumerate(by_codes) for j in ids[i, values[i] >= ALIKE]]
    print(f"\n{CODES}, k_factor={K_FACTOR}, finds {np.mean(alike):.3f} of the {len(alike):,} neighbours")
    print(f"that are alike by {ALIKE} or more.\n")

    largest = Counter(module for module, _, _ in found).most_common(MODULES)
    chosen = [i for i, (module, _, _) in enumerate(found) if module in dict(largest)]
    classes = np.array([found[i][0] for i in chosen])
    print(f"Which of {len(largest)} modules is a function from? {len(chosen)} functions, {NEIGHBOURS} neighbours each;")
    print(f"right by always saying {largest[0][0]}: {largest[0][1] / len(chosen):.3f}\n")
    print(f"{'rounds':<26}" + "".join(f"{rounds:>10}" for rounds in range(4)))
    by_rounds = [histograms([found[i][2] for i in chosen], rounds) for rounds in range(4)]
    for kernel in KERNELS:
        row = [accuracy(neighbours(f"KFlat({kernel})", x)[1], classes) for x in by_rounds]
        print(f"{kernel:<26}" + "".join(f"{part:10.3f}" for part in row))
    row = [accuracy(neighbours(CODES, x, k_factor=K_FACTOR)[1], classes) for x in by_rounds]
    print(f"{'jaccard, by codes':<26}" + "".join(f"{part:10.3f}" for part in row))


if __name__ == "__main__":
    sys.exit(main())
