# SPDX-License-Identifier: MIT
"""What came out, in files: CSV and PNG of each experiment, the findings as JSON, and all of them as one page."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

from experiments import ALL, PAPERS, Experiment, Outcome, Run

VERDICTS = {True: "holds", False: "does not hold", None: "not possible here"}
HEADER = """# The papers' experiments, repeated

This page repeats every figure and table of five papers. For each it shows the paper's finding, our result, and whether the
finding holds. This command writes the page:

```sh
PYTHONPATH=build/python python3 bench/papers/reproduce.py {arguments}--docs docs
```

| option | effect |
|---|---|
| `--data FOLDER` | takes images (MNIST) and local descriptors from this folder, in a format of `scripts/datasets.py` |
| `--only NAME` | runs single experiments |
| `--resume` | runs only the experiments that have no results in the folder yet |
| `--quick` | runs everything in small settings, without data of your own |

How to read the tables:

- **holds**: chance does not explain the result. The criterion is a one-sided t test at 0.99 over repeats with other random
  numbers, or the bound that the paper itself states. A mean on the right side is not enough.
- **does not hold**: the reason follows, if one was found.
- **our criterion**: the paper gives no number ("nearly", "slightly"), and we chose one.
- **plain comparison**: there are no repeats to test. The numbers are exact, or come from one draw, and are compared without a
  test.
- **Check:** this row is not a finding of the paper. It tests the setting, the arithmetic or the library.
- **±** is the standard deviation of a repeat.
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
    # (NumPy's truth values are not JSON's)
    findings = [
        dict(f._asdict(), holds=None if f.holds is None else bool(f.holds), in_quick_runs=bool(f.in_quick_runs))
        for f in outcome.findings
    ]
    files = [file.name for file in path.values() if file.exists()]
    record = {"settings": run.settings, "seconds": round(seconds, 1), "files": files, "findings": findings}
    unfinished = path["json"].with_suffix(".part")
    unfinished.write_text(json.dumps(record, indent=1) + "\n")
    os.replace(unfinished, path["json"])


def record_of(folder: Path, experiment: Experiment, run: Run) -> dict | None:
    """What the folder has of an experiment, if it was run with the same settings and its files are all there."""
    path = folder / f"{experiment.name}.json"
    try:
        record = json.loads(path.read_text())
        there = record["settings"] == run.settings and all((folder / name).exists() for name in record["files"])
    except (OSError, ValueError, KeyError, TypeError):  # missing or damaged: it counts as not run
        return None
    return record if there else None


def verdict(finding: dict, quick: bool) -> str:
    if finding["because"]:
        return f"{VERDICTS[finding['holds']]}, because {finding['because']}"
    unexplained = " in the small setting of --quick" if quick else "; the cause was not found"
    return VERDICTS[finding["holds"]] + (unexplained if finding["holds"] is False else "")


def write_page(folder: Path, run: Run) -> None:
    """A page beside the folder and of its name, from all experiments that the folder has with these settings."""
    records = {e.name: record_of(folder, e, run) for e in ALL.values()}
    minutes = sum(record["seconds"] for record in records.values() if record) / 60
    arguments = "--quick " if run.quick else "--data FOLDER " if run.data else ""
    lines = [HEADER.format(settings=", ".join(run.settings.values()), folder=folder.name, minutes=minutes, arguments=arguments)]
    missing = [name for name, record in records.items() if not record]
    if missing:
        lines.append(f"Not run yet: {', '.join(missing)}.\n")
    for number, paper in PAPERS.items():
        lines.append(f"\n## {paper}\n")
        for experiment in ALL.values():
            record = records[experiment.name]
            if experiment.name.startswith(number) and record:
                lines += section(folder, experiment, record, run)
    folder.with_suffix(".md").write_text("\n".join(lines) + "\n")


def section(folder: Path, experiment: Experiment, record: dict, run: Run) -> list[str]:
    lines = [
        f"### {experiment.name}: {experiment.title}\n",
        f"{experiment.paper}\n",
        f"Here: {conditions(experiment, run)}\n",
        "| finding | here | |",
        "|---|---|---|",
        *(f"| {f['claim']} | {f['here']} | {verdict(f, run.quick)} |" for f in record["findings"]),
        "",
    ]
    picture = folder / f"{experiment.name}.png"
    if picture.exists():
        lines.append(f"![{experiment.title}]({folder.name}/{picture.name})\n")
    return lines


def conditions(experiment: Experiment, run: Run) -> str:
    """On which data and in which setting an experiment ran."""
    if run.quick:
        return "small settings, on digits and synthetic data."
    return experiment.here.format(images=run.images().name, descriptors=run.descriptors().name)
