"""Kernel learners whose hyper-parameters the program tuner tunes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.utils.metaestimators import available_if

from ._estimators import FLAGS, _Learner, _log_odds, _Regressor, _Scores


class _Auto(_Learner):
    """What ``tuner auto`` tunes."""

    def __init__(
        self,
        algorithm: str = "falkon",
        *,
        n_trials: int = 60,
        timeout: float | None = None,
        validation_fraction: float = 0.2,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.n_trials = n_trials
        self.timeout = timeout
        self.validation_fraction = validation_fraction
        self.ranges = ranges
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _train(self) -> list[str]:
        command = [
            "auto",
            str(self.algorithm),
            "--db=study.db",
            "--study=auto",
            "--log-dir=logs",
            f"--trials={self.n_trials}",
            f"--validation={self.validation_fraction}",
            "--workers=1",
            "--calibrate=false",  # decision_function returns scores
        ]
        if self.timeout is not None:
            command.append(f"--budget={self.timeout}s")
        for param, (low, high) in (self.ranges or {}).items():
            command.append(f"--range={FLAGS.get(param, param)}={low}..{high}")
        return command

    def _learned(self, summary: Mapping[str, Any]) -> None:
        best = summary["best"]
        model = summary.get("average") or best
        self.settings_: dict[str, str] = best["values"]
        self.validation_error_: float = model["validation"]
        self.members_: list[tuple[float, dict[str, str]]] = [
            (m["weight"], m["values"])
            for m in model.get("members", [{"weight": 1.0, "values": best["values"]}])
        ]
        self.n_trials_: int = summary["trials"]


class BKBAutoRegressor(_Regressor, _Auto):
    """A kernel learner whose hyper-parameters BKB tunes in ``fit``.

    Each trial trains on a part of the rows and is compared on the rest. The best
    configuration is then trained on all rows. On few rows the model may be an average of
    the best trials of several kernels. The first trial has the settings of theory.

    Parameters
    ----------
    algorithm : str
        A learner of ``tuner train``, such as falkon, nystrom or sgdrf.
    n_trials : int
        Number of trials.
    timeout : float, optional
        Seconds after which no trial begins.
    validation_fraction : float
        Share of the rows for comparing trials.
    ranges : dict, optional
        Ranges of hyper-parameters, tuples of low and high, instead of those of theory.
    random_state : int, RandomState or None
        Seed.
    n_jobs : int, optional
        Number of threads, 1 if left out.

    Attributes
    ----------
    model_ : bytes
        The file of the model, which ``tuner predict`` reads.
    settings_ : dict
        Hyper-parameters of the best trial, by the flags of ``tuner train``.
    validation_error_ : float
        Validation error of the model, which is that of the average if there is one.
    members_ : list of (float, dict)
        Weights and hyper-parameters of the averaged models. If there is no average, it is
        the best trial with the weight 1.
    n_trials_ : int
        Trials that ran.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> BKBAutoRegressor(n_trials=5, random_state=0).fit(X, y).n_trials_
    5

    """


class BKBAutoClassifier(_Scores, _Auto):
    """A kernel learner for classes whose hyper-parameters BKB tunes in ``fit``.

    Parameters and attributes are those of `BKBAutoRegressor`, and ``classes_``. With the
    algorithm log-falkon there is ``predict_proba``.
    """

    def decision_function(self, X: Any) -> Any:
        """Return the score of each class, or of the second one if there are two."""
        scores = super().decision_function(X)
        return _log_odds(scores) if self._has_probabilities() else scores

    def _has_probabilities(self) -> bool:
        return str(self.algorithm) == "log-falkon"

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class."""
        return self._predict(X, "--scores")
