"""Studies."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _errors
from ._codec import (
    JSON,
    decode_duration,
    dumps,
    encode_attributes,
    encode_duration,
    encode_int,
    encode_value,
    integer,
)
from ._errors import InvalidRequest
from ._goals import MARK, Goals, Reason, State
from ._space import Space, same
from ._transport import FIRST_PAUSE, LONGEST_PAUSE, Failure, new_request_id
from ._trial import LEASE, Trial
from ._views import Diagnosis, Event, StudyStatus, TrialView, last_epoch

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import optuna

    from ._client import Client
    from ._optimize import Catch, Run

log = logging.getLogger("bkb")

# Settings of a study by their names on the wire.
SETTINGS = {
    "maxTrials": "max_trials",
    "maxCost": "max_cost",
    "maxRetries": "max_retries",
    "timeout": "timeout",
    "lease": "lease",
    "seed": "seed",
    "proposer": "proposer",
    "pruner": "pruner",
}

TRIALS_PER_MESSAGE = 500
BYTES_PER_MESSAGE = 900_000  # of the server's limit of 1 MiB

AnyState = Literal["queued", "running", "completed", "failed", "infeasible", "pruned"]
Callback = Callable[["Study", TrialView], None]
NewTrial = Mapping[str, Any] | TrialView


def is_root(message: JSON) -> bool:
    """Tell whether a study is the first of a series, see `_define`."""
    return MARK in message.get("attributes", {})


class Study:
    """A study on a server or in a file. It can be used by many threads and pickled.

    Attributes
    ----------
    name : str
        Name of the study.
    space : Space
        Search space.
    objective_names : tuple of str
        Names of the objectives, in order.
    directions : tuple of str
        ``"minimize"`` or ``"maximize"`` for each objective.

    """

    def __init__(self, client: Client, message: JSON) -> None:
        spec = message["spec"]
        self.client = client
        self.name: str = message["name"].removeprefix("studies/")
        self.space = Space.from_json(spec["space"])
        self.goals = Goals.of(message)
        self.objective_names, self.directions = self.goals.names, self.goals.directions
        self._runs: list[Run] = []
        self._warned: set[str] = set()

    def __repr__(self) -> str:
        return f"Study({self.name!r})"

    def _repr_html_(self) -> str:
        from ._html import study_html

        return study_html(self)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_runs": []}

    @property
    def _parent(self) -> str:
        return f"studies/{self.name}"

    def check_same(self, goals: Goals, space: Mapping[str, Any] | None) -> None:
        """Refuse to continue this study with other objectives or another space."""
        mine, theirs = (list(zip(g.names, g.directions, strict=True)) for g in (self.goals, goals))
        if not (self.goals.ordered and goals.ordered):
            mine.sort()
            theirs.sort()
        if mine != theirs:
            raise _errors.StudyExists(
                f"study {self.name!r} exists with the objectives {mine}, not {theirs}, "
                "take another name"
            )
        typed = space is not None and all(hasattr(p, "to_json") for p in space.values())
        if space is None or not typed:
            return
        given, stored = Space(space), self.space
        differ = [n for n in given if n not in stored or not same(given[n], stored[n])]
        differ += [n for n in stored if n not in given]
        if isinstance(space, Space) and space.constraints != stored.constraints:
            differ.append("constraints")
        if differ:
            raise _errors.StudyExists(
                f"study {self.name!r} exists with another search space, "
                f"{', '.join(map(repr, differ))} differ, take another name"
            )

    def warn(self, warnings: Iterable[JSON]) -> None:
        """Log warnings about the search space."""
        for w in warnings:
            where = f"parameter {w['parameter']!r}" if w.get("parameter") else "the search space"
            advice = ", ".join(t for t in (w["message"], w.get("remedy")) if t)
            log.warning("%s of study %s, %s", where, self.name, advice)

    def warn_once(self, kind: str, text: str) -> None:
        """Log a warning if this object logged none of the kind before."""
        if kind not in self._warned:
            self._warned.add(kind)
            log.warning("study %s, %s", self.name, text)

    def warn_of_others(self, given: JSON) -> None:
        """Log which settings of a specification differ from those of this study.

        Settings that are left out or 0 are not compared, nor are attributes.
        """
        spec, differ = self.spec(), []
        for key, name in SETTINGS.items():
            wanted, has = given.get(key), spec.get(key)
            if key in ("timeout", "lease") and wanted:
                wanted, has = decode_duration(wanted), decode_duration(has or "0s")
            if isinstance(wanted, dict):
                wanted, has = _components(wanted, has or {})
            if wanted not in (None, 0, "0") and wanted != has:
                differ.append(f"{name} {has or 0}, not {wanted}")
        if differ:
            log.warning(
                "study %s exists and keeps its settings, which are %s", self.name, ", ".join(differ)
            )

    # What a study is now.

    def _get(self) -> JSON:
        return self.client.transport.call("GetStudy", {"name": self._parent})

    def spec(self) -> JSON:
        """Return what the study was created with, in the form of the wire."""
        spec: JSON = self._get()["spec"]
        return spec

    @property
    def status(self) -> StudyStatus:
        """The state of the study and the number of its trials."""
        return StudyStatus.decode(self._get())

    def pause(self) -> None:
        """Hand out no trials for now."""
        self.client.transport.call("PauseStudy", {"name": self._parent}, writes=True)

    def resume(self) -> None:
        """Hand out trials again."""
        self.client.transport.call("ResumeStudy", {"name": self._parent}, writes=True)

    def finish(self, detail: str = "") -> None:
        """End the study for good. Running trials may still be told."""
        request = {"name": self._parent, "detail": detail}
        self.client.transport.call("FinishStudy", request, writes=True)

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes of the study. An empty text removes one."""
        self.client.set_attributes(self._parent, attributes)

    def diagnosis(self) -> Diagnosis:
        """Return the state of the proposer's model."""
        answer = self.client.transport.call("GetDiagnosis", {"parent": self._parent})
        return Diagnosis.decode(answer)

    # Trials to run.

    @overload
    def ask(self, count: None = None, *, worker: str = "", lease: float | None = None) -> Trial: ...
    @overload
    def ask(
        self, count: int | Literal["auto"], *, worker: str = "", lease: float | None = None
    ) -> list[Trial]: ...
    def ask(
        self,
        count: int | Literal["auto"] | None = None,
        *,
        worker: str = "",
        lease: float | None = None,
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

        Raises
        ------
        StudyFinished
            The study hands out no more trials.
        NoTrialNow
            All trials are handed out and some still run.
        StudyPaused
            The study is paused.

        """
        request: JSON = {"parent": self._parent}
        if count == "auto":
            request["autoCount"] = True
        elif count is not None:
            request["count"] = integer(count, "count", 1, 2**31 - 1)
        if worker:
            request["worker"] = worker
        if lease is not None:
            request["lease"] = encode_duration(lease, "lease")
        request["requestId"] = new_request_id()
        try:
            answer = self.client.transport.call("Ask", request, writes=True)
        except KeyboardInterrupt:
            if not worker:  # a named worker gets the trials back
                self._return(request)
            raise
        for text in answer.get("warnings", []):  # the server repeats them at each ask
            self.warn_once(text, text)
        trials = [self.make_trial(m, lease) for m in answer["trials"]]
        return trials[0] if count is None else trials

    def _return(self, request: JSON) -> None:
        """Cancel the trials of an ask whose answer did not arrive.

        The same request has the same answer. If it did not arrive either, it hands out
        trials now, which are cancelled too.
        """
        try:
            answer = self.client.transport.call("Ask", request, writes=True, retry_for=1.0)
            for m in answer["trials"]:
                trial = self.make_trial(m, None)
                trial.tell(state="failed", reason="cancelled", message="the ask was interrupted")
        except _errors.StudyFinished:
            pass
        except _errors.Error as e:
            log.warning("a trial may run until its lease ends, %s", e)

    def make_trial(self, message: JSON, lease: float | None) -> Trial:
        """Return the trial of a message."""
        return Trial(self, message, lease)

    def tell(
        self,
        trial: Trial | int,
        value: Any = None,
        *,
        state: State | None = None,
        reason: Reason | None = None,
        message: str = "",
        std_err: Any = None,
        cost: float | None = None,
        attributes: Mapping[str, Any] | None = None,
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
        outcome = self.goals.outcome(
            value,
            state=state,
            reason=reason,
            message=message,
            std_err=std_err,
            cost=cost,
            attributes=attributes,
        )
        if isinstance(trial, Trial):
            return trial.tell_outcome(outcome)
        return self.tell_outcome(trial, 0, outcome)

    def tell_outcome(self, trial: int, epoch: int, outcome: JSON) -> TrialView:
        """Tell an outcome in the form of the wire."""
        request = {
            "name": self._trial_name(trial),
            "epoch": encode_int(epoch),
            "outcome": outcome,
        }
        answer = self.client.transport.call("Tell", request, writes=True)
        if answer.get("late"):
            log.warning(
                "trial %d of %s was handed to another worker, the outcome is a late result",
                trial,
                self.name,
            )
        return self._view(answer["trial"])

    def _view(self, m: JSON) -> TrialView:
        return TrialView.decode(m, self.objective_names)

    def _trial_name(self, number: int) -> str:
        return f"{self._parent}/trials/{number}"

    def encode_config(self, params: Mapping[str, Any]) -> dict[str, JSON]:
        """Return parameters in the form of the wire."""
        config = {}
        for name, value in params.items():
            if name not in self.space:
                has = ", ".join(self.space) or "no parameters yet"
                raise InvalidRequest(f"parameter {name!r} is not in the space, which has {has}")
            config[name] = encode_value(self.space[name].coerce(value), name)
        return config

    def enqueue(
        self, params: Mapping[str, Any], *, attributes: Mapping[str, Any] | None = None
    ) -> TrialView:
        """Put a configuration in the queue, which is handed out before others."""
        request = {
            "parent": self._parent,
            "config": self.encode_config(params),
            "attributes": encode_attributes(attributes),
        }
        answer = self.client.transport.call("EnqueueTrial", request, writes=True)
        return self._view(answer)

    def add_trials(self, trials: Iterable[NewTrial]) -> list[int]:
        """Add finished trials that ran elsewhere, and return their numbers.

        Parameters
        ----------
        trials : iterable of dict or TrialView
            Each dict has ``params``, and further the arguments of `tell`, which are
            ``value``, ``state``, ``reason``, ``message``, ``std_err``, ``cost`` and
            ``attributes``, and ``reports``, a dict from steps to values.

        """
        if isinstance(trials, (Mapping, TrialView)):
            raise InvalidRequest("trials is one trial, give a list of trials")
        return self.add_encoded(self.encode_new(trial) for trial in trials)

    def add_encoded(self, messages: Iterable[JSON]) -> list[int]:
        """Add trials in the form of the wire, and return their numbers."""
        numbers: list[int] = []
        batch: list[JSON] = []
        size = 0
        for m in messages:
            bytes_ = len(dumps(m)) + 1
            if batch and (len(batch) == TRIALS_PER_MESSAGE or size + bytes_ > BYTES_PER_MESSAGE):
                numbers += self._add(batch, len(numbers))
                batch, size = [], 0
            batch.append(m)
            size += bytes_
        if batch:
            numbers += self._add(batch, len(numbers))
        return numbers

    def _add(self, batch: list[JSON], before: int) -> list[int]:
        request = {"parent": self._parent, "trials": batch}
        try:
            answer = self.client.transport.call_identified("AddTrials", request)
        except _errors.Error as e:
            for d in e.details:
                if "index" in d.get("metadata", {}):
                    d["metadata"]["index"] = str(int(d["metadata"]["index"]) + before)
            raise
        return [int(n) for n in answer["numbers"]]

    def encode_new(self, trial: NewTrial) -> JSON:
        """Return a trial to add in the form of the wire."""
        if isinstance(trial, TrialView):
            trial = as_dict(trial)
        known = {"params", "value", "state", "reason", "message", "std_err", "cost"}
        unknown = set(trial) - known - {"attributes", "reports"}
        if unknown or "params" not in trial:
            raise InvalidRequest(
                f"a trial to add has the keys {', '.join(trial)}, give params and some of "
                f"{', '.join(sorted(known - {'params'}))}, attributes, reports"
            )
        told = {k: trial[k] for k in known - {"params"} if k in trial}
        m: JSON = {
            "requestId": new_request_id(),
            "config": self.encode_config(trial["params"]),
            "outcome": self.goals.outcome(**told),
            "attributes": encode_attributes(trial.get("attributes")),
        }
        reports = []
        for step, value in trial.get("reports", {}).items():
            reports.append({"step": encode_int(int(step)), "values": self.goals.report(value)})
        if reports:
            m["reports"] = reports
        return m

    # Trials that are there.

    def trial(self, number: int, *, reports: bool = True) -> TrialView:
        """Return a trial by its number."""
        view = "TRIAL_VIEW_FULL" if reports else "TRIAL_VIEW_BASIC"
        name = self._trial_name(number)
        m = self.client.transport.call("GetTrial", {"name": name, "view": view})
        if "reports" in m.get("omitted", []) and reports:
            m["reports"] = [
                r
                for page in self.client.pages("ListReports", {"parent": name})
                for r in page.get("reports", [])
            ]
            m["omitted"].remove("reports")
        return self._view(m)

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
        request: JSON = {
            "parent": self._parent,
            "states": ["TRIAL_STATE_" + s.upper() for s in states],
            "worker": worker,
        }
        if reports:
            request["view"] = "TRIAL_VIEW_FULL"
        for page in self.client.pages("ListTrials", request):
            for m in page.get("trials", []):
                view = self._view(m)
                if reports and "reports" in view.omitted:
                    view = self.trial(view.number)
                yield view

    @property
    def trials(self) -> list[TrialView]:
        """All trials in order of number."""
        return list(self.iter_trials())

    def _best(self) -> list[TrialView]:
        return [
            self._view(m)
            for page in self.client.pages("GetBest", {"parent": self._parent})
            for m in page.get("trials", [])
        ]

    @property
    def best_trial(self) -> TrialView:
        """The trial that the study recommends."""
        if len(self.objective_names) > 1:
            raise InvalidRequest(
                f"study {self.name!r} has {len(self.objective_names)} objectives, use pareto_front"
            )
        best = self._best()
        if not best:
            raise _errors.NotFound(f"study {self.name!r} has no completed trial yet")
        broken = self.goals.broken(best[0].metrics)
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
        return self._best()

    def to_dataframe(self, backend: Literal["pandas", "polars"] = "pandas") -> Any:
        """Return a data frame with a row for each trial.

        Parameters
        ----------
        backend : str
            ``"pandas"`` or ``"polars"``, which must be installed.

        """
        from ._frame import to_dataframe

        return to_dataframe(self, backend)

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

        return to_optuna(self, storage, study_name)

    def watch(self, after: int = 0, *, until_finished: bool = False) -> Iterator[Event]:
        """Yield what happens in the study, and wait for more.

        Parameters
        ----------
        after : int
            Position of the last event that you know, 0 for all events.
        until_finished : bool
            Whether to end when the study has finished.

        """
        transport = self.client.transport
        parent, position, uid, pause = self._parent, after, "0", FIRST_PAUSE
        until = time.monotonic() + transport.retry_for
        while not (until_finished and self._quiet(position)):
            request = {"parent": parent, "after": encode_int(position), "uid": uid}
            try:
                for m in transport.stream("Watch", request):
                    uid = m.get("uid", "0")
                    event = Event.decode(m, self._view)
                    position, pause = event.position, FIRST_PAUSE
                    yield event
                    until = time.monotonic() + transport.retry_for
                    finished = until_finished and event.study_state == "finished"
                    if finished and self._quiet(position):
                        return
                return
            except Failure as f:
                if not f.retryable() or time.monotonic() > until:
                    raise f.error() from f.__cause__
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _quiet(self, position: int) -> bool:
        """Tell whether no more events are expected after a position."""
        s = self.status
        return s.state == "finished" and s.running == 0 and position >= s.position

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
    ) -> None:
        """Run trials until the study finishes.

        Parameters
        ----------
        objective : callable
            Function of a `Trial` that returns what `tell` takes as a value. It raises
            `TrialPruned` to end a trial early.
        n_trials : int, optional
            Trials that this call runs at most.
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

        """
        from ._optimize import Run

        run = Run(
            self,
            objective,
            n_trials=n_trials,
            timeout=timeout,
            catch=catch,
            callbacks=callbacks,
            lease=lease,
            executor=executor,
            show_progress_bar=show_progress_bar,
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


def as_dict(view: TrialView) -> dict[str, Any]:
    """Return a finished trial as a trial to add."""
    if view.state in ("queued", "running"):
        raise InvalidRequest(f"trial {view.number} is {view.state}, add trials that are over")
    trial: dict[str, Any] = {
        "params": view.params,
        "state": view.state,
        "message": view.message,
        "std_err": dict(view.std_errs),
        "attributes": view.attributes,
        "reports": {r.step: r.values for r in last_epoch(view.reports)},
    }
    if view.metrics:
        trial["value"] = view.metrics
    if view.cost:
        trial["cost"] = view.cost
    if view.reason:
        trial["reason"] = "cancelled" if view.reason == "expired" else view.reason
    return trial


def _components(given: JSON, stored: JSON) -> tuple[str, str]:
    """Return the names of two components, and the given options that differ.

    Other options have their defaults.
    """
    wanted, has = (json.loads(c.get("options") or "{}") for c in (given, stored))
    keys = [k for k in wanted if wanted[k] != has.get(k)]
    names = given["name"], stored.get("name", "none")
    if not keys or names[0] != names[1]:
        return names
    options = ({k: o.get(k) for k in keys} for o in (wanted, has))
    first, second = (f"{n} {json.dumps(o)}" for n, o in zip(names, options, strict=True))
    return first, second
