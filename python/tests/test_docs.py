"""Runs the Python blocks of docs/python.md, of both READMEs, and the examples in docstrings.

The plain blocks of a page are one script. A block with a name is a script of its own. A
comment after print is what it prints.
"""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY

import bkb

BLOCK = re.compile(r"^```python ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(script: str, name: str, folder: Path) -> None:
    (folder / name).write_text(script)
    done = subprocess.run(
        [sys.executable, name], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    wanted = re.findall(r"^\s*print\(.*\)  # (.*)$", script, re.MULTILINE)
    printed = done.stdout.splitlines()
    assert len(printed) >= len(wanted)
    assert [line for line in printed if line in wanted] == wanted


@pytest.mark.parametrize("page", ["docs/python.md", "python/README.md", "README.md"])
def test_page(page: str, tmp_path: Path) -> None:
    blocks = BLOCK.findall((REPOSITORY / page).read_text())
    assert blocks
    for name, text in blocks:
        if name:
            run(text, name, tmp_path)
    run("\n".join(text for name, text in blocks if not name), "page.py", tmp_path)


def test_errors_of_the_page() -> None:
    page = (REPOSITORY / "docs/python.md").read_text().partition("\n## Errors\n")[2]
    named = set(re.findall(r"`([A-Z]\w+)`", page.partition("## Limits")[0]))
    classes = {
        n
        for n in bkb.__all__
        if isinstance(c := getattr(bkb, n), type) and issubclass(c, bkb.Error)
    }
    assert classes - {"Error"} == named


MODULES = [m.name for m in pkgutil.walk_packages(bkb.__path__, "bkb.") if m.name != "bkb.__main__"]


@pytest.mark.parametrize("module", ["bkb", *MODULES])
def test_docstrings(module: str, tmp_path: Path) -> None:
    if module == "bkb.ray":
        pytest.importorskip("ray", reason="Ray is not installed, make python-ray installs it")
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        assert doctest.testmod(importlib.import_module(module)).failed == 0
    finally:
        os.chdir(here)
