"""Early stopping of CatBoost by the pruner of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._pruning import Monitor

if TYPE_CHECKING:
    from ._study import Trial

__all__ = ["BKBPruningCallback"]


class BKBPruningCallback:
    """Callback of ``fit``.

    It reports a metric after each iteration, and ends the training if the trial should stop.
    CatBoost passes no exception on, so that `check_pruned` raises after ``fit``.

    Parameters
    ----------
    trial : Trial
        The running trial.
    monitor : str
        Data set and metric, such as ``"validation-RMSE"``.

    """

    def __init__(self, trial: Trial, monitor: str) -> None:
        self._monitor = Monitor(trial, monitor)
        self._error: Exception | None = None

    def after_iteration(self, info: Any) -> bool:
        """Report the metric of an iteration. CatBoost calls it."""
        found = {f"{d}-{n}": v[-1] for d, m in info.metrics.items() for n, v in m.items()}
        try:
            self._monitor.take(found, info.iteration)
        except Exception as e:
            self._error = e
        return self._error is None

    def check_pruned(self) -> None:
        """Raise `bkb.TrialPruned` if the training ended for the pruner."""
        if self._error is not None:
            raise self._error
