"""The checks of Scientific Python on the package."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from conftest import REPOSITORY


def test_repo_review() -> None:
    pytest.importorskip("repo_review", reason="sp-repo-review is not installed, pip installs it")
    done = subprocess.run(
        [sys.executable, "-m", "repo_review", ".", "--format", "json"],
        cwd=REPOSITORY / "python",
        capture_output=True,
        text=True,
    )
    checks = json.loads(done.stdout)
    checks = checks.get("checks", checks)
    failed = {k: v["description"] for k, v in checks.items() if v["result"] is False}
    assert not failed
    assert sum(v["result"] is True for v in checks.values()) >= 25
