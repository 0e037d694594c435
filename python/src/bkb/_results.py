"""What a study has found."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from . import _artifacts, _errors
from ._codec import JSON, integer
from ._define import Series
from ._errors import InvalidRequest
from ._goals import MARK
from ._held import Source
from ._options import Path
from ._plot import Plots
from ._service import AnyState, Service
from ._space import Space, SpaceLike
from ._views import Artifact, Diagnosis, Event, StudyRecord, StudyStatus, TrialView

if TYPE_CHECKING:
    from pathlib import Path as LocalPath

    import optuna

log = logging.getLogger("bkb")


class Results:
    """The reading half of a study."""

    def __init__(
        self, service: Service, study: StudyRecord, given: SpaceLike | None = None
    ) -> None:
        if isinstance(given, Mapping):
            study = dataclasses.replace(study, space=study.space.as_given(given))
        source = Series if MARK in study.attributes else Source
        self._service = service
        self._source = source(service, study)
        self._broken = 0, 0  # completed trials, and how many of them break a limit
        self.name, self._goals = study.name, study.goals
        self.objective_names, self.directions = study.goals.names, study.goals.directions

    def __repr__(self) -> str:
        return f"Study({self.name!r})"

    def _repr_html_(self) -> str:
        from ._html import study_html

        one = len(self.objective_names) == 1
        status = self.status
        best = self.best_trial if one and status.completed else None
        trials = self.iter_trials(states=["completed"]) if one else ()
        return study_html(self.name, self._goals, status, best, trials)

    @property
    def space(self) -> Space:
        """The search space, as far as the objective has defined it."""
        return self._source.space

    @property
    def generations(self) -> list[str]:
        """Names of the studies on the server, of which one without a space has several."""
        return self._source.generations

    # What a study is now.

    def spec(self) -> JSON:
        """Return what the study was created with, in the form of the wire."""
        spec: JSON = self._service.get(self._source.newest().name)["spec"]
        return spec

    @property
    def status(self) -> StudyStatus:
        """The state of the study and the number of its trials."""
        status = self._source.status()
        if not self._goals.limits or not status.completed:
            return status
        if self._broken[0] != status.completed:
            broken = sum(t.feasible is False for t in self.iter_trials(states=["completed"]))
            self._broken = status.completed, broken
        infeasible = status.infeasible + self._broken[1]
        return dataclasses.replace(status, infeasible=infeasible)

    def diagnosis(self) -> Diagnosis:
        """Return the state of the proposer's model."""
        return self._service.diagnosis(self._source.newest())

    def importances(self, objective: str | None = None) -> dict[str, float]:
        """Return how much each parameter matters for an objective, the largest first.

        With a model it is the share of the variance of the model's mean, with interactions. Without
        one it is the parameter's part of how the best trials differ from all, or 0.

        Parameters
        ----------
        objective : str, optional
            Name of the objective, the first if left out.

        """
        return self._service.importances(self._source.newest(), objective or "")

    @property
    def plot(self) -> Plots:
        """Charts of the trials, such as ``study.plot.history()``."""
        return Plots(self._goals, self.iter_trials(), self.importances)

    def trial(self, number: int, *, reports: bool = True) -> TrialView:
        """Return a trial by its number.

        Parameters
        ----------
        number : int
            Number of the trial in the study.
        reports : bool
            Whether to load its reports now.

        """
        at, place = self._source.locate(number)
        return self._source.shown(at, self._service.trial(at, place, reports=reports))

    def artifacts(self, trial: int) -> list[Artifact]:
        """Return the files of a trial that `Study.upload_artifact` stored, in order of name.

        Parameters
        ----------
        trial : int
            Number of the trial.

        """
        return _artifacts.artifacts(self._service.transport, self._place(trial))

    def download_artifact(self, trial: int, name: str, path: Path | None = None) -> LocalPath:
        """Write a file of a trial to a file here, whole or not at all.

        Parameters
        ----------
        trial : int
            Number of the trial.
        name : str
            Name of the artifact.
        path : path, optional
            File or folder to write to. By default it is the name in the current folder.

        Returns
        -------
        pathlib.Path
            The file.

        """
        return _artifacts.download(self._service.transport, self._place(trial), name, path)

    def _place(self, trial: int) -> str:
        """Return the name of a trial on the server, which later copies of it do not change."""
        at, number = self._source.locate(integer(trial, "trial", 0, 2**31 - 1), oldest=True)
        return f"studies/{at.name}/trials/{number}"

    def iter_trials(
        self, *, states: Sequence[AnyState] = (), worker: str = "", reports: bool = False
    ) -> Iterator[TrialView]:
        """Yield trials in order of number.

        Parameters
        ----------
        states : list of str
            Only trials in one of these states.
        worker : str
            Only trials of this worker.
        reports : bool
            Whether the trials carry their reports.

        """
        unknown = [s for s in states if s not in get_args(AnyState)]
        if unknown or isinstance(states, str):
            raise InvalidRequest(
                f"states is {states!r}, give a list of some of {', '.join(get_args(AnyState))}"
            )
        return self._source.trials(states, worker, reports)

    @property
    def trials(self) -> list[TrialView]:
        """All trials in order of number."""
        return sorted(self.iter_trials(), key=lambda t: t.number)

    @property
    def best_trial(self) -> TrialView:
        """The trial that the study recommends."""
        if len(self.objective_names) > 1:
            raise InvalidRequest(
                f"study {self.name!r} has {len(self.objective_names)} objectives, use pareto_front"
            )
        best = self.pareto_front
        if not best:
            raise _errors.NotFound(f"study {self.name!r} has no completed trial yet")
        broken = self._goals.broken(best[0].metrics)
        if broken:
            log.warning(
                "the best trial of study %s breaks a constraint, %s, as all completed trials do",
                self.name,
                ", ".join(broken),
            )
        return best[0]

    @property
    def best_params(self) -> Mapping[str, Any]:
        """Parameters of the best trial."""
        return self.best_trial.params

    @property
    def best_value(self) -> float:
        """Objective value of the best trial."""
        value = self.best_trial.value
        assert value is not None  # a completed trial has one
        return value

    @property
    def pareto_front(self) -> list[TrialView]:
        """The trials of the Pareto front, in order of number."""
        at = self._source.newest()
        return [self._source.shown(at, view) for view in self._service.best(at)]

    def to_dataframe(self, backend: Literal["pandas", "polars"] = "pandas") -> Any:
        """Return a data frame with a row for each trial.

        Parameters
        ----------
        backend : str
            ``"pandas"`` or ``"polars"``, which must be installed.

        """
        from ._frame import to_dataframe

        return to_dataframe(self.iter_trials(), backend)

    def to_optuna(self, storage: Any = None, *, study_name: str | None = None) -> optuna.Study:
        """Return a copy of the study for Optuna, as for its plots. It needs Optuna.

        Parameters
        ----------
        storage : str or optuna.storages.BaseStorage, optional
            Storage of the copy. By default it is in memory.
        study_name : str, optional
            Name of the copy. The default is the name of the study.

        Notes
        -----
        A trial that is infeasible has the state FAIL and the attribute ``bkb:state``. The
        reason of a failure, the message, the origin, the cost and the standard errors are
        in attributes with the same prefix, and other metrics are in attributes.

        """
        from ._to_optuna import to_optuna

        trials = self.iter_trials(reports=True)
        notes = self.status.attributes
        return to_optuna(study_name or self.name, self.space, self._goals, notes, trials, storage)

    def watch(self, after: int = 0, *, until_finished: bool = False) -> Iterator[Event]:
        """Yield what happens in the study, and wait for more.

        Parameters
        ----------
        after : int
            Position of the last event that you know, 0 for all events.
        until_finished : bool
            Whether to end when the study has finished.

        """
        at = self._source.newest()
        for e in self._service.watch(at, after, self._quiet if until_finished else None):
            shown = None if e.trial is None else self._source.shown(at, e.trial)
            yield dataclasses.replace(e, trial=shown)

    def _quiet(self, position: int) -> bool:
        """Tell whether no more events are expected after a position."""
        s = self.status
        return s.state == "finished" and s.running == 0 and position >= s.position
