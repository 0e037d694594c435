from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="Ray is not installed, make python-ray installs it")

from conftest import REPOSITORY
from ray import tune
from ray.tune.search import Searcher

import bkb
from bkb.ray import BKBSearch, _convert

SPACE = {
    "net": {"lr": tune.loguniform(1e-4, 1e-1), "layers": tune.randint(1, 5)},
    "opt": tune.choice(["adam", None, 3]),
    "fixed": 7,
}
START = {"net": {"lr": 0.01, "layers": 2}, "opt": None, "fixed": 7}


def make(tmp_path: Path, **options: Any) -> BKBSearch:
    options = {"metric": "loss", "mode": "min", "max_t": 8, **options}
    return BKBSearch(SPACE, db=tmp_path / "ray.db", **options)


def result(loss: float, iteration: int) -> dict[str, Any]:
    return {"loss": loss, "training_iteration": iteration}


def test_spaces() -> None:
    space = {
        "uniform": tune.uniform(-1, 2),
        "loguniform": tune.loguniform(1e-4, 1e-1),
        "quniform": tune.quniform(0.2, 1.0, 0.2),
        "qloguniform": tune.qloguniform(0.5, 10, 0.5),
        "randint": tune.randint(1, 5),
        "qrandint": tune.qrandint(1, 9, 2),
        "qrandint1": tune.qrandint(1, 9, 1),
        "lograndint": tune.lograndint(1, 100),
        "choice": tune.choice(["a", "b"]),
        "sizes": tune.choice([1, 10, 100]),
        "a": {"b/c": tune.choice([None, (1, 2)])},
    }
    with pytest.raises(ValueError, match="delimiter"):
        _convert(space)
    space["a"] = {"b": tune.choice([None, (1, 2)])}
    found = _convert(space)
    assert {n: p for n, (p, _) in found.items() if n != "quniform"} == {
        "uniform": bkb.Float(-1.0, 2.0),
        "loguniform": bkb.Float(1e-4, 1e-1, log=True),
        "qloguniform": bkb.Float(0.5, 10.0, log=True),
        "randint": bkb.Int(1, 4),
        "qrandint": bkb.Int(2, 8, step=2),
        "qrandint1": bkb.Int(1, 8, step=1),
        "lograndint": bkb.Int(1, 99, log=True),
        "choice": bkb.Categorical(["a", "b"]),
        "sizes": bkb.Ordinal([1, 10, 100]),
        "a/b": bkb.Categorical([None, (1, 2)]),
    }
    steps: Any = found["quniform"][0]
    assert (steps.low, steps.high, steps.step) == pytest.approx((0.2, 1.0, 0.2))
    assert found["qloguniform"][1](3.3) == 3.5


# Ray draws from a domain what the study may propose, and nothing else.
@pytest.mark.parametrize(
    "domain",
    [
        tune.randint(1, 5),
        tune.qrandint(1, 9, 2),
        tune.qrandint(1, 9, 1),
        tune.lograndint(1, 100),
        tune.quniform(0.2, 1.0, 0.2),
    ],
    ids=str,
)
def test_bounds_are_those_of_ray(domain: Any) -> None:
    drawn = [domain.sample() for _ in range(3000)]
    parameter: Any = _convert({"x": domain})["x"][0]
    assert min(drawn) == pytest.approx(parameter.low)
    assert max(drawn) == pytest.approx(parameter.high)


@pytest.mark.parametrize(
    "space, said",
    [
        ({"a": {"x": tune.grid_search([1])}}, "'a/x' is a grid_search"),
        ({"x": tune.randn(0, 1)}, "parameter 'x' is"),
        ({"x": tune.sample_from(lambda _: 1)}, "parameter 'x' is"),
        ({"x": 1}, "the space has nothing to search"),
    ],
)
def test_mistakes_in_a_space(tmp_path: Path, space: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        BKBSearch(space, "loss", "min", db=tmp_path / "ray.db")


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mode is missing"):
        BKBSearch(SPACE, "loss", db=tmp_path / "ray.db")
    with pytest.raises(ValueError, match="mode is 'least', give 'min' or 'max'"):
        BKBSearch(SPACE, "loss", "least")
    several: Any = ["a", "b"]
    with pytest.raises(ValueError, match="give one metric and one mode"):
        BKBSearch(SPACE, several, several)
    with pytest.raises(ValueError, match="db and server are both given"):
        BKBSearch(db="x.db", server="localhost:1")
    search = BKBSearch(db=tmp_path / "ray.db")
    with pytest.raises(ValueError, match="no space yet"):
        search.suggest("a")
    with pytest.raises(ValueError, match="mode is missing"):
        search.set_search_properties("loss", None, SPACE)


def test_outcomes(tmp_path: Path) -> None:
    search = make(tmp_path, points_to_evaluate=[START], seed=3)
    assert search.suggest("a") == {"net": {"lr": 0.01, "layers": 2}, "opt": None}
    assert search.suggest("a") == search.suggest("a")
    for trial in "bcdef":
        search.suggest(trial)
    assert search.study.status.running == 6
    search.on_trial_result("a", result(2.0, 1))
    search.on_trial_result("a", {"training_iteration": 2})  # not the metric
    search.on_trial_result("z", result(2.0, 1))  # no such trial
    search.on_trial_complete("a", result(1.0, 8))
    search.on_trial_complete("b", result(3.0, 2))
    search.on_trial_complete("c", None, error=True)
    search.on_trial_complete("d", result(math.nan, 8))
    search.on_trial_complete("e", {"training_iteration": 8})
    search.on_trial_complete("f", result(math.nan, 1))
    search.on_trial_complete("z", result(1.0, 8))
    views = search.study.trials
    assert [(v.state, v.reason) for v in views] == [
        ("completed", ""),
        ("pruned", ""),
        ("failed", "crash"),
        ("failed", "nan"),
        ("failed", "crash"),
        ("failed", "nan"),
    ]
    assert [v.value for v in views[:2]] == [1.0, 3.0]
    assert views[4].message == "ended without a result 'loss'"
    assert [r.step for r in search.study.trial(0).reports] == [1]
    # What is told twice is no error that would end the run.
    search.suggest("g")
    search.study.tell(6, 1.0)
    search.on_trial_complete("g", result(5.0, 8))


def test_without_max_t(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    search = make(tmp_path, max_t=None, mode="max")
    assert "has no max_t" in caplog.text
    search.suggest("a")
    search.on_trial_complete("a", result(3.0, 2))
    assert search.study.directions == ("maximize",)
    assert search.study.best_value == 3.0


def test_ends(tmp_path: Path) -> None:
    search = make(tmp_path)
    search.study.pause()
    assert search.suggest("a") is None
    search.study.resume()
    search.suggest("a")
    search.study.finish()
    assert search.suggest("b") == Searcher.FINISHED


def test_save_and_restore(tmp_path: Path) -> None:
    search = make(tmp_path, study="kept")
    config = search.suggest("a")
    search.save(str(tmp_path / "state"))
    again = BKBSearch(db=tmp_path / "other.db")
    again.restore(str(tmp_path / "state"))
    assert again.suggest("a") == config
    assert again.suggest("b") != config
    again.on_trial_complete("a", result(1.0, 8))
    assert again.study.name == "kept" and again.study.best_value == 1.0
    copy = pickle.loads(pickle.dumps(search))
    assert copy.suggest("a") == config
    assert not copy.set_search_properties("loss", "min", SPACE)


RUN = """
import os, sys
from collections import Counter
import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler
from ray.tune.search import ConcurrencyLimiter
from bkb.ray import BKBSearch

folder = sys.argv[1]
ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False)

def train(config):
    loss = (config["net"]["lr"] - 0.01) ** 2 + config["net"]["layers"] + (config["opt"] is None)
    if config["net"]["layers"] == 4:
        raise RuntimeError("crash")
    for i in range(8):
        tune.report({"loss": loss + 1 / (i + 1)})

space = {
    "net": {"lr": tune.loguniform(1e-4, 1e-1), "layers": tune.randint(1, 5)},
    "opt": tune.choice(["adam", None]),
    "fixed": 7,
}
points = [
    {"net": {"lr": 0.02, "layers": n}, "opt": "adam", "fixed": 7} for n in (1, 4, 3)
]
search = BKBSearch(max_t=8, points_to_evaluate=points, study="run", db=folder + "/ray.db")
tuner = tune.Tuner(
    train,
    param_space=space,
    tune_config=tune.TuneConfig(
        metric="loss",
        mode="min",
        num_samples=12,
        search_alg=ConcurrencyLimiter(search, max_concurrent=2),
        scheduler=ASHAScheduler(max_t=8, grace_period=1, reduction_factor=2),
    ),
    run_config=tune.RunConfig(storage_path=folder + "/results", name="x", verbose=0),
)
results = tuner.fit()
print("results", len(results), results.num_errors)
print("fixed", {r.config["fixed"] for r in results})
states = Counter(t.state for t in search.study.trials)
print("states", *(states[s] for s in ("completed", "pruned", "failed", "running")))
print("first", search.study.trial(0).params["net/layers"], search.study.trial(1).state)
ended = [r.metrics.get("training_iteration") for r in results if not r.error]
print("iterations", sum(i == 8 for i in ended), sum(i < 8 for i in ended))
tune.Tuner.restore(folder + "/results/x", trainable=train, param_space=space)
search.save(folder + "/state")
again = BKBSearch(db=folder + "/ray.db")
again.restore(folder + "/state")
print("again", len(again.study.trials), sorted(again.suggest("new")))
ray.shutdown()
"""


def run(script: str, tmp_path: Path) -> dict[str, str]:
    """Run a script, and return what it prints by the first word of a line."""
    (tmp_path / "run.py").write_text(script)
    # Ray writes a token into the home folder.
    path = os.pathsep.join([str(Path(bkb.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "run.py", str(tmp_path)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [line.split(" ", 1) for line in done.stdout.splitlines() if " " in line]
    return {line[0]: line[1] for line in lines}


def test_a_run(tmp_path: Path) -> None:
    said = run(RUN, tmp_path)
    crashed = int(said["results"].split()[1])
    assert said["results"].startswith("12 ") and crashed >= 1
    assert said["fixed"] == "{7}"
    completed, pruned, failed, running = map(int, said["states"].split())
    assert said["iterations"] == f"{completed} {pruned}"
    assert failed == crashed and running == 0 and pruned >= 1 and completed >= 1
    assert said["first"] == "1 failed"
    assert said["again"] == "12 ['net', 'opt']"


BEFORE = """
import ray
from ray import tune
ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False)

def train(config):
    for i in range(20):
        tune.report({"loss": config["lr"] * config["layers"] + 1 / (i + 1)})

"""

AFTER = """
import bkb
print("ended", sum(t.state in ("completed", "pruned") for t in bkb.load_study("layers").trials))
"""


def test_the_page(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "python.md").read_text()
    section = page.partition("\n## Ray Tune\n")[2].partition("\n## ")[0]
    block = section.partition("```py\n")[2].partition("```")[0]
    assert run(BEFORE + block + AFTER, tmp_path)["ended"] == "10"
