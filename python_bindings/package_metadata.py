# SPDX-License-Identifier: MIT
"""The metadata of the Python package that depends on the FAISS it is built for.
scikit-build-core calls the methods, which pyproject.toml names."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

BINDINGS = Path(__file__).resolve().parent


class PackageMetadata:
    def build_state(self, build_state):
        self.is_source = build_state == "sdist"

    def dynamic_metadata(self, settings, project):
        """The version is that in CMakeLists.txt. A wheel for a faiss-cpu requires
        this faiss-cpu or a later patch release, whose classes are checked at
        import. Its version ends in the one of faiss-cpu, such as 0.1.0.post11501
        for 1.15.1. So a package index can hold wheels for several ones, and pip
        chooses the one that fits. (Indexes refuse local versions, such as
        0.1.0+faiss1.15.1.) Distributions have other names for FAISS, so nothing
        is required there."""
        text = (BINDINGS.parent / "CMakeLists.txt").read_text(encoding="utf-8")
        version = re.search(
            r"project\(\s*faiss_ext\s+VERSION\s+([0-9.]+)", text
        ).group(1)
        faiss = {} if self.is_source else faiss_module()
        if not faiss.get("distribution"):
            return {"version": version, "dependencies": []}
        major, minor, patch = map(int, faiss["version"].split(".")[:3])
        accepted = f">={major}.{minor}.{patch},<{major}.{minor + 1}"
        return {
            "version": f"{version}.post{major}{minor:02}{patch:02}",
            "dependencies": [faiss["distribution"] + accepted],
        }

    def dynamic_wheel(self, settings):
        return {"dependencies": True}

    def get_requires_for_dynamic_metadata(self, settings):
        """faiss-cpu is made with a newer SWIG than distributions have."""
        try:
            needs_new_swig = faiss_module()["type_table"] == "swig_runtime_data5"
        except RuntimeError:
            return []  # no wheel can be built, but a source archive can
        return ["swig>=4.4"] if needs_new_swig and not has_new_swig() else []


def faiss_module():
    """The facts that probe_faiss.py finds."""
    result = subprocess.run(
        [sys.executable, BINDINGS / "probe_faiss.py"],
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if result.returncode != 0:
        raise RuntimeError(
            f"faiss_ext extends FAISS, and {sys.executable} cannot import "
            f"faiss:\n{result.stderr}"
            "Install FAISS for Python (pip install faiss-cpu; Debian: "
            "python3-faiss). To use a system-wide one in a virtual "
            "environment, create that with --system-site-packages. Build "
            "tools that make an environment of their own need their option "
            "for no isolation."
        )
    return dict(line.split("=", 1) for line in result.stdout.splitlines())


def has_new_swig():
    swig = shutil.which("swig")
    if not swig:
        return False
    result = subprocess.run([swig, "-version"], capture_output=True, text=True)
    found = re.search(r"Version (\d+)\.(\d+)", result.stdout)
    return bool(found) and tuple(map(int, found.groups())) >= (4, 4)
