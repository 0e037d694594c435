from __future__ import annotations

import math
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import optuna
import optuna.visualization as draw
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

import bkb

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE: dict[str, bkb.Parameter] = {
    "lr": bkb.Float(1e-5, 0.1, log=True),
    "rate": bkb.Float(0, 1, step=0.25),
    "width": bkb.Int(32, 256, step=32),
    "opt": bkb.Categorical(["adam", "sgd"]),
    "momentum": bkb.Float(0.1, 0.99, scale="reverse-log", when={"opt": "sgd"}),
    "size": bkb.Ordinal([1, 2, 4]),
    "classes": bkb.Constant(10),
}


@pytest.fixture
def study(shared: bkb.Client, name: str) -> bkb.Study:
    """A study with a trial in each state."""
    constraints = {"constraints": {"latency": {"max": 10, "min": 1}}}
    study = shared.create_study(
        name, SPACE, minimize="loss", proposer=("bkb", constraints), attributes={"note": "n"}
    )
    t = study.ask()
    t.report({"loss": 3, "accuracy": 0.5}, 1)
    t.report(2, 5)
    t.tell({"loss": [1.0, 2.0], "latency": 12}, cost=4, attributes={"a": "b"})
    study.ask().tell(math.inf, std_err=0.25)
    t = study.ask()
    t.report(5, 0)
    t.tell(state="pruned")
    study.ask().tell(state="failed", reason="crash", message="boom")
    study.ask().tell(state="infeasible")
    study.ask().tell(math.nan)
    study.ask()
    queued = {**study.trial(0).params, "lr": 0.01}
    study.enqueue(queued)
    return study


def test_trials(study: bkb.Study) -> None:
    views, copy = study.trials, study.to_optuna()
    assert copy.study_name == study.name
    assert copy.user_attrs == {"note": "n"}
    assert copy.metric_names == ["loss"]
    assert [d.name for d in copy.directions] == ["MINIMIZE"]
    trials = copy.trials
    assert [t.state for t in trials] == [
        TrialState.COMPLETE,
        TrialState.COMPLETE,
        TrialState.PRUNED,
        TrialState.FAIL,
        TrialState.FAIL,
        TrialState.FAIL,
        TrialState.RUNNING,
        TrialState.WAITING,
    ]
    assert [t.values for t in trials[:4]] == [[1.5], [math.inf], [5.0], None]
    for t, view in zip(trials[:7], views, strict=False):
        assert (t.number, t.params) == (view.number, view.params)
        for name, value in t.params.items():
            assert t.distributions[name]._contains(t.distributions[name].to_internal_repr(value))
    assert [t.intermediate_values for t in trials[:3]] == [{1: 3.0, 5: 2.0}, {}, {0: 5.0}]
    assert trials[0].user_attrs == {
        "a": "b",
        "latency": 12.0,
        "loss": [1.0, 2.0],
        "bkb:origin": "suggested",
        "bkb:cost": 4.0,
    }
    assert trials[1].user_attrs["bkb:std_err"] == {"loss": 0.25}
    if hasattr(trials[0], "constraints"):
        assert trials[0].constraints == {"latency max": 2.0, "latency min": -11.0}
    else:  # Optuna 4
        assert trials[0].system_attrs["constraints"] == [2.0, -11.0]
    assert trials[3].user_attrs["bkb:message"] == "boom"
    assert trials[4].user_attrs["bkb:state"] == "infeasible"
    assert trials[5].user_attrs["bkb:reason"] == "nan"
    assert trials[7].system_attrs["fixed_params"]["lr"] == 0.01
    start, end = trials[0].datetime_start, trials[0].datetime_complete
    assert start is not None and end is not None and start.tzinfo is None
    assert abs(datetime.now() - start) < timedelta(minutes=1) and start <= end


def test_distributions(study: bkb.Study) -> None:
    found = {n: d for t in study.to_optuna().trials for n, d in t.distributions.items()}
    found.setdefault("momentum", FloatDistribution(0.1, 0.99))
    assert found == {
        "lr": FloatDistribution(1e-5, 0.1, log=True),
        "rate": FloatDistribution(0, 1, step=0.25),
        "width": IntDistribution(32, 256, step=32),
        "opt": CategoricalDistribution(["adam", "sgd"]),
        "momentum": FloatDistribution(0.1, 0.99),
        "size": CategoricalDistribution([1, 2, 4]),
        "classes": CategoricalDistribution([10]),
    }


def test_the_copy_continues(study: bkb.Study) -> None:
    copy = study.to_optuna()
    trial = copy.ask()
    assert trial.number == 7  # the queued one
    assert trial.suggest_float("lr", 1e-5, 0.1, log=True) == 0.01
    copy.tell(trial, 0.5)
    assert copy.best_trial.number == 7


def test_into_a_storage(study: bkb.Study, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/optuna.db"
    study.to_optuna(storage, study_name="other")
    there = optuna.load_study(study_name="other", storage=storage)
    assert [t.params for t in there.trials] == [t.params for t in study.to_optuna().trials]
    with pytest.raises(optuna.exceptions.DuplicatedStudyError):
        study.to_optuna(storage, study_name="other")


def test_several_objectives(shared: bkb.Client, name: str) -> None:
    study = shared.create_study(name, {"x": bkb.Float(0, 1)}, minimize="a", maximize="b")
    study.optimize(lambda t: {"a": t["x"], "b": t["x"] ** 2}, n_trials=5)
    study.ask().tell(state="pruned")
    copy = study.to_optuna()
    assert [d.name for d in copy.directions] == ["MINIMIZE", "MAXIMIZE"]
    assert [t.number for t in copy.best_trials] == [t.number for t in study.pareto_front]
    assert copy.trials[5].values is None


def test_plots(shared: bkb.Client, name: str) -> None:
    pytest.importorskip("plotly", reason="Plotly is not installed")
    space = {k: v for k, v in SPACE.items() if k in ("lr", "width", "opt", "momentum")}
    study = shared.create_study(name, space, minimize="loss", pruner="median")

    def objective(trial: bkb.Trial) -> float:
        for step in range(3):
            trial.report(trial["lr"] + step, step)
            if trial.should_prune():
                raise bkb.TrialPruned
        return float(trial["lr"] * trial["width"])

    study.optimize(objective, n_trials=20)
    copy = study.to_optuna()
    plots: list[Any] = [
        draw.plot_optimization_history,
        draw.plot_slice,
        draw.plot_contour,
        draw.plot_parallel_coordinate,
        draw.plot_rank,
        draw.plot_edf,
        draw.plot_timeline,
        draw.plot_intermediate_values,
        draw.plot_param_importances,
    ]
    for plot in plots:
        assert plot(copy).data, plot.__name__
