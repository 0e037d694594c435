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
import logging
import os
import random
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from ._axis import representable
from ._client import Client
from ._errors import InvalidRequest
from ._goals import Direction
from ._mirror import ASKED, INTERRUPTED, TOLD, History, Mirror, objectives_of
from ._options import Component
from ._presence import Condition
from ._scratch import scratch_client
from ._space import Parameter
from ._study import Study

__all__ = ["BKBSampler"]

# Optuna's handler shows it, and optuna.logging.set_verbosity applies to it.
log = logging.getLogger("optuna.bkb")

LEASE = 366 * 86400.0  # of the copies, since Optuna decides when a trial is over
MIRRORS = 4  # search spaces of one study at a time
TRIES = 6  # of a proposal that another process makes too
PAUSE = 0.02  # seconds between the first two at most


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
    constraints_func : callable, optional
        Function of a finished trial that returns values, which are feasible up to 0. With
        Optuna 5 you can call ``trial.set_constraint`` instead.

    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        client: Client | None = None,
        proposer: Component = "bkb",
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ) -> None:
        self._client = client
        self._proposer = (proposer, {}) if isinstance(proposer, str) else proposer
        self._random = random.Random(seed)
        self._independent = independent_sampler or RandomSampler(seed=seed)
        self._warn = warn_independent_sampling
        self._constrain = constraints_func
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._histories: WeakKeyDictionary[Any, dict[int, History]] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_client", "_proposer", "_random", "_independent", "_warn", "_constrain")
        return {k: self.__dict__[k] for k in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def reseed_rng(self) -> None:
        """Draw a new seed, for a copy of the sampler."""
        self._random.seed()
        self._independent.reseed_rng()

    def _history(self, study: optuna.Study) -> History:
        if self._pid != os.getpid():  # the copies belong to the parent of this process
            self._forget()
            self.reseed_rng()
        histories = self._histories.setdefault(study._storage, {})
        return histories.setdefault(study._study_id, History())

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
        self, study: optuna.Study, trial: FrozenTrial, history: History, mirror: Mirror
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
        self, study: optuna.Study, history: History, search_space: dict[str, BaseDistribution]
    ) -> Mirror:
        usable: dict[str, tuple[BaseDistribution, Condition | None]] = {}
        for name, c in history.conditions.items():  # parents come first
            d = search_space.get(name)
            if d is None or d.single() or not representable(d):
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
                mirror = Mirror(self._create, study, space, constraints, seed)
            except InvalidRequest as e:
                log.warning(
                    "BKBSampler cannot propose the %d parameters of study %s, so `%s` samples "
                    "them, because %s",
                    len(space),
                    study.study_name,
                    type(self._independent).__name__,
                    e,
                )
                mirror = Mirror(self._create, study, {}, constraints, seed)
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
        names = objectives_of(study)
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
                modelled = param_name in history.conditions and representable(param_distribution)
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
            if self._constrain is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
                told = tuple(map(float, self._constrain(trial)))
                trial = copy.copy(trial)
                trial.system_attrs = {**trial.system_attrs, TOLD: told}
                study._storage.set_trial_system_attr(trial._trial_id, TOLD, told)
            for mirror in history.mirrors.values():
                mirror.settle_asked(trial, state, values)
            history.asked.pop(trial.number, None)
        self._independent.after_trial(study, trial, state, values)


def _trials(study: optuna.Study) -> list[FrozenTrial]:
    # The list of a study under HyperbandPruner has only trials of one bracket. The model
    # learns from all.
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


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
