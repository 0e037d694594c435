"""What type checkers and readers see of the package, and where studies are looked for."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY

import bkb
import bkb.aio

SPACE = {"x": bkb.Float(0, 1)}

# Each line is a wrong call that a type checker must find.
WRONG = """
bkb.create_study("s", SPACE, minimise="v")
bkb.create_study("s", SPACE, minimize="v", max_trial=3)
bkb.create_study("s", SPACE, minimize="v", max_trials="10")
bkb.create_study("s", SPACE, minimize=3)
bkb.create_study("s", SPACE, minimize="v", seed="1")
bkb.create_study("s", SPACE, minimize="v", exist_ok="yes")
bkb.create_study("s", SPACE, minimize="v", lease="60s")
bkb.create_study("s", SPACE, minimize="v", timeout="1h")
bkb.create_study("s", SPACE, minimize="v", pruner=3)
bkb.create_study("s", SPACE, minimize="v", proposer={"bkb": {}})
bkb.create_study("s", SPACE, minimize="v", attributes="note")
bkb.create_study("s", SPACE, objectives={"v": "min"})
bkb.create_study("s", SPACE, objectives=["v"])
bkb.create_study("s", SPACE, directions=["up"])
bkb.create_study("s", SPACE, directions="minimise")
bkb.create_study(1, SPACE, minimize="v")
bkb.create_study("s", SPACE, minimize="v", server=7071)
bkb.load_study("s", database="x.db")
bkb.load_study()
bkb.delete_study("s", server=1)
bkb.Client.create_study(client, "s", SPACE, minimise="v")
study.tell(1, 0.5, state="complete")
study.tell(1, state="failed", reason="oom")
study.tell("1", 0.5)
study.ask("all")
study.ask(lease="60")
study.optimize(objective, n_trials="5")
study.optimize(objective, n_job=2)
study.optimize(3)
list(study.iter_trials(states=["complete"]))
trial.tell(0.5, state="done")
trial.report(0.5, "3")
trial.suggest_float("x", "0", 1)
trial.suggest_categorical("c", 3)
bkb.Float(0)
bkb.Float("0", 1)
bkb.Int(0, 1, stepp=2)
study.to_dataframe("numpy")
study.tell(1, 0.5, mesage="x")
bkb.aio.create_study("s", SPACE, minimise="v")
bkb.aio.connect("localhost:1", tokn="x")
client.create_study("s", SPACE, minimize="v", from_=3)
"""

HEAD = """
import bkb
import bkb.aio
SPACE = {"x": bkb.Float(0, 1)}
client: bkb.Client
study: bkb.Study
trial: bkb.Trial
def objective(trial: bkb.Trial) -> float:
    return 0.5
def right(client: bkb.Client, study: bkb.Study, trial: bkb.Trial) -> None:
    made = client.create_study("s", SPACE, minimize="v", max_trials=3, pruner="median", seed=None)
    made = bkb.create_study("s", SPACE, objectives={"v": "minimize"}, from_=made, db="x.db")
    view: bkb.TrialView = made.tell(trial, [1.0], std_err=0.1, cost=2, attributes={"a": 1})
    made.add_trials([{"params": {"x": 0.5}, "value": 1, "state": "completed"}, view])
def wrong(client: bkb.Client, study: bkb.Study, trial: bkb.Trial) -> None:
"""


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_wrong_calls_are_found(tmp_path: Path, checker: str) -> None:
    names = [checker, "based" + checker]
    beside = [Path(sys.executable).with_name(n) for n in names]
    program = next((str(p) for p in beside if p.exists()), None) or shutil.which(checker)
    if program is None:
        pytest.skip(f"{checker} is not installed, pip install basedpyright brings one")
    calls = WRONG.strip().splitlines()
    assert len(calls) >= 30
    file = tmp_path / "wrong.py"
    head = HEAD.lstrip()
    file.write_text(head + "".join(f"    {c}\n" for c in calls))
    strict = {
        "mypy": ["--strict", "--cache-dir", str(tmp_path / "cache")],
        "pyright": ["--level", "error"],
    }
    done = subprocess.run(
        [program, *strict[checker], str(file)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "MYPYPATH": str(REPOSITORY / "python/src"),
            "PYTHONPATH": str(REPOSITORY / "python/src"),
        },
    )
    if "error" not in done.stdout:
        pytest.skip(f"{checker} does not work here, {done.stderr[-300:]}")
    found = {int(n) for n in re.findall(r"wrong\.py:(\d+)", done.stdout)}
    first = head.count("\n") + 1
    missed = [c for n, c in enumerate(calls, first) if n not in found]
    assert not missed and min(found) >= first, done.stdout


def test_signatures_are_written_out() -> None:
    module = inspect.signature(bkb.create_study).parameters
    method = inspect.signature(bkb.Client.create_study).parameters
    assert [n for n in module if n not in ("db", "server")] == [n for n in method if n != "self"]
    for name, p in module.items():
        assert name in ("db", "server") or p.default == method[name].default, name
        assert p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        assert re.search(
            rf"^    (?:\w+, )*{name}(?:, \w+)* : ", bkb.create_study.__doc__ or "", re.M
        )


def test_seeds(own: bkb.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([7, 8])
    monkeypatch.setattr("bkb._client.drawn_seed", lambda: next(drawn))
    first = own.create_study("a", SPACE, minimize="v", seed=None)
    second = own.create_study("b", SPACE, minimize="v")
    assert [s.spec()["seed"] for s in (first, second)] == ["7", "8"]
    assert own.create_study("c", SPACE, minimize="v", seed=0).spec().get("seed", "0") == "0"
    assert first.spec()["maxRetries"] == 3  # as tuner create-study


def test_random_seeds_are_not_compared(own: bkb.Client, caplog: pytest.LogCaptureFixture) -> None:
    own.create_study("a", SPACE, minimize="v", seed=5, max_retries=7)
    caplog.clear()
    own.create_study("a", SPACE, minimize="v", exist_ok=True)
    assert not caplog.records
    own.create_study("a", SPACE, minimize="v", exist_ok=True, seed=6)
    assert "seed 5, not 6" in caplog.text


def test_where_studies_are(
    own: bkb.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own.create_study("here", SPACE, minimize="v")
    assert own.server is not None
    address = f"unix:{own.server.endpoint(None).path}"
    assert bkb.load_study("here", server=address).name == "here"
    with pytest.raises(bkb.InvalidRequest, match="give one of them"):
        bkb.load_study("here", server=address, db="t.db")
    monkeypatch.setenv("TUNER_SERVER", address)
    assert [s.name for s in bkb.studies()] == ["here"]
    bkb.create_study("there", SPACE, minimize="v")
    assert [s.name for s in own.studies()] == ["here", "there"]
    # An argument wins over the environment.
    with pytest.raises(bkb.NotFound, match=r"none\.db does not exist"):
        bkb.load_study("here", db="none.db")
    monkeypatch.delenv("TUNER_SERVER")
    monkeypatch.setenv("TUNER_DB", "other.db")
    calls: list[Any] = [lambda: bkb.load_study("here"), bkb.studies, lambda: bkb.delete_study("x")]
    for call in calls:
        with pytest.raises(bkb.NotFound, match=r"other\.db does not exist"):
            call()
    assert not (tmp_path / "other.db").exists()
