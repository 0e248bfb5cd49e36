#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes link-time copies of the C and C++ libraries of manylinux_2_28, so that a
new compiler can link shared objects that older systems load.

    scripts/older_libraries.py FOLDER [--compiler g++]
    g++ -shared ... -LFOLDER -Wl,--exclude-libs,libstdc++.a

The linker records the newest version of each symbol that it finds. A copy has
the symbols of the compiler's own library without their code, and each symbol has
its newest version within LIMITS. At run time the system's libraries are used,
old or new. So a process has one libstdc++.so.6, and faiss_ext can catch the
exceptions of FAISS.

Code that old systems lack is linked statically: newer parts of C++ from the
compiler's libstdc++.a, and newer functions of C from older_libc.c. If a function
of C is missing there, the result refers to the newer version, and auditwheel
refuses it.
"""

import argparse
import re
import subprocess
from pathlib import Path

LIMITS = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11)}  # of manylinux_2_28
LIBC_SOURCE = Path(__file__).resolve().parent / "older_libc.c"


def symbols(library):
    """The symbols of a library, each with its newest version within LIMITS:
    {name: (version, type)}. Newer symbols of C++ are left out, as libstdc++.a has
    them. Symbols of C have one version only."""
    lines = subprocess.run(["readelf", "-W", "--dyn-syms", library], check=True, capture_output=True, text=True).stdout
    found = {}
    for kind, section, name, version in re.findall(
            r"^ *\d+: \S+ +\S+ +(\w+) +\w+ +\w+ +(\w+) (\w+)@@?([A-Z]+_[\d.]+)$", lines, re.M):
        if section in ("UND", "ABS") or kind == "TLS":
            continue
        prefix, numbers = version.split("_")
        numbers = tuple(map(int, numbers.split(".")))
        is_old = numbers <= LIMITS.get(prefix, numbers)
        rank = is_old, numbers  # the newest of the old ones is the best
        if (is_old or prefix == "GLIBC") and rank >= found.get(name, (rank,))[0]:
            found[name] = rank, version, "object" if kind == "OBJECT" else "function"
    return {name: entry[1:] for name, entry in found.items()}


def make_copy(compiler, library, soname, output):
    entries = symbols(library)
    if not entries:
        raise SystemExit(f"older_libraries.py: no symbols in {library}")
    source, script = output.with_suffix(".s"), output.with_suffix(".map")
    with open(source, "w") as file:
        for i, (name, (version, kind)) in enumerate(sorted(entries.items())):
            file.write(f".globl s{i}\n.type s{i}, %{kind}\n.symver s{i}, {name}@@{version}, remove\n"
                       f"s{i}: .quad 0\n.size s{i}, 8\n")
        file.write('.section .note.GNU-stack, "", %progbits\n')
    script.write_text("".join(f"{version} {{}};\n" for version in sorted({v for v, _ in entries.values()})))
    subprocess.run([compiler, "-shared", "-nostdlib", f"-Wl,-soname,{soname},--version-script,{script}",
                    source, "-o", output], check=True)
    source.unlink()
    script.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compiler", default="g++", help="whose libraries are copied (default: g++)")
    arguments = parser.parse_args()
    folder, compiler = arguments.folder.resolve(), arguments.compiler
    folder.mkdir(parents=True, exist_ok=True)

    def path_of(name):
        path = subprocess.run([compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True)
        return path.stdout.strip()

    machine = subprocess.run([compiler, "-dumpmachine"], check=True, capture_output=True, text=True).stdout
    loader = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}[machine.split("-")[0]]
    for soname in ("libc.so.6", "libm.so.6", loader, "libstdc++.so.6"):
        make_copy(compiler, path_of(soname), soname, folder / soname)
    subprocess.run([compiler, "-x", "c", "-c", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra",
                    LIBC_SOURCE, "-o", folder / "older_libc.o"], check=True)
    # The linker reads these texts in place of libraries.
    (folder / "libc.so").write_text(
        f'GROUP("{folder}/libc.so.6" "{folder}/older_libc.o" "{path_of("libc_nonshared.a")}" '
        f'AS_NEEDED("{folder}/{loader}"))\n')
    (folder / "libm.so").write_text(f'INPUT("{folder}/libm.so.6")\n')
    (folder / "libstdc++.so").write_text(f'GROUP("{folder}/libstdc++.so.6" "{path_of("libstdc++.a")}")\n')


if __name__ == "__main__":
    main()
