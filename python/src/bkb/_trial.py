"""A running trial."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _errors
from ._codec import (
    JSON,
    ParamValue,
    described,
    encode_attributes,
    encode_duration,
    encode_float,
    encode_int,
    integer,
    number,
    plain,
    said,
    text,
)
from ._errors import InvalidRequest, TrialPruned
from ._lease import heartbeats
from ._space import Categorical, Float, Int, Parameter, check, same_values
from ._views import TrialView

if TYPE_CHECKING:
    from ._study import Study

log = logging.getLogger("bkb")

LEASE = 60.0  # seconds, of a trial with heartbeats

STATES = ("completed", "failed", "infeasible", "pruned")
REASONS = ("crash", "cancelled", "nan")


def encode_metrics(value: Any, objectives: tuple[str, ...], std_err: Any = None) -> dict[str, JSON]:
    """Return metrics as the wire has them.

    value is a number, a sequence with a number for each objective, or a mapping from
    metrics to a number or to a sequence of replicates.
    """
    value = plain(value) if getattr(value, "ndim", 0) == 0 else list(value)
    if isinstance(value, Mapping):
        named = dict(value)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        if len(value) != len(objectives):
            raise InvalidRequest(
                f"value has {len(value)} numbers and the study has the objectives "
                f"{', '.join(objectives)}, give one number for each"
            )
        named = dict(zip(objectives, value, strict=True))
    elif value is None:
        raise InvalidRequest("value is None, return a number from the objective")
    elif len(objectives) != 1:
        raise InvalidRequest(
            f"value is {value!r} and the study has the objectives {', '.join(objectives)}, "
            "give a sequence or a dict with a number for each"
        )
    else:
        named = {objectives[0]: value}
    errors = std_err if isinstance(std_err, Mapping) else {objectives[0]: std_err}
    metrics: dict[str, JSON] = {}
    for name, v in named.items():
        many = v if isinstance(v, (list, tuple)) or getattr(v, "ndim", 0) == 1 else [v]
        m: JSON = {"values": [encode_float(number(x, f"value of {name}")) for x in many]}
        if errors.get(name) is not None:
            m["stdErr"] = encode_float(number(errors[name], f"std_err of {name}"))
        metrics[name] = m
    return metrics


def encode_outcome(
    objectives: tuple[str, ...],
    value: Any = None,
    *,
    state: str | None = None,
    reason: str | None = None,
    message: str = "",
    std_err: Any = None,
    cost: float | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> JSON:
    """Return an outcome as the wire has it. A NaN objective value makes the trial failed."""
    if state is None:
        state = "completed"
        if value is None:
            raise InvalidRequest("value is None, give a number or a state such as 'failed'")
    if state not in STATES:
        raise InvalidRequest(f"state is {state!r}, give one of {', '.join(STATES)}")
    if reason is not None and (state != "failed" or reason not in REASONS):
        raise InvalidRequest(
            f"reason is {reason!r} and state is {state!r}, only a failed trial has a reason, "
            f"one of {', '.join(REASONS)}"
        )
    metrics = {} if value is None else encode_metrics(value, objectives, std_err)
    nan = [n for n in objectives if "NaN" in metrics.get(n, {}).get("values", [])]
    if nan and state == "completed":
        state, reason = "failed", "nan"
        message = message or f"{', '.join(nan)} is NaN"
    metrics = {n: m for n, m in metrics.items() if "NaN" not in m["values"]}
    outcome: JSON = {"state": "TRIAL_STATE_" + state.upper()}
    if reason is not None:
        outcome["reason"] = "FAIL_REASON_" + reason.upper()
    if message:
        outcome["message"] = text(message)
    if metrics:
        outcome["metrics"] = metrics
    if cost is not None:
        outcome["cost"] = encode_float(number(cost, "cost"))
    if attributes:
        outcome["attributes"] = encode_attributes(attributes)
    return outcome


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
        Value of each active parameter. ``trial["lr"]`` is short for one.
    suggestion : Suggestion or None
        What the proposer predicted.

    """

    def __init__(self, study: Study, message: JSON, lease: float | None = None) -> None:
        view = TrialView.decode(message, study.objective_names)
        self.study = study
        self.number = self.place = view.number  # place is that in the server's study
        self.params: dict[str, ParamValue] = dict(view.params)
        self.suggestion = view.suggestion
        self.epoch = view.epoch
        self.worker = view.worker
        self.view = view
        self._lease = lease
        self._stop = False
        self._stop_reason = ""
        self._told = False

    def __getitem__(self, name: str) -> Any:
        return self.params[name]

    def __contains__(self, name: object) -> bool:
        return name in self.params

    def __repr__(self) -> str:
        return f"Trial({self.study.name!r}, {self.number}, {self.params!r})"

    def _repr_html_(self) -> str:
        from ._html import trial_html

        return trial_html(self)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_stop": False, "_stop_reason": ""}

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """Return the value of a parameter, as in Optuna.

        In a study without a declared search space this defines the parameter. In another
        one it must agree with the space.
        """
        low = number(low, f"low of parameter {name!r}")
        high = number(high, f"high of parameter {name!r}")
        return float(self._suggest(name, Float(low, high, step=plain(step), log=log)))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """Return the value of an integer parameter. See `suggest_float`."""
        low, high, step = plain(low), plain(high), plain(step)
        return int(self._suggest(name, Int(low, high, step=None if step == 1 else step, log=log)))

    def suggest_categorical(self, name: str, choices: Sequence[ParamValue]) -> Any:
        """Return the value of a categorical parameter. See `suggest_float`."""
        return self._suggest(name, Categorical([plain(v) for v in choices]))

    def _suggest(self, name: str, p: Parameter) -> Any:
        check(name, p)
        return self.suggest(name, p)

    def suggest(self, name: str, p: Parameter) -> Any:
        """Return the value of a parameter, which must agree with the search space."""
        known = self.study.space.get(name)
        if known is None or not same_values(known, p):
            has = "has no such parameter" if known is None else f"has {known!r}"
            raise InvalidRequest(
                f"parameter {name!r} is {p!r} and the search space of study {self.study.name!r} "
                f"{has}, ask for what the space has, or create a study without a space"
            )
        if name not in self.params:
            raise InvalidRequest(
                f"parameter {name!r} is not active in trial {self.number}, ask for it only if "
                f"its condition {dict(known.when or {})!r} holds"
            )
        return self.params[name]

    def suggestions(self) -> Any:
        """Return what an objective in another process changed."""
        return None

    def take(self, suggestions: Any) -> None:
        """Take over what an objective in another process changed."""

    @property
    def _name(self) -> str:
        return f"studies/{self.study.name}/trials/{self.place}"

    def report(self, value: Any, step: int) -> None:
        """Report an intermediate value, or a dict of metrics, at a step.

        The answer says whether the trial should stop. See `should_prune`.
        """
        metrics = encode_metrics(value, self.study.objective_names)
        if any(len(m["values"]) != 1 for m in metrics.values()):
            raise InvalidRequest(f"the report at step {step} has replicates, give one number")
        values = {name: m["values"][0] for name, m in metrics.items()}
        at = integer(step, "step", -(2**63), 2**63 - 1)
        answer = self.study.client.transport.call(
            "Report",
            {
                "name": self._name,
                "epoch": encode_int(self.epoch),
                "reports": [{"step": encode_int(at), "values": values}],
            },
            writes=True,
        )
        self._verdict(answer)

    def should_prune(self) -> bool:
        """Return whether the trial should stop.

        The reason is a pruner, a lost lease, or a run that was cancelled. The last report
        or heartbeat brought it, so that this call costs nothing.
        """
        return self._stop

    @property
    def stop_reason(self) -> str:
        """Why the trial should stop, for people."""
        return self._stop_reason

    def renew(self, lease: float = LEASE, *, once: bool = False) -> None:
        """Send a heartbeat, which renews the lease for so many seconds.

        In a ``with`` block and in `Study.optimize` this happens without you.
        """
        answer = self.study.client.transport.call(
            "Heartbeat",
            {
                "name": self._name,
                "epoch": encode_int(self.epoch),
                "lease": encode_duration(lease, "lease"),
            },
            retry_for=0.0 if once else None,
        )
        self._verdict(answer)

    def lost(self, reason: str) -> None:
        """Make `should_prune` true."""
        self._stop, self._stop_reason = True, reason

    def _verdict(self, answer: JSON) -> None:
        if answer.get("shouldStop"):
            self.lost(answer.get("reason", ""))

    def tell(
        self,
        value: Any = None,
        *,
        state: str | None = None,
        reason: str | None = None,
        message: str = "",
        std_err: Any = None,
        cost: float | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> TrialView:
        """Tell the outcome of the trial. See `Study.tell`."""
        outcome = encode_outcome(
            self.study.objective_names,
            value,
            state=state,
            reason=reason,
            message=message,
            std_err=std_err,
            cost=cost,
            attributes=attributes,
        )
        return self.tell_outcome(outcome)

    def tell_outcome(self, outcome: JSON) -> TrialView:
        """Tell an outcome in the form of the wire."""
        view = self.study.tell_outcome(self.place, self.epoch, outcome)
        self._told = True
        heartbeats.remove(self)
        return view

    def settle(self, outcome: JSON) -> tuple[TrialView, InvalidRequest | None]:
        """Tell an outcome. One that the server refuses makes the trial failed.

        Returns
        -------
        TrialView
            The trial as it was told.
        InvalidRequest or None
            Why the outcome was refused.

        """
        try:
            return self.tell_outcome(outcome), None
        except InvalidRequest as e:
            return self.tell_outcome(self.outcome_of(e)), e

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes of the trial. An empty text removes one."""
        self.study.client.set_attributes(self._name, attributes)

    def __enter__(self) -> Trial:
        heartbeats.add(self, self._lease or LEASE, now=self._lease is None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        e: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        heartbeats.remove(self)
        if self._told:
            return isinstance(e, TrialPruned)
        try:
            self.tell_outcome(self.outcome_of(e))
        except _errors.AlreadyTold:
            if e is None or isinstance(e, TrialPruned):
                return e is not None
        except _errors.Error as failure:
            if e is None or isinstance(e, TrialPruned):
                raise
            log.warning("trial %d could not be told, %s", self.number, failure)
        return isinstance(e, TrialPruned)

    def outcome_of(self, e: BaseException | None) -> JSON:
        """Return the outcome of a block or objective that ended with an exception."""
        objectives = self.study.objective_names
        if e is None:
            message = "the with block ended and told no outcome"
            return encode_outcome(objectives, state="failed", reason="crash", message=message)
        if isinstance(e, TrialPruned):
            return encode_outcome(objectives, state="pruned", message=said(e))
        ours = isinstance(e, Exception)
        return encode_outcome(
            objectives,
            state="failed",
            reason="crash" if ours else "cancelled",
            message=described(e),
        )
