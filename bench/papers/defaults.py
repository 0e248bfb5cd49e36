# SPDX-License-Identifier: MIT
"""The papers' main figures once more, with the library's defaults beside the papers' forms. Both use the same data and seeds."""

from __future__ import annotations

import numpy as np
from experiments import Outcome, Run, experiment
from findings import Comparison, compared
from kim_choi_additive import ORDERS, OVER_QUERIES, additive, curves_of, task
from kim_choi_additive import trained as trained_scheme
from kim_choi_bilinear import PAPER_FORM, Search, bilinear
from kulis_grauman_2012 import BITS, FOR_SIGHTS, examined, first_of, scene_task
from measures import precision_recall
from raginsky_lazebnik_2009 import RECALL, code_distances, real, sik
from rank_and_landmarks import BOTH, R, SETS, searched

from faiss_ext import kernel_hash_factory

THE_SAME = "The paper compares no such forms."


def comparison_rows(comparisons: list[Comparison]) -> list[dict]:
    return [c._asdict() for c in comparisons]


def outcome(comparisons: list[Comparison]) -> Outcome:
    return Outcome([], comparison_rows(comparisons), comparisons=comparisons)


@experiment(
    "001-defaults",
    "Figure 3 with the library's defaults",
    THE_SAME,
    "14,871 vectors of {descriptors} and of {images}, 1,000 of them queries, as in Figure 3. The default draws structured projections "
    "and learns γ from the base; the paper takes it from the queries. Mean precision over queries and levels of recall, five repeats.",
)
def of_sik(run: Run) -> Outcome:
    comparisons = []
    for data in (run.descriptors(), run.images()):
        for bits in run.choose(full=(128, 512), quick=(128,)):
            pairs = []
            for repeat in range(run.repeats):
                base, queries, true = real(run, repeat, data)
                forms = sik(data.d, bits, repeat + 1), kernel_hash_factory(data.d, f"SIK{bits}(gaussian,seed={repeat + 1})")
                pairs.append([precision(code_distances(h, base, queries), true) for h in forms])
            comparisons.append(compared(
                f"mean precision, {data.name}, {bits} bits", f"SIK{bits}(gaussian,gamma=1/R²,proj=dense)", f"SIK{bits}(gaussian)", pairs
            ))  # fmt: skip
    return outcome(comparisons)


def precision(distances, true) -> float:
    return float(precision_recall(distances, true, RECALL)[OVER_QUERIES].mean())


PAPERS_KLSH = {"plain": "p=1000,t=50,center=0", "both techniques": "p=1000,t=50,rank={rank},scale=5,center=0"}
PAPERS_RANKS = {"edges": 32, "descriptors": 100}


@experiment(
    "002-defaults",
    "Table 1 with the library's defaults",
    THE_SAME,
    "the first 20,000 vectors of each set, 2,000 queries, χ² kernel, 256 bits, recall@10, ten repeats. The default has 300 landmarks, "
    "t = 30 and centred queries, so that a code takes a third of the kernel values.",
    BOTH,
    repeats=10,
)
def of_klsh(run: Run) -> Outcome:
    comparisons = []
    for which in SETS:
        data = searched(run, which, "chi2")

        def recalls(keys, data=data):
            strings = [f"KLSH256(chi2,{keys}seed={1 + repeat})" for repeat in range(run.repeats)]
            return [data.recall(kernel_hash_factory(data.base.shape[1], s), [256])[0] for s in strings]

        ours = recalls("")
        for name, keys in PAPERS_KLSH.items():
            keys = keys.format(rank=PAPERS_RANKS[which])
            used = run.choose(full=keys, quick=keys.replace("p=1000", "p=200"))
            pairs = np.transpose([recalls(used + ","), ours])
            comparisons.append(
                compared(f"recall@{R}, {data.name}, {name}", f"KLSH256(chi2,{used})", "KLSH256(chi2)", pairs)
            )
    return outcome(comparisons)


@experiment(
    "003-defaults",
    "Figure 4 with the library's defaults",
    THE_SAME,
    "the first 10,000 images of {images}, 100 queries. The default has structured projections and order 1; `center=1` is what the "
    "README and `recommend` take. Mean precision over queries and levels of recall, five repeats.",
)
def of_ahk(run: Run) -> Outcome:
    comparisons = []
    for kernel, order in ORDERS.items():
        for bits in run.choose(full=(512, 8192), quick=(512,)):
            ours = f"AHK{bits}({kernel})", f"AHK{bits}({kernel},center=1)"
            found = []
            for repeat in range(run.repeats):
                now = task(run, True, kernel, repeat, run.choose(full=10000, quick=1000))
                strings = additive(kernel, order, bits, repeat + 1), *(f"{s[:-1]},seed={repeat + 1})" for s in ours)
                schemes = (trained_scheme(s, now.base) for s in strings)
                found.append([float(curves_of(h, now, [bits])[0][OVER_QUERIES].mean()) for h in schemes])
            of_paper, *of_ours = np.transpose(found)
            comparisons += [
                compared(f"mean precision, {run.images().name}, {bits:,} bits", f"AHK{bits}({kernel},order={order},proj=dense)", string,
                         np.transpose([of_paper, values]))
                for string, values in zip(ours, of_ours)
            ]  # fmt: skip
    return outcome(comparisons)


@experiment(
    "004-defaults",
    "Figure 5 with the library's defaults",
    THE_SAME,
    "all 70,000 images of {images}, of which 300 are queries, as in Figure 5. The default has structured projections, shuffles "
    "components, and learns γ from the base. Mean precision over queries and levels of recall, five repeats.",
)
def of_bsik(run: Run) -> Outcome:
    all_bits = run.choose(full=(400, 1600), quick=(104,))
    found = {bits: [] for bits in all_bits}
    for repeat in range(run.repeats):
        search = Search(run, run.images(), repeat)
        for bits in all_bits:
            default = kernel_hash_factory(search.base.shape[1], f"BSIK{bits}(seed={search.seed})")
            default.train(search.base)
            codes = search.encode(bilinear, bits, 5), (default.encode(search.base), default.encode(search.queries))
            found[bits].append([float(search.curve(c)[OVER_QUERIES].mean()) for c in codes])
    return outcome([
        compared(f"mean precision, {run.images().name}, {bits:,} bits", f"BSIK{bits}(m=5,gamma=1/R²,{PAPER_FORM})", f"BSIK{bits}(auto)",
                 pairs)
        for bits, pairs in found.items()
    ])  # fmt: skip


@experiment(
    "005-defaults",
    "Figure 3 with the library's defaults",
    THE_SAME,
    "bags of visual words as in Figure 3, 2,700 images and as many queries, five neighbours, ε = 0.5. The default centres queries. "
    "Ten repeats with other splits.",
    FOR_SIGHTS,
    repeats=10,
)
def of_sorted_lists(run: Run) -> Outcome:
    accuracies, shares = [], []
    for repeat in range(run.repeats):
        t = scene_task(run, repeat)
        ids, share = t.hashed(1 + repeat, 5)
        h = kernel_hash_factory(t.base.features.shape[1], f"KLSH{BITS}({t.kernel},gamma={t.gamma!r},seed={1 + repeat})")
        h.train(t.base.features)
        seen = examined(h, t.base.features, t.queries.features, seed=1 + repeat)
        accuracies.append([t.accuracy(ids), t.accuracy(first_of(t.order, seen, 5))])
        shares.append([share, float(seen.mean())])
    forms = f"KLSH{BITS}(expchi2,t=30,p=300,center=0),BPerm(B=0)", f"KLSH{BITS}(expchi2),BPerm"
    return outcome([compared("accuracy", *forms, accuracies), compared("share of the base that is examined", *forms, shares)])
