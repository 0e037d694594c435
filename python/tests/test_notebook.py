"""The notebook of examples/python runs from top to bottom."""

from __future__ import annotations

from pathlib import Path

import pytest

import bkb
from bkb._binary import find_binary

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples/python/tune.ipynb"


def test_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    why = "make notebook installs it"
    nbformat = pytest.importorskip("nbformat", reason=f"nbformat is not installed, {why}")
    nbclient = pytest.importorskip("nbclient", reason=f"nbclient is not installed, {why}")
    monkeypatch.setenv("BKB_TUNER", str(find_binary()))
    book = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(book)
    assert not any(c.get("outputs") for c in book.cells), "the notebook is kept without outputs"
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(book, timeout=300, resources=place).execute()
    shown = [str(o) for c in book.cells for o in c.get("outputs", [])]
    assert sum("<svg" in text for text in shown) >= 2
    study = bkb.load_study("digits", db=tmp_path / "tuner.db")
    assert study.status.completed + study.status.pruned == 25
    assert study.status.pruned > 0
    assert study.best_value > 0.9
