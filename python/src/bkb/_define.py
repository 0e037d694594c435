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
import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _errors
from ._codec import (
    JSON,
    ParamValue,
    decode_duration,
    encode_attributes,
    encode_duration,
    encode_float,
    encode_int,
)
from ._errors import InvalidRequest
from ._goals import MARK
from ._presence import MOST_VALUES, Presence, Value
from ._space import Categorical, Constant, Float, Int, Ordinal, Parameter, Space, same
from ._study import AnyState, Study, as_dict
from ._trial import Trial
from ._views import StudyStatus, TrialView

if TYPE_CHECKING:
    from ._client import Client

log = logging.getLogger("bkb")

ROOT = "bkb:root"  # attribute of a generation, the uid of the first study
WHOLE = "bkb:whole"  # of a generation that has the trials of the one before
LEFT = "bkb:left"  # of a generation, the trials that may still begin
BASE = "bkb:base"  # of a generation, how many numbers of trials the ones before used
NEXT = "bkb:next"  # of a generation whose successor is being made
PAUSED = "paused"  # value of NEXT if the user had paused the study
PARAMS = "bkb:params"  # of a trial that did not run as asked
ID = "bkb:id"  # of a trial that was taken over, generation and number of its origin
NUMBER = "bkb:number"  # of a trial that was taken over, its number in the series
REPLACED = "bkb:replaced"  # of a trial that another one stands for
MOST_GENERATIONS = 8
FEW = 20  # trials that are looked up one by one
PATIENCE = 5.0  # seconds that a successor is waited for


def root_spec(spec: JSON) -> None:
    """Make the spec of a study that of the first of a series."""
    kept = {"proposer": spec.pop("proposer", None)}
    spec["space"] = json.dumps(Space({MARK: Constant(MARK)}).to_json())
    spec["proposer"] = {"name": "random"}
    spec["attributes"] = {**spec["attributes"], MARK: json.dumps(kept)}


def generation_name(name: str, number: int) -> str:
    """Return the name of a generation on the server."""
    return f"{name}.g{number}" if number else name


class _Generation(Study):
    """One study of the series."""

    def __init__(self, client: Client, message: JSON, series: OpenStudy, number: int) -> None:
        super().__init__(client, message)
        self.series, self.generation = series, number
        attributes = message.get("attributes", {})
        self.left: str = attributes.get(LEFT, "")
        # Numbers in the series by place, which is the number in this study, and back.
        self._numbers: list[int] = []
        self._places: dict[int, int] = {}
        self._next = int(attributes.get(BASE, 0))

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
                self._learn(self.count())
            return self._places.get(number)

    def used(self) -> int:
        """Return how many numbers of the series are used up to this study."""
        with self.series.lock:
            self._learn(self.count())
            return self._next

    def count(self) -> int:
        """Return the number of trials of this study."""
        s = self.status
        return s.queued + s.running + s.completed + s.failed + s.infeasible + s.pruned

    def _learn(self, end: int) -> None:
        if end - len(self._numbers) > FEW:
            for view in self.iter_trials():
                if view.number == len(self._numbers):
                    self._note(view)
        while len(self._numbers) < end:
            self._note(self.trial(len(self._numbers), reports=False))

    def _note(self, view: TrialView) -> None:
        known = view.attributes.get(NUMBER)
        n = self._next if known is None else int(known)
        self._next += known is None
        self._places[n] = len(self._numbers)
        self._numbers.append(n)

    def shown(self, view: TrialView) -> TrialView:
        """Return a trial of this study as one of the series."""
        params = view.params if self.parameters() else _ran(view)
        params = {n: v for n, v in params.items() if n != MARK}
        return dataclasses.replace(view, number=self.number(view), params=params)

    def make_trial(self, message: JSON, lease: float | None) -> Trial:
        return OpenTrial(self, message, lease)

    def encode_config(self, params: Mapping[str, Any]) -> dict[str, JSON]:
        """Return a configuration in the form of the wire."""
        return super().encode_config({MARK: MARK, **params} if MARK in self.space else params)

    def parameters(self) -> dict[str, Parameter]:
        """Return the parameters that the objective defined."""
        return {n: p for n, p in self.space.items() if n != MARK}


class OpenTrial(Trial):
    """A running trial of a study without a declared space.

    `params` has the parameters that the objective has asked for.
    """

    study: _Generation

    def __init__(self, study: _Generation, message: JSON, lease: float | None = None) -> None:
        super().__init__(study, message, lease)
        self.number = study.number(self.view)
        self.asked = {n: v for n, v in self.params.items() if n in study.parameters()}
        self.params = {}
        self.domains: dict[str, Parameter] = {}

    def suggest(self, name: str, p: Parameter) -> Any:
        """Return the proposed value of a parameter, or a random one."""
        if name in self.params:
            merge(name, self.domains[name], p)
            return self.params[name]
        known = self.study.parameters().get(name)
        if known is not None:
            merge(name, known, p)
        else:
            _check_case(name, {**self.study.parameters(), **self.domains})
        value = self.asked.get(name)
        if value is not None:
            value = p.coerce(value)  # the server may have made an int a float
        if value is None or not contains(p, value):
            first = self.study.generation == 0 and self.place == 0
            seed = f"{self.study.series.seed}/{self.number}/{self.epoch}/{name}"
            value = centre(p) if first else draw(p, seed)
        self.params[name], self.domains[name] = value, p
        return value

    def suggestions(self) -> Any:
        return self.params, self.domains

    def take(self, suggestions: Any) -> None:
        self.params, self.domains = suggestions

    def tell_outcome(self, outcome: JSON) -> TrialView:
        return self.study.series.settle(self, outcome)

    def tell_here(self, outcome: JSON) -> TrialView:
        """Tell the outcome to the generation that asked."""
        return super().tell_outcome(outcome)


class OpenStudy(Study):
    """A study whose objective defines the search space. See `Study`.

    All methods are about the newest generation, which has the trials of all.
    """

    def __init__(self, client: Client, message: JSON) -> None:
        super().__init__(client, message)
        self._uid = str(message["uid"])
        self._root: JSON = message["spec"]
        self._options: JSON = json.loads(message["attributes"][MARK])
        self.seed = f"{self._root.get('seed', 0)}" if int(self._root.get("seed", 0)) else self._uid
        self._unmodelled: set[str] = set()
        self._full = False
        self.lock = threading.RLock()
        self._generations = [_Generation(client, message, self, 0)]
        self.space = Space({})
        self.refresh()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state["lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.lock = threading.RLock()

    @property
    def _current(self) -> _Generation:
        return self._generations[-1]

    @property
    def _parent(self) -> str:
        self.refresh()
        return f"studies/{self._current.name}"

    @property
    def status(self) -> StudyStatus:
        """The state of the study and the number of its trials."""
        status = super().status
        limit = int(self._root.get("maxTrials", 0))
        if self._current.left == "0":
            status = dataclasses.replace(status, state="finished", finish_reason="max_trials")
        return dataclasses.replace(status, name=self.name, max_trials=limit)

    @property
    def generations(self) -> list[str]:
        """Names of the studies on the server, from the first to the newest."""
        self.refresh()
        return [g.name for g in self._generations]

    def refresh(self) -> bool:
        """Go to the newest generation, and tell whether that is another one."""
        with self.lock:
            before = self._current
            while True:
                number = self._current.generation + 1
                name = f"studies/{generation_name(self.name, number)}"
                try:
                    message = self.client.transport.call("GetStudy", {"name": name})
                except _errors.NotFound:
                    break
                self._move(message, number)
            return self._current is not before

    def _move(self, message: JSON, number: int) -> None:
        attributes = message.get("attributes", {})
        if attributes.get(ROOT) != self._uid:
            raise _errors.StudyExists(
                f"study {message['name'].removeprefix('studies/')!r} is not a generation of "
                f"{self.name!r}, delete it or take another name for {self.name!r}"
            )
        self._generations.append(_Generation(self.client, message, self, number))
        self.space = Space(self._current.parameters())
        if WHOLE not in attributes:
            self._take_over()

    # Trials by their numbers in the series.

    def _view(self, m: JSON) -> TrialView:
        study = str(m["name"]).removeprefix("studies/").partition("/")[0]
        with self.lock:
            g = next(g for g in self._generations if g.name == study)
        return g.shown(g._view(m))

    def _locate(self, number: int) -> tuple[_Generation, int]:
        """Return the newest generation that has a trial, and its number there."""
        self.refresh()
        for g in reversed(self._generations):
            place = g.place(number)
            if place is not None:
                return g, place
        raise _errors.NotFound(
            f"study {self.name!r} has no trial {number}, its numbers are below "
            f"{self._current.used()}, give one of them"
        )

    def _trial_name(self, number: int) -> str:
        g, place = self._locate(number)
        return f"studies/{g.name}/trials/{place}"

    def tell_outcome(self, trial: int, epoch: int, outcome: JSON) -> TrialView:
        """Tell an outcome in the form of the wire."""
        with self.lock:
            g, place = self._locate(trial)
            return self._forward(g, g.tell_outcome(place, epoch, outcome))

    def add_encoded(self, messages: Iterable[JSON]) -> list[int]:
        """Add trials in the form of the wire, and return their numbers."""
        self.refresh()
        g = self._current
        places = g.add_encoded(messages)
        return [g.number(g.trial(place, reports=False)) for place in places]

    def iter_trials(
        self, *, states: Sequence[AnyState] = (), worker: str = "", reports: bool = False
    ) -> Iterator[TrialView]:
        """Yield trials, without those that another one stands for. See `Study.iter_trials`."""
        self.refresh()
        g = self._current
        g.used()
        for view in g.iter_trials(states=states, worker=worker, reports=reports):
            if g.place(g.number(view)) == view.number:
                yield g.shown(view)

    @property
    def trials(self) -> list[TrialView]:
        """All trials in order of number."""
        return sorted(super().trials, key=lambda t: t.number)

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
        """Get a trial to run. See `Study.ask`."""
        while True:
            g = self._current
            if g.left == "0":
                raise _errors.StudyFinished(
                    f"study {self.name!r} has run its {self._root['maxTrials']} trials"
                )
            try:
                return g.ask(count, worker=worker, lease=lease)
            except (_errors.StudyPaused, _errors.StudyFinished):
                if not self._await_successor(g):
                    raise

    def _await_successor(self, g: _Generation) -> bool:
        """Wait for the next generation if it is being made, and tell whether to ask again."""
        until = time.monotonic() + PATIENCE
        while not self.refresh() and g is self._current:
            attributes = self._status_of(g.generation).attributes
            if NEXT not in attributes:
                return False
            if time.monotonic() > until:
                # The process that made it has died, or will find this one. No trial of the
                # old generation may begin, since its number could be one of the new one.
                with self.lock:
                    self._start(g.parameters(), attributes[NEXT] == PAUSED)
                return True
            time.sleep(0.02)
        return True

    def _status_of(self, number: int) -> StudyStatus:
        name = f"studies/{generation_name(self.name, number)}"
        return StudyStatus.decode(self.client.transport.call("GetStudy", {"name": name}))

    def settle(self, trial: OpenTrial, outcome: JSON) -> TrialView:
        """Tell an outcome, and start a generation if the trial needs one."""
        with self.lock:
            params, asked, g = trial.params, trial.asked, trial.study
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
            view = trial.tell_here(outcome)
            self.refresh()
            # A pruned trial may lack parameters only because it ended early.
            if state == "completed" and self._deviates(trial):
                self._grow(trial)
            return self._forward(g, view)

    def _forward(self, g: _Generation, view: TrialView) -> TrialView:
        """Add a trial to the newest generation as it ran, if it is not there."""
        h = self._current
        there = g.generation == h.generation and REPLACED not in view.attributes
        if h.generation == 0 or there:
            return g.shown(view)
        m = self._encode(g.trial(view.number), g, h)
        place = None if m is None else self._add_one(h, m)
        return g.shown(view) if place is None else h.shown(h.trial(place, reports=False))

    def _add_one(self, h: _Generation, m: JSON) -> int | None:
        try:
            return h.add_encoded([m])[0]
        except _errors.StudyFinished:
            self._reopen()
        except InvalidRequest as e:  # another process added it, with other notes or token
            if "request_id = " not in str(e):
                raise
        return None

    # Generations.

    def _deviates(self, trial: OpenTrial) -> bool:
        """Tell whether a trial may need another space than that of the newest generation."""
        known = self._current.parameters()
        unknown = {
            n
            for n, p in trial.domains.items()
            if n not in self._unmodelled
            and (n not in known or not covers(known[n], p) or n not in trial.asked)
        }
        missing = trial.asked.keys() - trial.params.keys()
        return bool(unknown or missing)

    def _grow(self, trial: OpenTrial) -> None:
        """Start a generation if the trial needs another space."""
        while not self._full:
            space = self._infer(trial)
            known = self._current.parameters()
            if (
                not space
                or space.keys() == known.keys()
                and all(same(space[n], known[n]) for n in known)
            ):
                return
            if self._current.generation == MOST_GENERATIONS:
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
        number = self._current.generation + 1
        request = {"studyId": generation_name(self.name, number), "spec": self._spec(space)}
        try:
            message = self.client.transport.call("CreateStudy", request, writes=True)
        except _errors.StudyExists:  # which may have the parameters
            self.refresh()
            return False
        self._move(message, number)
        if paused:
            self._current.pause()
        return True

    def _reopen(self) -> None:
        """Start a generation for late trials of a study that has run its trials."""
        h = self._current
        if self._status_of(h.generation).finish_reason != "max_trials":
            log.warning("a trial ended after study %s finished and is not in it", h.name)
            return
        name = generation_name(self.name, h.generation + 1)
        request = {"studyId": name, "spec": self._spec(h.parameters())}
        with contextlib.suppress(_errors.StudyExists):
            self.client.transport.call("CreateStudy", request, writes=True)
        self.refresh()

    def _rest(self) -> bool:
        """Hand out no more trials of this generation, and tell whether it was paused."""
        g = self._current
        status = self._status_of(g.generation)
        paused = status.state == "paused" and status.attributes.get(NEXT, PAUSED) == PAUSED
        self.client.set_attributes(f"studies/{g.name}", {NEXT: PAUSED if paused else "1"})
        with contextlib.suppress(_errors.StudyFinished):
            g.pause()
        return paused

    def _infer(self, trial: OpenTrial) -> dict[str, Parameter]:
        """Return the space of all trials that completed, of which this is one."""
        domains = self._current.parameters()
        for name, p in trial.domains.items():
            domains[name] = merge(name, domains[name], p) if name in domains else p
        presence = Presence()
        for g in self._generations:
            for view in _own(g, ["completed", "failed"]):
                if view.attributes.get(REPLACED, view.state) == "completed":
                    presence.add(_keys(_ran(view), domains))
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
        ours = (MARK, WHOLE, LEFT, NEXT)
        notes = self._status_of(self._current.generation).attributes
        attributes = {**{k: v for k, v in notes.items() if k not in ours}, ROOT: self._uid}
        attributes[BASE] = str(self._current.used())
        limit = int(spec.get("maxTrials", 0))
        if limit:
            numbers = range(self._current.generation + 1)
            begun = sum(_begun(self._status_of(n)) for n in numbers)
            spec["maxTrials"] = encode_int(max(1, limit - begun))
            attributes[LEFT] = str(max(0, limit - begun))
        if "timeout" in spec:
            created = StudyStatus.decode(self._get_root()).created
            assert created is not None
            left = decode_duration(spec["timeout"]) - (time.time() - created.timestamp())
            spec["timeout"] = encode_duration(max(1.0, left), "timeout")
        if spec.get("maxCost"):
            numbers = range(self._current.generation + 1)
            spent = sum(self._status_of(n).cost for n in numbers)
            spec["maxCost"] = encode_float(max(1e-9, float(spec["maxCost"]) - spent))
        spec["attributes"] = encode_attributes(attributes)
        return spec

    def _get_root(self) -> JSON:
        return self.client.transport.call("GetStudy", {"name": f"studies/{self.name}"})

    def _take_over(self) -> None:
        """Copy the trials of all generations to the newest."""
        new = self._current
        try:
            for old in self._generations[:-1]:
                new.add_encoded(self._encode_all(old, new))
        except _errors.StudyFinished:
            self._reopen()
        self.client.set_attributes(f"studies/{new.name}", {WHOLE: "1"})

    def _encode_all(self, old: _Generation, new: _Generation) -> Iterator[JSON]:
        over: list[AnyState] = ["completed", "failed", "infeasible", "pruned"]
        if old.generation == new.generation - 1:  # which has the queue of those before
            over.append("queued")
        for view in _own(old, over, reports=True):
            m = self._encode(view, old, new)
            if m is not None:
                yield m

    def _encode(self, view: TrialView, old: _Generation, new: _Generation) -> JSON | None:
        ran, space = _ran(view), new.parameters()
        config = fit(ran, space) or fit({**view.params, **ran}, space)
        if config is None:
            return None
        origin = f"{old.generation}/{view.number}"
        attributes = {k: v for k, v in view.attributes.items() if k != REPLACED}
        attributes[ID] = origin
        attributes[NUMBER] = str(old.number(view))
        if config != ran:
            attributes.setdefault(PARAMS, json.dumps(ran))
        if view.state == "queued":
            m: JSON = {
                "config": new.encode_config(config),
                "attributes": encode_attributes(attributes),
                "enqueue": True,
            }
        else:
            trial = {**as_dict(view), "params": config, "attributes": attributes}
            if REPLACED in view.attributes:
                trial["state"] = view.attributes[REPLACED]
                del trial["reason"], trial["message"]
            m = new.encode_new(trial)
        m["requestId"] = self._request_id(new, origin)
        return m

    def _request_id(self, target: _Generation, origin: str) -> str:
        import hashlib  # takes long to import

        text = f"{self._uid}/{target.generation}/{origin}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def _begun(s: StudyStatus) -> int:
    return s.running + s.completed + s.failed + s.infeasible + s.pruned - s.added


def _ran(view: TrialView) -> Mapping[str, ParamValue]:
    """Return the parameters that a trial ran with."""
    if PARAMS in view.attributes:
        ran: dict[str, ParamValue] = json.loads(view.attributes[PARAMS])
        return ran
    return view.params


def _own(g: _Generation, states: list[AnyState], *, reports: bool = False) -> Iterator[TrialView]:
    """Yield the trials of this generation that are no copies of trials that ran before."""
    for view in g.iter_trials(states=states, reports=reports):
        if ID not in view.attributes or view.origin == "enqueued":
            yield view


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
        return [parent.values[i] for i in sorted(int(str(v)[1:]) for v in values)]
    return sorted(int(v) for v in values)


def fit(
    params: Mapping[str, ParamValue], space: Mapping[str, Parameter]
) -> dict[str, ParamValue] | None:
    """Return the active parameters of a space, or None if they are not all there."""
    config: dict[str, ParamValue] = {}
    left = dict(space)
    while left:
        ready = [n for n in left if not any(parent in left for parent in left[n].when or {})]
        for name in ready:
            p = left.pop(name)
            if all(
                parent in config and _agrees(config[parent], values)
                for parent, values in (p.when or {}).items()
            ):
                if name not in params:
                    return None
                config[name] = p.coerce(params[name])
                if not contains(p, config[name]):
                    return None
    return config


def _agrees(value: ParamValue, values: Any) -> bool:
    several = values if isinstance(values, (list, tuple)) else [values]
    return any(type(value) is type(v) and value == v for v in several)


def _check_case(name: str, known: Mapping[str, Parameter]) -> None:
    """Refuse a new name that differs from another one only in case."""
    for other in known:
        if other != name and other.casefold() == name.casefold():
            raise InvalidRequest(
                f"parameter {name!r} differs from parameter {other!r} only in case, "
                "names differ in more, rename one of them"
            )


def merge(name: str, a: Parameter, b: Parameter) -> Parameter:
    """Return a parameter with the ranges of both, which must be alike otherwise."""
    alike = type(a) is type(b)
    if alike and isinstance(a, (Float, Int)) and isinstance(b, (Float, Int)):
        alike = (a.log, a.scale, a.step) == (b.log, b.scale, b.step)
        if alike and a.step is not None:
            steps = (a.low - b.low) / a.step
            alike = abs(steps - round(steps)) < 1e-9
        if alike:
            low, high = min(a.low, b.low), max(a.high, b.high)
            return dataclasses.replace(a, low=low, high=high)
    elif alike and isinstance(a, (Categorical, Ordinal)) and isinstance(b, (Categorical, Ordinal)):
        alike = [(type(v), v) for v in a.values] == [(type(v), v) for v in b.values]
    if alike:
        return a
    raise InvalidRequest(
        f"parameter {name!r} is {_text(b)} and was {_text(a)} before, only the range of a number "
        "may change, so give the parameter another name"
    )


def _text(p: Parameter) -> str:
    fields = {k: v for k, v in vars(p).items() if k != "when" and v is not None and v is not False}
    return f"{type(p).__name__}({', '.join(f'{k}={v!r}' for k, v in fields.items())})"


def covers(a: Parameter, b: Parameter) -> bool:
    """Tell whether a has all values of b, which is of the same kind."""
    if isinstance(a, (Float, Int)) and isinstance(b, (Float, Int)):
        return a.low <= b.low and b.high <= a.high
    return True


def contains(p: Parameter, value: ParamValue) -> bool:
    """Tell whether a parameter has a value."""
    if isinstance(p, (Categorical, Ordinal)):
        return p.index(value) >= 0
    if isinstance(p, Constant):
        return p.value == value
    if isinstance(value, (str, bool)) or not p.low <= value <= p.high:
        return False
    steps = (value - p.low) / p.step if p.step else 0.0
    return abs(steps - round(steps)) < 1e-9 and (isinstance(p, Float) or float(value).is_integer())


def centre(p: Parameter) -> ParamValue:
    """Return the value in the middle of a parameter."""
    return _at(p, 0.5)


def draw(p: Parameter, seed: str) -> ParamValue:
    """Return a random value of a parameter."""
    import random  # here and below, since they take long to import

    return _at(p, random.Random(seed).random())


def _at(p: Parameter, u: float) -> ParamValue:
    """Return the value at a share u below 1 of a parameter."""
    if isinstance(p, (Categorical, Ordinal)):
        first = 0 if isinstance(p, Categorical) and u == 0.5 else int(u * len(p.values))
        return p.values[first]
    if isinstance(p, Constant):
        return p.value
    if p.step or isinstance(p, Int) and not p.log:
        step = p.step or 1
        n = math.floor((p.high - p.low) / step + 1e-9) + 1
        from decimal import Decimal

        # In decimals, as the server computes the grid.
        v = float(Decimal(repr(p.low)) + Decimal(repr(step)) * int(u * n))
    elif p.log:
        low, high = math.log(p.low), math.log(p.high)
        v = math.exp(low + u * (high - low))
    else:
        v = p.low + u * (p.high - p.low)
    v = min(max(v, p.low), p.high)
    return round(v) if isinstance(p, Int) else float(v)
