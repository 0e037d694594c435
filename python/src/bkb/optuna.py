"""BKB as a sampler of Optuna.

>>> import optuna
>>> optuna.logging.set_verbosity(optuna.logging.WARNING)
>>> study = optuna.create_study(sampler=BKBSampler(seed=1))
>>> study.optimize(lambda trial: trial.suggest_float("x", -5, 5) ** 2, n_trials=20)
>>> len(study.trials)
20

Optuna keeps the trials. The sampler copies them to a study of the tuner, which proposes
the next parameters.
"""

from __future__ import annotations

import copy
import json
import logging
import math
import os
import random
import re
import sys
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from ._client import Client
from ._codec import ParamValue, encode_float
from ._errors import InvalidRequest
from ._goals import Direction
from ._options import Component
from ._presence import MOST_VALUES, Condition, Presence, Value
from ._scratch import scratch_client
from ._space import MOST_CHOICES, Categorical, Float, Int, Parameter
from ._study import Study, Trial

__all__ = ["BKBSampler"]

# Optuna's handler shows it, and optuna.logging.set_verbosity applies to it.
log = logging.getLogger("optuna.bkb")

INTERRUPTED = "bkb:interrupted"  # system attribute of a trial that Ctrl-C ended
ASKED = "bkb:asked"  # system attribute of a trial, what the sampler proposed
VIOLATION = "violation"  # metric of a constraint, feasible up to 0
MOST_CONSTRAINTS = 8  # metrics, since each has a model. Of more, the largest is one metric
LEASE = 366 * 86400.0  # of the copies, since Optuna decides when a trial is over
MIRRORS = 4  # search spaces of one study at a time
MOST_REPORTS = 1000  # intermediate values of a trial that are told
TRIES = 6  # of a proposal that another process makes too
PAUSE = 0.02  # seconds between the first two at most
NEAR = 1e-3  # of a range, what parallel workers must not propose at once
EDGE = 1e-9  # of a range, how far values that Optuna gets are inside
EXACT = 2**53  # largest integer of an axis, beyond it doubles skip integers


class BKBSampler(BaseSampler):
    """Sampler whose parameters come from the proposer of the tuner.

    Parameters
    ----------
    seed : int, optional
        Seed. The same seed and objective give the same trials.
    client : Client, optional
        Where the copies of the studies are kept, so that you can see the model of each.
        By default they are in a temporary file, which the program removes at its end.
    proposer : str or (str, dict)
        Name, or name and options, of the proposer. The default is ``"bkb"``, with one
        objective without repetitions of the best trial (``"noise": "none"``).
    independent_sampler : optuna.samplers.BaseSampler, optional
        Sampler of the parameters that are not in the search space of the model. The
        default is a `RandomSampler`.
    warn_independent_sampling : bool
        Whether to warn once of each of these parameters.

    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        client: Client | None = None,
        proposer: Component = "bkb",
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
    ) -> None:
        self._client = client
        self._proposer = (proposer, {}) if isinstance(proposer, str) else proposer
        self._random = random.Random(seed)
        self._independent = independent_sampler or RandomSampler(seed=seed)
        self._warn = warn_independent_sampling
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._histories: WeakKeyDictionary[Any, dict[int, _History]] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_client", "_proposer", "_random", "_independent", "_warn")
        return {k: self.__dict__[k] for k in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def reseed_rng(self) -> None:
        """Draw a new seed, for a copy of the sampler."""
        self._random.seed()
        self._independent.reseed_rng()

    def _history(self, study: optuna.Study) -> _History:
        if self._pid != os.getpid():  # the copies belong to the parent of this process
            self._forget()
            self.reseed_rng()
        histories = self._histories.setdefault(study._storage, {})
        return histories.setdefault(study._study_id, _History())

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that the model can propose.

        They are the parameters of all completed trials, and those that are present for
        some values of another parameter and for no others.
        """
        with self._lock:
            history = self._history(study)
            history.update(_trials(study))
            return history.space()

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Ask the proposer for the parameters of a trial."""
        if all(d.single() for d in search_space.values()):
            return {}
        with self._lock:
            history = self._history(study)
            history.update(_trials(study))
            mirror = self._mirror(study, history, search_space)
            if not mirror.axes:
                return {}
            params = self._ask(study, trial, history, mirror)
            history.asked[trial.number] = params
            return params

    def _ask(
        self, study: optuna.Study, trial: FrozenTrial, history: _History, mirror: _Mirror
    ) -> dict[str, Any]:
        trials, n = _trials(study), trial.number
        mirror.sync(trials, history.asked, but=n)
        params = mirror.ask(n)
        if isinstance(study._storage, InMemoryStorage):
            return params
        # Other processes see the parameters only when the objective has asked for them
        # all. So they are published. Two that propose alike at once ask again, after
        # pauses of different lengths.
        for i in range(TRIES):
            published = {k: mirror.axes[k].distribution.to_internal_repr(params[k]) for k in params}
            study._storage.set_trial_system_attr(trial._trial_id, ASKED, published)
            trials = _trials(study)
            if not mirror.taken(n, trials):
                return params
            mirror.cancel(n)
            time.sleep(self._random.random() * PAUSE * 2**i)
            mirror.sync(_trials(study), history.asked, but=n)
            params = mirror.ask(n)
        mirror.cancel(n)
        study._storage.set_trial_system_attr(trial._trial_id, ASKED, {})
        return {}

    def _mirror(
        self, study: optuna.Study, history: _History, search_space: dict[str, BaseDistribution]
    ) -> _Mirror:
        usable: dict[str, tuple[BaseDistribution, Condition | None]] = {}
        for name, c in history.conditions.items():  # parents come first
            d = search_space.get(name)
            if d is None or d.single() or not _representable(d):
                continue
            if c is None or c.parent in usable:  # another sampler may fix the parent
                usable[name] = (d, c)
        space = dict(sorted(usable.items()))
        constraints = tuple(sorted(history.constraints))
        key = repr((space, constraints))
        mirror = history.mirrors.get(key)
        if mirror is None:
            seed = self._random.getrandbits(63)
            try:
                mirror = _Mirror(self._create, study, space, constraints, seed)
            except InvalidRequest as e:
                log.warning(
                    "BKBSampler cannot propose the %d parameters of study %s, so `%s` samples "
                    "them, because %s",
                    len(space),
                    study.study_name,
                    type(self._independent).__name__,
                    e,
                )
                mirror = _Mirror(self._create, study, {}, constraints, seed)
            history.mirrors[key] = mirror
            while len(history.mirrors) > MIRRORS:
                oldest = history.mirrors.popitem(last=False)[1]
                if oldest.axes:
                    self._copies().delete_study(oldest.study.name)
        history.mirrors.move_to_end(key)
        return mirror

    def _copies(self) -> Client:
        return self._client or scratch_client()

    def _create(
        self, study: optuna.Study, space: dict[str, Parameter], violations: list[str], seed: int
    ) -> Study:
        proposer, options = self._proposer[0], dict(self._proposer[1])
        if violations:
            limits = {name: {"max": 0} for name in violations}
            options["constraints"] = {**options.get("constraints", {}), **limits}
        names = _objectives(study)
        if proposer == "bkb" and len(names) == 1:
            # Repetitions tell which trial is the best, but Optuna takes the best measured one.
            options.setdefault("noise", "none")
        maximize = StudyDirection.MAXIMIZE
        objectives: dict[str, Direction] = {
            name: "maximize" if d == maximize else "minimize"
            for name, d in zip(names, study.directions, strict=True)
        }
        base = re.sub(r"[^a-z0-9_-]+", "-", study.study_name.lower())[:40].strip("-")
        return self._copies().create_study(
            f"optuna-{base}-{uuid.uuid4().hex[:8]}",
            space,
            objectives=objectives,
            proposer=(proposer, options),
            lease=LEASE,
            max_retries=0,
            seed=seed,
            attributes={"optuna_study": study.study_name[:1000]},
        )

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Ask the independent sampler for a parameter that the model does not propose."""
        if self._warn:
            with self._lock:
                history = self._history(study)
                modelled = param_name in history.conditions and _representable(param_distribution)
                known = history.counts.get(param_name, 0) > 1
                if known and not modelled and param_name not in history.warned:
                    history.warned.add(param_name)
                    log.warning(
                        "The parameter `%s` in Trial#%d is sampled independently using `%s` "
                        "instead of `BKBSampler`, because its range changes, is too wide or "
                        "has too many choices, or no parameter with few values decides whether it "
                        "is present, or a chain of too many does. You can suppress this warning "
                        "by setting `warn_independent_sampling` to `False`.",
                        param_name,
                        trial.number,
                        type(self._independent).__name__,
                    )
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Tell the independent sampler that a trial begins."""
        self._independent.before_trial(study, trial)

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Tell the outcome of a trial to the study that proposed it."""
        with self._lock:
            history = self._history(study)
            if state == TrialState.FAIL and _interrupted():
                trial = copy.copy(trial)
                trial.system_attrs = {**trial.system_attrs, INTERRUPTED: True}
                study._storage.set_trial_system_attr(trial._trial_id, INTERRUPTED, True)
            for mirror in history.mirrors.values():
                mirror.settle_asked(trial, state, values)
            history.asked.pop(trial.number, None)
        self._independent.after_trial(study, trial, state, values)


def _trials(study: optuna.Study) -> list[FrozenTrial]:
    # The list of a study under HyperbandPruner has only trials of one bracket. The model
    # learns from all.
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


def _objectives(study: optuna.Study) -> list[str]:
    n = len(study.directions)
    return ["value"] if n == 1 else [f"value{i}" for i in range(n)]


def _representable(d: BaseDistribution) -> bool:
    if isinstance(d, CategoricalDistribution):
        return len(d.choices) <= MOST_CHOICES
    if isinstance(d, (FloatDistribution, IntDistribution)):
        integral = isinstance(d, IntDistribution) or d.step is not None
        return math.isfinite(d.high - d.low) and not (
            integral and max(abs(d.low), abs(d.high)) / (d.step or 1) > EXACT
        )
    return False


@dataclass(frozen=True)
class _Axis:
    """A parameter of Optuna and its counterpart in the copy.

    A categorical becomes its index, since Optuna's choices may be None or lists. A
    parameter with a step becomes the number of steps.
    """

    name: str  # in the copy, since Optuna's names may hold anything
    distribution: BaseDistribution

    def parameter(self, when: Mapping[str, Sequence[Value]] | None = None) -> Parameter:
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return Categorical([f"c{i}" for i in range(len(d.choices))], when=when)
        assert isinstance(d, (FloatDistribution, IntDistribution))
        if self._stepped():
            return Int(0, round((d.high - d.low) / (d.step or 1)), when=when)
        kind = Int if isinstance(d, IntDistribution) else Float
        return kind(d.low, d.high, log=d.log, when=when)

    def _stepped(self) -> bool:
        d = self.distribution
        if isinstance(d, IntDistribution):
            return d.step > 1
        return isinstance(d, FloatDistribution) and d.step is not None

    def discrete(self) -> bool:
        """Tell whether the parameter can decide whether another is present."""
        p = self.parameter()
        return isinstance(p, Categorical) or isinstance(p, Int) and p.high - p.low < MOST_VALUES

    def encode(self, value: Any) -> Value | float | None:
        """Return a value as the copy has it, or None if it is out of range."""
        d = self.distribution
        try:
            v = d.to_internal_repr(value)
        except (ValueError, TypeError):
            return None
        if not d._contains(v):
            return None
        if isinstance(d, CategoricalDistribution):
            return f"c{int(v)}"
        assert isinstance(d, (FloatDistribution, IntDistribution))
        if self._stepped():
            return round((v - d.low) / (d.step or 1))
        if isinstance(d, IntDistribution):
            return int(v)
        low, high = self._inside(d)  # what stands for an end is the end again
        return d.low if v <= low else d.high if v >= high else float(v)

    def decode(self, value: ParamValue) -> Any:
        """Return a value of the copy as Optuna has it."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return d.choices[int(str(value)[1:])]
        assert isinstance(d, (FloatDistribution, IntDistribution))
        assert not isinstance(value, str)
        if isinstance(d, FloatDistribution) and d.step is None:
            low, high = self._inside(d)
            return min(max(float(value), low), high)
        v = d.low + value * (d.step or 1) if self._stepped() else value
        v = min(max(v, d.low), d.high)
        return int(v) if isinstance(d, IntDistribution) else float(v)

    @staticmethod
    def _inside(d: FloatDistribution) -> tuple[float, float]:
        """Return the values that Optuna gets for the ends of a range.

        BKB proposes the ends. The samplers of Optuna hardly ever do, and objectives that
        were written for them divide by a value or take its logarithm.
        """
        if d.log:
            share = math.exp(EDGE * (math.log(d.high) - math.log(d.low)))
            return d.low * share, d.high / share
        return d.low + EDGE * (d.high - d.low), d.high - EDGE * (d.high - d.low)


class _History:
    """What the sampler knows of one study of Optuna."""

    def __init__(self) -> None:
        self.mirrors: OrderedDict[str, _Mirror] = OrderedDict()
        self.asked: dict[int, dict[str, Any]] = {}  # of running trials, by number
        self.warned: set[str] = set()
        self.constraints: set[str] = set()
        self.conditions: dict[str, Condition | None] = {}
        self.counts: dict[str, int] = {}
        self._axes: dict[str, _Axis] = {}
        self._changing: set[str] = set()  # parameters with several distributions
        self._presence = Presence()
        self._news = _News()

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
            self.constraints.update(t.constraints)
            values: dict[str, Value | None] = {}
            for name, d in t.distributions.items():
                axis = self._axes.setdefault(name, _Axis(name, d))
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


class _News:
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
class _Open:
    """A trial that runs, and the trial that stands for it in the copy."""

    trial: Trial
    config: Config


class _Mirror:
    """Copy of a study of Optuna over one search space."""

    def __init__(
        self,
        create: Any,
        study: optuna.Study,
        space: Mapping[str, tuple[BaseDistribution, Condition | None]],
        constraints: tuple[str, ...],
        seed: int,
    ) -> None:
        self.axes = {name: _Axis(f"p{i}", d) for i, (name, (d, _)) in enumerate(space.items())}
        self._conditions = {name: c for name, (_, c) in space.items() if c is not None}
        self._objectives = _objectives(study)
        self._constraints = constraints
        self._bounds = [(math.inf, -math.inf)] * len(self._objectives)
        self._open: dict[int, _Open] = {}
        self._news = _News()
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
        self._open[number] = _Open(trial, self.config(params) or dict(asked))
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
            self._open[t.number] = _Open(self.study.ask(), config)

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
                if same and all(_near(space[n], mine[n], theirs[n]) for n in numbers):
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
        return {"value": {**metrics, **self._violations(t.constraints)}}

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


def _interrupted() -> bool:
    """Tell whether Ctrl-C ended the trial whose outcome Optuna tells the sampler now.

    Optuna passes no exception on. It is a variable of the function that ran the objective.
    """
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "_run_trial":
            return isinstance(frame.f_locals.get("func_err"), KeyboardInterrupt)
    return False


def _reason(t: FrozenTrial) -> str:
    reason = t.system_attrs.get("fail_reason")
    return "" if reason is None else json.dumps(reason)[:1000]


def _near(p: Parameter, a: ParamValue, b: ParamValue) -> bool:
    assert isinstance(p, Float)
    x, y, low, high = float(a), float(b), float(p.low), float(p.high)
    if p.log:
        x, y, low, high = map(math.log, (x, y, low, high))
    return abs(x - y) < NEAR * (high - low)
