"""Studies as runs of MLflow."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

try:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag
except ImportError as e:
    raise ImportError("bkb.mlflow needs MLflow, run pip install 'bkb-tuner[mlflow]'") from e

from ._codec import encode_attributes
from ._logged import points
from ._views import TrialView

if TYPE_CHECKING:
    from ._service import AnyState
    from ._study import Study

__all__ = ["MLflowCallback", "export"]

# Limits of MLflow for one message and one value.
MOST_METRICS, MOST_PARAMS, LONGEST = 1000, 100, 5000
ENDS: dict[str, str] = {
    "completed": "FINISHED",
    "infeasible": "FINISHED",
    "pruned": "KILLED",
    "failed": "FAILED",
}


class MLflowCallback:
    """Callback of `Study.optimize` that logs each trial.

    A study is a run, and its trials are nested runs. They have the parameters, the
    reports and metrics, and attributes as tags.

    Parameters
    ----------
    experiment : str, optional
        Name of the experiment, that of the study if left out. It is created if missing.
    tracking_uri : str, optional
        Where MLflow stores runs, ``MLFLOW_TRACKING_URI`` if left out.

    """

    def __init__(self, experiment: str | None = None, tracking_uri: str | None = None) -> None:
        self._client = MlflowClient(tracking_uri=tracking_uri)
        self._experiment = experiment
        self._lock = threading.Lock()
        self._runs: dict[tuple[str, str], tuple[str, str]] = {}  # experiment and run of a study

    def __call__(self, study: Study, view: TrialView) -> None:
        """Log a trial that ended. `Study.optimize` calls it."""
        self.log(study, study.trial(view.number))

    def run_id(self, study: Study) -> str:
        """Return the id of the run of a study, which is made if missing."""
        return self._run(study)[1]

    def _run(self, study: Study) -> tuple[str, str]:
        with self._lock:
            key = (study._service.where, study.name)
            if key not in self._runs:
                name = self._experiment or study.name
                found = self._client.get_experiment_by_name(name)
                experiment = found.experiment_id if found else self._client.create_experiment(name)
                tags = {"bkb.study": study.name, "bkb.space": json.dumps(study.space.to_json())}
                for objective, direction in zip(
                    study.objective_names, study.directions, strict=True
                ):
                    tags[_key(f"bkb.direction.{objective}")] = direction
                run = self._client.create_run(
                    experiment, run_name=study.name, tags=_cut(tags), start_time=_now()
                )
                self._runs[key] = experiment, run.info.run_id
            return self._runs[key]

    def log(self, study: Study, view: TrialView) -> None:
        """Log a trial that ended."""
        experiment, parent = self._run(study)
        began, ended = _milliseconds(view.started), _milliseconds(view.ended)
        tags = {
            **encode_attributes(view.attributes),
            "mlflow.parentRunId": parent,
            "bkb.trial": str(view.number),
            "bkb.state": view.state,
            "bkb.reason": view.reason,
            "bkb.message": view.message,
        }
        tags = {_key(k): v for k, v in tags.items() if v}
        name = f"{study.name} {view.number}"
        run = self._client.create_run(experiment, start_time=began, run_name=name)
        id_ = run.info.run_id
        for part in _parts([RunTag(k, v) for k, v in _cut(tags).items()], MOST_PARAMS):
            self._client.log_batch(id_, tags=part)
        params = _cut({_key(n): str(v) for n, v in view.params.items()})
        for part in _parts([Param(k, v) for k, v in params.items()], MOST_PARAMS):
            self._client.log_batch(id_, params=part)
        for part in _parts(_metrics(view, ended), MOST_METRICS):
            self._client.log_batch(id_, metrics=part)
        self._client.set_terminated(id_, ENDS[view.state], ended)
        if view.state == "completed":
            values = zip(view.objectives, view.values or (), strict=True)
            points = [Metric(_key(n), v, ended, view.number) for n, v in values]
            self._client.log_batch(parent, metrics=points)
        self._client.set_terminated(parent, "FINISHED", ended)


def export(study: Study, experiment: str | None = None, tracking_uri: str | None = None) -> str:
    """Log all trials of a study that ended, and return the id of its run.

    See `MLflowCallback` for the parameters. Each call makes a new run.
    """
    callback = MLflowCallback(experiment, tracking_uri)
    ended: list[AnyState] = ["completed", "infeasible", "pruned", "failed"]
    for view in study.iter_trials(states=ended, reports=True):
        callback.log(study, view)
    return callback.run_id(study)


def _metrics(view: TrialView, ended: int) -> list[Any]:
    """Return the reports of a trial, and its metrics at the step after them."""
    return [Metric(_key(n), v, ended, s) for s, values in points(view) for n, v in values.items()]


def _key(name: str) -> str:
    """Return a name with the characters that MLflow allows."""
    return re.sub(r"[^\w\-. :/]", "_", name)[:250]


def _cut(texts: Mapping[str, str]) -> dict[str, str]:
    return {k: v[:LONGEST] for k, v in texts.items()}


def _parts(items: list[Any], size: int) -> Iterator[list[Any]]:
    for i in range(0, len(items), size):
        yield items[i : i + size]


def _now() -> int:
    return int(1000 * time.time())


def _milliseconds(t: datetime | None) -> int:
    return _now() if t is None else int(1000 * t.timestamp())
