"""What users give by mistake, and what objectives end with."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any

import numpy as np
import pytest

import bkb
import bkb.aio

SPACE = {"x": bkb.Float(0, 1)}


def study(client: bkb.Client, name: str, **options: Any) -> bkb.Study:
    return client.create_study(name, SPACE, **{"minimize": "loss", **options})


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("\x1b[31mboom\x1b[0m", "RuntimeError: boom"),
        ("a\x00b\x07\tc\nd", "RuntimeError: ab\tc\nd"),
        ("half \ud800 pair", "RuntimeError: half ? pair"),
        ("left \u202eright", "RuntimeError: left right"),
        ("\x1b]0;title\x07hi \x9b31mred", "RuntimeError: hi red"),
        ("ä" * 4000, "RuntimeError: " + "ä" * 1993),
    ],
)
def test_messages_of_exceptions(shared: bkb.Client, name: str, said: str, kept: str) -> None:
    s = study(shared, name)

    def objective(trial: bkb.Trial) -> float:
        if trial.number % 2:
            raise RuntimeError(said)
        return float(trial["x"])

    s.optimize(objective, n_trials=4, catch=RuntimeError)
    assert [t.state for t in s.trials] == ["completed", "failed"] * 2
    assert s.trial(1).message == kept
    with pytest.raises(RuntimeError), s.ask():
        raise RuntimeError(said)
    assert s.trial(4).state == "failed"


class Mute(RuntimeError):
    def __str__(self) -> str:
        raise ValueError


def test_an_exception_without_a_text(shared: bkb.Client, name: str) -> None:
    def objective(trial: bkb.Trial) -> float:
        raise Mute

    s = study(shared, name)
    s.optimize(objective, n_trials=2, catch=Mute)
    with pytest.raises(Mute), s.ask():
        raise Mute
    assert [(t.state, t.message) for t in s.trials] == [("failed", "Mute")] * 3


def test_long_messages(shared: bkb.Client, name: str) -> None:
    trial = study(shared, name).ask()
    assert trial.tell(state="failed", message="\x1b[1m" + "é" * 4000).message == "é" * 2000


@pytest.mark.parametrize("value", [-math.inf, {"los": 1}, {}, 10**400, None, "a"])
def test_values_that_are_refused(shared: bkb.Client, name: str, value: Any) -> None:
    s = study(shared, name)

    def objective(trial: bkb.Trial) -> Any:
        return value if trial.number in (1, 4, 6) else trial["x"]

    async def later(trial: Any) -> Any:
        return objective(trial)

    s.optimize(objective, n_trials=4, catch=bkb.InvalidRequest)
    with pytest.raises(bkb.InvalidRequest):
        s.optimize(objective, n_trials=4)
    asyncio.run(bkb.aio.Study(s).optimize_async(later, 1))
    with pytest.raises(bkb.InvalidRequest):
        asyncio.run(bkb.aio.Study(s).optimize_async(later, 2))
    states = ["failed" if n in (1, 4, 6) else "completed" for n in range(7)]
    assert [t.state for t in s.trials] == states
    assert all(t.message for t in s.trials if t.state == "failed")


@pytest.mark.parametrize("bad", [2.5, -1, "3", math.nan, True, math.inf])
def test_numbers_of_trials(shared: bkb.Client, name: str, bad: Any) -> None:
    s = study(shared, name)
    calls: list[Any] = [
        lambda: s.optimize(lambda t: t["x"], n_trials=bad),
        lambda: s.optimize(lambda t: t["x"], n_trials=1, n_jobs=0 if bad == -1 else bad),
        lambda: asyncio.run(bkb.aio.Study(s).optimize_async(lambda t: t["x"], bad)),
        lambda: s.ask(bad),
        lambda: bkb.Client(s._service).create_study(
            name + "x", SPACE, minimize="loss", max_trials=bad
        ),
    ]
    for call in calls:
        with pytest.raises(bkb.InvalidRequest, match="give an integer of"):
            call()
    assert s.status.running == 0 and not s.trials


def test_scalars_of_numpy(shared: bkb.Client, name: str) -> None:
    s = study(shared, name, max_trials=np.int64(9), seed=np.uint64(2**64 - 1))
    s.optimize(lambda t: np.float32(t["x"]), n_trials=np.int64(2), n_jobs=np.int32(2))
    assert len(s.ask(np.int64(2))) == 2
    with pytest.raises(bkb.InvalidRequest, match="count is too large"):
        s.ask(10**5000)
    with pytest.raises(bkb.InvalidRequest, match="seed is 18446744073709551616"):
        study(shared, name + "x", seed=2**64)


def test_arrays_as_numbers(shared: bkb.Client, name: str) -> None:
    """What has no dimensions, as a tensor of Torch, is a number everywhere."""
    s = study(shared, name)
    half: Any = np.array(0.5)
    values: list[Any] = [half, np.array([0.5]), [half], {"loss": half, "acc": [half, half]}]

    def objective(trial: bkb.Trial) -> Any:
        trial.report(half, np.array(1))
        trial.set_attributes({"n": np.int64(3), "half": half, "shape": np.array([2, 3])})
        trial.suggest_float("x", np.array(0.0), np.array(1.0))
        return values[trial.number]

    s.enqueue({"x": half})
    s.optimize(objective, n_trials=len(values))
    assert [t.value for t in s.trials] == [0.5] * len(values)
    assert s.trial(0).attributes == {"n": 3, "half": 0.5, "shape": [2, 3]}
    s.ask().tell(half, std_err=half, cost=half)
    assert s.trial(len(values)).cost == 0.5
    with pytest.raises(bkb.InvalidRequest, match="an attribute holds <object"):
        s.set_attributes({"n": object()})


def test_steps_are_integers(shared: bkb.Client, name: str) -> None:
    trial = study(shared, name).ask()
    trial.report(1, np.int64(1))
    trial.report(1, 2.0)  # type: ignore[arg-type]
    with pytest.raises(bkb.InvalidRequest, match=r"step is 2\.5, give an integer"):
        trial.report(1, 2.5)  # type: ignore[arg-type]
    assert [r.step for r in trial.study.trial(0).reports] == [1, 2]


def test_one_trial_to_add(shared: bkb.Client, name: str) -> None:
    with pytest.raises(bkb.InvalidRequest, match="give a list of trials"):
        study(shared, name).add_trials({"params": {"x": 0.5}, "value": 1})  # type: ignore[dict-item]


def test_ends_that_are_not_finite(shared: bkb.Client, name: str) -> None:
    for low, high, end in ((math.nan, 1, "low"), (0, math.inf, "high")):
        with pytest.raises(
            bkb.InvalidRequest, match=f"bkb.Float has {end} (nan|inf), it is a finite"
        ):
            shared.create_study(name, {"lr": bkb.Float(low, high)}, minimize="loss")


def test_names(shared: bkb.Client) -> None:
    with pytest.raises(bkb.InvalidRequest, match='^study name "MyStudy": must have'):
        study(shared, "MyStudy")


def test_warnings_name_the_parameter(
    shared: bkb.Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    space = {"c": bkb.Categorical(["z"]), "d": bkb.Categorical([1, 2, 4])}
    with caplog.at_level(logging.WARNING, "bkb"):
        shared.create_study(name, space, minimize="loss")
    assert [m.split(",")[0] for m in caplog.messages] == [
        f"parameter 'c' of study {name}",
        f"parameter 'd' of study {name}",
    ]


def test_settings_that_differ(
    shared: bkb.Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "bkb"):
        same: dict[str, Any] = {
            "max_trials": 3,
            "max_cost": 0.1,
            "seed": 1,
            "lease": 1.5,
            "timeout": 90,
            "pruner": ("median", {"min_trials": 7}),
            "constraints": ["latency <= 3"],
        }
        study(shared, name, **same)
        study(shared, name, **same, exist_ok=True)
        study(shared, name, exist_ok=True)
        assert caplog.messages == []
        others = {"max_trials": 2, "lease": 60, "pruner": "asha", "constraints": ["latency <= 1"]}
        study(shared, name, **{**same, **others}, exist_ok=True)
        study(shared, name, pruner=("median", {"min_trials": 8}), exist_ok=True)
    first, second = caplog.messages
    assert "max_trials 3, not 2" in first and "lease 1.5, not 60" in first
    assert "pruner median, not asha" in first and '"max": 3' in first and '"max": 1' in first
    assert "seed" not in first and "timeout" not in first and "max_cost" not in first
    assert '"min_trials": 7' in second and '"min_trials": 8' in second


def test_best_of_trials_that_break_a_constraint(
    shared: bkb.Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    s = study(shared, name, constraints=["latency <= 0.5"])
    with caplog.at_level(logging.WARNING, "bkb"):
        s.ask().tell({"loss": 1, "latency": 2})
        assert s.best_value == 1
        assert "latency max 0.5, as all completed trials do" in caplog.text
        caplog.clear()
        s.ask().tell({"loss": 2, "latency": 0.1})
        assert s.best_value == 2
        assert caplog.messages == []


def test_watch_until_finished(shared: bkb.Client, name: str) -> None:
    s = study(shared, name, max_trials=2)
    s.optimize(lambda t: t["x"])
    events = list(s.watch(until_finished=True))
    assert [e.event for e in events].count("told") == 2
    assert list(s.watch(events[-1].position, until_finished=True)) == []


def test_one_number_for_two_objectives(shared: bkb.Client, name: str) -> None:
    """What the advice names is accepted: a dict, and a sequence only in a known order."""
    mixed = shared.create_study(name, SPACE, minimize="loss", maximize="acc")
    with pytest.raises(bkb.InvalidRequest, match=r"give a dict .*\{'loss': …, 'acc': …\}$"):
        mixed.ask().tell(1.0)
    mixed.ask().tell({"loss": 1.0, "acc": 2.0})
    known = shared.create_study(name + "-2", SPACE, minimize=["loss", "time"])
    with pytest.raises(bkb.InvalidRequest, match="give a sequence or a dict"):
        known.ask().tell(1.0)
    known.ask().tell([1.0, 2.0])
