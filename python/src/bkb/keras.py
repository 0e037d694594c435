"""Early stopping of Keras by the pruner of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

try:
    from keras.callbacks import Callback
except ImportError as e:
    raise ImportError("bkb.keras needs Keras 3, run pip install 'bkb-tuner[keras]'") from e

from ._pruning import Monitor

if TYPE_CHECKING:
    from ._study import Trial

__all__ = ["BKBPruningCallback"]


class BKBPruningCallback(Callback):  # type: ignore[misc]
    """Callback of ``Model.fit``.

    It reports a metric after each epoch, and raises `bkb.TrialPruned` if the trial should
    stop.

    Parameters
    ----------
    trial : Trial
        The running trial.
    monitor : str
        Metric, such as ``"val_loss"``.

    """

    def __init__(self, trial: Trial, monitor: str) -> None:
        super().__init__()
        self._monitor = Monitor(trial, monitor)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Report the metric of an epoch. Keras calls it."""
        self._monitor.take(logs or {}, epoch)
