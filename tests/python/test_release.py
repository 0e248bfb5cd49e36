# SPDX-License-Identifier: MIT
"""Releases: the files that name the version agree, and scripts/release.sh chooses, collects and refuses."""

import hashlib
import os
import re
import shutil
import subprocess

import pytest
import yaml
from helpers import ROOT

import faiss_ext

VERSION = faiss_ext.__version__
HEADING = re.search(r"^## (.*), (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_files_that_name_the_version_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    debian = re.match(r"faiss-ext \((.*)\) ", (ROOT / "debian/changelog").read_text())
    conda = re.search(r'^  version: "(.*)"$', (ROOT / "conda/meta.yaml").read_text(), re.MULTILINE)
    assert {HEADING[1], citation["version"], debian[1], conda[1]} == {VERSION}
    assert str(citation.get("date-released", "not released yet")) == HEADING[2]


def test_scripts_install_all_that_the_debian_package_is_built_with():
    control = (ROOT / "debian/control").read_text()
    field = re.search(r"^Build-Depends:\n((?: .*\n)+)", control, re.MULTILINE)[1]
    needed = set(re.findall(r"^ ([^ ,]+)", field, re.MULTILINE))
    virtual = {"debhelper-compat": "debhelper", "dh-sequence-python3": "dh-python"}
    table = re.findall(r"^(?:build|deb) (\S+) ", (ROOT / "scripts/install_deps.sh").read_text(), re.MULTILINE)
    assert len(needed) > 10
    assert {"build-essential"} | {virtual.get(name, name) for name in needed} <= set(table)


def test_the_workflow_makes_wheels_of_faiss_versions_that_can_be_linked():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    options = [step["with"] for step in jobs["wheels"]["steps"] if "repository" in step.get("with", {})]
    versions = [tuple(map(int, option["ref"][1:].split("."))) for option in options]
    assert versions and min(versions) >= (1, 14, 2)
    assert len({version[:2] for version in versions}) == len(versions)  # release.sh uses one patch of each minor version
    (command,) = [step["run"] for step in jobs["wheels"]["steps"] if "release.sh" in step.get("run", "")]
    assert {option["path"].rsplit("/", 1)[0] for option in options} == {command.split("--faiss-checkouts ")[1].split()[0]}


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="needs actionlint")
def test_actionlint_finds_nothing_in_the_workflow():
    done = subprocess.run(["actionlint", ROOT / ".github/workflows/release.yml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def project(tmp_path):
    """A copy of what release.sh reads. In place of building and testing, test_matrix.sh writes a file."""
    project = tmp_path / "project"
    (project / "scripts").mkdir(parents=True)
    for name in ("CHANGELOG.md", "CMakeLists.txt", "scripts/release.sh", "scripts/common.sh", "scripts/install_deps.sh"):
        shutil.copy(ROOT / name, project / name)
    matrix = project / "scripts/test_matrix.sh"
    matrix.write_text("""#!/bin/sh
set -e
[ "$1 $2" = "wheel --faiss-include" ]
[ ! -e "$3/broken" ]
[ ! -e "$3/edits" ] || echo More. >>"$(dirname "$0")/../CHANGELOG.md"
cat >/dev/null
wheels="$(dirname "$0")/../build/matrix/wheel"
rm -rf "$wheels"
mkdir -p "$wheels"
echo "$3" >"$wheels/faiss_ext-$(basename "$3").whl"
""")
    matrix.chmod(0o755)
    return project


@pytest.fixture
def checkouts(tmp_path):
    folder = tmp_path / "checkouts"
    for version in ("1.13.2", "1.14.1", "1.14.10", "1.14.9", "1.15.0", "1.15.1"):
        header = folder / version / "faiss/Index.h"
        header.parent.mkdir(parents=True)
        numbers = zip(("MAJOR", "MINOR", "PATCH"), version.split("."))
        header.write_text("".join(f"#define FAISS_VERSION_{name} {number}\n" for name, number in numbers))
    (folder / "notes").mkdir()
    return folder


ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def release(project, *arguments):
    return subprocess.run(
        [project / "scripts/release.sh", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        env=ENVIRONMENT)


def test_a_release_has_wheels_of_the_oldest_patches_with_checksums_and_notes(project, checkouts):
    done = release(project, "--draft", "--faiss-checkouts", checkouts)
    assert done.returncode == 0, done.stderr
    for left_out in ("1.13.2", "1.14.1"):
        assert f"this is {left_out}\n" in done.stdout
    assert "notes/ is left out: it has no faiss/Index.h" in done.stdout
    out = project / "dist"
    wheels = sorted(out.glob("*.whl"))
    assert [path.stem.split("-")[1] for path in wheels] == ["1.14.9", "1.15.0"]
    assert [path.read_text().strip() for path in wheels] == [str(checkouts / "1.14.9"), str(checkouts / "1.15.0")]
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in wheels]
    assert (out / "SHA256SUMS").read_text().splitlines() == sums
    title, notes = (out / "release_notes.md").read_text().split("\n", 1)
    assert title == f"# faiss_ext {VERSION}"
    _, rest = (ROOT / "CHANGELOG.md").read_text().split(f"{HEADING[0]}\n")
    assert notes == re.split(r"^## ", rest, flags=re.MULTILINE)[0]


def test_a_failed_test_ends_the_release(project, checkouts):
    (checkouts / "1.15.0/broken").touch()
    assert release(project, "--draft", "--faiss-checkouts", checkouts).returncode != 0
    assert not (project / "dist").exists()
    (checkouts / "1.15.0/broken").unlink()
    assert release(project, "--draft", "--faiss-checkouts", checkouts).returncode == 0


def test_only_committed_files_are_released(project, checkouts):
    changes = project / "CHANGELOG.md"
    changes.write_text(changes.read_text().replace(HEADING[0], f"## {VERSION}, 2030-01-01"))
    (project / ".gitignore").write_text("/build/\n/dist/\n")

    def git(*arguments):
        options = [part for value in ("user.name=A", "user.email=a@b.c", "commit.gpgsign=false") for part in ("-c", value)]
        subprocess.run(["git", *options, *arguments], cwd=project, env=ENVIRONMENT, check=True)

    done = release(project, "--faiss-checkouts", checkouts)
    assert done.returncode == 2 and "is not a git repository" in done.stderr
    git("init", "-q")
    git("add", "--all")
    git("commit", "-q", "-m", "All")
    changes.write_text(changes.read_text() + "More.\n")
    done = release(project, "--faiss-checkouts", checkouts)
    assert done.returncode == 2 and "uncommitted changes" in done.stderr and " M CHANGELOG.md" in done.stderr
    git("commit", "-q", "-a", "-m", "More")
    (checkouts / "1.15.0/edits").touch()  # while wheels are made
    done = release(project, "--faiss-checkouts", checkouts)
    assert done.returncode == 2 and "uncommitted changes" in done.stderr
    assert not (project / "dist").exists()
    (checkouts / "1.15.0/edits").unlink()
    git("checkout", "-q", ".")
    assert release(project, "--faiss-checkouts", checkouts).returncode == 0
    assert (project / "dist/SHA256SUMS").exists()


def test_releases_that_cannot_be_made_are_refused_before_anything_is_built(project, checkouts, tmp_path):
    changes, heading = project / "CHANGELOG.md", HEADING[0]

    def refusal(*arguments):
        done = release(project, *arguments)
        assert done.returncode == 2 and not (project / "build").exists()
        return done.stderr

    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.mkdir()
    full.mkdir()
    (full / "file").touch()
    assert "--faiss-checkouts is missing" in refusal()
    assert f"no folder {empty}/none" in refusal("--faiss-checkouts", empty / "none")
    assert f"{full} is not empty" in refusal("--draft", "--faiss-checkouts", checkouts, "--out", full)
    assert "no folder with faiss/Index.h" in refusal("--draft", "--faiss-checkouts", empty)

    text = changes.read_text()
    changes.write_text(text.replace(heading, f"## {VERSION}, not released yet"))
    assert "not released yet" in refusal("--faiss-checkouts", checkouts)
    changes.write_text(text.replace(heading, "## 99.0.0, 2030-01-01"))
    said = refusal("--faiss-checkouts", checkouts)
    assert VERSION in said and "99.0.0" in said
