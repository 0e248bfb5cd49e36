#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the type stubs of the Python package, faiss_ext/__init__.pyi, from
the package that is imported.

    PYTHONPATH=build/python scripts/make_stubs.py           write them
    PYTHONPATH=build/python scripts/make_stubs.py --check   fail if they differ
"""

import inspect
import sys
from pathlib import Path

import faiss_ext
from faiss_ext.description import Description, Field

PATH = (Path(__file__).resolve().parents[1]
        / "python_bindings" / "faiss_ext" / "__init__.pyi")

HEAD = """\
# SPDX-License-Identifier: MIT
# Written by scripts/make_stubs.py.

import os
from typing import Any, Callable, Iterator, NamedTuple

import faiss
import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str
"""


def is_ours(thing):
    return thing.__module__.split(".")[0] == "faiss_ext"


def type_name(annotation):
    """An annotation, which may be a type or a string."""
    if annotation is inspect.Parameter.empty:
        return "Any"
    if isinstance(annotation, str):
        return annotation
    if annotation is None:
        return "None"
    name = getattr(annotation, "__name__", None)
    return name if isinstance(annotation, type) else str(
        annotation).replace("typing.", "").replace("faiss_ext.description.", "")


def function_stub(name, function, indent=""):
    """The line that declares a function."""
    signature = inspect.signature(function)
    parts, names = [], list(signature.parameters.values())
    for i, p in enumerate(names):
        if p.kind is p.KEYWORD_ONLY and (
                i == 0 or names[i - 1].kind is not p.KEYWORD_ONLY):
            parts.append("*")
        part = p.name
        if p.name != "self":
            part += ": " + type_name(p.annotation)
        if p.default is not p.empty:
            part += " = ..."
        parts.append(part)
        if p.kind is p.POSITIONAL_ONLY and (
                i + 1 == len(names)
                or names[i + 1].kind is not p.POSITIONAL_ONLY):
            parts.append("/")
    result = type_name(signature.return_annotation)
    if name == "__init__":
        result = "None"
    line = f"{indent}def {name}({', '.join(parts)}) -> {result}: ..."
    if len(line) <= 79:
        return line
    inner = "".join(f"{indent}    {part},\n" for part in parts)
    return f"{indent}def {name}(\n{inner}{indent}) -> {result}: ..."


def member_stubs(the_class):
    """The declarations in a class: attributes, then methods."""
    attributes, methods = [], []
    for name, member in vars(the_class).items():
        is_private = name.startswith("_") or name.endswith("_c")
        if is_private and name not in ("__init__", "__call__", "__getitem__",
                                       "__iter__", "__len__",
                                       "__contains__", "__enter__",
                                       "__exit__"):
            continue
        if name == "thisown":
            continue
        if isinstance(member, property):
            kind = getattr(member, "type", None) or "Any"
            if member.fset is None:
                attributes.append(f"    @property\n    def {name}(self) -> "
                                  f"{kind}: ...")
            else:
                attributes.append(f"    {name}: {kind}")
        elif isinstance(member, staticmethod):
            methods.append("    @staticmethod\n" + function_stub(
                name, member.__func__, "    "))
        elif inspect.isfunction(member):
            methods.append(function_stub(name, member, "    "))
        elif isinstance(member, (bool, int, float)):
            attributes.append(f"    {name}: {type(member).__name__}")
    return attributes + methods


def class_stub(the_class):
    if the_class is Field:
        lines = [f"    {name}: str" for name in Field._fields]
        return "\n".join(["class Field(NamedTuple):", *lines])
    bases = []
    for base in the_class.__bases__:
        if base is not object:
            bases.append(
                base.__name__ if is_ours(base) else "faiss." + base.__name__)
    head = f"class {the_class.__name__}"
    head += f"({', '.join(bases)}):" if bases else ":"
    members = member_stubs(the_class)
    if the_class is Description:
        members = ["    name: str", "    summary: str",
                   "    fields: tuple[Field, ...]", *members]
    return "\n".join([head, *members]) if members else head + " ..."


def stubs():
    """The text of the stubs."""
    things = [(name, getattr(faiss_ext, name)) for name in faiss_ext.__all__]
    classes = [thing for _, thing in things if isinstance(thing, type)]
    classes.sort(key=lambda c: (len(c.__mro__), c.__name__))
    functions = [function_stub(name, thing) for name, thing in things
                 if not isinstance(thing, type)]
    names = "".join(f'    "{name}",\n' for name in faiss_ext.__all__)
    return "\n".join([
        HEAD, f"__all__ = [\n{names}]\n",
        "\n\n".join(map(class_stub, classes)), "", *functions, ""])


def main():
    if "--check" in sys.argv[1:]:
        if PATH.read_text() != stubs():
            sys.exit(f"{PATH} is not what scripts/make_stubs.py would write: "
                     "run it")
    else:
        PATH.write_text(stubs())


if __name__ == "__main__":
    main()
