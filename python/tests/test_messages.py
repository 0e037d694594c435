"""Errors say what to write in Python."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import bkb

X = {"x": bkb.Float(0, 1)}


def make(client: bkb.Client, space: Any) -> bkb.Study:
    return client.create_study("never", space, minimize="v")


WRONG: list[tuple[Callable[[bkb.Client], Any], str]] = [
    (lambda c: c.create_study("there", X, minimize="v"), "continue it with exist_ok=True"),
    (lambda c: make(c, {"x": 1}), "parameter 'x' is 1, give a bkb.Float, bkb.Int, bkb.Cat"),
    (lambda c: make(c, {"x": (0, 1)}), r"parameter 'x' is \(0, 1\), give a bkb.Float"),
    (lambda c: make(c, {"x": [1, 2], **X, "y": 2}), "parameter 'y' is 2, give a bkb.Float"),
    (lambda c: make(c, {"y": "a", **X}), "parameter 'y' is 'a', give a bkb.Float"),
    (lambda c: bkb.Space({"x": 3}), "give a bkb.Float"),  # type: ignore[dict-item]
    (lambda c: make(c, {**X, "X": bkb.Float(0, 1)}), "^parameter .X.: name = .X.: differs"),
    (lambda c: make(c, {"x": bkb.Float(0, 1, when={"y": 1})}), "^parameter .x.: when = .y."),
    (lambda c: make(c, bkb.Space(X, constraints=["x <= y"])), "^constraints.0. = .x <= y.: th"),
    (lambda c: make(c, "nofile.yaml"), "space is 'nofile.yaml', which is no file in /"),
    (lambda c: bkb.Float(2, 1), "^bkb.Float has low 2, low is at most high, which is 1, swap"),
    (lambda c: bkb.Float(0, 1, scale="lg"), "bkb.Float has scale 'lg', it is one of linear"),  # type: ignore[arg-type]
    (lambda c: bkb.Float(0, 1, when=3), "bkb.Float has when 3, a condition is a dict"),  # type: ignore[arg-type]
    (lambda c: bkb.Categorical(["a"], when="b"), "bkb.Categorical has when 'b'"),  # type: ignore[arg-type]
    (lambda c: bkb.Int(0, 1.5), "bkb.Int has high 1.5, an int has whole numbers"),
    (lambda c: c.load_study("there").iter_trials(states=["complete"]), "some of queued, running"),  # type: ignore[list-item]
    (lambda c: c.load_study("there").iter_trials(states="failed"), "states is 'failed', give"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("call, said", WRONG)
def test_messages(shared: bkb.Client, call: Callable[[bkb.Client], Any], said: str) -> None:
    shared.create_study("there", X, minimize="v", exist_ok=True)
    with pytest.raises(bkb.Error, match=said) as e:
        call(shared)
    for ours in ("line 1", "Request in JSON", "--", "ErrorInfo"):
        assert ours not in str(e.value)


def test_classes_are_named_as_users_name_them() -> None:
    for n in bkb.__all__:
        kind = getattr(bkb, n)
        if isinstance(kind, type) and issubclass(kind, Exception):
            shown = traceback.format_exception_only(kind("m"))
            assert shown == [f"bkb.{n}: m\n"]
            assert type(pickle.loads(pickle.dumps(kind("m")))) is kind


def test_nothing_is_made_where_a_file_is_missing(tmp_path: Any) -> None:
    for call in (bkb.load_study, bkb.delete_study):
        with pytest.raises(bkb.NotFound, match=r"none\.db does not exist.*bkb\.create_study"):
            call("s", db=tmp_path / "none.db")
    assert not list(tmp_path.iterdir())
