"""Studies without a declared search space, whose objective defines it while it runs.

A study of the server has a fixed space. So a study without one is a series of them. NAME
has no parameters, and its first trial discovers some with values of the client. NAME.g1
has these parameters. A trial that needs another space starts the next generation, which
takes over all trials.

The request id of a trial that is taken over depends on the trial and the generation
only. So several processes can do it at once, and again after a crash, and no trial is
lost or doubled.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import _errors
from ._codec import (
    JSON,
    ParamValue,
    decode_duration,
    decode_float,
    encode_attributes,
    encode_duration,
    encode_float,
    encode_int,
)
from ._domains import at, check_values, complete, contains, covers, fit, merge
from ._errors import InvalidRequest
from ._generation import (
    BASE,
    FIXED,
    ID,
    LEFT,
    LIMIT,
    NEXT,
    NUMBER,
    PARAMS,
    PAUSED,
    REPLACED,
    ROOT,
    WHOLE,
    Generation,
    generation_name,
    ran_with,
)
from ._goals import MARK
from ._held import Held, Source
from ._presence import MOST_VALUES, Presence, Value
from ._service import AnyState, Service
from ._space import (
    Categorical,
    Int,
    Parameter,
    Space,
    by_name,
    encode_config,
    has_names,
    same,
)
from ._views import StudyRecord, StudyStatus, TrialView, as_dict, encode_new

log = logging.getLogger("bkb")

MOST_GENERATIONS = 8
PATIENCE = 5.0  # seconds that a successor is waited for


class Series(Source):
    """The source of a study whose objective defines the search space.

    The newest generation has the trials of all.
    """

    def __init__(self, service: Service, study: StudyRecord) -> None:
        super().__init__(service, study)
        self._root: JSON = study.spec
        self._options: JSON = json.loads(study.attributes[MARK])
        self._seed = f"{self._root.get('seed', 0)}" if int(self._root.get("seed", 0)) else study.uid
        self.given: dict[str, Parameter] = {}  # that have choices by name
        self._unmodelled: set[str] = set()
        self._full = False
        self.lock = threading.RLock()
        self._generations = [Generation(self, study, 0)]
        self.refresh()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.lock = threading.RLock()

    @property
    def _current(self) -> Generation:
        return self._generations[-1]

    @property
    def space(self) -> Space:
        """The search space as far as it is known."""
        return Space(self._current.parameters).as_given(self.given)

    def newest(self) -> StudyRecord:
        """Return the study of the newest generation."""
        self.refresh()
        return self._current.study

    @property
    def generations(self) -> list[str]:
        """Names of the studies on the server, from the first to the newest."""
        self.refresh()
        return [g.name for g in self._generations]

    def status(self) -> StudyStatus:
        """Return the state of the newest generation, as that of the series."""
        self.refresh()
        s = dataclasses.replace(self._current.status(), name=self.name)
        if self._current.spent:
            s = dataclasses.replace(s, state="finished", finish_reason="max_trials")
        return s

    def begun(self) -> int:
        """Return the number of trials that were handed out."""
        self.refresh()
        return sum(g.status().begun for g in self._generations)

    def extend(self, limits: JSON, *, more: bool = True) -> None:
        """Raise limits, by more or to the given max_trials."""
        with self.lock:
            self.refresh()
            g = self._current
            if not more:
                added = int(limits.get("maxTrials", 0)) - g.status().max_trials
                limits = {"maxTrials": encode_int(max(0, added))}
            g.extend(limits)

    def refresh(self) -> bool:
        """Go to the newest generation, and tell whether that is another one."""
        with self.lock:
            before = self._current
            while True:
                index = self._current.index + 1
                try:
                    message = self.service.get(generation_name(self.name, index))
                except _errors.NotFound:
                    break
                self._move(message, index)
            return self._current is not before

    def _move(self, message: JSON, index: int) -> None:
        study = StudyRecord.of(message)
        if study.attributes.get(ROOT) != self.study.uid:
            raise _errors.StudyExists(
                f"study {study.name!r} is not a generation of "
                f"{self.name!r}, delete it or take another name for {self.name!r}"
            )
        self._generations.append(Generation(self, study, index))
        if WHOLE not in study.attributes:
            self._take_over()

    # Trials by their numbers in the series.

    def _of(self, study: StudyRecord) -> Generation:
        return next(g for g in self._generations if g.name == study.name)

    def shown(self, study: StudyRecord, view: TrialView) -> TrialView:
        """Return a trial of a generation as one of the series."""
        return self._of(study).shown(view)

    def locate(self, number: int, *, oldest: bool = False) -> tuple[StudyRecord, int]:
        """Return the newest or oldest generation that has a trial, and its number there."""
        self.refresh()
        for g in self._generations if oldest else reversed(self._generations):
            place = g.place(number)
            if place is not None:
                return g.study, place
        raise _errors.NotFound(
            f"study {self.name!r} has no trial {number}, its numbers are below "
            f"{self._current.used()}, give one of them"
        )

    def tell(self, number: int, outcome: JSON) -> TrialView:
        """Tell the outcome of a trial by its number."""
        with self.lock:
            study, place = self.locate(number)
            return self._forward(self._of(study), self.service.tell(study, place, 0, outcome))

    def enqueue(
        self,
        params: Mapping[str, Any],
        attributes: Mapping[str, Any] | None = None,
        *,
        propose: bool = False,
    ) -> TrialView:
        """Put a configuration in the queue, before the parameters are known as a note."""
        study = self.newest()
        if self._current.parameters:
            return super().enqueue(params, attributes, propose=propose)
        notes = {**(attributes or {}), FIXED: {n: by_name(v) for n, v in params.items()}}
        config = encode_config(study.space, {MARK: MARK})
        return self.shown(study, self.service.enqueue(study, config, notes))

    def add(self, messages: Iterable[JSON]) -> list[int]:
        """Add trials in the form of the wire, and return their numbers."""
        self.refresh()
        g = self._current
        places = self.service.add(g.study, messages)
        return [g.number(self.service.trial(g.study, place, reports=False)) for place in places]

    def trials(
        self, states: Sequence[AnyState] = (), worker: str = "", reports: bool = False
    ) -> Iterator[TrialView]:
        """Yield trials, without those that another one stands for."""
        self.refresh()
        g = self._current
        g.used()
        for view in self.service.trials(g.study, states, worker, reports):
            if g.place(g.number(view)) == view.number:
                yield g.shown(view)

    # Trials to run.

    def ask(
        self, count: int | str | None, worker: str, lease: float | None
    ) -> tuple[StudyRecord, list[TrialView]]:
        """Return trials to run, and the generation that has them."""
        while True:
            g = self._current
            if g.spent:
                raise _errors.StudyFinished(f"study {self.name!r} has run its {g.limit} trials")
            try:
                views, warnings = self.service.ask(g.study, count, worker, lease)
            except (_errors.StudyPaused, _errors.StudyFinished):
                if not self._await_successor(g):
                    raise
                continue
            self._warn(warnings)
            return g.study, views

    def _await_successor(self, g: Generation) -> bool:
        """Wait for the next generation if it is being made, and tell whether to ask again."""
        until = time.monotonic() + PATIENCE
        while not self.refresh() and g is self._current:
            attributes = g.status().attributes
            if NEXT not in attributes:
                return False
            if time.monotonic() > until:
                # The process that made it has died, or will find this one. No trial of the
                # old generation may begin, since its number could be one of the new one.
                with self.lock:
                    self._start(g.parameters, attributes[NEXT] == PAUSED)
                return True
            time.sleep(0.02)
        return True

    def begin(self, trial: Held) -> None:
        """Give a trial its number. Its parameters come when the objective asks for them."""
        g = self._of(trial.at)
        trial.number = g.number(trial.view)
        trial.asked = {n: v for n, v in trial.view.params.items() if n in g.parameters}
        trial.values, trial.params = {}, {}

    def suggest(self, trial: Held, name: str, p: Parameter) -> Any:
        """Return the proposed value of a parameter, or a random one."""
        if name in trial.params:
            merge(name, trial.domains[name], p)
            return trial.params[name]
        g = self._of(trial.at)
        known = g.parameters.get(name)
        if known is not None:
            merge(name, known, p)
        else:
            _check_case(name, {**g.parameters, **trial.domains})
        fixed = trial.view.attributes.get(FIXED, {})
        value = fixed.get(name, trial.asked.get(name))
        if value is not None:
            value = p.coerce(value)  # the server may have made an int a float
        if name in fixed:
            check_values({name: value}, {name: p})
        if value is None or not contains(p, value):
            first = g.index == 0 and trial.view.number == 0
            value = at(p, 0.5 if first else _draw(self._seed, trial, name))
        trial.values[name], trial.domains[name] = value, p
        trial.params[name] = p.decode(value)
        return trial.params[name]

    def settle(self, trial: Held, outcome: JSON, lease: float | None = None) -> TrialView:
        """Tell an outcome, and start a generation if the trial needs one.

        The next trial may be of that generation, and so is not asked for here.
        """
        with self.lock:
            params, asked, g = trial.values, trial.asked, self._of(trial.at)
            self.given |= {n: p for n, p in trial.domains.items() if has_names(p)}
            state = outcome["state"].removeprefix("TRIAL_STATE_").lower()
            attributes = dict(outcome.get("attributes", {}))
            if params != asked:
                attributes[PARAMS] = json.dumps(params)
                outcome = {**outcome, "attributes": attributes}
            # A proposed parameter that the objective did not ask for has no effect, so that
            # the outcome is also that of the proposal.
            as_asked = all(asked.get(n, v) == v for n, v in params.items())
            if not as_asked and state in ("completed", "pruned"):
                attributes[REPLACED] = state
                outcome = {
                    **outcome,
                    "state": "TRIAL_STATE_FAILED",
                    "reason": "FAIL_REASON_CANCELLED",
                    "message": "the objective asked for other ranges than proposed",
                }
            # The trial is told before its generation is looked for. So a process that starts
            # one finds the trial, or the trial finds the generation.
            view = self.service.tell(trial.at, trial.view.number, trial.view.epoch, outcome)
            self.refresh()
            # A pruned trial may lack parameters only because it ended early.
            if state == "completed" and self._deviates(trial):
                self._grow(trial)
            return self._forward(g, view)

    def _forward(self, g: Generation, view: TrialView) -> TrialView:
        """Add a trial to the newest generation as it ran, if it is not there."""
        h = self._current
        if h.index == 0 or g is h and REPLACED not in view.attributes:
            return g.shown(view)
        m = self._encode(self.service.trial(g.study, view.number), g, h)
        place = None if m is None else self._add_one(h, m)
        if place is None:
            return g.shown(view)
        return h.shown(self.service.trial(h.study, place, reports=False))

    def _add_one(self, h: Generation, m: JSON) -> int | None:
        try:
            return self.service.add(h.study, [m])[0]
        except _errors.StudyFinished:
            self._reopen()
        except InvalidRequest as e:  # another process added it, with other notes or token
            if "request_id = " not in str(e):
                raise
        return None

    # Generations.

    def _deviates(self, trial: Held) -> bool:
        """Tell whether a trial may need another space than that of the newest generation."""
        known = self._current.parameters
        unknown = {
            n
            for n, p in trial.domains.items()
            if n not in self._unmodelled
            and (n not in known or not covers(known[n], p) or n not in trial.asked)
        }
        missing = trial.asked.keys() - trial.values.keys()
        return bool(unknown or missing)

    def _grow(self, trial: Held) -> None:
        """Start a generation if the trial needs another space."""
        while not self._full:
            space = self._infer(trial)
            known = self._current.parameters
            if (
                not space
                or space.keys() == known.keys()
                and all(same(space[n], known[n]) for n in known)
            ):
                return
            if self._current.index == MOST_GENERATIONS:
                self._full = True
                log.warning(
                    "study %s has had %d search spaces and gets no more, parameters that are "
                    "not in the last one are drawn at random",
                    self.name,
                    MOST_GENERATIONS,
                )
                return
            if self._start(space, self._rest()):
                return

    def _start(self, space: dict[str, Parameter], paused: bool) -> bool:
        """Start the next generation, and tell whether no other process did before."""
        index = self._current.index + 1
        name, spec = generation_name(self.name, index), self._spec(space)
        try:
            message = self.service.create(name, spec)
        except _errors.StudyExists:  # which may have the parameters
            self.refresh()
            return False
        self._move(message, index)
        if paused:
            self.service.change("PauseStudy", name)
        return True

    def _reopen(self) -> None:
        """Start a generation for late trials of a study that has run its trials."""
        h = self._current
        if h.status().finish_reason != "max_trials":
            log.warning("a trial ended after study %s finished and is not in it", h.name)
            return
        spec = self._spec(h.parameters)
        with contextlib.suppress(_errors.StudyExists):
            self.service.create(generation_name(self.name, h.index + 1), spec)
        self.refresh()

    def _rest(self) -> bool:
        """Hand out no more trials of this generation, and tell whether it was paused."""
        g = self._current
        status = g.status()
        paused = status.state == "paused" and status.attributes.get(NEXT, PAUSED) == PAUSED
        self.service.set_attributes(g.name, {NEXT: PAUSED if paused else "1"})
        with contextlib.suppress(_errors.StudyFinished):
            self.service.change("PauseStudy", g.name)
        return paused

    def _infer(self, trial: Held) -> dict[str, Parameter]:
        """Return the space of all trials that completed, of which this is one."""
        domains = dict(self._current.parameters)
        for name, p in trial.domains.items():
            domains[name] = merge(name, domains[name], p) if name in domains else p
        presence = Presence()
        for g in self._generations:
            for view in g.own(["completed", "failed"]):
                if view.attributes.get(REPLACED, view.state) == "completed":
                    presence.add(_keys(ran_with(view), domains))
        conditions = presence.conditions()
        space: dict[str, Parameter] = {}
        for name, c in conditions.items():  # parents come first
            if name not in domains:
                continue
            if c is None:
                space[name] = dataclasses.replace(domains[name], when=None)
            elif c.parent in space:
                values = _unkeys(c.values, space[c.parent])
                space[name] = dataclasses.replace(domains[name], when={c.parent: values})
        for name in sorted(domains.keys() - space.keys() - self._unmodelled):
            self._unmodelled.add(name)
            log.warning(
                "parameter %r of study %s is present in some trials, and no parameter with few "
                "values decides in which, so it is drawn at random",
                name,
                self.name,
            )
        return space

    def _spec(self, space: Mapping[str, Parameter]) -> JSON:
        spec = dict(self._root)
        if space:  # else that of the first study
            spec["space"] = json.dumps(Space(space).to_json())
            del spec["proposer"]
            if self._options["proposer"] is not None:
                spec["proposer"] = self._options["proposer"]
        ours, g = (MARK, WHOLE, LEFT, LIMIT, NEXT), self._current
        now = self.service.get(g.name)
        s, notes = StudyStatus.of(now), StudyRecord.of(now).attributes
        attributes = {**{k: v for k, v in notes.items() if k not in ours}, ROOT: self.study.uid}
        attributes[BASE] = str(self._current.used())
        limits = now["spec"]
        if s.max_trials:
            begun = s.counted - s.queued
            left = 0 if g.spent else max(0, s.max_trials - begun)
            spec["maxTrials"], attributes[LEFT] = encode_int(max(1, left)), str(left)
            attributes[LIMIT] = str(g.status().max_trials)
        if "timeout" in limits:
            assert s.created is not None
            seconds = decode_duration(limits["timeout"]) - (time.time() - s.created.timestamp())
            spec["timeout"] = encode_duration(max(1.0, seconds), "timeout")
        if limits.get("maxCost"):
            spec["maxCost"] = encode_float(max(1e-9, decode_float(limits["maxCost"]) - s.cost))
        spec["attributes"] = attributes
        return spec

    def _take_over(self) -> None:
        """Copy the trials of all generations to the newest."""
        new = self._current
        try:
            for old in self._generations[:-1]:
                self.service.add(new.study, self._encode_all(old, new))
        except _errors.StudyFinished:
            self._reopen()
        self.service.set_attributes(new.name, {WHOLE: "1"})

    def _encode_all(self, old: Generation, new: Generation) -> Iterator[JSON]:
        over: list[AnyState] = ["completed", "failed", "infeasible", "pruned"]
        if old.index == new.index - 1:  # which has the queue of those before
            over.append("queued")
        for view in old.own(over, reports=True):
            m = self._encode(view, old, new)
            if m is not None:
                yield m

    def _encode(self, view: TrialView, old: Generation, new: Generation) -> JSON | None:
        ran, space = ran_with(view), new.parameters
        origin = f"{old.index}/{view.number}"
        config = fit(ran, space) or fit({**view.params, **ran}, space)
        if config is None and view.state == "queued":
            coerced = {n: space[n].coerce(v) for n, v in ran.items() if n in space}
            known = {n: v for n, v in coerced.items() if contains(space[n], v)}
            config = complete(known, space, {}, f"{self._seed}/{origin}")
        if config is None:
            return None
        attributes = {k: v for k, v in view.attributes.items() if k != REPLACED}
        attributes[ID] = origin
        attributes[NUMBER] = old.number(view)
        if config != ran:
            attributes.setdefault(FIXED if view.state == "queued" else PARAMS, dict(ran))
        if view.state == "queued":
            m: JSON = {
                "config": encode_config(new.study.space, new.whole(config)),
                "attributes": encode_attributes(attributes),
                "enqueue": True,
            }
        else:
            trial = {**as_dict(view), "params": new.whole(config), "attributes": attributes}
            if REPLACED in view.attributes:
                trial["state"] = view.attributes[REPLACED]
                del trial["reason"], trial["message"]
            m = encode_new(new.study.space, self.goals, trial)
        m["requestId"] = self._request_id(new, origin)
        return m

    def _request_id(self, target: Generation, origin: str) -> str:
        import hashlib  # takes long to import

        text = f"{self.study.uid}/{target.index}/{origin}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def _keys(
    params: Mapping[str, ParamValue], domains: Mapping[str, Parameter]
) -> dict[str, Value | None]:
    """Return the values for Presence, in which True and 1 must differ."""
    keys: dict[str, Value | None] = {}
    for name, v in params.items():
        p = domains.get(name)
        if isinstance(p, Categorical):
            keys[name] = f"c{p.index(v)}"
        elif isinstance(p, Int) and p.high - p.low < MOST_VALUES:
            keys[name] = int(v)
        else:
            keys[name] = None
    return keys


def _unkeys(values: Iterable[Value], parent: Parameter) -> list[ParamValue]:
    if isinstance(parent, Categorical):
        return [parent.names[i] for i in sorted(int(str(v)[1:]) for v in values)]
    return sorted(int(v) for v in values)


def _check_case(name: str, known: Mapping[str, Parameter]) -> None:
    """Refuse a new name that differs from another one only in case."""
    for other in known:
        if other != name and other.casefold() == name.casefold():
            raise InvalidRequest(
                f"parameter {name!r} differs from parameter {other!r} only in case, "
                "names differ in more, rename one of them"
            )


def _draw(seed: str, trial: Held, name: str) -> float:
    """Return the share of its range at which a parameter is drawn."""
    import random  # which takes long to import

    return random.Random(f"{seed}/{trial.number}/{trial.view.epoch}/{name}").random()
