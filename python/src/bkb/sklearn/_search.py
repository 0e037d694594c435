"""Search by cross-validation."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state

from .. import _errors
from .._client import open_file
from .._codec import integer
from .._options import Component
from .._scratch import scratch_client
from .._study import Study, Trial
from ._space import candidate, read_space, size, study_space

SCORE = "score"  # objective of the study
FOLDS = "folds"  # attribute of a trial with what its folds gave
WORKER = "BKBSearchCV"  # a search that continues gets back the trials that it ran
FIELDS = ("test_scores", "train_scores", "fit_time", "score_time", "fit_error")

# evaluate_candidates ends so if no candidate of a call could be fitted.
ALL_FAILED = re.compile(r"\bAll the \d+ fits failed\b")


class BKBSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search for the best parameters of an estimator by cross-validation, with BKB.

    It is used as ``RandomizedSearchCV``, and has its attributes after ``fit``. The
    difference is that candidates depend on the scores of those before.

    Parameters
    ----------
    estimator : estimator
        What is tuned.
    space : dict or list of dicts
        Parameters by name. Each is a list of values, a range, a tuple ``(low, high)`` or
        ``(low, high, "log")``, a distribution of scipy.stats, or a parameter of bkb
        such as ``bkb.Float``. A list of dicts is a choice between spaces.
    n_iter : int
        Number of candidates.
    n_points : int
        Candidates at a time. More keep more processors busy. Fewer learn from more scores.
    pruner : str or (str, dict), optional
        Pruner that sees the mean score after each fold and ends poor candidates. Folds
        then run one after another. Scores of an ended candidate are NaN.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        As in ``RandomizedSearchCV``. With several metrics the search maximizes the one
        that ``refit`` names.
    random_state : int, RandomState or None
        Seed of the candidates.
    study : str, optional
        Name of a study that keeps the candidates. The same search continues it. Left
        out, the study is deleted after the search.
    db : path, optional
        File of the study, ``TUNER_DB`` or ``tuner.db`` if left out.

    Attributes
    ----------
    study_ : Study
        The study, if it was kept.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> space = {"C": loguniform(1e-2, 1e2), "kernel": ["rbf", "linear"]}
    >>> search = BKBSearchCV(SVC(), space, n_iter=5, random_state=0).fit(X, y)
    >>> len(search.cv_results_["params"])
    5

    """

    def __init__(
        self,
        estimator: Any,
        space: Any,
        *,
        n_iter: int = 50,
        n_points: int = 1,
        pruner: Component | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        study: str | None = None,
        db: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.space = space
        self.n_iter = n_iter
        self.n_points = n_points
        self.pruner = pruner
        self.random_state = random_state
        self.study = study
        self.db = db

    def _run_search(self, evaluate_candidates: Callable[..., Any]) -> None:
        self._search = _Search(self, evaluate_candidates)
        try:
            self._search.run()
        finally:
            del self._search

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: list[Any], more_results: Any = None
    ) -> dict[str, Any]:
        """Take what was fitted. The table is written once, at the end of the search."""
        self._search.take(out)
        return self._search.results

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_search", None)  # processes of n_jobs get a copy of the estimator
        return state

    def _table(self, params: list[Any], n_splits: int, out: list[Any]) -> dict[str, Any]:
        results: dict[str, Any] = super()._format_results(params, n_splits, out)
        return results


@dataclass
class _Row:
    """A candidate, and what its folds gave."""

    number: int
    params: dict[str, Any]
    folds: list[dict[str, Any]] = field(default_factory=list)
    pruned: bool = False


class _Folds:
    """A splitter that splits once, and yields some of the folds."""

    def __init__(self, cv: Any) -> None:
        self._cv = cv
        self._all: list[Any] | None = None
        self.chosen: Sequence[int] = ()

    def split(self, X: Any, y: Any = None, **params: Any) -> Iterator[Any]:
        if self._all is None:
            self._all = list(self._cv.split(X, y, **params))
        if self.chosen and self.chosen[-1] >= len(self._all):
            raise ValueError(
                f"cv.split and cv.get_n_splits are inconsistent, cv.split gave {len(self._all)} "
                f"folds and cv.get_n_splits {self.chosen[-1] + 1} or more"
            )
        return iter([self._all[i] for i in self.chosen])


class _Search:
    """One call of fit."""

    def __init__(self, owner: BKBSearchCV, evaluate_candidates: Callable[..., Any]) -> None:
        several = isinstance(owner.scoring, (list, tuple, set, Mapping))
        if several and not isinstance(owner.refit, str):
            raise _several(owner.scoring, owner.refit)
        self.owner = owner
        self.evaluate_candidates = evaluate_candidates
        self.dimensions = read_space(owner.space)
        self.n_iter = integer(owner.n_iter, "n_iter", 1)
        self.n_points = integer(owner.n_points, "n_points", 1)
        # scikit-learn before 1.9 has the folds in variables of fit, which its function holds.
        self._local: dict[str, Any] = {}
        if not hasattr(owner, "_checked_cv_orig"):
            names = evaluate_candidates.__code__.co_freevars
            self._local = dict(zip(names, evaluate_candidates.__closure__ or (), strict=True))
        self.n_splits: int = self._splits()
        self.folds = _Folds(
            self._local["cv_orig"].cell_contents if self._local else owner._checked_cv_orig
        )
        self.results: dict[str, Any] = {}
        self._seen = 0
        self._new: list[Any] = []
        self._fitted = False
        configurations = size(self.dimensions)
        if configurations < self.n_iter:
            warnings.warn(
                f"the space has {configurations:.0f} configurations, fewer than "
                f"n_iter={self.n_iter}, so the search runs {configurations:.0f}",
                UserWarning,
                stacklevel=2,
            )
            self.n_iter = int(configurations)

    def _splits(self, count: int | None = None) -> int:
        """Return how many folds a candidate has, after it was set."""
        if count is not None and self._local:
            self._local["n_splits"].cell_contents = count
        elif count is not None:
            self.owner.n_splits_ = count
        found: int = self._local["n_splits"].cell_contents if self._local else self.owner.n_splits_
        return found

    def run(self) -> None:
        with self._study() as (study, rows):
            while len(rows) < self.n_iter:
                count = min(self.n_points, self.n_iter - len(rows))
                try:
                    trials = study.ask(count, worker=WORKER)
                except _errors.StudyFinished as e:
                    warnings.warn(str(e), UserWarning, stacklevel=2)
                    break
                rows += self._run(trials)
        failed = [r for r in rows if all(f.get("fit_error") for f in r.folds)]
        if len(failed) == len(rows):
            last = failed[-1].folds[-1]["fit_error"] if failed else "the study has no trials"
            raise ValueError(f"no candidate could be fitted, the last one failed with\n{last}")
        rows.sort(key=lambda r: r.number)
        if not self._fitted:
            # The form of the scores is known from a fit only.
            good = next(r for r in rows if not r.folds[0].get("fit_error"))
            self._fit([replace(good, folds=[])], [0])
        self._tabulate(rows)

    @contextlib.contextmanager
    def _study(self) -> Iterator[tuple[Study, list[_Row]]]:
        owner = self.owner
        seed = 1 + check_random_state(owner.random_state).randint(2**31 - 1)
        kept = owner.study is not None or owner.db is not None
        client = open_file(owner.db) if kept else scratch_client()
        name = owner.study or "search-" + uuid.uuid4().hex[:12]
        study = client.create_study(
            name,
            study_space(self.dimensions),
            maximize=SCORE,
            seed=int(seed),
            max_retries=0,
            pruner=owner.pruner,
            exist_ok=True,
            warn=False,  # another seed is meant
        )
        try:
            yield study, self._stored(study)
        finally:
            if not kept:
                client.delete_study(name)
        if kept:
            owner.study_ = study

    def _stored(self, study: Study) -> list[_Row]:
        """Return the candidates that the study has already."""
        rows = []
        for view in study.iter_trials(states=["completed", "failed", "pruned"]):
            if FOLDS not in view.attributes:
                continue
            columns = view.attributes[FOLDS]
            count = len(columns["fit_time"])
            folds = [{k: v[i] for k, v in columns.items()} for i in range(count)]
            pruned = view.state == "pruned"
            if count > self.n_splits or (count < self.n_splits and not pruned):
                raise _errors.StudyExists(
                    f"study {study.name!r} has trials of {count} folds and cv has "
                    f"{self.n_splits}, take another name"
                )
            rows.append(_Row(view.number, candidate(self.dimensions, view.params), folds, pruned))
        return rows

    def _run(self, trials: list[Trial]) -> list[_Row]:
        rows = [_Row(t.number, candidate(self.dimensions, t.params)) for t in trials]
        every = list(range(self.n_splits))
        rounds = [every] if self.owner.pruner is None else [[i] for i in every]
        with contextlib.ExitStack() as stack:
            for trial in trials:
                stack.enter_context(trial)
            running = list(zip(trials, rows, strict=True))
            for chosen in rounds:
                self._fit([row for _, row in running], chosen)
                if chosen[-1] == every[-1]:
                    break
                for trial, row in running:
                    mean = float(np.mean(self._scores(row)))
                    if math.isfinite(mean):
                        trial.report(mean, len(row.folds))
                        row.pruned = trial.should_prune()
                running = [(t, r) for t, r in running if not r.pruned]
                if not running:
                    break
            for trial, row in zip(trials, rows, strict=True):
                self._tell(trial, row)
        return rows

    def _fit(self, rows: list[_Row], chosen: list[int]) -> None:
        """Fit some folds of some candidates."""
        owner = self.owner
        self.folds.chosen = chosen
        self._splits(len(chosen))
        try:
            self.evaluate_candidates([row.params for row in rows], cv=self.folds)
            out = self._new
            self._fitted = True
        except ValueError as e:
            if not ALL_FAILED.search(str(e)):
                raise
            # It is the end of a search over one list of candidates, and no end here.
            warnings.warn(str(e), FitFailedWarning, stacklevel=2)
            fold = {
                "test_scores": owner.error_score,
                "train_scores": owner.error_score,
                "fit_time": math.nan,
                "score_time": math.nan,
                "fit_error": str(e),
            }
            out = [fold] * (len(rows) * len(chosen))
        finally:
            self._splits(self.n_splits)
        for i, row in enumerate(rows):
            for fold in out[i * len(chosen) : (i + 1) * len(chosen)]:
                row.folds.append({k: fold[k] for k in FIELDS if k in fold})

    def take(self, out: list[Any]) -> None:
        """Take the folds that were fitted since the last call."""
        self._new, self._seen = out[self._seen :], len(out)

    def _scores(self, row: _Row) -> list[float]:
        """Return the score of each fold that the search maximizes."""
        scores = []
        for f in row.folds:
            s = f["test_scores"]
            if isinstance(s, Mapping):
                if self.owner.refit not in s:
                    raise _several(s, self.owner.refit)
                s = s[self.owner.refit]
            scores.append(float(s))
        return scores

    def _tell(self, trial: Trial, row: _Row) -> None:
        scores = self._scores(row)
        mean = float(np.mean(scores))
        errors = [f["fit_error"] for f in row.folds if f.get("fit_error")]
        cost = float(np.nansum([f["fit_time"] + f["score_time"] for f in row.folds]))
        columns = {k: [f.get(k) for f in row.folds] for k in FIELDS}
        columns["fit_error"] = [_last_line(e) for e in columns["fit_error"]]
        attributes = None
        if self.owner.study is not None or self.owner.db is not None:
            attributes = {FOLDS: json.loads(json.dumps(columns, default=float))}
        told: dict[str, Any] = {"cost": cost, "attributes": attributes}
        if row.pruned:
            trial.tell(mean, state="pruned", **told)
        elif math.isfinite(mean):
            # The deviation of the folds is not their noise, since all candidates have the
            # same folds. Told as a standard error, it made searches worse.
            trial.tell(mean, **told)
        else:
            message = _last_line(errors[-1]) if errors else f"the score is {mean}"
            trial.tell(
                state="failed", reason="crash" if errors else "nan", message=message or "", **told
            )

    def _tabulate(self, rows: list[_Row]) -> None:
        scores = [f["test_scores"] for r in rows for f in r.folds]
        names = next((list(s) for s in scores if isinstance(s, Mapping)), None)

        def whole(value: Any, otherwise: Any) -> Any:
            """Return a score with all metrics."""
            value = otherwise if value is None else value
            if names is None or isinstance(value, Mapping):
                return value
            return dict.fromkeys(names, value)

        out = []
        for row in rows:
            missing: list[dict[str, Any]] = [{}] * (self.n_splits - len(row.folds))
            for f in row.folds + missing:
                cell = {k: f.get(k, math.nan) for k in ("fit_time", "score_time")}
                cell["test_scores"] = whole(f.get("test_scores"), math.nan)
                cell["train_scores"] = whole(f.get("train_scores"), math.nan)
                out.append(cell)
        with warnings.catch_warnings():
            ran = [whole(s, math.nan) for s in scores]
            values = [v for s in ran for v in (s.values() if isinstance(s, Mapping) else [s])]
            if np.isfinite(np.asarray(values, dtype=float)).all():
                # Only folds that the pruner left out are NaN.
                warnings.filterwarnings("ignore", r"One or more of the \w+ scores are non-finite")
            table = self.owner._table([r.params for r in rows], self.n_splits, out)
        if self.owner.pruner is not None:
            table["n_folds"] = np.array([len(r.folds) for r in rows])
        self.results.update(table)


def _several(metrics: Any, refit: Any) -> ValueError:
    names = ", ".join(map(repr, metrics))
    return _errors.InvalidRequest(
        f"refit is {refit!r} and scoring has the metrics {names}, "
        "set refit to the name of the metric to maximize"
    )


def _last_line(text: str | None) -> str | None:
    return text.strip().splitlines()[-1] if text else None
