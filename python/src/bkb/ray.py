"""BKB in Ray Tune.

    tuner = tune.Tuner(
        train,
        param_space={"lr": tune.loguniform(1e-5, 1e-1), "layers": tune.randint(1, 5)},
        tune_config=tune.TuneConfig(
            metric="loss", mode="min", num_samples=50, search_alg=BKBSearch(max_t=20)
        ),
    )

The searcher runs where the driver runs, and so does the file of the study.
"""

from __future__ import annotations

import logging
import math
import os
import pickle
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

try:
    from ray.tune.result import DEFAULT_METRIC, TRAINING_ITERATION
    from ray.tune.search import Searcher
    from ray.tune.search.sample import Categorical as RayCategorical
    from ray.tune.search.sample import Float as RayFloat
    from ray.tune.search.sample import Integer as RayInteger
    from ray.tune.search.sample import LogUniform, Quantized, Uniform
    from ray.tune.search.variant_generator import parse_spec_vars
    from ray.tune.utils.util import flatten_dict, unflatten_dict
except ImportError as e:
    raise ImportError("bkb.ray needs Ray Tune, run pip install 'bkb-tuner[ray]'") from e

from . import _errors
from ._client import Client, connect, open_file
from ._errors import InvalidRequest
from ._lease import LEASE, heartbeats
from ._space import Float, Int, Parameter, of_list
from ._study import Study, Trial

log = logging.getLogger("bkb")

__all__ = ["BKBSearch"]


class BKBSearch(Searcher):  # type: ignore[misc,unused-ignore]
    """Searcher of Ray Tune whose trials come from a study.

    Parameters
    ----------
    space : dict, optional
        Space of Ray Tune. Left out, it is the ``param_space`` of the ``Tuner``.
    metric, mode : str, optional
        Metric, and ``"min"`` or ``"max"``. Left out, they are those of ``TuneConfig``.
    max_t : int, optional
        Value of ``time_attr`` at which a trial is complete, as in a scheduler. A scheduler
        stopped a trial that ends before, and it is told as pruned. Left out, each trial
        that ends without an error is told as completed.
    time_attr : str
        Result that counts time.
    points_to_evaluate : list of dict, optional
        Configurations to begin with.
    study : str, optional
        Name of the study, made up if left out. A study of this name is continued.
    db : path, optional
        File of the study on the driver's machine, ``TUNER_DB`` or ``tuner.db`` if left out.
    server : str, optional
        Address of ``tuner serve --http``, instead of a file.
    seed : int
        Seed of the proposer.

    """

    def __init__(
        self,
        space: Mapping[str, Any] | None = None,
        metric: str | None = None,
        mode: str | None = None,
        *,
        max_t: int | None = None,
        time_attr: str = TRAINING_ITERATION,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        study: str | None = None,
        db: str | os.PathLike[str] | None = None,
        server: str | None = None,
        seed: int = 0,
    ) -> None:
        given: list[Any] = [metric, mode]
        if not all(isinstance(g, (str, type(None))) for g in given):
            raise InvalidRequest(
                f"metric is {metric!r} and mode is {mode!r}, give one metric and one mode"
            )
        if mode not in (None, "min", "max"):
            raise InvalidRequest(f"mode is {mode!r}, give 'min' or 'max'")
        if db is not None and server is not None:
            raise InvalidRequest("db and server are both given, leave one out")
        super().__init__(metric=metric, mode=mode)
        self._metric: str | None = metric
        self._mode: str | None = mode
        self._max_t, self._time_attr = max_t, time_attr
        self._points = list(points_to_evaluate or [])
        self._name = study or "ray-" + uuid.uuid4().hex[:12]
        self._seed = seed
        self._client: Client = connect(server) if server is not None else open_file(db)
        self._study: Study | None = None
        self._decode: dict[str, Callable[[Any], Any]] = {}
        self._trials: dict[str, Trial] = {}
        if space is not None and mode is not None:
            self._begin(space)
        elif space is not None:
            raise InvalidRequest("mode is missing, give 'min' or 'max' with the space")

    @property
    def study(self) -> Study:
        """The study."""
        if self._study is None:
            raise InvalidRequest("the search has no space yet, give space= or run the Tuner")
        return self._study

    def _begin(self, space: Mapping[str, Any]) -> None:
        parameters = {}
        for name, (p, decode) in _convert(space).items():
            parameters[name], self._decode[name] = p, decode
        if not parameters:
            raise InvalidRequest(
                "the space has nothing to search, give a domain such as tune.uniform(0, 1)"
            )
        self._metric = metric = self._metric or DEFAULT_METRIC
        self._study = self._client.create_study(
            self._name,
            parameters,
            minimize=metric if self._mode == "min" else None,
            maximize=metric if self._mode == "max" else None,
            seed=self._seed,
            max_retries=0,
            exist_ok=True,
        )
        for point in self._points:
            flat = flatten_dict(dict(point), prevent_delimiter=True)
            self._study.enqueue({n: v for n, v in flat.items() if n in parameters})
        self._points = []
        if self._max_t is None:
            log.warning(
                "BKBSearch has no max_t, so a trial that a scheduler stops is told as "
                "completed, give the max_t of the scheduler"
            )

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: Mapping[str, Any], **spec: Any
    ) -> bool:
        """Take metric, mode and space of the ``Tuner``. Ray calls it."""
        if self._study is not None:
            return False
        self._metric = metric or self._metric
        self._mode = mode or self._mode
        if self._mode is None:
            raise InvalidRequest("mode is missing, give 'min' or 'max' to TuneConfig")
        self._begin(config)
        return True

    def suggest(self, trial_id: str) -> Any:
        """Return the configuration of a trial. Ray calls it."""
        if trial_id not in self._trials:
            try:
                # A worker of this name gets the same trial again.
                trial = self.study.ask(worker=f"ray-{trial_id}", lease=LEASE)
            except _errors.StudyFinished:
                return Searcher.FINISHED
            except (_errors.NoTrialNow, _errors.StudyPaused):
                return None
            self._trials[trial_id] = trial
            heartbeats.add(trial._held, LEASE)
        params = self._trials[trial_id].params
        return unflatten_dict({n: self._decode[n](v) for n, v in params.items()})

    def on_trial_result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Report a result. Ray calls it."""
        trial = self._trials.get(trial_id)
        step, value = result.get(self._time_attr), result.get(self._metric or "")
        if trial is None or step is None or value is None:
            return
        try:
            trial.report(value, int(step))
        except _errors.Error as e:
            log.warning("trial %d cannot report, %s", trial.number, e)

    def on_trial_complete(
        self, trial_id: str, result: Mapping[str, Any] | None = None, error: bool = False
    ) -> None:
        """Tell an outcome. Ray calls it."""
        trial = self._trials.pop(trial_id, None)
        if trial is None:
            return
        value = (result or {}).get(self._metric or "")
        time = (result or {}).get(self._time_attr)
        stopped = self._max_t is not None and time is not None and time < self._max_t
        try:
            if error or value is None:
                said = "failed in Ray" if error else f"ended without a result {self._metric!r}"
                trial.tell(state="failed", reason="crash", message=said)
            elif stopped and math.isfinite(value):
                trial.tell(value, state="pruned")
            else:
                trial.tell(value)
        except _errors.Error as e:
            # Ray would end all trials.
            log.warning("trial %d cannot be told, %s", trial.number, e)
            heartbeats.remove(trial._held)

    def save(self, checkpoint_path: str) -> None:
        """Save the name of the study and the running trials. Ray calls it."""
        with open(checkpoint_path, "wb") as f:
            pickle.dump(self.__dict__, f)

    def restore(self, checkpoint_path: str) -> None:
        """Continue with the study of a saved searcher. Ray calls it."""
        with open(checkpoint_path, "rb") as f:
            self.__dict__.update(pickle.load(f))
        for trial in self._trials.values():
            heartbeats.add(trial._held, LEASE, now=True)


Converted = tuple[Parameter, Callable[[Any], Any]]


class _Grid:
    """The multiples of a quantum that lie in a logarithmic range."""

    def __init__(self, q: float, kind: type) -> None:
        self.q, self.kind = q, kind

    def __call__(self, value: float) -> Any:
        return self.kind(round(value / self.q) * self.q)


def _same(value: Any) -> Any:
    return value


def _convert(space: Mapping[str, Any]) -> dict[str, Converted]:
    """Return the parameters of the study by their names, with slashes between levels."""
    _, _, grids = parse_spec_vars(dict(space))  # a grid is a dict, which must not be flat
    for path, _ in grids:
        raise InvalidRequest(
            f"parameter {'/'.join(path)!r} is a grid_search, which has no place in a search, "
            "give tune.choice"
        )
    _, domains, _ = parse_spec_vars(flatten_dict(dict(space), prevent_delimiter=True))
    return {"/".join(path): _parameter("/".join(path), domain) for path, domain in domains}


def _parameter(name: str, domain: Any) -> Converted:
    sampler, q = domain.get_sampler(), None
    if isinstance(sampler, Quantized):
        sampler, q = sampler.get_sampler(), sampler.q
    if isinstance(domain, RayCategorical) and isinstance(sampler, Uniform) and q is None:
        return of_list(list(domain.categories), name), _same
    if not isinstance(domain, (RayFloat, RayInteger)) or not isinstance(
        sampler, (Uniform, LogUniform)
    ):
        raise InvalidRequest(
            f"parameter {name!r} is {domain}, give a domain of tune that is uniform, loguniform, "
            "randint, lograndint or choice, or one of them quantized"
        )
    logarithmic = isinstance(sampler, LogUniform)
    low, high = domain.lower, domain.upper
    if q is not None:
        low, high = math.ceil(low / q - 1e-9) * q, math.floor(high / q + 1e-9) * q
    if isinstance(domain, RayInteger) and q in (None, 1):
        high -= 1  # the end is excluded
    step = None if q is None or logarithmic else q
    decode = _Grid(q, domain.cast) if q is not None and logarithmic else _same
    if isinstance(domain, RayInteger):
        return Int(int(low), int(high), step=step, log=logarithmic), decode
    return Float(float(low), float(high), step=step, log=logarithmic), decode
