"""Where a study has its trials, and a trial that this process holds."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ._codec import JSON, ParamValue, described, said
from ._domains import check_fits, check_values, complete, fit, nearby
from ._errors import Error, InvalidRequest, TrialPruned
from ._lease import LEASE, heartbeats
from ._service import AnyState, Service, Verdict
from ._space import Parameter, Space, coerce, encode_config, same_values
from ._views import NewTrial, StudyRecord, StudyStatus, TrialView, encode_new

log = logging.getLogger("bkb")

TRIES = 200  # of values that keep the constraints of a space

# The server names the metric that a step has already.
_KNOWN = re.compile(r"already has (.+) = \S+ at step ")


class Source:
    """Where a study has its trials. This one is a study on the server."""

    def __init__(self, service: Service, study: StudyRecord) -> None:
        self.service, self.study = service, study
        self.name, self.goals = study.name, study.goals
        self._warned: set[str] = set()

    def warn_once(self, kind: str, text: str) -> None:
        """Log a warning if this object logged none of the kind before."""
        if kind not in self._warned:
            self._warned.add(kind)
            log.warning("study %s, %s", self.name, text)

    def newest(self) -> StudyRecord:
        """Return the study on the server that new trials belong to."""
        return self.study

    @property
    def space(self) -> Space:
        """The search space as far as it is known."""
        return self.study.space

    @property
    def generations(self) -> list[str]:
        """Names of the studies on the server."""
        return [self.name]

    def status(self) -> StudyStatus:
        """Return the state of the study."""
        return self.service.status(self.name)

    def begun(self) -> int:
        """Return the number of trials that were handed out."""
        return self.status().begun

    def extend(self, limits: JSON, *, more: bool = True) -> None:
        """Raise limits, by more or to the given ones."""
        self.service.change("ExtendStudy", self.name, **limits, more=more)

    def shown(self, study: StudyRecord, view: TrialView) -> TrialView:
        """Return a trial of a study on the server as the user sees it."""
        if not self.space.named:
            return view
        return dataclasses.replace(view, params=self.space.decode(view.params))

    def locate(self, number: int, *, oldest: bool = False) -> tuple[StudyRecord, int]:
        """Return the study on the server that has a trial, and its number there."""
        return self.study, number

    def trials(
        self, states: Sequence[AnyState] = (), worker: str = "", reports: bool = False
    ) -> Iterator[TrialView]:
        """Yield trials."""
        for view in self.service.trials(self.study, states, worker, reports):
            yield self.shown(self.study, view)

    def ask(
        self, count: int | str | None, worker: str, lease: float | None
    ) -> tuple[StudyRecord, list[TrialView]]:
        """Return trials to run, and the study on the server that has them."""
        views, warnings = self.service.ask(self.study, count, worker, lease)
        self._warn(warnings)
        return self.study, views

    def _warn(self, warnings: Iterable[str]) -> None:
        for text in warnings:  # the server repeats them at each ask
            self.warn_once(text, text)

    def begin(self, trial: Held) -> None:
        """Give a trial its number and its parameters."""
        trial.values = dict(trial.view.params)
        trial.params = dict(self.space.decode(trial.values))

    def suggest(self, trial: Held, name: str, p: Parameter) -> Any:
        """Return the value of a parameter, which must agree with the search space."""
        known = self.space.get(name)
        if known is None or not same_values(known, p):
            has = "has no such parameter" if known is None else f"has {known!r}"
            raise InvalidRequest(
                f"parameter {name!r} is {p!r} and the search space of study {self.name!r} "
                f"{has}, ask for what the space has, or create a study without a space"
            )
        if name not in trial.params:
            raise InvalidRequest(
                f"parameter {name!r} is not active in trial {trial.number}, ask for it only if "
                f"its condition {dict(known.when or {})!r} holds"
            )
        return p.decode(trial.values[name])

    def settle(self, trial: Held, outcome: JSON, lease: float | None = None) -> TrialView:
        """Tell the outcome of a running trial. With a lease, ask for ``trial.next`` too."""
        told = trial.at, trial.view.number, trial.view.epoch, outcome
        if lease is None:
            return self.shown(trial.at, self.service.tell(*told))
        view, trial.next, warnings = self.service.tell_and_ask(*told, lease)
        self._warn(warnings)
        return self.shown(trial.at, view)

    def tell(self, number: int, outcome: JSON) -> TrialView:
        """Tell the outcome of a trial by its number."""
        return self.shown(self.study, self.service.tell(self.study, number, 0, outcome))

    def enqueue(
        self,
        params: Mapping[str, Any],
        attributes: Mapping[str, Any] | None = None,
        *,
        propose: bool = False,
    ) -> TrialView:
        """Put a configuration in the queue, with values of what it leaves out.

        They are those of the best trial, or those that the model proposes.
        """
        study, space = self.newest(), self.space
        given = coerce(space, params)
        check_values(given, space)
        for config in self._configs(study, given, propose):
            try:
                view = self.service.enqueue(study, encode_config(space, config), attributes)
                return self.shown(study, view)
            except InvalidRequest as e:
                refused = e
        raise refused

    def _configs(
        self, study: StudyRecord, given: Mapping[str, ParamValue], propose: bool
    ) -> Iterator[Mapping[str, ParamValue]]:
        """Yield what a partial configuration may become, given the constraints of a space."""
        if fit(given, self.space) == given:
            yield given
            return
        status = self.status()
        best = self.service.best(study)[0].params if status.completed else {}
        seed = f"{study.spec.get('seed', 0)}/{status.position}"
        tries = [complete(given, self.space, {}, f"{seed}/{i}") for i in range(TRIES)]
        near = complete(given, self.space, best, seed)
        for name in given.keys() - near.keys():
            when = dict(self.space[name].when or {})
            raise InvalidRequest(
                f"parameter {name!r} is not active, leave it out, or give values with which "
                f"its condition {when!r} holds"
            )
        if propose and best:
            tries += [near, *nearby(near, given, self.space, TRIES, seed)]
            yield from self.service.ranked(study, tries)
        elif not propose:
            yield near
        yield from tries

    def add_new(self, trials: Iterable[NewTrial]) -> tuple[list[int], list[str]]:
        """Add trials, and say why trials of another study do not fit."""
        self.newest()
        space, left = self.space, []
        messages: list[JSON] = []
        copies: list[int | None] = []  # numbers of the trials that are copied
        for trial in trials:
            number = trial.number if isinstance(trial, TrialView) else None
            try:
                if isinstance(trial, TrialView):
                    check_fits(trial, space, self.goals)
                messages.append(encode_new(space, self.goals, trial))
                copies.append(number)
            except InvalidRequest as e:
                if number is None:
                    raise
                left.append(f"trial {number}, because {e}")
        while True:
            try:
                return self.add(messages), left
            except InvalidRequest as e:  # those before it are added, and are not added again
                if e.index is None or copies[e.index] is None:
                    raise
                left.append(f"trial {copies.pop(e.index)}, because {e}")
                del messages[e.index]

    def add(self, messages: Iterable[JSON]) -> list[int]:
        """Add trials in the form of the wire, and return their numbers."""
        return self.service.add(self.study, messages)


class Held:
    """A trial that this process holds the lease of.

    Attributes
    ----------
    at : StudyRecord
        The study on the server that has the trial, as number ``view.number``.
    number : int
        Number of the trial in the study of the user.
    params, values : dict
        Values of the parameters that the objective knows, and the same as the server has them.
    asked : dict
        Values that the proposer gave to parameters that the objective has yet to define.
    domains : dict
        Parameters that the objective has defined.
    next : TrialView, optional
        The trial that was handed out when this one was told.

    """

    params: dict[str, Any]
    values: dict[str, ParamValue]
    next: TrialView | None = None

    def __init__(self, source: Source, at: StudyRecord, view: TrialView) -> None:
        self.source, self.at, self.view, self.number = source, at, view, view.number
        self.asked: Mapping[str, ParamValue] = {}
        self.domains: dict[str, Parameter] = {}
        self.stop, self.stop_reason, self.told = False, "", False
        self.interrupted = False  # by Ctrl-C or the end of the run, and not by the objective
        self._reported: set[tuple[str, int]] = set()  # metrics and steps of this pass
        self._shift, self._last = 0, 0
        source.begin(self)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "stop": False, "stop_reason": ""}

    def report(self, value: Any, step: int) -> None:
        """Report metrics at a step. One that comes again begins another pass."""
        values = self.source.goals.report(value)
        if any((name, step) in self._reported for name in values):
            self._reported.clear()
            self._shift = self._last + 1 - step
        at = min(step + self._shift, 2**63 - 1)
        while values:
            try:
                self.report_all({at: values})
                break
            except InvalidRequest as e:  # another process reported it
                known = _KNOWN.search(str(e))
                if known is None or known[1] not in values:
                    raise
                del values[known[1]]
                self.source.warn_once("reported twice", f"{e}, the first value is kept")
        self._last = max(self._last, at) if self._reported or self._shift else at
        self._reported.update((name, step) for name in values)

    def report_all(self, reports: Mapping[int, JSON]) -> None:
        """Report the values of some steps in the form of the wire."""
        view = self.view
        self._take(self.source.service.report(self.at, view.number, view.epoch, reports))

    def renew(self, lease: float = LEASE, *, once: bool = False) -> None:
        """Send a heartbeat, which renews the lease for so many seconds."""
        view, retry_for = self.view, 0.0 if once else None
        self._take(self.source.service.renew(self.at, view.number, view.epoch, lease, retry_for))

    def lost(self, reason: str) -> None:
        """Note that the trial should stop."""
        self._take((True, reason))

    def _take(self, verdict: Verdict) -> None:
        if verdict[0]:
            self.stop, self.stop_reason = verdict

    def tell(self, outcome: JSON, lease: float | None = None) -> TrialView:
        """Tell an outcome in the form of the wire. With a lease, ask for the next trial too."""
        view = self.source.settle(self, outcome, lease)
        self.told = True
        heartbeats.remove(self)
        if self.interrupted and self.view.origin == "enqueued":
            try:  # what the user enqueued runs later
                params = self.source.shown(self.at, self.view).params
                self.source.enqueue(params, self.view.attributes)
            except Error as e:
                log.warning("trial %d is not enqueued again, %s", self.number, e)
        return view

    def settle(self, outcome: JSON, lease: float | None) -> tuple[TrialView, InvalidRequest | None]:
        """Tell an outcome. One that the server refuses makes the trial failed.

        Return the trial as it was told, and why the outcome was refused.
        """
        try:
            return self.tell(outcome, lease), None
        except InvalidRequest as e:
            return self.tell(self.outcome_of(e)), e

    def outcome_of(self, e: BaseException | None) -> JSON:
        """Return the outcome of a block or objective that ended with an exception."""
        goals = self.source.goals
        if e is None:
            message = "the with block ended and told no outcome"
            return goals.outcome(state="failed", reason="crash", message=message)
        if isinstance(e, TrialPruned):
            return goals.outcome(state="pruned", message=said(e))
        ours = isinstance(e, Exception)
        self.interrupted = not ours
        return goals.outcome(
            state="failed",
            reason="crash" if ours else "cancelled",
            message=described(e),
        )

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes of the trial."""
        self.source.service.set_attributes(f"{self.at.name}/trials/{self.view.number}", attributes)
