"""Trials as runs of TensorBoard."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

try:
    from tensorboardX import SummaryWriter
    from tensorboardX.summary import hparams
except ImportError as e:
    raise ImportError(
        "bkb.tensorboard needs tensorboardX, run pip install 'bkb-tuner[tensorboard]'"
    ) from e

from ._logged import facts, points
from ._views import TrialView

if TYPE_CHECKING:
    from ._study import Study

__all__ = ["TensorBoardCallback"]


class TensorBoardCallback:
    """Callback of `Study.optimize` that logs each trial as a run.

    A run has the reports, the metrics at the step after them, and the parameters for the tab of
    hyper-parameters.

    Parameters
    ----------
    folder : path
        Folder of TensorBoard. A trial is in ``folder/study/number``.

    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)

    def __call__(self, study: Study, view: TrialView) -> None:
        """Log a trial that ended. `Study.optimize` calls it."""
        path = os.path.join(self._folder, study.name, str(view.number))
        with SummaryWriter(path) as writer:
            for step, values in points(view):
                for name, value in values.items():
                    writer.add_scalar(name, value, step)
            for name, value in facts(view).items():
                writer.add_text(name, str(value))
            known = (str, bool, int, float)
            params = {n: v if isinstance(v, known) else str(v) for n, v in view.params.items()}
            for summary in hparams(params, dict.fromkeys(view.objectives, 0.0)):
                writer.file_writer.add_summary(summary)
