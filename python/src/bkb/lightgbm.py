"""Early stopping of LightGBM by the pruner of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    import lightgbm  # noqa: F401
except ImportError as e:
    raise ImportError("bkb.lightgbm needs LightGBM, run pip install 'bkb-tuner[lightgbm]'") from e

from ._pruning import Monitor

if TYPE_CHECKING:
    from ._study import Trial

__all__ = ["BKBPruningCallback"]


class BKBPruningCallback:
    """Callback of ``lightgbm.train``, ``lightgbm.cv`` and the estimators.

    It reports a metric after each round, and raises `bkb.TrialPruned` if the trial should
    stop.

    Parameters
    ----------
    trial : Trial
        The running trial.
    monitor : str
        Data set and metric, such as ``"valid_0-l2"``. The sets of ``cv`` are ``train`` and
        ``valid``.

    """

    order = 30  # after LightGBM's own, which end a training too
    before_iteration = False

    def __init__(self, trial: Trial, monitor: str) -> None:
        self._monitor = Monitor(trial, monitor)

    def __call__(self, env: Any) -> None:
        """Report the metric of a round. LightGBM calls it."""
        found = {f"{r[0]}-{r[1]}": r for r in env.evaluation_result_list or []}
        if self._monitor.name not in found:
            self._monitor.missing(found)
        _, _, value, higher = found[self._monitor.name][:4]
        step = env.iteration - env.begin_iteration
        self._monitor.report(value, step, higher_is_better=higher)
