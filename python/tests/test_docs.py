"""Runs the Python blocks of docs/python.md, of both READMEs, and the examples in docstrings.

The plain blocks of a page are one script. A block with a name is a script of its own. A
comment after print is what it prints.
"""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY

import bkb

NEIGHBOURS = {
    "xgboost": "pip installs it",
    "lightgbm": "pip installs it",
    "keras": "make python-neighbours installs it",
    "lightning": "make python-neighbours installs it",
    "mlflow": "make python-neighbours installs it",
    "ray": "make python-ray installs it",
    "catboost": "make python-neighbours installs it",
    "tensorboard": "make python-neighbours installs it",
    "tensorboardX": "make python-neighbours installs it",
    "trackio": "make python-neighbours installs it",
    "wandb": "make python-neighbours installs it",
    "distributed": "make python-neighbours installs it",
    "fastai": "make python-neighbours installs it",
    "hydra": "make python-neighbours installs it",
    "ignite": "make python-neighbours installs it",
    "optuna": "pip installs it",
    "torch": "make python-neighbours installs it",
    "transformers": "make python-neighbours installs it",
}

BLOCK = re.compile(r"^```python ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(script: str, name: str, folder: Path) -> None:
    (folder / name).write_text(script)
    done = subprocess.run(
        [sys.executable, name], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    wanted = re.findall(r"^\s*print\(.*\)  # (.*)$", script, re.MULTILINE)
    printed = done.stdout.splitlines()
    assert len(printed) >= len(wanted)
    assert [line for line in printed if line in wanted] == wanted


PAGES = {
    p: (REPOSITORY / p).read_text() for p in ("docs/python.md", "python/README.md", "README.md")
}

# Scripts of docs/python.md that need a library which the other tests do not need.
WITH = re.findall(r"^```python (with_(\w+)\.py)$", PAGES["docs/python.md"], re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGES[page])
    assert blocks
    for name, text in blocks:
        if name and not name.startswith("with_"):
            run(text, name, tmp_path)
    run("\n".join(text for name, text in blocks if not name), "page.py", tmp_path)


@pytest.mark.parametrize("name, library", WITH)
def test_block_with_a_library(name: str, library: str, tmp_path: Path) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed, {NEIGHBOURS[library]}")
    run(dict(BLOCK.findall(PAGES["docs/python.md"]))[name], name, tmp_path)


def test_errors_of_the_page() -> None:
    page = PAGES["docs/python.md"].partition("\n## Errors\n")[2]
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
    library = module.partition(".")[2]
    library = "tensorboardX" if library == "tensorboard" else library
    if library in NEIGHBOURS:
        pytest.importorskip(library, reason=f"{library} is not installed, {NEIGHBOURS[library]}")
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        names = {"bkb": bkb}
        assert doctest.testmod(importlib.import_module(module), extraglobs=names).failed == 0
    finally:
        os.chdir(here)


def test_features_of_the_table(
    own: bkb.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The right column of the table in docs/migrate.md runs."""
    monkeypatch.chdir(tmp_path)
    page = (REPOSITORY / "docs/migrate.md").read_text().partition("### What Python has\n")[2]
    rows = re.findall(r"^\| (.*) \| (.*) \|$", page.partition("\n## ")[0], re.MULTILINE)[1:]
    assert len(rows) > 20
    space = {"x": bkb.Float(0, 1), "n": bkb.Int(1, 9)}
    names = {
        "bkb": bkb,
        "client": own,
        "make": own.create_study,
        "study": own.create_study("one", space, minimize="v"),
        "pair": own.create_study("two", space, objectives={"a": "minimize", "b": "maximize"}),
        "other": own.create_study("other", space, minimize="v"),
        "f": lambda trial: trial["x"],
    }
    for theirs, ours in rows:
        for code in re.findall(r"`(.*?)`", ours):
            if "to_dataframe" in code:
                pytest.importorskip("pandas", reason="pandas is not installed")
            if "to_optuna" in code:
                pytest.importorskip("optuna", reason="Optuna is not installed")
            try:
                eval(code, names)
            except Exception as e:
                raise AssertionError(f"{theirs}: {code}") from e
    other, study = names["other"], names["study"]
    assert isinstance(other, bkb.Study) and isinstance(study, bkb.Study)
    assert len(other.trials) >= 10 and study.status.attributes["k"] == 1


def sections_lacking(name: str, thing: Any) -> list[str]:
    """Return what the numpydoc of a function, a class or a method does not have."""
    text = inspect.getdoc(thing) or ""
    found = set(re.findall(r"^(\w+)\n-{4,}$", text, re.MULTILINE))
    method = "." in name
    own = [p for p in inspect.signature(thing).parameters if p not in ("self", "args", "options")]
    refers = "See `" in text or "are those of `" in text
    lacking = []
    if not isinstance(thing, type) or dataclasses.is_dataclass(thing):
        described = re.findall(r"^([\w, *]+)(?: : |$)", text, re.MULTILINE)
        explained = {n.strip(" *") for line in described for n in line.split(",")}
        if own and not refers:
            lacking += [f"parameter {p}" for p in own if p not in explained]
    result = inspect.signature(thing).return_annotation
    if not method and not isinstance(thing, type) and result != "None":
        lacking += ["Returns"] if not found & {"Returns", "Yields"} else []
    if method:
        says = result in ("None", inspect.Signature.empty) or found & {"Returns", "Yields"}
        begins = text.startswith(("Return ", "Yield ", "Get ", "Make ", "Put ", "Tell ", "Add "))
        lacking += [] if says or begins else ["Returns"]
    elif "Examples" not in found:
        lacking.append("Examples")
    return [f"{name}, {what}" for what in lacking]


RECORDS = (bkb.Diagnosis, bkb.Event, bkb.Report, bkb.StudyStatus, bkb.Suggestion, bkb.TrialView)


def test_public_names_are_described() -> None:
    lacking = []
    for n in bkb.__all__:
        thing = getattr(bkb, n)
        if n == "Parameter" or thing in RECORDS or issubclass_of(thing, Exception):
            assert thing.__doc__, n
            continue
        lacking += sections_lacking(n, thing)
    for kind in (bkb.Client, bkb.Study, bkb.Trial):
        for n, thing in inspect.getmembers(kind, callable):
            if not n.startswith("_"):
                lacking += sections_lacking(f"{kind.__name__}.{n}", thing)
    assert not lacking, "\n".join(lacking)


def issubclass_of(thing: object, kind: type) -> bool:
    return isinstance(thing, type) and issubclass(thing, kind)
