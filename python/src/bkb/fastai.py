"""Early stopping of fastai by the pruner of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from fastai.callback.core import Callback
except ImportError as e:
    raise ImportError("bkb.fastai needs fastai, run pip install 'bkb-tuner[fastai]'") from e

from ._pruning import Monitor

if TYPE_CHECKING:
    from ._study import Trial

__all__ = ["BKBPruningCallback"]


class BKBPruningCallback(Callback):  # type: ignore[misc]
    """Callback of a ``Learner``.

    It reports a metric after each epoch, and raises `bkb.TrialPruned` if the trial should
    stop.

    Parameters
    ----------
    trial : Trial
        The running trial.
    monitor : str
        Metric of the learner's recorder, such as ``"valid_loss"``.

    """

    order = 60  # after the recorder

    def __init__(self, trial: Trial, monitor: str) -> None:
        super().__init__()
        self._pruning = Monitor(trial, monitor)

    def after_epoch(self) -> None:
        """Report the metric of an epoch. fastai calls it."""
        recorder = self.learn.recorder
        found = dict(zip(recorder.metric_names[1:], recorder.values[-1], strict=False))
        self._pruning.take(found, self.learn.epoch)
