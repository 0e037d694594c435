"""The benchmark of learning curves runs, counts costs and ranks methods."""

import importlib.util
import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bkb._binary import find_binary

SCRIPT = Path(__file__).parents[2] / "bench" / "python" / "fidelity.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the package is not in its repository")


@pytest.fixture(scope="module")
def fidelity() -> Any:
    spec = importlib.util.spec_from_file_location("fidelity", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fidelity"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


class Falling:
    """The loss is x + 1/step, and not finite from the step "until" on."""

    name = "falling"
    steps = (1, 3, 9)
    best = 0.0

    def __init__(self) -> None:
        self.calls = 0

    def loss(self, params: dict[str, float], step: int, seed: int) -> float:
        self.calls += 1
        return math.inf if step >= params.get("until", math.inf) else params["x"] + 1 / step

    def final(self, params: dict[str, float], seed: int) -> float:
        return params["x"]


def run_script(*args: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SCRIPT), *args]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ)


def test_fidelity(tmp_path: Path) -> None:
    """A second run has all runs already, also where lines have keys of other versions."""
    out = tmp_path / "runs"
    args = ["--tuner", find_binary(), "--data", str(tmp_path), "--out", str(out)]
    args += ["--tasks", "branin, equal", "--trainings", "8", "--seeds", "2"]
    args += ["--methods", "bkb, model;bkb, hyperband"]  # random is added
    first = run_script(*args)
    assert first.returncode == 0, first.stderr
    rows = [line for line in first.stdout.splitlines() if line.startswith(("| random", "| bkb"))]
    assert len(rows) == 6  # of the task, and of all tasks
    assert all("| 2 |" in row for row in rows)
    assert first.stderr.count(", seed ") == 6
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    program = subprocess.run([find_binary(), "version"], capture_output=True, text=True, check=True)
    for line in lines:
        bkb = line["method"].startswith("bkb")
        assert line["version"] == program.stdout.strip() if bkb else "python" in line["version"]
        assert all(spent <= 8 * 81 for spent, _ in line["path"])
    out.write_text("".join(json.dumps({**line, "cpu": 1.0}) + "\n" for line in lines))
    second = run_script(*args)
    assert second.stdout == first.stdout
    assert ", seed " not in second.stderr


@pytest.mark.parametrize("budgets", [["30", "15"], ["15", "15"], ["0", "15"]])
def test_budgets_ascend(tmp_path: Path, budgets: list[str]) -> None:
    done = run_script("--out", str(tmp_path / "runs"), "--report", "--trainings", *budgets)
    assert done.returncode == 2
    assert f"--trainings {' '.join(budgets)}: budgets are at least 1 and ascend" in done.stderr


def test_report_needs_random(tmp_path: Path) -> None:
    done = run_script("--out", str(tmp_path / "runs"), "--report")
    assert done.returncode == 2
    assert "the report needs runs of random" in done.stderr


def test_only_new_steps_cost(fidelity: Any) -> None:
    run = fidelity.Run(Falling(), 1, 2)
    a, b = {"x": 1.0}, {"x": 0.5}
    assert run.train(a, 3) == 1 + 1 / 3
    assert (run.spent, run.path) == (3, [])
    assert run.train(a, 9) == 1 + 1 / 9
    assert (run.spent, run.path) == (9, [(9, 1.0)])
    run.train(a, 9)
    assert (run.spent, run.path) == (9, [(9, 1.0)])
    run.train(b, 9)
    assert (run.spent, run.path) == (18, [(9, 1.0), (18, 0.5)])
    with pytest.raises(fidelity.Spent):
        run.train({"x": 0.0}, 1)
    assert (run.spent, run.best) == (18, 0.5)
    run.train(a, 3)  # costs nothing


def test_divergence_is_paid_once(fidelity: Any) -> None:
    task = Falling()
    run = fidelity.Run(task, 1, 2)
    params = {"x": -1.0, "until": 3}
    assert list(run.curve(params)) == [(1, 0.0), (3, math.inf), (9, math.inf)]
    assert (run.spent, run.path, task.calls) == (3, [], 2)
    assert list(run.curve(params)) == [(1, 0.0), (3, math.inf), (9, math.inf)]
    assert run.spent == 3


def test_costs_by_brute_force(fidelity: Any) -> None:
    """The cost is the sum of the highest steps, which end where a training diverges."""
    for seed in range(20):
        rng = random.Random(seed)
        run = fidelity.Run(Falling(), 1, 100)
        some = [{"x": float(i), "until": rng.choice([1, 3, 9, 27])} for i in range(8)]
        called: list[list[int]] = [[] for _ in some]
        for _ in range(40):
            i, step = rng.randrange(8), rng.choice([1, 3, 9])
            run.train(some[i], step)
            called[i].append(step)
        want = 0
        for params, steps in zip(some, called, strict=True):
            fine = [s for s in steps if s < params["until"]]
            first = next((s for s in steps if s >= params["until"]), 0)
            want += max([first, *fine])
        assert run.spent == want, f"seed {seed}"
        ended = [p["x"] for p, s in zip(some, called, strict=True) if 9 in s and p["until"] > 9]
        assert run.best == min(ended, default=math.inf), f"seed {seed}"


PATHS: dict[str, list[list[tuple[int, float]]]] = {  # of three seeds; the last step is 9
    "random": [[(9, 3.0), (18, 1.0)], [(9, 1.0)], [(9, 1.0)]],
    "bkb": [[(9, 0.5), (18, 0.0)], [(9, 1e-5)], [(9, 1e-5)]],
    "tpe, median": [[(9, 3.0)], [(18, 2000.0)], [(9, 5e-5)]],
}


def printed(
    fidelity: Any,
    capsys: pytest.CaptureFixture[str],
    paths: dict[str, list[list[tuple[int, float]]]],
    best: float | None = 0.0,
) -> list[str]:
    task = Falling()
    task.best = best  # type: ignore[assignment]
    runs = {(task.name, m, s): {"path": p} for m in paths for s, p in enumerate(paths[m])}
    fidelity.report([task], runs, list(range(len(paths["random"]))), [1, 2])
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]


def test_report(fidelity: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Ranks have ties below the floor and above the cap."""
    assert printed(fidelity, capsys, PATHS) == [
        "| method | runs | 1 trainings | 2 trainings | trainings to random's end |",
        "| random | 3 | 1 | 1 | 1 |",
        "| bkb | 3 | 1e-05 | 1e-05 | 1 |",
        "| tpe, median | 3 | 3 | 3 | inf |",
        "| method | runs | 1 trainings | 2 trainings |",
        # Ranks 2.5 2 3, 1 1 1.5 and 2.5 3 1.5, and after two trainings 2 2 3, 1 1 1.5 and 3 3 1.5.
        # Regrets 3 1 1, 0.5 floor floor and 3 cap floor, and then 1 1 1, three floors, 3 cap floor.
        "| random | 3 | 2.50, +0.16 | 2.33, +0.00 |",
        "| bkb | 3 | 1.17, -2.77 | 1.17, -4.00 |",
        "| tpe, median | 3 | 2.33, -0.84 | 2.50, -0.84 |",
    ]


@pytest.mark.parametrize(
    ("paths", "want"),
    [
        # Random search has the least loss, so what is worse has the cap.
        ({"random": [[(9, 1.0)]], "bkb": [[(9, 2.0)]]}, ["1.00, -4.00", "2.00, +1.00"]),
        # It has no result, and another method has.
        ({"random": [[]], "bkb": [[(9, 2.0)]]}, ["2.00, +1.00", "1.00, -4.00"]),
        # No method has a result.
        ({"random": [[]], "bkb": [[]]}, ["1.50, -4.00", "1.50, -4.00"]),
    ],
)
def test_report_without_units(
    fidelity: Any, capsys: pytest.CaptureFixture[str], paths: Any, want: list[str]
) -> None:
    lines = printed(fidelity, capsys, paths, best=None)
    assert lines[-2:] == [
        f"| {m} | 1 | {cell} | {cell} |" for m, cell in zip(paths, want, strict=True)
    ]


def test_regret_without_random(fidelity: Any) -> None:
    """The least regret is what any loss has where random search has none."""
    assert fidelity.regret(5.0, 0.0, math.inf) == fidelity.FLOOR
    assert fidelity.regret(math.inf, 0.0, math.inf) == fidelity.CAP
    assert fidelity.regret(-1.0, 0.0, 1.0) == fidelity.FLOOR
    assert fidelity.regret(0.5, 0.0, 2.0) == 0.25
