# SPDX-License-Identifier: MIT
"""The experiments of the five papers, each with its findings held against what comes out.

    PYTHONPATH=build/python python3 bench/papers/reproduce.py [--data FOLDER] [--quick] [--only 003-fig5] [--docs docs]

Writes a CSV file, a PNG with the paper's axes and the findings as JSON for each experiment into the folder of `--out`,
and prints the findings. `--docs` keeps them in its folder `reproduction`, and writes the page reproduction.md from all
that is there.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import raginsky_lazebnik_2009  # noqa: E402, F401
import jiang_que_kulis_2015  # noqa: E402, F401
import kim_choi_additive  # noqa: E402, F401
import kim_choi_bilinear  # noqa: E402, F401
import kulis_grauman_2012  # noqa: E402, F401
import rank_and_landmarks  # noqa: E402, F401
import kpca_bounds  # noqa: E402, F401
import explicit_maps  # noqa: E402, F401
import single_projection  # noqa: E402, F401
import fast_projections  # noqa: E402, F401
import sorted_lists  # noqa: E402, F401
import m_tree  # noqa: E402, F401
import defaults  # noqa: E402, F401
import report  # noqa: E402
import vectors  # noqa: E402
from experiments import ALL, Run  # noqa: E402


def parse_arguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--data", type=Path, help="folder with images and descriptors (default: digits, synthetic data)")
    parser.add_argument("--quick", action="store_true", help="small settings on digits and synthetic data, whatever --data says")
    parser.add_argument("--only", action="append", metavar="NAME", help="an experiment, or the beginning of names")
    parser.add_argument("--out", type=Path, help="folder for results (reproduction, or DOCS/reproduction)")
    parser.add_argument("--resume", action="store_true", help="leave out experiments whose results the folder has with the same settings")
    parser.add_argument("--docs", type=Path, help="folder in which to write reproduction.md, beside the folder of results")
    parser.add_argument("--list", action="store_true", help="list the experiments")
    args = parser.parse_args(words)
    if args.docs and args.out:
        parser.error("--docs keeps the results in its folder reproduction; it cannot be given with --out")
    args.out = args.docs / "reproduction" if args.docs else args.out or Path("reproduction")
    for name in args.only or []:
        if not name or not any(known.startswith(name) for known in ALL):
            parser.error(f"unknown experiment '{name}'; --list shows all")
    try:
        if args.data:
            vectors.check(args.data)
        if not args.list:
            args.out.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=args.out).close()  # noqa: SIM115
    except (vectors.datasets.DatasetError, OSError) as error:
        parser.error(str(error))
    return args


def main(words=None):
    args = parse_arguments(words)
    chosen = [e for e in ALL.values() if not args.only or e.name.startswith(tuple(args.only))]
    if args.list:
        for e in chosen:
            print(f"{e.name:{max(map(len, ALL))}} {e.title}")
        return
    try:
        perform(chosen, args)
    except vectors.datasets.DatasetError as error:
        raise SystemExit(f"reproduce.py: error: {error}") from None


def perform(chosen, args):
    run = Run(args.quick, args.out / "exact", args.data)
    print(", ".join(run.settings.values()), flush=True)
    for experiment in chosen:
        if args.resume and report.record_of(args.out, experiment, run):
            continue
        print(f"{experiment.name}: {experiment.title}", flush=True)
        begin = time.perf_counter()
        outcome = experiment.perform(run)
        report.write_outcome(args.out, experiment, outcome, time.perf_counter() - begin, run)
        plt.close("all")
        for finding in outcome.findings:
            print(f"  {report.verdict(finding, run.quick)}: {report.claim(finding)}\n      here: {finding.here}", flush=True)
        for c in outcome.comparisons:
            print(f"  {c.measure}: {c.paper_form} {c.paper}, {c.our_form} {c.ours}, difference {c.difference}", flush=True)
    if args.docs:
        report.write_page(args.out, run)


if __name__ == "__main__":
    main()
