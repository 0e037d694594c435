"""Choices that JSON has not."""

from __future__ import annotations

import enum
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

import bkb


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Layer:
    def __init__(self, width: int) -> None:
        self.width = width


def relu(x: float) -> float:
    return max(x, 0.0)


LAYERS = [Layer(1), Layer(2)]

LISTS: list[tuple[Sequence[Any], list[Any]]] = [
    ([None, "a"], ["None", "a"]),
    ([None, "None", "None 2"], ["None 3", "None", "None 2"]),
    ([(1, 2), (3, 4), 5], ["(1, 2)", "(3, 4)", 5]),
    ([[64, 64], [128]], ["[64, 64]", "[128]"]),
    ([Color.RED, Color.BLUE], ["<Color.RED: 1>", "<Color.BLUE: 2>"]),
    ([relu, Layer, None], ["relu", "Layer", "None"]),
    (LAYERS, ["Layer", "Layer 2"]),
    ([frozenset("ba"), {}], ["{'a', 'b'}", "{}"]),
    ([True, None, 1.5], [True, "None", 1.5]),
]


@pytest.mark.parametrize("choices, names", LISTS, ids=str)
def test_names_on_the_server(choices: Sequence[Any], names: list[Any]) -> None:
    assert bkb.Categorical(choices).names == bkb.Ordinal(choices).names == names


@pytest.mark.parametrize("choices, names", LISTS, ids=str)
@pytest.mark.parametrize("declared", [True, False])
def test_kept_as_given(
    shared: bkb.Client, name: str, choices: Sequence[Any], names: list[Any], declared: bool
) -> None:
    space = {"c": bkb.Categorical(choices), "x": bkb.Float(0, 1)} if declared else None
    study = shared.create_study(name, space, minimize="loss", seed=1)

    def objective(trial: bkb.Trial) -> float:
        c = trial.suggest_categorical("c", choices)
        assert any(c is given for given in choices) and trial.params["c"] is c
        return list(choices).index(c) + trial.suggest_float("x", 0, 1) / 2

    study.optimize(objective, n_trials=12)
    for t in study.trials:
        assert any(t.params["c"] is given for given in choices)
        assert int(t.value or 0) == list(choices).index(t.params["c"])
    assert study.best_params["c"] is choices[0]
    for given in choices:
        assert study.enqueue({"c": given, "x": 0.5}).params["c"] is given
        trial = study.ask()
        assert trial.suggest_categorical("c", choices) is given
        assert trial.suggest_float("x", 0, 1) == 0.5
        assert trial.tell(float("inf")).params["c"] is given
    # Another process knows the names only, and an objective gets the choices.
    other = shared.load_study(name)
    assert other.trials[0].params["c"] in names
    trial = other.ask()
    trial.suggest_float("x", 0, 1)
    assert any(trial.suggest_categorical("c", choices) is given for given in choices)
    trial.tell(1.0)
    copy = shared.create_study(name + "copy", space or {**study.space}, minimize="loss")
    assert len(copy.add_trials(t for t in study.iter_trials(states=["completed"]))) >= 12
    assert [t.params for t in copy.trials] == [
        t.params for t in study.iter_trials(states=["completed"])
    ]
    if choices is LAYERS or "None 3" in names:  # names that do not tell which is which
        return
    strangers = {**shared.load_study(name).space}
    by_name = shared.create_study(name + "by", strangers, minimize="loss")
    by_name.add_trials(study.iter_trials(states=["completed"]))
    assert by_name.trials[0].params["c"] == names[list(choices).index(study.trials[0].params["c"])]


def test_objects_without_a_name_of_their_own(shared: bkb.Client, name: str) -> None:
    study = shared.create_study(name, {"c": bkb.Categorical(LAYERS)}, minimize="loss")
    other = shared.load_study(name)
    with pytest.raises(bkb.InvalidRequest, match="parameter 'c' is <.*Layer object"):
        other.enqueue({"c": LAYERS[1]})
    assert study.enqueue({"c": LAYERS[1]}).params["c"] is LAYERS[1]
    assert other.trials[0].params["c"] == "Layer 2"


def test_conditions(shared: bkb.Client, name: str) -> None:
    space: dict[str, bkb.Parameter] = {
        "c": bkb.Categorical([None, (1, 2), "b"]),
        "x": bkb.Float(0, 1, when={"c": None}),
        "y": bkb.Float(0, 1, when={"c": (1, 2)}),
        "z": bkb.Float(0, 1, when={"c": [(1, 2), "b"]}),
    }
    study = shared.create_study(name, space, minimize="loss", seed=1)
    study.optimize(lambda t: len(t.params), n_trials=12)
    for t in study.trials:
        active: dict[Any, set[str]] = {None: {"x"}, (1, 2): {"y", "z"}, "b": {"z"}}
        assert set(t.params) == {"c"} | active[t.params["c"]]
    again = shared.create_study(name, space, minimize="loss", exist_ok=True)
    assert again.trials[0].params == study.trials[0].params


def test_two_that_are_the_same_are_refused(shared: bkb.Client, name: str) -> None:
    study = shared.create_study(name, minimize="loss")
    for choices in ([None, None], [(1, 2), (1, 2)], ["a", "a"], [1, "1"]):
        with study.ask() as trial, pytest.raises(bkb.InvalidRequest, match="written the same"):
            trial.suggest_categorical("c", choices)


def in_process(trial: bkb.Trial) -> float:
    c = trial.suggest_categorical("c", [None, (1, 2)])
    return 0.0 if c is None else float(c[1])


def test_executor(shared: bkb.Client, name: str) -> None:
    study = shared.create_study(name, minimize="loss", max_trials=8, seed=2)
    with ProcessPoolExecutor(2) as executor:
        study.optimize(in_process, n_jobs=2, executor=executor)
    assert {t.params["c"]: t.value for t in study.trials} == {None: 0.0, (1, 2): 2.0}


def test_names_do_not_depend_on_the_process() -> None:
    code = """
import bkb, json
class Layer: pass
def relu(): pass
choices = [None, {"a", "b", "c"}, Layer(), Layer(), relu, (1, "x"), frozenset({(1,), (2,)})]
print(json.dumps(bkb.Categorical(choices).names))
"""
    runs = {
        subprocess.check_output(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": s},
        )
        for s in "123"
    }
    assert len(runs) == 1 and json.loads(runs.pop())[1] == "{'a', 'b', 'c'}"
