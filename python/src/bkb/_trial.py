"""A running trial."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _errors
from ._codec import (
    JSON,
    ParamValue,
    described,
    encode_duration,
    encode_int,
    integer,
    number,
    plain,
    said,
)
from ._errors import InvalidRequest, TrialPruned
from ._goals import Reason, State
from ._lease import heartbeats
from ._space import Categorical, Float, Int, Parameter, check, same_values
from ._views import TrialView

if TYPE_CHECKING:
    from ._study import Study

log = logging.getLogger("bkb")

LEASE = 60.0  # seconds, of a trial with heartbeats

# The server names the metric that a step has already.
_KNOWN = re.compile(r"already has (.+) = \S+ at step ")


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
        return float(self._suggest(name, Float, low, high, step=plain(step), log=log))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """Return the value of an integer parameter. See `suggest_float`."""
        low, high, step = plain(low), plain(high), plain(step)
        wide = None if step == 1 else step
        return int(self._suggest(name, Int, low, high, step=wide, log=log))

    def suggest_categorical(self, name: str, choices: Sequence[ParamValue]) -> Any:
        """Return the value of a categorical parameter. See `suggest_float`."""
        return self._suggest(name, Categorical, [plain(v) for v in choices])

    def _suggest(self, name: str, kind: type[Parameter], *args: Any, **fields: Any) -> Any:
        try:
            p = kind(*args, **fields)
        except InvalidRequest as e:
            raise InvalidRequest(str(e).replace(kind.__name__, f"parameter {name!r}", 1)) from None
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

        The answer says whether the trial should stop. See `should_prune`. A step that was
        reported before keeps its first value, and a warning says so once.
        """
        values = self.study.goals.report(value)
        at = integer(step, "step", -(2**63), 2**63 - 1)
        while values:
            try:
                answer = self.study.client.transport.call(
                    "Report",
                    {
                        "name": self._name,
                        "epoch": encode_int(self.epoch),
                        "reports": [{"step": encode_int(at), "values": values}],
                    },
                    writes=True,
                )
            except InvalidRequest as e:
                known = _KNOWN.search(str(e))
                if known is None or known[1] not in values:
                    raise
                del values[known[1]]
                self.study.warn_once("reported twice", f"{e}, the first value is kept")
            else:
                self._verdict(answer)
                return

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
        state: State | None = None,
        reason: Reason | None = None,
        message: str = "",
        std_err: Any = None,
        cost: float | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> TrialView:
        """Tell the outcome of the trial. See `Study.tell`."""
        outcome = self.study.goals.outcome(
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
        goals = self.study.goals
        if e is None:
            message = "the with block ended and told no outcome"
            return goals.outcome(state="failed", reason="crash", message=message)
        if isinstance(e, TrialPruned):
            return goals.outcome(state="pruned", message=said(e))
        ours = isinstance(e, Exception)
        return goals.outcome(
            state="failed",
            reason="crash" if ours else "cancelled",
            message=described(e),
        )
