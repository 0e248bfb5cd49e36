#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the type stubs of the Python package, faiss_ext/__init__.pyi, from the
imported package.

    PYTHONPATH=build/python scripts/make_stubs.py           write them
    PYTHONPATH=build/python scripts/make_stubs.py --check   fail if they differ
"""

import inspect
import re
import sys
from pathlib import Path

import faiss_ext
from faiss_ext import documentation
from faiss_ext.description import Description, Field

PATH = (Path(__file__).resolve().parents[1]
        / "python_bindings" / "faiss_ext" / "__init__.pyi")

HEAD = """\
# SPDX-License-Identifier: MIT
# Written by scripts/make_stubs.py.

import os
from typing import Any, Callable, Iterator, NamedTuple, type_check_only

import faiss
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .advice import Tried

__version__: str
"""

# What functions and attributes return is of a subclass of these, which has more
# attributes: types for it that only checkers know.
SUBCLASSES = {
    "Kernel": "_AnyKernel", "FeatureMap": "_AnyMap", "KernelHash": "_AnyHash",
    "Projection": "_AnyProjection", "faiss.Index": "_AnyIndex",
    "faiss.IndexBinary": "_AnyBinaryIndex"}
ANY_ATTRIBUTE = """\
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ..."""
INDEX_ATTRIBUTES = """\
    d: int
    metric_type: int
    @property
    def ntotal(self) -> int: ...
    @property
    def is_trained(self) -> bool: ...
    def __len__(self) -> int: ..."""
METHODS = {"faiss.Index": documentation.FloatIndexMethods,
           "faiss.IndexBinary": documentation.BinaryIndexMethods}


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


def result_name(annotation):
    """The type of what is returned, which may be of a subclass."""
    name = type_name(annotation)
    for base, subclass in SUBCLASSES.items():
        name = re.sub(rf"(?<![\w.]){base}(?![\w.])", subclass, name)
    return name


def subclass_stub(base):
    """The type of objects of any subclass."""
    lines = [f"@type_check_only\nclass {SUBCLASSES[base]}({base}):"]
    if base in METHODS:
        lines += [INDEX_ATTRIBUTES, *member_stubs(METHODS[base])]
    return "\n".join([*lines, ANY_ATTRIBUTE])


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
    result = result_name(signature.return_annotation)
    if name == "__init__":
        result = "None"
    line = f"{indent}def {name}({', '.join(parts)}) -> {result}: ..."
    if len(line) <= 79:
        return line
    inner = "".join(f"{indent}    {part},\n" for part in parts)
    return f"{indent}def {name}(\n{inner}{indent}) -> {result}: ..."


def member_stubs(the_class):
    """The declarations in a class: attributes, then methods."""
    attributes = [f"    {name}: {result_name(annotation)}" for name, annotation
                  in inspect.get_annotations(the_class).items()]
    methods = []
    for name, member in vars(the_class).items():
        is_private = name.startswith("_") or name.endswith("_c")
        if is_private and name not in ("__init__", "__call__", "__getitem__",
                                       "__iter__", "__len__", "__bool__",
                                       "__contains__", "__enter__",
                                       "__exit__"):
            continue
        if name == "thisown":
            continue
        if isinstance(member, property):
            kind = result_name(
                getattr(member, "type", None)
                or getattr(member.fget, "__annotations__", {}).get("return")
                or "Any")
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
        "\n\n".join([*map(class_stub, classes),
                     *map(subclass_stub, SUBCLASSES)]), "", *functions, ""])


def main():
    if "--check" in sys.argv[1:]:
        if PATH.read_text() != stubs():
            sys.exit(f"{PATH} is not what scripts/make_stubs.py would write: "
                     "run it")
    else:
        PATH.write_text(stubs())


if __name__ == "__main__":
    main()
