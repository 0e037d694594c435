"""The benchmark of learning curves runs, and goes on where it was."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bkb._binary import find_binary

SCRIPT = Path(__file__).parents[2] / "bench" / "fidelity.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="the package is not in its repository")
def test_fidelity(tmp_path: Path) -> None:
    """A second run has all runs already."""
    command = [sys.executable, str(SCRIPT), "--tuner", find_binary(), "--data", str(tmp_path)]
    command += ["--out", str(tmp_path / "runs"), "--tasks", "branin, equal", "--trainings", "8"]
    command += ["--methods", "random;bkb, model;bkb, hyperband", "--seeds", "2"]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, env=os.environ) for _ in range(2)
    )
    assert first.returncode == 0, first.stderr
    rows = [line for line in first.stdout.splitlines() if line.startswith(("| random", "| bkb"))]
    assert len(rows) == 6  # of the task, and of all tasks
    assert all("| 2 |" in row for row in rows)
    assert first.stderr.count(", seed ") == 6
    assert second.stdout == first.stdout
    assert ", seed " not in second.stderr
