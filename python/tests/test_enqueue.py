"""Configurations in the queue that are not whole, or come before the search space."""

from __future__ import annotations

from typing import Any

import pytest

import bkb

SPACE: dict[str, bkb.Parameter] = {
    "x": bkb.Float(0, 1),
    "n": bkb.Int(1, 9, step=2),
    "c": bkb.Categorical(["a", "b", None]),
    "y": bkb.Float(1, 2, when={"c": ["b", None]}),
    "z": bkb.Int(0, 3, when={"c": None}),
}


def check(params: Any) -> None:
    """Check that a configuration is one of SPACE."""
    assert 0 <= params["x"] <= 1 and params["n"] in range(1, 10, 2)
    assert set(params) == {"x", "n", "c"} | {"a": set(), "b": {"y"}, None: {"y", "z"}}[params["c"]]


PARTS: list[dict[str, Any]] = [
    {},
    {"x": 0.25},
    {"n": 3.0, "c": "a"},
    {"c": None},
    {"y": 1.25},  # which needs c
    {"z": 2},
    {"x": 1, "n": 9, "c": "b", "y": 2},
]


@pytest.mark.parametrize("known", [False, True])  # whether there is a best trial
@pytest.mark.parametrize("given", PARTS, ids=str)
def test_partial(shared: bkb.Client, name: str, given: dict[str, Any], known: bool) -> None:
    study = shared.create_study(name, SPACE, minimize="loss", seed=1)
    best = {"x": 0.75, "n": 7, "c": "b", "y": 1.75}
    if known:
        study.add_trials([{"params": best, "value": 0.0}])
    view = study.enqueue(given, attributes={"by": "me"})
    check(view.params)
    assert given.items() <= view.params.items() and view.attributes == {"by": "me"}
    assert dict(study.ask().params) == dict(view.params)
    if known:  # the rest is that of the best trial
        others = view.params.keys() & best.keys() - given.keys() - (
            {"c"} if "z" in given else set()
        )
        assert {n: view.params[n] for n in others} == {n: best[n] for n in others}
    twin = shared.create_study(name + "t", SPACE, minimize="loss", seed=1)
    if not known:
        assert twin.enqueue(given).params == view.params  # the seed decides


@pytest.mark.parametrize(
    "params, said",
    [
        ({"x": 2}, r"parameter 'x' is 2.0, which is outside of Float\(low=0.0, high=1.0\), give"),
        ({"n": 2}, "parameter 'n' is 2, which is outside of Int"),
        ({"n": 2.5}, "parameter 'n' is 2.5, which is outside"),
        ({"c": "d"}, "parameter 'c' is 'd', which is outside of Categorical"),
        ({"c": (1,)}, "parameter 'c' is"),
        ({"c": "a", "y": 1.5}, "parameter 'y' is not active, leave it out, or give .*'c'"),
        ({"q": 1}, "parameter 'q' is not in the space, which has x, n, c, y, z"),
        ({"x": "0.5"}, "parameter 'x' is '0.5', which is outside"),
        ({"x": True}, "parameter 'x' is True, which is outside"),
    ],
)
def test_outside_values_are_refused_by_name(
    shared: bkb.Client, name: str, params: dict[str, Any], said: str
) -> None:
    study = shared.create_study(name, SPACE, minimize="loss")
    with pytest.raises(bkb.InvalidRequest, match=said):
        study.enqueue(params)
    assert study.status.queued == 0


def test_constraints_of_the_space_are_kept(shared: bkb.Client, name: str) -> None:
    space = {k: bkb.Float(0, 1) for k in "abc"}
    study = shared.create_study(
        name, bkb.Space(space, constraints=["a + b <= 0.6", "b + c >= 1"]), minimize="loss", seed=3
    )
    for i in range(10):
        p = study.enqueue({"a": i / 50}).params
        assert p["a"] == i / 50 and p["a"] + p["b"] <= 0.6 and p["b"] + p["c"] >= 1
    with pytest.raises(bkb.InvalidRequest, match="constraint"):
        study.enqueue({"a": 0.5, "b": 0.5})


def objective(trial: bkb.Trial) -> float:
    c = trial.suggest_categorical("c", ["a", None, (1, 2)])
    x = trial.suggest_float("x", 0, 1)
    return x + (trial.suggest_int("n", 1, 9) if c is None else 0)


FIRST: list[dict[str, Any]] = [
    {"x": 0.125},
    {"c": (1, 2), "x": 1},
    {"c": None, "n": 4.0},
    {"n": 2, "c": None, "x": 0.5, "unused": 7},
    {},
]


@pytest.mark.parametrize("again", [False, True])  # whether the script starts anew
def test_before_the_first_trial(shared: bkb.Client, name: str, again: bool) -> None:
    study = shared.create_study(name, minimize="loss", seed=1)
    for i, params in enumerate(FIRST):
        view = study.enqueue(params, attributes={"i": i})
        assert view.number == i and view.attributes["i"] == i
    assert study.status.queued == len(FIRST)
    assert study.trials[0].params == {"x": 0.125}
    if again:
        study = shared.create_study(name, minimize="loss", exist_ok=True)
    study.optimize(objective, n_trials=len(FIRST) + 3)
    trials = study.trials
    assert [t.number for t in trials] == list(range(len(FIRST) + 3))
    for t, params in zip(trials, FIRST, strict=False):
        assert {k: v for k, v in params.items() if k != "unused"}.items() <= t.params.items()
        assert t.attributes["i"] == t.number and t.state == "completed"
    assert study.status.queued == 0


def test_outside_values_of_the_first_trials_are_refused(shared: bkb.Client, name: str) -> None:
    study = shared.create_study(name, minimize="loss")
    study.enqueue({"x": 7})
    with pytest.raises(bkb.InvalidRequest, match="parameter 'x' is 7.0, which is outside of Float"):
        study.optimize(objective, n_trials=1)
    study.optimize(objective, n_trials=3)
    study.enqueue({"x": 0.5})  # partial, too
    study.optimize(objective, n_trials=1)
    assert study.trials[-1].params["x"] == 0.5 and study.status.completed == 4


def bowl(trial: bkb.Trial) -> float:
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    return (x - 0.7) ** 2 + (y - x) ** 2


@pytest.mark.parametrize("declared", [True, False])
def test_fixed_parameters(shared: bkb.Client, name: str, declared: bool) -> None:
    space = {"x": bkb.Float(0, 1), "y": bkb.Float(0, 1)} if declared else None
    study = shared.create_study(name, space, minimize="loss", seed=4)
    study.optimize(bowl, n_trials=5, fixed={"x": 0.25})
    assert [t.params["x"] for t in study.trials] == [0.25] * 5
    assert len({t.params["y"] for t in study.trials}) == 5
    study.optimize(bowl, n_trials=25)
    study.optimize(bowl, n_trials=4, fixed={"x": 0.25})
    last = study.trials[-4:]
    assert [t.params["x"] for t in last] == [0.25] * 4
    # The model knows that y = x is best there, although the best trial has another y. A random
    # y is as near with a probability of 0.2 each, so that all of four fail with 0.4.
    assert min(abs(t.params["y"] - 0.25) for t in last) < 0.1
    three = study.ask(3, fixed={"y": 0.5})
    assert [t.suggest_float("y", 0, 1) for t in three] == [0.5] * 3
    assert len({t.suggest_float("x", 0, 1) for t in three}) == 3
    with pytest.raises(bkb.InvalidRequest, match="parameter 'x' is 7.0, which is outside"):
        study.ask(fixed={"x": 7})
