"""Early stopping of PyTorch Ignite by the pruner of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._pruning import Monitor

if TYPE_CHECKING:
    from ._study import Trial

__all__ = ["BKBPruningCallback"]


class BKBPruningCallback:
    """Handler of an evaluator, for ``Events.COMPLETED``.

    It reports a metric of the evaluator at the trainer's epoch, and raises `bkb.TrialPruned`
    if the trial should stop.

    Parameters
    ----------
    trial : Trial
        The running trial.
    monitor : str
        Metric of the evaluator, such as ``"accuracy"``.
    trainer : ignite.engine.Engine
        Engine that trains.

    """

    def __init__(self, trial: Trial, monitor: str, trainer: Any) -> None:
        self._monitor, self._trainer = Monitor(trial, monitor), trainer

    def __call__(self, engine: Any) -> None:
        """Report the metric of an epoch. Ignite calls it."""
        self._monitor.take(engine.state.metrics, self._trainer.state.epoch)
