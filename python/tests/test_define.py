"""Studies whose objective defines the search space."""

from __future__ import annotations

import logging
import math
import pickle
import subprocess
import sys
import textwrap
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import bkb
from bkb import _define, _generation
from bkb._define import Series
from bkb._presence import Condition, Presence
from bkb._service import Service
from bkb._views import StudyRecord


def make(client: bkb.Client, name: str, **options: Any) -> bkb.Study:
    study = client.create_study(name, minimize="loss", **options)
    assert isinstance(study._source, Series)
    return study


def trials_of(
    client: bkb.Client, name: str, states: list[Any] | None = None
) -> list[bkb.TrialView]:
    """Return the trials of a study on the server."""
    record = StudyRecord.of(client._service.get(name))
    return list(client._service.trials(record, states or []))


def static(trial: bkb.Trial) -> float:
    x, y = (trial.suggest_float(n, -5, 5) for n in "xy")
    return (x - 1) ** 2 + (y + 2) ** 2 + trial.suggest_int("n", 1, 9, step=2)


def conditional(trial: bkb.Trial) -> float:
    model = trial.suggest_categorical("model", ["svm", "forest", "knn"])
    if model == "svm":
        return abs(math.log10(trial.suggest_float("C", 1e-4, 1e4, log=True)) - 1)
    if model == "forest":
        return 1 + trial.suggest_int("depth", 1, 32) / 32
    return 1 + trial.suggest_int("k", 1, 9)


def test_static_space_has_one_generation(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, max_trials=60)
    study.optimize(static)
    assert study.generations == [name, f"{name}.g1"]
    trials = study.trials
    assert [t.number for t in trials] == list(range(60))
    assert [t.origin for t in trials] == ["added"] + ["suggested"] * 59
    assert trials[0].params == {"x": 0.0, "y": 0.0, "n": 5}  # the centre
    assert study.best_value < 1.01
    s = study.status
    assert (s.name, s.state, s.completed, s.max_trials) == (name, "finished", 60, 60)
    with pytest.raises(bkb.StudyFinished):
        study.ask()


def test_conditions_are_inferred(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, max_trials=60, seed=1)
    study.optimize(conditional)
    assert len(study.generations) <= 5
    assert {n: p.when for n, p in study.space.items()} == {
        "model": None,
        "C": {"model": "svm"},
        "depth": {"model": "forest"},
        "k": {"model": "knn"},
    }
    trials = study.trials
    assert len(trials) == 60 and {t.state for t in trials} == {"completed"}
    for t in trials:  # what ran is what the model knows
        parameter = {"svm": "C", "forest": "depth", "knn": "k"}[str(t.params["model"])]
        assert set(t.params) == {"model", parameter}
    assert study.best_params["model"] == "svm" and study.best_value < 0.05


def test_integer_parent(shared: bkb.Client, name: str) -> None:
    def objective(trial: bkb.Trial) -> float:
        layers = trial.suggest_int("layers", 1, 3)
        return sum(trial.suggest_float(f"width{i}", 0, 1) for i in range(layers))

    study = make(shared, name)
    study.optimize(objective, n_trials=30)
    assert study.space["width2"].when == {"layers": 3}
    assert study.space["width1"].when == {"layers": [2, 3]}
    assert study.space["width0"].when is None
    assert len(study.trials) == 30


def test_a_float_is_no_parent(
    shared: bkb.Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    def objective(trial: bkb.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        return abs(x - 0.4) + (trial.suggest_float("y", 0, 1) if x < 0.6 else 0)

    study = make(shared, name)
    with caplog.at_level(logging.WARNING, "bkb"):
        study.optimize(objective, n_trials=20)
    assert [m for m in caplog.messages if "'y'" in m and "drawn at random" in m].__len__() == 1
    assert list(study.space) == ["x"]
    trials = study.trials
    assert len(trials) == 20 and {t.state for t in trials} == {"completed"}
    with_y = [t.number for t in trials if "y" in t.attributes.get(_generation.PARAMS, "")]
    assert with_y == [t.number for t in trials if float(t.params["x"]) < 0.6]


def test_ranges_widen_until_the_limit(
    shared: bkb.Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    study = make(shared, name)
    with caplog.at_level(logging.WARNING, "bkb"):
        study.optimize(lambda t: t.suggest_float("x", 0, 1 + t.number), n_trials=20)
    assert len(study.generations) == 1 + _define.MOST_GENERATIONS
    assert study.space["x"] == bkb.Float(0.0, float(_define.MOST_GENERATIONS))
    assert len([m for m in caplog.messages if "gets no more" in m]) == 1
    assert study.status.completed == 20


def test_narrower_range_is_added_as_it_ran(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    ran: list[float] = []

    def objective(trial: bkb.Trial) -> float:
        x = trial.suggest_float("x", 0, 1 if len(ran) < 3 else 0.01)
        ran.append(x)
        trial.report(x, 0)
        return x

    study.optimize(objective, n_trials=8)
    trials = list(study.iter_trials(states=["completed"], reports=True))
    assert sorted(float(t.params["x"]) for t in trials) == sorted(ran)
    assert all(t.value == t.params["x"] == t.reports[0].values["loss"] for t in trials)
    assert [t.number for t in study.trials] == list(range(8)) and study.status.failed > 0
    replaced = trials_of(shared, study.generations[-1], ["failed"])
    assert replaced and {t.reason for t in replaced} == {"cancelled"}
    # The next generation does not take them along.
    study.optimize(lambda t: t.suggest_float("x", 0, 2), n_trials=1)
    assert Counter(t.state for t in study.trials) == {"completed": 9}


@pytest.mark.parametrize(
    "second, said",
    [
        (lambda t: t.suggest_int("x", 0, 1), r"parameter 'x' is Int\(low=0, high=1\)"),
        (lambda t: t.suggest_float("x", 0.1, 1, log=True), "log=True"),
        (lambda t: t.suggest_float("x", 0, 1, step=0.5), "step=0.5"),
        (lambda t: t.suggest_categorical("c", ["a", "c"]), "'a', 'c'"),
        (lambda t: t.suggest_categorical("c", [None]), "'c' is Categorical"),
    ],
)
def test_another_kind_is_refused(shared: bkb.Client, name: str, second: Any, said: str) -> None:
    def first(trial: bkb.Trial) -> float:
        trial.suggest_categorical("c", ["a", "b"])
        return trial.suggest_float("x", 0, 1)

    study = make(shared, name)
    study.optimize(first, n_trials=2)
    with pytest.raises(bkb.InvalidRequest, match=said):
        study.optimize(second, n_trials=1)
    last = study.trials[-1]
    assert (last.state, last.reason) == ("failed", "crash")
    study.optimize(first, n_trials=2)
    assert study.status.completed == 4


BAD_DOMAINS: list[tuple[Any, str]] = [
    (lambda t: t.suggest_categorical("bad", [None, None]), "'bad' has choice None.*leave out one"),
    (
        lambda t: t.suggest_categorical("bad", [(1, 2), (1, 2)]),
        r"choice \(1, 2\).*written the same",
    ),
    (lambda t: t.suggest_categorical("bad", []), r"choices \[\], there is one choice or more"),
    (lambda t: t.suggest_categorical("bad", ["a", "a"]), "'a' is written the same, leave out one"),
    (lambda t: t.suggest_categorical("bad", [1, "1"]), "written the same"),
    (lambda t: t.suggest_categorical("bad", [True, "true"]), "written the same"),
    (lambda t: t.suggest_categorical("bad", [1.0, "1.0"]), "written the same"),
    (lambda t: t.suggest_categorical("bad", [0.5, math.nan]), "a number is finite"),
    (lambda t: t.suggest_categorical("bad", ["x" * 5000]), "at most 4096 bytes"),
    (lambda t: t.suggest_categorical("bad", [str(i) for i in range(10_001)]), "at most 10000"),
    (lambda t: t.suggest_float("bad", 2, 1), "low 2.0, low is at most high, which is 1.0, swap"),
    (lambda t: t.suggest_int("bad", 2, 1), "low 2, low is at most high"),
    (lambda t: t.suggest_float("bad", 0, 1, log=True), "low 0.0, a range with log=True is above 0"),
    (lambda t: t.suggest_int("bad", 0, 9, log=True), "low 0, a range with log=True"),
    (lambda t: t.suggest_float("bad", 0, math.inf), "high inf, it is a finite number"),
    (lambda t: t.suggest_float("bad", None, 1), "low of parameter 'bad' is None"),
    (lambda t: t.suggest_float("bad", 0, 1, step=0), "step 0, a step is above 0"),
    (lambda t: t.suggest_int("bad", 0, 9, step=-2), "step -2, a step is above 0"),
    (lambda t: t.suggest_float("bad", 1, 2, step=0.5, log=True), "log=True has no step"),
    (lambda t: t.suggest_int("bad", 0.5, 9), "low 0.5, an int has whole numbers, round it"),
    (lambda t: t.suggest_int("bad", 0, 2**63), "an int has 64 bits"),
    (lambda t: t.suggest_float("", 0, 1), "name '', a name has characters"),
    (lambda t: t.suggest_float(" bad", 0, 1), "no space at its ends, rename it"),
    (lambda t: t.suggest_float("b\nad", 0, 1), "all printable"),
    (lambda t: t.suggest_float("b" * 129, 0, 1), "at most 128 bytes, shorten it"),
    (lambda t: t.suggest_float(3, 0, 1), "a name is a text"),
    (lambda t: t.suggest_float("X", 0, 1), "'X' differs from parameter 'x' only in case, .*rename"),
]


@pytest.mark.parametrize("bad, said", BAD_DOMAINS)
def test_bad_domain_is_refused_where_it_is_asked_for(
    shared: bkb.Client, name: str, bad: Any, said: str
) -> None:
    study = make(shared, name)
    for begun in (False, True):  # before and after the first generation
        with study.ask() as trial:
            x = trial.suggest_float("x", 0, 1)
            with pytest.raises(bkb.InvalidRequest, match=said):
                bad(trial)
            assert trial.params == {"x": x}
            trial.tell(x)
        study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=1)
        assert list(study.space) == ["x"], begun
    assert study.status.completed == 4 and len(study.generations) == 2


def test_choices_of_numpy(shared: bkb.Client, name: str) -> None:
    np = pytest.importorskip("numpy", reason="NumPy is not installed")
    study = make(shared, name)

    def objective(trial: bkb.Trial) -> float:
        c = trial.suggest_categorical("c", np.array([16, 32, 64]))
        assert type(c) is int
        return (
            c
            + trial.suggest_float("x", np.float32(0), np.float64(1))
            + trial.suggest_int("n", np.int64(1), 3)
        )

    study.optimize(objective, n_trials=4)
    assert study.space["c"] == bkb.Categorical([16, 32, 64])
    assert study.status.completed == 4


def test_seed_decides_the_draws(shared: bkb.Client, name: str) -> None:
    def drawn(suffix: str, seed: int) -> list[Any]:
        study = make(shared, name + suffix, seed=seed)
        trials = [study.ask() for _ in range(3)]
        return [t.suggest_float("x", 0, 1) for t in trials]

    first = drawn("a", 7)
    assert drawn("b", 7) == first and drawn("c", 8) != first
    assert drawn("d", 0) != drawn("e", 0)


def test_numbers_are_those_of_the_series(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    late = [study.ask() for _ in range(4)]
    for trial in late[1:]:
        static_xy(trial)
    static_xy(late[0])
    assert late[0].tell(1.0).number == 0
    second = [study.ask() for _ in range(2)]
    assert [t.number for t in late + second] == [0, 1, 2, 3, 4, 5]
    wide_xy(second[0])
    assert second[0].tell(2.0).number == 4
    third = study.ask()
    assert third.number == 6
    for trial in late[1:]:
        assert trial.tell(10.0 + trial.number).number == trial.number
    assert study.add_trials([{"params": {"x": 1.0, "y": 1.0}, "value": 7.0}]) == [7]
    static_xy(third)
    assert third.tell(6.0).number == 6
    wide_xy(second[1])
    assert study.tell(second[1], 5.0).number == 5
    assert len(study.generations) == 3
    for other in (study, shared.load_study(name)):
        assert [(t.number, t.value) for t in other.trials] == [
            *enumerate([1.0, 11.0, 12.0, 13.0, 2.0, 5.0, 6.0, 7.0])
        ]
        assert [other.trial(n).number for n in range(8)] == list(range(8))
        assert other.best_trial.number == 0
        with pytest.raises(bkb.NotFound, match="has no trial 8, its numbers are below 8"):
            other.trial(8)
    after = study.ask()
    assert after.number == 8
    assert shared.load_study(name).tell(8, 9.0).number == 8
    seen = {e.trial.number for e in zip_until(study.watch(), 8) if e.trial is not None}
    assert seen == set(range(9))


def zip_until(events: Any, last: int) -> Any:
    for e in events:
        yield e
        if e.event == "told" and e.trial is not None and e.trial.number == last:
            return


def test_numbers_are_unique_with_threads(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, max_trials=40)
    begun: list[int] = []
    told: list[int] = []

    def objective(trial: bkb.Trial) -> float:
        begun.append(trial.number)
        time.sleep(0.01)
        return conditional(trial)

    study.optimize(objective, n_jobs=4, callbacks=[lambda _, view: told.append(view.number)])
    assert len(study.generations) > 2
    assert sorted(begun) == sorted(told) == [t.number for t in study.trials] == list(range(40))


def test_views_before_the_first_generation(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    assert not study.space and study.trials == []
    with pytest.raises(bkb.InvalidRequest, match="which has no parameters yet"):
        study.add_trials([{"params": {"x": 1}, "value": 1}])
    with study.ask() as trial:
        x = trial.suggest_float("x", 0, 1)
        view = trial.tell(state="infeasible")
    assert view.params == study.trials[0].params == {"x": x}
    again = shared.load_study(name)
    assert again.trials[0].params == {"x": x} and not again.space
    running = study.ask()
    assert study.trial(1).params == {} and running.params == {}
    study.optimize(lambda t: 1.0, n_trials=1)
    assert study.best_params == {}


def test_added_and_queued_trials_go_along_once(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    study.optimize(static_xy, n_trials=1)
    study.add_trials([{"params": {"x": 0.125, "y": 0.125}, "value": 0.25}])
    study.enqueue({"x": 0.5, "y": 0.5})
    study.enqueue({"x": 0.75, "y": 0.75})
    study.enqueue({"x": 0.25, "y": 0.25})
    for high in (2, 3, 4):  # each starts a generation
        study.optimize(
            lambda t, high=high: t.suggest_float("x", 0, high) + t.suggest_float("y", 0, 1),  # type: ignore[misc]
            1,
        )
    assert len(study.generations) == 5
    assert study.status.queued == 0
    assert [t.params["x"] for t in study.trials[1:]] == [0.125, 0.5, 0.75, 0.25]
    assert [t.number for t in study.trials] == list(range(5))


def test_steps_must_agree(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    study.optimize(lambda t: t.suggest_int("x", 0, 9, step=3), n_trials=1)
    study.optimize(lambda t: t.suggest_int("x", -3, 12, step=3), n_trials=1)
    assert study.space["x"] == bkb.Int(-3, 12, step=3)
    with pytest.raises(bkb.InvalidRequest, match="only the range"):
        study.optimize(lambda t: t.suggest_int("x", 1, 10, step=3), n_trials=1)


def test_same_name_twice_in_a_trial(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    with study.ask() as trial:
        x = trial.suggest_float("x", 0, 1)
        assert trial.suggest_float("x", 0, 1) == x == trial["x"]
        with pytest.raises(bkb.InvalidRequest, match="'x'"):
            trial.suggest_int("x", 0, 1)
        trial.tell(x)
    assert study.best_value == x


def test_failed_and_pruned_trials(shared: bkb.Client, name: str) -> None:
    def objective(trial: bkb.Trial) -> float:
        n = len(seen)
        seen.append(trial.suggest_float("x", 0, 1))
        if n in (0, 5):
            raise ValueError("boom")
        trial.report(seen[-1], 0)
        if n in (1, 6):
            raise bkb.TrialPruned
        trial.suggest_float("late", 0, 1)
        return math.nan if n == 7 else seen[-1]

    seen: list[float] = []
    study = make(shared, name)
    study.optimize(objective, n_trials=10, catch=ValueError)
    assert set(study.space) == {"x", "late"}
    states = Counter(t.state for t in study.trials)
    assert states == {"completed": 5, "failed": 2, "pruned": 1}
    # Trials before the first space stay in the first study.
    assert [t.state for t in trials_of(shared, name)] == ["failed", "pruned", "completed"]


def wide_xy(trial: bkb.Trial) -> float:
    return trial.suggest_float("x", 0, 9) + trial.suggest_float("y", 0, 1)


def static_xy(trial: bkb.Trial) -> float:
    return trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)


def test_late_trials_of_an_old_generation(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, max_trials=6, pruner="median")
    study.optimize(static_xy, n_trials=1)
    late = [study.ask() for _ in range(2)]
    static_xy(late[0])
    study.optimize(wide_xy, n_trials=2)
    assert len(study.generations) == 3
    late[0].report(0.25, 3)
    late[0].renew()
    assert not late[0].should_prune()  # that the study went on is no reason
    view = late[0].tell(0.5)
    assert (view.params, view.value) == (late[0].params, 0.5)
    wide_xy(late[1])
    view = late[1].tell(0.25, cost=2.0, attributes={"a": "b"})
    assert view.params == late[1].params and (view.cost, view.attributes["a"]) == (2.0, "b")
    assert study.trial(view.number).value == 0.25
    study.optimize(wide_xy)
    assert study.status.completed == 6
    assert len({t.attributes.get(_generation.ID, t.number) for t in study.trials}) == 6


def test_late_trial_is_taken_over_with_its_reports(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    study.optimize(static_xy, n_trials=1)
    late = study.ask()
    static_xy(late)
    study.optimize(wide_xy, n_trials=1)
    late.report(7.0, 3)
    view = late.tell(0.5)
    there = study.trial(view.number)
    assert (there.params, there.value, there.origin) == (late.params, 0.5, "added")
    assert [(r.step, r.values) for r in there.reports] == [(3, {"loss": 7.0})]
    assert study.status.completed == 3


def test_threads(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, max_trials=40)
    study.optimize(conditional, n_jobs=4)
    trials = study.trials
    assert len(trials) == 40 and {t.state for t in trials} == {"completed"}
    assert len({tuple(t.params.items()) for t in trials}) > 30
    assert study.status.state == "finished"


@pytest.mark.parametrize("max_trials", [1, 3, 4])
def test_no_trials_left_after_the_discovery(shared: bkb.Client, name: str, max_trials: int) -> None:
    study = make(shared, name, max_trials=max_trials)
    study.optimize(static_xy, n_jobs=3)
    assert study.status.completed == max_trials
    assert study.status.state == "finished"
    with pytest.raises(bkb.StudyFinished):
        study.ask()


def test_late_trial_after_the_last(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, max_trials=4)
    study.optimize(static_xy, n_trials=1)
    late = [study.ask() for _ in range(2)]
    for trial in late:
        static_xy(trial)
    study.optimize(wide_xy)
    assert study.status.state == "finished" and study.status.completed == 2
    assert [trial.tell(0.5).value for trial in late] == [0.5, 0.5]
    s = study.status
    assert (s.state, s.finish_reason, s.completed) == ("finished", "max_trials", 4)
    assert len({t.attributes.get(_generation.ID, t.number) for t in study.trials}) == 4
    with pytest.raises(bkb.StudyFinished):
        study.ask()


def test_late_trial_of_a_study_that_you_finished(
    shared: bkb.Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    study = make(shared, name)
    study.optimize(static_xy, n_trials=1)
    trial = study.ask()
    static_xy(trial)
    study.optimize(wide_xy, n_trials=1)
    study.finish()
    with caplog.at_level(logging.WARNING, "bkb"):
        assert trial.tell(0.5).value == 0.5
    assert "ended after study" in caplog.text
    with pytest.raises(bkb.StudyFinished):
        study.ask()


WORKER = """
import math, sys, time, bkb
study = bkb.create_study("s", minimize="loss", max_trials=60, db=sys.argv[1], exist_ok=True)

def objective(trial):
    model = trial.suggest_categorical("model", ["svm", "forest", "knn"])
    time.sleep(0.01)
    if model == "svm":
        return abs(math.log10(trial.suggest_float("C", 1e-4, 1e4, log=True)) - 1)
    if model == "forest":
        return 1 + trial.suggest_int("depth", 1, 32) / 32
    return 1 + trial.suggest_int("k", 1, 9)

study.optimize(objective)
"""


def test_processes_discover_at_once(own: bkb.Client) -> None:
    server = own.server
    assert server is not None
    command = [sys.executable, "-c", textwrap.dedent(WORKER), server.db]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for p in processes:
        _, err = p.communicate(timeout=120)
        assert p.returncode == 0, err
    study = own.load_study("s")
    trials = study.trials
    assert len(trials) == 60 and {t.state for t in trials} == {"completed"}
    parents = {"C": "svm", "depth": "forest", "k": "knn"}
    models = {t.params["model"] for t in trials}
    assert {n: p.when for n, p in study.space.items() if n != "model"} == {
        n: {"model": m} for n, m in parents.items() if m in models
    }
    assert all(t.params.keys() - {"model"} <= parents.keys() for t in trials)
    origins = [t.attributes[_generation.ID] for t in trials if _generation.ID in t.attributes]
    assert len(set(origins)) == len(origins)


def test_executor(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, max_trials=12)
    with ProcessPoolExecutor(2) as executor:
        study.optimize(conditional, n_jobs=2, executor=executor)
    trials = study.trials
    assert len(trials) == 12 and all("model" in t.params for t in trials)


def test_take_over_after_a_crash(
    shared: bkb.Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    study = make(shared, name)
    study.optimize(static_xy, n_trials=5)
    trial = study.ask()
    wide_xy(trial)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Service, "add", crash)
        trial.tell(1.0)
    again = shared.load_study(name)
    assert len(again.generations) == 3 and again.status.completed == 6
    assert again.ask().study.generations[-1] == f"{name}.g2"


def test_crash_before_the_successor(
    shared: bkb.Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    study = make(shared, name)
    study.optimize(static_xy, n_trials=2)
    trial = study.ask()
    wide_xy(trial)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Series, "_spec", crash)
        trial.tell(1.0)
    monkeypatch.setattr(_define, "PATIENCE", 0.2)
    again = shared.load_study(name)
    again.optimize(wide_xy, n_trials=2)
    assert again.status.completed == 5


@pytest.mark.parametrize("before", [0, 2])  # trials, so that the first or second study is left
def test_stall_before_the_successor(
    shared: bkb.Client, name: str, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """A process stalls while it makes a generation, and another one goes on meanwhile."""
    study = make(shared, name)
    study.optimize(static_xy, n_trials=before)
    trial = study.ask()
    wide_xy(trial)
    monkeypatch.setattr(_define, "PATIENCE", 0.1)
    spec = Series._spec
    meanwhile: list[bkb.Trial] = []

    def stall(self: Series, space: Any) -> Any:
        made = spec(self, space)
        if self is study._source and not meanwhile:
            other = shared.load_study(name)
            meanwhile.extend([other.ask(), other.ask()])
            static_xy(meanwhile[0])
            meanwhile[0].tell(2.0)
        return made

    monkeypatch.setattr(Series, "_spec", stall)
    trial.tell(1.0)
    static_xy(meanwhile[1])
    meanwhile[1].tell(3.0)
    study.optimize(wide_xy, n_trials=2)
    ended = study.trials
    assert [t.number for t in ended] == list(range(before + 5))
    assert {t.value for t in ended} >= {1.0, 2.0, 3.0}
    for t in (trial, *meanwhile):
        assert study.trial(t.number).params == t.params
    assert "define-by-run" not in study.space


def test_pause_goes_along(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    study.optimize(static_xy, n_trials=1)
    trial = study.ask()
    study.pause()
    wide_xy(trial)
    trial.tell(1.0)
    assert len(study.generations) == 3
    with pytest.raises(bkb.StudyPaused):
        study.ask()
    study.resume()
    study.optimize(wide_xy, n_trials=1)
    assert study.status.completed == 3


def test_take_over_is_repeated_without_doubles(
    shared: bkb.Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make(shared, name)
    study.optimize(static_xy, n_trials=5)
    with monkeypatch.context() as patch:
        patch.setattr(Service, "set_attributes", lambda *_: None)  # so it seems incomplete
        study.optimize(lambda t: t.suggest_float("x", 0, 2) + t.suggest_float("y", 0, 1), 1)
    assert study.status.completed == 6
    for _ in range(2):
        assert shared.load_study(name).status.completed == 6


def test_enqueue_and_queue_go_along(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    study.optimize(static_xy, n_trials=1)
    study.enqueue({"x": 0.5, "y": 0.25})
    study.enqueue({"x": 0.75, "y": 0.25})

    def wider(trial: bkb.Trial) -> float:
        return trial.suggest_float("x", 0, 2) + trial.suggest_float("y", 0, 1)

    study.optimize(wider, n_trials=2)
    assert len(study.generations) == 3
    assert sorted(float(t.params["x"]) for t in study.trials)[:3] == [0.5, 0.5, 0.75]


def test_load_exist_ok_delete_pickle(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, attributes={"note": "n"})
    study.optimize(static_xy, n_trials=3)
    for other in (
        shared.load_study(name),
        shared.create_study(name, minimize="loss", exist_ok=True),
        pickle.loads(pickle.dumps(study)),
    ):
        assert isinstance(other._source, Series)
        assert other.status.completed == 3 and set(other.space) == {"x", "y"}
        assert other.status.attributes["note"] == "n"
    with pytest.raises(bkb.StudyExists, match="no declared search space"):
        shared.create_study(name, {"x": bkb.Float(0, 1)}, minimize="loss", exist_ok=True)
    with pytest.raises(bkb.StudyExists):
        make(shared, name)
    shared.delete_study(name)
    assert not [s.name for s in shared.studies() if s.name.startswith(name)]


def test_declared_space_is_not_continued_without_one(shared: bkb.Client, name: str) -> None:
    shared.create_study(name, {"x": bkb.Float(0, 1)}, minimize="loss")
    with pytest.raises(bkb.StudyExists, match="with a declared search space"):
        make(shared, name, exist_ok=True)


def test_name_of_a_generation_is_taken(shared: bkb.Client, name: str) -> None:
    shared.create_study(f"{name}.g1", {"x": bkb.Float(0, 1)}, minimize="loss")
    with pytest.raises(bkb.StudyExists, match="is not a generation"):
        make(shared, name)


def test_no_parameters(shared: bkb.Client, name: str) -> None:
    study = make(shared, name)
    study.optimize(lambda t: 1.0, n_trials=3)
    assert study.generations == [name] and study.status.completed == 3


def test_limits_of_cost_and_time(shared: bkb.Client, name: str) -> None:
    study = make(shared, name, max_cost=5, timeout=3600)
    for _ in range(9):
        try:
            t = study.ask()
        except bkb.StudyFinished:
            break
        t.suggest_float("x", 0, 1)
        t.tell(1.0, cost=2)
    s = study.status
    assert (s.completed, s.finish_reason) == (3, "cost")
    assert 3500 < float(str(study.spec()["timeout"]).rstrip("s")) <= 3600


# Declared spaces.


def test_suggest_in_a_declared_space(shared: bkb.Client, name: str) -> None:
    space: dict[str, bkb.Parameter] = {
        "x": bkb.Float(0, 1),
        "n": bkb.Int(1, 9, step=2),
        "c": bkb.Categorical(["a", "b"]),
        "y": bkb.Float(0.1, 1, log=True, when={"c": "b"}),
    }
    study = shared.create_study(name, space, minimize="loss")
    study.enqueue({"x": 0.5, "n": 3, "c": "a"})
    trial = study.ask()
    assert trial.suggest_float("x", 0, 1) == 0.5
    assert trial.suggest_int("n", 1, 9, step=2) == 3
    assert trial.suggest_categorical("c", ("a", "b")) == "a"
    for call, said in (
        (("x", 0, 2), "parameter 'x' is Float"),
        (("z", 0, 2), "has no such parameter"),
        (("y", 0.1, 1), "not active in trial 0"),
    ):
        with pytest.raises(bkb.InvalidRequest, match=said):
            trial.suggest_float(*call, log=call[0] == "y")


# Presence.


def test_presence() -> None:
    p = Presence()
    p.add({"m": "c0", "a": None})
    assert p.conditions() == {"m": None, "a": None}
    p.add({"m": "c1", "b": 3})
    p.add({"m": "c2", "b": 4, "d": None})
    p.add({"m": "c1", "b": 3})
    assert p.conditions() == {
        "m": None,
        "a": Condition("m", frozenset({"c0"})),
        "b": Condition("m", frozenset({"c1", "c2"})),
        "d": Condition("m", frozenset({"c2"})),
    }
    p.add({"m": "c2", "b": 3})  # without d, so that b decides
    assert p.conditions()["d"] == Condition("b", frozenset({4}))
    assert "b" not in p.conditions(["b"]) and "d" not in p.conditions(["b"])
    p.add({"m": "c0"})
    assert "a" not in p.conditions()  # nothing decides


def test_presence_of_a_parent_that_came_later() -> None:
    p = Presence()
    p.add({"x": None})
    p.add({"q": "c0", "x": None})
    p.add({"q": "c1"})
    assert "x" not in p.conditions()  # it was there without q


def test_presence_agrees_with_a_slow_one() -> None:
    import random

    source = random.Random(5)
    for _ in range(200):
        p, trials = Presence(), []
        for _ in range(12):
            t: dict[str, Any] = {"m": f"c{source.randrange(3)}"}
            for name in "abc":
                if source.random() < 0.7 or t["m"] == "c1":
                    t[name] = source.randrange(2) if name != "c" else None
            p.add(t)
            trials.append(t)
        for child, c in p.conditions().items():
            if c is None:
                assert all(child in t for t in trials)
            else:
                assert all((child in t) == (t.get(c.parent) in c.values) for t in trials)
        names = {n for t in trials for n in t}
        for child in names - p.conditions().keys():
            for parent in {"m", "a", "b"} & p.conditions().keys() - {child}:
                has = {t[parent] for t in trials if parent in t and child in t}
                lacks = {t[parent] for t in trials if parent in t and child not in t}
                alone = any(child in t and parent not in t for t in trials)
                assert alone or has & lacks or not lacks or not has


def test_module_function(tmp_path: Path) -> None:
    study = bkb.create_study("s", minimize="loss", db=tmp_path / "x.db")
    study.optimize(static, n_trials=2)
    assert set(bkb.load_study("s", db=tmp_path / "x.db").space) == {"x", "y", "n"}
    server = study._service.server
    assert server is not None
    server.stop()


def test_mixed_numbers_and_grids(own: bkb.Client) -> None:
    study = own.create_study("mixed", minimize="loss", max_trials=12)
    choices = [0.1, 1, 10]

    def objective(trial: bkb.Trial) -> float:
        c = trial.suggest_categorical("c", choices)
        x = trial.suggest_float("x", -10.2, 10.2, step=0.1)
        assert c in choices and type(c) is type(choices[choices.index(c)])
        assert abs(round(10 * x) - 10 * x) < 1e-9
        return abs(c - 1) + abs(x)

    study.optimize(objective)
    assert study.status.completed == 12
    assert all({"c", "x"} <= v.params.keys() for v in study.iter_trials())
