"""One study of a series, with the numbers of its trials in the series."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from ._codec import JSON, ParamValue, encode_int
from ._goals import MARK
from ._service import AnyState, Service
from ._space import Space
from ._views import StudyRecord, StudyStatus, TrialView

ROOT = "bkb:root"  # attribute of a generation, the uid of the first study
WHOLE = "bkb:whole"  # of a generation that has the trials of the one before
LEFT = "bkb:left"  # of a generation, the trials that could still begin when it was made
LIMIT = "bkb:limit"  # of a generation, max_trials of the series when it was made
BASE = "bkb:base"  # of a generation, how many numbers of trials the ones before used
NEXT = "bkb:next"  # of a generation whose successor is being made
PAUSED = "paused"  # value of NEXT if the user had paused the study
FIXED = "bkb:fixed"  # of a trial that was in the queue before its parameters were known
PARAMS = "bkb:params"  # of a trial that did not run as asked
ID = "bkb:id"  # of a trial that was taken over, generation and number of its origin
NUMBER = "bkb:number"  # of a trial that was taken over, its number in the series
REPLACED = "bkb:replaced"  # of a trial that another one stands for
FEW = 20  # trials that are looked up one by one


def generation_name(name: str, number: int) -> str:
    """Return the name of a generation on the server."""
    return f"{name}.g{number}" if number else name


class Owner(Protocol):
    """The series."""

    service: Service
    lock: threading.RLock
    given: dict[str, Any]

    @property
    def space(self) -> Space:
        """The search space as far as it is known."""


class Generation:
    """One study of the series, with the numbers of its trials in the series."""

    def __init__(self, series: Owner, study: StudyRecord, index: int) -> None:
        self.series, self.study, self.index = series, study, index
        self.service, self.name = series.service, study.name
        self.parameters = {n: p for n, p in study.space.items() if n != MARK}
        self.left, self.limit = (int(study.attributes.get(k, -1)) for k in (LEFT, LIMIT))
        self._next = int(study.attributes.get(BASE, 0))
        # Numbers in the series by place, which is the number in this study, and back.
        self._numbers: list[int] = []
        self._places: dict[int, int] = {}

    @property
    def spent(self) -> bool:
        """Whether no trial could begin when it was made, and none was added since."""
        return self.left == 0

    def status(self) -> StudyStatus:
        """Return the state of this study, with max_trials and counted of the series."""
        s = self.service.status(self.name)
        if self.left < 0 or not s.max_trials:
            return s
        before = self.limit - self.left  # trials that count in the ones before
        most = s.max_trials + before - self.spent  # as a study has a place at least
        return dataclasses.replace(s, max_trials=most, counted=s.counted + before)

    def extend(self, limits: JSON) -> None:
        """Raise limits by more."""
        more = int(limits.get("maxTrials", 0))
        if self.spent and more:  # it has a place on the server that it did not hand out
            self.left, self.limit = more, self.limit + more
            self.service.set_attributes(self.name, {LEFT: more, LIMIT: self.limit})
            limits = {**limits, "maxTrials": encode_int(more - 1)}
        self.service.change("ExtendStudy", self.name, **limits, more=True)

    def number(self, view: TrialView) -> int:
        """Return the number in the series of a trial of this study.

        A trial that was taken over keeps its number. The others are counted.
        """
        with self.series.lock:
            self._learn(view.number)
            if view.number == len(self._numbers):
                self._note(view)
            return self._numbers[view.number]

    def place(self, number: int) -> int | None:
        """Return the number in this study of a trial of the series, or None."""
        with self.series.lock:
            if number not in self._places:
                self._learn()
            return self._places.get(number)

    def used(self) -> int:
        """Return how many numbers of the series are used up to this study."""
        with self.series.lock:
            self._learn()
            return self._next

    def _learn(self, end: int | None = None) -> None:
        if end is None:
            s = self.status()
            end = s.begun + s.added + s.queued
        if end - len(self._numbers) > FEW:
            for view in self.service.trials(self.study):
                if view.number == len(self._numbers):
                    self._note(view)
        while len(self._numbers) < end:
            place = len(self._numbers)
            self._note(self.service.trial(self.study, place, reports=False))

    def _note(self, view: TrialView) -> None:
        known = view.attributes.get(NUMBER)
        n = self._next if known is None else int(known)
        self._next += known is None
        self._places[n] = len(self._numbers)
        self._numbers.append(n)

    def shown(self, view: TrialView) -> TrialView:
        """Return a trial of this study as one of the series."""
        params = view.params if self.parameters else ran_with(view)
        params = {n: v for n, v in params.items() if n != MARK}
        if self.series.given:
            params = dict(self.series.space.decode(params))
        return dataclasses.replace(view, number=self.number(view), params=params)

    def own(self, states: list[AnyState], *, reports: bool = False) -> Iterator[TrialView]:
        """Yield the trials of this generation that are no copies of trials that ran before."""
        for view in self.service.trials(self.study, states, reports=reports):
            if ID not in view.attributes or view.origin == "enqueued":
                yield view

    def whole(self, params: Mapping[str, ParamValue]) -> Mapping[str, ParamValue]:
        """Return parameters with that of a study without any."""
        return params if self.parameters else {MARK: MARK, **params}


def ran_with(view: TrialView) -> Mapping[str, ParamValue]:
    """Return the parameters that a trial ran with."""
    ran: Mapping[str, ParamValue] = view.attributes.get(PARAMS, view.params)
    return view.attributes.get(FIXED, ran) if view.state == "queued" else ran
