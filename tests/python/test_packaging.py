# SPDX-License-Identifier: MIT
"""The wheel and the source archive, and ``pip install`` without a network."""

import base64
import csv
import hashlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import faiss
import pytest

from faiss_ext import check_faiss

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def backend():
    spec = importlib.util.spec_from_file_location(
        "build_backend", ROOT / "python_bindings" / "build_backend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def clean_environment():
    """Neither the checkout's build nor the user's pip settings count. What is
    compiled here need not be fast."""
    targets = "|".join(f"HWY_{name}" for name in ("SSSE3", "SSE4", "AVX2", "AVX3", "AVX3_DL"))
    leave_out = ("PYTHON", "PIP_", "VIRTUAL_ENV")
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith(leave_out)},
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "FAISS_EXT_CMAKE_ARGS": (
            "-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0"
            f" -DFAISS_EXT_DISABLED_TARGETS={targets}"),
    }


def run(*command, cwd):
    result = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean_environment(), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode == 0, result.stdout
    return result.stdout


def files_below(folder):
    found = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {path.relative_to(folder) for path in found}


@pytest.fixture(scope="module")
def sources(backend, tmp_path_factory):
    """A copy of the sources: the source archive, unpacked."""
    folder = tmp_path_factory.mktemp("sources")
    name = backend.build_sdist(str(folder))
    with tarfile.open(folder / name) as archive:
        archive.extractall(folder)
    return folder / name[: -len(".tar.gz")]


def test_wheel_is_well_formed(backend, tmp_path):
    package = tmp_path / "faiss_ext"
    (package / "__pycache__").mkdir(parents=True)
    (package / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"no")
    (package / "__init__.py").write_text("x = 1\n")
    (package / "_swigfaiss_ext.so").write_bytes(b"\x7fELF")
    (package / "swigfaiss_ext_wrap.cxx").write_bytes(b"no")
    name = backend.write_wheel(package, tmp_path)

    assert name == f"faiss_ext-{backend.wheel_version()}-{backend.wheel_tag()}.whl"
    info = f"faiss_ext-{backend.wheel_version()}.dist-info"
    with zipfile.ZipFile(tmp_path / name) as wheel:
        assert wheel.testzip() is None
        data = {entry: wheel.read(entry) for entry in wheel.namelist()}
    assert set(data) == {
        "faiss_ext/__init__.py",
        "faiss_ext/_swigfaiss_ext.so",
        *(f"{info}/{x}" for x in ("METADATA", "WHEEL", "LICENSE", "RECORD")),
    }
    metadata = data[f"{info}/METADATA"].decode()
    for line in ("Name: faiss_ext", f"Version: {backend.wheel_version()}", "License: MIT"):
        assert f"\n{line}\n" in metadata
    prepared = tmp_path / "prepared"
    assert backend.prepare_metadata_for_build_wheel(str(prepared)) == info
    for file in (prepared / info).iterdir():
        assert file.read_bytes() == data[f"{info}/{file.name}"]

    record = data.pop(f"{info}/RECORD").decode()
    listed = {row[0]: row[1:] for row in csv.reader(io.StringIO(record))}
    assert listed.pop(f"{info}/RECORD") == ["", ""]
    assert set(listed) == set(data)
    for entry, (digest, size) in listed.items():
        assert int(size) == len(data[entry])
        expected = hashlib.sha256(data[entry]).digest()
        assert digest.startswith("sha256=")
        assert base64.urlsafe_b64decode(digest[7:] + "=") == expected


def test_source_archive_has_sources_only(sources):
    for name in (
        "CMakeLists.txt", "LICENSE", "PKG-INFO", "pyproject.toml",
        "python_bindings/build_backend.py", "python_bindings/faiss_ext/__init__.py",
    ):
        assert (sources / name).is_file(), name
    for folder in ("faiss_ext", "src"):
        here = {p.relative_to(ROOT) for p in (ROOT / folder).rglob("*.[hc]*")}
        assert len(here) > 30
        assert all((sources / p).is_file() for p in here)
    assert not list(sources.rglob("*.so"))


def test_pip_install_in_a_virtual_environment(backend, sources, tmp_path):
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"this Python has no module {module}")
    before = files_below(sources)
    venv = tmp_path / "venv"
    python = venv / "bin" / "python"
    run(sys.executable, "-m", "venv", "--system-site-packages", venv, cwd="/")
    run(python, "-m", "pip", "install", "--no-index", sources, cwd=tmp_path)
    assert files_below(sources) == before

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    program = """
import faiss, faiss_ext, numpy as np
x = np.random.RandomState(1).rand(100, 16).astype("float32")
index = faiss.index_factory(16, "SIK64(gaussian,gamma=1),BFlat")
index.train(x)
index.add(x)
D, I = index.search(x, 3)
assert I.shape == D.shape == (100, 3)
assert (D[:, 0] == 0).all() and (np.diff(D) >= 0).all(), D
print(faiss_ext.__file__)
"""
    where = run(python, "-c", program, cwd=elsewhere).splitlines()[-1]
    assert venv in Path(where).parents
    shown = run(python, "-m", "pip", "show", "faiss_ext", cwd=elsewhere)
    assert f"Version: {backend.wheel_version()}" in shown


def refusal(backend, folder, *arguments, **environment):
    """What CMake says that it does not go on for."""
    result = subprocess.run(
        [backend.find_cmake(), "-S", ROOT, "-B", folder / "build", "-DFAISS_EXT_BUILD_PYTHON=ON",
         "-DFAISS_EXT_BUILD_TESTS=OFF", f"-DPython3_EXECUTABLE={sys.executable}",
         *arguments],
        env={**clean_environment(), **environment}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode != 0
    return " ".join(result.stdout.split())


def test_headers_of_another_version_are_refused(backend, tmp_path):
    major, minor, patch = map(int, faiss.__version__.split(".")[:3])
    other = f"{major}.{minor}.{patch + 1}"
    fake = tmp_path / "modules" / "faiss" / "__init__.py"
    fake.parent.mkdir(parents=True)
    fake.write_text(f"""
import sys
sys.path.remove(__file__.removesuffix("/faiss/__init__.py"))
del sys.modules["faiss"]
import faiss
faiss.__version__ = "{other}"
""")
    said = refusal(backend, tmp_path, PYTHONPATH=str(fake.parent.parent))
    for named in (f"is FAISS {other},", f"are of FAISS {faiss.__version__};", "-DPython3_EXECUTABLE"):
        assert named in said, said


def test_another_type_table_of_swig_is_refused(backend, tmp_path):
    swig = tmp_path / "swig"
    swig.write_text(f"""#!/bin/sh
case "$*" in
*-external-runtime*)
    for file; do :; done
    echo '#define SWIG_RUNTIME_VERSION "99"' >"$file" ;;
*) exec {shutil.which("swig")} "$@" ;;
esac
""")
    swig.chmod(0o755)
    said = refusal(backend, tmp_path, f"-DSWIG_EXECUTABLE={swig}")
    for named in ("swig_runtime_data99", check_faiss.SWIG_TYPE_TABLE, "pip install"):
        assert named in said, said


def test_the_demo_builds_what_an_installation_needs(backend, sources, tmp_path):
    """demo.sh configures; in place of building, ninja lists what it would run.
    What ``cmake --install`` copies and is not there yet must be made there."""
    if shutil.which("ninja") is None:
        pytest.skip("needs ninja")
    sources = shutil.copytree(sources, tmp_path / "checkout")
    shutil.copytree(ROOT / "scripts", sources / "scripts")
    tools = tmp_path / "tools"
    tools.mkdir()
    programs = {
        "cmake": f'[ "$1" != --build ] || set -- "$@" -- -t commands\n'
        f'exec "{backend.find_cmake()}" "$@"',
        "ctest": "exit 0",
    }
    for name, program in programs.items():
        (tools / name).write_text(f"#!/bin/sh\n{program}\n")
        (tools / name).chmod(0o755)

    env = clean_environment()
    env.pop("FAISS_EXT_CMAKE_ARGS", None)
    env["PATH"] = f"{tools}{os.pathsep}{env['PATH']}"
    env["PYTHON"] = sys.executable
    env["FAISS_EXT_SKIP_INSTALL"] = "1"
    result = subprocess.run(
        [sources / "scripts" / "demo.sh", "--data", "nowhere"],
        cwd=tmp_path, env=env, text=True, stdin=subprocess.DEVNULL, capture_output=True)
    assert "demo: " in result.stderr, result.stderr  # it came to the demo
    build = sources / "build"
    wanted = [
        Path(file)
        for script in build.rglob("cmake_install.cmake")
        for files in re.findall(r"file\(INSTALL .* FILES((?:\s+\"[^\"]+\")+)", script.read_text())
        for file in re.findall(r'"([^"]+)"', files)]
    missing = [file.relative_to(build) for file in wanted if not file.exists()]
    assert any(file.suffix in (".a", ".so") for file in missing), wanted
    missing.append("python/faiss_ext/__init__.py")
    missing.append("python/faiss_ext/_swigfaiss_ext.so")
    for file in missing:
        assert re.search(rf"\b{file}\b", result.stdout), result.stdout
