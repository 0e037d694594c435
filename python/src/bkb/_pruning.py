"""What the callbacks of training libraries have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from ._errors import InvalidRequest, TrialPruned

if TYPE_CHECKING:
    from ._study import Trial


class Monitor:
    """Reports one metric of a training, and ends the training if the trial is pruned."""

    def __init__(self, trial: Trial, name: str) -> None:
        self.trial, self.name = trial, name

    def take(self, found: Mapping[str, Any], step: int) -> None:
        """Report the metric of those of a training, and raise TrialPruned if it should stop."""
        if self.name not in found:
            self.missing(found)
        self.report(found[self.name], step)

    def report(self, value: Any, step: int, *, higher_is_better: bool | None = None) -> None:
        """Report a value, and raise TrialPruned if the trial should stop."""
        self.tell(value, step, higher_is_better=higher_is_better)
        if self.trial.should_prune():
            raise TrialPruned(f"pruned at step {step}, {self.trial.stop_reason}".rstrip(", "))

    def tell(self, value: Any, step: int, *, higher_is_better: bool | None = None) -> None:
        """Report a value."""
        direction = self.trial.study.directions[0]
        if higher_is_better is not None and higher_is_better != (direction == "maximize"):
            better = "higher" if higher_is_better else "lower"
            raise InvalidRequest(
                f"monitor is {self.name!r}, of which {better} values are better, and the study "
                f"has to {direction} {self.trial.study.objective_names[0]!r}, monitor another "
                "metric, or create the study in the other direction"
            )
        self.trial.report(float(value), step)

    def missing(self, names: Iterable[str]) -> NoReturn:
        """Refuse a monitor that the training does not have."""
        have = ", ".join(map(repr, names)) or "no metrics"
        raise InvalidRequest(
            f"monitor is {self.name!r} and the training has {have}, give the name of one, "
            "and data to evaluate it on"
        )
