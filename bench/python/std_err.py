"""Measure why BKBSearchCV does not tell the standard error of the folds' mean.

Run python bench/python/std_err.py. Each seed splits a set and searches twice, with the standard
error of the folds' mean and without. The estimators that are best by cross-validation, and
those of the trials that the study recommends, are scored on rows that the search did not
see.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_classification,
    make_friedman1,
    make_moons,
    make_regression,
)
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import bkb
from bkb.sklearn import BKBSearchCV

ROWS = 200  # of the search, at most

Set = Callable[[int], tuple[Any, Any]]
SETS: dict[str, tuple[Any, Set]] = {
    "breast cancer": (SVC, lambda seed: load_breast_cancer(return_X_y=True)),
    "digits": (SVC, lambda seed: load_digits(return_X_y=True)),
    "wine": (SVC, lambda seed: load_wine(return_X_y=True)),
    "moons": (SVC, lambda seed: make_moons(3000, noise=0.35, random_state=seed)),
    "classification": (
        SVC,
        lambda seed: make_classification(3000, 15, n_informative=5, flip_y=0.1, random_state=seed),
    ),
    "diabetes": (SVR, lambda seed: load_diabetes(return_X_y=True)),
    "friedman": (SVR, lambda seed: make_friedman1(3000, noise=2.0, random_state=seed)),
    "regression": (
        SVR,
        lambda seed: make_regression(3000, 10, n_informative=4, noise=60.0, random_state=seed),
    ),
}


tell = bkb.Trial.tell


def with_std_err(trial: bkb.Trial, *args: Any, **told: Any) -> bkb.TrialView:
    """Tell an outcome with the standard error of the folds' mean."""
    scores = json.loads(told["attributes"]["folds"])["test_scores"]
    error = float(np.std(scores)) / math.sqrt(len(scores))
    return tell(trial, *args, **told, std_err=error or None)


def search(name: str, seed: int, told: bool, n_iter: int) -> tuple[float, float]:
    """Return the scores of the best and of the recommended estimator."""
    bkb.Trial.tell = with_std_err if told else tell  # type: ignore[method-assign,assignment]
    make, data = SETS[name]
    X, y = data(seed)
    size = min(ROWS, len(y) // 2)
    stratify = y if make is SVC else None
    X, other_x, y, other_y = train_test_split(
        X, y, train_size=size, random_state=seed, stratify=stratify
    )
    if make is SVR:
        other_y, y = (other_y - y.mean()) / y.std(), (y - y.mean()) / y.std()
    step = make.__name__.lower()
    space = {f"{step}__C": (1e-3, 1e3, "log"), f"{step}__gamma": (1e-4, 1e1, "log")}
    if make is SVR:
        space[f"{step}__epsilon"] = (1e-3, 1.0, "log")
    with tempfile.TemporaryDirectory() as folder:
        found = BKBSearchCV(
            make_pipeline(StandardScaler(), make()),
            space,
            n_iter=n_iter,
            random_state=seed,
            db=os.path.join(folder, "tuner.db"),
            study="s",
        ).fit(X, y)
        recommended = clone(found.estimator).set_params(**dict(found.study_.best_params)).fit(X, y)
        scores = found.score(other_x, other_y), recommended.score(other_x, other_y)
        server = found.study_.client.server
        assert server is not None
        server.stop()
    return scores


def main() -> None:
    """Print the mean scores and their differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--n-iter", type=int, default=30)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    arguments = parser.parse_args()
    all_of: list[list[float]] = [[], []]
    for name in arguments.sets:
        pairs = [
            [search(name, seed, told, arguments.n_iter) for told in (True, False)]
            for seed in range(arguments.first, arguments.first + arguments.seeds)
        ]
        line = f"{name:15}"
        for i, what in enumerate(("best", "recommended")):
            d = [told[i] - silent[i] for told, silent in pairs]
            all_of[i] += d
            mean = np.mean([[told[i], silent[i]] for told, silent in pairs], axis=0)
            line += f" {what} {mean[0]:.4f} with, {mean[1]:.4f} without, {_difference(d)} "
        print(line, flush=True)
    for i, what in enumerate(("best", "recommended")):
        print(f"{what} {_difference(all_of[i])}")


def _difference(d: list[float]) -> str:
    error = statistics.stdev(d) / math.sqrt(len(d))
    wins, losses = sum(x > 0 for x in d), sum(x < 0 for x in d)
    return f"{statistics.mean(d):+.4f} ± {error:.4f}, {wins} wins {losses} losses"


if __name__ == "__main__":
    main()
