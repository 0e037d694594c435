"""What notebooks show. It takes nothing from the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from ._goals import Goals
from ._plot import Plots
from ._views import StudyStatus, TrialView


def _table(rows: list[tuple[str, Any]]) -> str:
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(str(k))}</th><td>{escape(str(v))}</td></tr>"
        for k, v in rows
    )
    return f"<table>{cells}</table>"


def trial_html(study: str, number: int, params: Mapping[str, Any]) -> str:
    """Return a table of a trial's parameters."""
    title = f"<b>trial {number} of {escape(study)}</b>"
    return title + _table([(n, repr(v)) for n, v in params.items()])


def study_html(
    name: str, goals: Goals, s: StudyStatus, best: TrialView | None, trials: Iterable[TrialView]
) -> str:
    """Return a table of a study with the history of its trials."""
    rows: list[tuple[str, Any]] = [
        ("state", " ".join(x for x in (s.state, s.finish_reason) if x)),
        (
            "trials",
            f"{s.completed} completed, {s.running} running, {s.failed} failed, "
            f"{s.pruned} pruned, {s.infeasible} infeasible, {s.queued} queued",
        ),
    ]
    pairs = zip(goals.directions, goals.names, strict=True)
    rows.append(("objectives", ", ".join(f"{d} {n}" for d, n in pairs)))
    if best is not None:
        rows.append(("best", f"{best.value} in trial {best.number}"))
        rows += [(n, repr(v)) for n, v in best.params.items()]
    history = Plots(goals, trials, dict).history()
    shown = history.html if len(history.dots) > 1 else ""
    return f"<b>study {escape(name)}</b>" + _table(rows) + shown
