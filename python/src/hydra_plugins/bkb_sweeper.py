"""Sweeper of Hydra whose jobs are trials of a study.

    python train.py -m hydra/sweeper=bkb
        'lr=tag(log,interval(1e-5,0.1))' 'layers=range(1,5)' 'opt=choice(adam,sgd)'

The function of ``hydra.main`` returns the objective value, a list with one of each objective,
or a dict of metrics.
"""

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep, Override, RangeSweep
from hydra.core.plugins import Plugins
from hydra.core.utils import JobStatus
from hydra.plugins.sweeper import Sweeper
from omegaconf import OmegaConf

import bkb

log = logging.getLogger("bkb")

__all__ = ["BKBSweeper", "BKBSweeperConf"]


@dataclass
class BKBSweeperConf:
    """Settings of the group ``hydra/sweeper``.

    Attributes
    ----------
    n_trials, n_jobs : int
        Jobs that one call runs, and jobs that the launcher gets at a time.
    direction : str, list of str or dict
        ``"minimize"`` or ``"maximize"``, one for each objective, or the directions of named
        ones.
    study : str, optional
        Name of the study, made up if left out. A study of this name is continued.
    db, server, seed : optional
        Where the study is, and the seed of the proposer. See `bkb.create_study`.
    max_failures : int
        Jobs that may fail. One more ends the sweep with the exception of the job.
    params : dict
        Sweeps by name, such as ``lr: interval(0, 1)``. Those of the command line come first.
    options : dict
        Further arguments of `bkb.create_study`.

    """

    _target_: str = "hydra_plugins.bkb_sweeper.BKBSweeper"
    n_trials: int = 20
    n_jobs: int = 1
    direction: Any = "minimize"
    study: str | None = None
    db: str | None = None
    server: str | None = None
    seed: int | None = None
    max_failures: int = 0
    params: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


ConfigStore.instance().store("bkb", BKBSweeperConf, "hydra/sweeper", provider="bkb_tuner")


class BKBSweeper(Sweeper):  # type: ignore[misc,unused-ignore]
    """Sweeper of Hydra, with the settings of `BKBSweeperConf`."""

    def __init__(self, **settings: Any) -> None:
        self._settings = c = BKBSweeperConf(**settings)
        self._name = c.study or "hydra-" + uuid.uuid4().hex[:12]
        goals = (
            OmegaConf.to_object(c.direction) if OmegaConf.is_config(c.direction) else c.direction
        )
        way = "objectives" if isinstance(goals, dict) else "directions"
        self._options = {"db": c.db, "server": c.server, "seed": c.seed, way: goals, **c.options}

    def setup(self, *, hydra_context: Any, task_function: Any, config: Any) -> None:
        """Take the configuration. Hydra calls it."""
        self.hydra_context, self.config = hydra_context, config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> bkb.Study:
        """Run the jobs, write ``optimization_results.yaml``, and return the study."""
        known = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        lines = [f"{k}={v}" for k, v in self._settings.params.items()] + list(arguments)
        overrides = {o.get_key_element(): o for o in known.parse_overrides(lines)}
        space = {k: parameter(o) for k, o in overrides.items() if o.is_sweep_override()}
        if not space:
            raise bkb.InvalidRequest(
                "no override is a sweep, give one such as 'lr=interval(0,1)' or 'opt=choice(a,b)'"
            )
        fixed = [
            f"{k}={o.get_value_element_as_str()}"
            for k, o in overrides.items()
            if not o.is_sweep_override()
        ]
        study = bkb.create_study(self._name, space, exist_ok=True, **self._options)
        folder = Path(self.config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self.config, folder / "multirun.yaml")
        done, failures, most = 0, 0, self._settings.n_trials
        while done < most:
            trials = study.ask(min(self._settings.n_jobs, most - done))
            failures += self._launch(study, trials, fixed, done, failures)
            done += len(trials)
        one = len(study.objective_names) == 1
        front = [study.best_trial] if one and study.status.completed else study.pareto_front
        found = [{"params": dict(t.params), "values": list(t.values or ())} for t in front]
        report = {"name": "bkb", "study": study.name, "best": found[0] if one and found else found}
        OmegaConf.save(OmegaConf.create(report), folder / "optimization_results.yaml")
        log.info("study %s, best %s", study.name, report["best"])
        return study

    def _launch(
        self, study: bkb.Study, trials: Sequence[bkb.Trial], fixed: list[str], at: int, failed: int
    ) -> int:
        """Run trials at once, and return how many failed."""
        batch = [[*fixed, *(f"{k}={quoted(v)}" for k, v in t.params.items())] for t in trials]
        with_leases = [t.__enter__() for t in trials]
        count = 0
        error: BaseException | None = None
        try:
            self.validate_batch_is_legal(batch)
            for trial, job in zip(
                with_leases, self.launcher.launch(batch, initial_job_idx=at), strict=True
            ):
                if job.status == JobStatus.COMPLETED:
                    value = job.return_value
                    trial.tell(dict(value) if isinstance(value, Mapping) else value)
                    continue
                count += 1
                error = job._return_value
                trial.tell(state="failed", reason="crash", message=f"{error!r}")
        except BaseException as e:
            error, count = e, failed + self._settings.max_failures + 1
        for trial in trials:
            trial.__exit__(type(error) if error else None, error, None)
        if error is not None and failed + count > self._settings.max_failures:
            raise error
        return count


def parameter(o: Override) -> bkb.Parameter:
    """Return the parameter of a sweep of Hydra, with the tags ``log`` and ``int``."""
    sweep: Any = o.value()
    tags = sweep.tags
    name, log_scale = o.get_key_element(), "log" in tags
    if isinstance(sweep, ChoiceSweep):
        values = [_plain(v) for v in sweep.list]
        return bkb.Categorical(values) if "ordered" not in tags else bkb.Ordinal(values)
    if isinstance(sweep, RangeSweep):
        start, stop, step = sweep.start or 0, sweep.stop, sweep.step
        values = list(sweep.range())
        if stop is None or step <= 0 or not values:
            raise bkb.InvalidRequest(f"{name} is a range without numbers, give range(start, stop)")
        kind: Any = bkb.Int if all(isinstance(v, int) for v in (start, stop, step)) else bkb.Float
        wide = None if log_scale else step
        return kind(values[0], values[-1], step=wide, log=log_scale)  # type: ignore[no-any-return]
    assert isinstance(sweep, IntervalSweep)
    low, high = sweep.start, sweep.end
    whole = "int" in tags or isinstance(low, int) and isinstance(high, int) and "float" not in tags
    if whole:
        return bkb.Int(int(low), int(high), log=log_scale)
    return bkb.Float(float(low), float(high), log=log_scale)


def _plain(value: Any) -> Any:
    """Return an element of a choice. Hydra has texts in quotes as objects."""
    return getattr(value, "text", value)


def quoted(value: Any) -> str:
    """Return a value as the grammar of Hydra's overrides reads it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(quoted, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{k}:{quoted(v)}" for k, v in value.items()) + "}"
    return repr(value)
