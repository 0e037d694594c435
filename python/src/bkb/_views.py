"""Frozen records of what the server answers. They know no connection."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from ._codec import (
    JSON,
    decode_attribute,
    decode_config,
    decode_float,
    decode_metrics,
    decode_time,
    encode_attributes,
    encode_int,
)
from ._errors import InvalidRequest
from ._goals import Goals
from ._space import Space, encode_config

T = TypeVar("T", bound="_Record")

# How an attribute of each type is read, and what it is if the field is missing.
_READERS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "int": (int, 0),
    "float": (decode_float, 0.0),
    "str": (str, ""),
    "bool": (bool, False),
    "tuple[str, ...]": (tuple, ()),
    "tuple[float, ...]": (lambda v: tuple(map(decode_float, v)), ()),
    "Mapping[str, float]": (lambda v: {n: decode_float(x) for n, x in v.items()}, {}),
    "Mapping[str, Any]": (lambda v: {n: decode_attribute(x) for n, x in v.items()}, {}),
    "datetime | None": (decode_time, None),
}


def word(name: str, prefix: str) -> str:
    """Return the word of an enum value, empty for the zero value."""
    word = name.removeprefix(prefix).lower()
    return "" if word == "unspecified" else word


class _Record:
    """A message whose fields have the names of the attributes."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        _READERS[f"{cls.__name__} | None"] = cls.decode, None
        _READERS[f"tuple[{cls.__name__}, ...]"] = lambda v: tuple(map(cls.decode, v)), ()

    @classmethod
    def decode(cls: type[T], m: JSON) -> T:
        """Read a message."""
        return cls(**{n: read(m[k]) if k in m else empty for n, k, read, empty in _fields(cls)})  # type: ignore[arg-type]


@cache
def _fields(cls: type[_Record]) -> list[tuple[str, str, Callable[[Any], Any], Any]]:
    """Return each attribute, its field, and how it is read."""
    found = []
    for f in fields(cls):  # type: ignore[arg-type]
        first, *rest = f.name.rstrip("_").split("_")
        read, empty = _READERS[str(f.type)]
        found.append((f.name, first + "".join(map(str.capitalize, rest)), read, empty))
    return found


@dataclass(frozen=True, slots=True)
class Suggestion(_Record):
    """What the proposer predicted when it made a configuration.

    The lists have one number for each objective, and are empty without a model.
    """

    phase: str
    seen: int
    mean: tuple[float, ...]
    std_dev: tuple[float, ...]
    bound: tuple[float, ...]
    beta: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Report(_Record):
    """Intermediate values at a step."""

    step: int
    values: Mapping[str, float]
    epoch: int


def last_epoch(reports: Sequence[Report]) -> list[Report]:
    """Return the reports of the last time that a trial was started."""
    last = max((r.epoch for r in reports), default=0)
    return [r for r in reports if r.epoch == last]


@dataclass(frozen=True, slots=True, repr=False)
class TrialView:
    """A trial as it stood when the server answered.

    Attributes
    ----------
    state : str
        queued, running, completed, failed, infeasible or pruned.
    metrics : dict
        Values of each metric, several for replicates.
    reason : str
        Why a trial failed: crash, expired, cancelled or nan.
    message : str
        Text for people, such as the exception that ended the trial.
    feasible : bool or None
        Whether the trial is not infeasible and its metrics keep their limits. None if the trial
        has neither completed nor was told as infeasible.
    attributes : dict
        Notes, as JSON reads them, or texts.
    omitted : tuple of str
        Fields that are not whole because the answer would be too large.

    """

    number: int
    state: str
    params: Mapping[str, Any]
    objectives: tuple[str, ...]
    metrics: Mapping[str, list[float]]
    std_errs: Mapping[str, float]
    feasible: bool | None
    reason: str
    message: str
    cost: float
    attributes: Mapping[str, Any]
    origin: str
    epoch: int
    worker: str
    suggestion: Suggestion | None
    created: datetime | None
    started: datetime | None
    ended: datetime | None
    lease_deadline: datetime | None
    omitted: tuple[str, ...]
    # The reports, or what loads them.
    _reports: tuple[Report, ...] | Callable[[], tuple[Report, ...]] = field(compare=False)

    def __repr__(self) -> str:
        state = f"{self.state} ({self.reason})" if self.reason else self.state
        values = self.values or ()
        told = [f"{n}={v:.6g}" for n, v in zip(self.objectives, values, strict=False)]
        return f"TrialView({', '.join([str(self.number), state, *told])}, {dict(self.params)!r})"

    @property
    def reports(self) -> tuple[Report, ...]:
        """Intermediate values, which a call to the server loads when you first look."""
        if callable(self._reports):
            object.__setattr__(self, "_reports", self._reports())
        assert not callable(self._reports)
        return self._reports

    @property
    def values(self) -> tuple[float, ...] | None:
        """Value of each objective, the mean of replicates, or None without an outcome."""
        if not all(self.metrics.get(name) for name in self.objectives):
            return None
        return tuple(_mean(self.metrics[name]) for name in self.objectives)

    @property
    def value(self) -> float | None:
        """Value of the first objective, or None without an outcome."""
        values = self.values
        return None if values is None else values[0]

    @property
    def duration(self) -> float | None:
        """Seconds from start to end, or None if the trial is not over."""
        if self.started is None or self.ended is None:
            return None
        return (self.ended - self.started).total_seconds()

    @classmethod
    def decode(
        cls, m: JSON, goals: Goals, load: Callable[[], tuple[Report, ...]] | None = None
    ) -> TrialView:
        """Read a message. If it lacks reports, load gets them."""
        outcome = m.get("outcome", {})
        state = word(m.get("state", ""), "TRIAL_STATE_")
        metrics = outcome.get("metrics", {})
        values = decode_metrics(metrics)
        feasible = None if state not in ("completed", "infeasible") else state == "completed"
        # What was told wins over what was set before.
        attributes = {**m.get("attributes", {}), **outcome.get("attributes", {})}
        return cls(
            number=int(m.get("number", 0)),
            state=state,
            params=decode_config(m.get("config", {})),
            objectives=goals.names,
            metrics=values,
            std_errs={n: decode_float(v["stdErr"]) for n, v in metrics.items() if "stdErr" in v},
            feasible=feasible and not goals.broken(values),
            reason=word(outcome.get("reason", ""), "FAIL_REASON_"),
            message=outcome.get("message", ""),
            cost=decode_float(outcome.get("cost", 0.0)),
            attributes={n: decode_attribute(v) for n, v in attributes.items()},
            origin=word(m.get("origin", ""), "ORIGIN_"),
            epoch=int(m.get("epoch", 0)),
            worker=m.get("worker", ""),
            suggestion=Suggestion.decode(m["suggestion"]) if "suggestion" in m else None,
            created=decode_time(m.get("createTime")),
            started=decode_time(m.get("startTime")),
            ended=decode_time(m.get("endTime")),
            lease_deadline=decode_time(m.get("leaseDeadline")),
            omitted=tuple(m.get("omitted", [])),
            _reports=load or tuple(map(Report.decode, m.get("reports", []))),
        )


def _mean(values: Sequence[float]) -> float:
    return values[0] if len(values) == 1 else math.fsum(values) / len(values)


NewTrial = Mapping[str, Any] | TrialView


def check_over(view: TrialView) -> None:
    """Refuse a trial that may still run."""
    if view.state in ("queued", "running"):
        raise InvalidRequest(f"trial {view.number} is {view.state}, add trials that are over")


def as_dict(view: TrialView) -> dict[str, Any]:
    """Return a finished trial as a trial to add."""
    check_over(view)
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


def encode_new(space: Space, goals: Goals, trial: NewTrial) -> JSON:
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
        "requestId": os.urandom(16).hex(),
        "config": encode_config(space, trial["params"]),
        "outcome": goals.outcome(**told),
        "attributes": encode_attributes(trial.get("attributes")),
    }
    reports = trial.get("reports", {})
    if reports:
        m["reports"] = [
            {"step": encode_int(int(step)), "values": goals.report(value)}
            for step, value in reports.items()
        ]
    return m


@dataclass(frozen=True, slots=True, repr=False)
class Artifact(_Record):
    """A file of a trial on the server's disk, such as a model.

    Attributes
    ----------
    file : str
        Its name.
    size : int
        In bytes.
    sha256 : str
        Checksum of its content.
    modify_time : datetime
        When it was stored.

    Examples
    --------
    >>> study = bkb.create_study("files", {"x": bkb.Float(0, 1)}, minimize="loss")
    >>> study.ask().upload_artifact(bkb.__file__, "code.py").file
    'code.py'

    """

    file: str
    size: int
    sha256: str
    modify_time: datetime | None


@dataclass(frozen=True, slots=True, repr=False)
class StudyStatus(_Record):
    """A study as it stood when the server answered.

    Attributes
    ----------
    state : str
        active, paused, finished, or unread.
    finish_reason : str
        max_trials, time, cost, gap, exhausted, user, target or patience.
    queued, running, completed, failed, infeasible, pruned : int
        Trials by state. Of a study with constraints, infeasible has the completed trials that
        break one, too.
    added : int
        Trials that ran elsewhere.
    counted : int
        Trials that count towards max_trials, which added and cancelled ones do not.
    unread : str
        Why the server could not read the study. The other attributes but name are
        empty then.

    """

    name: str
    state: str
    finish_reason: str
    finish_detail: str
    position: int
    queued: int
    running: int
    completed: int
    failed: int
    infeasible: int
    pruned: int
    added: int
    counted: int
    cost: float
    max_trials: int
    attributes: Mapping[str, Any]
    created: datetime | None
    unread: str

    def __repr__(self) -> str:
        states = ("queued", "running", "completed", "failed", "infeasible", "pruned")
        counts = [f"{getattr(self, s)} {s}" for s in states if getattr(self, s)]
        return f"StudyStatus({self.name!r}, {', '.join([self.state, *counts])})"

    @classmethod
    def of(cls, m: JSON) -> StudyStatus:
        """Read a message about a study."""
        return cls.decode(
            {
                **m,
                "name": m["name"].removeprefix("studies/"),
                "state": "unread" if m.get("unread") else word(m["state"], "STUDY_STATE_"),
                "finishReason": word(m.get("finishReason", ""), "FINISH_REASON_"),
                "maxTrials": m.get("spec", {}).get("maxTrials", 0),
                "created": m.get("createTime"),
            }
        )

    @property
    def begun(self) -> int:
        """Number of trials that were handed out."""
        over = self.completed + self.failed + self.infeasible + self.pruned
        return self.running + over - self.added


@dataclass(frozen=True)
class StudyRecord:
    """A study of the server, without what changes while it runs."""

    name: str
    uid: str
    space: Space
    goals: Goals
    spec: JSON
    attributes: Mapping[str, str]

    @classmethod
    def of(cls, m: JSON) -> StudyRecord:
        """Read a message about a study."""
        return cls(
            name=m["name"].removeprefix("studies/"),
            uid=str(m["uid"]),
            space=Space.from_json(m["spec"]["space"]),
            goals=Goals.of(m),
            spec=m["spec"],
            attributes=m.get("attributes", {}),
        )


@dataclass(frozen=True, slots=True)
class LimitedMetric(_Record):
    """Model of a metric with a limit.

    Attributes
    ----------
    results, broken : int
        Results that have the metric, and those of them that break the limit.
    noise : float
        Standard deviation of repeated measurements, 0 without a model.

    """

    metric: str
    results: int
    broken: int
    noise: float


@dataclass(frozen=True, slots=True)
class InducingPointStep(_Record):
    """One step of the path on which bless drew the inducing points."""

    lambda_: float
    inducing_points: int
    effective_dimension: float


@dataclass(frozen=True, slots=True)
class InducingPointDraw(_Record):
    """How the inducing points were drawn.

    Attributes
    ----------
    sampler : str
        all, rls, bless or uniform.
    lambda_ : float
        Regularisation per sample at which the draw ended, 0 for all.
    rows, rows_read : int
        Rows of the history, which are outcomes and reports, and how many were read.
    path : tuple of InducingPointStep
        Path of bless, from coarse to fine.

    """

    sampler: str
    lambda_: float
    rows: int
    rows_read: int
    path: tuple[InducingPointStep, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis(_Record):
    """State of the model of a study's proposer.

    Without a model only ``state`` and ``missing_results`` tell something.

    Attributes
    ----------
    state : str
        none, waiting, at_next_ask or ready.
    missing_results : int
        How many more results a model needs, while it is waiting.
    position, event_results : int
        Position of the event that made the model, and number of results in it.
    length_scales : dict of str to float
        Length scale of each ordered parameter, as a part of its range.
    prior_mean : float
        Mean that the objective has far from all results.
    covered, predicted : int
        Number of the last outcomes that are within the 95 % interval predicted for them,
        and of how many.
    calibration : float
        Factor of these intervals with which 95 % of the outcomes would have been inside.
    outliers : int
        Results that the model leaves out, because their neighbours are far better.
    idle : int
        Results since the last improvement.
    stuck : bool
        Whether the largest bound gains next to nothing on the best, so that suggestions look
        for other basins.
    failures : int
        Results that are infeasible, crashed or NaN. Crashes do not count with
        ``failures=ignore``.
    avoids_failures : bool
        Whether suggestions avoid places like theirs. They do while the parameters predict
        failures better than a constant rate does, and always if a trial was told as
        infeasible.
    metrics : tuple of LimitedMetric
        Models of the metrics with a limit.
    draw : InducingPointDraw, optional
        How the inducing points were drawn.

    """

    results: int
    inducing_points: int
    capped: bool
    effective_dimension: float
    information_gain: float
    noise: float
    beta: float
    theory_beta: float
    gap: float
    warnings: tuple[str, ...]
    covered: int = 0
    predicted: int = 0
    calibration: float = 0.0
    outliers: int = 0
    idle: int = 0
    stuck: bool = False
    failures: int = 0
    avoids_failures: bool = False
    state: str = ""
    missing_results: int = 0
    position: int = 0
    event_results: int = 0
    length_scales: Mapping[str, float] = field(default_factory=dict)
    prior_mean: float = 0.0
    metrics: tuple[LimitedMetric, ...] = ()
    draw: InducingPointDraw | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """What happened in a study.

    Attributes
    ----------
    position : int
        Position in the study's log. Give it to ``watch`` to continue after it.
    event : str
        One word, such as started, told or expired.
    study_state, trial
        As they are when the event is sent, which may be later than the event.

    """

    position: int
    time: datetime | None
    event: str
    study_state: str
    trial: TrialView | None

    @classmethod
    def decode(cls, m: JSON, goals: Goals) -> Event:
        """Read a message."""
        return cls(
            int(m.get("position", 0)),
            decode_time(m.get("time")),
            m.get("event", ""),
            word(m.get("studyState", ""), "STUDY_STATE_"),
            TrialView.decode(m["trial"], goals) if "trial" in m else None,
        )
