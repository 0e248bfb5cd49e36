# SPDX-License-Identifier: MIT
"""Writes a module made by SWIG in Python's terms, when the package is built.

SWIG copies signatures and comments from C++, with C++ types and Doxygen
syntax. Here they become Python types and docstrings in NumPy style:

    tidy_module.py SWIG_MODULE TIDIED_MODULE
"""

import ast
import inspect
import re
import sys
from pathlib import Path

HEAD = """\
"Made by SWIG and tidy_module.py."
from functools import wraps as _wraps
from .documentation import Attribute as _Attribute, OPAQUE_DEFAULT as _OPAQUE
"""
NUMBERS = {
    "bool": "bool", "int": "int", "size_t": "int", "int64_t": "int", "int32_t": "int",
    "idx_t": "int", "faiss::MetricType": "int", "float": "float",
    "double": "float"}
VECTORS = {
    "float": "Float32Vector", "double": "Float64Vector",
    "int32_t": "Int32Vector", "uint8_t": "UInt8Vector"}
BUILTINS = {"bool", "int", "float", "str", "None"}


def python_type(words, classes):
    """The Python type of a C++ type, as a string; None if there is none."""
    words = re.sub(r"\bconst\b|&", "", words)
    words = re.sub(r"\bfaiss_ext::", "", words).strip()
    held = re.fullmatch(r"(?:std::unique_ptr|ClonePtr)<(.*)>", words)
    name = held[1].strip() if held else words.rstrip("* ")
    if name in NUMBERS:
        return NUMBERS[name] if "*" not in words else None
    if name in ("void", "std::string"):
        return {"void": "None", "std::string": "str"}[name]
    if name == "std::vector< std::string >":
        return "list[str]"
    vector = re.fullmatch(r"std::vector< (\w+) >", name)
    if vector:
        return "faiss." + VECTORS[vector[1]] if vector[1] in VECTORS else None
    name = name.replace("faiss::", "")
    if "::" in name:
        return "str"  # enumerators are strings in Python
    if name in classes:
        return name
    return None if name in ("char", "uint8_t", "PyObject") else "faiss." + name


def python_text(text):
    """A C++ comment in Python's terms."""
    # drop examples, which are in C++
    text = "\n\n".join(part for part in text.split("\n\n")
                       if not re.search(r"^    .*;( *//.*)?$", part, re.M))
    text = text.replace("faiss::FaissException", "RuntimeError")
    text = re.sub(r"\bThrows\b", "Raises", text)
    text = re.sub(r"\bthrows\b", "raises", text)
    text = re.sub(r"\bnull\b", "None", text)
    return re.sub(r"(\w)(?:::|->)(\w)", r"\1.\2", text)


def split_fields(doc):
    """The text of a docstring, and its `:param x:` fields by name."""
    text, params, current = [], {}, None
    for line in doc.splitlines():
        field = re.match(
            r" ?:(type|param|rtype|return)s? ?(\w*)[:,](.*)", line)
        if field:
            current = field[2] if field[1] == "param" else ""
            params.setdefault(current, []).append(field[3].strip())
        elif current is not None and line.startswith(" "):
            params[current].append(line.strip())
        else:
            current = None
            text.append(line)
    params = {name: python_text(" ".join(lines).lstrip(", "))
              for name, lines in params.items() if name}
    return python_text("\n".join(text).strip()), params


def split_signatures(doc, name):
    """A docstring without the lines that show its function's signatures, and the
    parameters of the longest of these."""
    lines = doc.splitlines()
    line = re.compile(rf"{name}\((.*)\)(?: -> .*)?")
    shown = [m[1] for m in map(line.fullmatch, lines) if m]
    text = "\n".join(x for x in lines if not line.fullmatch(x))
    return text, max(shown, key=len, default="")


def python_default(words):
    """A default value that SWIG shows, as a Python expression."""
    constant = re.fullmatch(r"(?:\w+::)*([A-Z][A-Z0-9_]+)", words)
    if constant:
        return f"faiss.{constant[1]}"
    known = re.fullmatch(r"True|False|None|-?[0-9]+(\.[0-9]*)?", words)
    return words if known else "_OPAQUE"


def arguments_of(function, shown):
    """The names, C++ types and defaults (as Python expressions) of a function's
    arguments. If it has only *args, they are those that its docstring shows."""
    args, defaults = function.args.args, function.args.defaults
    if not function.args.vararg:
        defaults = [None] * (len(args) - len(defaults)) + [
            ast.unparse(default) for default in defaults]
        return [(a.arg, a.annotation and a.annotation.value, default)
                for a, default in zip(args, defaults)]
    found = [re.fullmatch(r"\s*(.*?)\s*(\w+)(?:=(.*))?", part).groups()
             for part in re.findall(r"(?:[^,<]|<[^>]*>)+", shown)]
    return [(name, kind, default if default is None else python_default(default))
            for kind, name, default in found]


def numpy_docstring(text, params, kinds, defaults, result):
    """A docstring with the sections Parameters and Returns."""
    sections = [text] if text else []
    if kinds:
        lines = ["Parameters", "----------"]
        for name, kind in kinds.items():
            kind = f" : {kind}" if kind else ""
            optional = ", optional" if name in defaults else ""
            lines.append(f"{name}{kind}{optional}")
            if name in params:
                lines.append("    " + params[name])
        sections.append("\n".join(lines))
    if result not in (None, "None"):
        sections.append(f"Returns\n-------\n{result}")
    return "\n\n".join(sections)


def declaration(name, parts, kinds, defaults, result, doc):
    """A function without code."""
    def of_type(kind):
        return kind if kind in BUILTINS else repr(kind)

    for key, kind in kinds.items():
        part = f"{key}: {of_type(kind)}" if kind else key
        parts.append(f"{part} = {defaults[key]}" if key in defaults else part)
    result = f" -> {of_type(result)}" if result else ""
    return ast.parse(
        f"def {name}({', '.join(parts)}){result}:\n    {doc!r}").body[0]


def tidy_function(function, classes):
    """A function with Python's signature and docstring. If SWIG gives it *args,
    it wraps one that has names for them."""
    name, args = function.name, function.args
    doc = ast.get_docstring(function)
    code = function.body[doc is not None:]
    text, shown = split_signatures(doc or "", name)
    without_names = args.vararg and not shown
    if name == "__init__":
        if without_names:
            text = "Objects come from factories and files."
    elif name.startswith("_") or without_names:  # not for users
        for arg in args.args:
            arg.annotation = None
        function.returns, function.body = None, code
        return [function]
    text, params = split_fields(text)

    def kind_of(words, name=None):
        kind = python_type(words, classes)
        return f"{kind} | None" if kind and "None" in params.get(
            name, "") else kind

    found = arguments_of(function, shown)
    kinds = {key: words and kind_of(words, key)
             for key, words, _ in found if key != "self"}
    defaults = {key: default for key, _, default in found if default is not None}
    result = None
    if name == "__init__":
        result = None if without_names else "None"
    elif function.returns and not args.vararg:
        result = kind_of(function.returns.value)
    doc = numpy_docstring(text, params, kinds, defaults, result) if (
        text or params) else None
    made = declaration(name, [a.arg for a in args.args if a.arg == "self"],
                       kinds, defaults, result, doc)
    if not args.vararg:
        made.body = made.body[:doc is not None] + code
        made.decorator_list = function.decorator_list
        return [made]
    function.body = code
    function.decorator_list.append(ast.Name(f"_wraps({name})"))
    function.returns = None
    return [made, function]


def tidy_attribute(attribute, classes):
    """A property with its Python type."""
    name, kind = attribute.target.id, python_type(
        attribute.annotation.value, classes)
    call = attribute.value
    text = ""
    for keyword in call.keywords:
        if keyword.arg == "doc":
            text = inspect.cleandoc(keyword.value.value)
    # drop SWIG's generated line
    text = "" if text.startswith(f"{name} : ") else python_text(text)
    call.func = ast.Name("_Attribute")
    call.keywords = [
        ast.keyword("doc", ast.Constant(": ".join(filter(None, (kind, text))))),
        ast.keyword("type", ast.Constant(kind))]
    return ast.Assign([attribute.target], call, lineno=0)


def tidy_class(the_class, classes):
    doc = ast.get_docstring(the_class)
    if doc:
        the_class.body[0].value.value = python_text(doc).strip()
    body = []
    for member in the_class.body:
        if isinstance(member, ast.FunctionDef):
            body += tidy_function(member, classes)
        elif isinstance(member, ast.AnnAssign):
            body.append(tidy_attribute(member, classes))
        else:
            body.append(member)
    the_class.body = body


def tidy(source):
    """The source of a module that SWIG has made, in Python's terms."""
    module = ast.parse(source)
    classes = {c.name for c in module.body if isinstance(c, ast.ClassDef)}
    body = ast.parse(HEAD).body
    for thing in module.body:
        if isinstance(thing, ast.ClassDef):
            tidy_class(thing, classes)
        body += (tidy_function(thing, classes)
                 if isinstance(thing, ast.FunctionDef) else [thing])
    module.body = body
    return ast.unparse(module) + "\n"


if __name__ == "__main__":
    swig_module, tidied_module = map(Path, sys.argv[1:])
    tidied_module.write_text(tidy(swig_module.read_bytes()), encoding="utf-8")
