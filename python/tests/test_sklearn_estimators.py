from __future__ import annotations

import os
import pickle
import re
import stat
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sklearn", minversion="1.5", reason="scikit-learn 1.9 is not installed")

import numpy as np
from conftest import checks_of_scikit_learn, fewest_checks
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import BaggingRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score, train_test_split

import bkb
import bkb.sklearn as ours
from bkb import _scratch
from bkb._binary import find_binary
from bkb.sklearn import (
    BKBAutoClassifier,
    BKBAutoRegressor,
    BKBSearchCV,
    FalkonClassifier,
    FalkonRegressor,
    LogisticFalkonClassifier,
    NystromRegressor,
    SGDRandomFeaturesClassifier,
    SGDRandomFeaturesRegressor,
)
from bkb.sklearn._estimators import _Learner

NAMES = [n for n in ours.__all__ if n != "BKBSearchCV"]
REGRESSORS = [n for n in NAMES if n.endswith("Regressor")]
CLASSIFIERS = [n for n in NAMES if n.endswith("Classifier")]

X, Y = load_diabetes(return_X_y=True)
FLOWERS, KINDS = load_iris(return_X_y=True, as_frame=True)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[KINDS]


def make(name: str) -> Any:
    few = {"n_trials": 3} if "Auto" in name else {}
    return getattr(ours, name)(random_state=0, **few)


@pytest.mark.parametrize("name", NAMES)
def test_checks_of_scikit_learn(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = checks_of_scikit_learn(make(name), {})
    failed = [(r["check_name"], r["exception"]) for r in done if r["status"] == "failed"]
    assert not failed
    assert sum(r["status"] == "passed" for r in done) > fewest_checks()


@pytest.mark.parametrize("kind", [LogisticFalkonClassifier, BKBAutoClassifier])
def test_scores_of_logistic_classifiers(kind: Any) -> None:
    model = kind(random_state=0)
    if kind is BKBAutoClassifier:
        assert not hasattr(model, "predict_proba")
        model.set_params(algorithm="log-falkon", n_trials=3)
    two = KINDS != 0
    model.fit(FLOWERS[two], SPECIES[two])
    scores, p = model.decision_function(FLOWERS), model.predict_proba(FLOWERS)
    assert scores.shape == (150,) and p.shape == (150, 2)
    assert scores == pytest.approx(np.log(p[:, 1] / p[:, 0]))
    assert (model.classes_[(scores > 0).astype(int)] == model.predict(FLOWERS)).all()
    model.fit(FLOWERS, SPECIES)
    scores = model.decision_function(FLOWERS)
    assert scores.shape == (150, 3)
    assert (model.classes_[scores.argmax(axis=1)] == model.predict(FLOWERS)).all()


def test_multiclass() -> None:
    p = {}
    for multiclass in ("softmax", "one-vs-rest"):
        model = LogisticFalkonClassifier(multiclass=multiclass, random_state=0)
        model.fit(FLOWERS, SPECIES)
        assert model.settings_["multiclass"] == multiclass and model.score(FLOWERS, SPECIES) > 0.95
        p[multiclass] = model.predict_proba(FLOWERS)
        assert p[multiclass].sum(axis=1) == pytest.approx(1)
    assert np.abs(p["softmax"] - p["one-vs-rest"]).max() > 0.01
    with pytest.raises(ValueError, match="multiclass"):
        LogisticFalkonClassifier(multiclass="both").fit(FLOWERS, SPECIES)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name: str) -> None:
    train, test, y, wanted = train_test_split(X, Y, random_state=0)
    model = make(name).fit(train, y)
    assert r2_score(wanted, model.predict(test)) == model.score(test, wanted) > 0.25
    assert clone(model).fit(train, y).predict(test).tolist() == model.predict(test).tolist()
    assert float(model.settings_["length-scale"]) > 0
    # Several targets, of which each is near what it is alone.
    both = make(name).fit(train, np.column_stack([y, -2 * y])).predict(test)
    assert both.shape == (len(test), 2)
    assert both[:, 1] == pytest.approx(-2 * both[:, 0])
    assert make(name).fit(train, y[:, np.newaxis]).predict(test).shape == (len(test), 1)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name: str) -> None:
    for classes in (SPECIES, np.asarray(KINDS) * 10 - 3):
        model = make(name).fit(FLOWERS, classes)
        assert model.score(FLOWERS, classes) > 0.8
        assert model.classes_.tolist() == sorted(set(classes.tolist()))
        assert model.feature_names_in_.tolist() == list(FLOWERS)
        probable = hasattr(model, "predict_proba")
        assert probable == (name == "LogisticFalkonClassifier")
        scores = (model.predict_proba if probable else model.decision_function)(FLOWERS)
        assert scores.shape == (150, 3)
        assert (model.classes_[scores.argmax(axis=1)] == model.predict(FLOWERS)).all()
    two = np.asarray(KINDS) < 2
    model = make(name).fit(FLOWERS[two], SPECIES[two])
    if probable:
        scores = model.predict_proba(FLOWERS[two])
        assert scores.sum(axis=1) == pytest.approx(np.ones(100))
        second = scores[:, 1] > 0.5
    else:
        second = model.decision_function(FLOWERS[two]) > 0
    assert ((model.predict(FLOWERS[two]) == "versicolor") == second).all()


def test_more_than_ten_classes() -> None:
    x = np.arange(240.0).reshape(-1, 1)
    y: Any = np.repeat(np.arange(12), 20)
    model = FalkonClassifier(length_scale=0.1, alpha=1e-6, random_state=0).fit(x, y)
    assert model.score(x, y) > 0.9


def test_length_scale_for_each_input() -> None:
    scales = np.linspace(1, 10, X.shape[1])
    model = FalkonRegressor(length_scale=scales, random_state=0).fit(X, Y)
    assert [float(s) for s in model.settings_["length-scale"].split(",")] == list(scales)
    with pytest.raises(ValueError, match="length_scale is .*2 numbers.*10 with commas"):
        FalkonRegressor(length_scale=[1.0, 2.0]).fit(X, Y)


def test_parameters_reach_the_program() -> None:
    given: dict[str, Any] = {
        "kernel": "matern32",
        "length_scale": 2.5,
        "alpha": 1e-3,
        "n_centers": 17,
        "sampler": "bless",
        "max_iter": 7,
        "tol": 1e-3,
        "precision": "float32",
    }
    model = FalkonRegressor(random_state=0, **given).fit(X, Y)
    used = model.settings_
    assert {used["kernel"], used["sampler"], used["precision"]} == {"matern32", "bless", "float32"}
    assert float(used["lambda"]) == 1e-3 and float(used["length-scale"]) == 2.5
    assert int(used["centers"]) <= 17 and int(used["iterations"]) == 7
    assert 1 <= model.n_iter_ <= 7
    model = NystromRegressor(solver="cg", max_iter=3, random_state=0).fit(X, Y)
    assert model.settings_["solver"] == "cg" and model.n_iter_ == 3
    model = SGDRandomFeaturesRegressor(
        features="fourier", n_random_features=64, batch_size=9, step_size=0.5, n_passes=2
    ).fit(X, Y)
    used = model.settings_
    assert (used["features"], used["random-features"]) == ("fourier", "64")
    assert (used["batch-size"], used["step-size"], used["passes"]) == ("9", "0.5", "2")
    polynomial = SGDRandomFeaturesRegressor(kernel="arc-cosine", averaging="all", alpha=0.01)
    assert polynomial.fit(X, Y).settings_["averaging"] == "all"


def test_auto() -> None:
    model = BKBAutoRegressor(
        "nystrom", n_trials=4, ranges={"alpha": (1e-4, 1e-2)}, random_state=0
    ).fit(X, Y)
    assert model.n_trials_ == 4
    assert 1e-4 <= float(model.settings_["lambda"]) <= 1e-2
    assert 0 < model.validation_error_ < 100
    again = clone(model).fit(X, Y)
    assert again.settings_ == model.settings_
    assert BKBAutoClassifier(n_trials=100_000, timeout=0.5).fit(FLOWERS, KINDS).n_trials_ < 100_000


def test_auto_average() -> None:
    rows, targets = X[:120], Y[:120]
    average = BKBAutoRegressor("krr", n_trials=50, random_state=0).fit(rows, targets)
    weights = [w for w, _ in average.members_]
    assert len(weights) > 1 and sum(weights) == pytest.approx(1)
    assert len({(v["kernel"], v["relevance"]) for _, v in average.members_}) == len(weights)
    report = re.search(rb'"validation_error":([0-9.e+-]+)', average.model_)
    assert report and float(report[1]) == pytest.approx(average.validation_error_)
    single = BKBAutoRegressor("nystrom", n_trials=3, random_state=0).fit(X, Y)
    assert single.members_ == [(1.0, single.settings_)]


def test_seeds() -> None:
    def predicted(seed: Any) -> Any:
        return SGDRandomFeaturesRegressor(random_state=seed).fit(X, Y).predict(X).tolist()

    assert predicted(1) == predicted(1) == predicted(np.random.RandomState(1))
    assert predicted(1) != predicted(2)


def test_single_precision() -> None:
    wide = FalkonRegressor(random_state=0).fit(X, Y).predict(X)
    narrow = FalkonRegressor(random_state=0).fit(X.astype(np.float32), Y)
    assert narrow.predict(X.astype(np.float32)) == pytest.approx(wide, rel=1e-3)
    columns = FalkonRegressor(random_state=0).fit(np.asfortranarray(X), Y)
    assert columns.predict(X[::2]) == pytest.approx(wide[::2])


def test_copies(tmp_path: Path) -> None:
    model = FalkonClassifier(random_state=0).fit(FLOWERS, SPECIES)
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.predict(FLOWERS) == model.predict(FLOWERS)).all()
    # The program reads the model too.
    path = tmp_path / "flowers.model"
    path.write_bytes(model.model_)
    np.save(tmp_path / "x.npy", FLOWERS.to_numpy())
    out = subprocess.check_output(
        [find_binary(), "predict", "-m", path, "--data", tmp_path / "x.npy"], text=True
    )
    codes = [int(line.split(",")[0]) for line in out.splitlines()[1:]]
    assert (model.classes_[codes] == model.predict(FLOWERS)).all()


def test_together_with_others() -> None:
    scores = cross_val_score(FalkonRegressor(random_state=0), X, Y, cv=3, n_jobs=2)
    assert scores.mean() > 0.3
    bag = BaggingRegressor(FalkonRegressor(), n_estimators=3, random_state=0).fit(X, Y)
    assert bag.score(X, Y) > 0.4
    search = BKBSearchCV(
        FalkonRegressor(random_state=0),
        {"alpha": (1e-8, 1.0, "log"), "length_scale": (0.5, 50.0, "log")},
        n_iter=12,
        cv=3,
        random_state=0,
    ).fit(X, Y)
    assert search.best_score_ > 0.45


def test_sample_weight_is_refused() -> None:
    models: list[Any] = [FalkonRegressor(), FalkonClassifier()]
    for model in models:
        with pytest.raises(TypeError, match="sample_weight"):
            model.fit(X, Y > 100, sample_weight=np.ones(len(Y)))


@pytest.mark.parametrize(
    "model, said",
    [
        (FalkonRegressor(alpha=-1), 'FalkonRegressor, alpha is "-1", want > 0 or auto'),
        (FalkonRegressor(kernel="box"), 'kernel is "box", want one of gaussian'),
        (FalkonRegressor().set_params(n_centers=0.5), 'n_centers is "0.5"'),
        (SGDRandomFeaturesRegressor(n_passes=0), 'n_passes is "0"'),
        (BKBAutoRegressor(n_trials=-1), "n_trials -1"),
        (BKBAutoRegressor(validation_fraction=0), "validation_fraction 0: must be above 0"),
        (BKBAutoRegressor("forest"), "forest"),
    ],
)
def test_mistakes_in_parameters(model: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        model.fit(X, Y)


def test_mistakes_in_data() -> None:
    with pytest.raises(ValueError, match="needs two classes or more"):
        FalkonClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="the one value 3 over the training rows"):
        FalkonRegressor().fit(X, np.full(len(X), 3))
    with pytest.raises(ValueError, match="all inputs are constant"):
        FalkonRegressor().fit(np.ones_like(X), Y)
    with pytest.raises(ValueError, match="has 3 features"):
        FalkonRegressor().fit(X, Y).predict(X[:, :3])


@pytest.mark.skipif(os.name == "nt", reason="the program is a shell script")
@pytest.mark.parametrize(
    "status, error, said",
    [
        (23, TimeoutError, "SGDRandomFeaturesClassifier, the time limit has passed"),
        (130, KeyboardInterrupt, None),
        (7, bkb.Error, "the time limit has passed"),
        (1, bkb.Error, "the time limit has passed"),
    ],
)
def test_exit_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, error: Any, said: str
) -> None:
    program = tmp_path / "tuner"
    program.write_text(
        f"#!/bin/sh\necho noise >&2\necho tuner: the time limit has passed >&2\nexit {status}\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("BKB_TUNER", str(program))
    with pytest.raises(error, match=said):
        SGDRandomFeaturesClassifier().fit(FLOWERS, KINDS)
    program.write_text(f"#!/bin/sh\nexit {status}\n")
    if error is bkb.Error:
        with pytest.raises(bkb.Error, match=f"tuner train ended with status {status}"):
            SGDRandomFeaturesClassifier().fit(FLOWERS, KINDS)


def test_files_are_temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_scratch, "MEMORY", str(tmp_path))
    seen = []
    run = _Learner._run

    def watched(self: Any, command: list[str], place: str) -> bytes:
        out = run(self, command, place)
        seen.append(sorted(os.listdir(place)))
        assert Path(place).parent == tmp_path
        return out

    monkeypatch.setattr(_Learner, "_run", watched)
    model = LogisticFalkonClassifier().fit(FLOWERS, KINDS)
    model.predict(FLOWERS)
    assert seen == [["model", "x.npy", "y.npy"], ["model", "x.npy"]]
    assert list(tmp_path.iterdir()) == []
    assert _scratch.temporary_parent(0) == str(tmp_path)
    assert _scratch.temporary_parent(1 << 60) is None
    monkeypatch.setattr(_scratch, "MEMORY", str(tmp_path / "none"))
    assert _scratch.temporary_parent(0) is None
