# SPDX-License-Identifier: MIT
"""What came out, in files: CSV and PNG of each experiment, the findings as JSON, and all of them as one page, summary first."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from pathlib import Path

from experiments import ALL, PAPERS, PAPERS_REPEATS, Experiment, Outcome, Run, named
from findings import LEVEL, POWER, Comparison, Finding, Verdict, detectable_deviations

HEADER = """# The papers' experiments, repeated

This page repeats every figure and table of five papers, and tests statements that no figure or table shows. For each it shows the
paper's statements, our results, and a verdict.
"""

DEFAULTS = """## The papers' form and the library's defaults

A factory string such as `SIK128(gaussian)` gives the library's defaults. Settings in the parentheses, such as `proj=dense`, give the
paper's form of a scheme instead; the verdicts below are on these forms. This table has both, with the same data and seeds. The
difference is ours minus the paper's. Its mean is above the lower limit with a confidence of {level}, and below the upper limit, too.

| experiment | measure | the paper's form | ours | paper | ours | difference |
|---|---|---|---|---|---|---|
"""

SUMMARY = """The table counts the papers' statements by verdict. Theorems and lemmas count as statements. In brackets stands how many of
them were tried on a stand-in, that is, on other data than the paper's. A statement that was tried on two sets, or with two kernels,
bandwidths or averages of precision, counts for each. [Notes on the papers](notes-on-the-papers.md) explains the errors that we found in the papers.
"""

METHOD = """
## How to read the tables

This command writes the page:

```sh
PYTHONPATH=build/python python3 bench/papers/reproduce.py {arguments}--docs docs
```

| option | effect |
|---|---|
| `--data FOLDER` | takes images (MNIST) and local descriptors from this folder, in a format of `scripts/datasets.py` |
| `--only NAME` | runs single experiments |
| `--resume` | runs only the experiments that have no results in the folder yet |
| `--quick` | runs everything in small settings, without data of your own |

There are three verdicts. Unless the row says otherwise, a one-sided t test over repeats with other random numbers decides, at the
level {level}. Each row has its own test, so about one row in a hundred can be wrong by chance.

- **holds**: the test shows the statement. A mean on the right side is not enough.
- **does not hold**: the test shows the opposite. The reason follows, if one was found.
- **undecided**: the test shows neither, or data or a number that the test needs are missing. The row says which. If the repeats
  are too few, it gives the difference that they would detect with a probability of {power}. Each experiment fixes the number of its
  repeats in advance. {few} repeats, as in the papers by Kim and Choi, detect a difference of {few_detect:.1f} standard deviations; 20
  repeats detect one of {many_detect:.1f}.

And in each row:

- If a paper names no number, only the order is tested: "much less" is tested as "less". The size of the difference stands beside
  it. If a paper uses words such as “nearly” or “typically”, the row says which order stands for them.
- **±** is the standard deviation of a repeat. **[a, b]** are the limits of a mean difference, each with a confidence of {level}.
- **data** names a stand-in if the paper's data are not available here. Such a row shows that the statement carries over to other
  data, or that it does not. It cannot refute the paper's own figure. **any data** stands beside theory, which the paper states for all
  data; we try it on some.
- **no test needed**: the numbers are computed, and no chance is involved. **counted**: the row counts points, pairs or vectors that were
  drawn once. Each is computed exactly, but another draw has other ones. **bound**: a theorem bounds the deviation.
- **Check:** the row is not a statement of the paper. It tests the setting, the arithmetic or the library. A check that a value is equal
  to another one holds unless a two-sided test refutes it.
- **K** stands for a kernel value, and **k_g** for that of the Gaussian kernel. Strings call the χ² kernel **chi2**.
- Precision at a level of recall is either **pooled over all pairs** or the **mean over queries**. The papers do not say which they
  took, so both are given. To pool, all pairs of a query and a vector make one ranking by distance, as in the toolkits that came
  with the early papers on hashing. The mean leaves out queries without a true neighbour; each experiment counts them.
- **BE-AHK** is `AHK` with dense projections and the paper's order.
- **Edge histograms** of images have 6 orientations in each of 5 x 5 cells, which makes 150 components.

The folder `{folder}` beside this page has the numbers behind the figures as CSV files.

This page shows {settings}.
The experiments took {minutes:.0f} min together, on a machine that may have done other work meanwhile.
"""


def write_outcome(folder: Path, experiment: Experiment, outcome: Outcome, seconds: float, run: Run) -> None:
    """CSV, PNG and JSON; the JSON last, since it says that the others are there."""
    path = {kind: folder / f"{experiment.name}.{kind}" for kind in ("csv", "png", "json")}
    for old in path.values():
        old.unlink(missing_ok=True)
    if outcome.rows:
        with open(path["csv"], "w", newline="") as file:
            writer = csv.DictWriter(file, outcome.rows[0])
            writer.writeheader()
            writer.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in outcome.rows)
    if outcome.figure is not None:
        outcome.figure.savefig(path["png"], dpi=90)
    files = [file.name for file in path.values() if file.exists()]
    record = {
        "settings": run.settings,
        "seconds": round(seconds, 1),
        "files": files,
        "notes": outcome.notes,
        "findings": [f._asdict() for f in outcome.findings],
        "comparisons": [c._asdict() for c in outcome.comparisons],
    }
    unfinished = path["json"].with_suffix(".part")
    unfinished.write_text(json.dumps(record, indent=1) + "\n")
    os.replace(unfinished, path["json"])


def record_of(folder: Path, experiment: Experiment, run: Run) -> dict | None:
    """What the folder has of an experiment, if it was run with the same settings and its files are all there."""
    path = folder / f"{experiment.name}.json"
    try:
        record = json.loads(path.read_text())
        there = record["settings"] == run.settings and all((folder / name).exists() for name in record["files"])
        record["findings"] = [Finding(**dict(f, verdict=Verdict(f["verdict"]))) for f in record["findings"]]
        record["comparisons"] = [Comparison(**c) for c in record.get("comparisons", [])]
        record["notes"], record["seconds"]
    except (OSError, ValueError, KeyError, TypeError):  # missing, damaged or of an older form: it counts as not run
        return None
    return record if there else None


# ---------------------------------------------------------------- the page


def claim(finding: Finding) -> str:
    return ("Check: " if finding.check else "") + finding.claim


def verdict(finding: Finding, quick: bool) -> str:
    said = finding.verdict.value + (f" ({finding.basis})" if finding.basis else "")
    if finding.because:
        return f"{said}, because {finding.because}"
    unexplained = " in the small setting of --quick" if quick else "; the cause was not found"
    return said + (unexplained if finding.verdict is Verdict.FAILS else "")


def data_of(finding: Finding) -> str:
    if finding.for_any_data:
        return "any data"
    if finding.stand_in:
        return f"stand-in: {finding.stand_in}"
    return "" if finding.check else "as in the paper"


def write_page(folder: Path, run: Run) -> None:
    """A page beside the folder and of its name, from all experiments that the folder has with these settings."""
    records = {e.name: record_of(folder, e, run) for e in ALL.values()}
    there = {name: record for name, record in records.items() if record}
    lines = [HEADER]
    if len(there) < len(records):
        lines.append(f"Not run yet: {', '.join(name for name in records if name not in there)}.\n")
    lines += defaults({name: record["comparisons"] for name, record in there.items()})
    lines += summary({name: record["findings"] for name, record in there.items()}, run.quick)
    lines.append(method(folder, run, sum(record["seconds"] for record in there.values()) / 60))
    for number, paper in PAPERS.items():
        lines.append(f"\n## {paper}\n")
        for name, record in there.items():
            if name.startswith(number):
                lines += section(folder, ALL[name], record, run)
    folder.with_suffix(".md").write_text("\n".join(lines) + "\n")


def defaults(comparisons: dict[str, list[Comparison]]) -> list[str]:
    """The table of the papers' forms beside the library's defaults, if there are any."""
    rows = [
        f"| {name} | {c.measure} | `{c.paper_form}` | `{c.our_form}` | {c.paper} | {c.ours} | {c.difference} |"
        for name, of in comparisons.items()
        for c in of
    ]
    return [DEFAULTS.format(level=LEVEL) + "\n".join(rows) + "\n"] if rows else []


def summary(findings: dict[str, list[Finding]], quick: bool) -> list[str]:
    """Findings by verdict for each paper, then the statements that do not hold, then the undecided ones."""
    lines = ["## Summary\n", SUMMARY]
    lines += [f"| paper | {' | '.join(v.value for v in Verdict)} | our checks that hold |", "|---|---|---|---|---|"]
    for number, paper in PAPERS.items():
        of_paper = [f for name, of in findings.items() if name.startswith(number) for f in of]
        lines.append(f"| {number}: {paper} | {' | '.join(counts(of_paper))} |")
    titles = {Verdict.FAILS: "What does not hold, and why", Verdict.UNDECIDED: "What is undecided, and why"}
    for which, title in titles.items():
        lines += ["", f"### {title}\n", "| experiment | statement | data | verdict |", "|---|---|---|---|"]
        for name, of in findings.items():
            chosen = [f for f in of if f.verdict is which]
            lines += [f"| {name} | {claim(f)} | {data_of(f)} | {verdict(f, quick)} |" for f in chosen]
    return lines


def counts(findings: list[Finding]) -> list[str]:
    """Of each verdict all statements and those on stand-ins, then the checks that hold among all checks."""
    statements = [f for f in findings if not f.check]
    every = Counter(f.verdict for f in statements)
    on_stand_ins = Counter(f.verdict for f in statements if f.stand_in and not f.for_any_data)
    checks = [f.verdict is Verdict.HOLDS for f in findings if f.check]
    return [*(f"{every[v]} ({on_stand_ins[v]})" for v in Verdict), f"{sum(checks)} of {len(checks)}"]


def method(folder: Path, run: Run, minutes: float) -> str:
    arguments = "--quick " if run.quick else "--data FOLDER " if run.data else ""
    few, many = (detectable_deviations(n) for n in (PAPERS_REPEATS, 20))
    return METHOD.format(settings=", ".join(run.settings.values()), folder=folder.name, minutes=minutes, arguments=arguments,
                         level=LEVEL, power=POWER, few=PAPERS_REPEATS, few_detect=few, many_detect=many)  # fmt: skip


def section(folder: Path, experiment: Experiment, record: dict, run: Run) -> list[str]:
    lines = [
        f"### {experiment.name}: {experiment.title}\n",
        f"{experiment.paper}\n",
        " ".join([f"Here: {conditions(experiment, run)}", *record["notes"]]) + "\n",
    ]
    if record["comparisons"]:
        lines.append("The results are in the table at the top of the page.\n")
    if record["findings"]:
        lines += [
            "| statement | here | data | verdict |",
            "|---|---|---|---|",
            *(f"| {claim(f)} | {f.here} | {data_of(f)} | {verdict(f, run.quick)} |" for f in record["findings"]),
            "",
        ]
    picture = folder / f"{experiment.name}.png"
    if picture.exists():
        lines.append(f"![{experiment.title}]({folder.name}/{picture.name})\n")
    return lines


def conditions(experiment: Experiment, run: Run) -> str:
    """On which data and in which setting an experiment ran."""
    return "small settings, on digits and synthetic data." if run.quick else named(experiment.here, run)
