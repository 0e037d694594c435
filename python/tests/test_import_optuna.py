from __future__ import annotations

import json
import math
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import optuna
import pytest
from conftest import REPOSITORY
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from bkb._binary import find_binary


@pytest.fixture(params=["sqlite", "journal"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An empty storage of Optuna in a file."""
    path = tmp_path / f"{request.param}.file"
    open_storage(path)
    return path


def open_storage(path: Path) -> str | JournalStorage:
    if path.name.startswith("sqlite"):
        return f"sqlite:///{path}"
    return JournalStorage(JournalFileBackend(str(path)))


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 1e-3, 1, log=True)
    kind = trial.suggest_categorical("kind", ["a", "b"])
    n = trial.suggest_int("n", 1, 9, step=2) if kind == "a" else 0
    trial.set_user_attr("note", f"t{trial.number}")
    trial.report(math.nan if trial.number == 3 else x, 1)
    if trial.number == 4:
        raise optuna.TrialPruned
    return x + n


def create(path: Path, name: str = "digits", trials: int = 12) -> optuna.Study:
    sampler = optuna.samplers.RandomSampler(seed=1)
    study = optuna.create_study(storage=open_storage(path), study_name=name, sampler=sampler)
    study.optimize(objective, n_trials=trials)
    return study


def run(folder: Path, *args: str) -> tuple[int, str]:
    """Run python -m bkb in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "bkb", *args], cwd=folder, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def test_import(storage: Path, tmp_path: Path) -> None:
    study = create(storage)
    code, said = run(tmp_path, "import-optuna", storage.name, "--", "--db", "own.db", "--dry-run")
    assert code == 0 and "12 trials can be imported" in said, said
    code, said = run(tmp_path, "import-optuna", storage.name, "--", "--db", "own.db")
    assert code == 0 and "Imported 12 trials." in said, said
    assert "Parameter n is active when kind = a." in said
    code, text = run(tmp_path, "--db", "own.db", "trials", "digits", "-f", "json")
    trials = json.loads(text)
    for mine, theirs in zip(trials, study.trials, strict=True):
        assert mine["config"] == theirs.params
        assert mine["attributes"]["note"] == theirs.user_attrs["note"]
        if theirs.state == optuna.trial.TrialState.COMPLETE:
            assert [mine["values"]["value"]] == theirs.values
    assert trials[4]["state"] == "pruned"
    # The study goes on, and so does its import.
    study.optimize(objective, n_trials=3)
    code, said = run(tmp_path, "import-optuna", storage.name, "digits", "--", "--db", "own.db")
    assert code == 0 and "Imported 3 new trials. 12 were there already." in said, said


def test_waiting_first(storage: Path, tmp_path: Path) -> None:
    """A start of the first trial after an import does not import the others again."""
    study = optuna.create_study(storage=open_storage(storage), study_name="digits")
    study.enqueue_trial({"x": 0.5, "kind": "b"})
    unit = optuna.distributions.FloatDistribution(0, 1)
    study.add_trial(
        optuna.trial.create_trial(params={"x": 0.1}, distributions={"x": unit}, value=1)
    )
    command = ["import-optuna", storage.name, "--", "--db", "own.db"]
    code, said = run(tmp_path, *command)
    assert code == 0 and "Imported 1 trial." in said, said
    study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=1)
    code, said = run(tmp_path, *command)
    assert code == 0 and "Imported 1 new trial. 1 was there already." in said, said


def test_live(storage: Path, tmp_path: Path) -> None:
    """Trials that lack parameters do not end an import."""
    study = create(storage, trials=3)
    study.ask().suggest_float("x", 1e-3, 1, log=True)
    pruned = study.ask()
    pruned.suggest_float("x", 1e-3, 1, log=True)
    study.tell(pruned, state=optuna.trial.TrialState.PRUNED)
    study.enqueue_trial({"x": 0.5})
    code, said = run(tmp_path, "import-optuna", storage.name, "--", "--db", "own.db")
    assert code == 0 and "Imported 3 trials." in said, said
    assert "Leaving out 2 trials without an outcome." in said, said
    assert "Leaving out 1 trial with a configuration that the space refuses." in said, said


def test_names(storage: Path, tmp_path: Path) -> None:
    create(storage, "One & only", trials=2)
    run_import = ["import-optuna", storage.name]
    code, said = run(tmp_path, *run_import, "--as", "one", "--", "--db", "own.db")
    assert code == 0 and "Created study one." in said, said
    code, said = run(tmp_path, *run_import, "--", "--db", "own.db")
    assert code == 4 and 'study name "One & only"' in said, said
    create(storage, "other", trials=1)
    code, said = run(tmp_path, *run_import)
    assert code == 4 and "several studies, name one, it has 'One & only', 'other'" in said, said
    code, said = run(tmp_path, *run_import, "none")
    assert code == 4 and "has no study 'none', it has 'One & only', 'other'" in said, said


def test_refusals(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as c:
        c.execute("create table songs (title text)")
    before = (tmp_path / "other.db").read_bytes()
    (tmp_path / "text").write_text("config.x,value.y\n1,2\n")
    for name in ("other.db", "text", "sqlite:///other.db"):
        code, said = run(tmp_path, "import-optuna", name)
        assert code == 4 and f"{name} must be an SQLite database or a journal of Optuna" in said
    assert (tmp_path / "other.db").read_bytes() == before
    for name in ("missing.db", "sqlite:///missing.db", "sqlite://"):
        code, said = run(tmp_path, "import-optuna", name)
        assert code == 4 and f"{name!r} must be a file, or the URL of a storage" in said, said
    assert not (tmp_path / "missing.db").exists()
    code, said = run(tmp_path, "import-optuna", "nosuch://x")
    assert code == 4 and "nosuch" in said and "Traceback" not in said, said


def test_missing_driver(tmp_path: Path) -> None:
    (tmp_path / "MySQLdb.py").write_text("raise ImportError('No module named MySQLdb')")
    code, said = run(tmp_path, "import-optuna", "mysql://me@127.0.0.1/db")
    assert code == 4 and "the driver for mysql:// is not installed" in said, said
    assert said.count("\n") == 1, said


def test_sqlite_url(tmp_path: Path) -> None:
    create(tmp_path / "sqlite.file", trials=2)
    command = ["import-optuna", "sqlite:///sqlite.file", "--", "--db", "own.db"]
    code, said = run(tmp_path, *command)
    assert code == 0 and "Imported 2 trials." in said, said


def test_without_optuna(tmp_path: Path) -> None:
    (tmp_path / "optuna.py").write_text("raise ImportError")
    (tmp_path / "x").write_text("")
    code, said = run(tmp_path, "import-optuna", "x")
    assert code == 4 and "run pip install bkb-tuner[optuna]" in said, said


def test_tuner_names_the_command(storage: Path, tmp_path: Path) -> None:
    """The program says what a file of Optuna is and which command reads it."""
    create(storage, trials=1)
    done = subprocess.run(
        [find_binary(), "import", "digits", storage.name],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    kind = "an SQLite storage" if storage.name.startswith("sqlite") else "a journal"
    assert done.returncode == 4
    assert f"{storage.name} is {kind} of Optuna, which only Optuna reads" in done.stderr
    assert f"python -m bkb import-optuna {storage.name}" in done.stderr


def test_same_as_the_example(tmp_path: Path) -> None:
    """examples/python/optuna_export.py, which needs no package of ours, writes the same."""
    from bkb._import_optuna import export

    storage = tmp_path / "sqlite.file"
    create(storage, trials=6)
    done = subprocess.run(
        [sys.executable, REPOSITORY / "examples/python/optuna_export.py", "digits",
         f"sqlite:///{storage}"], capture_output=True, text=True, check=True,
    )  # fmt: skip
    mine = json.loads(export(str(storage), None))
    for part in [mine, *mine["trials"]]:
        del part["import_id"]
    assert str(mine) == str(json.loads(done.stdout))
