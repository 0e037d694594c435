"""Studies and their trials."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from . import _artifacts, _errors
from ._codec import integer, number, plain
from ._errors import InvalidRequest, TrialPruned
from ._held import Held
from ._lease import LEASE, heartbeats
from ._optimize import Catch, Run, waited
from ._options import ASK, OUTCOME, AskOptions, OutcomeOptions, Path, spelled
from ._results import Results
from ._service import Service
from ._space import Categorical, Float, Int, Parameter, SpaceLike, check
from ._spec import encode_limits
from ._views import (
    Artifact,
    NewTrial,
    StudyRecord,
    Suggestion,
    TrialView,
)

if TYPE_CHECKING:
    from pathlib import Path as LocalPath

    from typing_extensions import Unpack

log = logging.getLogger("bkb")

T = TypeVar("T")

MOST_SAID = 5  # trials that a warning names


class Study(Results):
    """A study on a server or in a file. It can be used by many threads and pickled.

    Attributes
    ----------
    name : str
        Name of the study.
    objective_names : tuple of str
        Names of the objectives, in order.
    directions : tuple of str
        ``"minimize"`` or ``"maximize"`` for each objective.

    Examples
    --------
    >>> study = bkb.create_study("quick", {"x": bkb.Float(0, 1)}, minimize="loss", seed=1)
    >>> study.optimize(lambda trial: (trial["x"] - 0.5) ** 2, n_trials=10)
    >>> study.best_value < 0.1
    True
    >>> study.enqueue({"x": 0.5}).state
    'queued'

    """

    def __init__(
        self, service: Service, study: StudyRecord, given: SpaceLike | None = None
    ) -> None:
        super().__init__(service, study, given)
        self._runs: list[Run] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_runs": []}

    def pause(self) -> None:
        """Hand out no trials for now."""
        self._service.change("PauseStudy", self._source.newest().name)

    def resume(self) -> None:
        """Hand out trials again."""
        self._service.change("ResumeStudy", self._source.newest().name)

    def finish(self, detail: str = "") -> None:
        """End the study until `extend`. Running trials may still be told.

        Parameters
        ----------
        detail : str
            Text for people.

        """
        self._service.change("FinishStudy", self._source.newest().name, detail=detail)

    def extend(self, trials: int = 0, *, timeout: float | None = None, cost: float = 0.0) -> None:
        """Raise limits of the study, and continue it if it has finished.

        Parameters
        ----------
        trials : int
            Trials to add to max_trials.
        timeout : float, optional
            Seconds to add to timeout, or to the time that is over it.
        cost : float
            Cost to add to max_cost, or to the cost that is over it.

        Raises
        ------
        StudyFinished
            It has tried all configurations, or its gap is small enough.
        InvalidRequest
            There would be no room for a trial, or it has no such limit.

        """
        self._source.extend(encode_limits(trials, timeout, cost))

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes of the study.

        Parameters
        ----------
        attributes : dict
            What JSON has, by name. An empty text removes an attribute.

        """
        self._service.set_attributes(self._source.newest().name, attributes)

    # Trials to run.

    def upload_artifact(self, trial: int, path: Path, name: str | None = None) -> Artifact:
        """Store a file with a trial, whole or not at all, on the server's disk.

        Parameters
        ----------
        trial : int
            Number of the trial, in any state.
        path : path
            The file.
        name : str, optional
            Name of the artifact, the file's by default. It replaces one of the same name.

        Returns
        -------
        Artifact
            Its name, size and checksum.

        Raises
        ------
        LimitReached
            It exceeds the server's quota, or would fill the disk.

        Examples
        --------
        >>> study = bkb.create_study("kept", {"x": bkb.Float(0, 1)}, minimize="loss")
        >>> with study.ask() as trial:
        ...     with open("model.txt", "w") as f:
        ...         _ = f.write("weights")
        ...     artifact = trial.upload_artifact("model.txt")
        ...     view = trial.tell(0.5)
        >>> artifact.size, [a.file for a in study.artifacts(0)]
        (7, ['model.txt'])
        >>> study.download_artifact(0, "model.txt", "best.txt").read_text()
        'weights'

        """
        return _artifacts.upload(self._service.transport, self._place(trial), path, name)

    def delete_artifact(self, trial: int, name: str) -> None:
        """Delete a file of a trial, if it is there.

        Parameters
        ----------
        trial : int
            Number of the trial.
        name : str
            Name of the artifact.

        """
        _artifacts.delete(self._service.transport, self._place(trial), name)

    @overload
    def ask(self, count: None = None, **options: Unpack[AskOptions]) -> Trial: ...
    @overload
    def ask(self, count: int | Literal["auto"], **options: Unpack[AskOptions]) -> list[Trial]: ...
    @spelled(AskOptions, ASK)
    def ask(
        self, count: int | Literal["auto"] | None = None, **options: Unpack[AskOptions]
    ) -> Trial | list[Trial]:
        """Get a trial to run, or a list of some.

        Parameters
        ----------
        count : int or "auto", optional
            How many trials. ``"auto"`` are as many as are useful in parallel now.
        worker : str
            Name of a worker. It gets back the trials that it runs already.
        lease : float, optional
            Seconds until another worker may get the trial, unless a heartbeat comes. Left
            out, it is the study's.
        fixed : dict, optional
            Values of some parameters. The model proposes the others, and without one they are
            random. What is in the queue comes first.
        wait_for : float or list of futures
            Where no trial is free, seconds to wait for one. Or futures, of concurrent.futures or
            dask, that run other trials. It asks again when one of them ends, until all have.

        Raises
        ------
        StudyFinished
            The study hands out no more trials.
        NoTrialNow
            All trials are handed out and some still run.
        StudyPaused
            The study is paused.

        """
        o: AskOptions = {**ASK, **options}
        lease = o["lease"]
        for _ in range(count if isinstance(count, int) else 1) if o["fixed"] else ():
            self._source.enqueue(o["fixed"] or {}, propose=True)
        asked = partial(self._source.ask, count, o["worker"], lease)
        at, views = waited(asked, o["wait_for"])
        trials = [Trial(self, Held(self._source, at, view), lease) for view in views]
        return trials[0] if count is None else trials

    @spelled(OutcomeOptions, OUTCOME)
    def tell(
        self, trial: Trial | int, value: Any = None, **options: Unpack[OutcomeOptions]
    ) -> TrialView:
        """Tell the outcome of a trial.

        Parameters
        ----------
        trial : Trial or int
            The trial or its number.
        value : float, list or dict
            The objective value, one for each objective, or metrics by name. A list in a
            dict holds replicates. NaN makes the trial failed.
        state : str, optional
            completed, failed, infeasible or pruned. With a value it is completed.
        reason : str, optional
            Why a trial failed, as crash, cancelled or nan.
        message : str
            Text for people.
        std_err : float or dict, optional
            Standard error of the value.
        cost : float, optional
            What the trial cost.
        attributes : dict, optional
            Notes.

        """
        outcome = self._goals.outcome(value, **options)
        if isinstance(trial, Trial):
            return trial._held.tell(outcome)
        return self._source.tell(trial, outcome)

    def enqueue(
        self, params: Mapping[str, Any], *, attributes: Mapping[str, Any] | None = None
    ) -> TrialView:
        """Put a configuration in the queue, which is handed out before others.

        Parameters
        ----------
        params : dict
            Values of parameters. Others are as in the best trial, or random.
        attributes : dict, optional
            Notes of the trial.

        """
        return self._source.enqueue(params, attributes)

    def add_trials(self, trials: Iterable[NewTrial]) -> list[int]:
        """Add finished trials that ran elsewhere, and return their numbers.

        Parameters
        ----------
        trials : iterable of dict or TrialView
            Trials of another study are added if they are over and fit the search space and the
            objectives. A warning says which are not, and why.
            Each dict has ``params``, and further the arguments of `tell`, which are
            ``value``, ``state``, ``reason``, ``message``, ``std_err``, ``cost`` and
            ``attributes``, and ``reports``, a dict from steps to values.

        """
        if isinstance(trials, (Mapping, TrialView)):
            raise InvalidRequest("trials is one trial, give a list of trials")
        numbers, left = self._source.add_new(trials)
        if left:
            more = "; …" if len(left) > MOST_SAID else ""
            log.warning(
                "study %s, %d trials are added and %d are not, %s",
                self.name,
                len(numbers),
                len(left),
                "; ".join(left[:MOST_SAID]) + more,
            )
        return numbers

    # Loops.

    def optimize(
        self,
        objective: Callable[[Trial], Any],
        n_trials: int | None = None,
        *,
        timeout: float | None = None,
        n_jobs: int = 1,
        catch: Catch = (),
        callbacks: Sequence[Callback] = (),
        lease: float = LEASE,
        executor: Executor | None = None,
        show_progress_bar: bool = False,
        fixed: Mapping[str, Any] | None = None,
    ) -> None:
        """Run trials until the study finishes.

        Parameters
        ----------
        objective : callable
            Function of a `Trial` that returns what `tell` takes as a value. It raises
            `TrialPruned` to end a trial early.
        n_trials : int, optional
            Trials that this call runs at most. If the study's max_trials ends it earlier and
            no other worker has made trials meanwhile, it is raised as by `extend`.
        timeout : float, optional
            Seconds after which it begins no more trials.
        n_jobs : int
            Trials at once, each in a thread. -1 is the number of processors.
        catch : exception class, or list or tuple of them
            Exceptions of the objective that end the trial as failed and not the run.
        callbacks : list of callable
            Functions of the study and the `TrialView` of each trial that ended.
        lease : float
            Seconds until another worker gets a trial if this process dies. Heartbeats
            renew it while the trial runs.
        executor : concurrent.futures.Executor, optional
            Where the objective runs, such as a ``ProcessPoolExecutor``.
        show_progress_bar : bool
            Whether to show a bar, which needs tqdm.
        fixed : dict, optional
            Values of some parameters in all trials of this call. See `ask`.

        Raises
        ------
        StudyFinished
            n_trials were asked for, and the study had finished so that none could run.

        """

        def told(view: TrialView) -> None:
            for callback in callbacks:
                callback(self, view)

        run = Run(
            self._source,
            lambda: self.ask(lease=lease, fixed=fixed),
            objective,
            told,
            n_trials,
            timeout,
            catch,
            lease,
            executor,
            show_progress_bar,
            # A callback may stop the run or put a trial in the queue before the next ask.
            None if callbacks or fixed else lambda held: Trial(self, held, lease),
        )
        self._runs.append(run)
        try:
            run.run(n_jobs)
        finally:
            self._runs.remove(run)

    def stop(self) -> None:
        """Let `optimize` of this object begin no more trials, as from a callback."""
        for run in list(self._runs):
            run.stop.set()


Callback = Callable[[Study, TrialView], None]


class Trial:
    """A trial that runs here.

    As a context manager it renews its lease until the block ends. An exception in the
    block ends the trial as failed, and `TrialPruned` as pruned.

    Attributes
    ----------
    study : Study
        Study of the trial.
    number : int
        Number of the trial in its study, from 0.
    params : dict
        Value of each active parameter. ``trial["lr"]`` is short for one. Without a declared
        space they are those that the objective has asked for.

    Examples
    --------
    >>> study = bkb.create_study("steps", {"x": bkb.Float(0, 1)}, minimize="loss")
    >>> with study.ask() as trial:
    ...     trial.report(0.9, step=1)
    ...     if not trial.should_prune():
    ...         view = trial.tell({"loss": 0.5, "accuracy": 0.75}, cost=2)
    >>> view.metrics["accuracy"]
    [0.75]

    """

    def __init__(self, study: Study, held: Held, lease: float | None = None) -> None:
        self.study, self._held, self._lease = study, held, lease
        self.number = held.number

    @property
    def view(self) -> TrialView:
        """The trial as the server handed it out."""
        return self._held.source.shown(self._held.at, self._held.view)

    @property
    def params(self) -> dict[str, Any]:
        """Value of each active parameter."""
        return self._held.params

    @property
    def suggestion(self) -> Suggestion | None:
        """What the proposer predicted, or None."""
        return self._held.view.suggestion

    @property
    def epoch(self) -> int:
        """How often the trial was started."""
        return self._held.view.epoch

    @property
    def worker(self) -> str:
        """Name of the worker, if `Study.ask` gave one."""
        return self._held.view.worker

    def __getitem__(self, name: str) -> Any:
        return self._held.params[name]

    def __contains__(self, name: object) -> bool:
        return name in self._held.params

    def __repr__(self) -> str:
        return f"Trial({self.study.name!r}, {self.number}, {self.params!r})"

    def _repr_html_(self) -> str:
        from ._html import trial_html

        return trial_html(self.study.name, self.number, self.params)

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """Return the value of a parameter, as in Optuna.

        In a study without a declared search space this defines the parameter. In another
        one it must agree with the space.

        Parameters
        ----------
        name : str
            Name of the parameter.
        low, high : float
            Bounds.
        step : float, optional
            Distance of the values from one another.
        log : bool
            Whether the scale is logarithmic.

        """
        low = number(low, f"low of parameter {name!r}")
        high = number(high, f"high of parameter {name!r}")
        return float(self._suggest(name, Float, low, high, step=plain(step), log=log))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """Return the value of an integer parameter. See `suggest_float`."""
        low, high, step = plain(low), plain(high), plain(step)
        wide = None if step == 1 else step
        return int(self._suggest(name, Int, low, high, step=wide, log=log))

    def suggest_categorical(self, name: str, choices: Sequence[T]) -> T:
        """Return the value of a categorical parameter. See `suggest_float`."""
        value: T = self._suggest(name, Categorical, list(choices))
        return value

    def _suggest(self, name: str, kind: type[Parameter], *args: Any, **fields: Any) -> Any:
        try:
            p = kind(*args, **fields)
        except InvalidRequest as e:
            raise InvalidRequest(
                str(e).replace(f"bkb.{kind.__name__}", f"parameter {name!r}", 1)
            ) from None
        check(name, p)
        return self._held.source.suggest(self._held, name, p)

    def report(self, value: Any, step: int) -> None:
        """Report an intermediate value, or a dict of metrics, at a step.

        The answer says whether the trial should stop. See `should_prune`. A step that comes
        again begins another pass, such as the next fold of a cross-validation. Its steps
        follow those of the pass before.
        """
        self._held.report(value, integer(step, "step", -(2**63), 2**63 - 1))

    def should_prune(self) -> bool:
        """Return whether the trial should stop.

        The reason is a pruner, a lost lease, or a run that was cancelled. The last report
        or heartbeat brought it, so that this call costs nothing.
        """
        return self._held.stop

    @property
    def stop_reason(self) -> str:
        """Why the trial should stop, for people."""
        return self._held.stop_reason

    def renew(self, lease: float = LEASE) -> None:
        """Send a heartbeat. In a ``with`` block and in `Study.optimize` this happens without you.

        Parameters
        ----------
        lease : float
            Seconds until another worker gets the trial, unless another heartbeat comes.

        """
        self._held.renew(lease)

    @spelled(OutcomeOptions, OUTCOME)
    def tell(self, value: Any = None, **options: Unpack[OutcomeOptions]) -> TrialView:
        """Tell the outcome of the trial. See `Study.tell`."""
        return self.study.tell(self, value, **options)

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes of the trial. See `Study.set_attributes`."""
        self._held.set_attributes(attributes)

    def upload_artifact(self, path: Path, name: str | None = None) -> Artifact:
        """Store a file with the trial. See `Study.upload_artifact`.

        Returns
        -------
        Artifact
            Its name, size and checksum.

        """
        return self.study.upload_artifact(self.number, path, name)

    def artifacts(self) -> list[Artifact]:
        """Return the files of the trial. See `Study.artifacts`."""
        return self.study.artifacts(self.number)

    def download_artifact(self, name: str, path: Path | None = None) -> LocalPath:
        """Write a file of the trial to a file here. See `Study.download_artifact`.

        Returns
        -------
        pathlib.Path
            The file.

        """
        return self.study.download_artifact(self.number, name, path)

    def delete_artifact(self, name: str) -> None:
        """Delete a file of the trial. See `Study.delete_artifact`."""
        self.study.delete_artifact(self.number, name)

    def __enter__(self) -> Trial:
        heartbeats.add(self._held, self._lease or LEASE, now=self._lease is None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        e: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        held = self._held
        heartbeats.remove(held)
        if held.told:
            return isinstance(e, TrialPruned)
        try:
            held.tell(held.outcome_of(e))
        except _errors.AlreadyTold:
            if e is None or isinstance(e, TrialPruned):
                return e is not None
        except _errors.Error as failure:
            if e is None or isinstance(e, TrialPruned):
                raise
            log.warning("trial %d could not be told, %s", self.number, failure)
        return isinstance(e, TrialPruned)
