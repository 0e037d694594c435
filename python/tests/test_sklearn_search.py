from __future__ import annotations

import math
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sklearn", minversion="1.5", reason="scikit-learn 1.9 is not installed")

import numpy as np
import sklearn
from conftest import checks_of_scikit_learn, fewest_checks
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import ShuffleSplit, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

import bkb
from bkb.sklearn import BKBSearchCV
from bkb.sklearn._space import candidate, read_space, size, study_space

X, Y = load_iris(return_X_y=True)
ROWS = np.arange(12.0).reshape(-1, 1)


class Quadratic(BaseEstimator):  # type: ignore[misc]
    """An estimator whose score is known. Its fits are counted."""

    fits = 0

    def __init__(self, x: float = 0.0, fail_above: float = math.inf, stop_at: int = -1) -> None:
        self.x, self.fail_above, self.stop_at = x, fail_above, stop_at

    def fit(self, X: Any, y: Any = None) -> Quadratic:
        Quadratic.fits += 1
        if Quadratic.fits == self.stop_at:
            raise KeyboardInterrupt
        if self.x > self.fail_above:
            raise ArithmeticError(f"x is {self.x}")
        return self

    def score(self, X: Any, y: Any = None) -> float:
        return float(-((self.x - 0.3) ** 2) + 1e-6 * X.sum())


SPACE = {"x": (0.0, 1.0)}


@pytest.mark.parametrize(
    "script, said",
    [
        ("sys.modules['sklearn'] = None", "bkb.sklearn needs scikit-learn 1.5 or newer, run"),
        ("sklearn.__version__ = '1.4.2'", "scikit-learn is of version 1.4.2. bkb.sklearn needs"),
    ],
)
def test_without_scikit_learn(script: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, sklearn; {script}; import bkb, bkb.sklearn"],
        capture_output=True,
        text=True,
    )
    assert f"ImportError: {said}" in done.stderr


# RandomizedSearchCV passes and fails the same.
@pytest.mark.parametrize(
    "estimator, space, excepted",
    [
        (LogisticRegression(), {"C": (1e-3, 1e3, "log")}, {}),
        (
            Ridge(),
            {"alpha": (1e-3, 1e3, "log")},
            {"check_supervised_y_2d": "Ridge takes such targets"},
        ),
    ],
)
def test_checks_of_scikit_learn(estimator: Any, space: Any, excepted: dict[str, str]) -> None:
    search = BKBSearchCV(estimator, space, n_iter=2, cv=2, random_state=0, error_score="raise")
    if sklearn.__version__.startswith("1.5."):  # whose checks are not so strict
        excepted = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = checks_of_scikit_learn(search, excepted)
    states = [r["status"] for r in done]
    failed = [(r["check_name"], r["exception"]) for r in done if r["status"] == "failed"]
    assert not failed
    assert states.count("xfail") == len(excepted)
    assert states.count("passed") > fewest_checks()


def test_pipeline() -> None:
    pipeline = Pipeline([("scale", StandardScaler()), ("svc", SVC())])
    scalers = [StandardScaler(), MinMaxScaler(), None]
    space = {
        "scale": scalers,
        "svc__C": stats.loguniform(1e-2, 1e2),
        "svc__kernel": ["rbf", "linear"],
        "svc__gamma": bkb.Float(1e-3, 1, log=True, when={"svc__kernel": "rbf"}),
    }
    search = BKBSearchCV(pipeline, space, n_iter=12, cv=3, random_state=0).fit(X, Y)
    assert search.best_score_ > 0.95
    assert search.best_estimator_.score(X, Y) == search.score(X, Y) > 0.95
    assert list(search.classes_) == [0, 1, 2]
    table = search.cv_results_
    assert len(table["params"]) == 12
    assert all(p["scale"] in scalers for p in table["params"])
    assert all(("svc__gamma" in p) == (p["svc__kernel"] == "rbf") for p in table["params"])
    assert table["param_svc__gamma"].mask.tolist() == [
        p["svc__kernel"] == "linear" for p in table["params"]
    ]
    assert table["rank_test_score"][search.best_index_] == 1
    assert search.best_params_ == table["params"][search.best_index_]


def test_the_search_learns() -> None:
    search = BKBSearchCV(Quadratic(), SPACE, n_iter=15, cv=2, random_state=1).fit(ROWS)
    assert abs(search.best_params_["x"] - 0.3) < 0.02
    assert abs(search.cv_results_["params"][0]["x"] - 0.3) > 0.02


def test_random_state() -> None:
    def xs(seed: Any) -> list[float]:
        search = BKBSearchCV(Quadratic(), SPACE, n_iter=8, cv=2, random_state=seed)
        return [p["x"] for p in search.fit(ROWS).cv_results_["params"]]

    assert xs(3) == xs(3) == xs(np.random.RandomState(3))
    assert xs(3) != xs(4)


def test_parallel() -> None:
    search = BKBSearchCV(
        Quadratic(), SPACE, n_iter=7, n_points=3, n_jobs=2, cv=2, random_state=0, refit=False
    ).fit(ROWS)
    assert len(search.cv_results_["params"]) == 7
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_search_in_other_processes() -> None:
    data = make_classification(60, random_state=0)
    space = {"C": (1e-2, 1e2, "log")}
    search = BKBSearchCV(LogisticRegression(), space, n_iter=3, cv=2, random_state=0)
    scores = cross_val_score(search, *data, cv=2, n_jobs=2)
    assert (scores > 0.5).all()


def test_failed_candidates() -> None:
    search = BKBSearchCV(Quadratic(fail_above=0.7), SPACE, n_iter=8, cv=2, random_state=0)
    with pytest.warns(FitFailedWarning, match="x is "):
        search.fit(ROWS)
    table = search.cv_results_
    failed = np.array([p["x"] > 0.7 for p in table["params"]])
    assert 0 < failed.sum() < 8
    assert (np.isnan(table["mean_test_score"]) == failed).all()
    assert (np.isnan(table["split1_test_score"]) == failed).all()
    search.set_params(error_score=-5.0)
    with pytest.warns(FitFailedWarning):
        table = search.fit(ROWS).cv_results_
    failed = np.array([p["x"] > 0.7 for p in table["params"]])
    assert ((table["mean_test_score"] == -5) == failed).all() and failed.any()


def test_failures_of_all(tmp_path: Path, name: str) -> None:
    kept: dict[str, Any] = {"study": name, "db": tmp_path / "s.db"}
    search = BKBSearchCV(Quadratic(fail_above=-1), SPACE, n_iter=2, cv=2, **kept)
    with (
        pytest.warns(FitFailedWarning),
        pytest.raises(
            ValueError, match=r"no candidate could be fitted[\s\S]*ArithmeticError: x is"
        ),
    ):
        search.fit(ROWS)
    views = bkb.load_study(name, db=tmp_path / "s.db").trials
    assert [(v.state, v.reason) for v in views] == [("failed", "crash")] * 2
    assert views[0].message.startswith("ArithmeticError: x is")
    with pytest.raises(ArithmeticError):
        clone(search).set_params(error_score="raise", study=name + "b").fit(ROWS)
    (view,) = bkb.load_study(name + "b", db=tmp_path / "s.db").trials
    assert (view.state, view.message[:15]) == ("failed", "ArithmeticError")


def test_scores_that_are_not_finite() -> None:
    def score(estimator: Any, X: Any, y: Any = None) -> float:
        return math.nan if estimator.x < 0.5 else estimator.x

    search = BKBSearchCV(Quadratic(), SPACE, n_iter=6, cv=2, random_state=0, scoring=score)
    with pytest.warns(UserWarning, match="non-finite"):
        search.fit(ROWS)
    assert np.isnan(search.cv_results_["mean_test_score"]).any()
    assert search.best_params_["x"] >= 0.5


def test_pruning(tmp_path: Path, name: str) -> None:
    search = BKBSearchCV(
        Quadratic(),
        SPACE,
        n_iter=20,
        n_points=2,
        cv=4,
        pruner=("percentile", {"percentile": 25, "warmup_steps": 2}),
        random_state=0,
        study=name,
        db=tmp_path / "s.db",
        return_train_score=True,
    )
    Quadratic.fits = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(ROWS)
    table = search.cv_results_
    pruned = table["n_folds"] < 4
    assert 0 < pruned.sum() < 20
    assert (table["n_folds"] >= 2).all()
    assert Quadratic.fits == table["n_folds"].sum() + 1  # and the refit
    assert (np.isnan(table["mean_test_score"]) == pruned).all()
    assert (np.isnan(table["mean_train_score"]) == pruned).all()
    assert np.isfinite(table["split1_test_score"]).all()
    assert (np.isnan(table["split3_test_score"]) == pruned).all()
    assert search.n_splits_ == 4 and not pruned[search.best_index_]
    views = search.study_.trials
    assert [v.state == "pruned" for v in views] == pruned.tolist()
    view = search.study_.trial(int(np.flatnonzero(pruned)[0]))
    assert len(view.reports) == table["n_folds"][view.number]


def test_several_metrics() -> None:
    data = make_classification(80, random_state=0)
    space = {"C": (1e-2, 1e2, "log")}
    search = BKBSearchCV(LogisticRegression(), space, n_iter=4, cv=3, random_state=0)
    search.set_params(scoring=["accuracy", "neg_log_loss"], refit="neg_log_loss").fit(*data)
    table = search.cv_results_
    assert search.multimetric_
    assert search.best_index_ == np.argmax(table["mean_test_neg_log_loss"])
    assert (table["mean_test_accuracy"] > 0.5).all()
    for refit in (False, lambda table: 0):
        with pytest.raises(ValueError, match=r"scoring has the metrics 'accuracy', 'neg_log_loss'"):
            clone(search).set_params(refit=refit).fit(*data)

    def both(estimator: Any, X: Any, y: Any) -> dict[str, float]:
        return {"a": estimator.score(X, y), "b": 1.0}

    search.set_params(scoring=both, refit="a").fit(*data)
    assert search.best_score_ == search.cv_results_["mean_test_a"].max()
    with pytest.raises(ValueError, match="refit is 'c' and scoring has the metrics 'a', 'b'"):
        search.set_params(refit="c").fit(*data)


def test_refit() -> None:
    search = BKBSearchCV(Quadratic(), SPACE, n_iter=3, cv=2, random_state=0, refit=False)
    search.fit(ROWS)
    assert search.best_index_ == np.argmax(search.cv_results_["mean_test_score"])
    assert not hasattr(search, "best_estimator_")
    search.set_params(refit=lambda table: 2).fit(ROWS)
    assert search.best_estimator_.x == search.cv_results_["params"][2]["x"]


def test_a_kept_study(tmp_path: Path, name: str) -> None:
    search = BKBSearchCV(Quadratic(), SPACE, n_iter=5, cv=4, random_state=0, study=name)
    search.set_params(db=tmp_path / "s.db").fit(ROWS)
    views = search.study_.trials
    table = search.cv_results_
    assert [v.value for v in views] == pytest.approx(table["mean_test_score"])
    assert not any(v.std_errs for v in views)  # the folds are those of all candidates
    assert all(v.cost > 0 for v in views)
    copy = pickle.loads(pickle.dumps(search))
    assert copy.best_params_ == search.best_params_
    assert copy.study_.status.completed == 5
    # Another estimator of the same name has another space.
    other = BKBSearchCV(Ridge(), {"alpha": (0.0, 1.0)}, study=name, db=tmp_path / "s.db")
    with pytest.raises(bkb.StudyExists, match="another search space"):
        other.fit(X, Y)
    with pytest.raises(bkb.StudyExists, match="trials of 4 folds and cv has 3"):
        clone(search).set_params(cv=3).fit(ROWS)


def test_a_study_that_is_not_kept() -> None:
    search = BKBSearchCV(Quadratic(), SPACE, n_iter=2, cv=2, random_state=0).fit(ROWS)
    assert not hasattr(search, "study_")
    from bkb._scratch import scratch_client

    kept = [s.name for s in scratch_client().studies()]  # others may be of Optuna
    assert not [name for name in kept if name.startswith("search-")]


def test_a_search_that_is_continued(tmp_path: Path, name: str) -> None:
    kept: dict[str, Any] = {"study": name, "db": tmp_path / "s.db"}
    search = BKBSearchCV(Quadratic(stop_at=8), SPACE, n_iter=6, cv=2, random_state=0, **kept)
    Quadratic.fits = 0
    with pytest.raises(KeyboardInterrupt):
        search.fit(ROWS)  # in the fourth candidate
    search.set_params(estimator__stop_at=-1)
    Quadratic.fits = 0
    search.fit(ROWS)
    assert len(search.cv_results_["params"]) == 6
    assert Quadratic.fits == 3 * 2 + 1
    numbers = [v.number for v in search.study_.iter_trials(states=["completed"])]
    assert len(numbers) == 6
    first = search.cv_results_
    # One that is complete fits one fold, to see the form of the scores.
    Quadratic.fits = 0
    again = clone(search).fit(ROWS)
    assert Quadratic.fits == 1 + 1
    for column in ("mean_test_score", "std_test_score", "split1_test_score", "rank_test_score"):
        assert again.cv_results_[column].tolist() == first[column].tolist()
    assert again.cv_results_["params"] == first["params"]
    # A longer one goes on.
    longer = clone(search).set_params(n_iter=8).fit(ROWS)
    assert longer.cv_results_["params"][:6] == first["params"]
    assert len(longer.cv_results_["params"]) == 8


def test_a_study_that_is_finished(tmp_path: Path, name: str) -> None:
    search = BKBSearchCV(Quadratic(), SPACE, n_iter=2, cv=2, study=name, db=tmp_path / "s.db")
    search.fit(ROWS).study_.finish()
    with pytest.warns(UserWarning, match="finished"):
        search.set_params(n_iter=3).fit(ROWS)
    assert len(search.cv_results_["params"]) == 2


def test_all_candidates_get_the_same_folds() -> None:
    def score(estimator: Any, X: Any, y: Any = None) -> float:
        return float(X.sum())

    splits = ShuffleSplit(2, test_size=0.5)  # other ones at each call
    search = BKBSearchCV(Quadratic(), SPACE, n_iter=4, cv=splits, scoring=score).fit(ROWS)
    assert len(set(search.cv_results_["split0_test_score"])) == 1


def test_a_small_space() -> None:
    space = {"x": [0.1, 0.2, 0.3]}
    search = BKBSearchCV(Quadratic(), space, n_iter=10, cv=2, random_state=0)
    with pytest.warns(UserWarning, match="the space has 3 configurations, fewer than n_iter=10"):
        search.fit(ROWS)
    assert sorted(p["x"] for p in search.cv_results_["params"]) == [0.1, 0.2, 0.3]


def test_spaces() -> None:
    step = StandardScaler()
    given = {
        "low_high": (1e-3, 1.0, "log"),
        "whole": (1, 9),
        "uniform": stats.uniform(2, 3),
        "loguniform": stats.loguniform(1e-4, 1e2),
        "shifted": stats.loguniform(1e-4, 1e2, loc=5),
        "randint": stats.randint(3, 7),
        "poisson": stats.poisson(4),
        "normal": stats.norm(10, 2),
        "beta": stats.beta(2, 5),
        "sizes": [1, 10, 100],
        "array": np.array([0.5, 0.25, 0.1]),
        "words": ["a", "b"],
        "bools": [True, False],
        "objects": [step, None, (1, 2)],
        "mixed": [1, 1.0, True],
        "bounds": bkb.Int(2, 8, step=2),
        "range": range(1, 4),
        "steps": range(0, 10, 3),
        "down": range(3, 0, -1),
        "one": range(5, 6),
        "disorder": [100, 1, 10],
        "numbers": [0, 0.5, 1],
    }
    dimensions = read_space(given)
    space = study_space(dimensions)
    assert space["low_high"] == bkb.Float(1e-3, 1.0, scale="log")
    assert space["whole"] == bkb.Int(1, 9)
    assert space["uniform"] == bkb.Float(2.0, 5.0)
    assert space["loguniform"] == bkb.Float(1e-4, 1e2, log=True)
    assert space["shifted"] == bkb.Float(0.0, 1.0)
    assert space["randint"] == bkb.Int(3, 6)
    assert space["poisson"] == bkb.Int(0, 11)
    assert space["normal"] == bkb.Float(0.001, 0.999)
    assert space["beta"] == bkb.Float(0.0, 1.0)
    assert space["sizes"] == bkb.Ordinal([1, 10, 100])
    assert space["array"] == bkb.Ordinal([0.5, 0.25, 0.1])
    assert space["words"] == bkb.Categorical(["a", "b"])
    assert space["bools"] == bkb.Categorical([True, False])
    assert space["objects"] == bkb.Categorical([step, None, (1, 2)])
    assert space["mixed"] == bkb.Categorical([1, 1.0, True])
    assert space["bounds"] == bkb.Int(2, 8, step=2)
    assert space["range"] == bkb.Int(1, 3) and space["steps"] == bkb.Int(0, 9, step=3)
    assert space["down"] == bkb.Ordinal([3, 2, 1]) and space["one"] == bkb.Categorical([5])
    assert space["disorder"] == bkb.Ordinal([1, 10, 100])
    assert space["numbers"] == bkb.Ordinal([0, 0.5, 1])
    config = dict.fromkeys(space, 0.5) | {"sizes": 10, "array": 0.1, "words": "b", "bools": False}
    config |= {"objects": step, "mixed": True, "down": 2, "one": 5, "disorder": 1, "numbers": 1}
    params = candidate(dimensions, config)
    assert params["normal"] == 10 and params["objects"] is step and params["mixed"] is True
    assert params["disorder"] == 1 and params["down"] == 2
    assert params["numbers"] == 1 and type(params["numbers"]) is int
    assert params["array"] == 0.1 and type(params["array"]) is float
    assert size(read_space({"a": [1, 2], "b": (1, 3)})) == 6
    assert size(dimensions) == math.inf


def test_a_list_of_spaces() -> None:
    space = [
        {"kernel": ["rbf"], "gamma": (1e-3, 1.0, "log")},
        {"kernel": ["poly", "sigmoid"], "degree": bkb.Int(2, 4, when={"kernel": "poly"})},
    ]
    search = BKBSearchCV(SVC(), space, n_iter=12, cv=2, random_state=0).fit(X, Y)
    found = {frozenset(p) for p in search.cv_results_["params"]}
    assert found == {
        frozenset({"kernel", "gamma"}),
        frozenset({"kernel", "degree"}),
        frozenset({"kernel"}),
    }


@pytest.mark.parametrize(
    "space, said",
    [
        ({}, "space has no parameters"),
        ("x", "space is 'x', give a dict"),
        ([{"x": (0, 1)}, 3], "item 1 of space is 3"),
        ({1: (0, 1)}, "parameter 1 of space is no text"),
        ({"x": []}, "parameter 'x' of space is an empty list"),
        ({"x": (1, 2, 3)}, r"parameter 'x' of space is the tuple \(1, 2, 3\)"),
        ({"x": (1,)}, r"parameter 'x' of space is the tuple \(1,\)"),
        ({"x": ("a", "b")}, "or a list if these are choices"),
        ({"x": 3}, "parameter 'x' of space is 3, give a list of values"),
        ({"x": (2.0, 1.0)}, "x"),
        ({"x": bkb.Float(0, 1, when={"z": 1})}, "'x' depends on 'z', which is not in the space"),
        (
            {"z": [None, "a"], "x": bkb.Float(0, 1, when={"z": "b"})},
            "the parent cannot take this value: not one of the values",
        ),
    ],
)
def test_mistakes_in_a_space(space: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        BKBSearchCV(Quadratic(), space, n_iter=2, cv=2).fit(ROWS)


@pytest.mark.parametrize("name, value", [("n_iter", 0), ("n_iter", 1.5), ("n_points", True)])
def test_mistakes_in_a_count(name: str, value: Any) -> None:
    search = BKBSearchCV(Quadratic(), SPACE, cv=2).set_params(**{name: value})
    with pytest.raises(ValueError, match=f"{name} is {value}, give an integer of 1 or more"):
        search.fit(ROWS)
