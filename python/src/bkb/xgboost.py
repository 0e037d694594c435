"""Early stopping of XGBoost by the pruner of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

try:
    from xgboost.callback import TrainingCallback
except ImportError as e:
    raise ImportError("bkb.xgboost needs XGBoost, run pip install 'bkb-tuner[xgboost]'") from e

from ._pruning import Monitor

if TYPE_CHECKING:
    from ._study import Trial

__all__ = ["BKBPruningCallback"]


class BKBPruningCallback(TrainingCallback):  # type: ignore[misc]
    """Callback of ``xgboost.train``, ``xgboost.cv`` and the estimators.

    It reports a metric after each round, and raises `bkb.TrialPruned` if the trial should
    stop.

    Parameters
    ----------
    trial : Trial
        The running trial.
    monitor : str
        Data set and metric, such as ``"valid-rmse"``. The sets of the estimators are
        ``validation_0`` and so on, and those of ``cv`` are ``train`` and ``test``.

    """

    def __init__(self, trial: Trial, monitor: str) -> None:
        super().__init__()
        self._monitor = Monitor(trial, monitor)

    def after_iteration(self, model: Any, epoch: int, evals_log: Mapping[str, Any]) -> bool:
        """Report the metric of a round. XGBoost calls it."""
        found = {f"{d}-{m}": v[-1] for d, metrics in evals_log.items() for m, v in metrics.items()}
        # cv has pairs of a mean and a deviation.
        means = {n: v[0] if isinstance(v, tuple) else v for n, v in found.items()}
        self._monitor.take(means, epoch)
        return False
