"""What trials and studies say of themselves, and trials that go to another study."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

import bkb

X = {"x": bkb.Float(0, 1)}

ATTRIBUTES: list[Any] = [
    "text", "1", "true", "null", "[1]", '"q"', '{"a": 1}', "NaN", "-", "nothing", "1.5.2", "ä",
    "-x", 1, 2.5, -3, True, False, None, [1, "a", None], {"a": {"b": [1]}}, 1e300,
]  # fmt: skip


def test_attributes_keep_their_type(shared: bkb.Client, name: str) -> None:
    notes = {f"k{i}": v for i, v in enumerate(ATTRIBUTES)}
    study = shared.create_study(name, X, minimize="loss", attributes=notes)
    trial = study.ask()
    trial.set_attributes(notes)
    view = trial.tell(0.5, attributes={"told": [1]})
    wanted = {**notes, "told": [1]}
    for has in (study.trial(0).attributes, study.trials[0].attributes, view.attributes):
        assert has == wanted and [type(v) for v in has.values()] == [type(wanted[k]) for k in has]
    assert study.status.attributes == shared.load_study(name).status.attributes == notes
    copy = shared.create_study(name + "c", X, minimize="loss")
    copy.add_trials(study.trials)
    assert copy.trials[0].attributes == wanted
    study.set_attributes({"k0": ""})  # removes it
    assert "k0" not in study.status.attributes


def test_attributes_of_a_study_without_a_space(shared: bkb.Client, name: str) -> None:
    notes = {f"k{i}": v for i, v in enumerate(ATTRIBUTES)}
    study = shared.create_study(name, minimize="loss", attributes=notes)
    study.optimize(lambda t: t.suggest_float("x", 0, 1), 2)
    study.trial(0)
    trial = study.ask()
    trial.set_attributes(notes)
    trial.suggest_float("x", 0, 9)
    trial.tell(1.0)
    assert len(study.generations) == 3
    assert notes.items() <= study.status.attributes.items()
    assert notes.items() <= study.trials[2].attributes.items()


def test_reports_are_loaded_when_looked_at(
    shared: bkb.Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = shared.create_study(name, X, minimize="loss")
    with study.ask() as trial:
        for step in range(3):
            trial.report({"loss": step / 2, "acc": 1.0}, step)
        told = trial.tell(0.25)
    series = shared.create_study(name + "d", minimize="loss")
    with series.ask() as trial:
        trial.suggest_float("x", 0, 1)
        trial.report(1.0, 3)
        trial.tell(0.25)
    assert [r.step for r in series.trials[0].reports] == [3]
    views = [told, *study.trials, study.best_trial, study.trial(0), study.trial(0, reports=False)]
    calls: list[str] = []
    call = shared.transport.call

    def counted(method: str, *args: Any, **options: Any) -> Any:
        calls.append(method)
        return call(method, *args, **options)

    monkeypatch.setattr(shared.transport, "call", counted)
    views.append(pickle.loads(pickle.dumps(study.trials[0])))
    for view in views:
        assert [(r.step, r.values) for r in view.reports] == [
            (s, {"loss": s / 2, "acc": 1.0}) for s in range(3)
        ]
        before = len(calls)
        assert view.reports and len(calls) == before  # they are kept
    calls.clear()
    assert len(list(study.iter_trials(reports=True))[0].reports) == 3
    assert calls == ["ListTrials"]
    assert all(view == views[1] for view in study.trials)


def test_feasibility_and_columns(shared: bkb.Client, name: str) -> None:
    study = shared.create_study(name, X, minimize="loss", constraints=["lat <= 10"], seed=1)
    outcomes: list[dict[str, Any]] = [
        {"value": {"loss": 1.0, "lat": 5.0}},
        {"value": {"loss": 0.5, "lat": [10.0, 12.0]}},
        {"value": {"loss": 2.0}},
        {"state": "infeasible", "message": "too large"},
        {"state": "failed", "message": "boom", "reason": "crash"},
        {"state": "pruned"},
    ]
    for outcome in outcomes:
        study.ask(worker="w1").tell(cost=1.5, **outcome)
    study.ask(worker="w2")
    assert [t.feasible for t in study.trials] == [True, False, False, False, None, None, None]
    s = study.status
    assert (s.completed, s.infeasible, s.failed, s.pruned, s.running) == (3, 3, 1, 1, 1)
    assert study.trials[4].message == "boom" and study.trials[6].worker == "w2"
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = study.to_dataframe()
    assert list(frame["feasible"])[:4] == [True, False, False, False]
    assert list(frame["metrics_lat"])[:2] == [5.0, 11.0] and math.isnan(frame["metrics_lat"][2])
    assert list(frame["message"])[3:5] == ["too large", "boom"]
    assert list(frame["worker"])[-2:] == ["w1", "w2"] and frame["reason"][4] == "crash"
    assert frame["cost"][0] == 1.5 and frame["duration"][0] >= 0
    free = shared.create_study(name + "f", X, minimize="loss")
    assert free.ask().tell(1.0).feasible is True


def test_short_repr(shared: bkb.Client, name: str) -> None:
    study = shared.create_study(name, X, minimize="loss")
    study.enqueue({"x": 0.5})
    trial = study.ask()
    assert repr(trial) == f"Trial({name!r}, 0, {{'x': 0.5}})"
    assert repr(trial.tell(0.25)) == "TrialView(0, completed, loss=0.25, {'x': 0.5})"
    study.enqueue({"x": 1})
    view = study.ask().tell(state="failed", message="m" * 900)
    assert repr(view) == "TrialView(1, failed (crash), {'x': 1.0})"
    assert repr(study.status) == f"StudyStatus({name!r}, active, 1 completed, 1 failed)"


def test_trials_that_fit_are_copied(
    shared: bkb.Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    space: dict[str, bkb.Parameter] = {
        "x": bkb.Float(0, 9),
        "c": bkb.Categorical(["a", "b"]),
        "y": bkb.Float(0, 1, when={"c": "b"}),
    }
    study = shared.create_study(name, space, minimize="loss", attributes={"k": 1})
    for params in ({"x": 1, "c": "a"}, {"x": 5, "c": "a"}, {"x": 2, "c": "b", "y": 0.5}):
        study.enqueue(params)
        trial = study.ask()
        trial.report(9.0, 0)
        trial.tell(1.0)
    study.enqueue({"x": 0.5, "c": "a"})
    study.ask().tell(state="failed", message="m")
    study.ask()
    study.enqueue({"x": 0.25, "c": "a"})

    def copied(space: Any, suffix: str, **options: Any) -> list[Any]:
        caplog.clear()
        new = shared.create_study(name + suffix, space, **{"minimize": "loss", **options})
        numbers = new.add_trials(study.trials)
        assert numbers == list(range(len(numbers))) and len(new.trials) == len(numbers)
        assert all(t.origin == "added" for t in new.trials)
        return [t.params["x"] for t in new.trials]

    assert copied(space, "a") == [1, 5, 2, 0.5]
    assert "4 trials are added and 2 are not" in caplog.text
    assert "trial 4, because trial 4 is running" in caplog.text
    assert copied({**space, "x": bkb.Float(0, 3)}, "b") == [1, 2, 0.5]
    assert "trial 1, because parameter 'x' is 5.0, which is outside of Float(low=0" in caplog.text
    assert copied({"x": space["x"], "c": space["c"]}, "c") == [1, 5, 0.5]
    assert "parameter 'y' is not in the space, which has x, c" in caplog.text
    assert copied({**space, "z": bkb.Int(0, 1)}, "d") == []
    assert "it has the parameters " in caplog.text
    assert copied(space, "e", minimize="other") == [0.5]
    assert "it has no other, which is an objective" in caplog.text
    limited = bkb.Space(space, constraints=["x <= 4"])
    assert copied(limited, "f") == [1, 2, 0.5]
    assert "4 trials" not in caplog.text and "trial 1, because" in caplog.text
    with pytest.raises(bkb.InvalidRequest):  # what you write yourself must fit
        study.add_trials([{"params": {"x": 10, "c": "a"}, "value": 1}])
