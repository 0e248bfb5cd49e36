"""bench/papers: a quick run of all experiments, whose findings hold; and the measures that it rests on."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from helpers import ROOT

FOLDER = ROOT / "bench" / "papers"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The folder of a quick run, with its page."""
    folder = tmp_path_factory.mktemp("reproduction")
    command = [sys.executable, FOLDER / "reproduce.py", "--quick", "--out", folder, "--docs", folder / "docs"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def test_findings_hold_in_a_quick_run(results):
    records = {path.stem: json.loads(path.read_text()) for path in results.glob("*.json")}
    assert {name[:3] for name in records} == {"001", "002", "003", "004", "005"}
    failed = [
        f"{name}: {finding['claim']}; here: {finding['here']}"
        for name, record in sorted(records.items())
        for finding in record["findings"]
        if finding["in_quick_runs"] and finding["holds"] is not True
    ]
    assert not failed, "\n".join(failed)


def test_every_experiment_has_its_files_and_its_section(results):
    page = (results / "docs" / "reproduction.md").read_text()
    listed = subprocess.run([sys.executable, FOLDER / "reproduce.py", "--list"], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        name = line.split()[0]
        assert f"### {name}: " in page
        record = json.loads((results / f"{name}.json").read_text())
        assert all(f["holds"] is None for f in record["findings"]) or (results / f"{name}.csv").exists()
