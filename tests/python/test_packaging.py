# SPDX-License-Identifier: MIT
"""The wheel, the source archive, and what CMake refuses."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import faiss
import pytest

from faiss_ext import check_faiss

ROOT = Path(__file__).resolve().parents[2]
CMAKE = shutil.which(os.environ.get("CMAKE", "cmake"))


def clean_environment():
    """The checkout's build does not count. What is compiled here need not be
    fast."""
    targets = "|".join(f"HWY_{name}" for name in ("SSSE3", "SSE4", "AVX2", "AVX3", "AVX3_DL"))
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))},
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "CMAKE_ARGS": f"-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DFAISS_EXT_DISABLED_TARGETS={targets}",
    }


def run(*command, cwd, **environment):
    result = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**clean_environment(), **environment}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode == 0, result.stdout
    return result.stdout


def files_below(folder):
    found = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {path.relative_to(folder) for path in found}


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    """A virtual environment that sees this FAISS, with what builds packages."""
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"this Python has no module {module}")
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--system-site-packages", folder, cwd="/")
    needed = re.search(r'"(scikit-build-core.*?)"', (ROOT / "pyproject.toml").read_text()).group(1)
    got = subprocess.run(
        [folder / "bin" / "python", "-m", "pip", "install", needed], env=clean_environment(),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if got.returncode != 0:
        pytest.skip(f"pip gets no {needed}: {got.stdout[-300:]}")
    return folder


@pytest.fixture(scope="module")
def sources(venv, tmp_path_factory):
    """A copy of the sources: the source archive, unpacked."""
    folder = tmp_path_factory.mktemp("sources")
    program = f"from scikit_build_core.build import build_sdist as b; print(b({str(folder)!r}))"
    name = run(venv / "bin" / "python", "-c", program, cwd=ROOT).splitlines()[-1]
    with tarfile.open(folder / name) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    return folder / name[: -len(".tar.gz")]


def test_source_archive_has_sources_only(sources):
    for name in (
        "CMakeLists.txt", "LICENSE", "PKG-INFO", "pyproject.toml",
        "python_bindings/package_metadata.py", "python_bindings/faiss_ext/__init__.py",
        "python_bindings/faiss_ext/_version.py.in",
    ):
        assert (sources / name).is_file(), name
    for folder in ("faiss_ext", "src"):
        here = {p.relative_to(ROOT) for p in (ROOT / folder).rglob("*.[hc]*")}
        assert len(here) > 30
        assert all((sources / p).read_bytes() == (ROOT / p).read_bytes() for p in here)
    assert not list(sources.rglob("*.so"))
    assert {path.name for path in sources.iterdir()} == {
        "CMakeLists.txt", "LICENSE", "PKG-INFO", "README.md", "cmake", "faiss_ext",
        "pyproject.toml", "python_bindings", "src", "tests"}


@pytest.mark.parametrize("version, number, required", [
    ("1.14.2", 11402, "faiss-cpu>=1.14.2,<1.15"),
    ("1.15.0", 11500, "faiss-cpu>=1.15.0,<1.16"),
    ("1.15.1", 11501, "faiss-cpu>=1.15.1,<1.16"),
])
def test_a_wheel_for_faiss_cpu_requires_its_minor_version(
        monkeypatch, version, number, required):
    monkeypatch.syspath_prepend(ROOT / "python_bindings")
    import package_metadata

    monkeypatch.setattr(package_metadata, "faiss_module", lambda: {
        "version": version, "distribution": "faiss-cpu"})
    metadata = package_metadata.PackageMetadata()
    metadata.build_state("wheel")
    found = metadata.dynamic_metadata({}, {})
    assert re.fullmatch(rf"\d+\.\d+\.\d+\.post{number}", found["version"])
    assert found["dependencies"] == [required]
    metadata.build_state("sdist")  # is for all versions of FAISS
    source = metadata.dynamic_metadata({}, {})
    assert source == {"version": found["version"].split(".post")[0], "dependencies": []}


# Compiles nothing that the checkout's build has already compiled from the same source.
LAUNCHER = """#!{python}
import filecmp, os, shutil, sys
from pathlib import Path

command = sys.argv[1:]
if "-c" in command:
    source, made = (Path(command[command.index(option) + 1]) for option in ("-c", "-o"))
    for folder, there in ((Path({sources!r}), Path({root!r})), (Path.cwd(), Path({build!r}))):
        if source.is_relative_to(folder):
            same, object = there / source.relative_to(folder), Path({build!r}) / made
            if same.exists() and object.exists() and filecmp.cmp(source, same, shallow=False):
                shutil.copy(object, made)
                sys.exit()
os.execvp(command[0], command)
"""


def arguments_of_cmake(sources, folder):
    """Takes objects of the checkout's build, which scripts/test.sh makes first; scripts/nightly.sh compiles them."""
    build = ROOT / "build"
    if os.environ.get("FAISS_EXT_COMPILE_PACKAGE") == "1" or not (build / "libfaiss_ext.a").exists():
        return {}
    launcher = folder / "launcher"
    paths = {"sources": str(sources), "root": str(ROOT), "build": str(build)}
    launcher.write_text(LAUNCHER.format(python=sys.executable, **paths))
    launcher.chmod(0o755)
    return {"CMAKE_ARGS": f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"}


def test_pip_install_in_a_virtual_environment(venv, sources, tmp_path):
    before = files_below(sources)
    python = venv / "bin" / "python"
    run(python, "-m", "pip", "install", sources, cwd=tmp_path, **arguments_of_cmake(sources, tmp_path))
    assert files_below(sources) == before

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    program = """
import faiss, faiss_ext, importlib.metadata, numpy as np
x = np.random.RandomState(1).rand(100, 16).astype("float32")
index = faiss.index_factory(16, "SIK64(gaussian,gamma=1),BFlat")
index.train(x)
index.add(x)
D, I = index.search(x, 3)
assert I.shape == D.shape == (100, 3)
assert (D[:, 0] == 0).all() and (np.diff(D) >= 0).all(), D
assert importlib.metadata.version("faiss_ext").split(".post")[0] == faiss_ext.__version__
print(faiss_ext.__file__)
"""
    where = Path(run(python, "-c", program, cwd=elsewhere).splitlines()[-1])
    assert venv in where.parents
    kinds = {path.suffix for path in files_below(where.parent)}
    assert kinds == {".py", ".pyi", ".so", ".typed"}


def refusal(folder, *arguments, **environment):
    """What CMake says that it does not go on for."""
    result = subprocess.run(
        [CMAKE, "-S", ROOT, "-B", folder / "build", "-DFAISS_EXT_BUILD_PYTHON=ON",
         "-DFAISS_EXT_BUILD_TESTS=OFF", f"-DPython3_EXECUTABLE={sys.executable}",
         *arguments],
        env={**clean_environment(), **environment}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode != 0
    return " ".join(result.stdout.split())


def test_headers_of_another_version_are_refused(tmp_path):
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
    said = refusal(tmp_path, PYTHONPATH=str(fake.parent.parent))
    for named in (f"is FAISS {other},", f"are of FAISS {faiss.__version__};", "-DPython3_EXECUTABLE"):
        assert named in said, said


def test_another_type_table_of_swig_is_refused(tmp_path):
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
    said = refusal(tmp_path, f"-DSWIG_EXECUTABLE={swig}")
    for named in ("swig_runtime_data99", check_faiss.SWIG_TYPE_TABLE, "pip install"):
        assert named in said, said


def test_compiling_for_another_processor_needs_its_faiss(tmp_path):
    said = refusal(tmp_path, "-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64")
    for named in ("To compile for aarch64", f"in version {faiss.__version__}", "-DFAISS_EXT_FAISS_LIBRARY"):
        assert named in said, said


def test_the_demo_builds_what_an_installation_needs(tmp_path):
    """demo.sh configures; in place of building, ninja lists what it would run.
    What ``cmake --install`` copies and is not there yet must be made there."""
    if shutil.which("ninja") is None:
        pytest.skip("needs ninja")
    sources = shutil.copytree(
        ROOT, tmp_path / "checkout", ignore=shutil.ignore_patterns(".*", "build", "build-*", "dist"))
    tools = tmp_path / "tools"
    tools.mkdir()
    programs = {
        "cmake": f'[ "$1" != --build ] || set -- "$@" -- -t commands\n'
        f'exec "{CMAKE}" "$@"',
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
