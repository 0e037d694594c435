"""The sweeper of Hydra, with the real Hydra."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bkb

hydra = pytest.importorskip(
    "hydra", reason="Hydra is not installed, make python-neighbours installs it"
)

from hydra.core.override_parser.overrides_parser import OverridesParser  # noqa: E402

from hydra_plugins.bkb_sweeper import parameter, quoted  # noqa: E402

APP = """
import hydra
from omegaconf import DictConfig

@hydra.main(version_base=None, config_path=".", config_name="config")
def train(cfg: DictConfig):
    assert type(cfg.layers) is int and cfg.note == "it's, [so]" and cfg.fixed == 3
    if cfg.get("fail") and cfg.layers > 2:
        raise RuntimeError("no memory")
    loss = (cfg.lr - 0.01) ** 2 + abs(cfg.layers - 2) + (cfg.model.name == "sgd")
    return {"loss": loss, "size": cfg.layers} if cfg.get("pair") else loss

train()
"""

CONFIG = """
defaults:
  - model: adam
  - override hydra/sweeper: bkb
lr: 1.0
layers: 1
fixed: 0
note: ""
fail: false
pair: false
hydra:
  sweep: {dir: out}
  sweeper:
    n_trials: 12
    seed: 1
    study: swept
    params:
      lr: tag(log,interval(1e-4,1))
      layers: range(1,5)
"""

ARGUMENTS = ["model=choice(adam,sgd)", "fixed=3", r"note=choice('it\'s, [so]')"]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "model").mkdir(exist_ok=True)
    for name in ("adam", "sgd"):
        (folder / "model" / f"{name}.yaml").write_text(f"name: {name}\n")
    (folder / "app.py").write_text(APP)
    (folder / "config.yaml").write_text(CONFIG)
    source = str(Path(bkb.__file__).parents[1])
    path = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "app.py", "-m", *ARGUMENTS, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_sweep(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    study = bkb.load_study("swept", db=tmp_path / "tuner.db")
    assert study.status.completed == 12 and study.directions == ("minimize",)
    assert study.space["lr"] == bkb.Float(1e-4, 1.0, log=True)
    assert study.space["layers"] == bkb.Int(1, 4)
    assert study.space["model"].to_json()["values"] == ["adam", "sgd"]
    best = study.best_trial
    assert best.params["layers"] == 2 and best.params["model"] == "adam"
    results = (tmp_path / "out" / "optimization_results.yaml").read_text()
    assert f"lr: {best.params['lr']}" in results and "name: bkb" in results
    # Each job has a folder of its own, and its configuration is that of its trial.
    config = (tmp_path / "out" / "11" / ".hydra" / "overrides.yaml").read_text()
    assert f"lr={study.trial(11).params['lr']}" in config
    again = run(tmp_path, "hydra.sweeper.n_trials=3", "hydra.sweeper.n_jobs=3")
    assert again.returncode == 0 and study.status.completed == 15


def test_failures_and_several_objectives(tmp_path: Path) -> None:
    arguments = [
        "fail=true",
        "pair=true",
        "hydra.sweeper.direction={loss: minimize, size: maximize}",
    ]
    arguments += ["hydra.sweeper.max_failures=99", "hydra.sweeper.n_trials=8"]
    done = run(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    study = bkb.load_study("swept", db=tmp_path / "tuner.db")
    status = study.status
    assert status.completed + status.failed == 8 and status.failed > 0 and status.completed > 0
    failed = next(study.iter_trials(states=["failed"]))
    assert "no memory" in failed.message and failed.params["layers"] > 2
    assert study.directions == ("minimize", "maximize")
    assert len(study.pareto_front) >= 1

    ended = run(tmp_path, "fail=true", "hydra.sweeper.study=other", "layers=choice(3,4)")
    assert ended.returncode != 0 and "no memory" in ended.stderr
    assert bkb.load_study("other", db=tmp_path / "tuner.db").status.failed == 1


def test_no_sweep(tmp_path: Path) -> None:
    done = run(tmp_path, "lr=0.1", "layers=2", "model=adam", "note=a")
    assert done.returncode != 0 and "no override is a sweep" in done.stderr


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("x=interval(0,1)", bkb.Float(0, 1)),
        ("x=tag(log,interval(1e-3,1))", bkb.Float(1e-3, 1, log=True)),
        ("x=int(interval(1,9))", bkb.Int(1, 9)),
        ("x=tag(int,log,interval(1,100))", bkb.Int(1, 100, log=True)),
        ("x=range(1,10,3)", bkb.Int(1, 7, step=3)),
        ("x=range(0,1.1,0.25)", bkb.Float(0.0, 1.0, step=0.25)),
        ("x=choice(1,2.5,a,true)", bkb.Categorical([1, 2.5, "a", True])),
        ("x=tag(ordered,choice(16,32,64))", bkb.Ordinal([16, 32, 64])),
        ("x=a,b", bkb.Categorical(["a", "b"])),
    ],
)
def test_parameters(text: str, wanted: bkb.Parameter) -> None:
    assert parameter(OverridesParser.create().parse_override(text)) == wanted


@pytest.mark.parametrize(
    "value",
    [
        1,
        -2.5,
        1e-7,
        True,
        None,
        "a",
        "it's",
        "a,b",
        "",
        "1",
        "null",
        'q"',
        [1, "a,b"],
        {"k": "v w"},
    ],
    ids=repr,
)
def test_values_are_read_back(value: object) -> None:
    read = OverridesParser.create().parse_override(f"x={quoted(value)}")
    assert read.value() == value
