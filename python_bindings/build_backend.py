# SPDX-License-Identifier: MIT
"""Builds wheels and source archives of faiss_ext (PEP 517).

CMake does the work, against the FAISS of the interpreter that runs pip; this
file packs what CMake has put into ``<build>/python/faiss_ext``. It needs
nothing but the standard library, so that ``pip install .`` works without a
network, where there is a SWIG that fits FAISS's.

Environment: ``FAISS_EXT_FAISS_INCLUDE_DIR`` names the folder with FAISS's
headers, for a wheel of faiss-cpu, which has none; ``FAISS_EXT_CMAKE_ARGS`` is
appended to CMake's arguments; ``FAISS_EXT_BUNDLED_LICENSE`` names a file with the
licences of libraries that will be put into the wheel.
"""

import base64
import functools
import gzip
import hashlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "faiss_ext"

# What a source archive contains, as far as it is there.
SOURCES = [
    "CMakeLists.txt",
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "cmake",
    "faiss_ext",
    "python_bindings",
    "src",
    "tests",
]
NOT_SOURCES = re.compile(r"__pycache__|\..*|build|build-.*|.*\.(pyc|so|o|a)")


# ---- The functions that pip calls


def get_requires_for_build_wheel(config_settings=None):
    return ["swig>=4.4"] if needs_new_swig() and not has_new_swig() else []


def get_requires_for_build_sdist(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = Path(metadata_directory, dist_info())
    folder.mkdir(parents=True)
    for name, data in metadata_files().items():
        (folder / name).write_bytes(data)
    return folder.name


def build_wheel(
    wheel_directory, config_settings=None, metadata_directory=None
):
    with tempfile.TemporaryDirectory(prefix="faiss_ext-build-") as build:
        package = run_cmake(Path(build))
        return write_wheel(package, Path(wheel_directory))


def build_sdist(sdist_directory, config_settings=None):
    base = f"{NAME}-{version()}"
    path = Path(sdist_directory, base + ".tar.gz")
    with gzip.GzipFile(path, "wb", mtime=timestamp()) as zipped, tarfile.open(
        fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT
    ) as archive:
        for source in source_files():
            name = f"{base}/{source.relative_to(ROOT).as_posix()}"
            add_to_tar(
                archive, name, source.read_bytes(), os.access(source, os.X_OK)
            )
        add_to_tar(archive, f"{base}/PKG-INFO", metadata(version()))
    return path.name


# ---- Metadata


def version():
    """The version in CMakeLists.txt."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    found = re.search(r"project\(\s*faiss_ext\s+VERSION\s+([0-9.]+)", text)
    if not found:
        raise RuntimeError(
            "CMakeLists.txt has no line project(faiss_ext VERSION x.y.z ...)"
        )
    return found.group(1)


def wheel_version():
    """Such as 0.1.0, or, for one FAISS from PyPI, 0.1.0+faiss1.15.1: so that pip
    takes wheels for different ones for different."""
    faiss = faiss_module()
    suffix = f"+faiss{faiss['version']}" if faiss["distribution"] else ""
    return version() + suffix


def metadata(version, python="3.9", requirement=None):
    text = f"""\
Metadata-Version: 2.1
Name: {NAME}
Version: {version}
Summary: Kernel hashing for FAISS: similarity search under kernels
License: MIT
Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Programming Language :: Python :: 3
Requires-Python: >={python}
"""
    if requirement:
        text += f"Requires-Dist: {requirement}\n"
    readme = ROOT / "README.md"
    if readme.is_file():
        text += "Description-Content-Type: text/markdown\n\n"
        text += readme.read_text(encoding="utf-8")
    return text.encode()


def requirement():
    """faiss-cpu, which brings NumPy, where FAISS comes from its wheel. In
    distributions its package has other names; the build says if it is missing.
    """
    faiss = faiss_module()
    if not faiss["distribution"]:
        return None
    return f"{faiss['distribution']}=={faiss['version']}.*"


def dist_info():
    return f"{NAME}-{wheel_version()}.dist-info"


def is_for_stable_abi():
    """Whether the module is for many Pythons, as FAISS's own is."""
    return faiss_module()["extension"].endswith(".abi3.so")


def wheel_tag():
    """Such as cp311-cp311-linux_x86_64: this interpreter, this platform; or
    cp310-abi3-linux_x86_64."""
    if is_for_stable_abi():
        python, abi = "cp310", "abi3"
    else:
        python = "cp{}{}".format(*sys.version_info[:2])
        abi = "cp" + sysconfig.get_config_var("SOABI").split("-")[1]
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    return f"{python}-{abi}-{platform}"


def metadata_files():
    wheel = f"""\
Wheel-Version: 1.0
Generator: {NAME} build_backend
Root-Is-Purelib: false
Tag: {wheel_tag()}
"""
    files = {
        "METADATA": metadata(
            wheel_version(),
            "3.10" if is_for_stable_abi() else "3.9",
            requirement(),
        ),
        "WHEEL": wheel.encode(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
    }
    bundled = os.environ.get("FAISS_EXT_BUNDLED_LICENSE")
    if bundled:
        files["LICENSE.bundled"] = Path(bundled).read_bytes()
    return files


# ---- Building


def clean_environment():
    """The environment without what hides the system's packages.

    pip runs this file in an environment where only the build requirements can
    be imported. FAISS is not one of them.
    """
    env = dict(os.environ)
    kept = [
        entry
        for entry in env.pop("PYTHONPATH", "").split(os.pathsep)
        if entry and "pip-build-env-" not in entry
    ]
    if kept:
        env["PYTHONPATH"] = os.pathsep.join(kept)
    for name in ("PYTHONNOUSERSITE", "PYTHONHOME", "__PYVENV_LAUNCHER__"):
        env.pop(name, None)
    return env


@functools.cache
def faiss_module():
    """What the faiss module of this interpreter, freed from pip's isolation, is.

    A module built against the FAISS of another environment would not load
    here, or load and crash.
    """
    result = subprocess.run(
        [sys.executable, ROOT / "python_bindings" / "probe_faiss.py"],
        cwd="/",
        env=clean_environment(),
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


def needs_new_swig():
    """Wheels of faiss-cpu are made with a newer SWIG than distributions have."""
    return faiss_module()["type_table"] == "swig_runtime_data5"


def has_new_swig():
    swig = shutil.which("swig")
    if not swig:
        return False
    result = subprocess.run([swig, "-version"], capture_output=True, text=True)
    found = re.search(r"Version (\d+)\.(\d+)", result.stdout)
    return bool(found) and tuple(map(int, found.groups())) >= (4, 4)


def swig_from_pip():
    """CMake's arguments for the package swig, if pip has put it into the build
    environment, which CMake does not see."""
    found = importlib.util.find_spec("swig")
    if not found or not found.origin or not needs_new_swig():
        return []
    data = Path(found.origin).parent / "data"
    return [
        f"-DSWIG_EXECUTABLE={data / 'bin' / 'swig'}",
        *(f"-DSWIG_DIR={f}" for f in data.glob("share/swig/*")),
    ]


def find_cmake():
    for candidate in (shutil.which("cmake"), "/usr/bin/cmake"):
        if not candidate or not os.path.exists(candidate):
            continue
        # A wrapper on PATH may exist and still not run.
        result = subprocess.run(
            [candidate, "--version"], capture_output=True, text=True
        )
        found = re.match(r"cmake version (\d+)\.(\d+)", result.stdout)
        if found and tuple(map(int, found.groups())) >= (3, 22):
            return candidate
    raise RuntimeError("faiss_ext needs CMake 3.22 or newer to build")


def build_jobs():
    """One compiler for each core, as long as each has about 2 GB."""
    cores = len(os.sched_getaffinity(0))
    try:
        meminfo = Path("/proc/meminfo").read_text()
        available = int(re.search(r"MemAvailable:\s*(\d+)", meminfo).group(1))
    except (OSError, AttributeError):
        return cores
    return max(1, min(cores, available // 2**21))


def run_cmake(build):
    """Builds the Python package; returns its folder."""
    faiss_module()
    cmake = find_cmake()
    configure = [
        cmake,
        f"-S{ROOT}",
        f"-B{build}",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DFAISS_EXT_BUILD_PYTHON=ON",
        "-DFAISS_EXT_BUILD_TESTS=OFF",
        f"-DPython3_EXECUTABLE={sys.executable}",
        *swig_from_pip(),
    ]
    if shutil.which("ninja"):
        configure += ["-G", "Ninja"]
    configure += shlex.split(os.environ.get("FAISS_EXT_CMAKE_ARGS", ""))
    compile_ = [cmake, "--build", str(build), "--target", "faiss_ext_python"]
    compile_ += ["--parallel", str(build_jobs())]
    for command in (configure, compile_):
        print(shlex.join(command), flush=True)
        subprocess.run(
            command,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            check=True,
        )
    package = build / "python" / NAME
    if not (package / "__init__.py").is_file():
        raise RuntimeError(f"the build has left no package in {package}")
    return package


# ---- Packing


def timestamp():
    return int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))


def package_files(package):
    """All files of the built package but the byte code and SWIG's C++."""
    return [
        path
        for path in sorted(package.rglob("*"))
        if path.is_file()
        and path.suffix not in (".pyc", ".cxx")
        and "__pycache__" not in path.parts
    ]


def write_wheel(package, folder):
    """Packs the built package; returns the wheel's file name."""
    files = {
        f"{NAME}/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in package_files(package)
    }
    info = dist_info()
    for name, data in metadata_files().items():
        files[f"{info}/{name}"] = data
    record = "".join(
        f"{name},sha256={urlsafe_sha256(data)},{len(data)}\n"
        for name, data in files.items()
    )
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()

    filename = f"{NAME}-{wheel_version()}-{wheel_tag()}.whl"
    # The zip format begins in 1980.
    date = time.gmtime(max(timestamp(), 315619200))[:6]
    with zipfile.ZipFile(folder / filename, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            mode = 0o755 if name.endswith(".so") else 0o644
            entry.external_attr = (stat.S_IFREG | mode) << 16
            out.writestr(entry, data)
    return filename


def urlsafe_sha256(data):
    digest = hashlib.sha256(data).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def source_files():
    found = []
    for name in SOURCES:
        top = ROOT / name
        if top.is_file():
            found.append(top)
            continue
        for folder, folders, names in os.walk(top):
            folders[:] = sorted(f for f in folders if is_source(f))
            found += [Path(folder, n) for n in sorted(names) if is_source(n)]
    return found


def is_source(name):
    return not NOT_SOURCES.fullmatch(name)


def add_to_tar(archive, name, data, executable=False):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mtime = timestamp()
    entry.mode = 0o755 if executable else 0o644
    archive.addfile(entry, io.BytesIO(data))
