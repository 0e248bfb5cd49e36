# SPDX-License-Identifier: MIT
"""The code in the documentation runs."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_python_code_of_the_readme_runs(tmp_path, monkeypatch):
    """All blocks one after the other, as a reader would type them."""
    text = README.read_text()
    blocks = list(BLOCK.finditer(text))
    assert blocks
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "readme"}
    for block in blocks:
        # line numbers in a traceback are those of README.md
        before = text[: block.start(1)].count("\n")
        code = compile("\n" * before + block[1], str(README), "exec")
        exec(code, names)


def test_the_scheme_of_contributing_is_the_one_that_is_compiled():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    files = [p for p in (ROOT / "tests/example_scheme").rglob("*") if p.is_file()]
    assert len(files) == 2
    for path in files:
        licence, code = path.read_text().split("\n", 1)
        assert "SPDX" in licence and f"```cpp\n{code}```" in text
