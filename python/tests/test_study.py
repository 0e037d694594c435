from __future__ import annotations

import dataclasses
import logging
import math
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import REPOSITORY

import bkb
from bkb import _lease, _optimize, _service
from bkb._transport import Transport
from bkb._views import NewTrial

SPACE: dict[str, bkb.Parameter] = {
    "lr": bkb.Float(1e-5, 0.1, log=True),
    "width": bkb.Int(32, 256, step=32),
    "opt": bkb.Categorical(["adam", "sgd"]),
    "momentum": bkb.Float(0, 0.99, when={"opt": "sgd"}),
    "size": bkb.Ordinal([1, 2, 4]),
    "classes": bkb.Constant(10),
}
X = {"x": bkb.Float(0, 1)}


def make(client: bkb.Client, name: str, **options: Any) -> bkb.Study:
    options.setdefault("minimize", "loss")
    return client.create_study(name, options.pop("space", X), **options)


# Studies.


def test_space_comes_back(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, space=SPACE)
    assert study.space == bkb.Space(SPACE)
    assert shared.load_study(name).space == study.space
    trial = study.ask()
    assert trial["classes"] == 10 and trial["size"] in (1, 2, 4)
    assert isinstance(trial["width"], int) and trial["width"] % 32 == 0
    assert ("momentum" in trial) == (trial["opt"] == "sgd")


@pytest.mark.parametrize("form", ["dict", "json", "yaml", "file"])
def test_other_forms_of_a_space(shared: bkb.Client, name: str, form: str, tmp_path: Path) -> None:
    yaml = "parameters:\n  x: {type: float, low: 0, high: 1}\n"
    (tmp_path / "space.yaml").write_text(yaml)
    space: Any = {
        "dict": {"parameters": {"x": {"type": "float", "low": 0, "high": 1}}},
        "json": '{"parameters": {"x": {"type": "float", "low": 0, "high": 1}}}',
        "yaml": yaml,
        "file": tmp_path / "space.yaml",
    }[form]
    assert make(shared, name, space=space).space == bkb.Space({"x": bkb.Float(0.0, 1.0)})


@pytest.mark.parametrize(
    ("make_it", "said"),
    [
        (
            lambda: bkb.Float(1, 0),
            "bkb.Float has low 1, low is at most high, which is 0, swap them",
        ),
        (lambda: bkb.Int(3, 2), "bkb.Int has low 3"),
        (lambda: bkb.Float(0, math.inf), "bkb.Float has high inf, it is a finite number"),
        (lambda: bkb.Float(math.nan, 1), "bkb.Float has low nan"),
        (lambda: bkb.Float("0", 1), "bkb.Float has low '0', it is a finite number"),  # type: ignore[arg-type]
        (lambda: bkb.Float(0, 1, log=True), "above 0, raise low, or leave out log"),
        (lambda: bkb.Float(0, 1, step=0), "bkb.Float has step 0, a step is above 0"),
        (lambda: bkb.Int(0, 1.5), "whole numbers, round it, or use bkb.Float"),
        (lambda: bkb.Categorical("abc"), "bkb.Categorical has values 'abc', give a list"),
        (lambda: bkb.Ordinal([]), "one choice or more"),
    ],
)
def test_parameters_are_checked_at_once(make_it: Any, said: str) -> None:
    with pytest.raises(bkb.InvalidRequest, match=re.escape(said)):
        make_it()


def test_parameters_of_numpy() -> None:
    assert bkb.Int(np.int64(1), np.int64(3)).to_json() == {"type": "int", "low": 1, "high": 3}
    assert bkb.Float(np.float32(0.5), np.array(2.0)).to_json()["high"] == 2.0


@pytest.mark.parametrize(
    "options, said",
    [
        ({"minimize": None}, "no objective"),
        ({"max_trials": -1}, "max_trials is -1"),
        ({"max_trials": 1.5}, "max_trials is 1.5"),
        ({"timeout": 0}, "timeout is 0"),
        ({"space": {"x": 3, "y": bkb.Float(0, 1)}}, "parameter 'x' is 3"),
        (
            {"space": {"x": {"type": "float", "low": 0, "high": math.inf}}},
            "space cannot be written",
        ),
        ({"space": {"x": bkb.Float(1, 2, log=True, scale="linear")}}, "disagree"),
        ({"space": 3}, "space is of type int"),
        ({"pruner": ("median",)}, "pruner is"),
        ({"pruner": "nonsense"}, "nonsense"),
    ],
)
def test_mistakes_are_named(
    shared: bkb.Client, name: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(bkb.InvalidRequest, match=said):
        make(shared, name, **options)


def test_constraints(shared: bkb.Client, name: str) -> None:
    space = bkb.Space({"a": bkb.Float(0, 1), "b": bkb.Float(0, 1)}, constraints=["a <= b"])
    limits = ["time <= 10", "accuracy >= 0.9", "time >= 1"]
    study = make(
        shared, name, space=space, constraints=limits, proposer=("bkb", {"start": 4}), max_trials=9
    )
    assert study.space.constraints == ("a <= b",)
    for _ in range(8):
        trial = study.ask()
        a, b = trial["a"], trial["b"]
        assert a <= b
        study.tell(trial, {"loss": a, "time": 20 * b, "accuracy": 1 - a / 10})
    best = study.best_trial
    assert 1 <= 20 * float(best.params["b"]) <= 10
    again = bkb.Space(space, constraints=["b <= a"])
    with pytest.raises(bkb.StudyExists, match="'constraints' differ"):
        make(shared, name, space=again, exist_ok=True)
    assert make(shared, name, space=space, exist_ok=True).name == name
    with pytest.raises(bkb.InvalidRequest, match='breaks the constraint "a <= b"'):
        study.enqueue({"a": 0.5, "b": 0.25})


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"constraints": ["time < 1"]}, "must be a metric, <= or >=, and a finite number"),
        ({"constraints": ["time <= much"]}, "must be a metric"),
        ({"constraints": ["time <= inf"]}, "must be a metric"),
        ({"constraints": [7]}, "must be a metric"),
        ({"constraints": ["t <= 1"], "proposer": "sobol"}, "need the proposer bkb"),
        ({"space": {"parameters": {}, "constraints": ["a <= b"]}}, 'no parameter "a"'),
    ],
)
def test_faulty_constraints(
    shared: bkb.Client, name: str, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(bkb.InvalidRequest, match=match):
        make(shared, name, **options)


def test_exist_ok(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, space=SPACE)
    study.ask().tell(1.0)
    with pytest.raises(bkb.StudyExists):
        make(shared, name, space=SPACE)
    assert make(shared, name, space=SPACE, exist_ok=True).status.completed == 1
    with pytest.raises(bkb.StudyExists, match="'lr', 'width'"):
        make(shared, name, space={"x": bkb.Float(0, 1)}, exist_ok=True)
    with pytest.raises(bkb.StudyExists, match="objectives"):
        make(shared, name, space=SPACE, maximize="loss", minimize=None, exist_ok=True)
    usual: dict[str, bkb.Parameter] = {
        "n": bkb.Int(1, 4, step=1),
        "x": bkb.Float(0, 1, scale="linear"),
    }
    for _ in range(2):  # the server leaves out what is usual
        assert make(shared, name + "u", space=usual, exist_ok=True).space["n"] == bkb.Int(1, 4)
    with pytest.raises(bkb.StudyExists, match="'n'"):
        make(shared, name + "u", space={**usual, "n": bkb.Int(1, 4, step=3)}, exist_ok=True)


def test_list_and_delete(own: bkb.Client) -> None:
    for n in ("b", "a"):
        make(own, n, attributes={"note": n, "n": 1})
    assert [s.name for s in own.studies()] == ["a", "b"]
    assert own.load_study("a").status.attributes == {"note": "a", "n": 1}
    own.delete_study("a")
    assert [s.name for s in own.studies()] == ["b"]
    with pytest.raises(bkb.NotFound):
        own.load_study("a")


def test_module_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNER_DB", str(tmp_path / "env.db"))
    bkb.create_study("s", X, minimize="loss")
    assert (tmp_path / "env.db").exists()
    assert bkb.load_study("s").name == "s"
    assert [s.name for s in bkb.studies()] == ["s"]
    bkb.delete_study("s")
    with pytest.raises(bkb.NotFound):
        bkb.load_study("s")
    server = bkb.open_file().server
    assert server is not None
    server.stop()


def test_pause_resume_finish(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    study.pause()
    with pytest.raises(bkb.StudyPaused):
        study.ask()
    study.resume()
    study.ask().tell(1)
    study.set_attributes({"a": "b"})
    study.finish("enough")
    with pytest.raises(bkb.StudyFinished):
        study.ask()
    s = study.status
    assert (s.state, s.finish_reason, s.finish_detail) == ("finished", "user", "enough")
    assert s.attributes == {"a": "b"}


# Ask and tell.


def test_ask_many(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    assert [t.number for t in study.ask(3)] == [0, 1, 2]
    assert len(study.ask("auto")) >= 1
    assert study.ask(worker="w").number == study.ask(worker="w").number
    for wrong in (0, True, 1.5):
        with pytest.raises(bkb.InvalidRequest, match="count"):
            study.ask(wrong)  # type: ignore[arg-type]


def test_tell(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    a = study.ask().tell({"loss": [1.0, 2.0], "acc": 0.5}, cost=3, attributes={"k": "v"})
    assert (a.value, a.metrics, a.cost) == (1.5, {"loss": [1.0, 2.0], "acc": [0.5]}, 3.0)
    assert a.attributes == {"k": "v"} and a.duration is not None
    b = study.ask().tell(2, std_err=0.1)
    assert b.std_errs == {"loss": 0.1}
    t = study.ask()
    assert study.tell(t.number, state="infeasible", message="m").message == "m"
    with pytest.raises(bkb.AlreadyTold):
        t.tell(1.0)
    c = study.ask().tell(math.nan)
    assert (c.state, c.reason, c.value) == ("failed", "nan", None)
    assert study.ask().tell(state="failed", reason="cancelled").reason == "cancelled"
    assert study.best_trial.number == a.number or study.best_trial.number == b.number
    assert [x.state for x in study.iter_trials(states=["failed"])] == ["failed"] * 2
    assert study.status.cost == 3.0


@pytest.mark.parametrize(
    "value, options, said",
    [
        (None, {}, "value is None"),
        (True, {}, "value of loss is True"),
        ("1", {}, "value of loss is '1'"),
        ([1, 2], {}, "2 numbers"),
        (1, {"state": "done"}, "state is 'done'"),
        (1, {"reason": "crash"}, "only a failed trial"),
        (1, {"cost": "much"}, "cost"),
        ({"acc": 1}, {}, "loss"),
    ],
)
def test_mistakes_in_outcomes(
    shared: bkb.Client, name: str, value: Any, options: dict[str, Any], said: str
) -> None:
    trial = make(shared, name).ask()
    with pytest.raises(bkb.InvalidRequest, match=said):
        trial.tell(value, **options)


def test_two_objectives(shared: bkb.Client, name: str) -> None:
    goals: dict[str, Any] = {"loss": "minimize", "time": "minimize", "acc": "maximize"}
    study = make(shared, name, minimize=None, objectives=goals)
    assert study.directions == ("minimize", "minimize", "maximize")
    study.ask().tell([1, 2, 3])
    study.ask().tell({"loss": 2, "time": 1, "acc": 3})
    study.ask().tell((3, 3, 1))
    assert [t.values for t in study.pareto_front] == [(1, 2, 3), (2, 1, 3)]
    with pytest.raises(bkb.InvalidRequest, match="pareto_front"):
        _ = study.best_trial
    with pytest.raises(bkb.InvalidRequest, match="sequence or a dict"):
        study.ask().tell(1)
    frame = study.to_dataframe()
    assert list(frame["values_acc"][:3]) == [3, 3, 1]


def test_names_of_mixed_objectives(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, minimize="lat", maximize="acc")
    bare: list[Any] = [(0.9, 12.0), [0.9, 12.0], np.array([0.9, 12.0])]
    for _ in bare:
        with pytest.raises(bkb.InvalidRequest, match="'lat': …, 'acc': …"):
            study.optimize(lambda t: bare[t.number], n_trials=1)
    assert study.status.failed == 3
    study.optimize(lambda _: {"acc": 0.9, "lat": 12.0}, n_trials=1)
    with pytest.raises(bkb.InvalidRequest, match="order is not known"):
        shared.load_study(name).ask().report((0.9, 12.0), 0)
    assert study.trials[3].metrics == {"acc": [0.9], "lat": [12.0]}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"objectives": {"acc": "maximize", "lat": "minimize"}}, ["acc", "lat"]),
        ({"objectives": {"lat": "minimize", "acc": "maximize"}}, ["lat", "acc"]),
        ({"directions": ["minimize", "maximize"]}, ["value0", "value1"]),
        ({"directions": ["maximize", "minimize"]}, ["value0", "value1"]),
        ({"minimize": ["a", "b"]}, ["a", "b"]),
    ],
)
@pytest.mark.parametrize("space", [{"x": bkb.Float(0, 1)}, None])
def test_ordered_objectives(
    shared: bkb.Client, name: str, options: dict[str, Any], names: list[str], space: Any
) -> None:
    def objective(trial: bkb.Trial) -> tuple[float, float]:
        trial.suggest_float("x", 0, 1)
        return 3.0, 4.0

    shared.create_study(name, space, **options).optimize(objective, n_trials=2)
    loaded = shared.load_study(name)  # which keeps the order
    loaded.optimize(objective, n_trials=2)
    assert [t.metrics for t in loaded.trials] == [{names[0]: [3.0], names[1]: [4.0]}] * 4
    assert shared.create_study(name, space, **options, exist_ok=True).objective_names == (*names,)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"objectives": {"a": "min"}}, "objective 'a' is 'min', give 'minimize' or 'maximize'"),
        ({"objectives": ["a", "b"]}, "give a dict from names to directions"),
        ({"objectives": {}}, "no objective"),
        ({"directions": ["up"]}, "'up'"),
        ({"objectives": {"a": "minimize"}, "minimize": "a"}, "in several ways"),
    ],
)
def test_faulty_objectives(
    shared: bkb.Client, name: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(bkb.InvalidRequest, match=said):
        shared.create_study(name, {"x": bkb.Float(0, 1)}, **options)


def test_infinite_metrics(shared: bkb.Client, name: str, caplog: pytest.LogCaptureFixture) -> None:
    study = make(shared, name, constraints=["lat <= 10", "acc >= 0.5"])
    told: list[dict[str, float]] = [
        {"lat": 1, "acc": 1},
        {"lat": math.inf, "acc": 1},
        {"lat": 1, "acc": -math.inf, "size": 3},
        {"lat": -math.inf, "acc": math.nan},
        {"size": math.inf},
        {"size": -math.inf},
    ]

    def objective(trial: bkb.Trial) -> dict[str, float]:
        metrics = {"loss": trial["x"], **told[trial.number]}
        trial.report(metrics, 0)
        trial.report({"size": math.nan}, 1)
        return metrics

    study.optimize(objective, n_trials=len(told))
    seen = [(t.state, t.message, {**t.metrics, "loss": 0}) for t in study.iter_trials(reports=True)]
    assert seen == [
        ("completed", "", {"loss": 0, "lat": [1], "acc": [1]}),
        ("infeasible", "lat is inf, and must be at most 10", {"loss": 0, "acc": [1]}),
        (
            "infeasible",
            "acc is -inf, and must be at least 0.5",
            {"loss": 0, "lat": [1], "size": [3]},
        ),
        (
            "completed",
            "acc is nan, which is not stored, so the trial breaks the limit at least 0.5; "
            "lat is -inf, which is not stored, so the trial breaks the limit at most 10; "
            "tell a finite number that keeps it",
            {"loss": 0},
        ),
        *[("completed", "", {"loss": 0})] * 2,
    ]
    assert [len(study.trial(n).reports) for n in range(6)] == [1] * 6


def test_infinite_metrics_without_a_space(shared: bkb.Client, name: str) -> None:
    study = shared.create_study(name, minimize="loss", constraints=["lat <= 10"])

    def objective(trial: bkb.Trial) -> dict[str, float]:
        x = trial.suggest_float("x", 0, 1)
        return {"loss": x, "lat": math.inf if trial.number in (0, 3) else x}

    study.optimize(objective, n_trials=5)
    states = [t.state for t in study.trials]
    assert [n for n, s in enumerate(states) if s == "infeasible"] == [0, 3]


def test_no_best_trial_yet(shared: bkb.Client, name: str) -> None:
    with pytest.raises(bkb.NotFound, match="no completed trial"):
        _ = make(shared, name).best_trial


def test_enqueue(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, space=SPACE)
    params = {"lr": 0.01, "width": 64.0, "opt": "adam", "size": 2, "classes": 10}
    assert study.enqueue(params, attributes={"by": "me"}).state == "queued"
    trial = study.ask()
    assert trial.params == params and trial.view.origin == "enqueued"
    assert trial.view.attributes == {"by": "me"}
    with pytest.raises(bkb.InvalidRequest, match="'lrr' is not in the space"):
        study.enqueue({"lrr": 1})
    with pytest.raises(bkb.InvalidRequest, match="outside"):
        study.enqueue({**params, "lr": 7})


def test_add_trials(shared: bkb.Client, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_service, "TRIALS_PER_MESSAGE", 7)
    study = make(shared, name)
    new: list[NewTrial] = [
        {"params": {"x": i / 20}, "value": float(i), "reports": {0: 5.0, 1: i}} for i in range(20)
    ]
    new.append({"params": {"x": 1}, "state": "failed", "message": "m", "attributes": {"a": 1}})
    assert study.add_trials(new) == list(range(21))
    full = study.trial(3)
    assert (full.value, full.origin) == (3.0, "added")
    assert [(r.step, r.values) for r in full.reports] == [(0, {"loss": 5.0}), (1, {"loss": 3.0})]
    copy = make(shared, name + "c")
    assert copy.add_trials(study.iter_trials(reports=True)) == list(range(21))
    assert [t.metrics for t in copy.trials] == [t.metrics for t in study.trials]
    assert copy.trial(20).attributes == {"a": 1} and copy.trial(3).reports == full.reports
    assert [t.reports for t in copy.trials] == [t.reports for t in study.trials]
    bad = [*new[:10], {"params": {"x": 5}, "value": 1}]
    with pytest.raises(bkb.InvalidRequest) as e:
        make(shared, name + "d").add_trials(bad)
    assert e.value.index == 10
    with pytest.raises(bkb.InvalidRequest, match="give params"):
        study.add_trials([{"x": 1}])


def test_reports_and_pruning(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, pruner=("median", {"min_trials": 2, "warmup_steps": 1}))
    for _ in range(3):
        t = study.ask()
        for step in range(3):
            t.report(0.1, step)
        assert not t.should_prune()
        t.tell(0.1)
    t = study.ask()
    t.report(9.0, 0)
    assert not t.should_prune()
    t.report({"loss": 9.0, "acc": 0.1}, 1)
    assert t.should_prune() and t.stop_reason
    assert t.tell(state="pruned").state == "pruned"
    assert [r.step for r in study.trial(t.number).reports] == [0, 1]
    with pytest.raises(bkb.InvalidRequest, match="replicates"):
        study.ask().report({"loss": [1, 2]}, 0)


def test_steps_reported_twice(
    shared: bkb.Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    study = make(shared, name)

    def objective(trial: bkb.Trial) -> float:
        for fold in range(2):
            for epoch in range(3):
                trial.report(float(fold), epoch)
        trial.report({"acc": 0.5}, 2)  # which this pass has not
        trial.report({"loss": 7, "acc": 0.5}, 2)
        return 1.0

    study.optimize(objective, n_trials=3)
    assert study.status.completed == 3 and not caplog.records
    for t in study.iter_trials(reports=True):
        assert [(r.step, dict(r.values)) for r in t.reports] == [
            (0, {"loss": 0}),
            (1, {"loss": 0}),
            (2, {"loss": 0}),
            (3, {"loss": 1}),
            (4, {"loss": 1}),
            (5, {"loss": 1}),
            (5, {"acc": 0.5}),
            (6, {"loss": 7, "acc": 0.5}),
        ]
    with study.ask(worker="w") as trial:  # as after a crash of the worker
        trial.report(1.0, 0)
        shared.load_study(name).ask(worker="w").report(2.0, 0)
        with pytest.raises(bkb.InvalidRequest, match="step"):
            trial.report(2.0, -1)
        trial.tell(1.0)


def test_a_run_says_what_it_waits_for(
    own: bkb.Client, name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_optimize, "SAY_AFTER", 0.2)
    study = make(own, name, max_trials=1)
    study.ask(worker="gone", lease=2)
    study.optimize(lambda t: t["x"])
    assert study.status.completed == 1
    waits = [r.getMessage() for r in caplog.records if "the run waits" in r.getMessage()]
    assert len(waits) == 1, caplog.text
    assert re.search(r"trial 0 is held by worker 'gone', its lease ends in [012] s", waits[0])
    # Trials of the run itself are no reason to say anything, but a pause is.
    caplog.clear()
    other = make(own, name + "b", max_trials=4)
    threading.Timer(2.5, other.resume).start()

    def slow(trial: bkb.Trial) -> float:
        time.sleep(1)
        if trial.number == 0:
            other.pause()
        return float(trial["x"])

    other.optimize(slow, n_jobs=2)
    waits = [r.getMessage() for r in caplog.records if "the run waits" in r.getMessage()]
    assert waits == [f"study {name}b, the run waits until the study is resumed"]
    assert "held by" not in caplog.text


# The with block and leases.


def test_with(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    with study.ask() as trial:
        trial.tell(1.0)
    with study.ask() as trial:
        raise bkb.TrialPruned("poor")
    with pytest.raises(ZeroDivisionError), study.ask():
        _ = 1 / 0
    with pytest.raises(KeyboardInterrupt), study.ask():
        raise KeyboardInterrupt
    with study.ask():
        pass
    with study.ask() as trial:
        study.tell(trial.number, 2.0)
    seen = [(t.state, t.reason, t.message) for t in study.trials]
    assert seen == [
        ("completed", "", ""),
        ("pruned", "", "poor"),
        ("failed", "crash", "ZeroDivisionError: division by zero"),
        ("failed", "cancelled", "KeyboardInterrupt"),
        ("failed", "crash", "the with block ended and told no outcome"),
        ("completed", "", ""),
    ]


def test_heartbeats_keep_trials(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, max_retries=5)
    with study.ask(lease=3) as kept, study.ask(lease=3) as other:
        time.sleep(4.5)
        assert not kept.should_prune()
        other.tell(2.0)
        kept.tell(1.0)
    lost = study.ask(lease=1)
    time.sleep(1.3)
    again = study.ask()
    assert (again.number, again.epoch) == (lost.number, lost.epoch + 1)
    assert study.trial(kept.number).epoch == 1
    with pytest.raises(bkb.LeaseLost):
        lost.renew()


def test_lost_lease_stops_the_trial(
    shared: bkb.Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    study = make(shared, name, max_retries=5)
    lost = study.ask(lease=1)
    time.sleep(1.3)
    again = study.ask()
    assert again.number == lost.number
    with lost:  # its heartbeat comes too late
        deadline = time.monotonic() + 10
        while not lost.should_prune():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with caplog.at_level(logging.WARNING, "bkb"):
            lost.tell(5.0)
    assert "late result" in caplog.text
    assert again.tell(1.0).value == 1.0


def test_heartbeat_thread_ends(shared: bkb.Client, name: str) -> None:
    beats = _lease.Heartbeats()
    study = make(shared, name)
    trial = study.ask()
    beats.add(trial._held, 60)
    thread = beats._thread
    assert thread is not None and thread.daemon
    beats.remove(trial._held)
    assert beats._open == {}


def test_a_shorter_lease_is_renewed_first() -> None:
    class Holder:
        def __init__(self) -> None:
            self.renewed = threading.Event()

        def renew(self, lease: float, *, once: bool) -> None:
            self.renewed.set()

        def lost(self, reason: str) -> None:
            raise AssertionError(reason)

    beats, first, second, third = _lease.Heartbeats(), Holder(), Holder(), Holder()
    beats.add(first, 600)
    time.sleep(0.1)  # the thread waits for the first one now
    beats.add(second, 0.3)
    assert second.renewed.wait(30)
    beats.remove(second)
    time.sleep(0.2)
    beats.add(third, 600, now=True)
    assert third.renewed.wait(30)
    beats.remove(first)
    beats.remove(third)


# Loops.


def test_optimize(shared: bkb.Client, name: str, caplog: pytest.LogCaptureFixture) -> None:
    study = make(shared, name, max_trials=15)
    seen: list[int] = []
    with caplog.at_level(logging.INFO, "bkb"):
        study.optimize(
            lambda t: (t["x"] - 0.3) ** 2, callbacks=[lambda _, view: seen.append(view.number)]
        )
    assert seen == list(range(15)) and caplog.text.count("completed loss=") == 15
    assert study.status.state == "finished" and study.best_value < 0.1
    study.optimize(lambda t: 0.0)  # has nothing to do
    assert study.best_params == study.best_trial.params


def slow(trial: bkb.Trial) -> float:
    time.sleep(0.05)
    return 1.0


def test_optimize_limits(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    study.optimize(lambda t: 1.0, n_trials=3)
    study.optimize(lambda t: 1.0, n_trials=0)
    assert study.status.completed == 3
    start = time.monotonic()
    study.optimize(slow, timeout=0.3)
    assert 0.2 < time.monotonic() - start < 10 and study.status.completed > 3

    def stop(s: bkb.Study, view: bkb.TrialView) -> None:
        s.stop()

    before = study.status.completed
    study.optimize(lambda t: 1.0, callbacks=[stop])
    assert study.status.completed == before + 1
    for options in ({"n_trials": -1}, {"n_jobs": 0}):
        with pytest.raises(bkb.InvalidRequest):
            study.optimize(lambda t: 1.0, **options)  # type: ignore[arg-type]


def test_optimize_in_threads(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    together = threading.Barrier(3, timeout=30)

    def objective(trial: bkb.Trial) -> float:
        together.wait()  # fails unless three run at once
        return float(trial["x"])

    study.optimize(objective, n_trials=6, n_jobs=3)
    assert study.status.completed == 6


def square(trial: bkb.Trial) -> float:
    trial.report(1.0, 0)
    if trial.number == 1:
        raise bkb.TrialPruned
    return float(trial["x"] ** 2)


def test_optimize_in_processes(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    with ProcessPoolExecutor(2) as pool:
        study.optimize(square, n_trials=4, n_jobs=2, executor=pool)
    assert [t.state for t in study.trials].count("completed") == 3
    assert study.trial(1).state == "pruned" and len(study.trial(0).reports) == 1


def test_exceptions_of_objectives(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)

    def objective(trial: bkb.Trial) -> float:
        if trial.number == 1:
            raise KeyError("lost")
        return 1.0

    study.optimize(objective, n_trials=3, catch=KeyError)
    assert [t.state for t in study.trials] == ["completed", "failed", "completed"]
    assert study.trial(1).message == "KeyError: 'lost'"
    with pytest.raises(ZeroDivisionError) as e:
        study.optimize(lambda t: 1 / 0, n_trials=3)
    assert e.traceback[-1].name == "<lambda>" and study.status.failed == 2
    with pytest.raises(bkb.InvalidRequest, match="value is None"):
        study.optimize(lambda t: None, n_trials=1)


def test_a_warning_of_asks_is_logged_once(
    shared: bkb.Client, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    study = make(shared, name)
    call = shared.transport.call

    def warn(method: str, *args: Any, **options: Any) -> Any:
        answer = call(method, *args, **options)
        return {**answer, "warnings": ["the model is capped"]} if method == "Ask" else answer

    monkeypatch.setattr(shared.transport, "call", warn)
    study.optimize(lambda t: 1.0, n_trials=4)
    assert caplog.messages.count(f"study {name}, the model is capped") == 1


@pytest.mark.parametrize(
    "catch", [[KeyError], (ValueError, KeyError), {LookupError}, (k for k in (KeyError,))]
)
def test_catch_takes_what_optuna_takes(shared: bkb.Client, name: str, catch: Any) -> None:
    def objective(trial: bkb.Trial) -> float:
        raise KeyError("lost")

    study = make(shared, name)
    study.optimize(objective, n_trials=2, catch=catch)
    assert study.status.failed == 2


@pytest.mark.parametrize("catch", ["KeyError", [3], KeyError("x"), [KeyboardInterrupt]])
def test_catch_is_checked_before_a_trial(shared: bkb.Client, name: str, catch: Any) -> None:
    study = make(shared, name)
    with pytest.raises(bkb.InvalidRequest, match="catch has .*, which is no exception class, give"):
        study.optimize(lambda t: 1.0, n_trials=1, catch=catch)
    assert not study.trials


def test_an_exception_cancels_the_other_threads(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    both = threading.Barrier(2, timeout=30)

    def objective(trial: bkb.Trial) -> float:
        both.wait()
        if trial.number == 0:
            raise ValueError("broken")
        while not trial.should_prune():
            time.sleep(0.01)
        return 1.0

    with pytest.raises(ValueError, match="broken"):
        study.optimize(objective, n_trials=10, n_jobs=2)
    assert [(t.state, t.reason) for t in study.trials] == [
        ("failed", "crash"),
        ("failed", "cancelled"),
    ]


def test_waits_for_trials_of_others(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, max_trials=3)
    other = study.ask()
    timer = threading.Timer(0.3, other.tell, [1.0])
    timer.start()
    study.optimize(lambda t: 1.0)
    assert study.status.state == "finished" and study.status.completed == 3


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_ctrl_c(tmp_path: Path, name: str, n_jobs: int) -> None:
    script = """
        import signal, sys, time, bkb
        # A shell ignores Ctrl-C for what it runs in the background, and so would this.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        study = bkb.create_study("s", {"x": bkb.Float(0, 1)}, minimize="l", db=sys.argv[1])
        def objective(trial):
            print(trial.number, flush=True)
            while not trial.should_prune():
                time.sleep(0.01)
            return 1.0
        try:
            study.optimize(objective, n_jobs=int(sys.argv[2]))
        except KeyboardInterrupt:
            print([(t.state, t.reason) for t in study.trials])
    """
    p = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "t.db"), str(n_jobs)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert p.stdout is not None
    for _ in range(n_jobs):
        p.stdout.readline()
    p.send_signal(signal.SIGINT)
    out, _ = p.communicate(timeout=60)
    assert out.strip() == str([("failed", "cancelled")] * n_jobs)


@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize("count", [None, 3])
def test_ctrl_c_during_an_ask(
    shared: bkb.Client, name: str, monkeypatch: pytest.MonkeyPatch, arrived: bool, count: int | None
) -> None:
    study = make(shared, name)
    once = Transport._once
    interrupted: list[str] = []

    def interrupt(self: Transport, method: str, *args: Any) -> dict[str, Any]:
        if method == "Ask" and not interrupted:
            interrupted.append(method)
            if arrived:
                once(self, method, *args)
            raise KeyboardInterrupt
        return once(self, method, *args)

    monkeypatch.setattr(Transport, "_once", interrupt)
    with pytest.raises(KeyboardInterrupt):
        study.ask(count)
    assert [(t.state, t.reason) for t in study.trials] == [("failed", "cancelled")] * (count or 1)


@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize("n_trials", [5, 2])  # the last tell asks for nothing
def test_ctrl_c_during_a_tell(
    shared: bkb.Client, name: str, monkeypatch: pytest.MonkeyPatch, arrived: bool, n_trials: int
) -> None:
    study = make(shared, name)
    once = Transport._once
    told: list[str] = []

    def interrupt(self: Transport, method: str, *args: Any) -> dict[str, Any]:
        told.extend([method] if method == "Tell" else [])
        if method == "Tell" and len(told) == 2:
            if arrived:
                once(self, method, *args)
            raise KeyboardInterrupt
        return once(self, method, *args)

    monkeypatch.setattr(Transport, "_once", interrupt)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(lambda trial: 1.0, n_trials=n_trials)
    states = [(t.state, t.reason) for t in study.trials]
    asked = [("failed", "cancelled")] if n_trials > 2 else []
    assert states == [("completed", ""), ("completed", ""), *asked]


def called(study: bkb.Study, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[str]:
    """Return the calls of a run, after its first trial, that make or end trials."""
    once, calls = Transport._once, []

    def note(self: Transport, method: str, *args: Any) -> dict[str, Any]:
        calls.append(method)
        return once(self, method, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Transport, "_once", note)
        study.optimize(lambda trial: trial["x"], **options)
    return [c for c in calls if c in ("Ask", "Tell", "EnqueueTrial")]


def test_a_run_asks_with_the_tell(
    shared: bkb.Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make(shared, name, max_trials=12)
    assert called(study, monkeypatch, n_trials=4) == ["Ask", *["Tell"] * 4]
    assert called(study, monkeypatch, n_trials=1) == ["Ask", "Tell"]
    seen: list[int] = []

    def third(study: bkb.Study, view: bkb.TrialView) -> None:
        seen.append(view.number)
        if len(seen) == 3:
            study.stop()

    # What a callback does comes before the next ask.
    assert called(study, monkeypatch, callbacks=[third]) == ["Ask", "Tell"] * 3
    assert seen == [5, 6, 7]
    fixed = called(study, monkeypatch, n_trials=2, fixed={"x": 0.5})
    assert fixed == ["EnqueueTrial", "Ask", "Tell"] * 2
    # The tell of the last trial finds the study finished, and the ask says so.
    assert called(study, monkeypatch) == ["Ask", "Tell", "Tell", "Ask"]
    assert study.status.completed == 12 and study.status.running == 0


def test_a_refused_tell_asks_for_nothing(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    values: list[Any] = [1.0, {"gain": 1.0}, 2.0]
    study.optimize(lambda trial: values[trial.number], n_trials=3, catch=bkb.InvalidRequest)
    assert [t.state for t in study.trials] == ["completed", "failed", "completed"]


def test_ctrl_c_during_an_ask_of_a_named_worker(
    shared: bkb.Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make(shared, name)
    once = Transport._once

    def interrupt(self: Transport, method: str, *args: Any) -> bytes:
        once(self, method, *args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Transport, "_once", interrupt)
        study.ask(worker="w")
    assert study.ask(worker="w").number == 0  # it gets the trial back


def test_trial_asked_for_while_the_run_ends(
    shared: bkb.Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make(shared, name)
    ask, ran = study.ask, []

    def slow(*args: Any, **options: Any) -> bkb.Trial:
        trial: bkb.Trial = ask(*args, **options)
        if trial.number == 1:
            assert study._runs[0].stop.wait(30)
        return trial

    def objective(trial: bkb.Trial) -> float:
        ran.append(trial.number)
        while trial.number == 0 and study.status.running < 2:
            time.sleep(0.01)
        raise ValueError("boom")

    monkeypatch.setattr(study, "ask", slow)
    with pytest.raises(ValueError, match="boom"):
        study.optimize(objective, n_jobs=2)
    assert ran == [0]
    assert [(t.state, t.reason) for t in study.trials] == [
        ("failed", "crash"),
        ("failed", "cancelled"),
    ]


def test_progress_bar(shared: bkb.Client, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    make(shared, name).optimize(lambda t: 1.0, n_trials=3, show_progress_bar=True)
    assert "3/3" in capfd.readouterr().err


# Views.


def test_dataframe(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, space=SPACE, max_trials=12)
    study.optimize(lambda t: t["lr"])
    study.set_attributes({})
    frame = study.to_dataframe()
    assert list(frame.columns[:3]) == ["number", "state", "value"]
    assert list(frame.columns[-4:]) == ["duration", "mean", "std_dev", "phase"]
    assert list(frame["params_lr"]) == [t.params["lr"] for t in study.trials]
    assert frame["std_dev"].notna().any() and (frame["params_opt"] == "sgd").any()
    with pytest.raises(bkb.InvalidRequest, match="backend"):
        study.to_dataframe("excel")  # type: ignore[arg-type]


def test_watch(own: bkb.Client, name: str) -> None:
    study = make(own, name, max_trials=3)
    events: list[bkb.Event] = []

    def follow() -> None:
        for e in study.watch():
            events.append(e)
            if e.event == "finished":
                return

    follower = threading.Thread(target=follow)
    follower.start()
    study.ask().tell(1.0)
    server = own.server
    assert server is not None
    server.stop()  # the stream continues on a server started anew
    study.optimize(lambda t: 1.0)
    follower.join(30)
    assert not follower.is_alive()
    assert [e.position for e in events] == list(range(1, len(events) + 1))
    told = [e.trial.number for e in events if e.event == "told" and e.trial]
    assert told == [0, 1, 2]
    assert [e.position for e in zip_first(study.watch(after=2))] == [3]
    with pytest.raises(bkb.NotFound):
        own.delete_study(name)
        next(study.watch())


def zip_first(events: Any) -> list[bkb.Event]:
    return [next(events)]


def test_diagnosis_and_suggestions(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    assert study.diagnosis().results == 0
    study.optimize(lambda t: t["x"], n_trials=10)
    d = study.diagnosis()
    assert d.results == 10 and d.inducing_points > 0
    s = study.ask().suggestion
    assert s is not None and len(s.mean) == len(s.std_dev) == 1 and s.phase


def test_diagnosis_of_outliers_and_coverage(shared: bkb.Client, name: str) -> None:
    """The numbers are those of the program, and differ from their defaults."""
    space = {"x": bkb.Float(0, 1), "y": bkb.Float(0, 1)}
    study = shared.create_study(name, space, minimize="loss", seed=3)
    for n in range(40):
        trial = study.ask()
        value = float(trial.params["x"]) ** 2 + float(trial.params["y"]) ** 2
        trial.tell(1e30 if n == 33 else value)
    d = study.diagnosis()
    message = study._service.transport.call("GetDiagnosis", {"parent": f"studies/{name}"})
    assert (d.covered, d.predicted) == (int(message["covered"]), int(message["predicted"]))
    assert 0 < d.covered <= d.predicted <= 40
    assert d.calibration == message["calibration"] > 0
    assert d.outliers == int(message["outliers"]) == 1
    assert d.idle == int(message.get("idle", 0)) < 40
    assert d.stuck == message.get("stuck", False)
    assert any("1 result as an outlier" in w for w in d.warnings)
    assert d.state == "ready" and d.missing_results == 0
    assert d.position == int(message["position"]) and d.event_results <= d.results
    assert set(d.length_scales) == {"x", "y"} and min(d.length_scales.values()) > 0
    assert d.draw is not None and d.draw.sampler == message["draw"]["sampler"]
    full = {"covered": "3", "predicted": "4", "calibration": 2.5, "outliers": "1", "idle": "7"}
    d = bkb.Diagnosis.decode({**full, "stuck": True})
    assert (d.covered, d.predicted, d.calibration, d.outliers) == (3, 4, 2.5, 1)
    assert (d.idle, d.stuck) == (7, True)


def test_diagnosis_without_a_model(shared: bkb.Client, name: str) -> None:
    d = make(shared, name).diagnosis()
    assert d.state == "waiting" and d.missing_results > 0 and d.draw is None


def test_diagnosis_of_a_limit(shared: bkb.Client, name: str) -> None:
    study = shared.create_study(
        name, {"x": bkb.Float(0, 1)}, minimize="loss", constraints=["latency <= 0.5"]
    )
    for _ in range(12):
        trial = study.ask()
        x = float(trial.params["x"])
        trial.tell({"loss": x * x, "latency": 1 - x})
    (latency,) = study.diagnosis().metrics
    assert latency.metric == "latency" and latency.results == 12
    assert 0 < latency.broken < 12 and latency.noise >= 0


@pytest.mark.parametrize("explained", [True, False])
def test_diagnosis_of_failures(shared: bkb.Client, name: str, explained: bool) -> None:
    """Failures in a region are avoided, and those at random are not."""
    study = shared.create_study(name, {"x": bkb.Float(0, 1)}, minimize="loss", seed=3)
    points = [((n * 7) % 40 + 0.5) / 40 for n in range(40)]
    failed = [x > 0.7 if explained else n % 4 == 0 for n, x in enumerate(points)]
    study.add_trials(
        {"params": {"x": x}, "state": "failed"} if bad else {"params": {"x": x}, "value": x}
        for x, bad in zip(points, failed, strict=True)
    )
    study.ask()
    d = study.diagnosis()
    assert d.failures == sum(failed) and d.avoids_failures is explained


def test_diagnosis_has_every_field() -> None:
    """The names are those of the .proto."""
    draw = {"sampler": "bless", "lambda": 0.5, "rows": "9", "rowsRead": "8"}
    step = {"lambda": "Infinity", "inducingPoints": "2", "effectiveDimension": 1.5}
    d = bkb.Diagnosis.decode({"draw": {**draw, "path": [step]}, "position": "7"})
    assert d.draw is not None and d.position == 7
    assert (d.draw.sampler, d.draw.lambda_, d.draw.rows, d.draw.rows_read) == ("bless", 0.5, 9, 8)
    assert [(s.lambda_, s.inducing_points) for s in d.draw.path] == [(float("inf"), 2)]
    proto = (REPOSITORY / "proto/tuner/v1/tuner.proto").read_text()
    (body,) = re.findall(r"\nmessage Diagnosis \{(.*?)\n\}", proto, re.S)
    names = re.findall(r"(\w+) = \d+;", body)
    assert set(names) == {f.name for f in dataclasses.fields(bkb.Diagnosis)}


def test_notebook(shared: bkb.Client, name: str) -> None:
    space = {"a<b": bkb.Float(0, 1)}
    study = make(shared, name, space=space)
    assert "<svg" not in study._repr_html_()
    study.optimize(lambda t: t["a<b"], n_trials=5)
    html = study._repr_html_()
    assert "<svg" in html and "a&lt;b" in html and "a<b" not in html
    assert html.count("<circle") == 5 and "http" not in html
    assert "a&lt;b" in study.ask()._repr_html_()


def test_verbosity() -> None:
    log = logging.getLogger("bkb")
    before = list(log.handlers)
    log.handlers = [logging.NullHandler()]
    try:
        bkb.set_verbosity("INFO")
        bkb.set_verbosity("DEBUG")
        assert len(log.handlers) == 2 and log.level == logging.DEBUG
    finally:
        log.handlers = before
        log.setLevel(logging.NOTSET)


@pytest.mark.parametrize("kind", [bkb.Categorical, bkb.Ordinal])
def test_choices_keep_their_types(shared: bkb.Client, name: str, kind: Any) -> None:
    choices = [1, 0.5, 1.0]
    study = shared.create_study(name, {"x": kind(choices)}, minimize="v", proposer="grid")
    seen: list[Any] = []

    def objective(trial: bkb.Trial) -> float:
        seen.append(trial["x"])
        return 1.0

    study.optimize(objective, n_trials=3)
    assert sorted(map(repr, seen)) == ["0.5", "1", "1.0"]
    for x in choices:
        added = study.add_trials([{"params": {"x": x}, "value": 1.0}])
        assert repr(study.trials[added[0]].params["x"]) == repr(x)
