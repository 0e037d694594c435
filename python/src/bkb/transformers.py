"""Hyper-parameter search of a ``Trainer`` of Hugging Face."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

try:
    from transformers import TrainerCallback
    from transformers.trainer_utils import BestRun, default_compute_objective
except ImportError as e:
    raise ImportError(
        "bkb.transformers needs transformers, run pip install 'bkb-tuner[transformers]'"
    ) from e

from ._client import StudyOptions, client_of
from ._errors import InvalidRequest
from ._pruning import Monitor

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Path
    from ._study import Trial

__all__ = ["BKBPruningCallback", "hyperparameter_search"]


class BKBPruningCallback(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Callback of a ``Trainer``.

    It reports a metric after each evaluation, and raises `bkb.TrialPruned` if the trial should
    stop.

    Parameters
    ----------
    trial : Trial
        The running trial.
    monitor : str or callable
        Metric, such as ``"eval_loss"``, or a function of the metrics.

    """

    def __init__(self, trial: Trial, monitor: str | Callable[[dict[str, float]], float]) -> None:
        self._monitor = Monitor(trial, str(monitor))
        self._given = monitor
        self.last: float | None = None

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **more: Any
    ) -> None:
        """Report the metric of an evaluation. The trainer calls it."""
        found = dict(metrics or {})
        if isinstance(self._given, str):
            if self._given not in found:
                self._monitor.missing(found)
            self.last = float(found[self._given])
        else:
            self.last = float(self._given(found))
        self._monitor.report(self.last, state.global_step)


def hyperparameter_search(
    trainer: Any,
    hp_space: Any,
    *,
    n_trials: int = 20,
    compute_objective: Callable[[dict[str, float]], float] = default_compute_objective,
    study: str | None = None,
    db: Path | None = None,
    server: str | None = None,
    **options: Unpack[StudyOptions],
) -> BestRun:
    """Search for the best arguments of a ``Trainer``, as its own method does with other libraries.

    The trainer must have a ``model_init``. Each trial sets its arguments, trains a new model
    and evaluates it.

    Parameters
    ----------
    trainer : transformers.Trainer
        The trainer.
    hp_space : dict or callable
        Search space of names of ``TrainingArguments``, or a function of a trial that returns
        values by name, with ``trial.suggest_float`` and the like.
    n_trials : int
        Trials to run.
    compute_objective : callable
        Function of the metrics of an evaluation. The default is as in transformers.
    study : str, optional
        Name of the study, made up if left out. A study of this name is continued.
    db, server : optional
        Where the study is, see `bkb.create_study`.
    **options
        Further arguments of `bkb.create_study`. Without objectives, ``objective`` is minimized.

    Returns
    -------
    transformers.trainer_utils.BestRun
        Number, value and parameters of the best trial. ``run_summary`` is the study.

    """
    if trainer.model_init is None:
        raise InvalidRequest("the trainer has no model_init, create it with model_init=")
    if not options.keys() & {"minimize", "maximize", "objectives", "directions"}:
        options["minimize"] = "objective"
    name = study or "trainer-" + uuid.uuid4().hex[:12]
    space = None if callable(hp_space) else hp_space
    options.setdefault("exist_ok", True)
    made = client_of(db, server, make=True).create_study(name, space, **options)
    usual = dict(vars(trainer.args))

    def objective(trial: Trial) -> float:
        params = hp_space(trial) if callable(hp_space) else trial.params
        _set(trainer.args, params, usual)
        callback = BKBPruningCallback(trial, compute_objective)
        trainer.add_callback(callback)
        try:
            trainer.train()
            if callback.last is None:
                trainer.evaluate()
        finally:
            trainer.remove_callback(callback)
        assert callback.last is not None
        return callback.last

    try:
        made.optimize(objective, n_trials)
    finally:
        _set(trainer.args, usual, usual)
    best = made.best_trial
    return BestRun(str(best.number), best.value, dict(best.params), made)


def _set(arguments: Any, params: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    for name, value in params.items():
        if name not in usual:
            raise InvalidRequest(
                f"parameter {name!r} is not in TrainingArguments, name one of its arguments"
            )
        object.__setattr__(arguments, name, value)
