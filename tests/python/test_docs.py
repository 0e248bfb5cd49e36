"""The Python code in the documentation runs."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
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
