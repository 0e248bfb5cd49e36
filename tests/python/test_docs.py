# SPDX-License-Identifier: MIT
"""The code in the documentation runs, and what it refers to is there."""

import inspect
import json
import re
import subprocess
import sys

import faiss_ext
import pytest
from helpers import ROOT, script

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path, language):
    return [block[2] for block in BLOCK.finditer(path.read_text()) if block[1] == language]


def name(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=name)
def test_python_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert script("run_page").run_page(page) == len(blocks(page, "python"))


def test_the_notebook_is_the_tutorial():
    tutorial = ROOT / "docs/tutorial.md"
    made = script("run_page").notebook(tutorial.read_text())
    assert json.loads(tutorial.with_suffix(".ipynb").read_text()) == made
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    assert len(code) == len(blocks(tutorial, "python"))


def test_pages_are_run_in_order_and_keep_their_figures(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A\n\n```python\na = 1\n```\n\ntext\n\n```python\nopen('a.png', 'w').write(str(a + 1))\n```\n")
    command = [sys.executable, ROOT / "scripts/run_page.py", page, "--figures", tmp_path / "figures"]
    assert "2 blocks ran" in subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert (tmp_path / "figures/a.png").read_text() == "2"
    page.write_text("\n\n```python\na = 1\n\nraise KeyError(3)\n```\n")
    failed = subprocess.run(command, capture_output=True, text=True)
    assert failed.returncode and 'page.md", line 6' in failed.stderr


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_are_named_exist(page):
    """Links, pictures, and the scripts of commands."""
    text = page.read_text()
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    missing = [t for t in targets if not (page.parent / t).exists()]
    commands = "\n".join(blocks(page, "sh"))
    for path in re.findall(r"(?<![\w/])(?:\./)?((?:scripts|bench|tests)/[\w/.-]+\.(?:py|sh))", commands + text):
        if not (ROOT / path).exists():
            missing.append(path)
    assert missing == []


def options_of(path):
    """The options that a script has somewhere in its text, or in that of its modules."""
    files = [path, *path.parent.glob("*.py")] if path.suffix == ".py" else [path]
    return set(re.findall(r"--[a-z][\w-]*", "\n".join(f.read_text() for f in files)))


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "sh")], ids=name)
def test_options_of_commands_exist(page):
    for line in "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines():
        found = re.search(r"(?:scripts|bench)/[\w/]+\.(?:py|sh)", line)
        if found:
            given = set(re.findall(r"\s(--[a-z][\w-]*)", line[found.end() :].split("#")[0]))
            assert given <= options_of(ROOT / found[0]), line


def test_every_function_is_on_the_page_on_python():
    text = (ROOT / "docs/python.md").read_text()
    functions = [n for n in faiss_ext.__all__ if inspect.isroutine(getattr(faiss_ext, n))]
    assert len(functions) > 20
    assert [n for n in functions if not re.search(rf"`{n}\b", text)] == []


def test_the_scheme_that_is_shown_is_the_one_that_is_compiled():
    text = (ROOT / "docs/adding.md").read_text()
    files = [p for p in (ROOT / "tests/example_scheme").rglob("*") if p.is_file()]
    assert len(files) == 2
    for path in files:
        assert f"```cpp\n{without_licence(path)}```" in text


def test_the_program_that_is_shown_is_the_one_that_is_built():
    text = (ROOT / "docs/cpp.md").read_text()
    assert f"```cpp\n{without_licence(ROOT / 'tests/consumer/main.cpp')}```" in text
    (block,) = blocks(ROOT / "docs/cpp.md", "cmake")
    assert without_licence(ROOT / "tests/consumer/CMakeLists.txt").startswith(block)


@pytest.mark.parametrize("page", ["README.md", "docs/cpp.md"])
def test_fragments_in_cpp_are_part_of_a_program_that_is_built(page):
    """But for comments and white space."""
    def bare(code):
        return re.sub(r"\s", "", re.sub(r" // .*", "", code))

    program = bare((ROOT / "tests/consumer/fragments.cpp").read_text())
    main = without_licence(ROOT / "tests/consumer/main.cpp")
    fragments = [b for b in blocks(ROOT / page, "cpp") if b != main]
    assert fragments
    for fragment in fragments:
        includes, code = re.findall("#include .*\n", fragment), re.sub("#include .*\n", "", fragment)
        for part in (*includes, code):
            assert bare(part) in program


def without_licence(path):
    text = path.read_text()
    return re.sub(r"\A(//|#) SPDX.*\n", "", text)
