"""What callbacks of `Study.optimize` log of a trial."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ._views import TrialView, last_epoch

if TYPE_CHECKING:
    from ._study import Study


def points(view: TrialView) -> list[tuple[int, dict[str, float]]]:
    """Return the reports of a trial by step, and its metrics at the step after them."""
    found = [(r.step, dict(r.values)) for r in last_epoch(view.reports)]
    last = {n: math.fsum(v) / len(v) for n, v in view.metrics.items() if v}
    if view.cost:
        last["bkb.cost"] = view.cost
    return [*found, (max((step + 1 for step, _ in found), default=0), last)] if last else found


def facts(view: TrialView) -> dict[str, Any]:
    """Return what a trial is, and how it ended."""
    told = {"bkb.state": view.state, "bkb.reason": view.reason, "bkb.message": view.message}
    return {"bkb.trial": view.number, **{k: v for k, v in told.items() if v}}


class Runs:
    """Callback that logs each trial as a run of a library with the calls of W&B.

    Parameters
    ----------
    library : module
        The library.
    project : str, optional
        Name of the project, that of the study if left out.
    options : dict
        Further arguments of its ``init``.

    """

    def __init__(self, library: Any, project: str | None, options: dict[str, Any]) -> None:
        self._library, self._project, self._options = library, project, options

    def __call__(self, study: Study, view: TrialView) -> None:
        """Log a trial that ended. `Study.optimize` calls it."""
        run = self._library.init(
            project=self._project or study.name,
            group=study.name,
            name=f"{study.name} {view.number}",
            config={**view.params, **view.attributes, **facts(view)},
            **self._options,
        )
        # trackio knows no run without values.
        for step, values in points(view) or [(0, {"bkb.trial": float(view.number)})]:
            run.log(values, step=step)
        run.finish()
