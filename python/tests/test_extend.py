"""Studies that grow after they have finished."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import bkb
from bkb import aio

SPACE = {"x": bkb.Float(0.0, 1.0)}


def declared(trial: bkb.Trial) -> float:
    return float(trial["x"])


def opened(trial: bkb.Trial) -> float:
    return trial.suggest_float("x", 0.0, 1.0)


@pytest.fixture(params=["declared", "open"])
def kind(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Any]:
    """A search space that is declared, or one that the objective defines."""
    return ({"space": SPACE}, declared) if request.param == "declared" else ({}, opened)


def make(client: bkb.Client, name: str, kind: Any, **options: Any) -> bkb.Study:
    options = {"minimize": "loss", "seed": 1, **kind[0], **options}
    if "space" not in options:
        options["space"] = None
    return client.create_study(name, **options)


def over(study: bkb.Study) -> tuple[str, int, int]:
    s = study.status
    return s.finish_reason, s.completed, s.max_trials


def test_extend(shared: bkb.Client, name: str, kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    study = make(shared, name, kind, max_trials=3)
    study.optimize(kind[1])
    assert over(study) == ("max_trials", 3, 3)
    with caplog.at_level(logging.WARNING, "bkb"):
        study.optimize(kind[1])  # has nothing to do, as a script that is started again
    assert over(study) == ("max_trials", 3, 3) and "no trial ran" in caplog.text
    study.extend(4)
    assert (study.status.state, study.status.max_trials) == ("active", 7)
    study.optimize(kind[1])
    assert over(study) == ("max_trials", 7, 7)
    study.extend(trials=1)
    study.optimize(kind[1])
    assert over(shared.load_study(name)) == ("max_trials", 8, 8)
    with pytest.raises(bkb.InvalidRequest, match="max_trials = .* the study has made"):
        study.extend()
    with pytest.raises(bkb.InvalidRequest, match="trials"):
        study.extend(-1)
    with pytest.raises(bkb.InvalidRequest, match="the study has no such limit"):
        study.extend(1, cost=2.0)


@pytest.mark.parametrize("first", [1, 2, 5])
def test_extend_at_each_place_of_a_series(shared: bkb.Client, name: str, first: int) -> None:
    # The space grows at the first trial, and again at the third.
    def grows(trial: bkb.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        return x + (trial.suggest_float("y", 0.0, 1.0) if trial.number >= 2 else 0.0)

    study = make(shared, name, ({}, grows), max_trials=first)
    study.optimize(grows)
    for n in (first + 1, first + 3):
        study.extend(n - study.status.completed)
        assert study.status.max_trials == n
        study = shared.load_study(name)
        study.optimize(grows)
        assert over(study) == ("max_trials", n, n)


def test_n_trials_counts_those_of_the_call(shared: bkb.Client, name: str, kind: Any) -> None:
    study = make(shared, name, kind, max_trials=10)
    study.optimize(kind[1], n_trials=8)
    assert study.status.completed == 8
    study.optimize(kind[1], n_trials=5)  # past the limit
    assert over(study)[1:] == (13, 13)
    study.optimize(kind[1], n_trials=5)  # of a finished study
    assert over(study) == ("max_trials", 18, 18)
    study.optimize(kind[1], n_trials=6, n_jobs=3)
    assert over(study) == ("max_trials", 24, 24)
    study.optimize(kind[1], n_trials=0)
    study.extend(1)
    study.finish()
    with pytest.raises(bkb.StudyFinished):  # by hand, which is meant
        study.optimize(kind[1], n_trials=5)
    study.extend(2)
    study.optimize(kind[1])
    assert study.status.completed == 27


def test_a_shared_limit_holds(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, ({"space": SPACE}, declared), max_trials=4)

    def objective(trial: bkb.Trial) -> float:
        if study.status.completed == 1:  # another worker comes
            shared.load_study(name).ask().tell(0.5)
        return declared(trial)

    study.optimize(objective, n_trials=9)
    assert over(study) == ("max_trials", 4, 4)


def test_exist_ok_raises_limits(
    shared: bkb.Client, name: str, kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    make(shared, name, kind, max_trials=3).optimize(kind[1])
    study = make(shared, name, kind, max_trials=5, exist_ok=True)
    study.optimize(kind[1])
    assert over(study) == ("max_trials", 5, 5)
    assert not caplog.messages
    study = make(shared, name, kind, max_trials=5, exist_ok=True)
    assert over(study) == ("max_trials", 5, 5)
    make(shared, name, kind, max_trials=2, exist_ok=True)
    assert study.status.max_trials == 5


def test_cost_and_time(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, ({"space": SPACE}, declared), max_cost=2.0, timeout=3600.0)
    study.ask().tell(0.5, cost=3.0)
    assert study.status.finish_reason == "cost"
    with pytest.raises(bkb.InvalidRequest, match="max_cost = 2"):
        study.extend(timeout=60.0)
    study.extend(cost=1.5, timeout=60.0)
    spec = study.spec()
    assert (spec["maxCost"], spec["timeout"]) == (4.5, "3660s")


def test_exhausted_stays_finished(shared: bkb.Client, name: str) -> None:
    space = {"n": bkb.Int(1, 2)}
    study = shared.create_study(name, space, minimize="loss", proposer="grid", max_trials=9)
    study.optimize(lambda trial: trial["n"])
    assert study.status.finish_reason == "exhausted"
    with pytest.raises(bkb.StudyFinished, match="exhausted"):
        study.extend(5)
    with pytest.raises(bkb.StudyFinished, match="exhausted"):
        study.optimize(declared, n_trials=1)


def test_async(shared: bkb.Client, name: str) -> None:
    async def objective(trial: aio.Trial) -> float:
        return float(trial["x"])

    async def main() -> None:
        study = await aio.Client(shared).create_study(name, SPACE, minimize="loss", max_trials=2)
        await study.optimize_async(objective)
        await study.optimize_async(objective)
        await study.optimize_async(objective, n_trials=3, n_parallel=2)
        await study.extend(1)
        await study.optimize_async(objective)

    asyncio.run(main())
    assert over(shared.load_study(name)) == ("max_trials", 6, 6)


def test_patience_and_target(shared: bkb.Client, name: str, kind: Any) -> None:
    def worse(trial: bkb.Trial) -> float:
        kind[1](trial)
        return float(trial.number)

    study = make(shared, name, kind, patience=4)
    study.optimize(worse, n_trials=99)
    s = study.status
    assert s.finish_reason == "patience" and 5 <= s.completed <= 10
    with pytest.raises(bkb.StudyFinished, match="patience"):
        study.optimize(worse, n_trials=1)
    study.extend()
    study.optimize(worse)
    assert study.status.completed == s.completed + 4
    study = make(shared, name + "-2", kind, target=0.25, patience=99)
    study.optimize(kind[1], n_trials=99)
    assert study.status.finish_reason == "target" and study.best_value <= 0.25
    with pytest.raises(bkb.InvalidRequest, match="needs a study of one objective"):
        make(shared, name + "-3", kind, minimize=["a", "b"], patience=1)
    with pytest.raises(bkb.InvalidRequest, match="patience"):
        make(shared, name + "-3", kind, patience=-1)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_gives_the_place_back(
    shared: bkb.Client, name: str, kind: Any, n_jobs: int
) -> None:
    study = make(shared, name, kind, max_trials=4)
    study.optimize(kind[1], n_trials=1)
    study.enqueue({"x": 0.125}, attributes={"from": "me"})

    def interrupted(trial: bkb.Trial) -> float:
        kind[1](trial)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.optimize(interrupted, n_jobs=n_jobs)
    assert study.status.state == "active"
    study.optimize(kind[1])
    s = study.status
    assert (s.state, s.completed, s.counted) == ("finished", 4, 4) and s.failed >= 1
    done = [t for t in study.trials if t.state == "completed" and t.value == 0.125]
    assert len(done) == 1 and done[0].attributes["from"] == "me"


def test_from(shared: bkb.Client, name: str, caplog: pytest.LogCaptureFixture) -> None:
    space = {"x": bkb.Float(0.0, 1.0), "kind": bkb.Categorical(["a", "b"])}
    old = shared.create_study(
        name,
        space,
        maximize="acc",
        max_trials=6,
        lease=60.0,
        seed=5,
        proposer="sobol",
        pruner="median",
    )
    old.optimize(lambda trial: trial["x"])
    new = shared.create_study(name + "-2", from_=name)
    s, spec = new.status, new.spec()
    assert (s.added, s.counted, s.max_trials, s.completed) == (6, 0, 6, 6)
    assert new.directions == ("maximize",) and dict(new.space) == dict(old.space)
    assert (spec["lease"], spec["proposer"]["name"]) == ("60s", "sobol")
    assert spec["pruner"]["name"] == "median" and spec.get("seed") != "5"
    new.optimize(lambda trial: trial["x"])
    assert new.status.completed == 12
    narrow = {"x": bkb.Float(0.0, 0.4), "kind": bkb.Categorical(["a", "b"])}
    third = shared.create_study(name + "-3", narrow, from_=old, max_trials=2)
    fit = [t for t in old.trials if t.params["x"] <= 0.4]
    assert 0 < len(fit) < 6 and third.status.completed == len(fit)
    assert third.status.max_trials == 2 and "trial" in caplog.text
    with pytest.raises(bkb.NotFound):
        shared.create_study(name + "-4", from_="nosuch")
