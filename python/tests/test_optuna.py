"""The sampler under Optuna's own cases for samplers, and what they leave out."""

from __future__ import annotations

import copy
import json
import logging
import math
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)
from optuna.trial import FrozenTrial, TrialState

import bkb
from bkb._axis import NEAR, Axis
from bkb._mirror import ASKED
from bkb._scratch import scratch_client
from bkb.optuna import BKBSampler

optuna.logging.set_verbosity(optuna.logging.WARNING)


class TestOptunaCases(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return BKBSampler


def sphere(trial: optuna.Trial) -> float:
    return sum((trial.suggest_float(f"x{i}", -5, 5) - 1) ** 2 for i in range(3))


def copies(client: bkb.Client) -> list[bkb.Study]:
    return [client.load_study(s.name) for s in client.studies()]


def the_copy(client: bkb.Client) -> bkb.Study:
    (study,) = copies(client)
    return study


def test_finds_the_minimum() -> None:
    study = optuna.create_study(sampler=BKBSampler(seed=1))
    study.optimize(sphere, n_trials=40)
    chance = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    chance.optimize(sphere, n_trials=40)
    assert study.best_value < 0.01 < chance.best_value


def test_seed() -> None:
    def params(seed: int) -> list[dict[str, Any]]:
        study = optuna.create_study(sampler=BKBSampler(seed=seed))
        study.optimize(sphere, n_trials=12)
        return [t.params for t in study.trials]

    first = params(7)
    assert params(7) == first
    assert params(8) != first


def test_reseed_and_pickle() -> None:
    study = optuna.create_study(sampler=BKBSampler(seed=3))
    study.optimize(sphere, n_trials=3)
    same, other = pickle.loads(pickle.dumps(study)), copy.deepcopy(study)
    other.sampler.reseed_rng()
    for s in (same, other, study):
        s.optimize(sphere, n_trials=3)
    assert len(same.trials) == len(other.trials) == 6
    assert same.trials[3].params != other.trials[3].params


def test_every_outcome_is_told(own: bkb.Client) -> None:
    study = optuna.create_study(direction="maximize", sampler=BKBSampler(seed=1, client=own))

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        n = trial.number
        if n == 3:
            raise ValueError("too bad")
        if n == 4:
            return math.nan
        for step in range(5):
            trial.report(x + step, step)
            if n == 5 and step == 2:
                raise optuna.TrialPruned
        return math.inf if n == 6 else x

    study.optimize(objective, n_trials=9, catch=ValueError)
    mirror = the_copy(own)
    assert mirror.directions == ("maximize",)
    views = {v.params["p0"]: v for v in mirror.iter_trials(reports=True)}
    axis = Axis("p0", FloatDistribution(0, 1))  # an end has another value in Optuna
    ran = [views[axis.encode(t.params["x"])] for t in study.trials]
    assert mirror.status.running == 0
    for t, view in zip(study.trials, ran, strict=True):
        if t.number in (3, 4):
            assert (view.state, view.reason) == ("failed", "crash")
        elif t.number == 5:
            assert view.state == "pruned"
            assert [(r.step, r.values) for r in view.reports] == [
                (s, {"value": t.params["x"] + s}) for s in range(3)
            ]
        elif t.number == 6:  # the best so far
            assert view.value == max(u.value for u in study.trials[:3] if u.value is not None)
        else:
            assert view.value == t.value and len(view.reports) == 5
    assert [v.origin for v in ran] == ["added"] + ["suggested"] * 8


def test_infinity_at_first(own: bkb.Client) -> None:
    study = optuna.create_study(sampler=BKBSampler(seed=1, client=own))
    study.add_trial(
        optuna.create_trial(
            params={"x": 0.9},
            distributions={"x": optuna.distributions.FloatDistribution(0, 1)},
            value=math.inf,
        )
    )
    study.optimize(lambda t: 100 + (t.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=20)
    assert study.best_value < 100.01
    states = [v.state for v in the_copy(own).iter_trials()]
    assert states.count("infeasible") == 1 and states.count("completed") == 20


def test_trials_of_others_are_added(own: bkb.Client) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(sphere, n_trials=10)
    study.sampler = BKBSampler(client=own)
    study.optimize(sphere, n_trials=5)
    study.sampler = optuna.samplers.RandomSampler(seed=2)
    study.optimize(sphere, n_trials=5)
    study.sampler = BKBSampler(client=own)
    study.optimize(sphere, n_trials=1)
    assert sorted((c.status.added, c.status.completed) for c in copies(own)) == [(10, 15), (20, 21)]


def test_enqueued_trial_out_of_range_teaches_nothing(own: bkb.Client) -> None:
    study = optuna.create_study(sampler=BKBSampler(client=own))
    study.optimize(sphere, n_trials=2)
    study.enqueue_trial({"x0": 99.0})
    study.enqueue_trial({"x0": 2.0})
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(sphere, n_trials=4)
    mirror = the_copy(own)
    states = [(t.state, t.reason) for t in mirror.trials]
    assert states.count(("failed", "cancelled")) == 2  # both ran otherwise than asked
    assert mirror.status.completed == 5
    assert 2.0 in [t.params["p0"] for t in mirror.trials if t.state == "completed"]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("fixed", [{"x1": 0.5}, {"x0": 1.0, "x1": 1.0, "x2": 1.0}])
def test_partial_fixed_sampler(own: bkb.Client, fixed: dict[str, float]) -> None:
    study = optuna.create_study(sampler=BKBSampler(client=own))
    study.optimize(sphere, n_trials=5)
    study.sampler = optuna.samplers.PartialFixedSampler(fixed, study.sampler)
    study.optimize(sphere, n_trials=5)
    assert all(t.params[n] == v for t in study.trials[5:] for n, v in fixed.items())
    assert all(c.status.running == 0 for c in copies(own))


def chain(trial: optuna.Trial) -> float:
    """Ask for parameters of which each hangs on the one before, sometimes."""
    depth = 0
    while trial.suggest_categorical(f"n{depth:02}", ["go", "end"]) == "go" and depth < 20:
        depth += 1
    return abs(depth - 3) + trial.suggest_float("x", 0, 1)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("fixed", [{"n00": "go"}, {"n01": "go"}, {"n02": "go"}])
def test_partial_fixed_sampler_of_a_parent(own: bkb.Client, fixed: dict[str, str]) -> None:
    study = optuna.create_study(sampler=BKBSampler(client=own, seed=1))
    study.enqueue_trial({f"n{i:02}": "go" if i < 4 else "end" for i in range(5)})
    study.optimize(chain, n_trials=12)

    def suggested() -> int:
        ended = [v for c in copies(own) for v in c.iter_trials(states=["completed"])]
        return sum(v.origin == "suggested" for v in ended)

    before, seen, opened = suggested(), {n for t in study.trials for n in t.params}, 0
    study.sampler = optuna.samplers.PartialFixedSampler(fixed, study.sampler)
    study.optimize(chain, n_trials=6)
    for t in study.trials[12:]:
        assert all(t.params[n] == v for n, v in fixed.items() if n in t.params)
        opened += not seen.issuperset(t.params)  # such a trial is added to a larger copy
        seen.update(t.params)
    # The model still proposes the others.
    assert opened < 3 and before + 6 - opened <= suggested() <= before + 6
    assert all(c.status.running == 0 for c in copies(own))


def test_chain_deeper_than_a_space_may_be(own: bkb.Client, warnings_of_sampler: list[str]) -> None:
    study = optuna.create_study(sampler=BKBSampler(client=own, seed=1))
    for end in (20, *range(20)):
        study.enqueue_trial({f"n{i:02}": "go" if i < end else "end" for i in range(20)})
    study.optimize(chain, n_trials=30)
    study.enqueue_trial({f"n{i:02}": "go" for i in range(17)})  # n17 is left to the sampler
    study.optimize(chain, n_trials=1)
    space = max(copies(own), key=lambda c: c.status.completed).space
    assert len(space) == 18  # n00 to n16, and x
    told = [m for m in warnings_of_sampler if "a chain of too many does" in m]
    assert told and len(told) == len(set(told))
    assert len(study.trials) == 31


def test_more_choices_than_a_space_may_have(
    own: bkb.Client, warnings_of_sampler: list[str]
) -> None:
    choices = list(range(20_000))
    study = optuna.create_study(sampler=BKBSampler(client=own, seed=1))
    study.optimize(
        lambda t: t.suggest_categorical("c", choices) / 20_000 + t.suggest_float("x", 0, 1), 5
    )
    assert len(study.trials) == 5 and list(the_copy(own).space) == ["p0"]
    (said,) = warnings_of_sampler
    assert "`c`" in said and "too many choices" in said


def test_space_that_the_server_refuses(own: bkb.Client, warnings_of_sampler: list[str]) -> None:
    study = optuna.create_study(
        sampler=BKBSampler(client=own, seed=1, warn_independent_sampling=False)
    )
    study.optimize(lambda t: sum(t.suggest_float(f"x{i}", 0, 1) for i in range(1001)), 4)
    assert len(study.trials) == 4 and not copies(own)
    (said,) = warnings_of_sampler
    assert "cannot propose the 1001 parameters" in said and "`RandomSampler` samples them" in said


def test_interrupt_is_told_as_cancelled(own: bkb.Client, tmp_path: Path) -> None:
    def interrupted(trial: optuna.Trial) -> float:
        sphere(trial)
        raise KeyboardInterrupt

    study = optuna.create_study(
        storage=f"sqlite:///{tmp_path}/optuna.db", sampler=BKBSampler(client=own, seed=1)
    )
    study.optimize(sphere, n_trials=3)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(interrupted, n_trials=1)
    (view,) = the_copy(own).iter_trials(states=["failed"])
    assert view.reason == "cancelled"
    study.sampler = BKBSampler(client=own, seed=2)  # as in another process
    study.optimize(sphere, n_trials=1)
    views = [v for c in copies(own) for v in c.iter_trials(states=["failed"])]
    assert [v.reason for v in views] == ["cancelled", "cancelled"]


def conditional(trial: optuna.Trial) -> float:
    model = trial.suggest_categorical("model", ["svm", "forest", None])
    if model == "svm":
        return abs(math.log10(trial.suggest_float("C", 1e-4, 1e4, log=True)) - 1)
    if model is None:
        return 3.0
    depth = trial.suggest_int("depth", 1, 5)
    layers = [trial.suggest_float(f"width{i}", 0, 1) for i in range(depth)]
    return 1 + sum(layers) / depth


def test_conditions_are_inferred(own: bkb.Client) -> None:
    sampler = BKBSampler(seed=2, client=own)
    study = optuna.create_study(sampler=sampler)
    for model in ("forest", "svm", None, "forest"):
        study.enqueue_trial({"model": model, "depth": 2})
    study.enqueue_trial({"model": "forest", "depth": 1})
    study.optimize(conditional, n_trials=60)
    trial = study.ask()
    newest = max(copies(own), key=lambda c: c.status.completed)
    space = sampler.infer_relative_search_space(study, study.trials[-1])
    names = {n: f"p{i}" for i, n in enumerate(sorted(space))}
    parameters: dict[str, Any] = {n: newest.space[p] for n, p in names.items()}
    assert parameters["C"].when == {names["model"]: "c0"}
    assert parameters["depth"].when == {names["model"]: "c1"}
    assert set(parameters["width1"].when) == {names["depth"]}
    assert newest.status.completed == 60  # no trial is outside of the model
    assert study.best_value < 0.05 and study.best_params["model"] == "svm"
    study.tell(trial, state=TrialState.FAIL)


@pytest.fixture
def warnings_of_sampler() -> Iterator[list[str]]:
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("optuna.bkb").addHandler(handler)
    yield said
    logging.getLogger("optuna.bkb").removeHandler(handler)


def test_changing_range_is_sampled_independently(warnings_of_sampler: list[str]) -> None:
    study = optuna.create_study(sampler=BKBSampler(seed=1))
    study.optimize(
        lambda t: t.suggest_float("x", 0, t.number + 1) + t.suggest_float("y", 0, 1), n_trials=8
    )
    (said,) = warnings_of_sampler
    assert "`x` in Trial#2 is sampled independently" in said


def test_warning_can_be_suppressed(warnings_of_sampler: list[str]) -> None:
    study = optuna.create_study(sampler=BKBSampler(seed=1, warn_independent_sampling=False))
    study.optimize(lambda t: t.suggest_float("x", 0, t.number + 1), n_trials=6)
    assert not warnings_of_sampler


NAMED = pytest.mark.skipif(
    not hasattr(FrozenTrial, "constraints"), reason="Optuna 4 has no names of constraints"
)


@NAMED
def test_constraints(own: bkb.Client) -> None:
    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        trial.set_constraint("right", 0.5 - x)
        trial.set_constraint("always", -1.0)
        return min((x - 0.2) ** 2 - 0.1, (x - 0.8) ** 2) + (y - 0.5) ** 2

    study = optuna.create_study(sampler=BKBSampler(seed=1, client=own))
    study.optimize(objective, n_trials=40)
    feasible = [t for t in study.trials if t.constraints["right"] <= 0]
    assert len([t for t in feasible if t.number >= 20]) > 12
    assert min(t.value for t in feasible if t.value is not None) < 1e-3
    newest = max(copies(own), key=lambda c: c.status.completed)
    for i, name in enumerate(["always", "right"]):  # each is a metric with a model of its own
        told = [t.metrics[f"violation{i}"][0] for t in newest.trials if t.state == "completed"]
        assert sorted(told) == sorted(t.constraints[name] for t in study.trials)


@pytest.mark.parametrize("violations", [1, 2])
def test_constraints_func(own: bkb.Client, violations: int) -> None:
    def told(trial: FrozenTrial) -> list[float]:
        return [0.5 - trial.params["x"], -1.0][:violations]

    sampler = BKBSampler(seed=1, client=own, constraints_func=told)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=20)
    values = [[0.5 - t.params["x"], -1.0][:violations] for t in study.trials]
    assert [list(t.system_attrs["constraints"]) for t in study.trials] == values
    copies = [own.load_study(s.name) for s in own.studies()]
    told_to = [t.metrics for copy in copies for t in copy.trials if t.state == "completed"]
    names = ["violation"] if violations == 1 else ["violation0", "violation1"]
    # The first trial may be told before the sampler knows that there are constraints.
    for name, wanted in zip(names, zip(*values, strict=True), strict=True):
        got = [m[name][0] for m in told_to if name in m]
        assert len(got) >= 19 and set(got) <= set(wanted)


@NAMED
@pytest.mark.parametrize(("n", "metrics"), [(1, 1), (8, 8), (9, 1)])
def test_number_of_constraints(own: bkb.Client, n: int, metrics: int) -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        for i in range(n if trial.number else 1):  # the first trial leaves out some
            trial.set_constraint(f"c{i}", x - i)
        return x

    study = optuna.create_study(sampler=BKBSampler(seed=1, client=own))
    study.optimize(objective, n_trials=8)
    newest = max(copies(own), key=lambda c: c.status.completed)
    names = ["violation"] if metrics == 1 else [f"violation{i}" for i in range(metrics)]
    told = [t for t in newest.trials if t.state == "completed"]
    assert {name for t in told for name in t.metrics} == {"value", *names}
    worst = [
        max([*t.constraints.values(), *([0.0] if t.number == 0 and n > 1 else [])])
        for t in study.trials
    ]
    assert sorted(max(t.metrics[name][0] for name in names) for t in told) == sorted(worst)


def test_several_objectives(own: bkb.Client) -> None:
    study = optuna.create_study(
        directions=["minimize", "maximize"], sampler=BKBSampler(seed=1, client=own)
    )
    study.optimize(lambda t: ((x := t.suggest_float("x", 0, 1)), x**2), n_trials=10)
    mirror = the_copy(own)
    assert mirror.objective_names == ("value0", "value1")
    assert mirror.directions == ("minimize", "maximize")
    told = sorted(t.values for t in mirror.trials if t.values)
    assert told == sorted(tuple(t.values) for t in study.trials)


def test_threads(own: bkb.Client) -> None:
    study = optuna.create_study(sampler=BKBSampler(seed=1, client=own))
    study.optimize(sphere, n_trials=40, n_jobs=4)
    assert len({tuple(t.params.values()) for t in study.trials}) == 40
    newest = max(copies(own), key=lambda c: c.status.completed)
    assert (newest.status.completed, newest.status.running) == (40, 0)


def test_running_trials_of_others_are_known(own: bkb.Client, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/optuna.db"
    mine = optuna.create_study(storage=storage, study_name="s", sampler=BKBSampler(client=own))
    mine.optimize(sphere, n_trials=6)
    theirs = optuna.load_study(storage=storage, study_name="s", sampler=BKBSampler())
    running = theirs.ask()
    running.suggest_float("x0", -5, 5)  # the others are only published
    mine.optimize(sphere, n_trials=1)
    asked = theirs.trials[running.number].system_attrs[ASKED]
    (view,) = the_copy(own).iter_trials(states=["running"])
    axis = Axis("p0", FloatDistribution(-5, 5))  # an end has another value in Optuna
    assert view.params == {f"p{i}": axis.encode(asked[f"x{i}"]) for i in range(3)}
    assert view.origin == "enqueued"
    for i in range(3):
        running.suggest_float(f"x{i}", -5, 5)
    theirs.tell(running, 5.0)
    mine.optimize(sphere, n_trials=1)
    assert the_copy(own).trial(view.number).value == 5.0


class Rival(BKBSampler):
    """Publishes what another worker proposes in the moment between ask and publication."""

    rival: optuna.Trial | None = None

    def _ask(self, study: optuna.Study, trial: FrozenTrial, *args: Any) -> dict[str, Any]:
        storage = study._storage
        publish, first = storage.set_trial_system_attr, True

        def both(trial_id: int, key: str, value: Any) -> None:
            nonlocal first
            if first and self.rival is not None:
                first = False
                publish(self.rival._trial_id, key, value)
            publish(trial_id, key, value)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(storage, "set_trial_system_attr", both)
            return super()._ask(study, trial, *args)


def test_of_two_equal_proposals_the_later_is_repeated(own: bkb.Client, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/optuna.db"
    sampler = Rival(client=own, seed=1)
    study = optuna.create_study(storage=storage, sampler=sampler)
    study.optimize(sphere, n_trials=6)
    sampler.rival = study.ask()
    trial = study.ask()
    mine = {f"x{i}": trial.suggest_float(f"x{i}", -5, 5) for i in range(3)}
    attrs = [t.system_attrs[ASKED] for t in study.trials[-2:]]
    assert attrs[0] != attrs[1] == mine
    states = [(t.state, t.reason) for t in the_copy(own).trials]
    assert states.count(("failed", "cancelled")) == 1


def rough(trial: optuna.Trial) -> float:
    x = [trial.suggest_float(f"x{i}", -20, 32) for i in range(5)]
    return sum(abs(v) + 50 * math.sin(1e3 * v) for v in x)


@pytest.mark.parametrize("noise", ["none", "learn"])
def test_no_repetitions(noise: str) -> None:
    # The model takes a rough objective for a noisy one, and would repeat the best trial.
    sampler = BKBSampler(seed=1)
    if noise == "learn":
        sampler = BKBSampler(seed=1, proposer=("bkb", {"noise": "learn"}))
    study = optuna.create_study(sampler=sampler)
    study.optimize(rough, n_trials=30)
    points = {tuple(t.params.values()) for t in study.trials}
    assert (len(points) == 30) == (noise == "none")


WORKER = """
import json, sys, time, optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from bkb._mirror import Mirror
from bkb.optuna import BKBSampler

taken = Mirror.taken

def record(mirror, number, trials):
    # What the model knew as it proposed the point that is checked now.
    news = mirror._news
    known = [n for n in range(news._read) if n not in news._open]
    for n, o in mirror._open.items():
        params = {**mirror._published(trials[n], {}), **trials[n].params}
        if n != number and o.config == mirror.config(params):
            known.append(n)
    print(json.dumps([number, known]), flush=True)
    return taken(mirror, number, trials)

Mirror.taken = record
optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.load_study(
    study_name="s", storage=JournalStorage(JournalFileBackend(sys.argv[1])), sampler=BKBSampler()
)

def objective(trial):
    value = sum((trial.suggest_float(f"x{i}", -5, 5) - 1) ** 2 for i in range(4))
    time.sleep(0.02)
    return value

study.optimize(objective, n_trials=int(sys.argv[2]))
"""


def test_processes_on_one_storage(tmp_path: Path) -> None:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    path, workers, each = str(tmp_path / "journal"), 4, 25
    study = optuna.create_study(study_name="s", storage=JournalStorage(JournalFileBackend(path)))
    command = [sys.executable, "-c", textwrap.dedent(WORKER), path, str(each)]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(workers)
    ]
    known: dict[int, set[int]] = {}
    for p in processes:
        out, err = p.communicate(timeout=300)
        assert p.returncode == 0, err
        for number, numbers in map(json.loads, out.splitlines()):
            known[number] = set(numbers)  # the last check accepted the point
    assert len(known) > workers * each / 2
    trials = study.trials
    assert len(trials) == workers * each
    assert len({tuple(t.params.values()) for t in trials}) == workers * each
    # A model that converges proposes points near those that it knows. Points that it does not
    # know are published by then, so that the later of two workers asks again.
    assert not [
        (a.number, b.number)
        for a in trials
        for b in trials[: a.number]
        if all(abs(v - b.params[n]) < NEAR * 10 for n, v in a.params.items())
        and b.number not in known.get(a.number, ())
        and a.number not in known.get(b.number, ())
    ]


def _in_child(study: optuna.Study, queue: Any) -> None:
    study.optimize(sphere, n_trials=3)
    server = scratch_client().server
    assert server is not None
    queue.put(([t.params for t in study.trials[-3:]], server.db))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork() -> None:
    study = optuna.create_study(sampler=BKBSampler(seed=1))
    study.optimize(sphere, n_trials=5)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(study, queue))
    child.start()
    theirs, db = queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    assert not Path(db).parent.exists()  # the child removed its file
    study.optimize(sphere, n_trials=3)
    assert not [p for p in theirs if p in [t.params for t in study.trials]]


def test_search_space_beyond_doubles(own: bkb.Client) -> None:
    study = optuna.create_study(sampler=BKBSampler(client=own, warn_independent_sampling=False))
    study.optimize(
        lambda t: t.suggest_int("huge", 0, 2**60) * 0.0 + t.suggest_float("x", 0, 1), n_trials=4
    )
    assert list(the_copy(own).space) == ["p0"]


def test_ends_of_a_range_are_left_out(own: bkb.Client) -> None:
    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 1e-3, 1e3, log=True)
        assert 0 < x < 1 and 1e-3 < y < 1e3
        return x - math.log(y)

    study = optuna.create_study(sampler=BKBSampler(seed=1, client=own))
    study.optimize(objective, n_trials=20)
    assert study.best_value == pytest.approx(-math.log(1e3), abs=1e-6)
    mirror = the_copy(own)
    assert mirror.status.completed == 20 and mirror.status.failed == 0
    assert 0.0 in [t.params["p0"] for t in mirror.trials]  # it proposed the end


@pytest.mark.parametrize(
    "distribution", [FloatDistribution(-32, 48), FloatDistribution(1e-3, 1e3, log=True)]
)
def test_ends_return_as_ends(own: bkb.Client, distribution: FloatDistribution) -> None:
    # Otherwise the end that another worker ran looks new, and every worker runs it.
    axis = Axis("p0", distribution)
    for end in (distribution.low, distribution.high):
        value = axis.decode(end)
        assert distribution.low < value < distribution.high
        assert axis.encode(value) == end
    storage = optuna.storages.InMemoryStorage()
    studies = [
        optuna.create_study(study_name="s", storage=storage, sampler=s, load_if_exists=True)
        for s in (BKBSampler(client=own, seed=1), BKBSampler(client=own, seed=2))
    ]
    for _ in range(20):
        for study in studies:
            study.optimize(lambda t: t._suggest("x", distribution), n_trials=1)
    ran = [t.params["x"] for t in studies[0].trials]
    assert axis.decode(distribution.low) in ran
    assert len(set(ran)) == len(ran)


@pytest.mark.parametrize(
    "distribution",
    [
        FloatDistribution(-10.2, 10.2, step=0.1),
        FloatDistribution(1e-9, 1e9, log=True),
        optuna.distributions.IntDistribution(-7, 8, step=3),
        optuna.distributions.IntDistribution(1, 1000, log=True),
        optuna.distributions.CategoricalDistribution([None, True, 1.5, "a"]),
    ],
)
def test_values_return_as_they_were(distribution: optuna.distributions.BaseDistribution) -> None:
    axis = Axis("p0", distribution)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for _ in range(50):
        value = study.ask({"x": distribution}).params["x"]
        code = axis.encode(value)
        assert code is not None
        back = axis.decode(code)
        assert type(back) is type(value)
        assert back == pytest.approx(value) if isinstance(value, float) else back == value


def test_old_copies_are_deleted(own: bkb.Client) -> None:
    study = optuna.create_study(sampler=BKBSampler(client=own, warn_independent_sampling=False))
    for n in range(8):
        study.optimize(lambda t, n=n: sum(t.suggest_float(f"x{i}", 0, 1) for i in range(9 - n)), 2)  # type: ignore[misc]
    assert len(copies(own)) == 4


def test_program_leaves_nothing_behind(tmp_path: Path) -> None:
    script = """
        import optuna
        from bkb.optuna import BKBSampler
        study = optuna.create_study(sampler=BKBSampler())
        study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=4)
        from bkb._scratch import scratch_client
        print(scratch_client().server.db)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
    assert not Path(done.stdout.strip()).parent.exists()
