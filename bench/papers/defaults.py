# SPDX-License-Identifier: MIT
"""The papers' main figures once more, with the library's defaults beside the papers' forms. Both use the same data and seeds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from experiments import Outcome, Run, experiment
from findings import compared, interval, text
from jiang_que_kulis_2015 import at_chosen, best_of_others
from kim_choi_additive import ORDERS, OVER_QUERIES, additive, curves_of, task
from kim_choi_additive import trained as trained_scheme
from kim_choi_bilinear import PAPER_FORM, Search, bilinear
from kulis_grauman_2012 import BITS, FOR_SIGHTS, examined, first_of, scene_task
from measures import precision_recall
from raginsky_lazebnik_2009 import RECALL, code_distances, real, sik
from rank_and_landmarks import BOTH, R, SETS, searched

from faiss_ext import kernel_hash_factory

THE_SAME = "The paper compares no such forms."


class Pairs(NamedTuple):
    """A measure with both forms, in each repeat."""

    measure: str
    paper_form: str
    our_form: str
    values: np.ndarray  # repeats x 2: the paper's form, ours


def outcome(measured: list[Pairs], notes=()) -> Outcome:
    rows = [
        {**dict(zip(Pairs._fields[:3], m)), "repeat": i, "paper": float(paper), "ours": float(ours)}
        for m in measured
        for i, (paper, ours) in enumerate(m.values)
    ]
    return Outcome([], rows, notes=list(notes), comparisons=[compared(*m) for m in measured])


@experiment(
    "001-defaults",
    "Figure 3 with the library's defaults",
    THE_SAME,
    "14,871 vectors of {descriptors} and of {images}, 1,000 of them queries, as in Figure 3. Vectors are divided by the radius R of the "
    "neighbourhood, so that γ = 1 is the paper's 1/R². The default draws structured projections, and learns γ from the base; the paper "
    "takes it from the queries. Mean precision over queries and levels of recall, five repeats.",
)
def of_sik(run: Run) -> Outcome:
    measured, learned, structured_only = [], [], []
    for data in (run.descriptors(), run.images()):
        for bits in run.choose(full=(128, 512), quick=(128,)):
            values, gammas = [], []
            for repeat in range(run.repeats):
                base, queries, true = real(run, repeat, data)
                seed = repeat + 1
                default, structured = (
                    kernel_hash_factory(data.d, f"SIK{bits}(gaussian,{keys}seed={seed})") for keys in ("", "gamma=1,")
                )
                values.append([precision(code_distances(h, base, queries), true) for h in (sik(data.d, bits, seed), default, structured)])
                gammas.append(default.kernel.gamma)
            paper, ours, of_gamma_1 = np.transpose(values)
            measured.append(Pairs(
                f"mean precision, {data.name}, {bits} bits", f"SIK{bits}(gaussian,gamma=1,proj=dense)", f"SIK{bits}(gaussian)",
                np.transpose([paper, ours]),
            ))  # fmt: skip
            structured_only.append(f"{interval(of_gamma_1, paper)} ({data.name}, {bits} bits)")
        learned.append(f"{text(gammas)} ({data.name})")
    return outcome(measured, [
        f"The learned γ is {' and '.join(learned)}.",
        f"If the default takes γ = 1, only the projections differ, and the differences are {', '.join(structured_only)}.",
    ])  # fmt: skip


def precision(distances, true) -> float:
    return float(precision_recall(distances, true, RECALL)[OVER_QUERIES].mean())


@experiment(
    "002-defaults",
    "Table 1 with the library's defaults",
    THE_SAME,
    "the first 20,000 vectors of each set, 2,000 queries, χ² kernel, 256 bits, recall@10, ten repeats. The default has 300 landmarks, "
    "t = 30 and centred queries, so that encoding a vector takes 300 kernel values instead of 1,000. The paper says that s “must be "
    "carefully tuned”, and that recall is sensitive to the rank. So rank (128, 256, 512 or full) and s (3 or 5) are the best pair, chosen "
    "for each repeat by the mean of the others.",
    BOTH,
    repeats=10,
)
def of_klsh(run: Run) -> Outcome:
    measured, notes = [], []
    landmarks, with_scale = run.choose(full=("p=1000,t=50", "rank=512,scale=3"), quick=("p=200,t=20", "rank=128,scale=3"))
    paper_form, centred = f"KLSH256(chi2,{landmarks},center=0", f"KLSH256(chi2,{landmarks},{with_scale}"
    for which in SETS:
        data = searched(run, which, "chi2")

        def recalls(form, data=data):
            strings = (f"{form},seed={1 + repeat})" for repeat in range(run.repeats))
            return np.array([data.recall(kernel_hash_factory(data.base.shape[1], s), [256])[0] for s in strings])

        ours = recalls("KLSH256(chi2")
        forms = {"plain": ([paper_form], recalls(paper_form)), "both techniques": tuned(run, paper_form, recalls)}
        measured += [
            Pairs(f"recall@{R}, {data.name}, {name}", either(form), "KLSH256(chi2)", np.transpose([values, ours]))
            for name, (form, values) in forms.items()
        ]
        notes.append(f"With both techniques and centred queries, `{centred})` has recall@{R} {text(recalls(centred))} on {data.name}.")
    return outcome(measured, notes)


def either(forms: list[str]) -> str:
    """Forms whose parentheses are open, for a cell that is set as code."""
    return "` or `".join(f"{form})" for form in forms)


def tuned(run: Run, form: str, recalls) -> tuple[list[str], np.ndarray]:
    """The forms with the best pair of rank and scale: those chosen, and the recall of each repeat."""
    all_ranks = [f",rank={r}" for r in run.choose(full=(128, 256, 512), quick=(64, 128))] + [""]
    by_both = {f"{form}{rank},scale={s}": recalls(f"{form}{rank},scale={s}") for rank in all_ranks for s in (3, 5)}
    chosen = best_of_others(by_both)
    return list(dict.fromkeys(chosen)), at_chosen(by_both, chosen)


@experiment(
    "003-defaults",
    "Figure 4 with the library's defaults",
    THE_SAME,
    "the first 10,000 images of {images}, 100 queries. The default has structured projections and order 1; `center=1` is what the "
    "README and `recommend` take. Mean precision over queries and levels of recall, five repeats.",
)
def of_ahk(run: Run) -> Outcome:
    measured = []
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
            measured += [
                Pairs(f"mean precision, {run.images().name}, {bits:,} bits", f"AHK{bits}({kernel},order={order},proj=dense)", string,
                         np.transpose([of_paper, values]))
                for string, values in zip(ours, of_ours)
            ]  # fmt: skip
    return outcome(measured)


@experiment(
    "004-defaults",
    "Figure 5 with the library's defaults",
    THE_SAME,
    "all 70,000 images of {images}, of which 300 are queries, as in Figure 5. The default has structured projections, shuffles "
    "components, and learns γ from the base; the paper's γ is 1/R², with the radius R of the neighbourhood (the table shows that of the "
    "first repeat). Mean precision over queries and levels of recall, five repeats.",
)
def of_bsik(run: Run) -> Outcome:
    all_bits = run.choose(full=(400, 1600), quick=(104,))
    found, gammas = {bits: [] for bits in all_bits}, []
    for repeat in range(run.repeats):
        search = Search(run, run.images(), repeat)
        gammas.append(search.gamma)
        for bits in all_bits:
            default = kernel_hash_factory(search.base.shape[1], f"BSIK{bits}(seed={search.seed})")
            default.train(search.base)
            codes = search.encode(bilinear, bits, 5), (default.encode(search.base), default.encode(search.queries))
            found[bits].append([float(search.curve(c)[OVER_QUERIES].mean()) for c in codes])
    return outcome([
        Pairs(f"mean precision, {run.images().name}, {bits:,} bits", f"BSIK{bits}(m=5,gamma={gammas[0]:.3g},{PAPER_FORM})", f"BSIK{bits}",
              values)
        for bits, values in found.items()
    ])  # fmt: skip


@experiment(
    "005-defaults",
    "Figure 3 with the library's defaults",
    THE_SAME,
    "bags of visual words as in Figure 3, 2,700 images and as many queries, five neighbours, ε = 0.5. The default differs "
    "from the paper's form in that it centres queries. Ten repeats with other splits.",
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
    measures = {"accuracy": accuracies, "share of the base that is examined": shares}
    return outcome([Pairs(name, *forms, values) for name, values in measures.items()])
