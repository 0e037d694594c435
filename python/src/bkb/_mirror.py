"""Copies of a study of Optuna in the tuner, one for each search space."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from ._axis import Axis, near
from ._codec import ParamValue, encode_float
from ._presence import Condition, Presence, Value
from ._space import Float
from ._study import Study, Trial

INTERRUPTED = "bkb:interrupted"  # system attribute of a trial that Ctrl-C ended
ASKED = "bkb:asked"  # system attribute of a trial, what the sampler proposed
TOLD = "constraints"  # system attribute of a trial, what a constraints_func told
VIOLATION = "violation"  # metric of a constraint, feasible up to 0
MOST_CONSTRAINTS = 8  # metrics, since each has a model. Of more, the largest is one metric
MOST_REPORTS = 1000  # intermediate values of a trial that are told


def objectives_of(study: optuna.Study) -> list[str]:
    n = len(study.directions)
    return ["value"] if n == 1 else [f"value{i}" for i in range(n)]


def constraints_of(t: FrozenTrial) -> Mapping[str, float]:
    """Return the constraints of a trial. In Optuna 4 they have no names."""
    named: Mapping[str, float] | None = getattr(t, "constraints", None)
    if named is not None:
        return named
    return {str(i): v for i, v in enumerate(t.system_attrs.get(TOLD) or ())}


class History:
    """What the sampler knows of one study of Optuna."""

    def __init__(self) -> None:
        self.mirrors: OrderedDict[str, Mirror] = OrderedDict()
        self.asked: dict[int, dict[str, Any]] = {}  # of running trials, by number
        self.warned: set[str] = set()
        self.constraints: set[str] = set()
        self.conditions: dict[str, Condition | None] = {}
        self.counts: dict[str, int] = {}
        self._axes: dict[str, Axis] = {}
        self._changing: set[str] = set()  # parameters with several distributions
        self._presence = Presence()
        self._news = News()

    def update(self, trials: list[FrozenTrial]) -> None:
        """Read the trials that finished since the last call."""
        changed = False
        for t in self._news.read(trials):
            if not t.state.is_finished():
                continue
            self._news.finished(t.number)
            if t.state != TrialState.COMPLETE:
                continue
            changed = True
            self.constraints.update(constraints_of(t))
            values: dict[str, Value | None] = {}
            for name, d in t.distributions.items():
                axis = self._axes.setdefault(name, Axis(name, d))
                if axis.distribution != d:
                    self._changing.add(name)
                v = axis.encode(t.params[name]) if axis.discrete() else None
                values[name] = None if isinstance(v, float) else v
                self.counts[name] = self.counts.get(name, 0) + 1
            self._presence.add(values)
        if changed:
            self.conditions = self._presence.conditions(self._changing)

    def space(self) -> dict[str, BaseDistribution]:
        return {
            name: self._axes[name].distribution
            for name in sorted(self.conditions)
            if not self._axes[name].distribution.single()
        }


class News:
    """Goes through the trials of a study once, and again through those that run."""

    def __init__(self) -> None:
        self._read = 0
        self._open: set[int] = set()

    def read(self, trials: list[FrozenTrial]) -> Iterable[FrozenTrial]:
        self._open.update(range(self._read, len(trials)))
        self._read = max(self._read, len(trials))
        return [trials[n] for n in sorted(self._open) if n < len(trials)]

    def finished(self, number: int) -> None:
        self._open.discard(number)


Config = dict[str, ParamValue]


@dataclass
class Open:
    """A trial that runs, and the trial that stands for it in the copy."""

    trial: Trial
    config: Config


class Mirror:
    """Copy of a study of Optuna over one search space."""

    def __init__(
        self,
        create: Any,
        study: optuna.Study,
        space: Mapping[str, tuple[BaseDistribution, Condition | None]],
        constraints: tuple[str, ...],
        seed: int,
    ) -> None:
        self.axes = {name: Axis(f"p{i}", d) for i, (name, (d, _)) in enumerate(space.items())}
        self._conditions = {name: c for name, (_, c) in space.items() if c is not None}
        self._objectives = objectives_of(study)
        self._constraints = constraints
        self._bounds = [(math.inf, -math.inf)] * len(self._objectives)
        self._open: dict[int, Open] = {}
        self._news = News()
        self._told: set[int] = set()  # before Optuna stored that they are finished
        parameters = {}
        for name, axis in self.axes.items():
            c, when = self._conditions.get(name), None
            if c is not None:
                when = {self.axes[c.parent].name: sorted(c.values, key=str)}
            parameters[axis.name] = axis.parameter(when)
        if parameters:
            violations = list(self._violations({}))
            self.study: Study = create(study, parameters, violations, seed)

    def config(self, params: Mapping[str, Any]) -> Config | None:
        """Return parameters as the copy has them, or None if they are not of its space."""
        config: Config = {}
        by_name: dict[str, ParamValue | None] = {}
        for name, axis in self.axes.items():
            by_name[name] = axis.encode(params[name]) if name in params else None
        for name, axis in self.axes.items():
            c, v = self._conditions.get(name), by_name[name]
            if (name in params) != (c is None or by_name[c.parent] in c.values):
                return None
            if name in params:
                if v is None:
                    return None
                config[axis.name] = v
        return config

    def ask(self, number: int) -> dict[str, Any]:
        """Ask for the parameters of a trial."""
        trial = self.study.ask()
        asked = trial.params
        params = {n: a.decode(asked[a.name]) for n, a in self.axes.items() if a.name in asked}
        self._open[number] = Open(trial, self.config(params) or dict(asked))
        return params

    def cancel(self, number: int) -> None:
        """Tell that a trial does not run as asked."""
        self._open.pop(number).trial.tell(state="failed", reason="cancelled")

    def sync(
        self, trials: list[FrozenTrial], asked: Mapping[int, Mapping[str, Any]], *, but: int
    ) -> None:
        """Take over the trials that finished or began since the last call."""
        batch: list[dict[str, Any]] = []
        for t in self._news.read(trials):
            if t.number == but:
                continue
            if t.state.is_finished():
                self._news.finished(t.number)
                if t.number not in self._told:
                    self._settle(t, t.state, t.values, batch)
                self._told.discard(t.number)
            elif t.state == TrialState.RUNNING and t.number not in self._told:
                self._running(t, asked)
        self.study.add_trials(batch)

    def _published(
        self, t: FrozenTrial, asked: Mapping[int, Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        """Return the parameters that a sampler proposed for a running trial."""
        if t.number in asked:
            return {k: v for k, v in asked[t.number].items() if k in self.axes}
        params = {}
        for name, v in t.system_attrs.get(ASKED, {}).items():
            if name in self.axes and self.axes[name].distribution._contains(v):
                params[name] = self.axes[name].distribution.to_external_repr(v)
        return params

    def _running(self, t: FrozenTrial, asked: Mapping[int, Mapping[str, Any]]) -> None:
        """Make a trial that another worker or another copy asked for a running trial."""
        known = self._open.get(t.number)
        if known is not None and t.number in asked:
            return
        config = self.config({**self._published(t, asked), **t.params})
        if known is not None and known.config != config:
            self.cancel(t.number)
            known = None
        if known is None and config is not None:
            self.study.enqueue(config)
            self._open[t.number] = Open(self.study.ask(), config)

    def taken(self, number: int, trials: list[FrozenTrial]) -> bool:
        """Tell whether a trial that was not known at the ask has this point."""
        mine = self._open[number].config
        space = self.study.space
        numbers = [n for n in mine if isinstance(space[n], Float)]
        if not numbers:
            return False
        for t in self._news.read(trials):
            if t.state == TrialState.WAITING or t.number == number or t.number in self._told:
                continue
            theirs = self.config({**self._published(t, {}), **t.params})
            known = self._open.get(t.number)
            new = theirs is not None and (known is None or known.config != theirs)
            if new and theirs is not None and mine.keys() == theirs.keys():
                same = all(mine[n] == theirs[n] for n in mine if n not in numbers)
                if same and all(near(space[n], mine[n], theirs[n]) for n in numbers):
                    return True
        return False

    def settle_asked(
        self, t: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Tell the outcome of a trial that the copy knows as running."""
        if t.number in self._open:
            batch: list[dict[str, Any]] = []
            self._settle(t, state, values, batch)
            self.study.add_trials(batch)
            self._told.add(t.number)

    def _settle(
        self,
        t: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
        batch: list[dict[str, Any]],
    ) -> None:
        outcome = self._outcome(t, state, values)
        reports = self._reports(t)
        config = self.config(t.params)
        known = self._open.pop(t.number, None)
        if known is not None:
            if config == known.config or (
                state != TrialState.COMPLETE and self._began(t.params, known.config)
            ):
                self._report(known.trial, reports)
                known.trial.tell(**outcome)
                return
            known.trial.tell(state="failed", reason="cancelled", message="ran otherwise")
        if config is not None:
            batch.append({"params": config, "reports": reports, **outcome})

    def _began(self, params: Mapping[str, Any], config: Config) -> bool:
        """Tell whether a trial that ended early has the parameters of a configuration."""
        return all(
            a.encode(params[name]) == config.get(a.name)
            for name, a in self.axes.items()
            if name in params
        )

    def _outcome(
        self, t: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> dict[str, Any]:
        if state == TrialState.PRUNED:
            return {"state": "pruned"}
        if state != TrialState.COMPLETE or values is None:
            reason = "cancelled" if INTERRUPTED in t.system_attrs else "crash"
            return {"state": "failed", "reason": reason, "message": _reason(t)}
        metrics = {}
        for i, (name, v) in enumerate(zip(self._objectives, values, strict=True)):
            low, high = self._bounds[i]
            if math.isfinite(v):
                self._bounds[i] = min(low, v), max(high, v)
            elif low > high:  # there is no value yet that could stand for infinity
                return {"state": "infeasible"}
            else:  # the model has no use for infinity, so the worst or best value so far
                v = high if v > 0 else low
            metrics[name] = v
        return {"value": {**metrics, **self._violations(constraints_of(t))}}

    def _violations(self, told: Mapping[str, float]) -> dict[str, float]:
        """Return the metrics of the constraints. A constraint that was not told is kept."""
        values = [told.get(name, 0.0) for name in self._constraints]
        if len(values) > MOST_CONSTRAINTS:
            values = [max(values)]
        names = [VIOLATION] if len(values) == 1 else [f"{VIOLATION}{i}" for i in range(len(values))]
        return {n: min(max(v, -1e300), 1e300) for n, v in zip(names, values, strict=True)}

    def _reports(self, t: FrozenTrial) -> dict[int, float]:
        """Return the intermediate values, evenly thinned out if there are many."""
        steps = sorted(s for s, v in t.intermediate_values.items() if math.isfinite(v))
        every = -(-len(steps) // MOST_REPORTS)
        kept = steps[::-every][::-1] if every > 1 else steps  # with the last one
        return {s: t.intermediate_values[s] for s in kept}

    def _report(self, trial: Trial, reports: Mapping[int, float]) -> None:
        name = self._objectives[0]
        if reports:
            trial._held.report_all({s: {name: encode_float(v)} for s, v in reports.items()})


def _reason(t: FrozenTrial) -> str:
    reason = t.system_attrs.get("fail_reason")
    return "" if reason is None else json.dumps(reason)[:1000]
