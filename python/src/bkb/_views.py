"""Frozen views of what the server answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ._codec import (
    JSON,
    ParamValue,
    decode_config,
    decode_float,
    decode_metrics,
    decode_time,
)


def _word(name: str, prefix: str) -> str:
    """Return the word of an enum value, empty for the zero value."""
    word = name.removeprefix(prefix).lower()
    return "" if word == "unspecified" else word


def state_word(name: str) -> str:
    """Return the word of a trial's state."""
    return _word(name, "TRIAL_STATE_")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What the proposer predicted when it made a configuration.

    The lists have one number for each objective, and are empty without a model.
    """

    phase: str
    seen: int
    mean: tuple[float, ...]
    std_dev: tuple[float, ...]
    bound: tuple[float, ...]
    beta: tuple[float, ...]

    @classmethod
    def decode(cls, m: JSON) -> Suggestion:
        """Read a message."""

        def floats(name: str) -> tuple[float, ...]:
            return tuple(decode_float(v) for v in m.get(name, []))

        return cls(
            m.get("phase", ""),
            int(m.get("seen", 0)),
            floats("mean"),
            floats("stdDev"),
            floats("bound"),
            floats("beta"),
        )


@dataclass(frozen=True, slots=True)
class Report:
    """Intermediate values at a step."""

    step: int
    values: Mapping[str, float]
    epoch: int

    @classmethod
    def decode(cls, m: JSON) -> Report:
        """Read a message."""
        values = {name: decode_float(v) for name, v in m.get("values", {}).items()}
        return cls(int(m.get("step", 0)), values, int(m.get("epoch", 0)))


def last_epoch(reports: Sequence[Report]) -> list[Report]:
    """Return the reports of the last time that a trial was started."""
    last = max((r.epoch for r in reports), default=0)
    return [r for r in reports if r.epoch == last]


@dataclass(frozen=True, slots=True)
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
    omitted : tuple of str
        Fields that are not whole because the answer would be too large.

    """

    number: int
    state: str
    params: Mapping[str, ParamValue]
    objectives: tuple[str, ...]
    metrics: Mapping[str, list[float]]
    std_errs: Mapping[str, float]
    reason: str
    message: str
    cost: float
    attributes: Mapping[str, str]
    origin: str
    epoch: int
    worker: str
    suggestion: Suggestion | None
    reports: tuple[Report, ...]
    created: datetime | None
    started: datetime | None
    ended: datetime | None
    lease_deadline: datetime | None
    omitted: tuple[str, ...]

    @property
    def values(self) -> tuple[float, ...] | None:
        """Value of each objective, the mean of replicates, or None without an outcome."""
        if not all(self.metrics.get(name) for name in self.objectives):
            return None
        means = (self.metrics[name] for name in self.objectives)
        return tuple(m[0] if len(m) == 1 else math.fsum(m) / len(m) for m in means)

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
    def decode(cls, m: JSON, objectives: tuple[str, ...]) -> TrialView:
        """Read a message."""
        outcome = m.get("outcome", {})
        metrics = outcome.get("metrics", {})
        # What was told wins over what was set before.
        attributes = {**m.get("attributes", {}), **outcome.get("attributes", {})}
        return cls(
            number=int(m.get("number", 0)),
            state=state_word(m.get("state", "")),
            params=decode_config(m.get("config", {})),
            objectives=objectives,
            metrics=decode_metrics(metrics),
            std_errs={n: decode_float(v["stdErr"]) for n, v in metrics.items() if "stdErr" in v},
            reason=_word(outcome.get("reason", ""), "FAIL_REASON_"),
            message=outcome.get("message", ""),
            cost=decode_float(outcome.get("cost", 0.0)),
            attributes=attributes,
            origin=_word(m.get("origin", ""), "ORIGIN_"),
            epoch=int(m.get("epoch", 0)),
            worker=m.get("worker", ""),
            suggestion=Suggestion.decode(m["suggestion"]) if "suggestion" in m else None,
            reports=tuple(Report.decode(r) for r in m.get("reports", [])),
            created=decode_time(m.get("createTime")),
            started=decode_time(m.get("startTime")),
            ended=decode_time(m.get("endTime")),
            lease_deadline=decode_time(m.get("leaseDeadline")),
            omitted=tuple(m.get("omitted", [])),
        )


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """A study as it stood when the server answered.

    Attributes
    ----------
    state : str
        active, paused, finished, or unread.
    finish_reason : str
        max_trials, time, cost, gap, exhausted or user.
    queued, running, completed, failed, infeasible, pruned : int
        Trials by state.
    added : int
        Trials that ran elsewhere. They do not count towards max_trials.
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
    cost: float
    max_trials: int
    attributes: Mapping[str, str]
    created: datetime | None
    unread: str

    @classmethod
    def decode(cls, m: JSON) -> StudyStatus:
        """Read a message."""
        counts: dict[str, Any] = {
            k: int(m.get(k, 0))
            for k in (
                "position",
                "queued",
                "running",
                "completed",
                "failed",
                "infeasible",
                "pruned",
                "added",
            )
        }
        return cls(
            name=m["name"].removeprefix("studies/"),
            state="unread" if m.get("unread") else _word(m.get("state", ""), "STUDY_STATE_"),
            finish_reason=_word(m.get("finishReason", ""), "FINISH_REASON_"),
            finish_detail=m.get("finishDetail", ""),
            cost=decode_float(m.get("cost", 0.0)),
            max_trials=int(m.get("spec", {}).get("maxTrials", 0)),
            attributes=dict(m.get("attributes", {})),
            created=decode_time(m.get("createTime")),
            unread=m.get("unread", ""),
            **counts,
        )


@dataclass(frozen=True, slots=True)
class LimitedMetric:
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

    @classmethod
    def decode(cls, m: JSON) -> LimitedMetric:
        """Read a message."""
        return cls(
            m.get("metric", ""),
            int(m.get("results", 0)),
            int(m.get("broken", 0)),
            decode_float(m.get("noise", 0.0)),
        )


@dataclass(frozen=True, slots=True)
class InducingPointStep:
    """One step of the path on which bless drew the inducing points."""

    lambda_: float
    inducing_points: int
    effective_dimension: float

    @classmethod
    def decode(cls, m: JSON) -> InducingPointStep:
        """Read a message."""
        return cls(
            decode_float(m.get("lambda", 0.0)),
            int(m.get("inducingPoints", 0)),
            decode_float(m.get("effectiveDimension", 0.0)),
        )


@dataclass(frozen=True, slots=True)
class InducingPointDraw:
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

    @classmethod
    def decode(cls, m: JSON) -> InducingPointDraw:
        """Read a message."""
        return cls(
            m.get("sampler", ""),
            decode_float(m.get("lambda", 0.0)),
            int(m.get("rows", 0)),
            int(m.get("rowsRead", 0)),
            tuple(InducingPointStep.decode(s) for s in m.get("path", [])),
        )


@dataclass(frozen=True, slots=True)
class Diagnosis:
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
        Whether they are so many that suggestions look for other basins.
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
    length_scales: dict[str, float] = field(default_factory=dict)
    metrics: tuple[LimitedMetric, ...] = ()
    draw: InducingPointDraw | None = None

    @classmethod
    def decode(cls, m: JSON) -> Diagnosis:
        """Read a message."""

        def real(name: str) -> float:
            return decode_float(m.get(name, 0.0))

        return cls(
            results=int(m.get("results", 0)),
            inducing_points=int(m.get("inducingPoints", 0)),
            capped=bool(m.get("capped", False)),
            effective_dimension=real("effectiveDimension"),
            information_gain=real("informationGain"),
            noise=real("noise"),
            beta=real("beta"),
            theory_beta=real("theoryBeta"),
            gap=real("gap"),
            warnings=tuple(m.get("warnings", [])),
            covered=int(m.get("covered", 0)),
            predicted=int(m.get("predicted", 0)),
            calibration=real("calibration"),
            outliers=int(m.get("outliers", 0)),
            idle=int(m.get("idle", 0)),
            stuck=bool(m.get("stuck", False)),
            failures=int(m.get("failures", 0)),
            avoids_failures=bool(m.get("avoidsFailures", False)),
            state=_word(m.get("state", ""), "MODEL_STATE_"),
            missing_results=int(m.get("missingResults", 0)),
            position=int(m.get("position", 0)),
            event_results=int(m.get("eventResults", 0)),
            length_scales={k: decode_float(v) for k, v in m.get("lengthScales", {}).items()},
            metrics=tuple(LimitedMetric.decode(x) for x in m.get("metrics", [])),
            draw=InducingPointDraw.decode(m["draw"]) if "draw" in m else None,
        )


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
    def decode(cls, m: JSON, view: Callable[[JSON], TrialView]) -> Event:
        """Read a message."""
        return cls(
            int(m.get("position", 0)),
            decode_time(m.get("time")),
            m.get("event", ""),
            _word(m.get("studyState", ""), "STUDY_STATE_"),
            view(m["trial"]) if "trial" in m else None,
        )
