# SPDX-License-Identifier: MIT
"""Libraries that are linked with the copies of scripts/older_libraries.py."""

import ctypes
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "older_libraries.py"
LIMITS = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11)}  # PEP 600 and auditwheel's policy

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")

# Each of these is newer than LIMITS in Debian 12, or has a newer version there.
NEW_FEATURES = r"""
#include <charconv>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <shared_mutex>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

extern "C" double power_of_exp(double x, double y) { return std::pow(std::exp(x), y) + std::log(y); }
extern "C" void shortest(double x, char* text) { *std::to_chars(text, text + 40, x).ptr = 0; }
extern "C" double parsed(const char* text) {
    double x = 0;
    std::from_chars(text, text + std::strlen(text), x);
    return x;
}
extern "C" long size_of_file(const char* name, int how) {
    static std::shared_mutex mutex;
    std::shared_lock lock(mutex);
    struct stat facts;
    if (how == 0) return stat(name, &facts) ? -1 : facts.st_size;
    if (how == 1) return lstat(name, &facts) ? -1 : facts.st_size;
    if (how == 2) return std::filesystem::file_size(std::filesystem::absolute(name));
    int file = open(name, O_RDONLY);
    int failed = fstat(file, &facts);
    close(file);
    return failed ? -1 : facts.st_size;
}
extern "C" long counted() {
    auto one = std::make_shared<int>(1);
    auto two = one;
    return two.use_count();
}
// 1: a std::exception with this text was caught, and none is left
extern "C" int catches(void (*function)(), const char* text) {
    try {
        function();
    } catch (const std::exception& error) {
        return std::strcmp(error.what(), text) == 0 && std::uncaught_exceptions() == 0;
    }
    return 0;
}
extern "C" void throws_filesystem_error() { throw std::filesystem::filesystem_error("no such thing", {}); }
"""

THROWS = r"""
#include <exception>
#include <stdexcept>
extern "C" void throws() { throw std::out_of_range("too far"); }
extern "C" bool catches_any(void (*function)()) {
    try {
        function();
    } catch (const std::runtime_error&) {
        return std::uncaught_exceptions() == 0;
    }
    return false;
}
"""


def link(folder, name, source, *options):
    (folder / f"{name}.cpp").write_text(source)
    library = folder / f"{name}.so"
    subprocess.run(["g++", "-std=c++20", "-O1", "-fPIC", "-shared", folder / f"{name}.cpp", "-o", library, *options],
                   check=True)
    return library


def newer_versions(library):
    """The versions of symbols that LIMITS do not allow."""
    text = subprocess.run(["readelf", "-W", "--dyn-syms", library], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r" UND \w+@(\w+)_([\d.]+)", text))
    return {f"{prefix}_{number}" for prefix, number in needed
            if prefix in LIMITS and tuple(map(int, number.split("."))) > LIMITS[prefix]}


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("older")
    subprocess.run([sys.executable, SCRIPT, folder], check=True)
    return [f"-L{folder}", "-Wl,--exclude-libs,libstdc++.a"]


@pytest.fixture(scope="module")
def library(tmp_path_factory, options):
    return link(tmp_path_factory.mktemp("linked"), "features", NEW_FEATURES, *options)


def test_nothing_newer_than_the_limits_is_needed(library, tmp_path):
    assert newer_versions(link(tmp_path, "new", NEW_FEATURES))  # without the copies
    assert not newer_versions(library)


def test_no_symbol_is_without_a_version(library):
    """The loader would take any version of it, also one that old systems lack."""
    text = subprocess.run(["readelf", "-W", "--dyn-syms", library], check=True, capture_output=True, text=True).stdout
    unversioned = set(re.findall(r"(?:FUNC|OBJECT) +\w+ +\w+ +UND (\w+)$", text, re.M))
    assert "@" in text and not unversioned


def test_statically_linked_parts_are_hidden(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in text.splitlines()]
    assert "size_of_file" in names
    assert not {"stat", "lstat", "fstat", "__libc_single_threaded"} & set(names)
    assert not [name for name in names if name.startswith("_ZNSt10filesystem") and "absolute" in name]


def test_the_linked_functions_work(library, tmp_path):
    loaded = ctypes.CDLL(str(library))
    loaded.power_of_exp.restype = loaded.parsed.restype = ctypes.c_double
    loaded.power_of_exp.argtypes = [ctypes.c_double, ctypes.c_double]
    loaded.size_of_file.restype = loaded.counted.restype = ctypes.c_long
    assert loaded.power_of_exp(1.5, 2.5) == pytest.approx(math.exp(1.5) ** 2.5 + math.log(2.5), rel=1e-15)
    text = ctypes.create_string_buffer(64)
    loaded.shortest(ctypes.c_double(0.1), text)
    assert text.value == b"0.1"
    assert loaded.parsed(b"-1.25e-3") == -1.25e-3
    file = tmp_path / "file"
    file.write_bytes(bytes(1234))
    assert [loaded.size_of_file(bytes(file), how) for how in range(4)] == [1234] * 4
    assert loaded.size_of_file(bytes(tmp_path / "none"), 0) == -1
    assert loaded.counted() == 2


def test_exceptions_pass_between_libraries_linked_with_and_without_the_copies(library, tmp_path):
    ours, other = ctypes.CDLL(str(library)), ctypes.CDLL(str(link(tmp_path, "throws", THROWS)))
    assert ours.catches(ctypes.cast(other.throws, ctypes.c_void_p), b"too far") == 1
    other.catches_any.restype = ctypes.c_bool
    assert other.catches_any(ctypes.cast(ours.throws_filesystem_error, ctypes.c_void_p))


def test_a_missing_function_of_c_is_seen_in_the_versions(tmp_path, options):
    source = '#include <unistd.h>\nextern "C" int thread() { return gettid(); }\n'
    assert newer_versions(link(tmp_path, "thread", source, *options)) == {"GLIBC_2.30"}
