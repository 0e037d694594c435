"""Early stopping of Lightning by the pruner of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    from lightning.pytorch.callbacks import Callback
except ImportError as e:
    raise ImportError(
        "bkb.lightning needs Lightning, run pip install 'bkb-tuner[lightning]'"
    ) from e

from ._errors import TrialPruned
from ._pruning import Monitor

if TYPE_CHECKING:
    from ._study import Trial

__all__ = ["BKBPruningCallback"]


class BKBPruningCallback(Callback):  # type: ignore[misc]
    """Callback of a ``Trainer``.

    It reports a metric after each validation. If the trial should stop, it raises
    `bkb.TrialPruned`. With several processes the first one reports, all of them end the
    training, and `check_pruned` raises after ``Trainer.fit``.

    Parameters
    ----------
    trial : Trial
        The running trial.
    monitor : str
        Metric that the module logs, such as ``"val_loss"``.

    """

    def __init__(self, trial: Trial, monitor: str) -> None:
        super().__init__()
        self._monitor = Monitor(trial, monitor)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Report the metric of an epoch. Lightning calls it."""
        if trainer.sanity_checking:
            return
        monitor, found = self._monitor, trainer.callback_metrics
        if monitor.name not in found:
            monitor.missing(found)
        if trainer.world_size == 1:
            monitor.report(found[monitor.name], trainer.current_epoch)
            return
        if trainer.is_global_zero:
            monitor.tell(found[monitor.name], trainer.current_epoch)
        stop = trainer.strategy.broadcast(monitor.trial.should_prune(), src=0)
        trainer.should_stop = trainer.should_stop or stop

    def check_pruned(self) -> None:
        """Raise `bkb.TrialPruned` if other processes ended the training for the pruner."""
        trial = self._monitor.trial
        trial.renew()
        if trial.should_prune():
            raise TrialPruned(trial.stop_reason)
